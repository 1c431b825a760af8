// SPDX-License-Identifier: Apache-2.0
#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SEGMENTS     64 /* at most; the bound in bytes is reached at about 16 */
#define SEGMENT_MIN  (256u << 10)
#define SEGMENT_MAX  (64u << 20)
#define MAGIC	     0x70735352u
#define REWIND_BYTES (1u << 20) /* a segment with nothing in it is begun anew from this size on */

static const char file_head[8] = { 'R', 'S', 'S', 'P', 'O', 'O', 'L', '1' };

enum {
	DATA = 1,
	TAKEN = 2
};

struct record {
	uint32_t magic;
	uint8_t type, form;
	uint16_t pad_;
	uint32_t spans, len;
	uint64_t id;
	uint32_t crc, head_crc;
};

struct segment {
	uint32_t no;
	int fd;
	uint64_t size;
	uint32_t pending;
};

struct rs_spool {
	struct rs_spool_opts o;
	char *dir, *name;
	int dir_fd, lock_fd;
	uint64_t segment_bytes;
	struct segment seg[SEGMENTS]; /* oldest first; the last one is written to */
	int n;
	uint32_t next_no;
};

static uint32_t head_crc(const struct record *r)
{
	return (uint32_t)crc32(0, (const Bytef *)r, offsetof(struct record, head_crc));
}

static void file_name(const struct rs_spool *s, uint32_t no, char *buf, size_t size)
{
	snprintf(buf, size, "%s-%08x.seg", s->name, no);
}

static struct segment *find(struct rs_spool *s, uint64_t id)
{
	for (int i = 0; i < s->n; i++) {
		if (s->seg[i].no == id >> 32)
			return &s->seg[i];
	}
	return NULL;
}

static bool read_full(int fd, void *to, size_t len, uint64_t at)
{
	char *p = to;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static int write_full(int fd, struct iovec *iov, int n, uint64_t at)
{
	while (n) {
		ssize_t w = pwritev(fd, iov, n, (off_t)at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		at += (uint64_t)w;
		while (n && (size_t)w >= iov->iov_len) {
			w -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (char *)iov->iov_base + w;
			iov->iov_len -= (size_t)w;
		}
	}
	return 0;
}

static bool read_record(const struct segment *g, uint64_t at, struct record *r)
{
	return at + sizeof(*r) <= g->size && read_full(g->fd, r, sizeof(*r), at) &&
	       r->magic == MAGIC && r->head_crc == head_crc(r) &&
	       (r->type != DATA || at + sizeof(*r) + r->len <= g->size);
}

static int remove_segment(struct rs_spool *s, struct segment *g)
{
	char name[128];
	int rc = 0;

	file_name(s, g->no, name, sizeof(name));
	if (unlinkat(s->dir_fd, name, 0))
		rc = -errno;
	close(g->fd);
	s->n--;
	memmove(g, g + 1, (size_t)(&s->seg[s->n] - g) * sizeof(*g));
	return rc;
}

static int new_segment(struct rs_spool *s)
{
	struct segment *g = &s->seg[s->n];
	struct iovec iov = { (void *)file_head, sizeof(file_head) };
	char name[128];
	int rc;

	/* What is done with goes now that nobody writes to it. */
	if (s->n && s->seg[s->n - 1].pending == 0)
		remove_segment(s, &s->seg[s->n - 1]);
	g = &s->seg[s->n];
	*g = (struct segment){ .no = s->next_no, .size = sizeof(file_head) };
	file_name(s, g->no, name, sizeof(name));
	g->fd = openat(s->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (g->fd < 0)
		return -errno;
	rc = write_full(g->fd, &iov, 1, 0);
	s->next_no++;
	s->n++;
	if (rc)
		remove_segment(s, g);
	return rc;
}

/* -- scanning -- */

struct scan {
	struct record *rec; /* data not taken */
	size_t n, cap;
	uint64_t end; /* of what is whole */
};

static int scan_data(struct scan *c, const struct record *r)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 64;
		struct record *p = realloc(c->rec, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		c->rec = p;
		c->cap = cap;
	}
	c->rec[c->n++] = *r;
	return 0;
}

/* Messages are taken nearly in order: the search from the start is short. */
static void scan_taken(struct scan *c, uint64_t id)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->rec[i].id != id)
			continue;
		memmove(&c->rec[i], &c->rec[i + 1], (c->n - i - 1) * sizeof(c->rec[0]));
		c->n--;
		return;
	}
}

