/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - one pass over all code, one over jump tables, one over relocations and symbols. */
#include "plan/scan.h"

#include "plan/flags.h"

#include "base/grow.h"
#include "base/search.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR	  36
#endif

/* More entries of one jump table than compilers write. */
#define TABLE_ENTRIES_MAX 4096
#define INT3		  0xcc

const uint8_t *tw_scan_bytes(const struct tw_scan *scan, uint64_t value, uint64_t *left)
{
	if (value - scan->low >= scan->bytes)
		return NULL;
	*left = scan->bytes - (value - scan->low);
	return (const uint8_t *)(scan->elf->base + value);
}

static bool is_code(const struct tw_scan *scan, uint64_t value)
{
	return value - scan->low < scan->bytes && tw_elf_is_code(scan->elf, scan->elf->base + value);
}

static void mark(struct tw_scan *scan, uint64_t value, uint8_t fact)
{
	if (value - scan->low < scan->bytes)
		scan->facts[value - scan->low] |= fact;
}

/* The entry whose code holds a value; NULL: none. */
static const struct tw_sym_entry *entry_at(const struct tw_scan *scan, uint64_t value)
{
	const struct tw_sym_entries *entries = scan->entries;
	size_t low = tw_search(i, entries->count, entries->entries[i].value <= value);

	if (!low || value - entries->entries[low - 1].value >= entries->entries[low - 1].bytes)
		return NULL;
	return &entries->entries[low - 1];
}

static size_t index_of(const struct tw_scan *scan, const struct tw_sym_entry *entry)
{
	return (size_t)(entry - scan->entries->entries);
}

size_t tw_scan_entry_at(const struct tw_scan *scan, uint64_t value)
{
	const struct tw_sym_entry *entry = entry_at(scan, value);

	return entry ? index_of(scan, entry) : scan->entries->count;
}

static void mark_taken(struct tw_scan *scan, uint64_t value)
{
	if (is_code(scan, value))
		mark(scan, value, TW_SCAN_TAKEN);
}

/* Code or data uses the address as a value. */
static void mark_value(struct tw_scan *scan, uint64_t value)
{
	const struct tw_sym_entry *entry;

	mark_taken(scan, value);
	if (!scan->notes_values)
		return;
	entry = entry_at(scan, value);
	if (entry && entry->value == value)
		scan->entry_facts[index_of(scan, entry)] |= TW_SCAN_ENTRY_VALUE;
}

static bool is_in_vtable(const struct tw_elf_sections *sections, uint64_t at)
{
	size_t above = tw_search(i, sections->vtable_count, sections->vtables[i].value <= at);

	return above && at - sections->vtables[above - 1].value < sections->vtables[above - 1].bytes;
}

/* For ld.so, which resolves calls and relocations by them. */
static bool is_in_symbols(const struct tw_scan *scan, uint64_t at)
{
	const ElfW(Shdr) *symbols = tw_elf_sections_find(&scan->entries->own, ".dynsym", NULL);

	return symbols && at - symbols->sh_addr < symbols->sh_size;
}

/* The word at `at` holds the address. */
static void mark_value_at(struct tw_scan *scan, uint64_t at, uint64_t value)
{
	if (!is_code(scan, value))
		return;
	if (scan->notes_values && (is_in_vtable(&scan->entries->own, at) ||
				   is_in_vtable(&scan->entries->separate, at) || is_in_symbols(scan, at)))
		mark_taken(scan, value);
	else
		mark_value(scan, value);
}

/* ---- relocations and symbols ---- */

/* The address of a function by its symbol, which others may read there. */
static void mark_symbol(struct tw_scan *scan, const ElfW(Rela) *relocation)
{
	const ElfW(Sym) *symbol = scan->elf->symbols + ELF64_R_SYM(relocation->r_info);

	if (scan->elf->symbols && tw_elf_holds(scan->elf, (uintptr_t)symbol, sizeof *symbol) && symbol->st_shndx)
		mark_value_at(scan, relocation->r_offset, symbol->st_value + (uint64_t)relocation->r_addend);
}

