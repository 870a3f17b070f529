/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - the part of a capture that the user selects: times, functions, one thread.
 *
 * Shared by the commands that read events; each adds these options to its own.
 */
#ifndef TW_TOOLS_SELECT_H
#define TW_TOOLS_SELECT_H

#include "views/folds/when.h"
#include "tools/common/pairs.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include "tracewheel/capture.h"

#define TW_SELECTION_ALIASES_MAX 64

enum {
	TW_KEY_FROM = 512,
	TW_KEY_TO,
	TW_KEY_THREAD,
	TW_KEY_TAIL,
	TW_KEY_LONGER,
	TW_KEY_WHEN,
	TW_KEY_HIDE_WAITS,
	TW_KEY_AROUND
};

/* Rows for a command's table of options; 't' and 'N' are keys too. */
#define TW_SELECTION_OPTIONS                                                                                  \
	{TW_KEY_FROM, "from", "T",                                                                            \
	 "from this time on: 1.5 or 200ms after the start, -2s before\n"                                      \
	 "the end, or the time of day, 17:03:12.25, 2024-05-01T17:03:12;\n"                                   \
	 "times of calls that are open there count from there"},                                              \
		{TW_KEY_TO, "to", "T", "before this time"},                                                   \
		{TW_KEY_AROUND, "around-trigger", "[=TIME]",                                                  \
		 "of a flight recorder's snapshot: during the call that caused it,\n"                         \
		 "and TIME before (0, or if no call has ended then 10ms)"},                                   \
		{TW_KEY_TAIL, "tail", "N", "only the last N of these events"},                                \
		{'t', "trace", "PATTERN", "these functions only; may be repeated"}, TW_EXCLUDE_OPTION,        \
	{                                                                                                     \
		TW_KEY_THREAD, "thread", "ID|NAME", "this thread only: its number in the system, or its name" \
	}

/* The same for views of calls. */
#define TW_WHEN_OPTIONS                                                                                                \
	{TW_KEY_WHEN, "when", "EXPR",                                                                                  \
	 "only calls of which this is true, by $1, names of arguments, result, errno, exception, duration, thread: "   \
	 "'duration > 10ms and $3 > 4K'; -t 'PATTERN if EXPR' is for its functions, --when then for the others of -t " \
	 "(docs/patterns.md)"},                                                                                        \
	{                                                                                                              \
		TW_KEY_LONGER, "longer", "T",                                                                          \
			"short for duration >= T, for all of them: calls that took so\n"                               \
			"long or longer; the time of others is that of the call around"                                \
	}

/* For tables of times. */
#define TW_HIDE_WAITS_OPTION                                                                     \
	{                                                                                        \
		TW_KEY_HIDE_WAITS, "hide-waits", NULL,                                           \
			"leave out calls of libc that wait for events, threads or a time\n"      \
			"(epoll_wait, pthread_cond_wait, nanosleep), also from the times around" \
	}

/* Of a snapshot: all threads, that of the call which caused it, or all others. */
enum tw_around { TW_AROUND_ALL, TW_AROUND_TRIGGER, TW_AROUND_OTHERS };

struct tw_selection {
	const char *from;
	const char *to;
	bool is_around; /* the trigger of a snapshot: from and to are that */
	uint64_t around_ns;
	char around_texts[2][32];
	enum tw_around around_part; /* of the threads, for the next filter */
	int32_t around_thread;	    /* 0: not known */
	uint64_t tail;		    /* the number of events at the end; 0: all */
	uint64_t longer_ns;	    /* 0: all calls */
	const char *when;	    /* NULL: none */
	struct tw_when calls;	    /* the conditions of both, and of patterns, for the capture that is filtered */
	size_t when_number;	    /* that of --when among them, if it is there */
	bool hides_waits;
	const char *thread;		  /* NULL: all; a thread number of the system, or a name */
	const struct tw_capture *capture; /* the capture that is filtered */
	struct tw_patterns patterns;
	struct tw_pairs pairs; /* of views of memory */
	/* Programs that were started by another name than their file's; borrowed by the capture. */
	struct tw_selection_alias {
		const char *path, *name;
	} aliases[TW_SELECTION_ALIASES_MAX];
	size_t alias_count;
};

/* Is the end of the capture needed? Then a stream is read to its end first. */
bool tw_selection_wants_end(const struct tw_selection *selection);

/* Handles one of these options; false: it was wrong, which has been reported. */
bool tw_selection_take(struct tw_selection *selection, const struct tw_command *command, int key, const char *value);
/* Why the call that caused a snapshot may not be in it; from "the call" to the full stop. */
extern const char tw_selection_why_not_around[];
/* Fills in a filter for a capture, and its conditions; false: a time or a condition is not valid, which has been reported. */
bool tw_selection_filter(struct tw_selection *selection, const struct tw_capture *capture,
			 const struct tw_command *command, struct tw_capture_filter *out);
/* The conditions on calls of that capture; NULL: there are none. Lends until the next filter. */
struct tw_when *tw_selection_when(struct tw_selection *selection);
/* Has it conditions on calls? */
bool tw_selection_has_conditions(const struct tw_selection *selection);
/* Does any pattern match? True if none was given. */
bool tw_selection_wants_place(const struct tw_selection *selection, const struct tw_capture_place *place);
/*
 * tw_selection_explain - why a selection of a capture that has events is empty.
 *
 * Writes a sentence without its full stop. Returns false if there was no selection, or nothing was recorded.
 */
#define TW_SELECTION_SENTENCE_BYTES 600
bool tw_selection_explain(const struct tw_selection *selection, const struct tw_capture *capture,
			  const struct tw_capture_filter *filter, char *text);
/* The same, or that there are no events, printed on standard error. */
void tw_selection_say_empty(const struct tw_selection *selection, const struct tw_capture *capture,
			    const struct tw_capture_filter *filter);
/* Does it select by more than time? */
bool tw_selection_is_of_events(const struct tw_selection *selection);
/* Says why the events of a view could not be read, and returns the exit code. */
int tw_selection_fail(const struct tw_selection *selection, const char *path, int error);
void tw_selection_free(struct tw_selection *selection);

#endif
