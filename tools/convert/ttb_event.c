/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttb_event.c - a trace message of Erlang becomes an event of a capture.
 *
 *	{trace, Pid, Tag, Element..., [X], [Scheduler]}
 *	{trace_ts, Pid, Tag, Element..., [X], [Scheduler], Stamp}
 *	{seq_trace, Label, {Tag, Serial, From, To, Message}}, the same with Stamp
 *	{monitor, Pid, Event, Info}
 *
 * The payloads are those that the tracer inside the VM writes (docs/format.md). X is of {message,X}. A message without a
 * stamp has the time of the one before it.
 */
#include "views/names/names.h"
#include "tools/convert/convert.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"
#include "tracewheel/term.h"

#include <stdlib.h>

/* Erlang's monotonic time begins there: times and unique integers below 0 are counted from it. */
#define MONOTONIC_BEGIN (-(INT64_C(1) << 59))
#define WORDS_MAX	TW_PRODUCER_WORDS_MAX
/* As the tracer in the VM: the space kept for each term after the first, and the most arguments that are words. */
#define LATER_TERM_BYTES   512
#define ARGUMENT_WORDS_MAX 16
#define ARENA_BYTES_MAX	   ((size_t)1 << 30)
#define TERMS_MAX	   5

/* ---- tables by words ---- */

struct table {
	struct entry {
		uint64_t key[3];
		void *value;
	} * entries;
	uint32_t count, capacity;
	struct tw_map by_key;
};

/* The value of a key: a block of so many bytes, zeroed when it is new. NULL: no memory. */
static void *value_of(struct table *table, const uint64_t key[3], size_t bytes, bool *is_new)
{
	uint64_t hash = tw_hash_word(tw_hash_word(key[0], key[1]), key[2]);
	uint32_t at = tw_map_find(&table->by_key, hash, i, memcmp(table->entries[i].key, key, 3 * sizeof *key) == 0);
	*is_new = at == TW_MAP_NONE;
	if (!*is_new)
		return table->entries[at].value;
	void *value = tw_grow(table->entries, table->count, table->capacity) ? calloc(1, bytes) : NULL;
	if (!value || !tw_map_add(&table->by_key, hash, table->count)) {
		free(value);
		return NULL;
	}
	table->entries[table->count++] = (struct entry){{key[0], key[1], key[2]}, value};
	return value;
}

static void free_table(struct table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free(table->entries[i].value);
	free(table->entries);
	tw_map_fini(&table->by_key);
}

/* ---- stamps ---- */

struct stamp {
	unsigned kind;	 /* TW_PRINT_STAMP_* */
	uint64_t time;	 /* nanoseconds */
	uint64_t unique; /* TW_PRINT_STAMP_STRICT */
};

static bool take_count(struct tw_term term, uint64_t *out)
{
	int64_t value;
	if (!tw_term_get_uint64(term, out))
		return true;
	if (tw_term_get_int64(term, &value) || value < MONOTONIC_BEGIN)
		return false;
	*out = (uint64_t)value - (uint64_t)MONOTONIC_BEGIN;
	return true;
}

static bool take_stamp(struct tw_term term, struct stamp *out)
{
	uint64_t parts[3];
	size_t count = tw_term_tuple_count(term);
	if (take_count(term, &out->time)) {
		out->kind = TW_PRINT_STAMP_MONOTONIC;
		return true;
	}
	for (size_t i = 0; i < count && i < 3; i++) {
		if (!take_count(tw_term_element(term, i), &parts[i]))
			return false;
	}
	if (count == 2)
		*out = (struct stamp){TW_PRINT_STAMP_STRICT, parts[0], parts[1]};
	else if (count == 3)
		*out = (struct stamp){TW_PRINT_STAMP_WALL,
				      ((parts[0] * 1000000 + parts[1]) * 1000000 + parts[2]) * 1000, 0};
	return count == 2 || count == 3;
}

/* ---- messages ---- */

static bool is_atom(struct tw_term term, const char *name)
{
	return tw_term_is_same(term, tw_term_atom_z(name));
}

struct message {
	struct tw_term term;
	size_t count;	    /* of elements, without the stamp */
	struct stamp stamp; /* kind TW_PRINT_STAMP_NONE: none */
	bool is_seq;
};

