/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug.h - arguments and line numbers of the functions of one ELF file, from its debug information (DWARF).
 *
 * Debug information is looked for in the file itself, in /usr/lib/debug/.build-id, and under the name of its .gnu_debuglink
 * beside it, in .debug beside it and in /usr/lib/debug.  A file found there must match by build-id, or by the
 * checksum of the link where there is no build-id.  No server is asked.  Pipes, devices, files of holes, files larger than 8 GiB, and those that
 * unpack to much more than they are, are not read.
 *
 * The location of an argument follows the System V ABI for x86-64, checked against the compiler's locations at the
 * function's entry.  Uncertain locations are not given: arguments on the stack, functions that the compiler has split
 * or specialised (.part, .isra, .constprop, .cold), languages with their own calling conventions.
 *
 * Threads    one handle belongs to one thread at a time.
 * Ownership  all results are borrowed until tw_debug_close().
 * Units      a value is an address as the file has it: address in memory = base address + value.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-debug (which needs libdw).
 */
#ifndef TRACEWHEEL_DEBUG_H
#define TRACEWHEEL_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_debug;

/*
 * tw_debug_open - find the debug information of a file.
 *
 * @path	borrows: the program or library; it need not exist where a build-id is given.
 * @build_id	borrows: of the recorded file; NULL: the file now at @path.
 * @out		gives; tw_debug_close() takes.
 *
 * A file without debug information is not an error: then at most names of symbols are known, and tw_debug_problem()
 * says why.  Errors: TW_ENOMEM.
 */
int tw_debug_open(const char *path, const uint8_t *build_id, size_t build_id_bytes, struct tw_debug **out);
void tw_debug_close(struct tw_debug *debug);

/* Why there is no debug information, as a sentence without a full stop; NULL where there is some. */
const char *tw_debug_problem(const struct tw_debug *debug);

/* ---- places in the code ---- */

struct tw_debug_location {
	const char *function;	 /* linkage name; NULL: not known */
	uint64_t function_value; /* where it begins */
	const char *file;	 /* as the compiler was given it; NULL: not known */
	uint32_t line;		 /* 0: not known */
};

/*
 * tw_debug_locate - the function, file and line of an instruction.
 *
 * For a return address, pass the address minus 1, which lies in the call.
 * False: nothing at all is known; *out is zeroed.
 */
bool tw_debug_locate(struct tw_debug *debug, uint64_t value, struct tw_debug_location *out);

/*
 * tw_debug_follows_call - can a call return to this instruction, i.e. is the preceding instruction a call?
 *
 * Also false where the file has no code there.  True where the file is not available.
 */
bool tw_debug_follows_call(struct tw_debug *debug, uint64_t value);

/*
 * tw_debug_ends_signal - does the system call that ends a signal handler begin here?
 *
 * A handler returns to it, although it has called nothing.  False where the file is not available.
 */
bool tw_debug_ends_signal(struct tw_debug *debug, uint64_t value);

/* ---- functions ---- */

enum tw_debug_kind {
	TW_DEBUG_UNKNOWN, /* shown as '_' */
	TW_DEBUG_VOID,
	TW_DEBUG_SIGNED,
	TW_DEBUG_UNSIGNED,
	TW_DEBUG_BOOL,
	TW_DEBUG_ENUM,
	TW_DEBUG_POINTER, /* references too */
	TW_DEBUG_STRING,  /* char * */
	TW_DEBUG_FLOAT,	  /* of 4 or 8 bytes; of 16: long double */
	TW_DEBUG_STRUCT	  /* struct, union or class, by value; __int128; complex numbers */
};

struct tw_debug_enumerator {
	const char *name;
	int64_t value;
};

/* A number in a struct, wherever it is nested: "x", "from.x", "axes[2]"; "" for all of __int128. */
struct tw_debug_field {
	const char *name;
	enum tw_debug_kind kind; /* SIGNED, UNSIGNED, BOOL, POINTER, FLOAT */
	uint32_t first_bit, bits;
};

struct tw_debug_type {
	enum tw_debug_kind kind;
	uint32_t bytes;
	const char *name; /* of the struct or enum, "" where it has none, "point *" for a pointer to one */
	const struct tw_debug_enumerator *enumerators;
	uint32_t enumerator_count;
	bool is_signed; /* an enum's integer */
	/* All fields of a struct of at most 16 bytes; none for unions and structs with too many fields. */
	const struct tw_debug_field *fields;
	uint32_t field_count;
};

/* Registers that carry values: 0 to 5 are rdi, rsi, rdx, rcx, r8, r9. */
enum { TW_DEBUG_NOWHERE = -1, TW_DEBUG_RAX = 6, TW_DEBUG_RDX = 7, TW_DEBUG_XMM0 = 8 /* to xmm7: 15 */ };

struct tw_debug_value {
	const char *name; /* "this", "" where it has none */
	const struct tw_debug_type *type;
	/* The registers that hold it, in order; TW_DEBUG_NOWHERE: not known, in memory, or no second one. */
	int8_t registers[2];
};

struct tw_debug_function {
	const char *name; /* linkage name */
	uint64_t value;
	uint32_t arity;	  /* of its parameters, `this` included */
	bool is_variadic; /* more may follow */
	const struct tw_debug_value *parameters;
	struct tw_debug_value result;
};

/*
 * tw_debug_function - describe the function that begins at a value.
 *
 * @name	borrows: selects one of several functions that share their code; NULL: any, if there is only one.
 * @out		lends.
 *
 * Errors: TW_ENOENT (nothing certain is known), TW_ENOMEM.
 */
int tw_debug_function(struct tw_debug *debug, uint64_t value, const char *name, const struct tw_debug_function **out);

/* Called for each name of each function; a result other than 0 ends the walk and is returned by it. */
typedef int (*tw_debug_symbol_fn)(const char *name, uint64_t value, void *arg);

/*
 * tw_debug_each_symbol - all function symbols that the file and its debug information have.
 *
 * Returns 0, the result of @visit, or TW_ENOMEM.
 */
int tw_debug_each_symbol(struct tw_debug *debug, tw_debug_symbol_fn visit, void *arg);

/* As tw_debug_symbol_fn, for a variable of this size. */
typedef int (*tw_debug_variable_fn)(const char *name, uint64_t value, uint64_t bytes, void *arg);

/*
 * tw_debug_each_variable - all variables in the symbol tables of the file and its debug file; some may come twice.
 *
 * Returns 0, or the result of @visit.
 */
int tw_debug_each_variable(struct tw_debug *debug, tw_debug_variable_fn visit, void *arg);

#ifdef __cplusplus
}
#endif

#endif
