/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - what the command asks for, as text in the ring set's control page. */
#ifndef TW_AGENT_CONFIG_H
#define TW_AGENT_CONFIG_H

#include "base/vectors.h"
#include "tracewheel/counts.h"
#include "tracewheel/pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_match_program;

/* Lists of functions that have a limit for the words of their arguments. */
#define TW_AGENT_WORD_LISTS 3

/* A condition on calls.  Number 0 is of all patterns that have none of their own. */
struct tw_agent_condition {
	struct tw_match_program *program; /* NULL: all calls */
	bool has_guards;   /* each function has its own guard in layouts; functions without one are not traced */
	char *text;	   /* that of the program; NULL: there is none */
	char *shown;	   /* as the user wrote it; NULL: not known */
	uint64_t least_ns; /* instead: calls that take so long; 0: it is not about that alone */
};

/* Calls for which a flight recorder writes a snapshot. */
struct tw_agent_trigger {
	struct tw_pattern *pattern;
	char *text;	 /* the condition on them; NULL: each call */
	uint32_t number; /* instead, of the guards in layouts, one for each function; 0: none */
	bool is_of_end;	 /* the condition is on how a call ends */
};

struct tw_agent_config {
	struct tw_pattern **patterns;
	uint32_t *condition_of; /* by pattern; a function that several name has that of the first */
	size_t pattern_count;
	struct tw_pattern **excluded; /* functions that match these are not traced */
	size_t excluded_count;
	struct tw_pattern *
		*counted; /* calls of functions that match are counted, not recorded; these also match `patterns` */
	size_t counted_count;
	struct tw_pattern **bare; /* calls of functions that match are recorded without callers and returns */
	size_t bare_count;
	struct tw_pattern *
		*at_most[TW_AGENT_WORD_LISTS]; /* [n]: calls of functions that match have n + 1 words at most */
	size_t at_most_count[TW_AGENT_WORD_LISTS];
	uint32_t
		recorded_most; /* of an object with more functions, the largest are recorded, the others counted; 0: all are recorded */
	bool has_aggregation; /* calls that are counted are also aggregated */
	struct tw_aggregation aggregation;
	bool has_arities; /* a pattern specifies an arity, which layouts supply */
	char *alias;	  /* another module name for the file alias_path; NULL: none */
	char *alias_path;
	bool has_all_callers;	/* else only calls made by the program's own file */
	bool is_local;		/* entry sleds and entries only */
	bool is_careful;	/* no entries of functions with indirect jumps that are not understood */
	bool is_global;		/* only calls between objects: slots only */
	bool has_no_functions;	/* only events that run-time systems report */
	uint32_t process_flags; /* TW_FLAG_* of all processes, in addition to call */
	bool has_python;	/* frames of Python are functions (python.c) */
	bool has_ports;		/* trace calls of libc that use descriptors, with returns */
	bool has_returns;	/* record return_from for each recorded call */
	bool has_exceptions;	/* record exception_from */
	uint64_t longer_ns;	/* record calls that take so long, and count the others; 0: record all */
	bool has_ends; /* conditions are decided when calls end, and calls that do not fulfil theirs are counted */
	uint64_t
		children_bytes; /* record the calls in such calls too, and keep so much of them in each thread until that is known; 0: do not */
	bool has_return_to;		   /* record return_to */
	bool tells_crash;		   /* a signal that ends the program is written down */
	uint32_t argument_words;	   /* words recorded with each call: 0 .. 6 */
	uint32_t stack_depth;		   /* return addresses recorded with each call: 0 .. TW_STACK_DEPTH_MAX */
	uint32_t string_bytes;		   /* typed arguments, with up to this much of each string; 0: only words */
	struct tw_agent_layouts *layouts;  /* layouts of arguments; NULL: none */
	uint64_t layouts_at;		   /* how much of the layouts text they contain */
	uint64_t ask_ns;		   /* how long to wait for layouts of objects loaded later; 0: do not ask */
	char *plan_folder;		   /* plans of entries of files seen before; NULL: none */
	uint64_t plan_ns;		   /* how long dlopen waits for plans of entries; 0: do not ask */
	uint64_t plan_start_ns;		   /* the same at the start of a program */
	bool lets_trace;		   /* the recorder's children */
	int filters;			   /* seccomp filters on the command, known to be harmless; -1: unknown */
	struct tw_vectors vectors;	   /* as measured by the command; zeros: not measured */
	char *tracer_path;		   /* a shared object with a tracer module, in place of the rings; NULL: none */
	char *tracer_state;		   /* its state, as Erlang text; NULL: [] */
	struct tw_agent_trigger *triggers; /* of a flight recorder's snapshots */
	size_t trigger_count;
	struct tw_agent_condition *conditions; /* by number */
	uint32_t condition_count;
};

