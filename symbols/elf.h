/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.h - the dynamic tables of one ELF object in memory: loaded by ld.so, or laid out from a file.
 *
 * Both look the same: segments at base + value.  Offsets and indexes of a file are not trusted and are checked
 * against the image; a zero page follows the image, so every string in it ends.
 *
 * Threads  any; nothing changes after tw_elf_init().
 * Units    address = base + value; values are those of the file.
 */
#ifndef TW_SYMBOLS_ELF_H
#define TW_SYMBOLS_ELF_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_ELF_RANGES_MAX 8

struct tw_elf_range {
	uintptr_t low, high;
};

struct tw_elf {
	uintptr_t base;
	struct tw_elf_range image; /* from the first to the last byte of all segments */
	struct tw_elf_range code[TW_ELF_RANGES_MAX];
	unsigned code_count;
	/* Bytes that the file has; what lies between and behind is zero at the start.  Of many segments, the last is the span of the rest. */
	struct tw_elf_range filled[TW_ELF_RANGES_MAX];
	unsigned filled_count;
	struct tw_elf_range relro; /* whole pages; empty: none */
	uintptr_t frame_table;	   /* PT_GNU_EH_FRAME: the sorted table of call frame information; 0: none */
	const ElfW(Dyn) *dynamic;  /* NULL: static */
	size_t dynamic_count;
	const ElfW(Sym) *symbols;
	uint64_t strings;
	uint64_t string_bytes;
	const ElfW(Half) *versions;
	uint64_t needed_versions, needed_version_count;
	uint64_t defined_versions, defined_version_count;
	const ElfW(Rela) *plt_relocations;
	size_t plt_relocation_count;
	const ElfW(Rela) *relocations;
	size_t relocation_count;
	size_t relative_count; /* how many of these come first that name no symbol */
	const uint32_t *gnu_hash, *sysv_hash;
	const char *soname, *runpath, *rpath; /* in the image; "" when there is none */
	const char *interpreter;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
};

/* Fills all from program headers.  The image is [base + lowest value, base + highest value). */
void tw_elf_init(struct tw_elf *elf, uintptr_t base, const ElfW(Phdr) *headers, size_t header_count);

/* Does the file have these bytes of the image, which its header says to be filled or to be zero? */
bool tw_elf_is_filled(const struct tw_elf *elf, uintptr_t address, uint64_t bytes);

/* The part of a range of code that the file has: nothing is known of the rest, and it may be as large as the header says. */
struct tw_elf_range tw_elf_filled_code(const struct tw_elf *elf, unsigned index);

/* Does the image contain these bytes? */
static inline bool tw_elf_holds(const struct tw_elf *elf, uintptr_t address, uint64_t bytes)
{
	return address >= elf->image.low && address < elf->image.high && bytes <= elf->image.high - address;
}

bool tw_elf_is_code(const struct tw_elf *elf, uintptr_t address);

/* A string of the dynamic string table; "" for an offset outside it. */
const char *tw_elf_string(const struct tw_elf *elf, uint64_t offset);
/* NULL for an invalid index. */
const ElfW(Sym) *tw_elf_symbol(const struct tw_elf *elf, size_t index);
/* The name of the version that the linker recorded for a symbol, needed or defined; NULL: none. */
const char *tw_elf_version(const struct tw_elf *elf, size_t index);

/*
 * tw_elf_lookup - the definition of a name.
 *
 * @address	among several versions, prefer the one at this address; 0: the default one.
 *
 * Returns a symbol defined in this object, or NULL.
 */
const ElfW(Sym) *tw_elf_lookup(const struct tw_elf *elf, const char *name, uintptr_t address);
/* The same of a name that is looked up in several objects.  @hash	tw_elf_hash(name) */
uint32_t tw_elf_hash(const char *name);
const ElfW(Sym) *tw_elf_lookup_hashed(const struct tw_elf *elf, const char *name, uint32_t hash, uintptr_t address);

/*
 * tw_elf_is_better_name - is a function of several names called by this one rather than by the other?
 *
 * Exported names come first, then those without an underscore, then short ones: malloc rather than __libc_malloc, open than
 * open64.
 */
bool tw_elf_is_better_name(const struct tw_elf *elf, const char *name, const char *than);

/* The number of symbols reachable by its hash table, and at most of those that the file has. */
size_t tw_elf_symbol_count(const struct tw_elf *elf);

/* The n-th DT_NEEDED; NULL past the last. */
const char *tw_elf_needed(const struct tw_elf *elf, size_t n);

/* A relocation of a slot that calls may go through: JUMP_SLOT, GLOB_DAT. */
bool tw_elf_is_slot(const ElfW(Rela) *relocation);

#endif
