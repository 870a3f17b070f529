/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - determines from the files alone what patterns can match; and at the end, why one matched nothing.
 *
 *	before the start   a pattern that can match nothing is refused; one that may match later is reported
 *	at the end	   the reason for each pattern that matched nothing
 *
 * A pattern is refused only if nothing that the program could still load would match it. A module that is not there
 * at the start may come by dlopen or exec: if a loaded object calls those, if a library of that name is installed or
 * others are preloaded, if children are followed, for scripts, and if functions are declared (libtracewheel is among
 * the libraries). A module that is there does not change: a function that it does not have, or that has neither a
 * sled nor an entry that can be traced nor an exported name, will not appear.
 */
#ifndef TW_TOOLS_CHECK_H
#define TW_TOOLS_CHECK_H

#include "tracewheel/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_check;

struct tw_check_options {
	const char *program;	  /* path of its file; borrows */
	int process_id;		  /* of the program, which runs: with what it has opened; 0: it will be started */
	const char *alias;	  /* the name that it was started by; NULL: its file's; borrows */
	bool is_local, is_global; /* only sleds and entries, only slots; neither: the best way of each function */
	bool has_entries;	  /* functions are recorded at entries */
	bool has_frames;	  /* callers are recorded */
	bool is_careful;	  /* as of tw_entries_open() */
	bool is_main_only;	  /* only the program's own calls */
	bool may_become_another;  /* a script's interpreter, or children are followed */
	bool has_python;	  /* functions of Python are known when they run */
	bool is_quiet;		  /* reports refusals only */
	bool allows_nothing;	  /* refuses nothing */
};

/* NULL: the files cannot be read, or there is no memory; then nothing is checked. */
struct tw_check *tw_check_open(const struct tw_check_options *options);
void tw_check_close(struct tw_check *check);

/* May the program itself declare functions, whose arguments are not the six registers? True for NULL. */
bool tw_check_may_declare(const struct tw_check *check);

/* Looks up the patterns of a configuration: its lines `pattern` and `exclude`. NULL is allowed here and below. */
void tw_check_patterns(struct tw_check *check, const char *config);

/*
 * tw_check_each_recorded - visit the places where calls would be recorded, after tw_check_patterns() if there are patterns; functions
 * under each of their names.
 *
 * @check	not NULL.  Returns 0, an error, or the result of @visit.
 */
int tw_check_each_recorded(struct tw_check *check, tw_symbols_place_fn visit, void *arg);

/*
 * Writes for the agents, into the folder of a ring set: with has_entries the plans of the objects that patterns name, with has_frames the tables of all
 * objects' frames.
 */
void tw_check_write_plans(const struct tw_check *check, const char *folder);

/*
 * tw_check_linkage - a pattern by linkage name that replaces one by source name.
 *
 * Inside a program without a demangler (no libstdc++: Rust, some C++) only linkage names are known.
 *
 * @index	of these patterns; @is_excluding says whether it excludes.
 *
 * Lends; NULL after the last.
 */
const char *tw_check_linkage(const struct tw_check *check, size_t index, bool *is_excluding);

/*
 * tw_check_say - report the results before the program starts.
 *
 * False: a pattern can match nothing; each such pattern is reported.
 */
bool tw_check_say(const struct tw_check *check);

/*
 * tw_check_end - report for each pattern that matched nothing why.
 *
 * @path	of the complete capture; NULL: a stream.
 * @has_guard	calls were selected by their arguments as well.
 */
void tw_check_end(const struct tw_check *check, const char *path, uint64_t events, bool has_guard);

/*
 * tw_check_reason - why a pattern matches nothing in the files: a sentence without a full stop.
 *
 * @index	of the patterns with a reason.  @pattern lends.
 *
 * NULL after the last.
 */
const char *tw_check_reason(const struct tw_check *check, size_t index, const char **pattern);

#endif
