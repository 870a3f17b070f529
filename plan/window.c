/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - from the first instructions of a function to a copy that runs elsewhere. */
#include "plan/window.h"

#include "symbols/nops.h"

#include <string.h>

#define WINDOW_BYTES TW_ENTRY_WINDOW_BYTES_MIN

/* Opcodes. */
enum {
	CALL_NEAR = 0xe8,
	JMP_NEAR = 0xe9,
	JMP_SHORT = 0xeb,
	JCC_SHORT = 0x70,
	JCC_NEAR = 0x80, /* behind 0f */
	TWO_BYTES = 0x0f,
	GROUP_5 = 0xff,
	CALL_SLOT = 0x15, /* ff 15: call *disp32(%rip) */
	JMP_SLOT = 0x25,
	PUSH_SLOT = 0x35
};

static bool add_bytes(struct tw_window *window, const void *bytes, unsigned count)
{
	if (window->copy_bytes + count > sizeof window->copy)
		return false;
	memcpy(window->copy + window->copy_bytes, bytes, count);
	window->copy_bytes = (uint8_t)(window->copy_bytes + count);
	return true;
}

static bool add_fix(struct tw_window *window, unsigned position, unsigned tail, uint64_t target, bool is_literal)
{
	if (window->fix_count == TW_ENTRY_FIXES_MAX || target > UINT32_MAX)
		return false;
	window->fixes[window->fix_count++] = (struct tw_entry_plan_fix){.target = (uint32_t)target,
									.position = (uint8_t)position,
									.tail = (uint8_t)tail,
									.is_literal = is_literal};
	return true;
}

/* An opcode of one or two bytes and a distance that depends on the location. */
static bool add_relative(struct tw_window *window, const uint8_t *opcode, unsigned count, uint64_t target,
			 bool is_literal)
{
	static const uint8_t zeros[4];

	return add_bytes(window, opcode, count) && add_bytes(window, zeros, sizeof zeros) &&
	       add_fix(window, window->copy_bytes - 4u, 4, target, is_literal);
}

/* One instruction of the window. */
struct instruction {
	uint64_t value;
	const uint8_t *bytes;
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* The return address that the call would have pushed: pushed from a literal, because it lies in the function. */
static bool push_return(struct tw_window *window, const struct instruction *instruction)
{
	static const uint8_t push[] = {GROUP_5, PUSH_SLOT};

	window->flags |= TW_ENTRY_CALL | TW_ENTRY_ENDS;
	return add_relative(window, push, sizeof push, instruction->value + instruction->decoded.length, true);
}

static enum tw_entry_refusal copy_call(struct tw_window *window, const struct instruction *instruction)
{
	static const uint8_t jump[] = {JMP_NEAR}, jump_slot[] = {GROUP_5, JMP_SLOT};
	const ZydisDecodedInstruction *decoded = &instruction->decoded;
	uint64_t next = instruction->value + decoded->length;
	bool is_right;

	if (decoded->length == 5 && instruction->bytes[0] == CALL_NEAR)
		is_right = push_return(window, instruction) &&
			   add_relative(window, jump, sizeof jump, next + (uint64_t)decoded->raw.imm[0].value.s, false);
	else if (decoded->length == 6 && instruction->bytes[0] == GROUP_5 && instruction->bytes[1] == CALL_SLOT)
		is_right = push_return(window, instruction) &&
			   add_relative(window, jump_slot, sizeof jump_slot, next + (uint64_t)decoded->raw.disp.value,
					false);
	else
		return TW_ENTRY_INDIRECT_CALL;
	return is_right ? TW_ENTRY_OK : TW_ENTRY_UNDECODED;
}

static enum tw_entry_refusal copy_branch(struct tw_window *window, const struct instruction *instruction)
{
	const ZydisDecodedInstruction *decoded = &instruction->decoded;
	uint64_t target = instruction->value + decoded->length + (uint64_t)decoded->raw.imm[0].value.s;
	/* Prefixes: bnd, branch hints.  Their loss changes nothing that a program can notice. */
	const uint8_t *opcode = instruction->bytes + decoded->raw.prefix_count;
	uint8_t longer[2] = {TWO_BYTES};
	bool is_right;