static bool take_message(struct tw_term term, struct message *out)
{
	size_t count = tw_term_tuple_count(term);
	struct tw_term tag = tw_term_element(term, 0);
	*out = (struct message){.term = term, .count = count};
	if (is_atom(tag, "seq_trace")) {
		out->is_seq = true;
		if (count == 3)
			return true;
		out->count = 3;
		return count == 4 && take_stamp(tw_term_element(term, 3), &out->stamp);
	}
	if (count < 4)
		return false;
	if (is_atom(tag, "trace") || is_atom(tag, "monitor"))
		return true;
	out->count--;
	return is_atom(tag, "trace_ts") && take_stamp(tw_term_element(term, count - 1), &out->stamp);
}

static bool is_process(struct tw_term term)
{
	return tw_term_type(term) == TW_TYPE_PID || tw_term_type(term) == TW_TYPE_PORT;
}

void tw_ttb_survey_term(struct tw_ttb_survey *survey, const uint8_t *bytes, size_t count)
{
	struct tw_identifier parts;
	struct message message;
	struct tw_arena arena;
	struct tw_term term;
	tw_arena_init(&arena, ARENA_BYTES_MAX);
	if (tw_etf_decode(&arena, bytes, count, NULL, NULL, &term) || !take_message(term, &message))
		goto end;
	bool is_wall = message.stamp.kind == TW_PRINT_STAMP_WALL;
	if (is_wall && !survey->has_wall) {
		survey->has_wall = true;
		survey->wall_ns = message.stamp.time;
	} else if (message.stamp.kind && !is_wall && !(survey->has_wall && survey->has_monotonic)) {
		/* The last one before the first time of day. */
		survey->has_monotonic = true;
		survey->monotonic_ns = message.stamp.time;
	}
	if (!message.is_seq && !survey->has_node && is_process(tw_term_element(term, 1)) &&
	    !tw_term_get_identifier(tw_term_element(term, 1), &parts)) {
		survey->has_node = true;
		survey->node = parts.node;
	}
end:
	tw_arena_fini(&arena);
}

/* ---- events ---- */

struct tw_ttb_import {
	struct tw_capture_writer *writer;
	struct tw_etf_options decoding;
	struct tw_arena arena;
	struct table modules, functions, processes;
	uint64_t wall_offset_ns;
	uint64_t now_ns;
	uint32_t stream; /* of the last event */
	/* The event that is being made. */
	struct tw_producer_event event;
	uint64_t words[WORDS_MAX];
};

struct function {
	uint32_t id;
};

struct tw_ttb_import *tw_ttb_import_create(struct tw_capture_writer *writer, const struct tw_ttb_survey *survey,
					   uint64_t start_ns, uint64_t wall_offset_ns)
{
	struct tw_ttb_import *import = calloc(1, sizeof *import);
	if (!import)
		return NULL;
	import->writer = writer;
	import->decoding.node = survey->node;
	import->wall_offset_ns = wall_offset_ns;
	import->now_ns = start_ns;
	tw_arena_init(&import->arena, ARENA_BYTES_MAX);
	return import;
}

void tw_ttb_import_destroy(struct tw_ttb_import *import)
{
	if (!import)
		return;
	free_table(&import->modules);
	free_table(&import->functions);
	free_table(&import->processes);
	tw_arena_fini(&import->arena);
	free(import);
}

static struct tw_producer_name name_of(struct tw_term atom)
{
	struct tw_producer_name name = {0};
	name.text = tw_term_atom_name(atom, &name.bytes);
	return name;
}

/* {M,F,Arity} or {M,F,Args}: TW_EFORMAT if it is neither. *args: none if it has an arity. */
static int take_function(struct tw_ttb_import *import, struct tw_term mfa, struct tw_term *args)
{
	struct tw_term module = tw_term_element(mfa, 0), name = tw_term_element(mfa, 1), last = tw_term_element(mfa, 2);
	size_t arity;
	uint64_t number;
	bool is_new;
	*args = (struct tw_term){0};
	if (tw_term_tuple_count(mfa) != 3 || tw_term_type(module) != TW_TYPE_ATOM || tw_term_type(name) != TW_TYPE_ATOM)
		return TW_EFORMAT;
	if (!tw_term_get_uint64(last, &number) && number <= 255)
		arity = number;
	else if (!tw_term_list_count(last, &arity))
		*args = last;
	else if (is_atom(last, "_"))
		arity = TW_CAPTURE_ARITY_UNKNOWN;
	else
		return TW_EFORMAT;
	struct function *known = value_of(&import->modules, (uint64_t[3]){module.word}, sizeof *known, &is_new);
	int error = known ? 0 : TW_ENOMEM;
	if (!error && is_new)
		error = tw_capture_writer_define_module(import->writer, name_of(module), &known->id);
	if (error)
		return error;
	uint32_t module_id = known->id;
	known = value_of(&import->functions, (uint64_t[3]){module.word, name.word, arity}, sizeof *known, &is_new);
	if (!known)
		return TW_ENOMEM;
	if (is_new)
		error = tw_capture_writer_define_function(import->writer, module_id, name_of(name), (unsigned)arity,
							  &known->id);
	import->event.id = known->id;
	return error;
}