static void mark_relocations(struct tw_scan *scan, const ElfW(Rela) *relocations, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t type = ELF64_R_TYPE(relocations[i].r_info);

		if (type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE)
			mark_value_at(scan, relocations[i].r_offset, (uint64_t)relocations[i].r_addend);
		if (scan->notes_values && (type == R_X86_64_64 || type == R_X86_64_GLOB_DAT))
			mark_symbol(scan, &relocations[i]);
		/* Text relocations. */
		if (is_code(scan, relocations[i].r_offset))
			for (unsigned k = 0; k < 8; k++)
				mark(scan, relocations[i].r_offset + k, TW_SCAN_RELOCATED);
	}
}

static void mark_word(struct tw_scan *scan, uint64_t value)
{
	uint64_t left, target;
	const uint8_t *at = tw_scan_bytes(scan, value, &left);

	if (!at || left < sizeof target)
		return;
	memcpy(&target, at, sizeof target);
	mark_value_at(scan, value, target);
}

/* Relative relocations in their packed form (-z pack-relative-relocs): addresses, and bitmaps of 63 words behind them. */
static void mark_packed_relocations(struct tw_scan *scan)
{
	uint64_t table = 0, bytes = 0, left, at = 0;

	for (size_t i = 0; i < scan->elf->dynamic_count && scan->elf->dynamic[i].d_tag != DT_NULL; i++) {
		if (scan->elf->dynamic[i].d_tag == DT_RELR)
			table = scan->elf->dynamic[i].d_un.d_ptr;
		if (scan->elf->dynamic[i].d_tag == DT_RELRSZ)
			bytes = scan->elf->dynamic[i].d_un.d_val;
	}
	const uint8_t *words = table ? tw_scan_bytes(scan, table, &left) : NULL;

	if (!words || bytes > left)
		return;
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t word;

		memcpy(&word, words + i * 8, sizeof word);
		if (!(word & 1)) {
			mark_word(scan, word);
			at = word + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++)
			if (word >> bit & 1)
				mark_word(scan, at + (bit - 1) * 8);
		at += 63 * 8;
	}
}

static void mark_functions(struct tw_scan *scan, const struct tw_elf_sections *sections)
{
	for (size_t i = 0; i < sections->function_count; i++)
		mark_taken(scan, sections->functions[i].value);
}

static void mark_words(struct tw_scan *scan, uint64_t low, uint64_t high)
{
	for (uint64_t value = (low + 7) & ~UINT64_C(7); value + 8 <= high; value += 8)
		if (is_code(scan, value))
			value |= 4088; /* the rest of the page */
		else
			mark_word(scan, value);
}

/* In a program at a fixed address, any aligned word of data may be an address of code.  Zeroed data has none, and may be large. */
static void mark_data(struct tw_scan *scan)
{
	for (unsigned i = 0; i < scan->elf->filled_count; i++)
		mark_words(scan, scan->elf->filled[i].low - scan->elf->base,
			   scan->elf->filled[i].high - scan->elf->base);
}

/* ---- code ---- */

bool tw_scan_decode(const struct tw_scan *scan, uint64_t value, uint64_t end, ZydisDecodedInstruction *out)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&scan->decoder, NULL, (const void *)(scan->elf->base + value),
							  end - value, out));
}

static uint64_t relative_target(const ZydisDecodedInstruction *instruction, uint64_t value)
{
	return value + instruction->length + (uint64_t)instruction->raw.imm[0].value.s;
}

size_t tw_scan_group(const struct tw_scan *scan, size_t entry)
{
	uint32_t *groups = scan->groups;

	/* Halves the way for the next time. */
	for (; groups[entry] != entry; entry = groups[entry])
		groups[entry] = groups[groups[entry]];
	return entry;
}

/* @is_inside	the jump is not one to a function. */
static void join_groups(struct tw_scan *scan, const struct tw_sym_entry *entry, const struct tw_sym_entry *other,
			bool is_inside)
{
	if (is_inside || !other->name_count || other->kind == TW_SYM_ENTRY_PART)
		scan->groups[tw_scan_group(scan, index_of(scan, other))] =
			(uint32_t)tw_scan_group(scan, index_of(scan, entry));
}

