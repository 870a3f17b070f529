/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - one event as a line: text, Erlang's trace tuples, or JSON.
 *
 * A format makes the text of each place beforehand; a line is then a time, a thread, that text and
 * the payload.  Millions of lines a second: nothing here allocates, or calls printf for a call.
 */
#ifndef TW_TOOLS_PRINT_H
#define TW_TOOLS_PRINT_H

#include "tools/common/names.h"
#include "tools/common/payload.h"
#include "tools/common/threads.h"
#include "tools/tool.h"
#include "tools/common/typed.h"

#include "tracewheel/term.h"

struct tw_printer {
	struct tw_out *out;
	const struct tw_capture *capture;
	uint64_t start_ns;
	struct tw_names *places; /* by image */
	uint32_t image_count;
	struct tw_name *streams;      /* by stream: the thread's number, filled to a column */
	struct tw_name *json_streams; /* by stream: its thread's name as a member */
	uint32_t stream_count;
	/* The pid that was looked up last. */
	char pid[64];
	size_t pid_bytes;
	uint32_t pid_image;
	uint32_t pid_tracee;
	uint64_t shown; /* events */
	/* The process that was named last: "<0.45.0> clerk". */
	char process[TW_THREAD_TEXT_BYTES];
	size_t process_bytes;
	uint32_t process_image;
	uint32_t process_tracee;
	int stamp;     /* the kind that was asked for; -1: each event's own */
	bool is_bare;  /* Erlang: pids and their like without quotes, for eyes */
	bool has_pids; /* processes that are no threads: their pids stand on every line of text */
};

struct tw_print_format {
	const char *name;
	tw_names_make *make_place;
	void (*event)(struct tw_printer *printer, const struct tw_capture_event *event);
	void (*loss)(struct tw_printer *printer, const struct tw_capture_event *event);
	void (*own_time)(struct tw_printer *printer, const struct tw_capture_event *event);
};

extern const struct tw_print_format tw_print_text, tw_print_erlang, tw_print_json;

/* What a kind of event is called, and how many terms its message has at least. */
struct tw_print_kind {
	const char *word;
	const char *atom; /* as Erlang writes it: quoted where it is a reserved word */
	uint32_t term_count;
};

/* NULL for a kind that this version does not know. */
const struct tw_print_kind *tw_print_kind(unsigned kind);

static inline bool tw_print_has_place(unsigned kind)
{
	return kind >= TW_CAPTURE_CALL && kind <= TW_CAPTURE_STACK;
}

static inline bool tw_print_is_gc(unsigned kind)
{
	return kind >= TW_CAPTURE_GC_MINOR_START && kind <= TW_CAPTURE_GC_MAX_HEAP_SIZE;
}

static inline const struct tw_name *tw_print_place(const struct tw_printer *printer,
						   const struct tw_capture_event *event)
{
	static const struct tw_name unknown = {(char *)"", 0};
	const struct tw_names *places = event->image < printer->image_count ? &printer->places[event->image] : NULL;
	if (places && event->id < places->count && places->at[event->id].text)
		return &places->at[event->id];
	return &unknown;
}

/* What stands behind the kind and the place on a line of text: arguments, values, terms. */
void tw_print_text_payload(struct tw_printer *printer, const struct tw_capture_event *event);

/* The pid of an event's tracee, into the output; the same and its name. */
void tw_print_pid(struct tw_printer *printer, const struct tw_capture_event *event);
void tw_print_process(struct tw_printer *printer, const struct tw_capture_event *event);

/* As it is shown. */
static inline unsigned tw_print_shown_stamp(const struct tw_printer *printer, const struct tw_capture_event *event)
{
	return printer->stamp < 0 ? tw_print_stamp(event) : (unsigned)printer->stamp;
}

/* Nothing but words: most calls. */
static inline bool tw_print_is_plain(const struct tw_capture_event *event)
{
	return !(event->flags & (TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_EXTRA)) &&
	       tw_print_stamp(event) != TW_PRINT_STAMP_STRICT;
}

static inline void tw_print_payload(const struct tw_capture_event *event, struct tw_print_payload *payload)
{
	if (tw_print_is_plain(event))
		*payload = (struct tw_print_payload){.words = event->payload,
						     .count = event->payload_words < TW_PRINT_WORDS_MAX
								      ? event->payload_words
								      : TW_PRINT_WORDS_MAX};
	else
		tw_print_payload_take(event, payload);
}

/* Words that debug information explains, with what stands in front of them in this form.  False: it does not. */
bool tw_print_typed(struct tw_printer *printer, const struct tw_capture_event *event,
		    const struct tw_print_payload *payload, enum tw_typed_form form);

/* tw_print_next_term() for X of {message,X}, where callers are named that were noted as places in objects: print_callers.c. */
bool tw_print_next_extra(const struct tw_printer *printer, const struct tw_capture_event *event,
			 struct tw_print_payload *payload, bool is_for_people, struct tw_term *out);
struct tw_term tw_print_name_callers(const struct tw_printer *printer, const struct tw_capture_event *event,
				     struct tw_arena *arena, struct tw_term term, bool is_for_people);

/* For a slice of the timeline: "arguments":{...} of a call; "result": or "exception": of its end.  False: none, and nothing is written. */
bool tw_print_arguments_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out);
bool tw_print_result_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out);

/* A term of any size in Erlang's form, and the same as a JSON string. */
void tw_print_put_term(struct tw_out *out, struct tw_term term, bool is_bare);
void tw_print_put_json(struct tw_out *out, struct tw_term term);
/* For people: cut after so many bytes, {m,f,1} as m:f/1, {m,f,[1]} as m:f(1). */
#define TW_PRINT_TEXT_BYTES 1000
void tw_print_put_text(struct tw_out *out, struct tw_term term);
/* A list as (1, 2). */
void tw_print_put_arguments(struct tw_out *out, struct tw_term list);
bool tw_print_is_mfa(struct tw_term term);

/* Calls indented by depth, with durations: at most limit events.  Answers 0 or an error. */
int tw_print_tree(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);

/* The same as a timeline, for Perfetto and its like. */
int tw_print_chrome(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit);

/* The twelve words of the events of garbage collections. */
#define TW_PRINT_GC_KEYS 12
extern const char *const tw_print_gc_keys[TW_PRINT_GC_KEYS];

#endif