	if (*opcode == JMP_SHORT || *opcode == JMP_NEAR) {
		longer[0] = JMP_NEAR;
		is_right = add_relative(window, longer, 1, target, false);
	} else if ((*opcode & 0xf0) == JCC_SHORT) {
		longer[1] = (uint8_t)(JCC_NEAR | (*opcode & 0x0f));
		is_right = add_relative(window, longer, 2, target, false);
	} else if (opcode[0] == TWO_BYTES && (opcode[1] & 0xf0) == JCC_NEAR) {
		longer[1] = opcode[1];
		is_right = add_relative(window, longer, 2, target, false);
	} else {
		return TW_ENTRY_LOOP_INSN;
	}
	return is_right ? TW_ENTRY_OK : TW_ENTRY_UNDECODED;
}

static enum tw_entry_refusal copy_other(struct tw_window *window, const struct instruction *instruction)
{
	const ZydisDecodedInstruction *decoded = &instruction->decoded;
	unsigned start = window->copy_bytes, position = decoded->raw.disp.offset;

	if (!add_bytes(window, instruction->bytes, decoded->length))
		return TW_ENTRY_UNDECODED;
	if (tw_scan_is_relative_memory(decoded) &&
	    !add_fix(window, start + position, decoded->length - position,
		     instruction->value + decoded->length + (uint64_t)decoded->raw.disp.value, false))
		return TW_ENTRY_UNDECODED;
	return TW_ENTRY_OK;
}

static bool accesses_memory(const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->decoded.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    operand->mem.base != ZYDIS_REGISTER_RSP && instruction->decoded.mnemonic != ZYDIS_MNEMONIC_NOP)
			return true;
	}
	return false;
}

static enum tw_entry_refusal copy_instruction(struct tw_window *window, const struct instruction *instruction)
{
	const ZydisDecodedInstruction *decoded = &instruction->decoded;

	if (window->map_count == TW_WINDOW_INSTRUCTIONS_MAX)
		return TW_ENTRY_UNDECODED;
	window->map[2 * window->map_count] = window->bytes;
	window->map[2 * window->map_count + 1] = window->copy_bytes;
	window->map_count++;
	if (accesses_memory(instruction))
		window->flags |= TW_ENTRY_ACCESSES;
	if (decoded->meta.category == ZYDIS_CATEGORY_CALL)
		return copy_call(window, instruction);
	if (decoded->raw.imm[0].is_relative)
		return copy_branch(window, instruction);
	return copy_other(window, instruction);
}

/* Nothing behind this instruction runs after it. */
static bool is_last(const ZydisDecodedInstruction *decoded)
{
	return decoded->meta.category == ZYDIS_CATEGORY_UNCOND_BR || decoded->meta.category == ZYDIS_CATEGORY_RET ||
	       decoded->mnemonic == ZYDIS_MNEMONIC_UD2 || decoded->mnemonic == ZYDIS_MNEMONIC_HLT;
}

/* May execution reach one of these bytes other than from the byte before? */
static bool is_reached(const struct tw_scan *scan, uint64_t value, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (tw_scan_facts(scan, value + i) & TW_SCAN_TARGET)
			return true;
	return false;
}

static bool is_relocated(const struct tw_scan *scan, uint64_t value, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (tw_scan_facts(scan, value + i) & TW_SCAN_RELOCATED)
			return true;
	return false;
}

/* The window is too short, but what follows never runs: padding up to the next function, or dead bytes of this one. */
static enum tw_entry_refusal take_padding(const struct tw_scan *scan, size_t index, struct tw_window *window)
{
	const struct tw_sym_entry *entry = &scan->entries->entries[index];
	uint64_t from = window->value + window->bytes, end = entry->value + entry->bytes;
	uint64_t limit = index + 1 < scan->entries->count ? entry[1].value : end;
	unsigned missing = WINDOW_BYTES - window->bytes;

	if (limit < end)
		limit = end;
	/* Another function begins there, or the code ends. */
	if (limit - from < missing)
		return TW_ENTRY_SHORT;
	if (is_reached(scan, from, missing))
		return TW_ENTRY_TARGET_INSIDE;
	if (tw_scan_padding(scan, from, limit, missing) < missing)
		return TW_ENTRY_SHORT;
	window->bytes = WINDOW_BYTES;
	return TW_ENTRY_OK;
}

static enum tw_entry_refusal take_instructions(const struct tw_scan *scan, size_t index, struct tw_window *window)
{
	const struct tw_sym_entry *entry = &scan->entries->entries[index];
	uint64_t end = entry->value + entry->bytes, left;
	bool is_ended = false;