static void mark_branch(struct tw_scan *scan, const struct tw_sym_entry *entry,
			const ZydisDecodedInstruction *instruction, uint64_t target)
{
	const struct tw_sym_entry *other;
	bool is_conditional;

	if (instruction->meta.category == ZYDIS_CATEGORY_CALL) {
		mark(scan, target, TW_SCAN_CALLED);
		return;
	}
	mark(scan, target, TW_SCAN_JUMPED);
	if (target - entry->value < entry->bytes) {
		mark(scan, target, TW_SCAN_LOOPED);
		return;
	}
	is_conditional = instruction->meta.category == ZYDIS_CATEGORY_COND_BR;
	other = is_conditional || scan->notes_values || scan->groups ? entry_at(scan, target) : NULL;
	if (other && scan->groups)
		join_groups(scan, entry, other, is_conditional || other->value != target);
	if (!other || other->value != target)
		return;
	if (is_conditional)
		scan->entry_facts[index_of(scan, other)] |= TW_SCAN_ENTRY_FAR_CONDITION;
	if (!scan->notes_values)
		return;
	if (tw_grow(scan->jumps, scan->jump_count, scan->jump_capacity))
		scan->jumps[scan->jump_count++] =
			(struct tw_scan_jump){(uint32_t)index_of(scan, entry), (uint32_t)index_of(scan, other)};
	else
		scan->has_no_memory = true;
}

bool tw_scan_is_indirect_jump(const ZydisDecodedInstruction *instruction)
{
	return instruction->mnemonic == ZYDIS_MNEMONIC_JMP && !instruction->raw.imm[0].size &&
	       !tw_scan_is_relative_memory(instruction);
}

/* In instructions. */
enum { RM_RSP = 4, RM_RBP = 5 };

/* The register and displacement of a plain memory operand; false: it has another one, or none. */
static bool stack_operand(const ZydisDecodedInstruction *instruction, uint64_t *dwarf_register, int64_t *displacement)
{
	if (instruction->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    !(instruction->attributes & ZYDIS_ATTRIB_HAS_MODRM) || instruction->raw.modrm.mod == 3 ||
	    instruction->raw.rex.B)
		return false;
	*displacement = instruction->raw.disp.value;
	if (instruction->raw.modrm.rm == RM_RSP) {
		*dwarf_register = TW_ELF_RSP;
		return instruction->raw.sib.base == RM_RSP && instruction->raw.sib.index == RM_RSP &&
		       !instruction->raw.rex.X;
	}
	*dwarf_register = TW_ELF_RBP;
	return instruction->raw.modrm.rm == RM_RBP && instruction->raw.modrm.mod;
}

/* A barrier for memory: `lock or $0` to the top of the stack changes nothing, and nothing is read. */
static bool is_barrier(const ZydisDecodedInstruction *instruction)
{
	return instruction->attributes & ZYDIS_ATTRIB_HAS_LOCK && instruction->raw.imm[0].size &&
	       !instruction->raw.imm[0].value.u &&
	       (instruction->mnemonic == ZYDIS_MNEMONIC_OR || instruction->mnemonic == ZYDIS_MNEMONIC_ADD);
}

/* __builtin_return_address(), and hand-written code that moves its return address, returns twice, or looks at its caller's frame. */
bool tw_scan_uses_return_address(uint64_t dwarf_register, uint64_t above, const ZydisDecodedInstruction *instruction)
{
	uint64_t own_register;
	int64_t displacement;

	if (instruction->mnemonic == ZYDIS_MNEMONIC_POP && dwarf_register == TW_ELF_RSP && above == 8)
		return true;
	return instruction->mnemonic != ZYDIS_MNEMONIC_LEA && instruction->mnemonic != ZYDIS_MNEMONIC_NOP &&
	       !is_barrier(instruction) && stack_operand(instruction, &own_register, &displacement) &&
	       dwarf_register == own_register && displacement + 8 == (int64_t)above;
}

/* @row NULL: not known. */
static bool uses_return_address(const struct tw_elf_frame_row *row, const ZydisDecodedInstruction *instruction)
{
	return row && tw_scan_uses_return_address(row->cfa_register, row->cfa_offset, instruction);
}

/* A value that is compared with an address may be called, but not by it: compilers guess targets of virtual calls. */
static void mark_operand(struct tw_scan *scan, const ZydisDecodedInstruction *instruction)
{
	if (instruction->mnemonic == ZYDIS_MNEMONIC_CMP)
		mark_taken(scan, instruction->raw.imm[0].value.u);
	else
		mark_value(scan, instruction->raw.imm[0].value.u);
}

