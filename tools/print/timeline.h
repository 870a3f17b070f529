/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - what happened on which track and when, for the formats of viewers of timelines.
 *
 * Each process has a track with its calls as slices; each scheduler has one with its runs, if they were recorded, and each thread one
 * with its states; all other events are moments on the track of their process.  The fold here finds out what is shown, on which track and when; a
 * format writes it.
 */
#ifndef TW_TOOLS_TIMELINE_H
#define TW_TOOLS_TIMELINE_H

#include "tools/print/print.h"
#include "tools/print/print_flows.h"
#include "views/folds/mailboxes.h"
#include "views/folds/memory.h"
#include "views/folds/seq_events.h"
#include "views/folds/stacks.h"
#include "views/folds/stacks_spans.h"
#include "views/folds/tracer_cost.h"
#include "base/map.h"

/*
 * Tracks of threads have the kernel's numbers, which are below 2^22; then come processes, and threads whose number is
 * already used by another track; then states of threads, in the order of these; then schedulers.
 */
#define TW_TIMELINE_OTHERS     (UINT32_C(1) << 23)
#define TW_TIMELINE_STATES     UINT32_C(500000000)
#define TW_TIMELINE_SCHEDULERS UINT32_C(1000000000)

/* The arguments of an open call, as a member of an object. */
struct tw_timeline_arguments {
	char *text;
	size_t bytes, capacity;
};

/* A stack's user data. */
struct tw_timeline_track {
	uint64_t since_ns;  /* the start of its present run; 0: it is not running */
	uint64_t own_to_ns; /* the end of the tracer's own time so far */
	uint64_t state_since_ns;
	uint32_t state; /* of its thread, since then: enum tw_capture_thread_state */
	uint32_t scheduler_id;
	uint32_t image, number;
	uint32_t format; /* for the format's use; 0 at first */
	bool is_named;
	bool has_states; /* its track is named */
	struct tw_timeline_arguments
		*arguments; /* of its open calls, by depth; for formats that write calls when they end */
	uint32_t arguments_count;
};

/* A slice that is no call: the tracer's own time, a state of a thread, or a run on a scheduler. */
struct tw_timeline_span {
	uint32_t image, number; /* of the track */
	uint64_t from_ns, to_ns;
	const char *name;
	uint32_t process;      /* of a run: the number of the stack of the process */
	const char *category;  /* NULL: none */
	const char *arguments; /* the members of an object, JSON */
	size_t arguments_bytes;
};

struct tw_timeline_moment {
	const struct tw_timeline_track *track;
	uint64_t ns;
	const char *word;  /* its name; NULL: `function` has it */
	uint32_t function; /* of a call without a return, or a return without a call */
	const char *what;  /* text; NULL: none */
	size_t what_bytes;
	const char *arguments; /* the member of a call's arguments, JSON; NULL: none */
	size_t arguments_bytes;
	/* The message that begins or ends here. */
	enum { TW_TIMELINE_NO_FLOW, TW_TIMELINE_FLOW_BEGINS, TW_TIMELINE_FLOW_ENDS } flow;
	bool is_seq;	  /* of sequential tracing */
	uint64_t flow_id; /* the same at both ends; two messages at one time have different ones */
	uint64_t lost;	  /* of a loss: events so far */
};

/* How a call ended. */
struct tw_timeline_end {
	struct tw_timeline_track *track;
	const struct tw_stack *stack; /* the call is frames[depth - 1] */
	uint64_t ns;
	const char *end;    /* NULL: it returned */
	const char *result; /* a member: what it returned, or threw; NULL: none */
	size_t result_bytes;
	const struct tw_print_word *word; /* instead, for formats that take words */
	uint64_t own_ns;		  /* of the tracer, within it */
	bool is_lossy;
};

/* A number that has changed. */
struct tw_timeline_counter {
	uint32_t
		number; /* of the counter: below TW_TIMELINE_COUNTERS those of which there is one, then those of processes */
	const char *name;
	uint32_t image; /* TW_TIMELINE_WHOLE: of all */
	uint64_t ns, value;
	bool is_bytes;
};
enum { TW_TIMELINE_LOST, TW_TIMELINE_MEMORY, TW_TIMELINE_COUNTERS };
#define TW_TIMELINE_WHOLE UINT32_MAX

