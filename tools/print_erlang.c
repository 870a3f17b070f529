/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_erlang.c - the trace messages of Erlang's module `trace`, one term a line.
 *
 *	{trace,<0.1.0>,call,{libsqlite3,sqlite3_step,'_'}}.
 *	{trace_ts,<0.1.0>,call,{libc,memcpy,[1,2,3]},123456789}.
 *	{trace_ts,<0.1.0>,return_from,{libc,strlen,1},5,123456789}.
 *
 * Arguments are a list where they were recorded, otherwise the arity, or '_' where that is not known.
 * Time stamps have the form that the session asked for, or --timestamps: an integer in nanoseconds, the same
 *with a unique integer, or {MegaSecs,Secs,MicroSecs}.  A loss, for which Erlang has no message, is
 * {trace_ts,Pid,lost,[{full,12}],Stamp}.
 */
#include "tools/print.h"

/* {module,function,Arity}: the arity of calls is cut off again where there are arguments. */
static size_t make_place(const struct tw_capture_place *place, char *text, size_t room)
{
	size_t used = tw_name_mfa_open(place->function, text, room);
	uint32_t arity = place->function ? place->function->arity : TW_CAPTURE_ARITY_UNKNOWN;
	if (arity == TW_CAPTURE_ARITY_UNKNOWN && room - used > 2) {
		memcpy(text + used, "'_'", 3);
		return used + 3;
	}
	return used + tw_name_arity(arity, text + used, room - used);
}

static void put_stamp(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	unsigned stamp = tw_print_shown_stamp(printer, event);
	if (stamp == TW_PRINT_STAMP_NONE)
		return;
	tw_put_char(out, ',');
	if (stamp == TW_PRINT_STAMP_WALL) {
		uint64_t us = tw_capture_wall_ns(printer->capture, event->time_ns) / 1000;
		tw_put_char(out, '{');
		tw_put_u64(out, us / 1000000000000);
		tw_put_char(out, ',');
		tw_put_u64(out, us / 1000000 % 1000000);
		tw_put_char(out, ',');
		tw_put_u64(out, us % 1000000);
		tw_put_char(out, '}');
	} else if (stamp == TW_PRINT_STAMP_STRICT && event->payload_words) {
		tw_put_char(out, '{');
		tw_put_u64(out, event->time_ns);
		tw_put_char(out, ',');
		tw_put_u64(out, event->payload[0]);
		tw_put_char(out, '}');
	} else {
		tw_put_u64(out, event->time_ns);
	}
}

static void put_open(struct tw_printer *printer, const struct tw_capture_event *event)
{
	if (tw_print_shown_stamp(printer, event) == TW_PRINT_STAMP_NONE)
		tw_put(printer->out, "{trace,", 7);
	else
		tw_put(printer->out, "{trace_ts,", 10);
	tw_print_pid(printer, event);
	tw_put_char(printer->out, ',');
}

static void put_list(struct tw_out *out, const uint64_t *words, uint32_t count)
{
	tw_put_char(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			tw_put_char(out, ',');
		tw_put_u64(out, words[i]);
	}
	tw_put_char(out, ']');
}

static void put_mfa(struct tw_printer *printer, const struct tw_capture_event *event, const uint64_t *words,
		    uint32_t count)
{
	const struct tw_name *place = tw_print_place(printer, event);
	struct tw_out *out = printer->out;
	size_t bytes = place->bytes;
	if (!bytes) {
		tw_put(out, "{'?',", 5);
		tw_put_u64(out, event->id);
		tw_put(out, ",'_'}", 5);
		return;
	}
	bool has_arguments =
		event->kind == TW_CAPTURE_CALL && count && !(event->flags & TW_CAPTURE_FLAG_ARITY);
	/* The arity holds no comma; names with one are quoted before it. */
	while (has_arguments && bytes && place->text[bytes - 1] != ',')
		bytes--;
	tw_put(out, place->text, bytes);
	if (has_arguments)
		put_list(out, words, count);
	tw_put_char(out, '}');
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const char *kind = tw_print_kind(event->kind);
	struct tw_print_payload payload = tw_print_payload(event);
	const uint64_t *words = payload.words;
	uint32_t count = payload.count;
	tw_out_room(out);
	put_open(printer, event);
	if (kind && event->kind != TW_CAPTURE_SWITCH) {
		tw_put(out, kind, strlen(kind));
		tw_put_char(out, ',');
		put_mfa(printer, event, words, count);
		if (event->kind == TW_CAPTURE_RETURN_FROM) {
			tw_put_char(out, ',');
			if (count)
				tw_put_u64(out, words[0]);
			else
				tw_put(out, "'_'", 3);
		}
		if (event->kind == TW_CAPTURE_EXCEPTION_FROM) {
			tw_put(out, ",{error,", 8);
			if (count)
				tw_put_u64(out, words[0]);
			else
				tw_put(out, "'_'", 3);
			tw_put_char(out, '}');
		}
	} else {
		tw_put(out, kind ? "in" : "event", kind ? 2 : 5);
		tw_put_char(out, ',');
		tw_put_u64(out, kind ? 0 : event->kind);
		if (!kind) {
			tw_put_char(out, ',');
			put_list(out, words, count);
		}
	}
	if (payload.extra) {
		char text[TW_PRINT_EXTRA_BYTES];
		size_t bytes = tw_print_extra(&payload, text);
		tw_put_char(out, ',');
		tw_put(out, text, bytes);
	}
	put_stamp(printer, event);
	tw_put(out, "}.\n", 3);
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	struct tw_out *out = printer->out;
	tw_out_room(out);
	tw_put(out, "{trace_ts,", 10);
	tw_print_pid(printer, event);
	tw_put(out, ",lost,[", 7);
	bool is_next = false;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (!loss->lost[cause])
			continue;
		tw_out_format(out, "%s{%s,%llu}", is_next ? "," : "", tw_lost_cause_name(cause),
			      (unsigned long long)loss->lost[cause]);
		is_next = true;
	}
	tw_put(out, "],", 2);
	tw_put_u64(out, event->time_ns);
	tw_put(out, "}.\n", 3);
}

const struct tw_print_format tw_print_erlang = {"erlang", make_place, put_event, put_loss};
