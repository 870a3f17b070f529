/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h - traceable functions of a program that is not running: of its file and the libraries it needs.
 *
 * Calls can be traced where they pass a GOT slot (any dynamically linked program) or an entry sled
 * (compiled with -fpatchable-function-entry).  Functions that a program declares at run time are not in any file;
 * they are known only while it runs.
 *
 * The files are read, never run, and mapped only after tw_symbols_map_files(); every byte of them is treated as untrusted.  Libraries are
 * searched as ld.so would: RPATH, LD_LIBRARY_PATH of the calling process, RUNPATH, ld.so.cache, the
 * default directories.  Objects that a program opens by dlopen() are not known here: open those files as well, or add them.
 *
 * Threads    one handle belongs to one thread at a time.
 * Ownership  all strings are borrowed until tw_symbols_close().
 */
#ifndef TRACEWHEEL_SYMBOLS_H
#define TRACEWHEEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_symbols;

/* An ELF file: the program (index 0) or a library that it needs, in the order of loading. */
struct tw_symbols_object {
	const char *name;   /* the module as patterns and events show it: "libsqlite3" */
	const char *path;   /* of the file */
	const char *soname; /* "" when it has none */
	const uint8_t *build_id;
	uint32_t build_id_bytes; /* 0: none */
};

/* How a call can be traced. */
enum tw_symbols_how {
	TW_SYMBOLS_SLOT = 1, /* calls from `caller` through its GOT slot; OTP: global */
	TW_SYMBOLS_SLED = 2, /* every call, through the function's entry sled; OTP: local */
	/*
	 * Every call, through a jump over the function's first instructions; OTP: local.  tw_symbols_each_place() has none:
	 * they need a decoder of instructions, which only the command has (docs/unmodified.md).
	 */
	TW_SYMBOLS_ENTRY = 3
};

/* A place where calls of a function can be traced, or the reason why not. */
struct tw_symbols_place {
	enum tw_symbols_how how;
	const char *function; /* linkage name */
	/* The object that defines the function; NULL: none was found. */
	const struct tw_symbols_object *module;
	/* TW_SYMBOLS_SLOT: the object that has the slot; otherwise the same as module. */
	const struct tw_symbols_object *caller;
	const char *refusal; /* NULL: can be traced; else why not, without a full stop */
	uint64_t value;	     /* address of the function in its file; 0: not known */
	/* TW_SYMBOLS_SLED: several instructions long, so it is armed while the process has one thread, or all are stopped. */
	bool is_loose;
	/* Its calls are recorded without their ends: it returns twice or never, or uses its return address. */
	bool has_no_end;
};

/*
 * tw_symbols_map_files - map large files from now on in place of reading them, where nobody but root and this user may write them.
 *
 * Takes the process' handler of SIGBUS, which a file raises that is cut while it is mapped: it is TW_EIO then, and reads as zeros behind its
 * end if it was open already.  For processes that do nothing else.  Threads: one, before the first tw_symbols_open().
 */
void tw_symbols_map_files(void);

/*
 * tw_symbols_open - read a program or library and the libraries it needs.
 *
 * @path	borrows: a file, not searched in PATH.
 * @out		gives; tw_symbols_close() takes.
 *
 * Errors: TW_ENOENT, TW_EPERM, TW_EIO, TW_EFORMAT (not an ELF file, or damaged), TW_ENOTSUP (an ELF file for another
 * architecture), TW_ENOMEM, TW_EBADARG.
 */
int tw_symbols_open(const char *path, struct tw_symbols **out);
void tw_symbols_close(struct tw_symbols *symbols);

/*
 * tw_symbols_add - read a library that the program has opened while it runs; without those that it needs.
 *
 * @fd		borrows: the file, open for reading.
 * @path	borrows: its name, which is only shown.
 *
 * Returns 0, also if it is one of the objects, or an error as tw_symbols_open(); then nothing is changed.
 */
int tw_symbols_add(struct tw_symbols *symbols, int fd, const char *path);

/*
 * tw_symbols_refusal - why nothing of the program can be traced by preloading.
 *
 * Returns NULL when it can be, or a sentence without a full stop: statically linked, set-uid, set-gid,
 * file capabilities.
 */
const char *tw_symbols_refusal(const struct tw_symbols *symbols);

size_t tw_symbols_object_count(const struct tw_symbols *symbols);
const struct tw_symbols_object *tw_symbols_object(const struct tw_symbols *symbols, size_t index);

/* Names of needed libraries that were not found; NULL past the last. */
const char *tw_symbols_missing(const struct tw_symbols *symbols, size_t index);

/* Called for each place; a result other than 0 ends the walk and is returned by it. */
typedef int (*tw_symbols_place_fn)(const struct tw_symbols_place *place, void *arg);

/*
 * tw_symbols_each_place - walk over all places of all objects: slots and sleds, good and refused.
 *
 * The place is borrowed during the call, the data it points to until tw_symbols_close().  Returns 0, the result of
 * @visit, or TW_ENOMEM.
 */
int tw_symbols_each_place(const struct tw_symbols *symbols, tw_symbols_place_fn visit, void *arg);

/*
 * Is this place of interest?  @place	a slot's has no has_no_end yet, and no refusal where that takes a search through code: NULL
 * then.
 */
typedef bool (*tw_symbols_wants_fn)(const struct tw_symbols_place *place, void *arg);
/* The same walk over places of interest: what is not is not looked for in code.  @wants	NULL: all are. */
int tw_symbols_each_wanted_place(const struct tw_symbols *symbols, tw_symbols_wants_fn wants, tw_symbols_place_fn visit,
				 void *arg);

/* Called for the linkage name of each function; a result other than 0 ends the walk and is returned by it. */
typedef int (*tw_symbols_function_fn)(const char *function, void *arg);

/*
 * tw_symbols_each_function - walk over the functions in the symbol table of one object, traceable or not.
 *
 * @index	as of tw_symbols_object().
 *
 * For a stripped file, the exported functions.  Returns 0, the result of @visit, or an error as tw_symbols_open().
 */
int tw_symbols_each_function(const struct tw_symbols *symbols, size_t index, tw_symbols_function_fn visit, void *arg);

/* Can other objects call the function of that name? */
bool tw_symbols_exports(const struct tw_symbols *symbols, size_t index, const char *function);

/*
 * tw_symbols_compact - make the entry sleds of a program or library cheaper while it is not traced.
 *
 * gcc fills a sled with NOPs of one byte; this call turns each sled into one long NOP.  Call it once, after linking
 * and before stripping.  The file is replaced by a new one with the same name and mode.
 *
 * @sleds	number of sleds, counted by name; 0: it was not compiled with -fpatchable-function-entry.
 * @changed	number of functions changed; 0: the file is unchanged.
 *
 * Errors: as tw_symbols_open(), and TW_ENOSPC, TW_EPERM of writing; then the file is unchanged.
 */
int tw_symbols_compact(const char *path, uint64_t *sleds, uint64_t *changed);

#ifdef __cplusplus
}
#endif

#endif
