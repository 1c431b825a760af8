// SPDX-License-Identifier: Apache-2.0
/* tls/code: where probes go in functions, as compilers write them. */
#include <errno.h>

#include "tls/code.h"
#include "unit.h"

#if defined(__x86_64__)

#define BASE 0x1000

static struct rs_code read_code(const uint8_t *p, size_t n)
{
	struct rs_elf_bytes b = { p, BASE, n };
	struct rs_code c;

	assert_int_equal(rs_code_read(&b, &c), 0);
	return c;
}

/* SSL_read of Debian 12's libssl: sub, canary, test, js; call; test, jle; …; jne to __stack_chk_fail; ret */
static const uint8_t ssl_read[] = {
	0x48, 0x83, 0xec, 0x18,				      /* 00 sub $0x18,%rsp */
	0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00, /* 04 mov %fs:0x28,%rax */
	0x48, 0x89, 0x44, 0x24, 0x08,			      /* 0d mov %rax,8(%rsp) */
	0x31, 0xc0,					      /* 12 xor %eax,%eax */
	0x85, 0xd2,					      /* 14 test %edx,%edx */
	0x78, 0x2d,					      /* 16 js 45 */
	0x48, 0x89, 0xe1,				      /* 18 mov %rsp,%rcx */
	0x48, 0x63, 0xd2,				      /* 1b movslq %edx,%rdx */
	0xe8, 0xdd, 0x0f, 0x00, 0x00,			      /* 1e call 2000 */
	0x85, 0xc0,					      /* 23 test %eax,%eax */
	0x7e, 0x03,					      /* 25 jle 2a */
	0x8b, 0x04, 0x24,				      /* 27 mov (%rsp),%eax */
	0x48, 0x8b, 0x54, 0x24, 0x08,			      /* 2a mov 8(%rsp),%rdx */
	0x64, 0x48, 0x2b, 0x14, 0x25, 0x28, 0x00, 0x00, 0x00, /* 2f sub %fs:0x28,%rdx */
	0x75, 0x0f,					      /* 38 jne 49 */
	0x48, 0x83, 0xc4, 0x18,				      /* 3a add $0x18,%rsp */
	0x31, 0xd2,					      /* 3e xor %edx,%edx */
	0x31, 0xc9,					      /* 40 xor %ecx,%ecx */
	0xc3,						      /* 42 ret */
	0x0f, 0x0b,					      /* 43 ud2 */
	0x31, 0xc0,					      /* 45 xor %eax,%eax */
	0xeb, 0xe1,					      /* 47 jmp 2a */
	0xe8, 0xb2, 0x0f, 0x00, 0x00,			      /* 49 call 2000 */
};

static void test_ssl_read(void **state)
{
	struct rs_code c = read_code(ssl_read, sizeof(ssl_read));
	struct rs_code_point at, ret[4];
	uint64_t tails[RS_CODE_TAILS];

	(void)state;
	at = rs_code_entry(&c, RS_REG_ARGS);
	assert_int_equal(at.va, BASE + 0x16);
	assert_int_equal(at.below, 0x18);
	assert_true(at.cheap);
	assert_int_equal(rs_code_returns(&c, ret, 4, tails), 1);
	assert_int_equal(ret[0].va, BASE + 0x38);
	assert_int_equal(ret[0].below, 0x18);
	assert_true(ret[0].cheap);
	assert_int_equal(tails[0], 0);
	assert_int_equal(rs_code_first_call(&c), 0x2000);
	for (size_t i = 0; i < c.n; i++) {
		if (c.v[i].va != BASE + 0x1e)
			continue;
		at = rs_code_after_call(&c, i);
		assert_int_equal(at.va, BASE + 0x25);
		assert_int_equal(at.below, -8);
		assert_true(at.cheap);
	}
	rs_code_release(&c);
}

/* SSL_read_ex: no branch after the call, so that only the return itself is left. */
static void test_no_branch(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x08,	      /* 00 sub $8,%rsp */
		0xe8, 0xf7, 0x0f, 0x00, 0x00, /* 04 call 2000 */
		0x31, 0xd2,		      /* 09 xor %edx,%edx */
		0x85, 0xc0,		      /* 0b test %eax,%eax */
		0x0f, 0x48, 0xc2,	      /* 0d cmovs %edx,%eax */
		0x48, 0x83, 0xc4, 0x08,	      /* 10 add $8,%rsp */
		0xc3,			      /* 14 ret */
	};
	struct rs_code c = read_code(code, sizeof(code));
	struct rs_code_point at, ret[4];
	uint64_t tails[RS_CODE_TAILS];

	(void)state;
	at = rs_code_entry(&c, RS_REG_ARGS);
	assert_int_equal(at.va, BASE + 4);
	assert_int_equal(at.below, 8);
	assert_int_equal(rs_code_returns(&c, ret, 4, tails), 1);
	assert_int_equal(ret[0].va, BASE + 0x14);
	assert_int_equal(ret[0].below, 0);
	assert_false(ret[0].cheap);
	at = rs_code_after_call(&c, 1); /* the place it returns to: the result is there */
	assert_int_equal(at.va, BASE + 9);
	assert_false(at.cheap);
	rs_code_release(&c);
}

