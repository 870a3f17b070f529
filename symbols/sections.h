/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - the section headers of an ELF file, and the functions that its symbol table names.
 *
 * ld.so loads neither: both are read from the file.  No offset or index in it is trusted.
 *
 * Threads  one belongs to one thread.  Errors are those of tracewheel/error.h.
 */
#ifndef TW_SYMBOLS_SECTIONS_H
#define TW_SYMBOLS_SECTIONS_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* A function symbol.  If several share an address, global ones come first. */
struct tw_elf_function {
	uint64_t value;
	uint32_t name;	/* in strings */
	uint32_t bytes; /* 0: not known */
	uint8_t binding;
};

/* A table of virtual functions, by its symbol. */
struct tw_elf_vtable {
	uint64_t value, bytes;
};

struct tw_elf_sections {
	ElfW(Shdr) *table;
	unsigned count;
	char *names;
	uint64_t name_bytes;
	struct tw_elf_function *functions; /* by value */
	size_t function_count;
	struct tw_elf_vtable *vtables; /* by value */
	size_t vtable_count, vtable_capacity;
	char *strings; /* closed by a zero byte */
	uint64_t string_bytes;
};

/* Reads a table of the file, of TW_ELF_TABLE_BYTES_MAX at most: gives memory, a zero byte behind it; @out points to a pointer. */
int tw_elf_table_read(int fd, uint64_t offset, uint64_t bytes, void *out);
/* Reads the section headers.  TW_ENOENT: the file has none.  tw_elf_sections_fini() in any case. */
int tw_elf_sections_read(struct tw_elf_sections *sections, const ElfW(Ehdr) *header, int fd);
/* Reads the functions and tables of virtual functions of the full symbol table, or of the dynamic one for a stripped file.  TW_ENOENT. */
int tw_elf_sections_read_functions(struct tw_elf_sections *sections, int fd);
void tw_elf_sections_fini(struct tw_elf_sections *sections);

/* The first section of that name after `after` (NULL: the first of all); NULL: none. */
const ElfW(Shdr) *tw_elf_sections_find(const struct tw_elf_sections *sections, const char *name,
				       const ElfW(Shdr) *after);

/* The index of the first function that does not begin before a value; function_count: none. */
size_t tw_elf_sections_function_from(const struct tw_elf_sections *sections, uint64_t value);

#endif
