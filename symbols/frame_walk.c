/* SPDX-License-Identifier: Apache-2.0 */
/* frame_walk.c - the instructions of a description of call frames: rows of the table that it stands for. */
#include "symbols/frames.h"

#include "symbols/frame_bytes.h"

/* Operations of DWARF expressions (DWARF 5, 7.7.1). */
enum {
	OP_DEREF = 0x06,
	OP_PLUS_UCONST = 0x23,
	OP_LIT0 = 0x30,
	OP_LIT15 = 0x3f,
	OP_BREG0 = 0x70,
};

static bool keep_row(struct tw_elf_frame_walk *walk)
{
	if (walk->kept_count == TW_ELF_FRAME_KEPT_MAX)
		return false;
	walk->kept[walk->kept_count++] = walk->row;
	return true;
}

static bool restore_row(struct tw_elf_frame_walk *walk)
{
	if (!walk->kept_count)
		return false;
	walk->row = walk->kept[--walk->kept_count];
	return true;
}

static uint64_t take_number(struct cursor *from, unsigned bytes)
{
	uint64_t value = 0;

	take(from, &value, bytes);
	return value;
}

/* ---- expressions ---- */

static struct cursor take_expression(struct cursor *from)
{
	uint64_t bytes = take_leb(from, false);
	struct cursor expression = {.at = from->at};

	skip(from, bytes);
	expression.end = from->at;
	return expression;
}

/* Does it begin with %rbp or %rsp + offset? */
static bool take_base(struct cursor *from, uint64_t *base, int64_t *offset)
{
	uint8_t operation = take8(from);

	*base = (uint64_t)operation - OP_BREG0;
	if (operation != OP_BREG0 + TW_ELF_RBP && operation != OP_BREG0 + TW_ELF_RSP)
		return false;
	*offset = (int64_t)take_leb(from, true);
	return !from->is_damaged;
}

/* %rsp + 8, + 8 if the address & 15 is at least so much: behind the push of a stub of the PLT. */
static bool is_plt(struct cursor rest, int64_t *from_low_bits)
{
	/* breg16 0; lit15; and; litN; ge; lit3; shl; plus */
	static const uint8_t before[] = {0x80, 0x00, OP_LIT15, 0x1a}, behind[] = {0x2a, 0x33, 0x24, 0x22};
	const size_t bytes = sizeof before + 1 + sizeof behind;

	if ((size_t)(rest.end - rest.at) != bytes || memcmp(rest.at, before, sizeof before) != 0 ||
	    memcmp(rest.at + sizeof before + 1, behind, sizeof behind) != 0)
		return false;
	*from_low_bits = rest.at[sizeof before] - OP_LIT0;
	return *from_low_bits >= 0 && *from_low_bits <= 15;
}

static void set_cfa_by(struct tw_elf_frame_row *row, struct cursor expression)
{
	int64_t offset = 0, add = 0;
	uint64_t base;

	row->cfa = TW_ELF_CFA_UNKNOWN;
	row->cfa_register = UINT64_MAX;
	if (!take_base(&expression, &base, &offset))
		return;
	if (is_plt(expression, &add)) {
		row->cfa = TW_ELF_CFA_PLT;
	} else if (expression.at < expression.end && take8(&expression) == OP_DEREF) {
		if (expression.at < expression.end && take8(&expression) == OP_PLUS_UCONST)
			add = (int64_t)take_leb(&expression, false);
		else if (expression.at < expression.end)
			return;
		if (expression.is_damaged || expression.at < expression.end)
			return;
		row->cfa = TW_ELF_CFA_MEMORY;
	} else {
		return;
	}
	row->cfa_register = base;
	row->cfa_offset = (uint64_t)offset;
	row->cfa_add = add;
}

static struct tw_elf_frame_saved saved_by(struct cursor expression)
{
	struct tw_elf_frame_saved saved = {TW_ELF_SAVED_UNKNOWN, 0};
	uint64_t base;

	if (take_base(&expression, &base, &saved.offset) && expression.at == expression.end)
		saved.how = base == TW_ELF_RBP ? TW_ELF_SAVED_RBP : TW_ELF_SAVED_RSP;
	return saved;
}

/* ---- instructions ---- */

/* Others are not needed to find callers: only where they were saved below the CFA, as compilers do. */
static void save(struct tw_elf_frame_walk *walk, uint64_t number, struct tw_elf_frame_saved saved)
{
	if (number < TW_ELF_RETURN)
		walk->row.saved[number] = saved.how == TW_ELF_SAVED_CFA ? saved.offset : 0;
	if (number == TW_ELF_RBP)
		walk->row.rbp = saved;
	else if (number == TW_ELF_RETURN)
		walk->row.return_address = saved;
}

static void save_at(struct tw_elf_frame_walk *walk, uint64_t number, uint64_t factored)
{
	save(walk, number,
	     (struct tw_elf_frame_saved){TW_ELF_SAVED_CFA, (int64_t)(factored * (uint64_t)walk->frame->data_factor)});
}

static void restore(struct tw_elf_frame_walk *walk, uint64_t number)
{
	save(walk, number, number == TW_ELF_RETURN ? walk->first.return_address : walk->first.rbp);
}

static void set_cfa(struct tw_elf_frame_walk *walk, uint64_t number, uint64_t offset)
{
	walk->row.cfa = TW_ELF_CFA_REGISTER;
	walk->row.cfa_register = number;
	walk->row.cfa_offset = offset;
	walk->row.cfa_add = 0;
}

