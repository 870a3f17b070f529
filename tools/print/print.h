/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - prints one event per line: text, Erlang's trace tuples, or JSON.
 *
 * A format makes the text of each place in advance; a line is then a time, a thread, that text and the payload. For
 * millions of lines a second: nothing here allocates, or calls printf for a call.
 */
#ifndef TW_TOOLS_PRINT_H
#define TW_TOOLS_PRINT_H

#include "views/folds/tracer_cost.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/threads.h"
#include "tools/tool.h"
#include "views/names/typed.h"

#include "tracewheel/term.h"

struct tw_printer {
	struct tw_out *out;
	const struct tw_capture *capture;
	uint64_t start_ns;
	struct tw_names *places; /* by image */
	uint32_t image_count;
	struct tw_name *streams;      /* by stream: the thread's number, padded to a column */
	struct tw_name *json_streams; /* by stream: JSON members of its node, exec and thread */
	uint32_t stream_count;
	/* Cache: the last pid that was looked up. */
	char pid[64];
	size_t pid_bytes;
	uint32_t pid_image;
	uint32_t pid_tracee;
	uint64_t shown;		       /* events */
	struct tw_when *when;	       /* which calls; NULL: all */
	uint64_t hidden;	       /* calls that it left out */
	double cost_ns[TW_COST_COUNT]; /* of views with times: the tracer's own, of a call (tracer_cost.h) */
	/* Cache: the last process that was named: "<0.45.0> clerk". */
	char process[TW_THREAD_TEXT_BYTES];
	size_t process_bytes;
	uint32_t process_image;
	uint32_t process_tracee;
	/* Cache: whether the image of that number, less one, is an Erlang VM. */
	uint32_t vm_image;
	bool is_vm;
	bool *begun; /* by image: its exec is shown; kept when the other tables are made again */
	uint32_t begun_count, begun_capacity;
	int stamp;     /* the kind of --timestamps; -1: each event's own */
	bool is_bare;  /* Erlang: pids and the like without quotes, for people */
	bool has_pids; /* there are processes that are not threads: text shows their pids on every line */
};

struct tw_print_format {
	const char *name;
	tw_names_make *make_place;
	void (*event)(struct tw_printer *printer, const struct tw_capture_event *event);
	void (*loss)(struct tw_printer *printer, const struct tw_capture_event *event);
	/* Time of the tracer, a state of a thread; NULL: the format has none. */
	void (*own_time)(struct tw_printer *printer, const struct tw_capture_event *event);
	void (*state)(struct tw_printer *printer, const struct tw_capture_event *event);
	/* Before the first event of a program that the process came to execute: its number. NULL: events tell it. */
	void (*exec)(struct tw_printer *printer, const struct tw_capture_event *event, uint32_t number);
};

extern const struct tw_print_format tw_print_text, tw_print_erlang, tw_print_dbg, tw_print_json;

/* ---- tables of names: printer.c; each returns false if there is no memory ---- */

/* The names of a capture. Counts and caches over several of them are kept: stamp, is_bare, shown, when, begun. @out, @capture: borrows. */
bool tw_printer_init(struct tw_printer *printer, struct tw_out *out, const struct tw_capture *capture,
		     const struct tw_print_format *format);
/* Updates them for new data of a stream: new threads, new names. @places: how many there were, updated. */
bool tw_printer_refresh(struct tw_printer *printer, const struct tw_print_format *format, uint32_t *places);
/* Before the first shown event of a program that its process came to execute. */
bool tw_printer_begin_image(struct tw_printer *printer, const struct tw_capture_event *event,
			    const struct tw_print_format *format);
void tw_printer_free(struct tw_printer *printer);

/* Of a snapshot that an Erlang process caused by its end: its last events, and a heading for those of all.  Returns 0 or an error. */
int tw_print_ended(struct tw_printer *printer, const struct tw_print_format *format,
		   const struct tw_capture_filter *filter);

/* ---- parts ---- */

/* The words of its events are numbers, not addresses. */
static inline bool tw_print_is_vm(struct tw_printer *printer, uint32_t image)
{
	if (printer->vm_image != image + 1) {
		printer->vm_image = image + 1;
		printer->is_vm = tw_names_is_erlang_vm(printer->capture, image);
	}
	return printer->is_vm;
}

static inline bool tw_print_has_place(unsigned kind)
{
	return kind >= TW_CAPTURE_CALL && kind <= TW_CAPTURE_STACK;
}

static inline const struct tw_name *tw_print_place(const struct tw_printer *printer,
						   const struct tw_capture_event *event)
{
	static const struct tw_name unknown = {.text = (char *)"", .bytes = 0};
	const struct tw_names *places = event->image < printer->image_count ? &printer->places[event->image] : NULL;
	if (places && event->id < places->count && places->at[event->id].text)
		return &places->at[event->id];
	return &unknown;
}