	while (window->bytes < WINDOW_BYTES && !is_ended) {
		struct instruction instruction = {.value = window->value + window->bytes};
		enum tw_entry_refusal refusal;

		if (instruction.value >= end)
			return TW_ENTRY_SHORT; /* it falls through to what follows */
		instruction.bytes = tw_scan_bytes(scan, instruction.value, &left);
		if (!instruction.bytes ||
		    ZYAN_FAILED(ZydisDecoderDecodeFull(&scan->decoder, instruction.bytes, end - instruction.value,
						       &instruction.decoded, instruction.operands)))
			return TW_ENTRY_UNDECODED;
		if (is_reached(scan, instruction.value + !window->bytes,
			       instruction.decoded.length - (unsigned)!window->bytes))
			return TW_ENTRY_TARGET_INSIDE;
		if (is_relocated(scan, instruction.value, instruction.decoded.length))
			return TW_ENTRY_TEXT_RELOCATION;
		refusal = copy_instruction(window, &instruction);
		if (refusal)
			return refusal;
		window->bytes = (uint8_t)(window->bytes + instruction.decoded.length);
		is_ended = is_last(&instruction.decoded);
	}
	if (is_ended)
		window->flags |= TW_ENTRY_ENDS;
	return window->bytes < WINDOW_BYTES ? take_padding(scan, index, window) : TW_ENTRY_OK;
}

/* ---- call frame information ---- */

/* Instructions of call frames (DWARF 5, 7.24), as far as they occur at the beginning of functions. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_HIGH_MASK = 0xc0,
	CFA_NOP = 0x00,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_GNU_ARGS_SIZE = 0x2e
};
enum { REGISTER_RSP = 7 };

/* The object's own instructions, and the state after those that were carried over. */
struct frame {
	struct tw_window *window;
	const uint8_t *at, *end;
	uint64_t location;    /* from the entry */
	unsigned copy_offset; /* of the last row */
	uint64_t cfa_register, cfa_offset;
	bool is_damaged;
};

static uint64_t take_number(struct frame *frame, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(frame->end - frame->at) < bytes) {
		frame->is_damaged = true;
		return 0;
	}
	memcpy(&value, frame->at, bytes);
	frame->at += bytes;
	return value;
}

static uint64_t take_uleb(struct frame *frame)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = take_number(frame, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !frame->is_damaged);
	return value;
}

static void skip_block(struct frame *frame)
{
	uint64_t bytes = take_uleb(frame);

	if ((uint64_t)(frame->end - frame->at) < bytes) {
		frame->is_damaged = true;
		bytes = 0;
	}
	frame->at += bytes;
}

static bool put(struct frame *frame, const uint8_t *bytes, size_t count)
{
	struct tw_window *window = frame->window;

	if (window->frame_bytes + count > sizeof window->frame)
		return false;
	memcpy(window->frame + window->frame_bytes, bytes, count);
	window->frame_bytes = (uint8_t)(window->frame_bytes + count);
	return true;
}

static bool put_leb(struct frame *frame, uint64_t number)
{
	uint8_t bytes[10];
	unsigned count = 0;

	do {
		bytes[count] = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
		number >>= 7;
		count++;
	} while (number);
	return put(frame, bytes, count);
}

/* Begins the row of a place in the copy. */
static bool put_row(struct frame *frame, unsigned copy_offset)
{
	unsigned delta = copy_offset - frame->copy_offset;
	uint8_t advance = (uint8_t)(CFA_ADVANCE_LOC | delta);

	if (delta >= CFA_ADVANCE_LOC)
		return false;
	frame->copy_offset = copy_offset;
	return !delta || put(frame, &advance, 1);
}

/* The offset in the copy that corresponds to a location; -1: inside of an instruction. */
static int map_location(const struct frame *frame, uint64_t location)
{
	const struct tw_window *window = frame->window;

	if (location <= window->offset)
		return 0;
	location -= window->offset;
	if (location == window->bytes)
		return window->copy_bytes;
	for (unsigned i = 0; i < window->map_count; i++)
		if (window->map[2 * i] == location)
			return window->map[2 * i + 1];
	return -1;
}

/* Moves on; false: the copy ends before the new location, or the location is not the start of an instruction. */
static bool advance(struct frame *frame, uint64_t delta, bool *is_right)
{
	const struct tw_window *window = frame->window;
	uint64_t end = (uint64_t)window->offset + window->bytes;
	int copy_offset;

	frame->location += delta;
	if (frame->location > end || (frame->location == end && window->flags & TW_ENTRY_ENDS))
		return false;
	copy_offset = map_location(frame, frame->location);
	*is_right = copy_offset >= 0 && put_row(frame, (unsigned)copy_offset);
	return *is_right;
}

