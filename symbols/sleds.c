/* SPDX-License-Identifier: Apache-2.0 */
/* sleds.c - from the table __patchable_function_entries to sleds with names. */
#include "symbols/sleds.h"
#include "base/file.h"

#include "base/grow.h"
#include "base/sys.h"
#include "symbols/file.h"
#include "symbols/nops.h"
#include "symbols/sections.h"
#include "tracewheel/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE "__patchable_function_entries"

/* The maximum distance of a table entry before its function (M). */
#define PREFIX_BYTES_MAX 256u
#define INT3		 0xcc
/* Longer runs of NOPs are not examined. */
#define SLED_BYTES_MAX 64
/* More symbols than a sane file has within PREFIX_BYTES_MAX. */
#define CANDIDATES_MAX 1024
/* Linkers leave one table; each is compared with all relocations. */
#define TABLES_MAX 16

struct reading {
	const struct tw_elf *elf;
	bool is_loaded;
	struct tw_elf_sections sections;
	struct tw_sym_sleds *out;
	uint8_t *prefixes;		    /* M of each entry of out */
	uint8_t shortest[PREFIX_BYTES_MAX]; /* by M: 1 + bytes of the shortest sled; 0: there is none */
};

unsigned tw_sym_nop_bytes(const uint8_t *at, size_t capacity)
{
	return tw_nop_bytes(at, capacity);
}

static bool is_endbr(const struct tw_elf *elf, uintptr_t at)
{
	return tw_elf_holds(elf, at, TW_ENDBR_BYTES) && tw_is_endbr((const uint8_t *)at);
}

/* Bytes of whole NOPs, at most `most`. */
static size_t count_nops(const struct tw_elf *elf, uintptr_t at, size_t most)
{
	size_t count = 0;

	if (!tw_elf_holds(elf, at, 1))
		return 0;
	if (most > elf->image.high - at)
		most = elf->image.high - at;
	while (count < most) {
		unsigned bytes = tw_sym_nop_bytes((const uint8_t *)at + count, most - count);

		if (!bytes)
			break;
		count += bytes;
	}
	return count;
}

/* Does the sled at `value` belong to this function? */
static bool is_owner(const struct reading *reading, uint64_t function, uint64_t value)
{
	const struct tw_elf *elf = reading->elf;

	if (function == value)
		return true;
	if (function < value)
		return value - function == TW_ENDBR_BYTES && is_endbr(elf, elf->base + function);
	return count_nops(elf, elf->base + value, function - value) == function - value;
}

/* The first name of the function; sections.function_count: none. */
static size_t find_owner(const struct reading *reading, uint64_t value)
{
	const struct tw_elf_sections *sections = &reading->sections;
	size_t i = tw_elf_sections_function_from(sections, value < TW_ENDBR_BYTES ? 0 : value - TW_ENDBR_BYTES);
	size_t end = i + CANDIDATES_MAX;

	for (; i < sections->function_count && i < end && sections->functions[i].value <= value + PREFIX_BYTES_MAX - 1;
	     i++)
		if (is_owner(reading, sections->functions[i].value, value))
			return i;
	return sections->function_count;
}

static int make_space(struct reading *reading)
{
	struct tw_sym_sleds *out = reading->out;

	/* A name has one sled; a file with more is damaged. */
	if (out->count >= reading->sections.function_count)
		return TW_EFORMAT;
	return tw_grow_one(out->entries, out->count) && tw_grow_one(reading->prefixes, out->count) ? 0 : TW_ENOMEM;
}

/* Adds one entry for each name of the function. */
static int add_sled(struct reading *reading, uint64_t value)
{
	const struct tw_elf_sections *sections = &reading->sections;
	const struct tw_elf *elf = reading->elf;
	size_t owner = find_owner(reading, value);
	uint64_t function, prefix;
	uintptr_t where;
	size_t bytes;

	if (owner == sections->function_count)
		return 0;
	function = sections->functions[owner].value;
	prefix = function > value ? function - value : 0;
	where = elf->base + function;
	if (is_endbr(elf, where))
		where += TW_ENDBR_BYTES;
	bytes = count_nops(elf, where, SLED_BYTES_MAX);
	/* A debugger's breakpoint among the NOPs. */
	if (bytes < SLED_BYTES_MAX && tw_elf_holds(elf, where + bytes, 1) && *(const uint8_t *)(where + bytes) == INT3)
		bytes = 0;
	/* A sled already patched does not show the length of sleds. */
	if (bytes && (bytes + 1 < reading->shortest[prefix] || !reading->shortest[prefix]))
		reading->shortest[prefix] = (uint8_t)(bytes + 1);
	for (size_t i = owner; i < sections->function_count && sections->functions[i].value == function; i++) {
		int error = make_space(reading);

		if (error)
			return error;
		reading->prefixes[reading->out->count] = (uint8_t)prefix;
		reading->out->entries[reading->out->count++] = (struct tw_sym_sled){
			.entry = elf->base + function,
			.where = where,
			.bytes = (uint32_t)bytes,
			.function_bytes = sections->functions[i].bytes,
			.function = sections->strings + sections->functions[i].name,
		};
	}
	return 0;
}

