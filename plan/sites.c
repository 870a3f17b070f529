/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - all jumps of a function, and memory that is certainly there. */
#include "plan/sites.h"

#include <string.h>

/* More entries of one jump table than compilers write. */
#define TABLE_ENTRIES_MAX 4096u
/* Bytes below the stack pointer that signal handlers leave alone. */
#define RED_ZONE_BYTES 128
/* Numbers of registers in instructions. */
enum { RSP = 4, RBP = 5 };

/* The findings about one window, in all entries that may be parts of its function. */
struct walk {
	const struct tw_scan *scan;
	const struct tw_window *window;
	bool has_table, has_jump, has_frame;
	bool is_unsafe;
};

static bool is_code(const struct walk *walk, uint64_t value)
{
	const struct tw_elf *elf = walk->scan->elf;

	return value - walk->scan->low < walk->scan->bytes && tw_elf_is_code(elf, elf->base + value);
}

/* One entry of what may be a table; false: the table has ended. */
static bool see_target(struct walk *walk, uint64_t target)
{
	if (!is_code(walk, target))
		return false;
	walk->has_table = true;
	walk->is_unsafe |= target - (walk->window->value + 1) < walk->window->bytes - 1u;
	return true;
}

/* All that may be entries: what follows a table does no harm, unless it happens to look like one that leads into the window. */
static void see_distances(struct walk *walk, uint64_t table)
{
	uint64_t left;
	const uint8_t *words = tw_scan_bytes(walk->scan, table, &left);

	if (!words || table % 4 || is_code(walk, table))
		return;
	for (unsigned i = 0; i < TABLE_ENTRIES_MAX && left >= 4u * (i + 1); i++) {
		int32_t distance;

		memcpy(&distance, words + 4 * i, sizeof distance);
		if (!see_target(walk, table + (uint64_t)(int64_t)distance))
			return;
	}
}

static void see_addresses(struct walk *walk, uint64_t table)
{
	uint64_t left;
	const uint8_t *words = tw_scan_bytes(walk->scan, table, &left);

	for (unsigned i = 0; words && i < TABLE_ENTRIES_MAX && left >= 8u * (i + 1); i++) {
		uint64_t target;

		memcpy(&target, words + 8 * i, sizeof target);
		if (!see_target(walk, target))
			return;
	}
}

/* A jump that ends the function, with its frame taken down, leads to another one. */
static bool is_tail_call(struct tw_elf_frame_walk *frames, uint64_t value)
{
	const struct tw_elf_frame_row *row = tw_elf_frame_walk_to(frames, value);

	return row && row->cfa == TW_ELF_CFA_REGISTER && row->cfa_register == TW_ELF_RSP && row->cfa_offset == 8;
}

static void see_entry(struct walk *walk, const struct tw_sym_entry *entry)
{
	uint64_t end = entry->value + entry->bytes;
	ZydisDecodedInstruction instruction;
	struct tw_elf_frame_walk frames;

	tw_elf_frame_walk_begin(&frames, entry->frame);
	for (uint64_t at = entry->value; at < end; at += instruction.length) {
		if (!tw_scan_decode(walk->scan, at, end, &instruction)) {
			walk->is_unsafe = true;
			return;
		}
		if (instruction.mnemonic == ZYDIS_MNEMONIC_LEA && tw_scan_is_relative_memory(&instruction))
			see_distances(walk, at + instruction.length + (uint64_t)instruction.raw.disp.value);
		else if (tw_scan_is_scaled_absolute(&instruction))
			see_addresses(walk, (uint64_t)instruction.raw.disp.value);
		if (instruction.mnemonic == ZYDIS_MNEMONIC_PUSH || instruction.mnemonic == ZYDIS_MNEMONIC_SUB)
			walk->has_frame |= !is_tail_call(&frames, at + instruction.length);
		if (tw_scan_is_indirect_jump(&instruction))
			walk->has_jump |= !is_tail_call(&frames, at) || !walk->has_frame;
	}
}