/* One instruction other than one that moves on; false: it is not understood. */
static bool carry(struct frame *frame, uint8_t instruction, const uint8_t *start)
{
	if ((instruction & CFA_HIGH_MASK) == CFA_OFFSET) {
		(void)take_uleb(frame);
		return put(frame, start, (size_t)(frame->at - start));
	}
	switch (instruction) {
	case CFA_NOP:
	case CFA_REMEMBER_STATE: return true;
	case CFA_GNU_ARGS_SIZE: (void)take_uleb(frame); return true;
	case CFA_UNDEFINED: (void)take_uleb(frame); break;
	case CFA_DEF_CFA:
		frame->cfa_register = take_uleb(frame);
		frame->cfa_offset = take_uleb(frame);
		break;
	case CFA_DEF_CFA_REGISTER: frame->cfa_register = take_uleb(frame); break;
	case CFA_DEF_CFA_OFFSET: frame->cfa_offset = take_uleb(frame); break;
	case CFA_DEF_CFA_EXPRESSION:
		frame->cfa_register = UINT64_MAX;
		skip_block(frame);
		break;
	case CFA_EXPRESSION:
		(void)take_uleb(frame);
		skip_block(frame);
		break;
	default: return false;
	}
	return !frame->is_damaged && put(frame, start, (size_t)(frame->at - start));
}

/* Between the push of the return address and the jump, the frame is 8 bytes further away. */
static bool put_pushed(struct frame *frame)
{
	const struct tw_window *window = frame->window;
	static const uint8_t define = CFA_DEF_CFA_OFFSET;

	if (!(window->flags & TW_ENTRY_CALL) || frame->cfa_register != REGISTER_RSP)
		return true;
	/* The call is the last instruction; its push has six bytes. */
	return put_row(frame, window->map[2 * window->map_count - 1] + 6u) && put(frame, &define, 1) &&
	       put_leb(frame, frame->cfa_offset + 8);
}

static bool carry_frame(const struct tw_elf_frame *own, struct tw_window *window)
{
	struct frame frame = {.window = window,
			      .at = own->own,
			      .end = own->own_end,
			      .cfa_register = REGISTER_RSP,
			      .cfa_offset = 8};
	bool is_right = own->code_factor == 1 && own->data_factor == -8, goes_on = true;

	while (is_right && goes_on && frame.at < frame.end) {
		const uint8_t *start = frame.at;
		uint8_t instruction = (uint8_t)take_number(&frame, 1);

		if ((instruction & CFA_HIGH_MASK) == CFA_ADVANCE_LOC)
			goes_on = advance(&frame, instruction & ~CFA_HIGH_MASK, &is_right);
		else if (instruction == CFA_ADVANCE_LOC1)
			goes_on = advance(&frame, take_number(&frame, 1), &is_right);
		else if (instruction == CFA_ADVANCE_LOC2)
			goes_on = advance(&frame, take_number(&frame, 2), &is_right);
		else if (instruction == CFA_ADVANCE_LOC4)
			goes_on = advance(&frame, take_number(&frame, 4), &is_right);
		else
			is_right = carry(&frame, instruction, start);
		is_right &= !frame.is_damaged;
	}
	return is_right && put_pushed(&frame);
}

void tw_window_examine(const struct tw_scan *scan, size_t index, struct tw_window *out)
{
	const struct tw_sym_entry *entry = &scan->entries->entries[index];
	struct tw_window window = {0};
	uint64_t left;
	const uint8_t *bytes = tw_scan_bytes(scan, entry->value, &left);

	if (entry->bytes >= TW_ENDBR_BYTES && tw_is_endbr(bytes))
		window.offset = TW_ENDBR_BYTES;
	window.value = entry->value + window.offset;
	window.refusal = take_instructions(scan, index, &window);
	if (!window.refusal && (tw_scan_facts(scan, entry->value) & TW_SCAN_LOOPED ||
				tw_scan_facts(scan, entry->value + window.offset) & TW_SCAN_LOOPED))
		window.refusal = TW_ENTRY_LOOP_HEAD;
	if (!window.refusal && !carry_frame(entry->frame, &window))
		window.refusal = TW_ENTRY_FRAME;
	if (!window.refusal && scan->entry_facts[index] & TW_SCAN_ENTRY_UNKNOWN_TABLE)
		window.flags |= TW_ENTRY_UNKNOWN_JUMP;
	if (!window.refusal && scan->entry_facts[index] & TW_SCAN_ENTRY_READS_FLAGS)
		window.flags |= TW_ENTRY_READS_FLAGS;
	*out = window.refusal ? (struct tw_window){.refusal = window.refusal} : window;
}

