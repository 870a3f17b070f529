/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what patterns can match, from the files alone; and in the end, why one matched nothing.
 *
 *	before the start   a pattern that can match nothing is refused; one that may match later is told of
 *	at the end	   a pattern that matched nothing: the reason
 *
 * A pattern is refused only where nothing that the program could still bring in would fulfil it.  A module that is not there
 * at the start may come by dlopen or exec, where anything that is loaded calls those, where a library of that name is
 * installed or others are preloaded, where children are followed, for scripts, and where functions are declared
 * (libtracewheel is among the libraries).  A module that is there is taken for what it is: a function that it does not have,
 * or that has neither a sled nor an exported name, does not come.
 */
#ifndef TW_TOOLS_CHECK_H
#define TW_TOOLS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_check;

struct tw_check_options {
	const char *program;	  /* its file; borrows */
	const char *alias;	  /* what it was called instead; NULL: by that name; borrows */
	bool is_local, is_global; /* only sleds, only slots */
	bool is_main_only;	  /* only the program's own calls */
	bool may_become_another;  /* a script's interpreter; children are followed */
	bool is_quiet;		  /* says only what is refused */
	bool allows_nothing;	  /* refuses nothing */
};

/* NULL: the files cannot be read, or there is no memory; nothing is checked then. */
struct tw_check *tw_check_open(const struct tw_check_options *options);
void tw_check_close(struct tw_check *check);

/* May the program declare functions itself, with other arguments than six registers?  True for NULL. */
bool tw_check_may_declare(const struct tw_check *check);

/* Looks up the patterns of a configuration: its lines `pattern` and `exclude`.  NULL is allowed here and below. */
void tw_check_patterns(struct tw_check *check, const char *config);

/*
 * tw_check_linkage - a pattern by linkage name that does what one by source name asked for.
 *
 * Inside a program without a demangler (no libstdc++: Rust, some C++) only linkage names are known.
 *
 * @index	of those patterns; @is_excluding tells of which kind it is.
 * Lends; NULL behind the last.
 */
const char *tw_check_linkage(const struct tw_check *check, size_t index, bool *is_excluding);

/*
 * tw_check_say - before a program starts, what was found.
 *
 * False: one of them can match nothing, which is said of each.
 */
bool tw_check_say(const struct tw_check *check);

/*
 * tw_check_end - say of each pattern that matched nothing why.
 *
 * @path	of the capture, complete; NULL: a stream.
 * @has_guard	calls were selected by their arguments as well.
 */
void tw_check_end(const struct tw_check *check, const char *path, uint64_t events, bool has_guard);

/*
 * tw_check_reason - why a pattern matches nothing of the files: a sentence without a full stop.
 *
 * @index	of those of which there is something to be said.  @pattern lends.
 * NULL behind the last.
 */
const char *tw_check_reason(const struct tw_check *check, size_t index, const char **pattern);

#endif
