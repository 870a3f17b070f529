/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.h - where the functions of an object begin, from its call frame information, with names where there are any.
 *
 * A description of call frame information is not always a function: kinds tell which code is called as one.  Code parts
 * that only a decoder can tell from functions (a nameless cold part that begins with an ordinary frame) have kind
 * FUNCTION here.
 *
 * Threads  one list belongs to one thread.
 * Units    values are those of the file.
 */
#ifndef TW_SYMBOLS_ENTRIES_H
#define TW_SYMBOLS_ENTRIES_H

#include "symbols/elf.h"
#include "symbols/frames.h"
#include "symbols/sections.h"

struct stat;

enum tw_sym_entry_kind {
	TW_SYM_ENTRY_FUNCTION,
	TW_SYM_ENTRY_PART,	/* a part of a function that the compiler moved away: jumped to, never called */
	TW_SYM_ENTRY_PLT,	/* stubs of the procedure linkage table */
	TW_SYM_ENTRY_SIGNAL,	/* the code that a signal handler returns to */
	TW_SYM_ENTRY_NO_CALLER, /* begins without a return address: _start, the start of a thread */
	TW_SYM_ENTRY_RESOLVER /* chooses the code of an indirect function, for ld.so: called, although no code calls it */
};

struct tw_sym_entry {
	uint64_t value;
	uint64_t bytes;
	const struct tw_elf_frame *frame;
	size_t first_name; /* in names; names of one function are adjacent, the global ones first */
	size_t name_count; /* 0: the symbol tables do not name it */
	enum tw_sym_entry_kind kind;
};

struct tw_sym_entries {
	struct tw_elf_frames frames;
	struct tw_sym_entry *entries; /* by value */
	size_t count;
	const char **names;
	size_t name_count;
	size_t unframed_count; /* named functions without call frame information, which are not in the list */
	/* The tables that names point into: the file's own, and those of its separate debug file. */
	struct tw_elf_sections own, separate;
};

/* The folders of separate debug files, searched by build-id; borrowed.  NULL ends. */
extern const char *const tw_sym_debug_folders[];

/*
 * Opens the separate debug file of the object's build-id, for reading; negative: there is none.  One that others than root and this user
 * may write is none: a name decides whether a function may be traced.
 */
int tw_sym_debug_file(const struct tw_elf *elf, struct stat *status);

/*
 * Unpacks a part of an open file (.gnu_debugdata, packed by xz) and returns another open file with it, or a negative number:
 * it cannot be unpacked.
 */
typedef int (*tw_sym_unpack_fn)(int fd, uint64_t offset, uint64_t bytes);

/*
 * tw_sym_entries_read - the entries of an object.
 *
 * @elf		in memory: loaded by ld.so, or laid out from a file.
 * @header	of the file, which is open as fd.
 * @unpack	NULL: packed symbol tables are not read.
 * @out		gives; tw_sym_entries_fini() takes, in any case.
 *
 * Names come from .symtab or .dynsym of the file.  Without .symtab, they also come from the separate debug file of the same
 * build-id, or else from the table that is packed in the file itself.  Errors: TW_ENOENT (no call frame information), TW_EFORMAT, TW_EIO, TW_ENOMEM.
 */
int tw_sym_entries_read(const struct tw_elf *elf, const ElfW(Ehdr) *header, int fd, tw_sym_unpack_fn unpack,
			struct tw_sym_entries *out);
void tw_sym_entries_fini(struct tw_sym_entries *entries);

/* The name of a function that has none in any table: sub_ADDRESS, by the address in its file.  Terminated. */
#define TW_SYM_NAMELESS_BYTES 24
void tw_sym_nameless(uint64_t value, char out[TW_SYM_NAMELESS_BYTES]);

#endif
