// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "status/control.h"
#include "unit.h"

struct fixture {
	struct rs_loop loop;
	struct rs_control control;
	char dir[64], path[96], err[256];
	int asked;
	size_t processes; /* in each snapshot */
};

static void fill(void *arg, struct rs_status *s)
{
	struct fixture *f = arg;

	f->asked++;
	s->command = "run";
	s->state = RS_STATE_CAPTURING;
	s->backend = "socket";
	for (size_t i = 0; i < f->processes; i++) {
		struct rs_status_process *p = rs_status_add_process(s);

		if (!p)
			break;
		p->pid = (uint32_t)i + 1;
		p->comm = "ngi\x1bnx\xff";
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/rs-control-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	f->control.w.fd = -1;
	assert_int_equal(rs_loop_init(&f->loop), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	rs_control_close(&f->control);
	rs_loop_release(&f->loop);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static int start(struct fixture *f)
{
	return rs_control_open(&f->control, &f->loop, f->path, fill, f, f->err, sizeof(f->err));
}

static int connect_to(struct fixture *f)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(sun.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* Turns the loop until nothing happens; reads what came. */
static size_t talk(struct fixture *f, int fd, char *buf, size_t size)
{
	size_t got = 0;

	for (int quiet = 0; quiet < 3;) {
		ssize_t n;

		quiet = rs_loop_turn(&f->loop, 0) > 0 ? 0 : quiet + 1;
		n = recv(fd, buf + got, size - got, MSG_DONTWAIT);
		if (n > 0) {
			got += (size_t)n;
			quiet = 0;
		}
	}
	return got;
}

static void test_answers(void **state)
{
	struct fixture *f = *state;
	static const char *const requests[] = { "status\n", "status\r\n", "status\nrest" };
	static char buf[1 << 20];
	struct stat st;

	f->processes = 3;
	assert_int_equal(start(f), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	for (size_t i = 0; i < 3; i++) {
		int fd = connect_to(f);
		json_t *o;
		size_t n;

		assert_true(write(fd, requests[i], strlen(requests[i])) > 0);
		n = talk(f, fd, buf, sizeof(buf));
		o = json_loadb(buf, n, 0, NULL);
		assert_non_null(o);
		assert_string_equal(json_string_value(json_object_get(o, "state")), "capturing");
		assert_int_equal(json_array_size(json_object_get(o, "processes")), 3);
		json_decref(o);
		close(fd);
	}
	assert_int_equal(f->asked, 3);
	assert_int_equal(f->control.nclients, 0);
}

/* A snapshot bigger than the socket's buffer goes out in pieces, to a reader that takes its time. */
static void test_big_answer(void **state)
{
	struct fixture *f = *state;
	size_t size = 16 << 20, n;
	char *buf = malloc(size);
	json_t *o;
	int fd;

	f->processes = 1000000; /* more than a snapshot holds */
	assert_int_equal(start(f), 0);
	fd = connect_to(f);
	assert_int_equal(write(fd, "status\n", 7), 7);
	for (int i = 0; i < 10; i++)
		rs_loop_turn(&f->loop, 0);
	assert_int_equal(f->control.nclients, 1);
	n = talk(f, fd, buf, size);
	o = json_loadb(buf, n, 0, NULL);
	assert_non_null(o);
	assert_true(json_integer_value(json_object_get(o, "processes_left_out")) > 0);
	json_decref(o);
	free(buf);
	close(fd);
}

static void test_garbage(void **state)
{
	struct fixture *f = *state;
	static const char zero[4096];
	char buf[256];
	size_t n;
	int fd;

	assert_int_equal(start(f), 0);
	fd = connect_to(f);
	assert_true(write(fd, zero, sizeof(zero)) > 0);
	n = talk(f, fd, buf, sizeof(buf));
	assert_true(n > 0 && memcmp(buf, "{\"error\"", 8) == 0);
	close(fd);
	fd = connect_to(f);
	shutdown(fd, SHUT_WR);
	assert_int_equal(talk(f, fd, buf, sizeof(buf)), 0);
	close(fd);
	fd = connect_to(f); /* goes away without a word, after half of one */
	assert_true(write(fd, "sta", 3) == 3);
	close(fd);
	talk(f, -1, buf, 0);
	assert_int_equal(f->control.nclients, 0);
	assert_int_equal(f->asked, 0);
}

static void test_too_many_clients(void **state)
{
	struct fixture *f = *state;
	int fd[RS_CONTROL_CLIENTS + 1];
	static char buf[1 << 16];
	size_t n;

	assert_int_equal(start(f), 0);
	for (int i = 0; i <= RS_CONTROL_CLIENTS; i++) {
		/* However slow this machine is, all have just been heard of. */
		for (int k = 0; k < i; k++)
			f->control.client[k].active_ns = UINT64_MAX;
		fd[i] = connect_to(f);
		n = talk(f, fd[i], buf, sizeof(buf));
		assert_int_equal(n > 0, i == RS_CONTROL_CLIENTS);
	}
	assert_int_equal(f->control.nclients, RS_CONTROL_CLIENTS);
	/* Who keeps us waiting for longest goes for a new one. */
	f->control.client[2].active_ns = 1;
	f->control.client[5].active_ns = 0;
	close(fd[RS_CONTROL_CLIENTS]);
	fd[RS_CONTROL_CLIENTS] = connect_to(f);
	assert_int_equal(write(fd[RS_CONTROL_CLIENTS], "status\n", 7), 7);
	n = talk(f, fd[RS_CONTROL_CLIENTS], buf, sizeof(buf));
	assert_true(n > 8 && memcmp(buf, "{\"error\"", 8) != 0);
	assert_int_equal(f->control.nclients, RS_CONTROL_CLIENTS - 1);
	assert_int_equal(f->control.client[2].active_ns, 1);
	assert_int_equal(f->control.client[5].w.fd, -1);
	/* Those who are silent for too long make room. */
	for (int i = 0; i < RS_CONTROL_CLIENTS; i++)
		f->control.client[i].active_ns = 0;
	assert_int_equal(rs_loop_timer_set(&f->control.timer, 1, 0), 0);
	rs_loop_turn(&f->loop, 1000);
	assert_int_equal(f->control.nclients, 0);
	for (int i = 0; i <= RS_CONTROL_CLIENTS; i++)
		close(fd[i]);
}

static void test_second_agent_is_refused(void **state)
{
	struct fixture *f = *state;
	struct rs_control second;
	struct stat st;

	assert_int_equal(start(f), 0);
	assert_int_equal(
		rs_control_open(&second, &f->loop, f->path, fill, f, f->err, sizeof(f->err)),
		-EADDRINUSE);
	assert_has(f->err, "another agent is running on");
	rs_control_close(&second);
	assert_int_equal(stat(f->path, &st), 0); /* the first one's stays */
}

static void test_stale_socket_is_taken_over(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(sun.sun_path, f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd); /* the path stays */
	assert_int_equal(start(f), 0);
	rs_control_close(&f->control);
	assert_int_equal(access(f->path, F_OK), -1);
}

static void test_other_files_are_left_alone(void **state)
{
	struct fixture *f = *state;
	char path[200];
	int fd = open(f->path, O_CREAT | O_WRONLY, 0600);

	close(fd);
	assert_int_equal(start(f), -ENOTSOCK);
	assert_has(f->err, "is not a socket");
	assert_int_equal(access(f->path, F_OK), 0);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(
		rs_control_open(&f->control, &f->loop, path, fill, f, f->err, sizeof(f->err)),
		-ENAMETOOLONG);
	assert_int_equal(rs_control_open(&f->control, &f->loop, "/nonexistent/x", fill, f, f->err,
					 sizeof(f->err)),
			 -ENOENT);
	assert_has(f->err, "cannot listen on");
}

static void test_client(void **state)
{
	struct fixture *f = *state;
	size_t len = 0;
	char *text = NULL;
	pid_t pid;
	int st;

	assert_int_equal(rs_control_ask(f->path, "status", &text, &len, f->err, sizeof(f->err)),
			 -ENOENT);
	assert_has(f->err, "no agent is running");
	assert_int_equal(start(f), 0);
	f->processes = 2000;
	pid = fork();
	if (!pid) {
		int err = rs_control_ask(f->path, "status", &text, &len, f->err, sizeof(f->err));

		_exit(err || !len || text[len] || text[0] != '{');
	}
	while (!f->asked || f->control.nclients)
		rs_loop_turn(&f->loop, 100);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
}

/* -- answers by bits -- */

static struct rs_control_client *talking, *left;

static int on_request(void *arg, struct rs_control_client *cl, struct str line)
{
	(void)arg;
	if (!str_eq(line, STR("talk 1")))
		return -ENOENT;
	talking = cl;
	return 0;
}

static void on_gone(void *arg, struct rs_control_client *cl)
{
	(void)arg;
	left = cl;
}

static int begin_talk(struct fixture *f)
{
	int fd = connect_to(f);
	char buf[64];

	talking = left = NULL;
	f->control.request = on_request;
	f->control.gone = on_gone;
	assert_int_equal(send(fd, "talk 1\n", 7, 0), 7);
	assert_int_equal(talk(f, fd, buf, sizeof(buf)), 0);
	assert_non_null(talking);
	return fd;
}

static void test_answer_by_bits(void **state)
{
	struct fixture *f = *state;
	static char bits[64 * 1024];
	char buf[64] = "";
	int fd, n = 0;

	assert_int_equal(start(f), 0);
	fd = begin_talk(f);
	/* Silent for long, but it is not its turn. */
	talking->active_ns = 0;
	assert_int_equal(rs_loop_timer_set(&f->control.timer, 1, 0), 0);
	rs_loop_turn(&f->loop, 1000);
	assert_int_equal(f->control.nclients, 1);
	assert_int_equal(rs_control_say(talking, "one\n", 4), 0);
	assert_int_equal(rs_control_say(talking, "two\n", 4), 0);
	assert_int_equal(talk(f, fd, buf, sizeof(buf)), 8);
	assert_memory_equal(buf, "one\ntwo\n", 8);
	assert_int_equal(rs_control_say(talking, "three\n", 6), 0);
	rs_control_end(talking);
	assert_int_equal(talk(f, fd, buf, sizeof(buf)), 6);
	assert_int_equal(f->control.nclients, 0);
	assert_null(left);
	close(fd);
	/* Who does not read is told no more than there is room for. */
	fd = begin_talk(f);
	while (n < 1000 && rs_control_say(talking, bits, sizeof(bits)) == 0) {
		rs_loop_turn(&f->loop, 0);
		n++;
	}
	assert_true(n < 1000);
	assert_int_equal(rs_control_say(talking, bits, RS_CONTROL_SAY), -ENOSPC);
	/* Who leaves is forgotten. */
	close(fd);
	for (int i = 0; i < 10 && f->control.nclients; i++)
		rs_loop_turn(&f->loop, 10);
	assert_int_equal(f->control.nclients, 0);
	assert_ptr_equal(left, talking);
	/* What nobody knows is an error, still. */
	fd = connect_to(f);
	assert_int_equal(send(fd, "talk 2\n", 7, 0), 7);
	assert_true(talk(f, fd, buf, sizeof(buf) - 1) > 0);
	assert_has(buf, "unknown request");
	close(fd);
}

struct heard {
	char text[64];
	size_t len;
};

static bool hear(void *arg, const char *bits, size_t len)
{
	struct heard *h = arg;

	if (h->len + len >= sizeof(h->text))
		return false;
	memcpy(h->text + h->len, bits, len);
	h->len += len;
	return true;
}

static void test_listen(void **state)
{
	struct fixture *f = *state;
	struct heard h = { 0 };
	pid_t pid;
	int st;

	assert_int_equal(start(f), 0);
	f->control.request = on_request;
	talking = NULL;
	pid = fork();
	if (!pid) {
		int err = rs_control_listen(f->path, "talk 1", 5, hear, &h, f->err, sizeof(f->err));

		_exit(err || strcmp(h.text, "one\ntwo\n") != 0);
	}
	while (!talking)
		rs_loop_turn(&f->loop, 100);
	assert_int_equal(rs_control_say(talking, "one\n", 4), 0);
	rs_loop_turn(&f->loop, 0);
	assert_int_equal(rs_control_say(talking, "two\n", 4), 0);
	rs_control_end(talking);
	while (f->control.nclients)
		rs_loop_turn(&f->loop, 100);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_answers),
		T(test_big_answer),
		T(test_garbage),
		T(test_too_many_clients),
		T(test_second_agent_is_refused),
		T(test_stale_socket_is_taken_over),
		T(test_other_files_are_left_alone),
		T(test_client),
		T(test_answer_by_bits),
		T(test_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