/* c->rec: what was not taken, in order; to be freed. */
static int scan(const struct segment *g, struct scan *c)
{
	struct record r;
	int rc;

	*c = (struct scan){ .end = sizeof(file_head) };
	while (read_record(g, c->end, &r)) {
		if (r.type == TAKEN) {
			scan_taken(c, r.id);
		} else {
			rc = scan_data(c, &r);
			if (rc)
				return rc;
		}
		c->end += sizeof(r) + (r.type == DATA ? r.len : 0);
	}
	return 0;
}

/* -- opening -- */

static int load_segment(struct rs_spool *s, uint32_t no)
{
	struct segment *g = &s->seg[s->n];
	char name[128], head[sizeof(file_head)];
	struct scan c;
	struct stat st;
	int rc;

	file_name(s, no, name, sizeof(name));
	*g = (struct segment){ .no = no, .fd = openat(s->dir_fd, name, O_RDWR | O_CLOEXEC) };
	if (g->fd < 0)
		return -errno;
	s->n++;
	if (no >= s->next_no)
		s->next_no = no + 1;
	if (fstat(g->fd, &st) || !read_full(g->fd, head, sizeof(head), 0) ||
	    memcmp(head, file_head, sizeof(head)) != 0)
		return remove_segment(s, g);
	g->size = (uint64_t)st.st_size;
	rc = scan(g, &c);
	if (!rc && c.end < g->size) {
		g->size = c.end;
		rc = ftruncate(g->fd, (off_t)c.end) ? -errno : 0;
	}
	g->pending = (uint32_t)c.n;
	for (size_t i = 0; !rc && i < c.n; i++)
		s->o.found(s->o.arg, c.rec[i].id, c.rec[i].form, c.rec[i].spans);
	free(c.rec);
	if (!rc && !g->pending)
		rc = remove_segment(s, g);
	return rc;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int load_all(struct rs_spool *s)
{
	uint32_t no[SEGMENTS - 1];
	size_t n = 0, prefix = strlen(s->name);
	DIR *d = opendir(s->dir);
	struct dirent *f;
	int rc = 0;

	if (!d)
		return -errno;
	while ((f = readdir(d)) && n < SEGMENTS - 1) {
		unsigned v;
		char tail;

		if (strncmp(f->d_name, s->name, prefix) == 0 &&
		    sscanf(f->d_name + prefix, "-%8x.se%c", &v, &tail) == 2 && tail == 'g')
			no[n++] = v;
	}
	closedir(d);
	qsort(no, n, sizeof(no[0]), by_number);
	for (size_t i = 0; !rc && i < n; i++)
		rc = load_segment(s, no[i]);
	return rc;
}

static int open_dir(struct rs_spool *s)
{
	char lock[128];

	if (mkdir(s->dir, 0700) && errno != EEXIST)
		return -errno;
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	snprintf(lock, sizeof(lock), "%s.lock", s->name);
	s->lock_fd = openat(s->dir_fd, lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return -errno;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return load_all(s);
}

int rs_spool_open(const struct rs_spool_opts *o, struct rs_spool **ret, char *err, size_t size)
{
	struct rs_spool *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (s) {
		*s = (struct rs_spool){ .o = *o, .dir_fd = -1, .lock_fd = -1, .next_no = 1 };
		s->dir = strdup(o->dir);
		s->name = strdup(o->name);
		s->segment_bytes = o->max_bytes / 16;
		if (s->segment_bytes < SEGMENT_MIN)
			s->segment_bytes = SEGMENT_MIN;
		if (s->segment_bytes > SEGMENT_MAX)
			s->segment_bytes = SEGMENT_MAX;
		rc = s->dir && s->name ? open_dir(s) : -ENOMEM;
	}
	if (rc) {
		snprintf(err, size, "spool %s: %s", o->dir,
			 rc == -EBUSY ? "another agent uses it; choose another --spool"
				      : strerror(-rc));
		rs_spool_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void rs_spool_close(struct rs_spool *s)
{
	if (!s)
		return;
	for (int i = s->n - 1; i >= 0; i--) {
		if (s->seg[i].pending)
			close(s->seg[i].fd);
		else
			remove_segment(s, &s->seg[i]);
	}
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->dir);
	free(s->name);
	free(s);
}

uint64_t rs_spool_bytes(const struct rs_spool *s)
{
	uint64_t n = 0;

	for (int i = 0; s && i < s->n; i++)
		n += s->seg[i].size;
	return n;
}

/* -- messages -- */

static void drop_oldest(struct rs_spool *s)
{
	struct scan c;

	if (scan(&s->seg[0], &c) == 0) {
		for (size_t i = 0; i < c.n; i++)
			s->o.dropped(s->o.arg, c.rec[i].id);
	}
	free(c.rec);
	remove_segment(s, &s->seg[0]);
}

/* A segment with room for `bytes`. */
static int room_for(struct rs_spool *s, uint64_t bytes)
{
	int rc;

	if (bytes + sizeof(file_head) > s->o.max_bytes || bytes > UINT32_MAX / 2)
		return -EFBIG;
	if (!s->n || s->seg[s->n - 1].size >= s->segment_bytes) {
		if (s->n == SEGMENTS)
			drop_oldest(s);
		rc = new_segment(s);
		if (rc)
			return rc;
	}
	while (rs_spool_bytes(s) + bytes > s->o.max_bytes) {
		bool last = s->n == 1;

		drop_oldest(s);
		rc = last ? new_segment(s) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

static int append(struct segment *g, struct record *r, const struct rs_payload *data)
{
	struct iovec iov[1 + RS_PAYLOAD_BUFS];
	int n = 1, rc;

	r->head_crc = head_crc(r);
	iov[0] = (struct iovec){ r, sizeof(*r) };
	for (int i = 0; data && i < data->niov; i++)
		iov[n++] = data->iov[i];
	rc = write_full(g->fd, iov, n, g->size);
	if (rc) {
		/* Half a record is cut off. If even that fails: the next record is written over it, and a
		 * restart before that cuts it. */
		if (ftruncate(g->fd, (off_t)g->size))
			errno = 0;
		return rc;
	}
	g->size += sizeof(*r) + (data ? data->len : 0);
	return 0;
}

int rs_spool_add(struct rs_spool *s, uint8_t form, uint32_t spans, const struct rs_payload *data,
		 uint64_t *ret_id)
{
	struct record r = { .magic = MAGIC,
			    .type = DATA,
			    .form = form,
			    .spans = spans,
			    .len = (uint32_t)data->len };
	uLong crc = crc32(0, NULL, 0);
	struct segment *g;
	int rc;

	rc = room_for(s, sizeof(r) + data->len);
	if (rc)
		return rc;
	g = &s->seg[s->n - 1];
	for (int i = 0; i < data->niov; i++)
		crc = crc32(crc, data->iov[i].iov_base, (uInt)data->iov[i].iov_len);
	r.crc = (uint32_t)crc;
	r.id = (uint64_t)g->no << 32 | g->size;
	rc = append(g, &r, data);
	if (rc)
		return rc;
	g->pending++;
	*ret_id = r.id;
	return 0;
}

int rs_spool_read(struct rs_spool *s, uint64_t id, struct rs_bufpool *pool, struct rs_payload *ret)
{
	const struct segment *g = find(s, id);
	struct rs_buf *b;
	struct record r;
	int rc;

	if (!g)
		return -ENOENT;
	if (!read_record(g, id & UINT32_MAX, &r) || r.type != DATA || r.id != id)
		return -EBADMSG;
	rc = rs_bufpool_get(pool, r.len, &b);
	if (rc)
		return rc;
	if (!read_full(g->fd, b->data, r.len, (id & UINT32_MAX) + sizeof(r)) ||
	    crc32(0, (const Bytef *)b->data, r.len) != r.crc) {
		rs_bufpool_put(pool, b);
		return -EBADMSG;
	}
	*ret = (struct rs_payload){ .pool = pool, .niov = 1, .len = r.len };
	ret->buf[0] = b;
	ret->iov[0] = (struct iovec){ b->data, r.len };
	return 0;
}

void rs_spool_ack(struct rs_spool *s, uint64_t id)
{
	struct record r = { .magic = MAGIC, .type = TAKEN, .id = id };
	struct segment *g = find(s, id);

	if (!g || !g->pending)
		return;
	if (--g->pending == 0 && g != &s->seg[s->n - 1]) {
		remove_segment(s, g);
	} else if (!g->pending && g->size > REWIND_BYTES &&
		   ftruncate(g->fd, sizeof(file_head)) == 0) {
		g->size = sizeof(file_head);
	} else if (append(g, &r, NULL)) {
		/* No room for the mark: after a restart this message is sent twice. */
		return;
	}
}
