/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf.h - declarations shared by the files behind tracewheel/debug.h, the only ones that use elfutils.
 *
 *	dwarf_file.c	finds the file with the debug information and verifies it
 *	dwarf.c		functions, symbols and lines by value
 *	dwarf_type.c	types, and how the System V ABI passes them
 *	dwarf_fields.c	the fields of a small struct
 *	dwarf_trivial.c	which classes are passed by value
 *	dwarf_function.c	a function's parameters and the registers that carry them
 *
 * Not used inside traced programs.  Threads: as tracewheel/debug.h.
 */
#ifndef TW_SYMBOLS_DWARF_H
#define TW_SYMBOLS_DWARF_H

#include "tracewheel/debug.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

/* An open ELF file; fd -1: not open. */
struct tw_dwarf_file {
	int fd;
	Elf *elf;
	uint64_t bytes;		/* on disk */
	uint64_t content_bytes; /* of all sections, unpacked */
};

struct tw_dwarf_symbol {
	uint64_t value, bytes;
	const char *name;
	bool is_local;
};

/* A function in DWARF. */
struct tw_dwarf_entry {
	uint64_t value;
	Dwarf_Die die;
	uint32_t language;
	bool is_clang;
	bool is_read;
	const struct tw_debug_function *function; /* once it was read; NULL: nothing certain */
};

/* A compilation unit's piece of code. */
struct tw_dwarf_range {
	uint64_t low, high;
	Dwarf_Die unit;
};

struct tw_debug {
	char *path;
	struct tw_dwarf_file file, separate;
	Dwarf *dwarf; /* NULL: none */
	char *problem;
	bool is_indexed;
	uint64_t visits_left; /* more DIEs than bytes are those of a damaged file, which are walked many times */
	struct tw_dwarf_symbol *symbols; /* by value, then global before local */
	size_t symbol_count;
	struct tw_dwarf_entry *entries; /* by value */
	size_t entry_count, entry_capacity;
	struct tw_dwarf_range *ranges; /* by low */
	size_t range_count, range_capacity;
	void *types; /* tsearch() tree of struct tw_dwarf_type */
	struct tw_dwarf_chunk *chunks;
};

/*
 * Goes on to the next DIE of the same parent; false: there is none.  It lies behind this one: a damaged file may say otherwise, and would be
 * walked for ever.
 */
bool tw_dwarf_next(Dwarf_Die *die);

/* Zeroed memory that lives as long as the handle; NULL: none left. */
void *tw_dwarf_new(struct tw_debug *debug, size_t bytes);
char *tw_dwarf_text(struct tw_debug *debug, const char *text);

/* Opens the available files; sets problem if there is no debug information.  TW_ENOMEM. */
int tw_dwarf_find(struct tw_debug *debug, const uint8_t *build_id, size_t build_id_bytes);
void tw_dwarf_file_close(struct tw_dwarf_file *file);
/* May libdw open the files that this skeleton unit names (.dwo)?  It would wait for a pipe. */
bool tw_dwarf_may_split(const struct tw_debug *debug, Dwarf_Die *unit);

/* How the ABI passes a value of a type. */
enum tw_dwarf_class {
	TW_DWARF_NOTHING, /* takes no register: void, an empty class */
	TW_DWARF_INTEGER,
	TW_DWARF_SSE,
	TW_DWARF_X87, /* passed in memory; a result in st(0) */
	TW_DWARF_MEMORY,
	TW_DWARF_REFERENCE, /* the address of it, in an integer register: classes that are not trivial */
	TW_DWARF_UNCERTAIN
};

struct tw_dwarf_type {
	const void *key; /* of the DIE */
	struct tw_debug_type shown;
	enum tw_dwarf_class classes[2]; /* of its eightbytes; the second NOTHING where there is none */
};

/* The DIE of that type, without typedefs and qualifiers.  False: void, or malformed. */
bool tw_dwarf_type_die(Dwarf_Die *die, Dwarf_Die *out);
/* 0: not known. */
uint64_t tw_dwarf_bytes(Dwarf_Die *die);

/* Fills in the fields of a struct of at most 16 bytes, if they are known; none otherwise.  False: no memory. */
bool tw_dwarf_fields(struct tw_debug *debug, Dwarf_Die *die, struct tw_debug_type *out);

/* Constants of newer compilers that not every elfutils has. */
enum { TW_DWARF_CPP17 = 0x2a, TW_DWARF_CPP20 = 0x2b, TW_DWARF_C17 = 0x2c, TW_DWARF_CPP23 = 0x3a, TW_DWARF_C23 = 0x3e };

/* Is it any version of C++? */
bool tw_dwarf_is_cpp(uint32_t language);

/* How a C++ class is passed, the worst last. */
enum tw_dwarf_triviality {
	TW_DWARF_TRIVIAL, /* by value */
	TW_DWARF_TRIVIALITY_UNKNOWN,
	TW_DWARF_NOT_TRIVIAL /* by address */
};

/* Derived from the class's declarations, for compilers that do not record it.  depth: 0, more for nested classes. */
enum tw_dwarf_triviality tw_dwarf_triviality_of(Dwarf_Die *class, int depth);

/* The type that a DIE's DW_AT_type names; void where it has none.  NULL: no memory. */
const struct tw_dwarf_type *tw_dwarf_type_of(struct tw_debug *debug, Dwarf_Die *die);

/* The shown type of a parameter of a class that is passed by address: "string &".  NULL: no memory. */
const struct tw_debug_type *tw_dwarf_reference_to(struct tw_debug *debug, const struct tw_dwarf_type *type);

/* The first instruction at a function's entry that is not a NOP; the value itself if the code cannot be read. */
uint64_t tw_dwarf_behind_nops(struct tw_debug *debug, uint64_t value);

/* Reads the function of an entry.  TW_ENOENT: nothing certain is known; TW_ENOMEM. */
int tw_dwarf_function_read(struct tw_debug *debug, struct tw_dwarf_entry *entry, const struct tw_debug_function **out);

/* DW_AT_linkage_name or DW_AT_name; NULL: none. */
const char *tw_dwarf_name(Dwarf_Die *die);

#endif