/* Does every indirect jump of the function lead elsewhere, as far as can be known? */
static bool is_reached_only_by_its_first_byte(struct walk *walk, size_t index)
{
	const struct tw_sym_entries *entries = walk->scan->entries;
	size_t group = tw_scan_group(walk->scan, index);

	for (size_t i = 0; i < entries->count; i++)
		if (tw_scan_group(walk->scan, i) == group && entries->entries[i].kind != TW_SYM_ENTRY_PLT)
			see_entry(walk, &entries->entries[i]);
	return !walk->is_unsafe && (!walk->has_jump || walk->has_table);
}

void tw_site_examine(const struct tw_scan *scan, const struct tw_note *note, struct tw_window *out)
{
	size_t index = tw_scan_entry_at(scan, note->value);
	struct walk walk = {.scan = scan, .window = out};

	*out = (struct tw_window){.refusal = TW_ENTRY_NO_FUNCTION};
	if (index == scan->entries->count || scan->entries->entries[index].kind == TW_SYM_ENTRY_PLT)
		return;
	tw_window_examine_site(scan, index, note->value, out);
	if (!out->refusal && !is_reached_only_by_its_first_byte(&walk, index))
		*out = (struct tw_window){.refusal = TW_ENTRY_UNKNOWN_TARGETS};
}

/* ---- operands ---- */

/* In the frame that the function has there, or in the bytes below it that are its own. */
static bool is_in_frame(const struct tw_elf_frame_row *row, const struct tw_entry_plan_operand *operand)
{
	uint64_t base = operand->base == RSP ? TW_ELF_RSP : TW_ELF_RBP;
	int64_t end = operand->number + operand->bytes;

	if (!row || row->cfa != TW_ELF_CFA_REGISTER || row->cfa_register != base || row->cfa_offset > INT32_MAX ||
	    (operand->base != RSP && operand->base != RBP) || operand->index != TW_ENTRY_NO_REGISTER ||
	    end > (int64_t)row->cfa_offset)
		return false;
	/* Below %rbp there is as much as the function has taken, which is not known: less than a page. */
	return operand->number >= (operand->base == RSP ? -RED_ZONE_BYTES : -4096);
}

static void judge(const struct tw_scan *scan, const struct tw_elf_frame_row *row, struct tw_entry_plan_operand *operand)
{
	const struct tw_elf *elf = scan->elf;

	if (operand->kind == TW_ENTRY_OPERAND_MEMORY && is_in_frame(row, operand))
		operand->flags |= TW_ENTRY_OPERAND_DIRECT;
	if (operand->kind == TW_ENTRY_OPERAND_GLOBAL && (uint64_t)operand->number < scan->bytes + scan->low &&
	    tw_elf_is_filled(elf, elf->base + (uint64_t)operand->number, operand->bytes))
		operand->flags |= TW_ENTRY_OPERAND_DIRECT;
}

unsigned tw_site_operands(const struct tw_scan *scan, const struct tw_notes *notes, const struct tw_note *note,
			  struct tw_entry_plan_operand out[TW_NOTE_ARGUMENTS_MAX], unsigned *argument_count)
{
	unsigned count = *argument_count = tw_notes_operands(notes, scan->elf, note->arguments, out);
	size_t index = tw_scan_entry_at(scan, note->value);
	const struct tw_elf_frame_row *row = NULL;
	struct tw_elf_frame_walk walk;

	if (index < scan->entries->count) {
		tw_elf_frame_walk_begin(&walk, scan->entries->entries[index].frame);
		row = tw_elf_frame_walk_to(&walk, note->value);
	}
	for (unsigned i = 0; i < count; i++)
		judge(scan, row, &out[i]);
	return count < TW_ENTRY_OPERANDS_MAX ? count : TW_ENTRY_OPERANDS_MAX;
}