static void scan_entry(struct tw_scan *scan, const struct tw_sym_entry *entry)
{
	uint64_t end = entry->value + entry->bytes;
	ZydisDecodedInstruction instruction;
	struct tw_elf_frame_walk walk;

	if (tw_flags_are_passed(scan, entry->value))
		scan->entry_facts[index_of(scan, entry)] |= TW_SCAN_ENTRY_READS_FLAGS;
	tw_elf_frame_walk_begin(&walk, entry->frame);
	for (uint64_t at = entry->value; at < end; at += instruction.length) {
		if (!tw_scan_decode(scan, at, end, &instruction)) {
			instruction.length = 1;
			continue;
		}
		mark(scan, at, TW_SCAN_INSTRUCTION);
		if (uses_return_address(tw_elf_frame_walk_to(&walk, at), &instruction))
			scan->entry_facts[index_of(scan, entry)] |= TW_SCAN_ENTRY_READS_RETURN;
		if (instruction.raw.imm[0].is_relative)
			mark_branch(scan, entry, &instruction, relative_target(&instruction, at));
		else if (scan->is_fixed && instruction.raw.imm[0].size >= 32)
			mark_operand(scan, &instruction);
		if (instruction.mnemonic == ZYDIS_MNEMONIC_LEA && tw_scan_is_relative_memory(&instruction))
			mark_value(scan, at + instruction.length + (uint64_t)instruction.raw.disp.value);
		if (tw_scan_is_indirect_jump(&instruction))
			scan->entry_facts[index_of(scan, entry)] |= TW_SCAN_ENTRY_INDIRECT;
	}
}

/* ---- jump tables ---- */

/* Is this the target of an entry of a table used by `entry`? */
static bool is_table_target(const struct tw_scan *scan, const struct tw_sym_entry *entry, uint64_t target)
{
	const struct tw_sym_entry *other;

	if (!is_code(scan, target) || !(tw_scan_facts(scan, target) & TW_SCAN_INSTRUCTION))
		return false;
	other = entry_at(scan, target);
	return other == entry || (other && other->kind == TW_SYM_ENTRY_PART);
}

/* Distances of four bytes from the table itself, as position-independent code has them. */
static unsigned mark_distances(struct tw_scan *scan, const struct tw_sym_entry *entry, uint64_t table)
{
	uint64_t left;
	const uint8_t *words = tw_scan_bytes(scan, table, &left);
	unsigned count = 0;

	if (!words || table % 4 || is_code(scan, table))
		return 0;
	for (; count < TABLE_ENTRIES_MAX && left >= 4u * (count + 1); count++) {
		int32_t distance;

		memcpy(&distance, words + 4 * count, sizeof distance);
		if (!is_table_target(scan, entry, table + (uint64_t)(int64_t)distance))
			break;
		mark(scan, table + (uint64_t)(int64_t)distance, TW_SCAN_TABLE);
	}
	return count;
}

/* Addresses of eight bytes, as programs at fixed addresses have them. */
static unsigned mark_addresses(struct tw_scan *scan, const struct tw_sym_entry *entry, uint64_t table)
{
	uint64_t left;
	const uint8_t *words = tw_scan_bytes(scan, table, &left);
	unsigned count = 0;

	if (!words)
		return 0;
	for (; count < TABLE_ENTRIES_MAX && left >= 8u * (count + 1); count++) {
		uint64_t target;

		memcpy(&target, words + 8 * count, sizeof target);
		if (!is_table_target(scan, entry, target))
			break;
		mark(scan, target, TW_SCAN_TABLE);
	}
	return count;
}

bool tw_scan_is_scaled_absolute(const ZydisDecodedInstruction *instruction)
{
	return instruction->attributes & ZYDIS_ATTRIB_HAS_SIB && !instruction->raw.modrm.mod &&
	       instruction->raw.sib.base == 5 && instruction->raw.sib.scale == 3;
}

