/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_payload.c - names of kinds of events and processes, and the terms of a payload as text.
 */
#include "tools/print/print.h"

#include "tracewheel/term.h"

#include <stdio.h>

static const struct tw_print_kind kinds[] = {
	[TW_CAPTURE_SWITCH] = {"in", "in", 0},
	[TW_CAPTURE_CALL] = {"call", "call", 0},
	[TW_CAPTURE_RETURN_FROM] = {"return_from", "return_from", 0},
	[TW_CAPTURE_EXCEPTION_FROM] = {"exception_from", "exception_from", 0},
	[TW_CAPTURE_RETURN_TO] = {"return_to", "return_to", 0},
	[TW_CAPTURE_STACK] = {"stack", "stack", 0},
	[TW_CAPTURE_SEND] = {"send", "send", 2},
	[TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS] = {"send_to_non_existing_process", "send_to_non_existing_process", 2},
	[TW_CAPTURE_RECEIVE] = {"receive", "'receive'", 1},
	[TW_CAPTURE_SPAWN] = {"spawn", "spawn", 2},
	[TW_CAPTURE_SPAWNED] = {"spawned", "spawned", 2},
	[TW_CAPTURE_EXIT] = {"exit", "exit", 1},
	[TW_CAPTURE_REGISTER] = {"register", "register", 1},
	[TW_CAPTURE_UNREGISTER] = {"unregister", "unregister", 1},
	[TW_CAPTURE_LINK] = {"link", "link", 1},
	[TW_CAPTURE_UNLINK] = {"unlink", "unlink", 1},
	[TW_CAPTURE_GETTING_LINKED] = {"getting_linked", "getting_linked", 1},
	[TW_CAPTURE_GETTING_UNLINKED] = {"getting_unlinked", "getting_unlinked", 1},
	[TW_CAPTURE_IN] = {"in", "in", 1},
	[TW_CAPTURE_OUT] = {"out", "out", 1},
	[TW_CAPTURE_IN_EXITING] = {"in_exiting", "in_exiting", 1},
	[TW_CAPTURE_OUT_EXITING] = {"out_exiting", "out_exiting", 1},
	[TW_CAPTURE_OUT_EXITED] = {"out_exited", "out_exited", 1},
	[TW_CAPTURE_GC_MINOR_START] = {"gc_minor_start", "gc_minor_start", 0},
	[TW_CAPTURE_GC_MINOR_END] = {"gc_minor_end", "gc_minor_end", 0},
	[TW_CAPTURE_GC_MAJOR_START] = {"gc_major_start", "gc_major_start", 0},
	[TW_CAPTURE_GC_MAJOR_END] = {"gc_major_end", "gc_major_end", 0},
	[TW_CAPTURE_GC_MAX_HEAP_SIZE] = {"gc_max_heap_size", "gc_max_heap_size", 0},
	[TW_CAPTURE_OPEN] = {"open", "open", 2},
	[TW_CAPTURE_CLOSED] = {"closed", "closed", 1},
	[TW_CAPTURE_SEQ_SEND] = {"seq_send", "send", 5},
	[TW_CAPTURE_SEQ_RECEIVE] = {"seq_receive", "'receive'", 5},
	[TW_CAPTURE_SEQ_PRINT] = {"seq_print", "print", 5},
	[TW_CAPTURE_MONITOR] = {"monitor", "monitor", 2},
};

const struct tw_print_kind *tw_print_kind(unsigned kind)
{
	return kind < sizeof kinds / sizeof *kinds && kinds[kind].word ? &kinds[kind] : NULL;
}

const char *const tw_print_gc_keys[TW_PRINT_GC_KEYS] = {"heap_size",
							"heap_block_size",
							"old_heap_size",
							"old_heap_block_size",
							"stack_size",
							"recent_size",
							"mbuf_size",
							"bin_vheap_size",
							"bin_vheap_block_size",
							"bin_old_vheap_size",
							"bin_old_vheap_block_size",
							"wordsize"};

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
			 struct tw_print_payload *payload, bool is_for_people, struct tw_term *out)
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
	tw_term_print(term, form, &text->sink);
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

void tw_print_put_json(struct tw_out *out, struct tw_term term)
{
	struct text_sink text = {.out = out, .left = SIZE_MAX, .is_json = true};
	tw_out_bytes(out, "\"", 1);
	put_term(&text, term, TW_PRINT_PRETTY);
	tw_out_bytes(out, "\"", 1);
}

static bool is_mfa(struct tw_term term)
{
	return tw_term_tuple_count(term) == 3 && tw_term_type(tw_term_element(term, 0)) == TW_TYPE_ATOM &&
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
		    const struct tw_print_payload *payload, enum tw_typed_form form)
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
