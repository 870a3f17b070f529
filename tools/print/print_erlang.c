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

#include "tracewheel/message.h"

#include <stdio.h>

/* "{module,function,": the brace and the last comma are left out. */
static size_t make_place(const struct tw_capture_place *place, char *text, size_t capacity)
{
	return tw_name_mfa_open(place->function, text, capacity);
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

/* ---- parts ---- */

/* A line that is being written. */
struct line {
	struct tw_message_form form; /* first: converted back */
	struct tw_printer *printer;
	const struct tw_capture_event *event;
	bool has_elements; /* in the tuple that is open */
};

static void next(struct line *line)
{
	if (line->has_elements)
		tw_put_char(line->printer->out, ',');
	line->has_elements = true;
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
		      const struct tw_message_part *part)
{
	uint32_t count = tw_line_stack_count(printer->capture, event->image, part->words, part->word_count);
	tw_out_text(printer->out, "[");
	for (uint32_t i = 0; i < count; i++) {
		tw_out_text(printer->out, i ? "," : "");
		put_address(printer, event, part->words[i]);
	}
	if (count < part->word_count)
		tw_out_text(printer->out, ",'?'");
	tw_out_text(printer->out, "]");
}

static void put_arguments(struct line *line, const struct tw_message_part *part)
{
	const struct tw_layout *layout = tw_typed_layout(line->printer->capture, line->event);
	if (layout)
		tw_typed_arguments(line->printer->out, TW_TYPED_ERLANG, layout, part->words, part->word_count);
	else
		put_list(line->printer->out, part->words, part->word_count);
}

static void put_value(struct line *line, const struct tw_message_part *part)
{
	const struct tw_layout *layout = tw_typed_layout(line->printer->capture, line->event);
	struct tw_out *out = line->printer->out;
	if (!layout)
		tw_put_u64(out, part->words[0]);
	else if (!tw_typed_result(out, TW_TYPED_ERLANG, layout, part->words, part->word_count))
		tw_put(out, "'_'", 3);
}

static bool put_function(struct line *line)
{
	const struct tw_name *place = tw_print_place(line->printer, line->event);
	if (!place->bytes)
		return false;
	next(line);
	tw_put(line->printer->out, place->text + 1, place->bytes - 2);
	return true;
}

static bool put_part(struct tw_message_form *form, struct tw_message_part *part)
{
	struct line *line = (struct line *)form;
	struct tw_printer *printer = line->printer;
	if (part->what == TW_MESSAGE_OWN)
		return false;
	if (part->what == TW_MESSAGE_FUNCTION)
		return put_function(line);
	if (part->what == TW_MESSAGE_EXTRA) {
		part->elements[0] = tw_print_name_callers(printer, line->event, part->arena, part->elements[0], false);
		return true;
	}
	next(line);
	if (part->what == TW_MESSAGE_TRACEE)
		put_pid(printer, line->event);
	else if (part->what == TW_MESSAGE_ARGUMENTS)
		put_arguments(line, part);
	else if (part->what == TW_MESSAGE_VALUE)
		put_value(line, part);
	else if (part->what == TW_MESSAGE_ADDRESS)
		put_address(printer, line->event, part->words[0]);
	else
		put_stack(printer, line->event, part);
	tw_out_reserve(printer->out);
	return true;
}

/* ---- elements ---- */

static void open_tuple(struct tw_message_form *form)
{
	struct line *line = (struct line *)form;
	next(line);
	tw_put_char(line->printer->out, '{');
	line->has_elements = false;
}

static void close_tuple(struct tw_message_form *form)
{
	struct line *line = (struct line *)form;
	tw_put_char(line->printer->out, '}');
	line->has_elements = true;
}

/* Tags come again and again: their texts are kept by the atom. */
static void put_atom(struct tw_out *out, struct tw_term atom)
{
	static struct {
		struct tw_term atom;
		size_t bytes;
		char text[64];
	} known[64];
	size_t at = atom.word / 16 % (sizeof known / sizeof *known);
	if (!tw_term_is_same(known[at].atom, atom)) {
		char text[TW_OUT_SLACK / 4];
		size_t bytes = tw_term_format(atom, TW_PRINT_CONSULT, text, sizeof text);
		if (bytes > sizeof known->text) {
			tw_put(out, text, bytes);
			return;
		}
		known[at].atom = atom;
		known[at].bytes = bytes;
		memcpy(known[at].text, text, bytes);
	}
	tw_put(out, known[at].text, known[at].bytes);
}

static void put_element(struct tw_message_form *form, struct tw_term term)
{
	struct line *line = (struct line *)form;
	struct tw_out *out = line->printer->out;
	uint64_t number;
	next(line);
	if (tw_term_get_uint64(term, &number) == 0)
		tw_put_u64(out, number);
	else if (tw_term_type(term) == TW_TYPE_ATOM)
		put_atom(out, term);
	else
		tw_print_put_term(out, term, line->printer->is_bare);
	tw_out_reserve(out);
}

/* ---- lines ---- */

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct line line = {.form = {.part = put_part,
				     .open = open_tuple,
				     .element = put_element,
				     .close = close_tuple,
				     .stamp = printer->stamp,
				     .is_view = true},
			    .printer = printer,
			    .event = event};
	tw_out_reserve(printer->out);
	tw_capture_event_message_as(printer->capture, event, &line.form, tw_print_arena(), &(struct tw_term){0});
	tw_put(printer->out, ".\n", 2);
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

const struct tw_print_format tw_print_erlang = {"erlang", make_place, put_event, put_loss, put_own_time, NULL, NULL};
