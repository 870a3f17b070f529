/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.h - the functions of a program's objects that can be traced at their entries, without sleds; their plans.
 *
 * entries.c is the one file of the tools that sees the room plan/, which is in no library.
 */
#ifndef TW_TOOLS_ENTRIES_H
#define TW_TOOLS_ENTRIES_H

#include "tracewheel/symbols.h"

#include <stdbool.h>
#include <stddef.h>

struct tw_entries;

/*
 * @symbols	borrows until tw_entries_close(). @is_careful: functions with indirect jumps that are not understood are refused.
 * @has_slots	slots are used as well, and some functions are left to them (tw_sym_is_wrapped()).
 * NULL: no memory.
 */
struct tw_entries *tw_entries_open(const struct tw_symbols *symbols, bool is_careful, bool has_slots);
void tw_entries_close(struct tw_entries *entries);

/*
 * tw_entries_each - visit the functions of one object that have no sleds, under each of their names.
 *
 * @index	as of tw_symbols_object().
 *
 * Makes the object's plan, or takes it from the cache. Strings are borrowed until tw_entries_close(). Objects that are
 * left alone as a whole have none: tw_entries_problem() says why. Returns 0, or the result of @visit.
 */
int tw_entries_each(struct tw_entries *entries, size_t index, tw_symbols_place_fn visit, void *arg);

/*
 * tw_entries_each_chosen - visit the functions of one object whose implementation is chosen at run time (ifuncs).
 *
 * Which code that is, and whether other functions share it, is known only then.  Without slots they are refused.  Otherwise
 * as tw_entries_each().
 */
int tw_entries_each_chosen(struct tw_entries *entries, size_t index, tw_symbols_place_fn visit, void *arg);

/* A probe that an object brings itself.  Strings are borrowed until tw_entries_close(). */
struct tw_entries_probe {
	const struct tw_symbols_object *module;
	const char *name;      /* PROVIDER:NAME */
	const char *arguments; /* where they are, as the note says it: "-4@%edi 8@(%rsp)" */
	uint64_t value;	       /* of its NOP, in the file */
	uint64_t semaphore;    /* 0: none */
	unsigned argument_count;
	bool is_shared;	     /* it can be traced, but not beside the entry of its function */
	const char *refusal; /* NULL: it can be traced; else why not, without a full stop */
};

/* Called for each probe; a result other than 0 ends the walk and is returned by it. */
typedef int (*tw_entries_probe_fn)(const struct tw_entries_probe *probe, void *arg);

/* Has the object's file any?  Its plan is not made. */
bool tw_entries_has_probes(const struct tw_symbols *symbols, size_t index);
/* tw_entries_each_probe - visit the probes of one object, by address.  Otherwise as tw_entries_each(). */
int tw_entries_each_probe(struct tw_entries *entries, size_t index, tw_entries_probe_fn visit, void *arg);

/* tw_elf_is_better_name() of that object. */
bool tw_entries_is_better_name(const struct tw_entries *entries, size_t index, const char *name, const char *than);

/* Are the calls of a slot's function recorded at its sled or entry?  Makes the plan of the function's object. */
bool tw_entries_cover(struct tw_entries *entries, const struct tw_symbols_place *slot);

/* Why the object has no plan, without a full stop; NULL: it has one, or @entries is NULL. */
const char *tw_entries_problem(struct tw_entries *entries, const struct tw_symbols_object *shown);

/* Writes the object's plan for agents into the folder of a ring set. False: it cannot be written; errno says why. */
bool tw_entries_write(struct tw_entries *entries, size_t index, const char *folder);

/* The same for the table of an object's frames, for agents that record callers: of any object, without a plan. */
bool tw_entries_write_frames(const struct tw_symbols *symbols, size_t index, const char *folder);

/* The folder of plans of files seen before, for agents; false: there is none. */
bool tw_entries_folder(char *out, size_t bytes);

/* One file that a traced process has loaded. */
struct tw_entries_file {
	const char *path; /* borrows */
	bool is_program;
	/* Is the object selected by its names?  @soname	"" if it has none, or is not read yet.  NULL: none is. */
	bool (*wants)(const char *name, const char *soname, void *arg);
	bool has_slots;	   /* a file without a build-id is no problem: its functions have slots */
	bool needs_soname; /* else the name decides, and the file is not read in vain */
	bool has_probes;   /* the object is also selected if it has probes */
	bool has_frames;   /* the table of its frames is written too, whether it is selected or not */
	void *arg;
};

/* The name of a file in patterns. */
void tw_entries_module_name(const char *path, char *out, size_t bytes);

/* Can the object be selected, by its path alone? */
bool tw_entries_may_want(const struct tw_entries_file *wish);

/*
 * tw_entries_write_file - make the plan of one file, or take it from the cache, and write it for agents, unless it is there.
 *
 * @fd		borrows: the file, open as the process has it mapped; @status is its. Its path is only shown.
 *
 * Returns why there is none, without a full stop; NULL: it is there, or the object is not selected, or left alone.
 */
struct stat;
const char *tw_entries_write_file(const struct tw_entries_file *wish, int fd, const struct stat *status,
				  const char *folder);

#endif
