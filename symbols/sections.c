/* SPDX-License-Identifier: Apache-2.0 */
/* sections.c - section headers and function symbols, read from a file. */
#include "symbols/sections.h"
#include "base/file.h"

#include "base/grow.h"
#include "base/search.h"
#include "symbols/file.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

int tw_elf_table_read(int fd, uint64_t offset, uint64_t bytes, void *out)
{
	char *table;
	int error;

	if (bytes > TW_ELF_TABLE_BYTES_MAX)
		return TW_EFORMAT;
	table = malloc(bytes + 1);
	if (!table)
		return TW_ENOMEM;
	error = tw_file_read_at(fd, table, bytes, offset);
	if (error) {
		free(table);
		return error;
	}
	table[bytes] = '\0';
	*(void **)out = table;
	return 0;
}

int tw_elf_sections_read(struct tw_elf_sections *sections, const ElfW(Ehdr) *header, int fd)
{
	const ElfW(Shdr) *names;
	int error;

	*sections = (struct tw_elf_sections){0};
	if (!header->e_shoff || !header->e_shnum || header->e_shentsize != sizeof(ElfW(Shdr)) ||
	    header->e_shstrndx >= header->e_shnum)
		return TW_ENOENT;
	error = tw_elf_table_read(fd, header->e_shoff, (uint64_t)header->e_shnum * sizeof(ElfW(Shdr)),
				  &sections->table);
	if (error)
		return error;
	sections->count = header->e_shnum;
	names = &sections->table[header->e_shstrndx];
	error = tw_elf_table_read(fd, names->sh_offset, names->sh_size, &sections->names);
	if (!error)
		sections->name_bytes = names->sh_size;
	return error;
}

const ElfW(Shdr) *tw_elf_sections_find(const struct tw_elf_sections *sections, const char *name,
				       const ElfW(Shdr) *after)
{
	for (size_t i = after ? (size_t)(after - sections->table) + 1 : 0; i < sections->count; i++) {
		const ElfW(Shdr) *section = &sections->table[i];

		if (section->sh_name < sections->name_bytes && !strcmp(sections->names + section->sh_name, name))
			return section;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct tw_elf_function *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->binding != y->binding)
		return x->binding == STB_LOCAL ? 1 : y->binding == STB_LOCAL ? -1 : x->binding - y->binding;
	return TW_ORDER(x->name, y->name);
}

static int compare_vtables(const void *a, const void *b)
{
	const struct tw_elf_vtable *x = a, *y = b;

	return TW_ORDER(x->value, y->value);
}

static int take_vtable(struct tw_elf_sections *sections, const ElfW(Sym) *symbol)
{
	static const char prefix[] = "_ZTV";

	if (symbol->st_name >= sections->string_bytes || symbol->st_shndx == SHN_UNDEF ||
	    strncmp(sections->strings + symbol->st_name, prefix, sizeof prefix - 1) != 0)
		return 0;
	if (!tw_grow(sections->vtables, sections->vtable_count, sections->vtable_capacity))
		return TW_ENOMEM;
	sections->vtables[sections->vtable_count++] = (struct tw_elf_vtable){symbol->st_value, symbol->st_size};
	return 0;
}

static int take_functions(struct tw_elf_sections *sections, const ElfW(Sym) *symbols, size_t count)
{
	sections->functions = calloc(count + 1, sizeof *sections->functions);
	if (!sections->functions)
		return TW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const ElfW(Sym) *symbol = &symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && take_vtable(sections, symbol))
			return TW_ENOMEM;
		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_name >= sections->string_bytes)
			continue;
		sections->functions[sections->function_count++] =
			(struct tw_elf_function){symbol->st_value, symbol->st_name,
						 symbol->st_size <= UINT32_MAX ? (uint32_t)symbol->st_size : 0,
						 ELF64_ST_BIND(symbol->st_info)};
	}
	qsort(sections->functions, sections->function_count, sizeof *sections->functions, compare);
	if (sections->vtable_count)
		qsort(sections->vtables, sections->vtable_count, sizeof *sections->vtables, compare_vtables);
	return 0;
}

int tw_elf_sections_read_functions(struct tw_elf_sections *sections, int fd)
{
	const ElfW(Shdr) *table = tw_elf_sections_find(sections, ".symtab", NULL);
	const ElfW(Shdr) *strings;
	ElfW(Sym) *symbols;
	int error;

	if (!table)
		table = tw_elf_sections_find(sections, ".dynsym", NULL);
	if (!table || table->sh_entsize != sizeof(ElfW(Sym)) || table->sh_link >= sections->count)
		return TW_ENOENT;
	strings = &sections->table[table->sh_link];
	error = tw_elf_table_read(fd, strings->sh_offset, strings->sh_size, &sections->strings);
	if (error)
		return error;
	sections->string_bytes = strings->sh_size;
	error = tw_elf_table_read(fd, table->sh_offset, table->sh_size, &symbols);
	if (error)
		return error;
	error = take_functions(sections, symbols, table->sh_size / sizeof *symbols);
	free(symbols);
	return error;
}

void tw_elf_sections_fini(struct tw_elf_sections *sections)
{
	free(sections->table);
	free(sections->names);
	free(sections->functions);
	free(sections->vtables);
	free(sections->strings);
	*sections = (struct tw_elf_sections){0};
}

size_t tw_elf_sections_function_from(const struct tw_elf_sections *sections, uint64_t value)
{
	return tw_search(i, sections->function_count, sections->functions[i].value < value);
}
