/* SPDX-License-Identifier: Apache-2.0 */
/* print_text.c - events for people: time since the start, thread, what happened. */
#include "tools/print.h"

/* "libsqlite3:sqlite3_step/_ from sqlite3", shared by all kinds of event. */
static size_t make_place(const struct tw_capture_place *place, char *text, size_t room)
{
	size_t used = tw_name_function(place->function, text, room);
	if (place->caller && room - used > 6) {
		size_t bytes = strnlen(place->caller->name, room - used - 6);
		memcpy(text + used, " from ", 6);
		memcpy(text + used + 6, place->caller->name, bytes);
		used += 6 + bytes;
	}
	return used;
}

static void put_head(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	uint64_t ns = event->time_ns > printer->start_ns ? event->time_ns - printer->start_ns : 0;
	uint64_t seconds = ns / 1000000000;
	if (seconds < 10000) {
		unsigned digits = seconds < 10 ? 1 : seconds < 100 ? 2 : seconds < 1000 ? 3 : 4;
		memcpy(out->data + out->used, "    ", 4);
		out->used += 4 - digits;
	}
	tw_put_u64(out, seconds);
	tw_put_char(out, '.');
	tw_put_digits(out, ns % 1000000000, 9);
	if (event->stream < printer->stream_count)
		tw_put(out, printer->streams[event->stream].text, printer->streams[event->stream].bytes);
	else
		tw_put(out, "        ? ", 10);
}

static void put_words(struct tw_out *out, const struct tw_capture_event *event)
{
	struct tw_print_payload payload = tw_print_payload(event);
	bool is_call = event->kind == TW_CAPTURE_CALL;
	if (payload.count) {
		tw_put(out, is_call ? " (" : " -> ", is_call ? 2 : 4);
		for (uint32_t i = 0; i < payload.count; i++) {
			if (i)
				tw_put(out, ", ", 2);
			tw_put(out, "0x", 2);
			tw_put_hex(out, payload.words[i]);
		}
		if (is_call)
			tw_put_char(out, ')');
	}
	if (payload.extra) {
		char text[TW_PRINT_EXTRA_BYTES];
		size_t bytes = tw_print_extra(&payload, text);
		tw_put(out, "  ", 2);
		tw_put(out, text, bytes);
	}
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const char *kind = tw_print_kind(event->kind);
	tw_out_room(out);
	put_head(printer, event);
	if (event->kind == TW_CAPTURE_CALL) {
		tw_put(out, "call ", 5);
	} else if (kind) {
		tw_put(out, kind, strlen(kind));
		tw_put_char(out, ' ');
	} else {
		tw_put(out, "event ", 6);
		tw_put_u64(out, event->kind);
		tw_put_char(out, ' ');
	}
	const struct tw_name *place =
		kind && event->kind != TW_CAPTURE_SWITCH ? tw_print_place(printer, event) : NULL;
	if (place && place->bytes) {
		tw_put(out, place->text, place->bytes);
	} else if (place) {
		tw_put(out, "place ", 6);
		tw_put_u64(out, event->id);
	} else {
		tw_print_pid(printer, event);
	}
	put_words(out, event);
	tw_put_char(out, '\n');
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	char figure[TW_FIGURE_BYTES];
	uint64_t lost = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += loss->lost[cause];
	tw_out_room(printer->out);
	put_head(printer, event);
	tw_out_format(printer->out, "!! LOST %s event%s", tw_figure_count(figure, lost),
		      lost == 1 ? "" : "s");
	uint64_t first_ns = tw_capture_ns(printer->capture, loss->first_ticks);
	if (first_ns && first_ns < event->time_ns)
		tw_out_format(printer->out, " in %s",
			      tw_figure_seconds(figure, (double)(event->time_ns - first_ns) / 1e9));
	const char *between = ": ";
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (!loss->lost[cause])
			continue;
		tw_out_format(printer->out, "%s%s %s", between, tw_lost_cause_name(cause),
			      tw_figure_count(figure, loss->lost[cause]));
		between = ", ";
	}
	tw_out_text(printer->out, "\n");
}

const struct tw_print_format tw_print_text = {"text", make_place, put_event, put_loss};
