// SPDX-License-Identifier: Apache-2.0
#include "code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

#include <Zydis/Zydis.h>

static uint8_t reg_bit(ZydisRegister reg)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
	case ZYDIS_REGISTER_RDI:
		return RS_REG_ARG1;
	case ZYDIS_REGISTER_RSI:
		return RS_REG_ARG2;
	case ZYDIS_REGISTER_RDX:
		return RS_REG_ARG3;
	case ZYDIS_REGISTER_RCX:
		return RS_REG_ARG4;
	case ZYDIS_REGISTER_R8:
		return RS_REG_ARG5;
	case ZYDIS_REGISTER_RAX:
		return RS_REG_RESULT;
	case ZYDIS_REGISTER_RSP:
		return RS_REG_SP;
	default:
		return 0;
	}
}

/* The machine's number of a general register, or -1. */
static int reg_number(ZydisRegister reg)
{
	ZydisRegister r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 ? (int)(r - ZYDIS_REGISTER_RAX)
								  : -1;
}

static void operands(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op,
		     struct rs_insn *ret)
{
	for (unsigned i = 0; i < in->operand_count; i++) {
		int n;

		if (op[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		ret->writes |= reg_bit(op[i].reg.value);
		n = reg_number(op[i].reg.value);
		if (n >= 0)
			ret->regs |= (uint16_t)(1u << n);
	}
	if (in->mnemonic == ZYDIS_MNEMONIC_MOV && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && op[1].size >= 32 &&
	    reg_number(op[1].reg.value) == 0 && reg_number(op[0].reg.value) > 0)
		ret->copy = (uint8_t)reg_number(op[0].reg.value);
}

static bool is_sp(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_RSP;
}

/* What changes the stack pointer by a known amount. */
static void stack(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op,
		  struct rs_insn *ret)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		ret->sp = -8;
		break;
	case ZYDIS_MNEMONIC_POP:
		ret->sp = 8;
		if (is_sp(&op[0]))
			return;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (!is_sp(&op[0]) || op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return;
		ret->sp = (int32_t)(in->mnemonic == ZYDIS_MNEMONIC_ADD ? op[1].imm.value.s
								       : -op[1].imm.value.s);
		break;
	default:
		return;
	}
	ret->writes &= (uint8_t)~RS_REG_SP;
}

static bool is_branch(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
		return true;
	default:
		return false;
	}
}

static void flow(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op,
		 struct rs_insn *ret)
{
	bool direct = op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[0].imm.is_relative;

	switch (in->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		ret->kind = direct ? RS_INSN_CALL : RS_INSN_CALL_IND;
		/* What the callee may leave in them. */
		ret->writes = RS_REG_ARGS | RS_REG_RESULT;
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		ret->kind = direct ? RS_INSN_JUMP : RS_INSN_JUMP_IND;
		ret->writes = 0;
		break;
	case ZYDIS_CATEGORY_COND_BR:
		ret->kind = RS_INSN_BRANCH;
		break;
	case ZYDIS_CATEGORY_RET:
		ret->kind = RS_INSN_RETURN;
		break;
	default:
		return;
	}
	if (direct)
		ret->target = ret->va + in->length + (uint64_t)op[0].imm.value.s;
}

static bool emulated(const ZydisDecodedInstruction *in, const struct rs_insn *i)
{
	if (in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return false;
	switch (i->kind) {
	case RS_INSN_CALL:
	case RS_INSN_JUMP:
		return true;
	case RS_INSN_BRANCH:
		return !is_branch(in->mnemonic);
	case RS_INSN_OTHER:
		if (in->mnemonic == ZYDIS_MNEMONIC_NOP)
			return in->length == 1;
		return in->mnemonic == ZYDIS_MNEMONIC_PUSH && in->opcode >= 0x50 &&
		       in->opcode <= 0x57;
	default:
		return false;
	}
}

/* The instruction at the start of code. False: there is none that can be decoded. */
static bool decode(const struct rs_elf_bytes *code, struct rs_insn *ret)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder d;

	memset(op, 0, sizeof(op));
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!code->len || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, code->ptr, code->len, &in, op)))
		return false;
	*ret = (struct rs_insn){ .va = code->va, .len = in.length };
	operands(&in, op, ret);
	stack(&in, op, ret);
	flow(&in, op, ret);
	ret->cheap = emulated(&in, ret);
	return true;
}

