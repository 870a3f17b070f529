/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttb_write.c - an event of a capture becomes a trace message of Erlang, as `print --format erlang` prints it.
 *
 * Pids are those of nonode@nohost: a node without a name takes them as its own.
 */
#include "views/names/names.h"
#include "views/names/typed.h"
#include "tools/convert/convert.h"

#include "tracewheel/error.h"
#include "tracewheel/term.h"

#include <stdlib.h>

#define ARENA_BYTES_MAX ((size_t)1 << 30)
#define ELEMENTS_MAX	24

/* A message that is being made; the arena's terms live until the next one. */
static struct tw_arena arena;
static bool has_arena;
static struct tw_term elements[ELEMENTS_MAX];
static size_t count;

/* The encoded message, in memory that grows. */
static char *encoded;
static size_t encoded_bytes;

static void put(struct tw_term term)
{
	if (count < ELEMENTS_MAX)
		elements[count++] = tw_term_is_none(term) ? tw_term_atom_z("?") : term;
}

static void put_number(uint64_t value)
{
	put(tw_term_unsigned(&arena, value));
}

static int drain(struct tw_sink *sink)
{
	size_t used = (size_t)(sink->at - sink->start), bytes = encoded_bytes ? encoded_bytes * 2 : 65536;
	char *more = realloc(encoded, bytes);
	if (!more)
		return TW_ENOMEM;
	encoded = sink->start = more;
	encoded_bytes = bytes;
	sink->at = more + used;
	sink->end = more + bytes;
	return 0;
}

static void put_record(struct tw_out *out, unsigned op, uint32_t size, const void *data)
{
	const uint8_t head[TW_TTB_HEAD_BYTES] = {(uint8_t)op, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
						 (uint8_t)(size >> 8), (uint8_t)size};
	tw_out_bytes(out, head, sizeof head);
	if (data)
		tw_out_bytes(out, data, size);
}

static int write_message(struct tw_out *out)
{
	struct tw_term message = tw_term_tuple(&arena, elements, count);
	struct tw_sink sink = {encoded, encoded, encoded + encoded_bytes, drain, NULL};
	if (tw_term_is_none(message))
		return TW_ENOMEM;
	int error = tw_etf_encode(message, (struct tw_term){0}, &sink);
	if (error)
		return error;
	if ((uint64_t)(sink.at - sink.start) > UINT32_MAX)
		return TW_ELIMIT;
	put_record(out, TW_TTB_TERM, (uint32_t)(sink.at - sink.start), sink.start);
	return 0;
}

/* ---- elements ---- */

static struct tw_term pid_of(const struct tw_ttb_export *export, const struct tw_capture_event *event)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(export->capture, event->image, event->tracee_id);
	if (!tracee)
		return tw_term_pid(&arena, 0, 0);
	return tracee->is_port ? tw_term_port(&arena, tracee->pid_number)
			       : tw_term_pid(&arena, tracee->pid_number, tracee->pid_serial);
}

/* Atoms have at most 255 characters. */
static struct tw_term atom_of(const char *name)
{
	struct tw_term atom = tw_term_atom_z(name);
	return tw_term_is_none(atom) ? tw_term_atom(name, tw_utf8_part(name, strnlen(name, 255))) : atom;
}

static struct tw_term next_term(struct tw_print_payload *payload)
{
	struct tw_term term;
	return tw_print_next_term(payload, &term) ? term : tw_term_atom_z("?");
}

static struct tw_term list_of(const uint64_t *words, uint32_t word_count)
{
	struct tw_term list = tw_term_nil();
	for (uint32_t i = word_count; i-- > 0;)
		list = tw_term_cons(&arena, tw_term_unsigned(&arena, words[i]), list);
	return list;
}

/* Words with types from debug information: their text is a term. */
static struct tw_term typed(const struct tw_layout *layout, const struct tw_print_payload *payload, bool is_call)
{
	static struct tw_out text;
	struct tw_term term;
	bool is_known = true;
	tw_out_init(&text, -1);
	if (is_call)
		tw_typed_arguments(&text, TW_TYPED_ERLANG, layout, payload->words, payload->count);
	else
		is_known = tw_typed_result(&text, TW_TYPED_ERLANG, layout, payload->words, payload->count);
	if (!is_known || tw_term_parse(&arena, text.data, text.used, &term, NULL))
		return tw_term_atom_z("_");
	return term;
}

