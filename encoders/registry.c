// SPDX-License-Identifier: Apache-2.0
#include "encoder.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define RS_ENCODER(file, name)                                                                     \
	extern const struct rs_encoder_ops rs_encoder_##file##_base, rs_encoder_##file##_ssse3,    \
		rs_encoder_##file##_avx2;
#else
#define RS_ENCODER(file, name) extern const struct rs_encoder_ops rs_encoder_##file##_base;
#endif
#include "encoders.def"
#undef RS_ENCODER

static const struct {
	const char *name;
	const struct rs_encoder_ops *ops[RS_SIMD_COUNT];
} table[] = {
#if defined(__x86_64__)
#define RS_ENCODER(file, name)                                                                     \
	{ name,                                                                                    \
	  { &rs_encoder_##file##_base, &rs_encoder_##file##_ssse3, &rs_encoder_##file##_avx2 } },
#else
#define RS_ENCODER(file, name) { name, { &rs_encoder_##file##_base } },
#endif
#include "encoders.def"
#undef RS_ENCODER
};

#define N (sizeof(table) / sizeof(table[0]))

enum rs_simd rs_simd_best(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return RS_SIMD_AVX2;
	if (__builtin_cpu_supports("ssse3"))
		return RS_SIMD_SSSE3;
#endif
	return RS_SIMD_BASE;
}

const char *rs_encoder_name(size_t i)
{
	return i < N ? table[i].name : NULL;
}

int rs_encoder_new_at(const char *name, enum rs_simd level, struct rs_bufpool *pool,
		      const struct rs_encoder_opts *opts, struct rs_encoder **ret)
{
	const struct rs_encoder_ops *ops = NULL;
	struct rs_encoder *e;
	int err;

	for (size_t i = 0; i < N; i++) {
		if (!strcmp(table[i].name, name))
			ops = table[i].ops[level];
	}
	if (!ops)
		return -ENOENT;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->ops = ops;
	e->pool = pool;
	if (opts)
		e->opts = *opts;
	if (!e->opts.max_payload)
		e->opts.max_payload = RS_ENC_MAX_PAYLOAD;
	if (ops->state_size) {
		size_t size = (ops->state_size + 63) & ~(size_t)63;

		e->state = aligned_alloc(64, size);
		if (!e->state) {
			free(e);
			return -ENOMEM;
		}
		memset(e->state, 0, size);
	}
	err = ops->init ? ops->init(e) : 0;
	if (err) {
		free(e->state);
		free(e);
		return err;
	}
	*ret = e;
	return 0;
}

int rs_encoder_new(const char *name, struct rs_bufpool *pool, const struct rs_encoder_opts *opts,
		   struct rs_encoder **ret)
{
	return rs_encoder_new_at(name, rs_simd_best(), pool, opts, ret);
}

void rs_encoder_free(struct rs_encoder *e)
{
	if (!e)
		return;
	if (e->ops->release)
		e->ops->release(e);
	free(e->state);
	free(e);
}

const char *rs_skip_text(enum rs_skip why)
{
	switch (why) {
	case RS_SKIP_NO_TRACE_ID:
		return "no valid trace id";
	case RS_SKIP_NO_SPAN_ID:
		return "no valid span id";
	case RS_SKIP_BAD_TIME:
		return "invalid time";
	case RS_SKIP_TOO_BIG:
		return "too big";
	case RS_SKIP_UNSUPPORTED:
		return "no form in this protocol";
	case RS_SKIP_NONE:
		break;
	}
	return "none";
}