/* Has any pattern a condition on calls? */
bool tw_agent_has_conditions(const struct tw_agent_config *config);
/* One that is another for each function, by its layout? */
bool tw_agent_has_guards(const struct tw_agent_config *config);

/* Does the end of a call decide whether it is recorded? */
static inline bool tw_agent_is_by_end(const struct tw_agent_config *config)
{
	return config->longer_ns || config->has_ends;
}

/* The requested events for the end of a call: TW_ACTION_RETURN, TW_ACTION_EXCEPTION. */
uint32_t tw_agent_end_actions(const struct tw_agent_config *config);

/*
 * tw_agent_config_parse - parse the lines `KEY VALUE` of the control page.
 *
 *	pattern MODULE:FUNCTION/ARITY	may be repeated; none: everything
 *	exclude MODULE:FUNCTION/ARITY	may be repeated; functions left out
 *	count MODULE:FUNCTION/ARITY	may be repeated; of these patterns: functions whose calls are counted, and not recorded
 *	aggregate BY N OF N FORM STEP	numbers of struct tw_aggregation, of the calls that are counted; none
 *	alias NAME PATH			the program in that file is also module NAME
 *	callers main|all		whose calls; main if there is no pattern, else all
 *	local 0|1			entry sleds and entries only; 0
 *	global 0|1			only calls between objects, slots only; 0
 *	demotes 0|1			in a process that was attached to: the recorder may ask to count functions that make too many events
 *					(dormant.c, demote.c); 0
 *	arguments1 PATTERN		functions of whose arguments one word is recorded at most, of those which `arguments` says; none
 *	arguments2, arguments3		the same with two and three
 *	bare PATTERN			functions whose calls are recorded without callers and returns, whatever others have; none
 *	returns 0|1			return_from for each recorded call; 0
 *	exceptions 0|1			the same with exception_from; 0
 *	longer NS			with returns: only calls that take so long, others are counted; 0: all
 *	ends 0|1			with returns: conditions are on how calls end (pipeline/hit/condition.h), calls that do not fulfil theirs are
 *					counted, and calls without a condition recorded; 0
 *	children BYTES			with either: also the calls in recorded calls, of which each thread keeps so much; functions without a
 *					condition are recorded in these only; 0: only the calls that fulfil a condition, and those around
 *	return_to 0|1			where each recorded call returns to; 0
 *	arguments N			words recorded with each call, 0 .. 6; 0
 *	ancestors 1			the system lets only ancestors trace a process: each lets the recorder's children do so
 *	filters N			seccomp filters on the command; a process that starts with more is not traced
 *	stack N				return addresses recorded with each call, 0 .. 64; 0
 *	typed BYTES			typed arguments, if layouts.c has the types, with BYTES of each string
 *	ask MS				how long to wait for the command to examine objects opened later; 0
 *	plan_folder PATH		where plans of entries lie, as BUILDID.plan; none
 *	plans MS START_MS		how long dlopen, and a program's start, wait for plans of entries; 0
 *	python 0|1			frames of CPython 3.11 are functions, which patterns select (python.c); 0
 *	ports 0|1			calls of libc that use descriptors, with their returns (ports.c); 0
 *	processes FLAG[,FLAG]...	flags of all processes; none
 *	functions 0|1			0: no functions, whatever the patterns; 1
 *	match SPEC			a match specification over the argument registers, on one line
 *	when EXPR			the same, written as one guard
 *	if N				condition number N, 1 and up, is that of the `pattern` before, in place of match, when, guards
 *	condition N EXPR		a condition; EXPR `-`: as guards 1, for the functions of its patterns
 *	length N NS			condition number N, with `children`: calls that take so long
 *	shown N TEXT			condition number N as the user wrote it, 0 is that of `when`; for readers of the capture
 *	crash 0|1			a signal that ends the program is written down, with the stack (crash.c); 0
 *	trigger PATTERN			a flight recorder writes a snapshot for calls of functions that match (trigger.c); may be repeated
 *	trigger_if N END EXPR		of the `trigger` before: for calls of which EXPR is true; END 1: by how they end; EXPR `-`: guard number N
 *					of each function, in layouts
 *	tracer PATH			events go to the tracer module of that shared object, not into rings; none
 *	tracer_state TERM		its state; []
 *	guards 0|1			layouts.c has a guard for each function, others are not traced; 0
 *
 * Skips lines with other keys, which belong to newer commands, and patterns that do not parse, which the command has
 * already refused.
 * @config	init; tw_agent_config_fini() ends it.  TW_ENOMEM.
 */
int tw_agent_config_parse(const char *text, size_t bytes, struct tw_agent_config *config);
void tw_agent_config_fini(struct tw_agent_config *config);

#endif