#elif defined(__aarch64__)

/* Arm ARM, C4.1: branches; the rest is told apart no further, and counts as writing everything. */
static int64_t offset(uint32_t w, unsigned at, unsigned bits)
{
	return (int64_t)((uint64_t)(w >> at) << (64 - bits)) >> (62 - bits);
}

/* The instruction at the start of code. False: there is none that can be decoded. */
static bool decode(const struct rs_elf_bytes *code, struct rs_insn *ret)
{
	uint32_t w;

	if (code->len < 4)
		return false;
	memcpy(&w, code->ptr, 4);
	*ret = (struct rs_insn){ .va = code->va, .len = 4, .cheap = true };
	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		ret->kind = w >> 31 ? RS_INSN_CALL : RS_INSN_JUMP;
		ret->writes = w >> 31 ? RS_REG_ARGS | RS_REG_RESULT : 0;
		ret->target = code->va + (uint64_t)offset(w, 0, 26);
	} else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		ret->kind = RS_INSN_BRANCH; /* b.cond, cbz, cbnz */
		ret->target = code->va + (uint64_t)offset(w, 5, 19);
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		ret->kind = RS_INSN_BRANCH;
		ret->target = code->va + (uint64_t)offset(w, 5, 14);
	} else if ((w & 0xfffffc1f) == 0xd65f0000) {
		ret->kind = RS_INSN_RETURN;
	} else if ((w & 0xfffffc1f) == 0xd61f0000) {
		ret->kind = RS_INSN_JUMP_IND;
	} else if ((w & 0xfffffc1f) == 0xd63f0000) {
		ret->kind = RS_INSN_CALL_IND;
		ret->writes = RS_REG_ARGS | RS_REG_RESULT;
	} else {
		ret->writes = RS_REG_ARGS | RS_REG_RESULT | RS_REG_SP;
		ret->cheap = w == 0xd503201f; /* nop */
	}
	return true;
}

#else
#error "instructions of this architecture are not known"
#endif

int rs_code_read(const struct rs_elf_bytes *code, struct rs_code *ret)
{
	struct rs_elf_bytes at = *code;
	size_t cap = code->len / 3 + 8;
	struct rs_insn in;

	*ret = (struct rs_code){ 0 };
	while (decode(&at, &in)) {
		if (!ret->v || ret->n == cap) {
			struct rs_insn *v;

			cap = ret->v ? cap * 2 : cap;
			v = realloc(ret->v, cap * sizeof(*v));
			if (!v) {
				rs_code_release(ret);
				return -ENOMEM;
			}
			ret->v = v;
		}
		ret->v[ret->n++] = in;
		at.ptr += in.len;
		at.va += in.len;
		at.len -= in.len;
	}
	return ret->n ? 0 : -ENOEXEC;
}

void rs_code_release(struct rs_code *c)
{
	free(c->v);
	*c = (struct rs_code){ 0 };
}

/* Does anything in the function jump to an instruction behind `from`, up to `to`? */
static bool jumped_into(const struct rs_code *c, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct rs_insn *in = &c->v[i];

		if ((in->kind == RS_INSN_JUMP || in->kind == RS_INSN_BRANCH) && in->target > from &&
		    in->target <= to)
			return true;
	}
	return false;
}

/* Does execution leave the straight line here? */
static bool leaves(const struct rs_insn *in)
{
	return in->kind != RS_INSN_OTHER;
}

#define NEAR 24	    /* instructions looked at for a cheap one */
#define KEPT 0xf028 /* registers that keep their value over calls: rbx, rbp, r12 to r15 */

struct rs_code_point rs_code_entry(const struct rs_code *c, unsigned args)
{
	struct rs_code_point first = { c->v[0].va, 0, c->v[0].cheap, 0 };
	int32_t below = 0;

	for (size_t i = 0; i < c->n && i < NEAR; i++) {
		const struct rs_insn *in = &c->v[i];

		if (in->cheap) {
			if (jumped_into(c, c->v[0].va - 1, in->va))
				return first;
			return (struct rs_code_point){ in->va, below, true, 0 };
		}
		if (leaves(in) || in->writes & (args | RS_REG_SP))
			return first;
		below -= in->sp;
	}
	return first;
}

/* Does the branch only leave for a call that does not come back (__stack_chk_fail)? */
static bool only_fails(const struct rs_code *c, const struct rs_insn *branch)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].va == branch->target)
			return c->v[i].kind == RS_INSN_CALL;
	}
	return false;
}