/* {M,F,Args} of a call with arguments, {M,F,Arity} of all others. */
static void put_function(const struct tw_ttb_export *export, const struct tw_capture_event *event,
			 struct tw_print_payload *payload)
{
	const struct tw_capture_place *place = tw_capture_place(export->capture, event->image, event->id);
	const struct tw_capture_function *function = place ? place->function : NULL;
	const struct tw_layout *layout = tw_typed_layout(export->capture, event);
	bool is_call = event->kind == TW_CAPTURE_CALL, has_arity = event->flags & TW_CAPTURE_FLAG_ARITY;
	struct tw_term last;
	if (is_call && payload->has_terms && payload->term_count) {
		last = next_term(payload);
		if (has_arity)
			last = tw_term_atom_z("_");
	} else if (is_call && !has_arity && layout && payload->count) {
		last = typed(layout, payload, true);
	} else if (is_call && !has_arity && payload->count) {
		last = list_of(payload->words, payload->count);
	} else {
		last = tw_term_atom_z("_");
	}
	if (tw_term_is_same(last, tw_term_atom_z("_")) && function && function->arity != TW_CAPTURE_ARITY_UNKNOWN)
		last = tw_term_integer(&arena, function->arity);
	put(tw_term_tuple(&arena,
			  (struct tw_term[]){function && function->module ? atom_of(function->module->name)
									  : tw_term_atom_z("?"),
					     function ? atom_of(tw_name_shown(function->name))
						      : tw_term_integer(&arena, event->id),
					     last},
			  3));
}

static void put_value(const struct tw_ttb_export *export, const struct tw_capture_event *event,
		      struct tw_print_payload *payload)
{
	const struct tw_layout *layout = tw_typed_layout(export->capture, event);
	struct tw_term value = tw_term_atom_z("_");
	if (payload->has_terms) {
		put(next_term(payload));
		return;
	}
	if (payload->count)
		value = layout ? typed(layout, payload, false) : tw_term_unsigned(&arena, payload->words[0]);
	if (event->kind == TW_CAPTURE_EXCEPTION_FROM)
		value = tw_term_tuple(&arena, (struct tw_term[]){tw_term_atom_z("error"), value}, 2);
	put(value);
}

static void put_collection(unsigned kind, const struct tw_print_payload *payload)
{
	uint32_t keys = tw_gc_sizes_shown(kind);
	struct tw_term list = tw_term_nil();
	for (uint32_t i = keys < payload->count ? keys : payload->count; i-- > 0;)
		list = tw_term_cons(&arena,
				    tw_term_tuple(&arena,
						  (struct tw_term[]){tw_term_atom_z(tw_print_gc_keys[i]),
								     tw_term_unsigned(&arena, payload->words[i])},
						  2),
				    list);
	put(list);
}

/* The elements of the message after its tag. */
static void put_elements(const struct tw_ttb_export *export, const struct tw_capture_event *event,
			 struct tw_print_payload *payload)
{
	if (event->kind == TW_CAPTURE_RETURN_TO && payload->has_terms) {
		put(next_term(payload));
	} else if (event->kind == TW_CAPTURE_RETURN_TO && payload->count) {
		put(tw_term_atom_z("undefined"));
	} else if (event->kind < TW_CAPTURE_TERM_FIRST) {
		put_function(export, event, payload);
		if (event->kind == TW_CAPTURE_RETURN_FROM || event->kind == TW_CAPTURE_EXCEPTION_FROM)
			put_value(export, event, payload);
	} else if (tw_print_is_gc(event->kind) && !payload->has_terms) {
		put_collection(event->kind, payload);
	} else if (!payload->has_terms && payload->count) {
		put(list_of(payload->words, payload->count));
	} else {
		uint32_t terms = tw_print_term_count(tw_print_kind(event->kind));
		if (terms < payload->term_count)
			terms = payload->term_count;
		for (uint32_t i = 0; i < terms; i++)
			put(i < payload->term_count ? next_term(payload) : tw_term_atom_z("?"));
	}
}