/* ---- sites: the frame in the middle of a function ---- */

/* The place where a register was saved, or that it was not, if that differs from the row before. */
static bool put_saved(struct frame *frame, unsigned number, int64_t before, int64_t now)
{
	const uint8_t saved = (uint8_t)(CFA_OFFSET | number), same[] = {CFA_SAME_VALUE, (uint8_t)number};

	if (now == before)
		return true;
	if (!now)
		return put(frame, same, sizeof same);
	return now < 0 && now % 8 == 0 && put(frame, &saved, 1) && put_leb(frame, (uint64_t)-now / 8);
}

/* All that differs between two rows.  False: they have something that a compiler does not write. */
static bool put_difference(struct frame *frame, const struct tw_elf_frame_row *before,
			   const struct tw_elf_frame_row *now)
{
	static const uint8_t define = CFA_DEF_CFA;
	bool is_right = now->cfa == TW_ELF_CFA_REGISTER && now->return_address.how == TW_ELF_SAVED_CFA &&
			now->return_address.offset == -8 &&
			(now->rbp.how == TW_ELF_SAVED_SAME || now->rbp.how == TW_ELF_SAVED_CFA);

	if (is_right && (now->cfa_register != before->cfa_register || now->cfa_offset != before->cfa_offset))
		is_right =
			put(frame, &define, 1) && put_leb(frame, now->cfa_register) && put_leb(frame, now->cfa_offset);
	for (unsigned i = 0; i < TW_ELF_RETURN && is_right; i++)
		is_right = put_saved(frame, i, before->saved[i], now->saved[i]);
	return is_right;
}

/* The rows of the window's instructions, and that of the jump back, each as it differs from the one before. */
static bool write_frame(const struct tw_elf_frame *own, struct tw_window *window)
{
	struct tw_elf_frame_row before = {.cfa = TW_ELF_CFA_REGISTER, .cfa_register = REGISTER_RSP, .cfa_offset = 8};
	struct frame frame = {.window = window};
	unsigned count = window->map_count + !(window->flags & TW_ENTRY_ENDS);
	struct tw_elf_frame_walk walk;

	tw_elf_frame_walk_begin(&walk, own);
	for (unsigned i = 0; i < count; i++) {
		bool is_end = i == window->map_count;
		const struct tw_elf_frame_row *row =
			tw_elf_frame_walk_to(&walk, window->value + (is_end ? window->bytes : window->map[2 * i]));

		if (!row || !put_row(&frame, is_end ? window->copy_bytes : window->map[2 * i + 1]) ||
		    !put_difference(&frame, &before, row))
			return false;
		before = *row;
	}
	frame.cfa_register = before.cfa_register;
	frame.cfa_offset = before.cfa_offset;
	return put_pushed(&frame);
}

void tw_window_examine_site(const struct tw_scan *scan, size_t index, uint64_t value, struct tw_window *out)
{
	const struct tw_sym_entry *entry = &scan->entries->entries[index];
	struct tw_window window = {.value = value, .flags = TW_ENTRY_SITE | TW_ENTRY_UNWATCHED};
	ZydisDecodedInstruction nop;
	uint64_t left;
	const uint8_t *bytes = tw_scan_bytes(scan, value, &left);

	if (!bytes || !(tw_scan_facts(scan, value) & TW_SCAN_INSTRUCTION) ||
	    ZYAN_FAILED(ZydisDecoderDecodeInstruction(&scan->decoder, NULL, bytes, entry->value + entry->bytes - value,
						      &nop)) ||
	    nop.mnemonic != ZYDIS_MNEMONIC_NOP)
		window.refusal = TW_ENTRY_NO_NOP;
	if (!window.refusal)
		window.refusal = take_instructions(scan, index, &window);
	if (!window.refusal && !write_frame(entry->frame, &window))
		window.refusal = TW_ENTRY_FRAME;
	*out = window.refusal ? (struct tw_window){.refusal = window.refusal} : window;
}