/* A process or port by its pid. NULL: *error says why. */
static struct tw_producer_process *take_process(struct tw_ttb_import *import, struct tw_term pid, int *error)
{
	struct tw_identifier parts;
	bool is_port = tw_term_type(pid) == TW_TYPE_PORT, is_new;
	*error = TW_EFORMAT;
	if (!is_process(pid) || tw_term_get_identifier(pid, &parts))
		return NULL;
	*error = TW_ENOMEM;
	struct tw_producer_process *process =
		value_of(&import->processes, (uint64_t[3]){1u + is_port, parts.words[0], parts.words[1]},
			 sizeof *process, &is_new);
	if (!process)
		return NULL;
	*error = is_new ? tw_capture_writer_define_process(import->writer, is_port,
							   is_port ? parts.words[0] | (uint64_t)parts.words[1] << 32
								   : parts.words[0],
							   is_port ? 0 : parts.words[1], (struct tw_producer_name){0},
							   process)
			: 0;
	return *error ? NULL : process;
}

static int name_process(struct tw_ttb_import *import, const struct tw_producer_process *process, struct tw_term pid,
			struct tw_term name)
{
	struct tw_identifier parts;
	if (tw_term_type(name) != TW_TYPE_ATOM || tw_term_get_identifier(pid, &parts))
		return 0;
	bool is_port = tw_term_type(pid) == TW_TYPE_PORT;
	return tw_capture_writer_name_process(import->writer, process, is_port, parts.words[0],
					      is_port ? 0 : parts.words[1], name_of(name));
}

/* ---- payloads ---- */

/* Encodes a term into at most so many bytes, cut if need be: returns those used. */
static size_t encode(struct tw_ttb_import *import, struct tw_term term, uint8_t *to, size_t max)
{
	for (size_t limit = max * 2;; limit /= 2) {
		struct tw_sink sink = {.start = (char *)to, .at = (char *)to, .end = (char *)to + max};
		if (!tw_etf_encode(term, (struct tw_term){0}, &sink))
			return (size_t)(sink.at - sink.start);
		/* A copy takes more than its encoding, but for atoms. */
		if (limit < 64 || tw_term_copy(&import->arena, term, limit, &term) < 0)
			term = tw_term_atom_z("...");
	}
}

static void put_terms(struct tw_ttb_import *import, const struct tw_term *terms, unsigned count)
{
	uint64_t *words = import->words + import->event.count;
	uint8_t *start = (uint8_t *)(words + 1);
	size_t space = (size_t)(WORDS_MAX - import->event.count - 1) * 8, used = 0;
	for (unsigned i = 0; i < count; i++)
		used += encode(import, terms[i], start + used, space - used - LATER_TERM_BYTES * (count - 1 - i));
	if (used % 8)
		memset(start + used, 0, 8 - used % 8);
	words[0] = count | (uint64_t)used << 32;
	import->event.count = (uint16_t)(import->event.count + 1 + (used + 7) / 8);
	import->event.flags |= TW_CAPTURE_FLAG_TERMS;
}

/* X of {message,X} without any other term. */
static void put_extra_alone(struct tw_ttb_import *import, struct tw_term extra)
{
	put_terms(import, &extra, 1);
	import->event.flags ^= TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_EXTRA;
	import->words[import->event.flags % 4 == TW_PRINT_STAMP_STRICT] &= ~UINT64_C(0xffffffff);
}

static bool put_words(struct tw_ttb_import *import, struct tw_term list)
{
	uint64_t words[ARGUMENT_WORDS_MAX];
	unsigned count = 0;
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		if (count == ARGUMENT_WORDS_MAX || tw_term_get_uint64(tw_term_head(list), &words[count]))
			return false;
		count++;
	}
	memcpy(import->words + import->event.count, words, count * sizeof *words);
	import->event.count = (uint16_t)(import->event.count + count);
	return count != 0;
}

