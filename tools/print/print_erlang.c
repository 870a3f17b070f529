/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_erlang.c - the trace messages of Erlang's module `trace`, one term a line.
 *
 *	{trace,'<0.1.0>',call,{libsqlite3,sqlite3_step,'_'}}.
 *	{trace_ts,'<0.1.0>',call,{libc,memcpy,[1,2,3]},123456789}.
 *	{trace_ts,'<0.1.0>',return_from,{libc,strlen,1},5,123456789}.
 *	{trace,'<0.1.0>','receive',{hello,'<0.2.0>'}}.
 *
 * file:consult/1 reads it: pids, ports, references and funs of another system are atoms; --bare-pids prints them
 * without quotes.
 *
 * Arguments are a list if they were recorded, otherwise the arity, or '_' if that is not known. They are followed by
 * X of {message,X}, the scheduler's number if it was requested, and the time, in the form that the session or
 * --timestamps requests: an integer in nanoseconds, the same with a unique integer, or {MegaSecs,Secs,MicroSecs}.
 * Data that cannot be decoded is '?'. A loss, for which Erlang has no message, is
 * {trace_ts,Pid,lost,[{full,12}],Stamp}.
 */
#include "views/names/missing.h"
#include "views/names/lines.h"
#include "tools/print/print.h"
#include "views/names/typed.h"

#include <stdio.h>

/* {module,function,Arity}: the arity of a call is cut off again if it has arguments. */
static size_t make_place(const struct tw_capture_place *place, char *text, size_t capacity)
{
	size_t used = tw_name_mfa_open(place->function, text, capacity);
	uint32_t arity = place->function ? place->function->arity : TW_CAPTURE_ARITY_UNKNOWN;
	if (arity == TW_CAPTURE_ARITY_UNKNOWN && capacity - used > 2) {
		memcpy(text + used, "'_'", 3);
		return used + 3;
	}
	return used + tw_name_arity(arity, text + used, capacity - used);
}