static void put_stamp(const struct tw_ttb_export *export, const struct tw_capture_event *event, unsigned stamp)
{
	struct tw_term parts[3];
	if (stamp == TW_PRINT_STAMP_NONE)
		return;
	if (stamp == TW_PRINT_STAMP_WALL) {
		uint64_t us = (event->has_cpu_time && export->stamp < 0
				       ? event->cpu_ns
				       : tw_capture_wall_ns(export->capture, event->time_ns)) /
			      1000;
		const uint64_t numbers[] = {us / 1000000000000, us / 1000000 % 1000000, us % 1000000};
		for (size_t i = 0; i < 3; i++)
			parts[i] = tw_term_unsigned(&arena, numbers[i]);
		put(tw_term_tuple(&arena, parts, 3));
	} else if (stamp == TW_PRINT_STAMP_STRICT && event->payload_words) {
		parts[0] = tw_term_unsigned(&arena, event->time_ns);
		parts[1] = tw_term_unsigned(&arena, event->payload[0]);
		put(tw_term_tuple(&arena, parts, 2));
	} else {
		put_number(event->time_ns);
	}
}

/* {seq_trace,Label,{Tag,Serial,From,To,Message}} */
static void put_seq(const struct tw_capture_event *event, struct tw_print_payload *payload)
{
	struct tw_term info[5];
	put(tw_term_atom_z("seq_trace"));
	put(next_term(payload));
	info[0] = tw_term_atom_z(tw_print_kind(event->kind)->word + sizeof "seq_" - 1);
	for (unsigned i = 1; i < 5; i++)
		info[i] = next_term(payload);
	put(tw_term_tuple(&arena, info, 5));
}

static void put_trace(const struct tw_ttb_export *export, const struct tw_capture_event *event,
		      struct tw_print_payload *payload, unsigned stamp)
{
	bool is_monitor = event->kind == TW_CAPTURE_MONITOR;
	put(tw_term_atom_z(is_monitor ? "monitor" : stamp == TW_PRINT_STAMP_NONE ? "trace" : "trace_ts"));
	put(pid_of(export, event));
	if (!is_monitor)
		put(tw_term_atom_z(tw_print_kind(event->kind)->word));
	put_elements(export, event, payload);
	if (payload->has_extra)
		put(next_term(payload));
	if (event->flags & TW_CAPTURE_FLAG_SCHEDULER_ID) {
		const struct tw_capture_stream *stream = tw_capture_stream(export->capture, event->stream);
		put_number(stream ? stream->scheduler_id : 0);
	}
}

static void write_dropped(struct tw_ttb_export *export, const struct tw_capture_event *event)
{
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	uint64_t left = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		left += loss->lost[cause];
	export->dropped += left;
	while (left) {
		uint32_t part = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
		put_record(export->out, TW_TTB_DROPPED, part, NULL);
		left -= part;
	}
}

int tw_ttb_export_event(struct tw_ttb_export *export, const struct tw_capture_event *event)
{
	struct tw_print_payload payload;
	unsigned stamp = export->stamp < 0 ? event->flags & TW_CAPTURE_STAMP_MASK : (unsigned)export->stamp;
	if (event->kind == TW_CAPTURE_LOSS) {
		write_dropped(export, event);
		return 0;
	}
	/* Stacks of native calls, and kinds of later versions: Erlang has no message for them. */
	if (tw_kind_is(event->kind, TW_GROUP_RECORD) || !tw_print_kind(event->kind))
		return 0;
	if (has_arena)
		tw_arena_reset(&arena);
	else
		tw_arena_init(&arena, ARENA_BYTES_MAX);
	has_arena = true;
	count = 0;
	tw_print_payload_take(event, &payload);
	if (tw_kind_is(event->kind, TW_GROUP_SEQ))
		put_seq(event, &payload);
	else
		put_trace(export, event, &payload, stamp);
	if (event->kind != TW_CAPTURE_MONITOR)
		put_stamp(export, event, stamp);
	export->events++;
	return write_message(export->out);
}

void tw_ttb_export_fini(void)
{
	if (has_arena)
		tw_arena_fini(&arena);
	has_arena = false;
	free(encoded);
	encoded = NULL;
	encoded_bytes = 0;
}
