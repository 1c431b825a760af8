// SPDX-License-Identifier: Apache-2.0
#include "encoder.h"

#include <errno.h>

#if defined(__x86_64__)
#define RS_ENCODER(file, name)                                                                     \
	extern const struct rs_encoder_ops rs_encoder_##file##_base, rs_encoder_##file##_ssse3,    \
		rs_encoder_##file##_avx2, rs_encoder_##file##_avx512;
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
	  { &rs_encoder_##file##_base, &rs_encoder_##file##_ssse3, &rs_encoder_##file##_avx2,      \
	    &rs_encoder_##file##_avx512 } },
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
		return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
				       __builtin_cpu_supports("avx512vbmi2")
			       ? RS_SIMD_AVX512
			       : RS_SIMD_AVX2;
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
	struct rs_arena mem;
	struct rs_encoder *e;
	char *state;
	int err;

	for (size_t i = 0; i < N; i++) {
		if (!strcmp(table[i].name, name))
			ops = table[i].ops[level];
	}
	if (!ops)
		return -ENOENT;
	rs_arena_init(&mem, sizeof(*e) + ops->state_size + 128, 0);
	e = rs_arena_alloc(&mem, sizeof(*e));
	state = rs_arena_alloc(&mem, ops->state_size + 64);
	if (!e || !state) {
		rs_arena_release(&mem);
		return -ENOMEM;
	}
	*e = (struct rs_encoder){ .ops = ops, .pool = pool };
	e->state = (void *)(((uintptr_t)state + 63) & ~(uintptr_t)63);
	memset(e->state, 0, ops->state_size);
	if (opts)
		e->opts = *opts;
	if (!e->opts.max_payload)
		e->opts.max_payload = RS_ENC_MAX_PAYLOAD;
	err = ops->init ? ops->init(e) : 0;
	if (err) {
		rs_arena_release(&mem);
		return err;
	}
	e->mem = mem;
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
	struct rs_arena mem;

	if (!e)
		return;
	if (e->ops->release)
		e->ops->release(e);
	mem = e->mem;
	rs_arena_release(&mem);
}

const char *rs_skip_text(enum rs_skip why)
{
	switch (why) {
	case RS_SKIP_NO_TRACE_ID:
		return "no valid trace id";
	case RS_SKIP_NO_SPAN_ID:
		return "no valid span id";
	case RS_SKIP_NO_PARENT_ID:
		return "no valid parent span id";
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