/* Whole calls, a line each: print_strace.c. Returns 0 or an error. */
int tw_print_strace(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);

/* Prints the rest of a line of text after the kind and the place: arguments, values, terms. */
void tw_print_text_payload(struct tw_printer *printer, const struct tw_capture_event *event);

/* Prints the pid of an event's tracee; the second also its name. */
void tw_print_pid(struct tw_printer *printer, const struct tw_capture_event *event);
void tw_print_process(struct tw_printer *printer, const struct tw_capture_event *event);

/* Is the payload only words, as of most calls? */
static inline bool tw_print_is_plain(const struct tw_capture_event *event)
{
	return !(event->flags & (TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_EXTRA)) &&
	       tw_print_stamp(event) != TW_PRINT_STAMP_STRICT;
}

static inline void tw_print_payload(const struct tw_capture_event *event, struct tw_message_payload *payload)
{
	if (tw_print_is_plain(event))
		*payload = (struct tw_message_payload){.words = event->payload,
						       .count = event->payload_words < TW_PRINT_WORDS_MAX
									? event->payload_words
									: TW_PRINT_WORDS_MAX};
	else
		tw_print_payload_take(event, payload);
}

/* Prints words with types from debug information, in this form. False: there are none. */
bool tw_print_typed(struct tw_printer *printer, const struct tw_capture_event *event,
		    const struct tw_message_payload *payload, enum tw_typed_form form);

/* tw_print_next_term() for X of {message,X}; callers recorded as offsets in objects are resolved: print_callers.c. */
bool tw_print_next_extra(const struct tw_printer *printer, const struct tw_capture_event *event,
			 struct tw_message_payload *payload, bool is_for_people, struct tw_term *out);
struct tw_term tw_print_name_callers(const struct tw_printer *printer, const struct tw_capture_event *event,
				     struct tw_arena *arena, struct tw_term term, bool is_for_people);

/*
 * For a slice of the timeline: "arguments":{...} of a call; "result": or "exception": of its end. False: none, and
 * nothing is written.
 */
bool tw_print_arguments_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out);
bool tw_print_result_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out);
/* A word without a type, as the member above shows it: an address, or a number, of 64 bits where it is negative. */
struct tw_print_word {
	uint64_t value;
	bool is_negative, is_address;
};
/* The result of a call of a function without a layout, if it is such a word; else false. */
bool tw_print_result_word(const struct tw_capture_event *event, struct tw_print_word *word);

/* A term of any size in Erlang's form, and that form as a JSON string. */
void tw_print_put_term(struct tw_out *out, struct tw_term term, bool is_bare);
void tw_print_put_json(struct tw_out *out, struct tw_term term);
/* For people, one of several terms of a line: cut after so many bytes, of which it takes its own; 0 if it was cut. */
void tw_print_put_cut(struct tw_out *out, struct tw_term term, size_t *left_bytes);
/* For people: cut after this many bytes, {m,f,1} as m:f/1, {m,f,[1]} as m:f(1). */
#define TW_PRINT_TEXT_BYTES 1000
void tw_print_put_text(struct tw_out *out, struct tw_term term);
/* A list as (1, 2). */
void tw_print_put_arguments(struct tw_out *out, struct tw_term list);

/* Prints calls indented by depth, with durations: at most `limit` events. Returns 0 or an error. */
int tw_print_tree(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);

/* The slowest calls and what they did: print_slowest.c. Returns 0 or an error, TW_ENOTSUP if nothing has a duration. */
struct tw_print_slowest {
	uint32_t count;
	bool hides_waits, is_json;
};
int tw_print_slowest(struct tw_printer *printer, const struct tw_capture_filter *filter,
		     const struct tw_print_slowest *request);

/* Prints the same as a timeline, for viewers: at most `limit` events. Return 0 or an error. */
int tw_print_chrome(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);
int tw_print_perfetto(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);
int tw_print_speedscope(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);

/* The forms of a timeline, by the names of --format and convert --to. */
struct tw_print_timeline {
	const char *name;
	int (*print)(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);
	bool is_text; /* it may be shown on a terminal */
};
/* NULL: there is none of that name. */
const struct tw_print_timeline *tw_print_timeline(const char *name);

/* --process: one process' events, each followed in text by what it ends. Returns 0 or an error. */
struct tw_print_life {
	const char *process; /* its pid or its name */
	uint64_t from_ns;    /* shown from there on */
	bool has_notes;
};
int tw_print_life(struct tw_printer *printer, const struct tw_print_format *format,
		  const struct tw_capture_filter *selected, const struct tw_print_life *request, uint64_t limit);

#endif
