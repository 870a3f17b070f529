/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleds.c - the entry sleds of a file: the section __patchable_function_entries and whose they are.
 *
 * -fpatchable-function-entry=N,M puts N one-byte NOPs at a function, M of them before its symbol, and the
 * address of the first NOP into the table.  With M = 0 the address lies at the symbol, or behind its endbr64.
 * In a position-independent file the addresses are the addends of RELATIVE relocations.
 */
#include "symbols/file.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* The furthest that a table entry may lie before its function (M), and behind (endbr64). */
#define PREFIX_BYTES_MAX 256
#define ENDBR_BYTES      4

struct function {
	uint64_t value;
	uint32_t name;
};

struct sections {
	ElfW(Shdr) * table;
	unsigned count;
	char *names;
	uint64_t name_bytes;
	ElfW(Sym) * symbols;
	size_t symbol_count;
	char *strings;
	uint64_t string_bytes;
	struct function *functions;
	size_t function_count;
};

/* A table of the file in memory of its own, with a zero byte behind. */
static int read_table(int fd, uint64_t offset, uint64_t bytes, void *out)
{
	char *table;
	int error;

	if (bytes > TW_ELF_TABLE_BYTES_MAX)
		return TW_EFORMAT;
	table = malloc(bytes + 1);
	if (!table)
		return TW_ENOMEM;
	error = tw_elf_read_at(fd, table, bytes, offset);
	if (error) {
		free(table);
		return error;
	}
	table[bytes] = '\0';
	*(void **)out = table;
	return 0;
}

static int read_sections(struct sections *sections, const ElfW(Ehdr) * header, int fd)
{
	const ElfW(Shdr) * names;
	int error;

	if (!header->e_shoff || !header->e_shnum || header->e_shentsize != sizeof(ElfW(Shdr)) ||
	    header->e_shstrndx >= header->e_shnum)
		return TW_ENOENT;
	error = read_table(fd, header->e_shoff, (uint64_t)header->e_shnum * sizeof(ElfW(Shdr)),
			   &sections->table);
	if (error)
		return error;
	sections->count = header->e_shnum;
	names = &sections->table[header->e_shstrndx];
	sections->name_bytes = names->sh_size;
	return read_table(fd, names->sh_offset, names->sh_size, &sections->names);
}

static const ElfW(Shdr) * find_section(const struct sections *sections, const char *name)
{
	for (unsigned i = 0; i < sections->count; i++)
		if (sections->table[i].sh_name < sections->name_bytes &&
		    !strcmp(sections->names + sections->table[i].sh_name, name))
			return &sections->table[i];
	return NULL;
}

/* The full symbol table; a stripped file has the dynamic one. */
static int read_symbols(struct sections *sections, int fd)
{
	const ElfW(Shdr) *symbols = find_section(sections, ".symtab");
	int error;

	if (!symbols)
		symbols = find_section(sections, ".dynsym");
	if (!symbols || symbols->sh_entsize != sizeof(ElfW(Sym)) || symbols->sh_link >= sections->count)
		return TW_ENOENT;
	error = read_table(fd, symbols->sh_offset, symbols->sh_size, &sections->symbols);
	if (error)
		return error;
	sections->symbol_count = symbols->sh_size / sizeof(ElfW(Sym));
	symbols = &sections->table[symbols->sh_link];
	sections->string_bytes = symbols->sh_size;
	return read_table(fd, symbols->sh_offset, symbols->sh_size, &sections->strings);
}

static int by_value(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static int sort_functions(struct sections *sections)
{
	sections->functions = calloc(sections->symbol_count + 1, sizeof *sections->functions);
	if (!sections->functions)
		return TW_ENOMEM;
	for (size_t i = 0; i < sections->symbol_count; i++) {
		const ElfW(Sym) *symbol = &sections->symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_name >= sections->string_bytes)
			continue;
		sections->functions[sections->function_count++] =
			(struct function){symbol->st_value, symbol->st_name};
	}
	qsort(sections->functions, sections->function_count, sizeof *sections->functions, by_value);
	return 0;
}

/* The function whose sled begins there; NULL: none that has a name. */
static const char *name_of(const struct sections *sections, uint64_t value)
{
	size_t low = 0, high = sections->function_count;
	const struct function *functions = sections->functions;

	/* The first function that does not begin before value - ENDBR_BYTES. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions[middle].value + ENDBR_BYTES < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == sections->function_count || functions[low].value > value + PREFIX_BYTES_MAX)
		return NULL;
	return sections->strings + functions[low].name;
}

/* In a position-independent file the table's words are filled in by ld.so: do the same here. */
static void relocate(struct tw_elf_file *file, uint64_t low, uint64_t high)
{
	const struct tw_elf *elf = &file->elf;

	for (size_t i = 0; i < elf->relocation_count; i++) {
		const ElfW(Rela) *relocation = &elf->relocations[i];
		uint64_t value = (uint64_t)relocation->r_addend;

		if (ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE && relocation->r_offset >= low &&
		    relocation->r_offset < high && tw_elf_holds(elf, elf->base + relocation->r_offset, 8))
			memcpy((void *)(elf->base + relocation->r_offset), &value, sizeof value);
	}
}

static int read_sleds(struct tw_elf_file *file, const struct sections *sections, const ElfW(Shdr) * entries)
{
	uintptr_t at = file->elf.base + entries->sh_addr;
	size_t count = entries->sh_size / 8;

	if (!tw_elf_holds(&file->elf, at, entries->sh_size))
		return TW_EFORMAT;
	relocate(file, entries->sh_addr, entries->sh_addr + entries->sh_size);
	file->sleds = calloc(count + 1, sizeof *file->sleds);
	if (!file->sleds)
		return TW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct tw_elf_sled *sled = &file->sleds[file->sled_count];
		const char *name;

		memcpy(&sled->value, (const void *)(at + i * 8), sizeof sled->value);
		name = name_of(sections, sled->value);
		if (!name)
			continue;
		sled->function = strdup(name);
		if (!sled->function)
			return TW_ENOMEM;
		file->sled_count++;
	}
	return 0;
}

int tw_elf_file_read_sleds(struct tw_elf_file *file, int fd)
{
	struct sections sections = {0};
	const ElfW(Shdr) *entries = NULL;
	int error = read_sections(&sections, &file->header, fd);

	if (!error)
		entries = find_section(&sections, "__patchable_function_entries");
	if (entries) {
		error = read_symbols(&sections, fd);
		if (!error)
			error = sort_functions(&sections);
		if (!error)
			error = read_sleds(file, &sections, entries);
	}
	free(sections.table);
	free(sections.names);
	free(sections.symbols);
	free(sections.strings);
	free(sections.functions);
	/* No sections, no symbols: no sleds; that is no damage. */
	return error == TW_ENOENT ? 0 : error;
}
