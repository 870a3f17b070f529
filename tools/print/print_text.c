/* SPDX-License-Identifier: Apache-2.0 */
/* print_text.c - events for people: time since the start, thread, event. */
#include "views/names/missing.h"
#include "views/names/lines.h"
#include "tools/print/print.h"
#include "views/names/typed.h"

#include <stdlib.h>

/* The width of the column of pids and names. */
#define PID_COLUMNS 18

/* "libsqlite3:sqlite3_step from sqlite3", shared by all kinds of event. */
static size_t make_place(const struct tw_capture_place *place, char *text, size_t capacity)
{
	size_t used = tw_name_function(place->function, text, capacity);
	if (place->caller && capacity - used > 6) {
		memcpy(text + used, " from ", 6);
		used += 6;
		used += tw_clean(place->caller->name, strlen(place->caller->name), text + used, capacity - used);
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
	if (printer->has_pids) {
		size_t before = out->used;
		tw_print_process(printer, event);
		do
			tw_put_char(out, ' ');
		while (out->used < before + PID_COLUMNS);
	}
}

/* Prints the callers, the innermost first. */
static void put_stack(struct tw_printer *printer, const struct tw_capture_event *event,
		      const struct tw_message_payload *payload)
{
	uint32_t count = tw_line_stack_count(printer->capture, event->image, payload->words, payload->count);
	for (uint32_t i = 0; i < count; i++) {
		tw_out_text(printer->out, i ? " <-" : ":");
		tw_out_text(printer->out, " ");
		tw_line_put(printer->out, printer->capture, event->image, payload->words[i]);
	}
	if (count < payload->count)
		tw_out_text(printer->out, " <- ?");
	tw_out_reserve(printer->out);
}

static void put_damage(struct tw_out *out)
{
	tw_out_text(out, " <damaged>");
}

static void put_words(struct tw_printer *printer, const struct tw_capture_event *event,
		      const struct tw_message_payload *payload)
{
	bool is_call = event->kind == TW_CAPTURE_CALL, is_vm = tw_print_is_vm(printer, event->image);
	struct tw_out *out = printer->out;
	if (!payload->count)
		return;
	tw_put(out, is_call ? " (" : " -> ", is_call ? 2 : 4);
	for (uint32_t i = 0; i < payload->count; i++) {
		if (i)
			tw_put(out, ", ", 2);
		if (is_vm) {
			tw_put_u64(out, payload->words[i]);
			continue;
		}
		tw_put(out, "0x", 2);
		tw_put_hex(out, payload->words[i]);
	}
	if (is_call)
		tw_put_char(out, ')');
}

static void put_gc(struct tw_out *out, const struct tw_message_payload *payload)
{
	for (uint32_t i = 0; i < TW_GC_SIZES_COUNT && i < payload->count; i++) {
		if (payload->words[i])
			tw_out_format(out, " %s %llu", tw_print_gc_keys[i], (unsigned long long)payload->words[i]);
	}
}

/* Prints the terms of a message in a readable form. */
static void put_terms(struct tw_out *out, const struct tw_capture_event *event, struct tw_message_payload *payload)
{
	bool is_send = event->kind == TW_CAPTURE_SEND || event->kind == TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS;
	for (uint32_t i = 0; i < payload->term_count; i++) {
		struct tw_term term;
		if (!tw_print_next_term(payload, &term))
			return;
		if (event->kind == TW_CAPTURE_CALL && i == 0) {
			tw_out_text(out, " ");
			tw_print_put_arguments(out, term);
			continue;
		}
		if (event->kind == TW_CAPTURE_EXCEPTION_FROM && tw_term_tuple_count(term) == 2) {
			tw_out_text(out, " -> ");
			tw_print_put_text(out, tw_term_element(term, 0));
			tw_out_text(out, " ");
			term = tw_term_element(term, 1);
		} else {
			tw_out_text(out, event->kind == TW_CAPTURE_RETURN_FROM ? " -> "
					 : is_send && i == 1		       ? " to "
									       : " ");
		}
		tw_print_put_text(out, term);
	}
}

void tw_print_text_payload(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	struct tw_message_payload payload;
	struct tw_term extra;
	tw_print_payload(event, &payload);
	if (payload.has_terms)
		put_terms(out, event, &payload);
	else if (tw_print_is_gc(event->kind))
		put_gc(out, &payload);
	else if (event->kind == TW_CAPTURE_RETURN_TO && payload.count == 1) {
		tw_out_text(out, " ");
		tw_line_put(out, printer->capture, event->image, payload.words[0]);
	} else if (event->kind == TW_CAPTURE_STACK)
		put_stack(printer, event, &payload);
	else if (!tw_print_typed(printer, event, &payload, TW_TYPED_TEXT))
		put_words(printer, event, &payload);
	if (payload.has_extra && tw_print_next_extra(printer, event, &payload, true, &extra)) {
		tw_out_text(out, "  ");
		tw_print_put_text(out, extra);
	}
	if (payload.is_damaged)
		put_damage(out);
	if (event->flags & TW_CAPTURE_FLAG_SCHEDULER_ID) {
		const struct tw_capture_stream *stream = tw_capture_stream(printer->capture, event->stream);
		tw_out_format(out, "  scheduler %u", stream ? stream->scheduler_id : 0);
	}
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	tw_out_reserve(out);
	put_head(printer, event);
	if (event->kind == TW_CAPTURE_CALL) {
		tw_put(out, "call ", 5);
	} else if (kind) {
		tw_put(out, kind->word, strlen(kind->word));
		tw_put_char(out, ' ');
	} else {
		tw_put(out, "event ", 6);
		tw_put_u64(out, event->kind);
		tw_put_char(out, ' ');
	}
	/* A return_to has its target in the payload; its place 0 is undefined. */
	bool has_place =
		tw_print_has_place(event->kind) && !(event->kind == TW_CAPTURE_RETURN_TO && event->payload_words);
	const struct tw_name *place = has_place ? tw_print_place(printer, event) : NULL;
	if (place && place->bytes) {
		tw_put(out, place->text, place->bytes);
	} else if (place) {
		tw_put(out, "place ", 6);
		tw_put_u64(out, event->id);
	} else if (!printer->has_pids && event->kind != TW_CAPTURE_RETURN_TO) {
		tw_print_pid(printer, event);
	} else {
		out->used--;
	}
	if (tw_print_is_plain(event) && event->kind == TW_CAPTURE_CALL &&
	    !(event->flags & (TW_CAPTURE_FLAG_SCHEDULER_ID | TW_CAPTURE_FLAG_ARGS))) {
		const struct tw_message_payload payload = {.words = event->payload,
							   .count = event->payload_words < TW_PRINT_WORDS_MAX
									    ? event->payload_words
									    : TW_PRINT_WORDS_MAX};
		put_words(printer, event, &payload);
	} else {
		tw_print_text_payload(printer, event);
	}
	tw_put_char(out, '\n');
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	tw_missing_loss(printer->capture, event, &loss);
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_text(printer->out, tw_missing_replaced(loss.overwritten, text));
	if (loss.sum)
		tw_out_format(printer->out, "%s!! LOST %s", loss.overwritten ? "; " : "",
			      tw_figure_of(figure, loss.sum, "event", "events"));
	uint64_t first_ns = tw_capture_ns(printer->capture, tw_capture_event_loss(event)->first_ticks);
	if (first_ns && first_ns < event->time_ns)
		tw_out_format(printer->out, " in %s",
			      tw_figure_seconds(figure, (double)(event->time_ns - first_ns) / 1e9));
	const char *between = ": ";
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (!loss.lost[cause])
			continue;
		tw_out_format(printer->out, "%s%s %s", between, tw_lost_cause_name(cause),
			      tw_figure_count(figure, loss.lost[cause]));
		between = ", ";
	}
	tw_out_text(printer->out, "\n");
}

static void put_own_time(struct tw_printer *printer, const struct tw_capture_event *event)
{
	char figure[TW_FIGURE_BYTES];
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_format(printer->out, "(tracer: %s for %s)\n",
		      event->id == TW_CAPTURE_OWN_WAIT	  ? "the thread waited for space in its ring"
		      : event->id == TW_CAPTURE_OWN_SETUP ? "the thread or its ring was set up"
							  : "time of its own",
		      tw_figure_seconds(figure, (double)tw_capture_own_ns(printer->capture, event) / 1e9));
}

static void put_state(struct tw_printer *printer, const struct tw_capture_event *event)
{
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_format(printer->out, "(thread: %s)\n", tw_capture_state_name(event->id));
}

static void put_exec(struct tw_printer *printer, const struct tw_capture_event *event, uint32_t number)
{
	const char *program = tw_capture_image(printer->capture, event->image)->program;
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_format(printer->out, "-- exec %u: the process now runs ", number);
	tw_out_clean(printer->out, program, strlen(program));
	tw_out_text(printer->out, *program ? "\n" : "another program\n");
}

const struct tw_print_format tw_print_text = {"text",	    make_place, put_event, put_loss,
					      put_own_time, put_state,	put_exec};
