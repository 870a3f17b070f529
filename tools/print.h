/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - one event as a line: text, Erlang's trace tuples, or JSON.
 *
 * A format makes the text of each place beforehand; a line is then a time, a thread, that text and
 * the payload.  Millions of lines a second: nothing here allocates, or calls printf for a call.
 */
#ifndef TW_TOOLS_PRINT_H
#define TW_TOOLS_PRINT_H

#include "tools/names.h"
#include "tools/tool.h"

struct tw_printer {
	struct tw_out *out;
	const struct tw_capture *capture;
	uint64_t start_ns;
	struct tw_names *places; /* by image */
	uint32_t image_count;
	struct tw_name *streams; /* by stream: the thread's number, filled to a column */
	uint32_t stream_count;
	/* The pid that was looked up last. */
	char pid[64];
	size_t pid_bytes;
	uint32_t pid_image;
	uint32_t pid_tracee;
	int stamp; /* the kind that was asked for; -1: each event's own */
};

struct tw_print_format {
	const char *name;
	tw_names_make *make_place;
	void (*event)(struct tw_printer *printer, const struct tw_capture_event *event);
	void (*loss)(struct tw_printer *printer, const struct tw_capture_event *event);
};

extern const struct tw_print_format tw_print_text, tw_print_erlang, tw_print_json;

/* The kind of an event in Erlang's word; NULL for one that carries terms. */
static inline const char *tw_print_kind(unsigned kind)
{
	static const char *const words[] = {[TW_CAPTURE_SWITCH] = "in",
					    [TW_CAPTURE_CALL] = "call",
					    [TW_CAPTURE_RETURN_FROM] = "return_from",
					    [TW_CAPTURE_EXCEPTION_FROM] = "exception_from",
					    [TW_CAPTURE_RETURN_TO] = "return_to"};
	return kind < sizeof words / sizeof *words ? words[kind] : NULL;
}

static inline const struct tw_name *tw_print_place(const struct tw_printer *printer,
						   const struct tw_capture_event *event)
{
	static const struct tw_name unknown = {(char *)"", 0};
	const struct tw_names *places =
		event->image < printer->image_count ? &printer->places[event->image] : NULL;
	if (places && event->id < places->count && places->at[event->id].text)
		return &places->at[event->id];
	return &unknown;
}

/* The pid of an event's tracee, into the output. */
void tw_print_pid(struct tw_printer *printer, const struct tw_capture_event *event);

/* The kinds of time stamp that a session may have asked for, in the low bits of an event's flags. */
enum { TW_PRINT_STAMP_NONE, TW_PRINT_STAMP_MONOTONIC, TW_PRINT_STAMP_STRICT, TW_PRINT_STAMP_WALL };

static inline unsigned tw_print_stamp(const struct tw_capture_event *event)
{
	return event->flags & TW_CAPTURE_STAMP_MASK;
}

/* As it is shown. */
static inline unsigned tw_print_shown_stamp(const struct tw_printer *printer,
					    const struct tw_capture_event *event)
{
	return printer->stamp < 0 ? tw_print_stamp(event) : (unsigned)printer->stamp;
}

/* The words of a payload that are shown at most: real ones have six. */
#define TW_PRINT_WORDS_MAX 64

/* A payload taken apart.  Every count comes from the file and is held against what is there. */
struct tw_print_payload {
	const uint64_t *words;
	uint32_t count;
	const void *extra; /* in the external term format; NULL: none */
	size_t extra_bytes;
};

static inline struct tw_print_payload tw_print_payload(const struct tw_capture_event *event)
{
	struct tw_print_payload p = {event->payload, event->payload_words, NULL, 0};
	if (tw_print_stamp(event) == TW_PRINT_STAMP_STRICT && p.count > 0) {
		p.words++;
		p.count--;
	}
	if ((event->flags & TW_CAPTURE_FLAG_EXTRA) && p.count > 0) {
		uint32_t count = (uint32_t)p.words[0], left = p.count - 1;
		size_t bytes = p.words[0] >> 32;
		p.words++;
		p.count = count < left ? count : left;
		if (bytes <= (size_t)(left - p.count) * 8) {
			p.extra = p.words + p.count;
			p.extra_bytes = bytes;
		}
	}
	if (p.count > TW_PRINT_WORDS_MAX)
		p.count = TW_PRINT_WORDS_MAX;
	return p;
}

/* The extra element as Erlang text, at most TW_PRINT_EXTRA_BYTES of it; '?' where it cannot be read. */
#define TW_PRINT_EXTRA_BYTES 2048
size_t tw_print_extra(const struct tw_print_payload *payload, char text[TW_PRINT_EXTRA_BYTES]);

#endif