/* The point for the return that is instruction number r. */
static struct rs_code_point before_return(const struct rs_code *c, size_t r)
{
	struct rs_code_point ret = { c->v[r].va, 0, c->v[r].cheap, 0 };
	int32_t below = 0;

	for (size_t i = r; !ret.cheap && i-- > 0 && r - i < NEAR;) {
		const struct rs_insn *in = &c->v[i];

		/* A branch that is never taken, or a nop: the result is there already. */
		if (in->cheap && ((in->kind == RS_INSN_BRANCH && only_fails(c, in)) ||
				  (in->kind == RS_INSN_OTHER && !in->sp))) {
			if (!jumped_into(c, in->va, c->v[r].va))
				return (struct rs_code_point){ in->va, below, true, 0 };
			break;
		}
		if (leaves(in) || in->writes & (RS_REG_RESULT | RS_REG_SP))
			break;
		below += in->sp;
	}
	return ret;
}

static bool outside(const struct rs_code *c, uint64_t va)
{
	return va < c->v[0].va || va >= c->v[c->n - 1].va + c->v[c->n - 1].len;
}

/* Is instruction number i, a jump to a computed address, the function's end? Before the jump of a switch
 * nothing is taken from the stack. */
static bool is_tail(const struct rs_code *c, size_t i)
{
	return i == 0 || c->v[i - 1].sp > 0;
}

static bool add_point(struct rs_code_point *v, size_t max, int *n, struct rs_code_point p)
{
	for (int i = 0; i < *n; i++) {
		if (v[i].va == p.va) /* two returns behind one branch cannot be; be sure */
			return true;
	}
	if ((size_t)*n == max)
		return false;
	v[(*n)++] = p;
	return true;
}

int rs_code_returns(const struct rs_code *c, struct rs_code_point *ret, size_t max,
		    uint64_t tails[RS_CODE_TAILS])
{
	unsigned ntails = 0;
	int n = 0;

	memset(tails, 0, RS_CODE_TAILS * sizeof(tails[0]));
	for (size_t i = 0; i < c->n; i++) {
		const struct rs_insn *in = &c->v[i];

		if (in->kind == RS_INSN_RETURN) {
			if (!add_point(ret, max, &n, before_return(c, i)))
				return -E2BIG;
		} else if (in->kind == RS_INSN_JUMP_IND && is_tail(c, i)) {
			return -ENOTSUP;
		} else if (in->kind == RS_INSN_JUMP && outside(c, in->target)) {
			bool have = false;

			for (unsigned k = 0; k < ntails; k++)
				have |= tails[k] == in->target;
			if (have)
				continue;
			if (ntails == RS_CODE_TAILS)
				return -E2BIG;
			tails[ntails++] = in->target;
		}
	}
	return n;
}

struct rs_code_point rs_code_after_call(const struct rs_code *c, size_t i)
{
	uint64_t back = c->v[i].va + c->v[i].len;
	struct rs_code_point ret = { back, -8, i + 1 < c->n && c->v[i + 1].cheap, 0 };
	int32_t below = -8; /* the return address is taken off */
	bool own = true;    /* the result is still where it was returned */
	uint8_t copy = 0;   /* and there too */

	for (size_t k = i + 1; k < c->n && k - i < NEAR; k++) {
		const struct rs_insn *in = &c->v[k];

		/* It may be reached otherwise too: then no call is open, and the probe finds none. */
		if (in->cheap)
			return (struct rs_code_point){ in->va, below, true, own ? 0 : copy };
		if (leaves(in) || in->writes & RS_REG_SP)
			break;
		if (copy && in->regs >> copy & 1)
			copy = 0;
		if (own && in->copy && KEPT >> in->copy & 1)
			copy = in->copy;
		if (in->writes & RS_REG_RESULT)
			own = false;
		if (!own && !copy)
			break;
		below -= in->sp;
	}
	return ret;
}

uint64_t rs_code_first_call(const struct rs_code *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct rs_insn *in = &c->v[i];

		if (in->kind == RS_INSN_CALL)
			return in->target;
		if (in->kind != RS_INSN_BRANCH && leaves(in))
			return 0;
		if (in->writes & (RS_REG_ARG1 | RS_REG_ARG2))
			return 0;
	}
	return 0;
}
