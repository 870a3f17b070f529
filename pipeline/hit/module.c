/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - calls the callbacks of tracer modules: the terms of an event are built on the stack and lent.
 *
 * Compiled without vector registers, as hit.c; callbacks reached through a trampoline are wrapped.
 */
#include "pipeline/hit/module.h"
#include "base/filter.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/record.h"
#include "term/term.h"

#include <errno.h>

#define INLINE inline __attribute__((always_inline))

/* The most words that an event shows: arguments, or sizes of a collection. */
#define WORDS_MAX 12
_Static_assert(WORDS_MAX >= TW_ARGS_MAX && WORDS_MAX == TW_GC_SIZES_COUNT,
	       "the words of a call and of a collection fit");

/* ---- terms on the stack ---- */

struct tuple_block {
	_Alignas(16) uint64_t header;
	struct tw_term elements[3];
};

struct big_block {
	_Alignas(16) uint64_t header;
	uint64_t limb;
};

/* Memory for the terms of one event, except those that the event brings. */
struct memory {
	struct tw_cell *cells; /* WORDS_MAX, or the number of arguments */
	struct big_block bigs[WORDS_MAX];
	struct tuple_block tuple, pairs[WORDS_MAX];
	struct tw_module_pid pid;
	unsigned big_count;
};

static INLINE struct tw_term word_in(struct memory *memory, uint64_t word)
{
	struct big_block *big = &memory->bigs[memory->big_count];

	if (tw_likely(word <= (uint64_t)TW_SMALL_MAX))
		return tw_small((int64_t)word);
	memory->big_count++;
	big->header = tw_header(TW_BLOCK_BIG, 0, 1);
	big->limb = word;
	return tw_term_of_block(big);
}

static INLINE struct tw_term tuple_in(struct tuple_block *block, unsigned count, struct tw_term a, struct tw_term b,
				      struct tw_term c)
{
	block->header = tw_header(TW_BLOCK_TUPLE, 0, count);
	block->elements[0] = a;
	block->elements[1] = b;
	block->elements[2] = c;
	return tw_term_of_block(block);
}

static INLINE struct tw_term cell_in(struct tw_cell *cell, struct tw_term head, struct tw_term tail)
{
	*cell = (struct tw_cell){head, tail};
	return tw_term_of_cell(cell);
}

static INLINE struct tw_term words_in(struct memory *memory, const uint64_t *words, unsigned count)
{
	struct tw_term list = tw_word(TW_TAG_NIL);

	for (unsigned i = count < WORDS_MAX ? count : WORDS_MAX; i-- > 0;)
		list = cell_in(&memory->cells[i], word_in(memory, words[i]), list);
	return list;
}

static struct tw_term terms_in(struct memory *memory, const struct tw_term *terms, unsigned count)
{
	struct tw_term list = tw_word(TW_TAG_NIL);

	for (unsigned i = count; i-- > 0;)
		list = cell_in(&memory->cells[i], terms[i], list);
	return list;
}

static INLINE struct tw_term arity_of(const struct tw_place *place)
{
	return place->function->arity > TW_ARITY_MAX ? tw_atom(TW_ATOM_ANY) : tw_small(place->function->arity);
}

/* As message.c shows a recorded call. */
static struct tw_term mfa_in(struct memory *memory, const struct tw_module_event *event, unsigned flags)
{
	const struct tw_place *place = event->place;
	struct tw_term last = arity_of(place);

	if (event->kind == TW_EVENT_CALL && !(flags & TW_EVENT_FLAG_ARITY)) {
		if (event->has_arguments)
			last = terms_in(memory, event->terms, event->term_count);
		else if (event->word_count || !place->function->arity)
			last = words_in(memory, event->words, event->word_count);
	}
	return tuple_in(&memory->tuple, 3, tw_word(place->function->module_atom), tw_word(place->function->name_atom),
			last);
}

