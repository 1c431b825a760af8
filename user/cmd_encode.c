// SPDX-License-Identifier: Apache-2.0
/* ringspan encode: spans from OTLP to any format. Also the handle by which encoders are tested from outside. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "encoder.h"
#include "otlp/read.h"

#define INPUT_MAX (1UL << 30)

/* One message as big as the buffers go: encoders split only what is bigger. */
#define MESSAGE_MAX (60UL << 20)

/* All of fd, malloc'ed. 0 or -errno. */
static int read_all(int fd, struct str *ret)
{
	size_t cap = 65536, len = 0;
	char *buf = malloc(cap);

	while (buf) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || len + (size_t)n > INPUT_MAX) {
			int err = n < 0 ? -errno : -EFBIG;

			free(buf);
			return err;
		}
		if (n == 0) {
			*ret = str_of(buf, len);
			return 0;
		}
		len += (size_t)n;
		if (len == cap) {
			char *bigger = realloc(buf, cap * 2);

			if (!bigger)
				free(buf);
			buf = bigger;
			cap *= 2;
		}
	}
	return -ENOMEM;
}

static int read_input(const char *path, struct str *ret)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	int err;

	if (fd < 0) {
		rs_error("cannot open %s: %s", path, strerror(errno));
		return -errno;
	}
	err = read_all(fd, ret);
	if (err)
		rs_error("cannot read %s: %s", path ? path : "standard input", strerror(-err));
	if (path)
		close(fd);
	return err;
}

static int parse(const char *name, const char *from, struct str in, struct rs_batch *b)
{
	bool pb = from ? !strcmp(from, "otlp-proto") : rs_read_is_pb(in);
	struct rs_read_error why;
	int err = pb ? rs_read_otlp_pb(b, in, &why) : rs_read_otlp_json(b, in, &why);

	if (err && pb)
		rs_error("%s: byte %zu: %s", name, why.offset, why.why);
	else if (err)
		rs_error("%s: line %zu, column %zu: %s", name, why.line, why.col, why.why);
	return err;
}

static int write_message(FILE *out, const struct rs_payload *pl)
{
	for (int i = 0; i < pl->niov; i++) {
		if (fwrite(pl->iov[i].iov_base, 1, pl->iov[i].iov_len, out) != pl->iov[i].iov_len)
			return -errno;
	}
	return 0;
}

/* Messages in JSON stand on a line each; others follow each other as they are. */
static int write_messages(struct rs_encoder *e, const struct rs_batch *b, FILE *out, const char *to,
			  const char *name)
{
	bool lines = !strcmp(e->ops->suffix, "json");
	struct rs_encode run = { .batch = b };
	uint32_t skipped = 0;
	int err, n = 0;

	while (!(err = rs_encode(e, &run)) && run.out.niov) {
		if (n++ && lines)
			fputc('\n', out);
		err = write_message(out, &run.out);
		rs_payload_release(&run.out);
		if (err)
			break;
	}
	if (lines && n && isatty(fileno(out)))
		fputc('\n', out);
	if (!err && fflush(out))
		err = -errno;
	for (int i = 0; i < RS_SKIP_COUNT; i++) {
		if (!run.skipped[i])
			continue;
		rs_warn("%u span%s left out of %s: %s", run.skipped[i],
			run.skipped[i] == 1 ? "" : "s", to, rs_skip_text((enum rs_skip)i));
		skipped += run.skipped[i];
	}
	if (err)
		rs_error("cannot write %s: %s; what is there is not whole", name, strerror(-err));
	else if (skipped)
		rs_warn("%u of %u spans written", run.spans, b->nspans);
	return err;
}

static int encode(const struct rs_config *cfg, const struct rs_batch *b)
{
	const struct rs_encoder_opts opts = { .max_payload = MESSAGE_MAX };
	struct rs_bufpool pool;
	struct rs_encoder *e = NULL;
	FILE *out = stdout;
	int err = rs_bufpool_init(&pool, 0);

	if (!err)
		err = rs_encoder_new(cfg->to, &pool, &opts, &e);
	if (err)
		rs_error("cannot make the encoder '%s': %s", cfg->to, strerror(-err));
	if (!err && cfg->output && strcmp(cfg->output, "-")) {
		out = fopen(cfg->output, "we");
		if (!out) {
			err = -errno;
			rs_error("cannot open %s: %s", cfg->output, strerror(errno));
		}
	}
	if (!err)
		err = write_messages(e, b, out, cfg->to,
				     out == stdout ? "standard output" : cfg->output);
	if (out && out != stdout && fclose(out) && !err) {
		err = -errno;
		rs_error("cannot write %s: %s", cfg->output, strerror(errno));
	}
	rs_encoder_free(e);
	rs_bufpool_release(&pool);
	return err;
}

static bool usage_ok(struct rs_config *cfg)
{
	static const char *const from[] = { "otlp-json", "otlp-proto", NULL };
	const char *to[32] = { NULL };

	for (size_t i = 0; i < 31 && rs_encoder_name(i); i++)
		to[i] = rs_encoder_name(i);
	if (cfg->nargs > 1 || cfg->cmd) {
		rs_error("encode takes one file at most; see `ringspan encode --help`");
		return false;
	}
	if (!cfg->to) {
		rs_error("encode needs --to FORMAT; see `ringspan encode --help`");
		return false;
	}
	if (rs_config_choice(cfg, "--to", cfg->to, to) < 0 ||
	    (cfg->from && rs_config_choice(cfg, "--from", cfg->from, from) < 0)) {
		rs_error("%s", cfg->err);
		return false;
	}
	return true;
}

int rs_cmd_encode(struct rs_config *cfg)
{
	const char *path = cfg->nargs ? cfg->args[0] : NULL;
	struct str in = STR_NONE;
	struct rs_batch batch;
	int err;

	if (!usage_ok(cfg))
		return RS_EXIT_USAGE;
	if (path && !strcmp(path, "-"))
		path = NULL;
	rs_batch_init(&batch, 0);
	err = read_input(path, &in);
	if (!err)
		err = parse(path ? path : "standard input", cfg->from, in, &batch);
	free((char *)in.ptr);
	if (!err && !batch.nspans)
		rs_warn("%s: no spans in it", path ? path : "standard input");
	if (!err)
		err = encode(cfg, &batch);
	rs_batch_release(&batch);
	return err ? RS_EXIT_FAILED : RS_EXIT_OK;
}