/* In a position-independent file the table's words are filled in by ld.so: do the same here. */
static void relocate(const struct tw_elf *elf, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < elf->relocation_count; i++) {
		const ElfW(Rela) *relocation = &elf->relocations[i];
		uint64_t value = (uint64_t)relocation->r_addend;

		if (ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE && relocation->r_offset >= low &&
		    relocation->r_offset < high && tw_elf_holds(elf, elf->base + relocation->r_offset, 8))
			memcpy((void *)(elf->base + relocation->r_offset), &value, sizeof value);
	}
}

static int add_table(struct reading *reading, const ElfW(Shdr) *table)
{
	const struct tw_elf *elf = reading->elf;
	uintptr_t at = elf->base + table->sh_addr;
	int error = 0;

	if (!tw_elf_holds(elf, at, table->sh_size))
		return TW_EFORMAT;
	if (!reading->is_loaded)
		relocate(elf, table->sh_addr, table->sh_addr + table->sh_size);
	for (uint64_t i = 0; i < table->sh_size / 8 && !error; i++) {
		uint64_t value;

		memcpy(&value, (const void *)(at + i * 8), sizeof value);
		if (reading->is_loaded)
			value -= elf->base;
		if (tw_elf_is_code(elf, elf->base + value))
			error = add_sled(reading, value);
	}
	return error;
}

static void judge(struct reading *reading)
{
	for (size_t i = 0; i < reading->out->count; i++) {
		struct tw_sym_sled *sled = &reading->out->entries[i];
		uint32_t shortest = reading->shortest[reading->prefixes[i]] - 1u;

		if (!sled->bytes)
			sled->refusal = TW_SYM_SLED_OTHER;
		else if (tw_sym_is_never(sled->function))
			sled->refusal = TW_SYM_NEVER;
		else if (shortest < TW_SYM_JUMP_BYTES)
			sled->refusal = TW_SYM_SLED_SHORT;
		sled->bytes = sled->bytes < shortest ? sled->bytes : shortest;
	}
}

int tw_elf_sleds_read(struct tw_sym_sleds *out, const struct tw_elf *elf, const ElfW(Ehdr) *header, int fd,
		      bool is_loaded)
{
	struct reading reading = {.elf = elf, .is_loaded = is_loaded, .out = out};
	const ElfW(Shdr) *table = NULL;
	int error;

	*out = (struct tw_sym_sleds){0};
	error = tw_elf_sections_read(&reading.sections, header, fd);
	if (!error && tw_elf_sections_find(&reading.sections, TABLE, NULL)) {
		error = tw_elf_sections_read_functions(&reading.sections, fd);
		for (unsigned i = 0; !error && (table = tw_elf_sections_find(&reading.sections, TABLE, table)); i++)
			error = i < TABLES_MAX ? add_table(&reading, table) : TW_EFORMAT;
		judge(&reading);
		out->strings = reading.sections.strings;
		reading.sections.strings = NULL;
	}
	free(reading.prefixes);
	tw_elf_sections_fini(&reading.sections);
	/* A file without sections or symbols has no sleds; it is not damaged. */
	return error == TW_ENOENT ? 0 : error;
}

void tw_sym_sleds_fini(struct tw_sym_sleds *sleds)
{
	free(sleds->entries);
	free(sleds->strings);
	*sleds = (struct tw_sym_sleds){0};
}

/* Compares with the headers in memory: another file may have the name now. */
static bool is_loaded_file(const struct tw_elf *elf, const ElfW(Ehdr) *header)
{
	uintptr_t at = elf->image.low;

	return tw_elf_holds(elf, at, sizeof *header) && !memcmp((const void *)at, header, sizeof *header);
}

int tw_sym_sleds(const struct tw_sym_object *object, struct tw_sym_sleds *out)
{
	int fd = tw_sys_open_at(AT_FDCWD, object->path), error = 0;
	ElfW(Ehdr) header;

	*out = (struct tw_sym_sleds){0};
	if (fd < 0)
		return 0;
	if (tw_file_read_at(fd, &header, sizeof header, 0) == 0 && is_loaded_file(&object->elf, &header))
		error = tw_elf_sleds_read(out, &object->elf, &header, fd, true);
	close(fd);
	if (error)
		tw_sym_sleds_fini(out);
	return error == TW_ENOMEM ? error : 0;
}
