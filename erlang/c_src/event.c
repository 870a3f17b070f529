/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - enabled/3 and trace/5: from the VM's callback to a record in the thread's ring.
 *
 * TraceTerm and Opts become the words of an event as docs/format.md has them:
 *
 *	call		id; words: the arguments if all are small and not negative; else the list as a term; with arity: nothing
 *	return_from	id; a word if the value is a small integer and not negative; else a term
 *	exception_from	id; {Class,Value} as a term
 *	return_to	id; `undefined` as a term
 *	gc_*		twelve words
 *	seq_trace	label, serial, from, to and message, as terms
 *	monitor		not of the VM: tracewheel_monitor hands on system events, the information as `extra`
 *	all others	the elements of the message after the tag, as terms
 */
#include "capture.h"

#include <tracewheel/capture.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* The space kept for each term after the first. */
#define LATER_TERM_BYTES   512
#define ARGUMENT_WORDS_MAX 16

static struct {
	ERL_NIF_TERM trace, discard, remove, ok, trace_status, undefined, true_, seq_trace;
	ERL_NIF_TERM extra, match_spec_result, scheduler_id, timestamp, monotonic, strict_monotonic, cpu_timestamp;
} atoms;

/* ---- tags ---- */

static const struct tag {
	const char *name;
	uint8_t kind;
} tag_names[] = {
#define TAG(NAME, number, word, group, first, second) {word, number},
	TW_TRACE_KINDS(TAG) TW_SYSTEM_KINDS(TAG)
#undef TAG
};
#define TAGS (sizeof tag_names / sizeof *tag_names)

/* By the atoms' words; open addressing. */
#define TAG_SLOTS 128
static struct {
	ERL_NIF_TERM atom;
	uint8_t kind;
} tags[TAG_SLOTS];

static unsigned tag_slot(ERL_NIF_TERM atom)
{
	return (unsigned)(atom >> 6) % TAG_SLOTS;
}

/* 0: no kind of event. */
static unsigned kind_of(ERL_NIF_TERM atom)
{
	for (unsigned at = tag_slot(atom); tags[at].atom; at = (at + 1) % TAG_SLOTS)
		if (tags[at].atom == atom)
			return tags[at].kind;
	return 0;
}

static const char *const gc_keys[] = {
#define KEY(NAME, field) #field,
	TW_GC_SIZES(KEY)
#undef KEY
};
#define GC_KEYS TW_GC_SIZES_COUNT
static ERL_NIF_TERM gc_atoms[GC_KEYS];

void event_init(ErlNifEnv *env)
{
	if (atoms.trace)
		return;
	for (unsigned i = 0; i < TAGS; i++) {
		ERL_NIF_TERM atom = enif_make_atom(env, tag_names[i].name);
		unsigned at = tag_slot(atom);

		while (tags[at].atom)
			at = (at + 1) % TAG_SLOTS;
		tags[at].kind = tag_names[i].kind;
		tags[at].atom = atom;
	}
	for (unsigned i = 0; i < GC_KEYS; i++)
		gc_atoms[i] = enif_make_atom(env, gc_keys[i]);
	atoms.discard = enif_make_atom(env, "discard");
	atoms.remove = enif_make_atom(env, "remove");
	atoms.ok = enif_make_atom(env, "ok");
	atoms.trace_status = enif_make_atom(env, "trace_status");
	atoms.undefined = enif_make_atom(env, "undefined");
	atoms.true_ = enif_make_atom(env, "true");
	atoms.seq_trace = enif_make_atom(env, "seq_trace");
	atoms.extra = enif_make_atom(env, "extra");
	atoms.match_spec_result = enif_make_atom(env, "match_spec_result");
	atoms.scheduler_id = enif_make_atom(env, "scheduler_id");
	atoms.timestamp = enif_make_atom(env, "timestamp");
	atoms.monotonic = enif_make_atom(env, "monotonic");
	atoms.strict_monotonic = enif_make_atom(env, "strict_monotonic");
	atoms.cpu_timestamp = enif_make_atom(env, "cpu_timestamp");
	atoms.trace = enif_make_atom(env, "trace");
}

ERL_NIF_TERM event_enabled(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	struct capture *capture = object;

	(void)env;
	if (atomic_load_explicit(&capture->over, memory_order_relaxed))
		return argv[0] == atoms.trace_status ? atoms.remove : atoms.discard;
	return argv[2] == capture->own_pid ? atoms.discard : atoms.trace;
}