static struct tw_term sizes_in(struct memory *memory, const uint64_t *words, unsigned count)
{
	static const enum tw_atom_index keys[WORDS_MAX] = {
#define KEY(NAME, field) TW_ATOM_##NAME,
		TW_GC_SIZES(KEY)
#undef KEY
	};
	struct tw_term list = tw_word(TW_TAG_NIL);

	for (unsigned i = count; i-- > 0;)
		list = cell_in(&memory->cells[i],
			       tuple_in(&memory->pairs[i], 2, tw_atom(keys[i]), word_in(memory, words[i]),
					(struct tw_term){0}),
			       list);
	return list;
}

/* ---- selecting callbacks ---- */

static INLINE enum tw_module_pair pair_of(enum tw_event_kind kind, bool is_port)
{
	/* All others: TW_MODULE_GENERAL. */
	static const uint8_t pairs[TW_EVENT_CPU_TIME] = {
#define PAIR(NAME, number, word, group, first, second) [number] = TW_MODULE_##group,
		TW_TRACE_KINDS(PAIR)
#undef PAIR
	};
	enum tw_module_pair pair = (enum tw_module_pair)pairs[kind];

	if (is_port && pair == TW_MODULE_PROCS)
		return TW_MODULE_PORTS;
	return is_port && pair == TW_MODULE_RUNNING ? TW_MODULE_RUNNING_PORTS : pair;
}

static INLINE enum tw_tracer_tag tag_of(enum tw_event_kind kind)
{
	return tw_kind_is(kind, TW_GROUP_SEQ) ? TW_TRACER_TAG_SEQ_TRACE : (enum tw_tracer_tag)kind;
}

/* ---- enabled ---- */

struct question {
	const struct tw_hit_module *module;
	enum tw_event_kind kind;
	uint32_t number;
	bool is_port;
	enum tw_tracer_answer answer;
};

static void count(struct tw_hit_session *session, enum tw_module_count what)
{
	/* RELAXED hit.module_counts: numbers for people; nothing depends on them. */
	tw_fetch_add_relaxed(&session->module_counts[what], 1);
}

/* To the status any answer but REMOVE means TRACE. */
static INLINE enum tw_tracer_answer ask(const struct tw_hit_module *module, enum tw_event_kind kind, bool is_port,
					struct tw_term tracee)
{
	if (kind == TW_EVENT_CALL && tw_unlikely(tw_module_status(module, tracee) == TW_TRACER_REMOVE))
		return TW_TRACER_REMOVE;
	return module->pairs[pair_of(kind, is_port)].enabled(tag_of(kind), module->state, tracee);
}

static void ask_there(void *arg)
{
	struct question *q = arg;
	struct tw_module_pid block;
	int *error = &errno, saved_errno = *error;

	q->answer = ask(q->module, q->kind, q->is_port, tw_module_pid_in(&block, q->number, q->is_port));
	*error = saved_errno;
}

bool tw_module_is_active(const struct tw_hit_module *module, uint32_t number, bool is_port)
{
	struct tw_module_pid block;
	struct tw_term tracee = number ? tw_module_pid_in(&block, number, is_port) : tw_atom(TW_ATOM_UNDEFINED);
	int saved_errno = errno;
	bool is_active = tw_module_status(module, tracee) != TW_TRACER_REMOVE;

	errno = saved_errno;
	return is_active;
}

struct removal {
	struct tw_tracee *tracee;
	unsigned session;
};

static void remove_there(void *arg)
{
	const struct removal *removal = arg;

	tw_hit_host.remove_tracer(removal->session, removal->tracee->pid_number);
}

/* Only for a port, or the process that this thread runs: another process' next event asks again, on its own thread. */
static __attribute__((noinline, cold)) void remove_tracer(struct tw_hit_tls *t, unsigned session, bool keeps_vectors)
{
	struct removal removal = {t->tracee, session};

	if ((t->thread->saved_tracee && !t->tracee->port_slot) || !tw_thread_may_call_system())
		return;
	if (keeps_vectors)
		tw_patch_call_keeping_vectors(remove_there, &removal);
	else
		remove_there(&removal);
}

