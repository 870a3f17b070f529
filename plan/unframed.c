/* SPDX-License-Identifier: Apache-2.0 */
/* unframed.c - follows the stack pointer from a function's first instruction, in place of call frame information. */
#include "plan/unframed.h"

#include <string.h>

/* More instructions than such functions have. */
#define INSTRUCTIONS_MAX 200

/* Distances of the caller's frame, as call frame information has them; 0: not known. */
struct state {
	uint64_t above_rsp, above_rbp;
};

void tw_unframed_init(struct tw_unframed *unframed, const struct tw_scan *scan)
{
	const struct tw_sym_entries *entries = scan->entries;

	*unframed =
		(struct tw_unframed){.scan = scan,
				     .sections = entries->separate.function_count ? &entries->separate : &entries->own};
}

/* add or sub with a constant, to %rsp. */
static bool moves_stack(const ZydisDecodedInstruction *instruction)
{
	return (instruction->mnemonic == ZYDIS_MNEMONIC_ADD || instruction->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       instruction->raw.imm[0].size && instruction->raw.modrm.mod == 3 && instruction->raw.modrm.rm == 4 &&
	       instruction->raw.rex.W && !instruction->raw.rex.B;
}

static bool writes_stack_pointer(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < instruction->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[i].reg.value == ZYDIS_REGISTER_RSP &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

static bool copies_stack_pointer(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operands)
{
	return instruction->mnemonic == ZYDIS_MNEMONIC_MOV && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[0].reg.value == ZYDIS_REGISTER_RBP && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[1].reg.value == ZYDIS_REGISTER_RSP;
}

static void push(struct state *state, int64_t bytes)
{
	uint64_t above = state->above_rsp + (uint64_t)bytes;

	state->above_rsp = state->above_rsp && above >= 8 && above < UINT32_MAX ? above : 0;
}

/* False: the code goes on elsewhere. */
static bool step(struct state *state, const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operands)
{
	int64_t constant = instruction->raw.imm[0].value.s;

	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR: return false;
	case ZYDIS_CATEGORY_CALL: return true;
	case ZYDIS_CATEGORY_PUSH: push(state, 8); return true;
	case ZYDIS_CATEGORY_POP: push(state, -8); return true;
	default: break;
	}
	if (copies_stack_pointer(instruction, operands))
		state->above_rbp = state->above_rsp;
	if (moves_stack(instruction))
		push(state, instruction->mnemonic == ZYDIS_MNEMONIC_SUB ? constant : -constant);
	else if (writes_stack_pointer(instruction, operands))
		state->above_rsp = 0;
	return true;
}

/* Not if the caller's frame is not known. */
static bool uses(uint64_t dwarf_register, uint64_t above, const ZydisDecodedInstruction *instruction)
{
	return above && tw_scan_uses_return_address(dwarf_register, above, instruction);
}

static bool uses_return_address(const struct tw_scan *scan, uint64_t at, uint64_t end)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction instruction;
	struct state state = {8, 0};
	uint64_t left;

	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < end; i++, at += instruction.length) {
		const uint8_t *bytes = tw_scan_bytes(scan, at, &left);

		if (!bytes ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&scan->decoder, bytes, end - at < left ? end - at : left,
							 &instruction, operands)))
			return false;
		if (uses(TW_ELF_RSP, state.above_rsp, &instruction) || uses(TW_ELF_RBP, state.above_rbp, &instruction))
			return true;
		if (!step(&state, &instruction, operands))
			return false;
	}
	return false;
}

const struct tw_elf_function *tw_unframed_next(struct tw_unframed *unframed, uint64_t limit)
{
	const struct tw_scan *scan = unframed->scan;
	const struct tw_elf_function *functions = unframed->sections->functions, *function;
	size_t count = unframed->sections->function_count;

	while (unframed->next < count && functions[unframed->next].value < limit) {
		uint64_t end = limit;

		function = &functions[unframed->next];
		while (unframed->next < count && functions[unframed->next].value == function->value)
			unframed->next++;
		if (unframed->next < count && functions[unframed->next].value < limit)
			end = functions[unframed->next].value;
		if (tw_elf_is_code(scan->elf, scan->elf->base + function->value) &&
		    !tw_elf_frame_at(&scan->entries->frames, function->value) &&
		    uses_return_address(scan, function->value, end))
			return function;
	}
	return NULL;
}