/* ---- an event that is being written ---- */

struct writer {
	struct encoder encoder;
	struct capture *capture;
	struct thread *thread;
	struct tw_producer_event event;
	ERL_NIF_TERM extra, result; /* 0: none */
	unsigned arguments;	    /* of a call */
	bool has_cpu_time;
};

/* CPU time of the VM: OTP's flag cpu_timestamp. */
static uint64_t cpu_ns(void)
{
	struct timespec now = {0, 0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The options of the event: most have none. */
static void read_options(struct writer *w, ERL_NIF_TERM options)
{
	ErlNifEnv *env = w->encoder.env;
	ERL_NIF_TERM value;
	size_t count;

	if (!enif_get_map_size(env, options, &count) || !count)
		return;
	enif_get_map_value(env, options, atoms.extra, &w->extra);
	enif_get_map_value(env, options, atoms.match_spec_result, &w->result);
	if (w->result == atoms.true_)
		w->result = 0;
	if (enif_get_map_value(env, options, atoms.scheduler_id, &value))
		w->event.flags |= TW_PRODUCER_SCHEDULER_ID;
	if (!enif_get_map_value(env, options, atoms.timestamp, &value))
		return;
	if (value == atoms.monotonic) {
		w->event.flags |= TW_PRODUCER_STAMP_MONOTONIC;
	} else if (value == atoms.strict_monotonic) {
		w->event.flags |= TW_PRODUCER_STAMP_STRICT;
		w->thread->words[w->event.count++] = atomic_fetch_add(&w->capture->unique, 1) + 1;
	} else {
		w->event.flags |= TW_PRODUCER_STAMP_WALL;
		if (value == atoms.cpu_timestamp) {
			w->thread->words[w->event.count++] = cpu_ns();
			w->has_cpu_time = true;
		}
	}
}

/* The user's limit is for values.  Names of processes and functions are not cut. */
static size_t limit_of(const struct writer *w, unsigned term)
{
	size_t limit = w->capture->limits.term_bytes;
	bool is_value;

	switch (w->event.kind) {
	case TW_CAPTURE_CALL:
	case TW_CAPTURE_RETURN_FROM:
	case TW_CAPTURE_EXCEPTION_FROM:
	case TW_CAPTURE_RECEIVE:
	case TW_CAPTURE_EXIT: is_value = true; break;
	case TW_CAPTURE_SEQ_SEND:
	case TW_CAPTURE_SEQ_RECEIVE:
	case TW_CAPTURE_SEQ_PRINT: is_value = term == 0 || term == 4; break;
	case TW_CAPTURE_SEND:
	case TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS: is_value = term != 1; break;
	case TW_CAPTURE_SPAWN:
	case TW_CAPTURE_SPAWNED: is_value = term == 1; break;
	default: is_value = false; break;
	}
	return is_value || limit > NAME_BYTES ? limit : NAME_BYTES;
}

static size_t put_term(struct writer *w, ERL_NIF_TERM term, unsigned index, uint8_t *to, size_t max)
{
	size_t limit = limit_of(w, index), used;
	int is_cut = 0;

	used = encode_term(&w->encoder, term, index ? 0 : w->arguments, to, limit < max ? limit : max, &is_cut);
	if (is_cut) {
		uint64_t cut = atomic_load_explicit(&w->thread->cut_terms, memory_order_relaxed);

		atomic_store_explicit(&w->thread->cut_terms, cut + 1, memory_order_relaxed);
		capture_note(w->capture, NOTED_CUT);
	}
	return used;
}

/* One word with the number of terms and the bytes of the rest, the terms, zeros up to a whole word. */
static void put_all(struct writer *w, const ERL_NIF_TERM *terms, unsigned count)
{
	uint64_t *words = w->thread->words + w->event.count;
	uint8_t *start = (uint8_t *)(words + 1);
	size_t used = 0;

	for (unsigned i = 0; i < count; i++)
		used += put_term(w, terms[i], i, start + used,
				 TERMS_BYTES_MAX - used - LATER_TERM_BYTES * (count - 1 - i));
	memset(start + used, 0, 8);
	words[0] = count | (uint64_t)used << 32;
	w->event.count = (uint16_t)(w->event.count + 1 + (used + 7) / 8);
	w->event.flags |= TW_PRODUCER_TERMS;
}

/* One or two terms (0: none), and X of {message,X}. */
static void put_terms(struct writer *w, ERL_NIF_TERM first, ERL_NIF_TERM second)
{
	ERL_NIF_TERM terms[3];
	unsigned count = 0;

	if (first)
		terms[count++] = first;
	if (second)
		terms[count++] = second;
	if (w->result) {
		terms[count++] = w->result;
		w->event.flags |= TW_PRODUCER_EXTRA;
	}
	put_all(w, terms, count);
}

/* X of {message,X} behind no words. */
static void put_result_alone(struct writer *w)
{
	uint64_t *words = w->thread->words + w->event.count;
	size_t used = put_term(w, w->result, 0, (uint8_t *)(words + 1), TERMS_BYTES_MAX);

	memset((uint8_t *)(words + 1) + used, 0, 8);
	words[0] = (uint64_t)used << 32;
	w->event.count = (uint16_t)(w->event.count + 1 + (used + 7) / 8);
	w->event.flags |= TW_PRODUCER_EXTRA;
}

/* {M,F,Arity} or {M,F,Args}.  Args are copied as words as far as all are small and not negative: *arguments is then 0. */
static int put_function(struct writer *w, ERL_NIF_TERM term, ERL_NIF_TERM *arguments)
{
	ErlNifEnv *env = w->encoder.env;
	uint64_t *words = w->thread->words + w->event.count;
	const ERL_NIF_TERM *mfa;
	ERL_NIF_TERM head, tail;
	unsigned arity, small = 0;
	int count;

	if (!enif_get_tuple(env, term, &count, &mfa) || count != 3)
		return 0;
	*arguments = 0;
	if (!enif_get_uint(env, mfa[2], &arity)) {
		arity = 0;
		*arguments = mfa[2];
		for (tail = mfa[2]; enif_get_list_cell(env, tail, &head, &tail); arity++) {
			ErlNifUInt64 value;

			if (arity == small && small < ARGUMENT_WORDS_MAX && enif_get_uint64(env, head, &value))
				words[small++] = value;
		}
	}
	w->event.id = capture_function(env, w->capture, mfa[0], mfa[1], arity);
	w->arguments = *arguments ? arity : 0;
	if (*arguments && small && small == arity && !w->result) {
		w->event.count = (uint16_t)(w->event.count + small);
		*arguments = 0;
	}
	return w->event.id != 0;
}

static int put_call(struct writer *w, ERL_NIF_TERM term)
{
	unsigned stamped = w->event.count;
	ERL_NIF_TERM arguments;

	if (!put_function(w, term, &arguments))
		return 0;
	if (arguments) {
		put_terms(w, arguments, 0);
	} else if (w->event.count == stamped) {
		w->event.flags |= TW_PRODUCER_ARITY;
		if (w->result)
			put_result_alone(w);
	}
	return 1;
}

static int put_return(struct writer *w, ERL_NIF_TERM term)
{
	ERL_NIF_TERM arguments;
	ErlNifUInt64 value;

	if (!put_function(w, term, &arguments))
		return 0;
	if (w->event.kind == TW_CAPTURE_RETURN_FROM && !w->result && enif_get_uint64(w->encoder.env, w->extra, &value))
		w->thread->words[w->event.count++] = value;
	else
		put_terms(w, w->extra, 0);
	return 1;
}

static int put_return_to(struct writer *w, ERL_NIF_TERM term)
{
	ERL_NIF_TERM arguments;

	if (!enif_is_tuple(w->encoder.env, term))
		put_terms(w, term, 0);
	else if (!put_function(w, term, &arguments))
		return 0;
	return 1;
}

/* [{heap_size,Words},...], in any order. */
static void put_collection(struct writer *w, ERL_NIF_TERM list)
{
	uint64_t *words = w->thread->words + w->event.count;
	const ERL_NIF_TERM *pair;
	ERL_NIF_TERM head;
	int count;

	memset(words, 0, GC_KEYS * sizeof *words);
	while (enif_get_list_cell(w->encoder.env, list, &head, &list)) {
		ErlNifUInt64 value;

		if (!enif_get_tuple(w->encoder.env, head, &count, &pair) || count != 2 ||
		    !enif_get_uint64(w->encoder.env, pair[1], &value))
			continue;
		for (unsigned i = 0; i < GC_KEYS; i++)
			if (gc_atoms[i] == pair[0])
				words[i] = value;
	}
	w->event.count = (uint16_t)(w->event.count + GC_KEYS);
}

/* Fills the event; false: it cannot be defined. */
static int fill(struct writer *w, ERL_NIF_TERM term)
{
	switch (w->event.kind) {
	case TW_CAPTURE_CALL: return put_call(w, term);
	case TW_CAPTURE_RETURN_FROM:
	case TW_CAPTURE_EXCEPTION_FROM: return put_return(w, term);
	case TW_CAPTURE_RETURN_TO: return put_return_to(w, term);
	default:
		if (tw_kind_is(w->event.kind, TW_GROUP_GARBAGE_COLLECTION))
			put_collection(w, term);
		else
			put_terms(w, term, w->extra);
		return 1;
	}
}

static struct process_entry *process_of(struct writer *w, ERL_NIF_TERM tracee)
{
	struct process_entry *last = w->thread->last;

	if (!last || last->entry.key[0] != tracee)
		w->thread->last = last = capture_process(w->encoder.env, w->capture, tracee);
	return last;
}

/*
 * trace(seq_trace, State, Label, {send|'receive'|print, Serial, From, To, Message}, Opts): an event of the process that sends, receives
 * or prints.
 */
static void write_seq(struct writer *w, const ERL_NIF_TERM argv[])
{
	struct process_entry *process = NULL;
	const ERL_NIF_TERM *info;
	int count;

	read_options(w, argv[4]);
	w->result = 0;
	if (enif_get_tuple(w->encoder.env, argv[3], &count, &info) && count == 5) {
		ERL_NIF_TERM terms[5] = {argv[2], info[1], info[2], info[3], info[4]};
		unsigned kind = kind_of(info[0]);

		w->event.kind = kind == TW_CAPTURE_SEND	     ? TW_CAPTURE_SEQ_SEND
				: kind == TW_CAPTURE_RECEIVE ? TW_CAPTURE_SEQ_RECEIVE
							     : TW_CAPTURE_SEQ_PRINT;
		process = process_of(w, kind == TW_CAPTURE_RECEIVE ? info[3] : info[2]);
		put_all(w, terms, 5);
	}
	w->event.words = w->thread->words;
	if (process)
		tw_producer_write(w->thread->producer, &process->process, &w->event);
	else
		capture_count_unmade(w->capture, UNMADE_NO_DEFINITION);
}

static void write(struct writer *w, const ERL_NIF_TERM argv[])
{
	struct thread *thread = w->thread;
	struct process_entry *process = process_of(w, argv[2]);

	read_options(w, argv[4]);
	if (!process || !fill(w, argv[3]) ||
	    (w->event.kind == TW_CAPTURE_REGISTER && !capture_name(w->encoder.env, w->capture, argv[2], argv[3]))) {
		capture_count_unmade(w->capture, UNMADE_NO_DEFINITION);
		return;
	}
	w->event.words = thread->words;
	if (w->has_cpu_time)
		w->event.kind |= TW_PRODUCER_CPU_TIME;
	tw_producer_write(thread->producer, &process->process, &w->event);
}

ERL_NIF_TERM event_trace(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	struct capture *capture = object;
	struct thread *thread;
	struct writer w;
	unsigned kind;

	if (atomic_load_explicit(&capture->over, memory_order_relaxed) || argv[2] == capture->own_pid)
		return atoms.ok;
	kind = kind_of(argv[0]);
	thread = capture_thread(capture);
	if (!thread || (!kind && argv[0] != atoms.seq_trace)) {
		capture_count_unmade(capture, thread ? UNMADE_UNKNOWN : UNMADE_NO_THREAD);
		return atoms.ok;
	}
	if (!thread->allowed && !capture_allow(capture, thread))
		return atoms.ok;
	thread->allowed--;
	w.encoder = (struct encoder){.env = env,
				     .atoms = &capture->atoms,
				     .identities = &thread->identities,
				     .node = capture->node,
				     .bounds = &capture->bounds,
				     .depth = (unsigned)capture->limits.term_depth,
				     .elements = (unsigned)capture->limits.term_elements};
	w.capture = capture;
	w.thread = thread;
	w.event = (struct tw_producer_event){.kind = (uint8_t)kind};
	w.extra = w.result = 0;
	w.arguments = 0;
	w.has_cpu_time = false;
	if (kind)
		write(&w, argv);
	else
		write_seq(&w, argv);
	return atoms.ok;
}