/* Those that compilers write rarely. */
static bool apply_rare(struct tw_elf_frame_walk *walk, struct cursor *from, uint8_t instruction)
{
	const struct tw_elf_frame_saved same = {TW_ELF_SAVED_SAME, 0}, unknown = {TW_ELF_SAVED_UNKNOWN, 0};
	uint64_t factor = (uint64_t)walk->frame->data_factor;
	uint64_t number = instruction == CFA_DEF_CFA_EXPRESSION || instruction == CFA_DEF_CFA_OFFSET_SF
				  ? 0
				  : take_leb(from, false);

	walk->is_plain = false;
	switch (instruction) {
	case CFA_OFFSET_EXTENDED: save_at(walk, number, take_leb(from, false)); return true;
	case CFA_OFFSET_EXTENDED_SF: save_at(walk, number, take_leb(from, true)); return true;
	case CFA_RESTORE_EXTENDED: restore(walk, number); return true;
	case CFA_SAME_VALUE: save(walk, number, same); return true;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		(void)take_leb(from, false);
		save(walk, number, unknown);
		return true;
	case CFA_EXPRESSION: save(walk, number, saved_by(take_expression(from))); return true;
	case CFA_VAL_EXPRESSION:
		(void)take_expression(from);
		save(walk, number, unknown);
		return true;
	case CFA_DEF_CFA_EXPRESSION: set_cfa_by(&walk->row, take_expression(from)); return true;
	case CFA_DEF_CFA_SF: set_cfa(walk, number, take_leb(from, true) * factor); return true;
	case CFA_DEF_CFA_OFFSET_SF: walk->row.cfa_offset = take_leb(from, true) * factor; return true;
	default: return false;
	}
}

/* Changes the row, or moves on by *delta code units.  False: the instruction is not understood. */
static bool apply(struct tw_elf_frame_walk *walk, struct cursor *from, uint64_t *delta)
{
	uint8_t instruction = take8(from);
	uint64_t number;

	*delta = 0;
	switch (instruction & CFA_HIGH_MASK) {
	case CFA_ADVANCE_LOC: *delta = instruction & ~CFA_HIGH_MASK; return true;
	case CFA_OFFSET: save_at(walk, instruction & ~CFA_HIGH_MASK, take_leb(from, false)); return true;
	case CFA_RESTORE: restore(walk, instruction & ~CFA_HIGH_MASK); return true;
	default: break;
	}
	switch (instruction) {
	case CFA_NOP: return true;
	case CFA_ADVANCE_LOC1: *delta = take_number(from, 1); return true;
	case CFA_ADVANCE_LOC2: *delta = take_number(from, 2); return true;
	case CFA_ADVANCE_LOC4: *delta = take_number(from, 4); return true;
	case CFA_REMEMBER_STATE: return keep_row(walk);
	case CFA_RESTORE_STATE: return restore_row(walk);
	case CFA_UNDEFINED:
		save(walk, take_leb(from, false), (struct tw_elf_frame_saved){TW_ELF_SAVED_NONE, 0});
		return true;
	case CFA_GNU_ARGS_SIZE: (void)take_leb(from, false); return true;
	case CFA_DEF_CFA:
		number = take_leb(from, false);
		set_cfa(walk, number, take_leb(from, false));
		return true;
	case CFA_DEF_CFA_REGISTER: set_cfa(walk, take_leb(from, false), walk->row.cfa_offset); return true;
	case CFA_DEF_CFA_OFFSET: walk->row.cfa_offset = take_leb(from, false); return true;
	default: return apply_rare(walk, from, instruction);
	}
}

/* Up to the row of a value.  Returns where the next one begins; UINT64_MAX: none does. */
static uint64_t follow_rows(struct tw_elf_frame_walk *walk, const uint8_t *end, uint64_t value)
{
	struct cursor from = {.at = walk->at, .end = end};
	uint64_t next = UINT64_MAX;

	while (walk->is_known && from.at < from.end) {
		const uint8_t *start = from.at;
		uint64_t delta;

		walk->is_known = apply(walk, &from, &delta) && !from.is_damaged;
		delta *= walk->frame->code_factor;
		if (delta && walk->value + delta > value) {
			/* The next row begins behind the value: this instruction is read again. */
			next = walk->value + delta;
			from.at = start;
			break;
		}
		walk->value += delta;
	}
	walk->at = from.at;
	return next;
}

void tw_elf_frame_walk_begin(struct tw_elf_frame_walk *walk, const struct tw_elf_frame *frame)
{
	/* The convention of the processor: %rbp is kept. */
	const struct tw_elf_frame_row row = {.rbp = {TW_ELF_SAVED_SAME, 0},
					     .return_address = {TW_ELF_SAVED_UNKNOWN, 0}};

	*walk = (struct tw_elf_frame_walk){.frame = frame,
					   .at = frame->common,
					   .value = frame->value,
					   .row = row,
					   .first = row,
					   .is_known = true,
					   .is_plain = true};
	follow_rows(walk, frame->common_end, frame->value);
	walk->at = frame->own;
	walk->first = walk->row;
}

const struct tw_elf_frame_row *tw_elf_frame_walk_to(struct tw_elf_frame_walk *walk, uint64_t value)
{
	follow_rows(walk, walk->frame->own_end, value);
	return walk->is_known && walk->is_plain ? &walk->row : NULL;
}

const struct tw_elf_frame_row *tw_elf_frame_walk_row(struct tw_elf_frame_walk *walk, uint64_t value, uint64_t *next)
{
	*next = follow_rows(walk, walk->frame->own_end, value);
	return walk->is_known ? &walk->row : NULL;
}