static void put_stamp(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	unsigned stamp = tw_print_shown_stamp(printer, event);
	if (stamp == TW_PRINT_STAMP_NONE)
		return;
	tw_put_char(out, ',');
	if (stamp == TW_PRINT_STAMP_WALL) {
		bool is_cpu_time = event->has_cpu_time && printer->stamp < 0;
		uint64_t us =
			(is_cpu_time ? event->cpu_ns : tw_capture_wall_ns(printer->capture, event->time_ns)) / 1000;
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

/* '<0.1.0>@shop': in captures of several nodes. */
static void put_pid_at_node(struct tw_printer *printer, const struct tw_capture_event *event, const char *node)
{
	char text[sizeof printer->pid + TW_NODE_TEXT_BYTES], atom[2 * TW_NAME_ATOM_BYTES];
	size_t pid = tw_name_pid(printer->capture, event->image, event->tracee_id, text, sizeof printer->pid);
	snprintf(text + pid, sizeof text - pid, "@%s", node);
	tw_out_bytes(printer->out, atom, tw_name_atom(text, atom, sizeof atom));
}

/* '<0.1.0>': an atom, which Erlang can read; a bare pid is only printed by its shell. */
static void put_pid(struct tw_printer *printer, const struct tw_capture_event *event)
{
	const struct tw_capture_image *image = tw_capture_image(printer->capture, event->image);
	if (image && *image->node) {
		put_pid_at_node(printer, event, image->node);
		return;
	}
	if (!printer->is_bare)
		tw_put_char(printer->out, '\'');
	tw_print_pid(printer, event);
	if (!printer->is_bare)
		tw_put_char(printer->out, '\'');
}

static void put_open(struct tw_printer *printer, const struct tw_capture_event *event)
{
	if (event->kind == TW_CAPTURE_MONITOR)
		tw_put(printer->out, "{monitor,", 9);
	else if (tw_print_shown_stamp(printer, event) == TW_PRINT_STAMP_NONE)
		tw_put(printer->out, "{trace,", 7);
	else
		tw_put(printer->out, "{trace_ts,", 10);
	put_pid(printer, event);
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

/* Prints a term, or '?' if the bytes are none. */
static void put_next_term(struct tw_printer *printer, struct tw_print_payload *payload)
{
	struct tw_term term;
	if (tw_print_next_term(payload, &term))
		tw_print_put_term(printer->out, term, printer->is_bare);
	else
		tw_out_text(printer->out, "'?'");
}

static void put_mfa(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_print_payload *payload)
{
	const struct tw_name *place = tw_print_place(printer, event);
	struct tw_out *out = printer->out;
	const struct tw_layout *layout;
	size_t bytes = place->bytes;
	bool has_arguments = event->kind == TW_CAPTURE_CALL && !(event->flags & TW_CAPTURE_FLAG_ARITY) &&
			     (payload->count || payload->has_terms);
	if (!bytes && !has_arguments) {
		tw_put(out, "{'?',", 5);
		tw_put_u64(out, event->id);
		tw_put(out, ",'_'}", 5);
		return;
	}
	/* The arity holds no comma; names with one are quoted before it. */
	while (has_arguments && bytes && place->text[bytes - 1] != ',')
		bytes--;
	tw_put(out, place->text, bytes);
	if (!bytes) {
		tw_put(out, "{'?',", 5);
		tw_put_u64(out, event->id);
		tw_put_char(out, ',');
	}
	if (has_arguments && payload->has_terms)
		put_next_term(printer, payload);
	else if (has_arguments && (layout = tw_typed_layout(printer->capture, event)))
		tw_typed_arguments(out, TW_TYPED_ERLANG, layout, payload->words, payload->count);
	else if (has_arguments)
		put_list(out, payload->words, payload->count);
	tw_put_char(out, '}');
}

/* The value of a return or an exception. */
static void put_value(struct tw_printer *printer, const struct tw_capture_event *event,
		      struct tw_print_payload *payload)
{
	const struct tw_layout *layout = tw_typed_layout(printer->capture, event);
	struct tw_out *out = printer->out;
	bool is_exception = event->kind == TW_CAPTURE_EXCEPTION_FROM;
	tw_put_char(out, ',');
	if (payload->has_terms) {
		put_next_term(printer, payload);
		return;
	}
	if (is_exception)
		tw_put(out, "{error,", 7);
	if (!payload->count ||
	    (layout && !tw_typed_result(out, TW_TYPED_ERLANG, layout, payload->words, payload->count)))
		tw_put(out, "'_'", 3);
	else if (!layout)
		tw_put_u64(out, payload->words[0]);
	if (is_exception)
		tw_put_char(out, '}');
}

/* {M,F,A}: the function, or the offset in the module if it is not known; undefined without a module. */
static void put_address(struct tw_printer *printer, const struct tw_capture_event *event, uint64_t address)
{
	struct tw_out *out = printer->out;
	char name[TW_NAME_ATOM_BYTES], function[TW_NAME_ATOM_BYTES];
	struct tw_line line;
	tw_line_of_return(printer->capture, event->image, address, &line);
	if (!line.module) {
		tw_out_text(out, "undefined");
		return;
	}
	size_t bytes = tw_name_atom(line.module->name, name, sizeof name);
	if (line.function)
		tw_out_format(out, "{%.*s,%.*s,'_'}", (int)bytes, name,
			      (int)tw_name_function_atom(line.function, function, sizeof function), function);
	else
		tw_out_format(out, "{%.*s,'+0x%llx','_'}", (int)bytes, name, (unsigned long long)line.offset);
}

/* Prints the callers, the innermost first. */
static void put_stack(struct tw_printer *printer, const struct tw_capture_event *event,
		      const struct tw_print_payload *payload)
{
	uint32_t count = tw_line_stack_count(printer->capture, event->image, payload->words, payload->count);
	tw_out_text(printer->out, ",[");
	for (uint32_t i = 0; i < count; i++) {
		tw_out_text(printer->out, i ? "," : "");
		put_address(printer, event, payload->words[i]);
	}
	if (count < payload->count)
		tw_out_text(printer->out, ",'?'");
	tw_out_text(printer->out, "]");
	tw_out_reserve(printer->out);
}

/* {M,F,A} or undefined. */
static void put_return_to(struct tw_printer *printer, const struct tw_capture_event *event,
			  struct tw_print_payload *payload)
{
	if (payload->has_terms)
		put_next_term(printer, payload);
	else if (payload->count)
		put_address(printer, event, payload->words[0]);
	else
		put_mfa(printer, event, payload);
}

static void put_gc(struct tw_out *out, unsigned kind, const struct tw_print_payload *payload)
{
	uint32_t count = tw_gc_sizes_shown(kind);
	tw_put(out, ",[", 2);
	for (uint32_t i = 0; i < count && i < payload->count; i++)
		tw_out_format(out, "%s{%s,%llu}", i ? "," : "", tw_print_gc_keys[i],
			      (unsigned long long)payload->words[i]);
	tw_put_char(out, ']');
}

/* Prints the elements after the tag: at least as many as the message has. */
static void put_elements(struct tw_printer *printer, const struct tw_capture_event *event,
			 struct tw_print_payload *payload, const struct tw_print_kind *kind)
{
	struct tw_out *out = printer->out;
	uint32_t count = tw_print_term_count(kind);
	if (!kind) {
		tw_put_char(out, ',');
		tw_put_u64(out, event->kind);
	}
	if (payload->term_count > count)
		count = payload->term_count;
	if (!payload->has_terms && tw_print_is_gc(event->kind)) {
		put_gc(out, event->kind, payload);
	} else if (!payload->has_terms && event->kind == TW_CAPTURE_SWITCH) {
		tw_put(out, ",0", 2);
	} else if (!payload->has_terms && (payload->count || !kind)) {
		tw_put_char(out, ',');
		put_list(out, payload->words, payload->count);
	} else {
		for (uint32_t i = 0; i < count; i++) {
			tw_put_char(out, ',');
			if (i < payload->term_count)
				put_next_term(printer, payload);
			else
				tw_put(out, "'?'", 3);
		}
	}
}

/* {seq_trace,Label,{send,Serial,From,To,Message}}: the label comes first, and there is no tracee. */
static void put_seq(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_print_payload *payload,
		    const struct tw_print_kind *kind)
{
	struct tw_out *out = printer->out;
	tw_put(out, "{seq_trace,", 11);
	put_next_term(printer, payload);
	tw_put(out, ",{", 2);
	tw_put(out, kind->atom, strlen(kind->atom));
	for (unsigned i = 1; i < 5; i++) {
		tw_put_char(out, ',');
		put_next_term(printer, payload);
	}
	tw_put_char(out, '}');
	put_stamp(printer, event);
	tw_out_reserve(out);
	tw_put(out, "}.\n", 3);
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	struct tw_print_payload payload;
	tw_print_payload(event, &payload);
	tw_out_reserve(out);
	if (tw_kind_is(event->kind, TW_GROUP_SEQ)) {
		put_seq(printer, event, &payload, kind);
		return;
	}
	put_open(printer, event);
	/* {monitor,Pid,Event,Info}: its tag comes first, and its event follows the pid. */
	if (event->kind == TW_CAPTURE_MONITOR)
		out->used--;
	else
		tw_put(out, kind ? kind->atom : "event", kind ? strlen(kind->atom) : 5);
	if (event->kind == TW_CAPTURE_RETURN_TO) {
		tw_put_char(out, ',');
		put_return_to(printer, event, &payload);
	} else if (tw_print_has_place(event->kind)) {
		tw_put_char(out, ',');
		put_mfa(printer, event, &payload);
		if (event->kind == TW_CAPTURE_STACK)
			put_stack(printer, event, &payload);
		else if (event->kind != TW_CAPTURE_CALL)
			put_value(printer, event, &payload);
		else if (payload.has_terms && (event->flags & TW_CAPTURE_FLAG_ARITY) && payload.term_count)
			tw_print_next_term(&payload, &(struct tw_term){0});
	} else {
		put_elements(printer, event, &payload, kind);
	}
	if (payload.has_extra) {
		struct tw_term extra;
		tw_put_char(out, ',');
		if (tw_print_next_extra(printer, event, &payload, false, &extra))
			tw_print_put_term(out, extra, printer->is_bare);
		else
			tw_out_text(out, "'?'");
	}
	if (event->flags & TW_CAPTURE_FLAG_SCHEDULER_ID) {
		const struct tw_capture_stream *stream = tw_capture_stream(printer->capture, event->stream);
		tw_put_char(out, ',');
		tw_put_u64(out, stream ? stream->scheduler_id : 0);
	}
	put_stamp(printer, event);
	tw_out_reserve(out);
	tw_put(out, "}.\n", 3);
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	struct tw_out *out = printer->out;
	tw_missing_loss(printer->capture, event, &loss);
	tw_out_reserve(out);
	tw_put(out, "{trace_ts,", 10);
	put_pid(printer, event);
	tw_put(out, ",lost,[", 7);
	bool is_next = false;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (!loss.lost[cause])
			continue;
		tw_out_format(out, "%s{%s,%llu}", is_next ? "," : "", tw_lost_cause_name(cause),
			      (unsigned long long)loss.lost[cause]);
		is_next = true;
	}
	if (loss.overwritten)
		tw_out_format(out, "%s{overwritten,%llu}", is_next ? "," : "", (unsigned long long)loss.overwritten);
	tw_put(out, "],", 2);
	tw_put_u64(out, event->time_ns);
	tw_put(out, "}.\n", 3);
}

static void put_own_time(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	tw_out_reserve(out);
	tw_put(out, "{trace_ts,", 10);
	put_pid(printer, event);
	tw_out_format(out, ",own_time,{%s,%llu},%llu}.\n", tw_capture_own_name(event->id),
		      (unsigned long long)tw_capture_own_ns(printer->capture, event),
		      (unsigned long long)event->time_ns);
}

const struct tw_print_format tw_print_erlang = {"erlang", make_place, put_event, put_loss, put_own_time, NULL};
