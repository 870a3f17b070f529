/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_payload.c - names of processes, and the terms of a payload as text.
 */
#include "tools/print/print.h"

#include "tracewheel/term.h"

#include <stdio.h>

/* ---- processes ---- */

void tw_print_pid(struct tw_printer *printer, const struct tw_capture_event *event)
{
	if (event->tracee_id != printer->pid_tracee || event->image != printer->pid_image) {
		printer->pid_bytes = tw_name_pid(printer->capture, event->image, event->tracee_id, printer->pid,
						 sizeof printer->pid);
		printer->pid_image = event->image;
		printer->pid_tracee = event->tracee_id;
	}
	tw_put(printer->out, printer->pid, printer->pid_bytes);
}

void tw_print_process(struct tw_printer *printer, const struct tw_capture_event *event)
{
	if (event->tracee_id != printer->process_tracee || event->image != printer->process_image) {
		char name[TW_THREAD_NAME_BYTES];
		size_t bytes = tw_name_pid(printer->capture, event->image, event->tracee_id, printer->process,
					   sizeof printer->process);
		tw_process_name(printer->capture, event->image, event->tracee_id, name);
		bytes += (size_t)snprintf(printer->process + bytes, sizeof printer->process - bytes, "%s%s",
					  *name ? " " : "", name);
		printer->process_bytes = bytes;
		printer->process_image = event->image;
		printer->process_tracee = event->tracee_id;
	}
	tw_put(printer->out, printer->process, printer->process_bytes);
}

/* ---- terms ---- */

bool tw_print_next_extra(const struct tw_printer *printer, const struct tw_capture_event *event,
			 struct tw_message_payload *payload, bool is_for_people, struct tw_term *out)
{
	if (!tw_print_next_term(payload, out))
		return false;
	*out = tw_print_name_callers(printer, event, payload->arena, *out, is_for_people);
	return true;
}

/* ---- text ---- */

struct text_sink {
	struct tw_sink sink; /* the first member: converted back to this structure */
	struct tw_out *out;
	size_t left; /* the bytes that may still be written */
	bool is_json;
	bool is_cut;
	char buffer[1024];
};

static int drain(struct tw_sink *sink)
{
	struct text_sink *text = (struct text_sink *)sink;
	size_t bytes = (size_t)(sink->at - sink->start);
	if (bytes > text->left) {
		/* Not inside a character. */
		bytes = text->left;
		while (bytes && ((unsigned char)sink->start[bytes] & 0xc0) == 0x80)
			bytes--;
		text->is_cut = true;
	}
	if (text->is_json) {
		/* Erlang's printer has already escaped control characters. */
		tw_out_reserve(text->out);
		for (size_t i = 0; i < bytes; i++) {
			if (sink->start[i] == '"' || sink->start[i] == '\\')
				tw_put_char(text->out, '\\');
			tw_put_char(text->out, sink->start[i]);
		}
	} else {
		tw_out_bytes(text->out, sink->start, bytes);
	}
	text->left -= bytes;
	sink->at = sink->start;
	return text->is_cut ? -1 : 0;
}

static void put_term(struct text_sink *text, struct tw_term term, enum tw_print_form form)
{
	text->sink = (struct tw_sink){text->buffer, text->buffer, text->buffer + sizeof text->buffer, drain, NULL};
	tw_term_print(term, form | TW_PRINT_NODES, &text->sink);
	if (!text->is_cut)
		drain(&text->sink);
	if (text->is_cut)
		tw_out_text(text->out, "...");
}

void tw_print_put_term(struct tw_out *out, struct tw_term term, bool is_bare)
{
	struct text_sink text = {.out = out, .left = SIZE_MAX};
	put_term(&text, term, is_bare ? TW_PRINT_WRITE : TW_PRINT_CONSULT);
}

void tw_print_put_cut(struct tw_out *out, struct tw_term term, size_t *left_bytes)
{
	struct text_sink text = {.out = out, .left = *left_bytes};
	if (!*left_bytes)
		return;
	put_term(&text, term, TW_PRINT_PRETTY);
	*left_bytes = text.is_cut ? 0 : text.left;
}

void tw_print_put_json(struct tw_out *out, struct tw_term term)
{
	struct text_sink text = {.out = out, .left = SIZE_MAX, .is_json = true};
	tw_out_bytes(out, "\"", 1);
	put_term(&text, term, TW_PRINT_PRETTY);
	tw_out_bytes(out, "\"", 1);
}

static bool is_arity_or_list(struct tw_term term)
{
	enum tw_term_type type = tw_term_type(term);
	return type == TW_TYPE_INTEGER || type == TW_TYPE_CONS || type == TW_TYPE_NIL || type == TW_TYPE_ATOM;
}

static bool is_mfa(struct tw_term term)
{
	return tw_term_tuple_count(term) == 3 && is_arity_or_list(tw_term_element(term, 2)) &&
	       tw_term_type(tw_term_element(term, 0)) == TW_TYPE_ATOM &&
	       tw_term_type(tw_term_element(term, 1)) == TW_TYPE_ATOM;
}

void tw_print_put_text(struct tw_out *out, struct tw_term term)
{
	struct text_sink text = {.out = out, .left = TW_PRINT_TEXT_BYTES};
	struct tw_term last = tw_term_element(term, 2);
	if (!is_mfa(term)) {
		put_term(&text, term, TW_PRINT_PRETTY);
		return;
	}
	put_term(&text, tw_term_element(term, 0), TW_PRINT_PRETTY);
	tw_out_text(out, ":");
	put_term(&text, tw_term_element(term, 1), TW_PRINT_PRETTY);
	if (tw_term_type(last) == TW_TYPE_CONS || tw_term_type(last) == TW_TYPE_NIL) {
		tw_print_put_arguments(out, last);
		return;
	}
	tw_out_text(out, "/");
	put_term(&text, last, TW_PRINT_PRETTY);
}

void tw_print_put_arguments(struct tw_out *out, struct tw_term list)
{
	struct text_sink text = {.out = out, .left = TW_PRINT_TEXT_BYTES};
	const char *between = "(";
	for (; tw_term_type(list) == TW_TYPE_CONS && !text.is_cut; list = tw_term_tail(list)) {
		tw_out_text(out, between);
		put_term(&text, tw_term_head(list), TW_PRINT_PRETTY);
		between = ", ";
	}
	tw_out_text(out, *between == '(' ? "(" : "");
	if (tw_term_type(list) != TW_TYPE_NIL && !text.is_cut) {
		tw_out_text(out, " | ");
		put_term(&text, list, TW_PRINT_PRETTY);
	}
	tw_out_text(out, ")");
}

/* ---- words ---- */

bool tw_print_typed(struct tw_printer *printer, const struct tw_capture_event *event,
		    const struct tw_message_payload *payload, enum tw_typed_form form)
{
	const struct tw_layout *layout = tw_typed_layout(printer->capture, event);
	bool is_call = event->kind == TW_CAPTURE_CALL, is_json = form == TW_TYPED_JSON;
	struct tw_out *out = printer->out;
	if (!layout || !payload->count)
		return false;
	if (is_call) {
		tw_out_text(out, is_json ? "," : " ");
		tw_typed_arguments(out, form, layout, payload->words, payload->count);
		return true;
	}
	uint64_t mark = tw_out_mark(out);
	tw_out_text(out, is_json ? ",\"value\":" : " -> ");
	if (!tw_typed_result(out, form, layout, payload->words, payload->count))
		tw_out_cancel(out, mark);
	return true;
}