struct tw_timeline;

struct tw_timeline_format {
	bool takes_words; /* tw_timeline_end.word */
	/* Names of processes, and all that comes first.  False: no memory. */
	bool (*open)(struct tw_timeline *timeline);
	void (*name_track)(struct tw_timeline *timeline, uint32_t image, uint32_t number, const char *name,
			   size_t bytes);
	/* A call begins: the innermost frame of the stack; the event is that of the call, or NULL at the begin of a selection. */
	void (*begin)(struct tw_timeline *timeline, struct tw_timeline_track *track, struct tw_stack *stack,
		      uint32_t depth, const struct tw_capture_event *event);
	void (*end)(struct tw_timeline *timeline, const struct tw_timeline_end *end);
	void (*span)(struct tw_timeline *timeline, const struct tw_timeline_span *span);
	void (*moment)(struct tw_timeline *timeline, const struct tw_timeline_moment *moment);
	/* NULL: it has none. Those of memory follow all else. */
	void (*counter)(struct tw_timeline *timeline, const struct tw_timeline_counter *counter);
	void (*close)(struct tw_timeline *timeline);
};

/* The amount that is live, at times between which it changed little. */
struct tw_timeline_level {
	uint64_t ns, bytes;
};

/* Lengths of mailboxes, and live memory, where the whole of a capture is shown: timeline_counters.c. */
struct tw_timeline_counters {
	struct tw_timeline *timeline;
	struct tw_mailboxes mailboxes;
	struct tw_memory memory;
	struct tw_timeline_level *levels;
	size_t level_count, level_capacity;
	uint64_t part; /* of the peak so far: smaller changes are left out */
	bool has_mailboxes, has_memory;
};

struct tw_timeline {
	struct tw_printer *printer;
	struct tw_out *out;
	const struct tw_timeline_format *format;
	void *user; /* the format's */
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_tracer_cost cost;
	struct tw_map used_numbers; /* process and number of each thread's track; image and number of a scheduler's */
	struct tw_flows *flows;
	struct tw_seq_nodes nodes;
	const struct tw_capture_event *event; /* the one being processed */
	struct tw_stacks_spans spans;
	struct tw_capture_event plain; /* of the record that is taken now */
	struct tw_marks typed;	       /* places of functions with layouts, for these */
	bool has_no_memory;
	uint64_t limit;	     /* the events that may still be shown */
	uint64_t reached_ns; /* the time of the last one */
	uint64_t lost;	     /* events so far */
	bool is_limited;     /* calls still open at --limit continued after it */
	bool has_begun;	     /* events are now inside the selection */
	struct tw_timeline_counters counters;
};

/* A process' number as it is shown: those of several nodes may be equal. */
uint32_t tw_timeline_process(const struct tw_timeline *timeline, uint32_t image);
/* Program and node of an image, as people see them.  Returns the number of bytes. */
#define TW_TIMELINE_PROGRAM_BYTES 4400
size_t tw_timeline_program(const struct tw_timeline *timeline, uint32_t image, char text[TW_TIMELINE_PROGRAM_BYTES]);

/*
 * tw_timeline_write - read what the filter selects, and write it in a format.
 *
 * @user	the format's; borrowed.
 *
 * At most `limit` events.  Returns 0 or an error.
 */
int tw_timeline_write(struct tw_printer *printer, const struct tw_timeline_format *format, void *user,
		      const struct tw_capture_filter *filter, uint64_t limit);

/*
 * Adds the folds that the counters need, and counts them. Returns 0 or an error. The second takes an event of the timeline's own fold; the
 * third comes after the pass.
 */
int tw_timeline_begin_counters(struct tw_timeline *timeline, const struct tw_capture_filter *filter,
			       struct tw_fold *folds, size_t *count);
bool tw_timeline_count(struct tw_timeline *timeline, const struct tw_capture_event *event);
void tw_timeline_end_counters(struct tw_timeline *timeline);
void tw_timeline_free_counters(struct tw_timeline *timeline);

#endif