void tw_module_answered(struct tw_hit_tls *t, unsigned session, enum tw_tracer_answer answer, bool keeps_vectors)
{
	if (answer == TW_TRACER_REMOVE)
		remove_tracer(t, session, keeps_vectors);
	else
		count(&tw_hit_sessions[session], TW_MODULE_WRONG_ANSWER);
}

/* An invalid answer means DISCARD. */
enum tw_tracer_answer tw_module_ask(struct tw_hit_tls *t, unsigned session, enum tw_event_kind kind, bool keeps_vectors)
{
	struct question q = {.module = tw_module_of(session),
			     .kind = kind,
			     .number = t->tracee->pid_number,
			     .is_port = t->tracee->port_slot != 0};

	if (keeps_vectors)
		tw_patch_call_keeping_vectors(ask_there, &q);
	else
		ask_there(&q);
	if (tw_likely(q.answer == TW_TRACER_TRACE || q.answer == TW_TRACER_DISCARD))
		return q.answer;
	if (tw_kind_is(kind, TW_GROUP_SEQ) && q.answer == TW_TRACER_REMOVE) {
		/*
		 * PROGRESS seq.tracer: no process has lost its tracer, but the system has. Events under way ask, and are not
		 * told.
		 */
		tw_fetch_and_seq_cst(&tw_seq_tracer, ~(UINT64_C(1) << session));
		return q.answer;
	}
	tw_module_answered(t, session, q.answer, keeps_vectors);
	return q.answer == TW_TRACER_REMOVE ? TW_TRACER_REMOVE : TW_TRACER_DISCARD;
}

/* ---- trace ---- */

struct delivery {
	const struct tw_module_event *event;
	const struct tw_hit_module *module;
	const struct tw_hit_tls *t;
	unsigned session, flags;
};

static INLINE enum tw_tracer_stamp stamp_of(unsigned flags, unsigned session)
{
	static const enum tw_tracer_stamp stamps[] = {
		[TW_STAMP_NONE] = TW_TRACER_STAMP_NONE,
		[TW_STAMP_MONOTONIC] = TW_TRACER_STAMP_MONOTONIC,
		[TW_STAMP_STRICT_MONOTONIC] = TW_TRACER_STAMP_STRICT_MONOTONIC,
		[TW_STAMP_TIMESTAMP] = TW_TRACER_STAMP_TIMESTAMP,
	};

	if (tw_record_stamp_of(flags, session) == TW_RECORD_CPU_TIME)
		return TW_TRACER_STAMP_CPU_TIMESTAMP;
	return stamps[flags & TW_EVENT_FLAG_STAMP_MASK];
}

static inline void deliver(const struct delivery *delivery, struct tw_cell *cells)
{
	const struct tw_module_event *event = delivery->event;
	const struct tw_hit_module *module = delivery->module;
	struct tw_tracer_options options = {.timestamp = stamp_of(delivery->flags, delivery->session),
					    .extra = event->extra,
					    .match_spec_result = event->result};
	struct tw_term term, tracee;
	struct memory memory;
	bool is_port = delivery->t->tracee->port_slot != 0;
	int *error = &errno, saved_errno = *error;

	memory.cells = cells;
	memory.big_count = 0;
	if (delivery->flags & TW_EVENT_FLAG_SCHEDULER_ID)
		options.scheduler_id = delivery->t->thread->scheduler_id;
	tracee = tw_module_pid_in(&memory.pid, delivery->t->tracee->pid_number, is_port);
	if (event->place) {
		term = mfa_in(&memory, event, delivery->flags);
	} else if (event->term_count) {
		term = event->terms[0];
		if (event->term_count > 1)
			options.extra = event->terms[1];
	} else if (event->word_count == WORDS_MAX) {
		term = sizes_in(&memory, event->words, tw_gc_sizes_shown(event->kind));
	} else {
		term = event->word_count ? word_in(&memory, event->words[0]) : tw_atom(TW_ATOM_UNDEFINED);
	}
	module->pairs[pair_of(event->kind, is_port)].trace((enum tw_tracer_tag)event->kind, module->state, tracee, term,
							   &options);
	*error = saved_errno;
}