static void put_collection(struct tw_ttb_import *import, struct tw_term list)
{
	uint64_t *words = import->words + import->event.count;
	memset(words, 0, TW_GC_SIZES_COUNT * sizeof *words);
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		struct tw_term pair = tw_term_head(list);
		for (unsigned i = 0; i < TW_GC_SIZES_COUNT; i++) {
			if (is_atom(tw_term_element(pair, 0), tw_print_gc_keys[i]))
				tw_term_get_uint64(tw_term_element(pair, 1), &words[i]);
		}
	}
	import->event.count = (uint16_t)(import->event.count + TW_GC_SIZES_COUNT);
}

/* @elements: those after the tag, and then X if has_extra. */
static int put_call(struct tw_ttb_import *import, const struct tw_term *elements, bool has_extra)
{
	struct tw_term args;
	int error = take_function(import, elements[0], &args);
	if (error)
		return error;
	if (!tw_term_is_none(args) && (has_extra || !put_words(import, args))) {
		put_terms(import, (struct tw_term[]){args, elements[1]}, 1 + has_extra);
		import->event.flags |= has_extra ? TW_CAPTURE_FLAG_EXTRA : 0;
	} else if (tw_term_is_none(args)) {
		import->event.flags |= TW_CAPTURE_FLAG_ARITY;
		if (has_extra)
			put_extra_alone(import, elements[1]);
	}
	return 0;
}

static int put_end(struct tw_ttb_import *import, const struct tw_term *elements, bool has_extra)
{
	struct tw_term args;
	int error = take_function(import, elements[0], &args);
	if (error)
		return error;
	uint64_t value;
	if (import->event.kind == TW_CAPTURE_RETURN_FROM && !has_extra && !tw_term_get_uint64(elements[1], &value)) {
		import->words[import->event.count++] = value;
		return 0;
	}
	put_terms(import, elements + 1, 1 + has_extra);
	import->event.flags |= has_extra ? TW_CAPTURE_FLAG_EXTRA : 0;
	return 0;
}

/* The elements of a message after its tag, without X and the scheduler. */
static unsigned element_count(unsigned kind)
{
	bool has_more = kind == TW_CAPTURE_RETURN_FROM || kind == TW_CAPTURE_EXCEPTION_FROM || tw_print_is_gc(kind);
	return has_more + tw_print_term_count(tw_print_kind(kind));
}

static int fill(struct tw_ttb_import *import, const struct tw_term *elements, unsigned count, bool has_extra)
{
	struct tw_term args;
	switch (import->event.kind) {
	case TW_CAPTURE_CALL: return put_call(import, elements, has_extra);
	case TW_CAPTURE_RETURN_FROM:
	case TW_CAPTURE_EXCEPTION_FROM: return put_end(import, elements, has_extra);
	case TW_CAPTURE_RETURN_TO:
		if (tw_term_type(elements[0]) == TW_TYPE_TUPLE && !has_extra)
			return take_function(import, elements[0], &args);
		break;
	default:
		if (!tw_print_is_gc(import->event.kind))
			break;
		put_collection(import, elements[0]);
		return 0;
	}
	put_terms(import, elements, count + has_extra);
	import->event.flags |= has_extra ? TW_CAPTURE_FLAG_EXTRA : 0;
	return 0;
}

/* 0: no kind of event. */
static unsigned kind_of(struct tw_term tag)
{
	static struct {
		const char *word;
		struct tw_term atom;
		unsigned kind;
	} tags[] = {
#define TAG(NAME, number, word, group, first, second) {word, {0}, number},
		TW_TRACE_KINDS(TAG)};
	const size_t count = sizeof tags / sizeof *tags;
	for (size_t i = 0; i < count && tw_term_is_none(tags[count - 1].atom); i++)
		tags[i].atom = tw_term_atom_z(tags[i].word);
	for (size_t i = 0; i < count; i++) {
		if (tw_term_is_same(tags[i].atom, tag))
			return tags[i].kind;
	}
	return 0;
}

/* ---- whole messages ---- */