static void find_tables(struct tw_scan *scan, const struct tw_sym_entry *entry)
{
	uint64_t end = entry->value + entry->bytes;
	ZydisDecodedInstruction instruction;
	unsigned found = 0;

	for (uint64_t at = entry->value; at < end; at += instruction.length) {
		if (!tw_scan_decode(scan, at, end, &instruction)) {
			instruction.length = 1;
			continue;
		}
		if (instruction.mnemonic == ZYDIS_MNEMONIC_LEA && tw_scan_is_relative_memory(&instruction))
			found += mark_distances(scan, entry,
						at + instruction.length + (uint64_t)instruction.raw.disp.value);
		else if (tw_scan_is_scaled_absolute(&instruction))
			found += mark_addresses(scan, entry, (uint64_t)instruction.raw.disp.value);
	}
	if (!found)
		scan->entry_facts[index_of(scan, entry)] |= TW_SCAN_ENTRY_UNKNOWN_TABLE;
}

/* A sane file has fewer landing pads than bytes; a damaged one may name one table many times. */
static bool mark_landing(uint64_t value, void *arg)
{
	struct tw_scan *scan = arg;

	mark(scan, value, TW_SCAN_LANDING);
	return ++scan->landing_count < scan->filled_bytes;
}

unsigned tw_scan_padding(const struct tw_scan *scan, uint64_t value, uint64_t end, unsigned most)
{
	uint64_t at = value, left;

	while (at < end && at - value < most) {
		const uint8_t *byte = tw_scan_bytes(scan, at, &left);
		ZydisDecodedInstruction instruction;

		if (!byte)
			break;
		if (*byte == INT3 || *byte == 0) {
			at++;
			continue;
		}
		if (!tw_scan_decode(scan, at, end - at < left ? end : at + left, &instruction) ||
		    instruction.mnemonic != ZYDIS_MNEMONIC_NOP)
			break;
		at += instruction.length;
	}
	return (unsigned)(at - value);
}

/* ---- all of it ---- */

static bool is_decoded(const struct tw_sym_entry *entry)
{
	return entry->kind != TW_SYM_ENTRY_PLT;
}

int tw_scan_init(struct tw_scan *scan, const struct tw_elf *elf, const struct tw_sym_entries *entries,
		 const struct tw_scan_options *options)
{
	*scan = (struct tw_scan){.elf = elf,
				 .entries = entries,
				 .low = elf->image.low - elf->base,
				 .bytes = elf->image.high - elf->image.low,
				 .is_fixed = options->is_fixed,
				 .notes_values = options->notes_values,
				 .notes_groups = options->notes_groups};
	ZydisDecoderInit(&scan->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	scan->entry_facts = calloc(entries->count + 1, 1);
	scan->facts =
		mmap(NULL, scan->bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (scan->facts == MAP_FAILED)
		scan->facts = NULL;
	scan->groups = scan->notes_groups ? malloc((entries->count + 1) * sizeof *scan->groups) : NULL;
	if (!scan->facts || !scan->entry_facts || (scan->notes_groups && !scan->groups))
		return TW_ENOMEM;
	for (size_t i = 0; scan->groups && i < entries->count; i++)
		scan->groups[i] = (uint32_t)i;
	for (unsigned i = 0; i < elf->filled_count; i++)
		scan->filled_bytes += elf->filled[i].high - elf->filled[i].low;
	mark_functions(scan, &entries->own);
	mark_functions(scan, &entries->separate);
	mark_relocations(scan, elf->relocations, elf->relocation_count);
	mark_relocations(scan, elf->plt_relocations, elf->plt_relocation_count);
	mark_packed_relocations(scan);
	if (scan->is_fixed)
		mark_data(scan);
	for (size_t i = 0; i < entries->count; i++)
		if (is_decoded(&entries->entries[i]))
			scan_entry(scan, &entries->entries[i]);
	for (size_t i = 0; i < entries->count; i++)
		if (scan->entry_facts[i] & TW_SCAN_ENTRY_INDIRECT)
			find_tables(scan, &entries->entries[i]);
	for (size_t i = 0; i < entries->count && scan->landing_count < scan->filled_bytes; i++)
		tw_elf_frame_landing_pads(elf, entries->entries[i].frame, mark_landing, scan);
	return scan->has_no_memory ? TW_ENOMEM : 0;
}

void tw_scan_fini(struct tw_scan *scan)
{
	if (scan->facts)
		munmap(scan->facts, scan->bytes + 1);
	free(scan->entry_facts);
	free(scan->jumps);
	free(scan->groups);
	*scan = (struct tw_scan){0};
}
