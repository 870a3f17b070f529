/* SPDX-License-Identifier: Apache-2.0 */
/* check_state.h - what the files say about each pattern: made by check.c, and read again by check_end.c at the end. */
#ifndef TW_TOOLS_CHECK_STATE_H
#define TW_TOOLS_CHECK_STATE_H

#include "tools/record/check.h"
#include "tools/common/entries.h"
#include "tools/common/patterns.h"

#include "tracewheel/symbols.h"

/* The most callers of one function that are reported. */
#define REFUSED_MAX  3
#define REASON_BYTES 900
/* The most functions selected by source names in a program without a demangler. */
#define LINKAGE_MAX 256

/* A call that is selected but cannot be seen. */
struct refused {
	char *function;
	const char *caller, *reason; /* borrowed from the symbols */
};

struct asked {
	struct tw_pattern *pattern;
	const char *text, *module, *function; /* borrowed from the pattern; NULL: any */
	bool is_excluding;
	size_t place_count;    /* that can be traced */
	size_t endless_count;  /* those of them whose calls have no end */
	size_t excluded_count; /* that could be traced, if -N did not exclude them */
	struct refused refused[REFUSED_MAX];
	size_t refused_count;
	bool may_come;		   /* its module may be loaded later */
	bool may_be_declared;	   /* the module is no object, and the program declares functions: as expected */
	char reason[REASON_BYTES]; /* why it matches nothing at the start; "": it matches */
};

struct linkage {
	char *pattern;
	bool is_excluding;
};

struct tw_check {
	struct tw_check_options options;
	struct tw_symbols *symbols;
	struct tw_entries *entries;  /* NULL: none is used */
	struct tw_patterns patterns; /* as given on the command line */
	struct asked *asked;
	size_t count;
	bool wants_ends; /* returns are recorded */
	bool can_open, can_become, may_declare, has_preloads;
	bool can_demangle; /* the program has a demangler */
	struct linkage linkage[LINKAGE_MAX];
	size_t linkage_count;
};

/* A place that the pattern names cannot be traced: keeps the reason.  check.c */
void tw_check_add_refused(struct asked *asked, const struct tw_symbols_place *place);

/* ---- check_probes.c ---- */

/* Does a pattern of -t ask for probes? */
bool tw_check_asks_for_probes(const struct tw_check *check);
/* And has the object any? */
bool tw_check_has_probes(const struct tw_check *check, size_t index);
/* Counts the places of probes for each pattern.  An error of the visit. */
int tw_check_see_probes(struct tw_check *check);
/* False: the pattern is not for probes.  Else it has a reason now, if it matches nothing. */
bool tw_check_explain_probes(struct tw_check *check, struct asked *asked);

/* The program's own calls are usually those that the user means. */
static inline bool tw_refused_is_of_program(const struct tw_check *check, const struct refused *refused)
{
	return refused->caller == tw_symbols_object(check->symbols, 0)->name;
}

#endif
