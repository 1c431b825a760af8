/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code — machine code, as far as a probe must know it: where instructions begin, where they go, and which
 * of them the kernel does not have to single-step.
 *
 * A uprobe costs what its instruction costs the kernel: direct calls and jumps, conditional jumps, one-byte nops
 * and (x86-64) pushes of registers are emulated, under a microsecond; everything else is copied elsewhere and
 * single-stepped, which takes two to fifteen times as long (arch/x86/kernel/uprobes.c, branch_setup_xol_ops and
 * push_setup_xol_ops; arch/arm64/kernel/probes/simulate-insn.c).
 */
#ifndef RS_TLS_CODE_H
#define RS_TLS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf.h"

enum rs_insn_kind {
	RS_INSN_OTHER,
	RS_INSN_CALL,	  /* of a fixed address */
	RS_INSN_CALL_IND, /* of a computed one */
	RS_INSN_JUMP,
	RS_INSN_JUMP_IND,
	RS_INSN_BRANCH, /* conditional */
	RS_INSN_RETURN,
};

/* Registers of the C calling convention. */
enum rs_insn_reg {
	RS_REG_ARG1 = 1,
	RS_REG_ARG2 = 2,
	RS_REG_ARG3 = 4,
	RS_REG_ARG4 = 8,
	RS_REG_ARG5 = 16,
	RS_REG_RESULT = 32,
	RS_REG_SP = 64, /* by what is not known; a known change is in rs_insn.sp */
};
#define RS_REG_ARGS (RS_REG_ARG1 | RS_REG_ARG2 | RS_REG_ARG3 | RS_REG_ARG4 | RS_REG_ARG5)

struct rs_insn {
	uint64_t va;
	uint64_t target; /* CALL, JUMP, BRANCH */
	int32_t sp; /* what it adds to the stack pointer; a call: nothing, once it has returned */
	uint8_t len;
	uint8_t kind;	/* enum rs_insn_kind */
	uint8_t writes; /* RS_REG_* */
	bool cheap;	/* the kernel emulates it */
	uint16_t regs;	/* registers written, by the machine's numbers */
	uint8_t copy;	/* number of the register to which it copies the result's; 0: it does not */
};

/* A function's instructions. */
struct rs_code {
	struct rs_insn *v;
	size_t n;
};

/* Decodes from the first byte on, one behind the other, until the end or what is no instruction. 0 or -errno;
 * ret->v is released by rs_code_release. */
int rs_code_read(const struct rs_elf_bytes *code, struct rs_code *ret);
void rs_code_release(struct rs_code *c);

/* Where a probe goes: */
struct rs_code_point {
	uint64_t va;
	int32_t below; /* how far below its value at the function's first instruction the stack pointer is there */
	bool cheap;
	uint8_t reg; /* number of the register that has the result; 0: the result's own */
};

/*
 * Where a function's arguments (RS_REG_ARG*) are still in their registers and it passes exactly once: a cheap
 * instruction near the beginning, or the first one. c->n > 0.
 */
struct rs_code_point rs_code_entry(const struct rs_code *c, unsigned args);

/*
 * Where the function's result is in its register, once on every way out: at returns, or at a cheap instruction
 * before. Returns how many (at most max are filled in), or -ENOTSUP: it also ends by a jump to a computed
 * address. Ends by jumps to fixed addresses outside are put into tails[RS_CODE_TAILS] (0: none): what they reach
 * returns in its stead.
 */
#define RS_CODE_TAILS 4
int rs_code_returns(const struct rs_code *c, struct rs_code_point *ret, size_t max,
		    uint64_t tails[RS_CODE_TAILS]);

/* After the call, instruction number i: where its result is in a register. `below` is as of the function
 * called. */
struct rs_code_point rs_code_after_call(const struct rs_code *c, size_t i);

/* The target of the first direct call if arguments 1 and 2 reach it unchanged, or 0. */
uint64_t rs_code_first_call(const struct rs_code *c);

#endif