/* The result is copied to a register that calls keep, and its own is used for something else. */
static void test_copied(void **state)
{
	static const uint8_t code[] = {
		0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 00 call 2000 */
		0x89, 0xc3,		      /* 05 mov %eax,%ebx */
		0x49, 0x8b, 0x44, 0x24, 0x10, /* 07 mov 0x10(%r12),%rax */
		0x74, 0x01,		      /* 0c je 0f */
		0x90,			      /* 0e nop */
		0xc3,			      /* 0f ret */
	};
	struct rs_code c = read_code(code, sizeof(code));
	struct rs_code_point at = rs_code_after_call(&c, 0);

	(void)state;
	assert_int_equal(at.va, BASE + 0xc);
	assert_int_equal(at.reg, 3);
	assert_true(at.cheap);
	rs_code_release(&c);
}

/* Tail calls: to a fixed address they are followed by the caller, to a computed one there is no telling. */
static void test_tails(void **state)
{
	static const uint8_t fixed[] = {
		0x48, 0x83, 0xec, 0x08,	      /* 00 sub $8,%rsp */
		0x85, 0xff,		      /* 04 test %edi,%edi */
		0x74, 0x05,		      /* 06 je 0d */
		0x48, 0x83, 0xc4, 0x08,	      /* 08 add $8,%rsp */
		0xc3,			      /* 0c ret */
		0x48, 0x83, 0xc4, 0x08,	      /* 0d add $8,%rsp */
		0xe9, 0xea, 0x0f, 0x00, 0x00, /* 11 jmp 2000 */
	};
	static const uint8_t computed[] = {
		0x55,		  /* 00 push %rbp */
		0x48, 0x8b, 0x07, /* 01 mov (%rdi),%rax */
		0x5d,		  /* 04 pop %rbp */
		0xff, 0xe0,	  /* 05 jmp *%rax */
	};
	/* A switch: the stack is as it was. */
	static const uint8_t table[] = {
		0x55,		  /* 00 push %rbp */
		0x48, 0x8b, 0x07, /* 01 mov (%rdi),%rax */
		0xff, 0xe0,	  /* 04 jmp *%rax */
		0x5d,		  /* 06 pop %rbp */
		0xc3,		  /* 07 ret */
	};
	struct rs_code c = read_code(fixed, sizeof(fixed));
	struct rs_code_point ret[4];
	uint64_t tails[RS_CODE_TAILS];

	(void)state;
	assert_int_equal(rs_code_returns(&c, ret, 4, tails), 1);
	assert_int_equal(ret[0].va, BASE + 0xc); /* je leads to the tail, not to a failure */
	assert_int_equal(tails[0], 0x2000);
	assert_int_equal(tails[1], 0);
	rs_code_release(&c);
	c = read_code(computed, sizeof(computed));
	assert_int_equal(rs_code_entry(&c, RS_REG_ARGS).va, BASE);
	assert_true(rs_code_entry(&c, RS_REG_ARGS).cheap);
	assert_int_equal(rs_code_returns(&c, ret, 4, tails), -ENOTSUP);
	rs_code_release(&c);
	c = read_code(table, sizeof(table));
	assert_int_equal(rs_code_returns(&c, ret, 4, tails), 1);
	rs_code_release(&c);
}

/* An argument is overwritten, or a loop comes back: then only the first instruction will do. */
static void test_entry(void **state)
{
	static const uint8_t clobbered[] = {
		0x48, 0x83, 0xec, 0x08, /* 00 sub $8,%rsp */
		0x48, 0x89, 0xf7,	/* 04 mov %rsi,%rdi */
		0x74, 0x00,		/* 07 je 09 */
		0xc3,			/* 09 ret */
	};
	static const uint8_t loop[] = {
		0x48, 0x83, 0xec, 0x08, /* 00 sub $8,%rsp */
		0x85, 0xff,		/* 04 test %edi,%edi */
		0x74, 0x02,		/* 06 je 0a */
		0xeb, 0xfa,		/* 08 jmp 04 */
		0xc3,			/* 0a ret */
	};
	/* endbr64, as with -fcf-protection */
	static const uint8_t marked[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, 0xc3 };
	struct rs_code c = read_code(clobbered, sizeof(clobbered));

	(void)state;
	assert_int_equal(rs_code_entry(&c, RS_REG_ARGS).va, BASE);
	assert_false(rs_code_entry(&c, RS_REG_ARGS).cheap);
	rs_code_release(&c);
	c = read_code(loop, sizeof(loop));
	assert_int_equal(rs_code_entry(&c, RS_REG_ARGS).va, BASE);
	rs_code_release(&c);
	c = read_code(marked, sizeof(marked));
	assert_int_equal(rs_code_entry(&c, RS_REG_ARGS).va, BASE + 4);
	assert_true(rs_code_entry(&c, RS_REG_ARGS).cheap);
	rs_code_release(&c);
}

static void test_junk(void **state)
{
	static const uint8_t junk[] = { 0x06, 0x06 };
	struct rs_elf_bytes b = { junk, BASE, sizeof(junk) };
	struct rs_code c;

	(void)state;
	assert_int_equal(rs_code_read(&b, &c), -ENOEXEC);
	b.len = 0;
	assert_int_equal(rs_code_read(&b, &c), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ssl_read), cmocka_unit_test(test_no_branch),
		cmocka_unit_test(test_copied),	 cmocka_unit_test(test_tails),
		cmocka_unit_test(test_entry),	 cmocka_unit_test(test_junk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
