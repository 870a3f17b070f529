/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_dbg.c - the lines that Erlang's dbg shows: its default handler, one event a line.
 *
 *	(<0.84.0>) call lists:seq(1,3)
 *	(<0.84.0>) returned from lists:seq/2 -> [1,2,3]
 *	(<0.84.0>) <0.85.0> ! hello
 *	(<0.85.0>) << hello
 *	(<0.84.0>) spawn <0.86.0> as shop:init()
 *	(<0.86.0>) exit normal
 *
 * Other events are the tag and the elements of the message. A time is where dbg has it, ` (Timestamp: T)`, if the session requested it. dbg
 * breaks long terms into lines; here they stay on one, which is cut after TW_PRINT_LINE_BYTES.
 *
 * Source  dbg:tracer/0 of runtime_tools.
 */
#include "tools/print/print.h"
#include "views/names/messages.h"
#include "views/names/missing.h"

/* Of the terms of one line; the rest is cut. */
#define TW_PRINT_LINE_BYTES 8000

/* A line that is being written. */
struct line {
	struct tw_printer *printer;
	const struct tw_capture_event *event;
	struct tw_term message;
	size_t count; /* of the message's elements, without the stamp */
	size_t left;  /* bytes for terms */
};

static size_t make_place(const struct tw_capture_place *place, char *text, size_t capacity)
{
	return tw_name_function(place->function, text, capacity);
}

static void put(struct line *line, struct tw_term term)
{
	tw_print_put_cut(line->printer->out, term, &line->left);
}

static void text(struct line *line, const char *words)
{
	tw_out_text(line->printer->out, words);
}

/* The numbers of pids are those of each node: captures of several say which. */
static void put_tracee(struct line *line)
{
	const struct tw_capture_image *image = tw_capture_image(line->printer->capture, line->event->image);
	text(line, "(");
	tw_print_pid(line->printer, line->event);
	if (image && *image->node) {
		text(line, "@");
		tw_out_clean(line->printer->out, image->node, strlen(image->node));
	}
	text(line, ") ");
}

/* m:f(1,2), m:f/2; anything else as it is. */
static void put_function(struct line *line, struct tw_term mfa)
{
	struct tw_term last = tw_term_element(mfa, 2);
	bool is_list = tw_term_type(last) == TW_TYPE_CONS || tw_term_type(last) == TW_TYPE_NIL;
	if (tw_term_tuple_count(mfa) != 3) {
		put(line, mfa);
		return;
	}
	put(line, tw_term_element(mfa, 0));
	text(line, ":");
	put(line, tw_term_element(mfa, 1));
	text(line, is_list ? "(" : "/");
	if (!is_list)
		put(line, last);
	for (; tw_term_type(last) == TW_TYPE_CONS && line->left; last = tw_term_tail(last)) {
		put(line, tw_term_head(last));
		text(line, tw_term_type(tw_term_tail(last)) == TW_TYPE_CONS && line->left ? "," : "");
	}
	text(line, is_list ? ")" : "");
}

static bool is_atom(struct tw_term term, const char *name)
{
	return tw_term_is_same(term, tw_term_atom_z(name));
}

/* The elements from this one on, the first has number 0. */
static void put_elements(struct line *line, size_t from)
{
	for (size_t i = from; i < line->count; i++) {
		text(line, i > from ? " " : "");
		put(line, tw_term_element(line->message, i));
	}
}

static void put_call(struct line *line)
{
	text(line, "call ");
	put_function(line, tw_term_element(line->message, 3));
	if (line->count < 5)
		return;
	text(line, " (");
	put_elements(line, 4);
	text(line, ")");
}

static void put_traced(struct line *line)
{
	struct tw_term tag = tw_term_element(line->message, 2), first = tw_term_element(line->message, 3);
	put_tracee(line);
	if (is_atom(tag, "receive")) {
		text(line, "<< ");
		put_elements(line, 3);
	} else if (is_atom(tag, "send") && line->count >= 5) {
		put(line, tw_term_element(line->message, 4));
		text(line, " ! ");
		put(line, first);
	} else if (is_atom(tag, "call")) {
		put_call(line);
	} else if (is_atom(tag, "return_from") && line->count >= 5) {
		text(line, "returned from ");
		put_function(line, first);
		text(line, " -> ");
		put_elements(line, 4);
	} else if (is_atom(tag, "return_to")) {
		text(line, "returning to ");
		put_function(line, first);
	} else if (is_atom(tag, "spawn") && line->count == 5) {
		text(line, "spawn ");
		put(line, first);
		text(line, " as ");
		put_function(line, tw_term_element(line->message, 4));
	} else {
		put(line, tag);
		text(line, " ");
		put_elements(line, 3);
	}
}

/* {Tag,Serial,From,To,Message} of a token. */
static void put_token(struct line *line, struct tw_term info)
{
	struct tw_term tag = tw_term_element(info, 0), from = tw_term_element(info, 2);
	bool is_send = is_atom(tag, "send"), is_print = is_atom(tag, "print");
	if (is_print) {
		text(line, "-> ");
	} else {
		text(line, "(");
		put(line, is_send ? from : tw_term_element(info, 3));
		text(line, ") ");
		if (is_send)
			put(line, tw_term_element(info, 3));
		text(line, is_send ? " ! " : "<< ");
	}
	put(line, tw_term_element(info, 4));
	text(line, " [Serial: ");
	put(line, tw_term_element(info, 1));
	if (!is_send) {
		text(line, ", From: ");
		put(line, from);
	}
	text(line, "]");
}

static void put_message(struct line *line)
{
	size_t count = tw_term_tuple_count(line->message);
	bool is_token = is_atom(tw_term_element(line->message, 0), "seq_trace");
	bool has_stamp = is_token ? count == 4 : is_atom(tw_term_element(line->message, 0), "trace_ts");
	struct tw_term stamp = has_stamp ? tw_term_element(line->message, count - 1) : (struct tw_term){0};
	line->count = count - has_stamp;
	if (is_token) {
		text(line, "SeqTrace ");
		if (has_stamp) {
			put(line, stamp);
			text(line, " ");
		}
		text(line, "[");
		put(line, tw_term_element(line->message, 1));
		text(line, "]: ");
		put_token(line, tw_term_element(line->message, 2));
		return;
	}
	put_traced(line);
	if (has_stamp) {
		text(line, " (Timestamp: ");
		put(line, stamp);
		text(line, ")");
	}
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct line line = {.printer = printer, .event = event, .left = TW_PRINT_LINE_BYTES};
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	struct tw_named_message message;
	tw_named_message_init(&message, printer->capture, printer->stamp);
	if (tw_capture_event_message_as(printer->capture, event, &message.form, tw_print_arena(), &line.message) == 0) {
		put_message(&line);
	} else {
		/* Stacks of native calls: Erlang has no message for them. */
		put_tracee(&line);
		text(&line, kind ? kind->atom : "event");
	}
	text(&line, "\n");
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	tw_missing_loss(printer->capture, event, &loss);
	tw_out_format(printer->out, "*** Dropped %llu messages.\n", (unsigned long long)(loss.sum + loss.overwritten));
}

const struct tw_print_format tw_print_dbg = {"dbg", make_place, put_event, put_loss, NULL, NULL, NULL};