static __attribute__((noinline)) void deliver_long(const struct delivery *delivery)
{
	_Alignas(16) struct tw_cell cells[TW_ARITY_MAX];

	deliver(delivery, cells);
}

static void deliver_there(void *arg)
{
	const struct delivery *delivery = arg;
	_Alignas(16) struct tw_cell cells[WORDS_MAX];

	if (tw_unlikely(delivery->event->has_arguments && delivery->event->term_count > WORDS_MAX))
		deliver_long(delivery);
	else
		deliver(delivery, cells);
}

void tw_module_tell(struct tw_hit_tls *t, unsigned session, const struct tw_module_event *event, bool keeps_vectors)
{
	struct delivery delivery =
		{event, tw_hit_sessions[session].module, t, session,
		 /* RELAXED hit.record_flags: one byte; a change is seen by this event or by the next. */
		 event->is_meta ? TW_STAMP_TIMESTAMP : tw_load_relaxed(&t->tracee->record_flags[session])};

	if (keeps_vectors)
		tw_patch_call_keeping_vectors(deliver_there, &delivery);
	else
		deliver_there(&delivery);
}

struct seq_delivery {
	const struct tw_hit_module *module;
	struct tw_term label, info;
	struct tw_tracer_options options;
};

static void deliver_seq_there(void *arg)
{
	const struct seq_delivery *delivery = arg;
	int *error = &errno, saved_errno = *error;

	delivery->module->pairs[TW_MODULE_GENERAL].trace(TW_TRACER_TAG_SEQ_TRACE, delivery->module->state,
							 delivery->label, delivery->info, &delivery->options);
	*error = saved_errno;
}

void tw_module_tell_seq(unsigned session, struct tw_term label, struct tw_term info, unsigned flags, bool keeps_vectors)
{
	struct seq_delivery delivery = {.module = tw_module_of(session),
					.label = label,
					.info = info,
					.options.timestamp = stamp_of(flags, session)};

	if (keeps_vectors)
		tw_patch_call_keeping_vectors(deliver_seq_there, &delivery);
	else
		deliver_seq_there(&delivery);
}

/* ---- the common case ---- */

void tw_module_plain_call(struct tw_hit_tls *t, const struct tw_place *place, unsigned session, struct tw_term tracee,
			  const uint64_t *words, unsigned count)
{
	const struct tw_hit_module *module = tw_hit_sessions[session].module;
	const struct tw_function *function = place->function;
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	unsigned flags = tw_load_relaxed(&t->tracee->record_flags[session]);
	_Alignas(16) struct tw_cell cells[WORDS_MAX];
	struct tw_tracer_options options;
	struct tw_term last;
	struct memory memory;

	memory.cells = cells;
	memory.big_count = 0;
	if ((flags & TW_EVENT_FLAG_ARITY) || (!count && function->arity))
		last = arity_of(place);
	else
		last = words_in(&memory, words, count);
	options.timestamp = stamp_of(flags, session);
	options.scheduler_id = flags & TW_EVENT_FLAG_SCHEDULER_ID ? t->thread->scheduler_id : 0;
	options.extra.word = options.match_spec_result.word = 0;
	module->pairs[TW_MODULE_CALL].trace(TW_TRACER_TAG_CALL, module->state, tracee,
					    tuple_in(&memory.tuple, 3, tw_word(function->module_atom),
						     tw_word(function->name_atom), last),
					    &options);
}