static void take_time(struct tw_ttb_import *import, const struct stamp *stamp)
{
	if (stamp->kind == TW_PRINT_STAMP_WALL)
		import->now_ns = stamp->time - import->wall_offset_ns;
	else if (stamp->kind)
		import->now_ns = stamp->time;
	import->event = (struct tw_producer_event){.flags = (uint8_t)stamp->kind, .words = import->words};
	if (stamp->kind == TW_PRINT_STAMP_STRICT)
		import->words[import->event.count++] = stamp->unique;
}

static int write_event(struct tw_ttb_import *import, struct tw_producer_process *process, uint32_t stream)
{
	import->stream = stream;
	return tw_capture_writer_event(import->writer, stream, import->now_ns, process, &import->event);
}

static int import_seq(struct tw_ttb_import *import, const struct message *message)
{
	struct tw_term info = tw_term_element(message->term, 2), pid;
	struct tw_term terms[TERMS_MAX] = {tw_term_element(message->term, 1)};
	int error;
	if (tw_term_tuple_count(info) != TERMS_MAX)
		return TW_EFORMAT;
	for (size_t i = 1; i < TERMS_MAX; i++)
		terms[i] = tw_term_element(info, i);
	unsigned kind = kind_of(tw_term_element(info, 0));
	import->event.kind = kind == TW_CAPTURE_SEND	  ? TW_CAPTURE_SEQ_SEND
			     : kind == TW_CAPTURE_RECEIVE ? TW_CAPTURE_SEQ_RECEIVE
							  : TW_CAPTURE_SEQ_PRINT;
	pid = terms[kind == TW_CAPTURE_RECEIVE ? 3 : 2];
	struct tw_producer_process *process = take_process(import, pid, &error);
	if (!process)
		return error;
	put_terms(import, terms, TERMS_MAX);
	return write_event(import, process, 0);
}

static int import_monitor(struct tw_ttb_import *import, const struct message *message)
{
	struct tw_term terms[] = {tw_term_element(message->term, 2), tw_term_element(message->term, 3)};
	int error;
	struct tw_producer_process *process = take_process(import, tw_term_element(message->term, 1), &error);
	if (!process)
		return error;
	import->event.kind = TW_CAPTURE_MONITOR;
	put_terms(import, terms, 2);
	return write_event(import, process, 0);
}

static int import_trace(struct tw_ttb_import *import, const struct message *message)
{
	struct tw_term elements[4] = {{0}}, pid = tw_term_element(message->term, 1);
	unsigned kind = kind_of(tw_term_element(message->term, 2)), wanted;
	uint64_t scheduler = 0;
	size_t count = message->count - 3;
	int error;
	if (!kind)
		return TW_EFORMAT;
	wanted = element_count(kind);
	if (count < wanted || count > wanted + 2)
		return TW_EFORMAT;
	for (size_t i = 0; i < count; i++)
		elements[i] = tw_term_element(message->term, 3 + i);
	if (count == wanted + 2 &&
	    (tw_term_get_uint64(elements[count - 1], &scheduler) || scheduler >= TW_CAPTURE_WRITER_STREAMS_MAX))
		return TW_EFORMAT;
	struct tw_producer_process *process = take_process(import, pid, &error);
	if (!process)
		return error;
	import->event.kind = (uint8_t)kind;
	import->event.flags |= count == wanted + 2 ? TW_CAPTURE_FLAG_SCHEDULER_ID : 0;
	error = fill(import, elements, wanted, count > wanted);
	if (!error)
		error = write_event(import, process, (uint32_t)scheduler);
	if (!error && kind == TW_CAPTURE_REGISTER)
		error = name_process(import, process, pid, elements[0]);
	return error;
}

int tw_ttb_import_term(struct tw_ttb_import *import, const uint8_t *bytes, size_t count)
{
	struct message message;
	struct tw_term term;
	tw_arena_reset(&import->arena);
	int error = tw_etf_decode(&import->arena, bytes, count, &import->decoding, NULL, &term);
	if (error)
		return error == TW_ENOMEM ? TW_ENOMEM : TW_EFORMAT;
	if (!take_message(term, &message))
		return TW_EFORMAT;
	take_time(import, &message.stamp);
	if (message.is_seq)
		return import_seq(import, &message);
	return is_atom(tw_term_element(term, 0), "monitor") ? import_monitor(import, &message)
							    : import_trace(import, &message);
}

int tw_ttb_import_dropped(struct tw_ttb_import *import, uint64_t count)
{
	return tw_capture_writer_loss(import->writer, import->stream, import->now_ns, TW_LOST_FULL, count);
}
