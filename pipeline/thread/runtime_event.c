/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_event.c - from a run-time's report about a process to a record in each session's ring.
 *
 *	state of the thread	not ready: joining, nested, ended
 *	read section		from here on nothing that the event reaches is freed
 *	wants			the sessions that want this kind of event of this tracee
 *	run			a new one, if another thread runs the tracee, or after another's event of our own
 *	each session		pattern, silent, thread ring, space, terms, one release store
 *
 * The terms are encoded once, into the thread's memory, when the first session wants them, and copied from there.
 * Called as an ordinary function, not through a trampoline: it may use any register.
 */
#include "pipeline/thread/runtime_event.h"
#include "pipeline/thread/thread.h"
#include "pipeline/hit/module.h"
#include "pipeline/hit/record.h"
#include "pipeline/thread/monitor.h"
#include "pipeline/thread/seq_event.h"
#include "progress/read_side.h"
#include "term/etf.h"

#include <errno.h>

/* The space kept for each term after the first, and for the extra element. */
#define LATER_TERM_BYTES 512

const struct tw_match_program tw_hit_no_message;

/* A runtime event that is being recorded. */
struct event_writer {
	struct tw_hit_tls *t;
	const struct tw_runtime_event *runtime_event;
	struct tw_recheck recheck;
	uint64_t ticks;
	unsigned flags_mask; /* the record's flags that come from the tracee */
	unsigned flags;	     /* its other flags */
	size_t bytes;	     /* of the encoded terms; 0: not encoded yet */
	uint64_t todo;	     /* sessions that are still to come */
};

/* ---- terms ---- */

/* Space for all terms of a record, wherever they are encoded. */
#define TERMS_BYTES_MAX sizeof(((struct tw_thread *)NULL)->terms)

/* Encodes the terms one behind the other, in TERMS_BYTES_MAX at most.  Returns the bytes. */
static size_t encode_terms(const struct tw_runtime_event *runtime_event, uint8_t *at)
{
	unsigned count = runtime_event->term_count;
	size_t bytes = 0;

	if (runtime_event->seq)
		return tw_seq_event_encode(runtime_event, at, TERMS_BYTES_MAX - LATER_TERM_BYTES);
	for (unsigned i = 0; i < count; i++)
		bytes += tw_record_encode(runtime_event->terms[i], at + bytes,
					  TERMS_BYTES_MAX - bytes - LATER_TERM_BYTES * (count - i));
	return bytes;
}

/* ---- patterns ---- */

static struct tw_term undefined_if_none(struct tw_term term)
{
	return tw_term_is_none(term) ? tw_atom(TW_ATOM_UNDEFINED) : term;
}

static struct tw_term node_of(const struct tw_runtime_event *runtime_event)
{
	struct tw_identifier parts;

	if (runtime_event->is_timeout)
		return tw_atom(TW_ATOM_CLOCK_SERVICE);
	if (!tw_term_is_none(runtime_event->peer) && tw_term_get_identifier(runtime_event->peer, &parts) == 0 &&
	    !tw_term_is_none(parts.node))
		return parts.node;
	return tw_term_is_none(tw_hit_host.node) ? tw_atom(TW_ATOM_NONODE) : tw_hit_host.node;
}

/*
 * Runs a session's pattern over [Receiver,Msg] or [Node,Sender,Msg], and carries out its actions. Returns whether
 * there is an event; *extra is set if it has one more element.
 */
static __attribute__((noinline)) bool is_wanted_message(struct event_writer *event_writer, unsigned session,
							const struct tw_match_program *program, struct tw_term *extra)
{
	const struct tw_runtime_event *runtime_event = event_writer->runtime_event;
	struct tw_hit_tls *t = event_writer->t;
	struct tw_match_run *run = &t->thread->run;
	void (*keep_vectors)(void (*)(void *), void *) = run->keep_vectors;
	struct tw_term target[3] = {node_of(runtime_event), undefined_if_none(runtime_event->peer),
				    runtime_event->terms[0]};
	unsigned first = runtime_event->want == TW_WANT_SEND;
	enum tw_match_verdict verdict;

	t->thread->run_session = session;
	run->keep_vectors = NULL;
	verdict = tw_match_run(program, target + first, 3 - first, run);
	run->keep_vectors = keep_vectors;
	if (verdict == TW_MATCH_NO)
		return false;
	if (run->result.actions & (TW_MATCH_SILENCE | TW_MATCH_UNSILENCE))
		tw_hit_host.silence(session, run->result.actions & TW_MATCH_SILENCE);
	if (verdict == TW_MATCH_EXTRA)
		*extra = run->result.message;
	/* RELAXED hit.silent: this tracee's own, or a change seen by this event or by the next. */
	return verdict != TW_MATCH_SUPPRESS && !(tw_load_relaxed(&t->tracee->silent) >> session & 1);
}

/* ---- the record ---- */

/*
 * Claims space for a switch record and a record after it, in one piece. WAIT: the slow path must provide a ring, a
 * definition or space; losses are counted here.
 */
static enum tw_rb_outcome reserve_with_switch(struct event_writer *event_writer, unsigned session, uint32_t *bytes,
					      struct tw_rb_record **out)
{
	struct tw_hit_tls *t = event_writer->t;
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_rb_record *record;
	enum tw_rb_outcome outcome;

	/* RELAXED tracee.described: set once in a session's life; if it is not seen, the slow path checks again. */
	if (!ring->producer.shared || !(tw_load_relaxed(&t->tracee->described) >> session & 1))
		return TW_RB_WAIT;
	outcome = tw_rb_reserve(&ring->producer, TW_SWITCH_BYTES + *bytes, event_writer->ticks, (void **)&record);
	if (outcome != TW_RB_OK)
		return outcome;
	tw_thread_fill_switch(t, record, event_writer->ticks);
	ring->run_stamp = t->run_stamp;
	*bytes += TW_SWITCH_BYTES;
	*out = (struct tw_rb_record *)((uint8_t *)record + TW_SWITCH_BYTES);
	return TW_RB_OK;
}

/* Claims space for a record of the tracee, after a switch record if one is due. *bytes becomes the number to commit. */
static inline struct tw_rb_record *reserve(struct event_writer *event_writer, unsigned session, uint32_t *bytes)
{
	struct tw_hit_tls *t = event_writer->t;
	struct tw_rb_record *record;
	enum tw_rb_outcome outcome;

	if (tw_unlikely(t->thread->rings[session].run_stamp != t->run_stamp)) {
		outcome = reserve_with_switch(event_writer, session, bytes, &record);
		if (outcome != TW_RB_WAIT)
			return outcome == TW_RB_OK ? record : NULL;
	}
	return tw_thread_ring_reserve(t, &event_writer->recheck, session, *bytes, event_writer->ticks,
				      &event_writer->todo, &record)
		       ? record
		       : NULL;
}

static unsigned flags_of(const struct event_writer *event_writer, unsigned session)
{
	/* RELAXED hit.record_flags: one byte; a change is seen by this event or by the next. */
	return (tw_load_relaxed(&event_writer->t->tracee->record_flags[session]) &
		(TW_EVENT_FLAG_STAMP_MASK | TW_EVENT_FLAG_SCHEDULER_ID) & event_writer->flags_mask) |
	       event_writer->flags;
}

/* [stamp] [terms' head] terms [extra element], or [stamp] words: a unique integer or CPU time. */
static void record(struct event_writer *event_writer, unsigned session, struct tw_term extra)
{
	const struct tw_runtime_event *runtime_event = event_writer->runtime_event;
	struct tw_thread *thread = event_writer->t->thread;
	unsigned flags = flags_of(event_writer, session);
	enum tw_record_stamp stamp = tw_record_stamp_of(flags, session);
	bool has_terms = runtime_event->term_count, has_extra = !tw_term_is_none(extra);
	size_t term_bytes = event_writer->bytes, words;
	uint32_t bytes, committed;
	struct tw_rb_record *r;
	uint64_t *payload;

	if (has_extra)
		term_bytes +=
			tw_record_encode(extra, thread->terms + term_bytes, sizeof thread->terms - term_bytes - 8);
	if (has_terms) {
		/* Whole words: the bytes after the last term are zeros. */
		memset(thread->terms + term_bytes, 0, 8);
	}
	words = (stamp != TW_RECORD_NO_STAMP) + (has_terms ? 1 + (term_bytes + 7) / 8 : runtime_event->word_count);
	bytes = (uint32_t)(sizeof *r + (words + 1) / 2 * 16);
	committed = bytes;
	r = reserve(event_writer, session, &committed);
	if (!r)
		return;
	flags |= (words % 2 ? TW_EVENT_FLAG_HALF : 0) | (has_terms ? TW_EVENT_FLAG_TERMS : 0) |
		 (has_extra ? TW_EVENT_FLAG_EXTRA : 0);
	r->ticks = event_writer->ticks;
	r->head = TW_RB_HEAD(tw_record_kind(runtime_event->kind, stamp), flags, bytes, 0);
	payload = (uint64_t *)(r + 1);
	if (stamp)
		*payload++ = tw_record_stamp_word(stamp);
	if (has_terms) {
		*payload++ = (runtime_event->term_count + has_extra) | (uint64_t)term_bytes << 32;
		tw_record_copy(payload, (const uint64_t *)thread->terms, (term_bytes + 7) / 8);
	} else {
		tw_record_copy(payload, runtime_event->words, runtime_event->word_count);
	}
	tw_rb_commit(&thread->rings[session].producer, committed);
}

/*
 * An event whose terms no other session needs, encoded in the ring itself, after a switch record if one is due: while there is space
 * for the largest ones. Copying terms that were written just before costs 8 ns. False: nothing was done.
 */
static bool record_in_place(struct event_writer *event_writer, unsigned session)
{
	const struct tw_runtime_event *runtime_event = event_writer->runtime_event;
	struct tw_hit_tls *t = event_writer->t;
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_rb_producer *producer = &ring->producer;
	uint32_t before = tw_unlikely(ring->run_stamp != t->run_stamp) ? TW_SWITCH_BYTES : 0, whole;
	unsigned flags = flags_of(event_writer, session);
	enum tw_record_stamp stamp = tw_record_stamp_of(flags, session);
	struct tw_rb_record *r;
	size_t bytes, words;
	uint64_t *payload;
	uint8_t *at;

	/* RELAXED tracee.described: as in reserve_with_switch(). */
	if (producer->pos + TW_SWITCH_BYTES + TW_RB_RECORD_BYTES_MAX > producer->limit_pos ||
	    (before && !(tw_load_relaxed(&t->tracee->described) >> session & 1)))
		return false;
	at = producer->data + (producer->pos & producer->mask);
	if (before)
		tw_thread_fill_switch(t, (struct tw_rb_record *)at, event_writer->ticks);
	r = (struct tw_rb_record *)(at + before);
	payload = (uint64_t *)(r + 1);
	if (stamp)
		*payload++ = tw_record_stamp_word(stamp);
	bytes = encode_terms(runtime_event, (uint8_t *)(payload + 1));
	/* Whole words: the bytes after the last term are zeros. */
	memset((uint8_t *)(payload + 1) + bytes, 0, 8);
	*payload = runtime_event->term_count | (uint64_t)bytes << 32;
	words = (stamp != TW_RECORD_NO_STAMP) + 1 + (bytes + 7) / 8;
	whole = (uint32_t)(sizeof *r + (words + 1) / 2 * 16);
	r->ticks = event_writer->ticks;
	r->head = TW_RB_HEAD(tw_record_kind(runtime_event->kind, stamp),
			     flags | TW_EVENT_FLAG_TERMS | (words % 2 ? TW_EVENT_FLAG_HALF : 0), whole, 0);
	ring->run_stamp = t->run_stamp;
	tw_rb_commit(producer, before + whole);
	return true;
}

/* The same event, by the callbacks of a tracer module. */
static void tell_module(struct event_writer *event_writer, unsigned session, struct tw_term extra)
{
	const struct tw_runtime_event *runtime_event = event_writer->runtime_event;
	const struct tw_module_event event = {.kind = (enum tw_event_kind)runtime_event->kind,
					      .terms = runtime_event->terms,
					      .term_count = runtime_event->term_count,
					      .words = runtime_event->words,
					      .word_count = runtime_event->word_count,
					      .result = extra};

	tw_module_tell(event_writer->t, session, &event, false);
}

/* Are there terms, which are not encoded yet, are all that the record has, and are for no further session? */
static bool is_alone(const struct event_writer *event_writer, struct tw_term extra)
{
	return event_writer->runtime_event->term_count && !event_writer->bytes && !event_writer->todo &&
	       tw_term_is_none(extra);
}

static void tell(struct event_writer *event_writer)
{
	bool is_message = event_writer->runtime_event->want <= TW_WANT_RECEIVE;

	while (event_writer->todo) {
		unsigned session = (unsigned)__builtin_ctzll(event_writer->todo);
		const struct tw_match_program *program = NULL;
		struct tw_term extra = {0};
		bool has_module = tw_module_of(session) != NULL;

		event_writer->todo &= event_writer->todo - 1;
		if (tw_unlikely(has_module) &&
		    !tw_module_wants(event_writer->t, session, (enum tw_event_kind)event_writer->runtime_event->kind,
				     false))
			continue;
		if (is_message) {
			/* PAIR hit.pattern: acquire; release in set(), which frees it after thread progress. */
			program =
				tw_load_acquire(&tw_hit_sessions[session].patterns[event_writer->runtime_event->want]);
		}
		if (program == &tw_hit_no_message ||
		    (program && !is_wanted_message(event_writer, session, program, &extra)))
			continue;
		if (tw_unlikely(has_module)) {
			if (event_writer->runtime_event->seq)
				tw_seq_event_tell(event_writer->t, session, event_writer->runtime_event,
						  event_writer->flags);
			else
				tell_module(event_writer, session, extra);
			continue;
		}
		if (is_alone(event_writer, extra) && record_in_place(event_writer, session))
			continue;
		if (!event_writer->bytes)
			event_writer->bytes = encode_terms(event_writer->runtime_event, event_writer->t->thread->terms);
		record(event_writer, session, extra);
	}
}

/* ---- the tracee ---- */

/* As tw_thread_run(), for one event. If a handler jumps out of it, the next runtime event restores the tracee. */
static void borrow(struct tw_hit_tls *t, struct tw_tracee *tracee)
{
	t->thread->saved_tracee = t->tracee;
	tw_compiler_barrier();
	t->tracee = tracee;
	tw_thread_open_run(t);
}

static bool is_monitor(const struct tw_runtime_event *runtime_event)
{
	return runtime_event->want == TW_WANT_MONITOR;
}

/* The word of the sessions that want the event. */
static const _Atomic uint64_t *wants_of(const struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event)
{
	if (runtime_event->want < TW_WANT_KINDS)
		return &tracee->wants[runtime_event->want];
	return is_monitor(runtime_event) ? &tw_monitors.wants[runtime_event->monitor] : &tw_seq_tracer;
}

/* The sessions that want the event and have it made now.  In a read section. */
static uint64_t sessions_of(struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event)
{
	if (tw_unlikely(is_monitor(runtime_event)))
		return tw_monitor_sessions(tracee, runtime_event);
	if (runtime_event->seq) {
		/* PAIR seq.tracer: acquire; release in tw_seq_set_system_tracer(): its session has rings. */
		uint64_t sessions = tw_load_acquire(&tw_seq_tracer);

		/* RELAXED tracee.tracer_of: a sensitive process, or the tracer; a change is seen by this event or by the next. */
		return sessions & ~tw_load_relaxed(&tracee->tracer_of);
	}
	/*
	 * PAIR runtime_event.wants: acquire; release in set_bit() of flags.c. A session whose bit is seen has rings.
	 * A thread that clears a bit waits for this read section to end.
	 */
	return tw_load_acquire(&tracee->wants[runtime_event->want]) & ~runtime_event->except;
}

static void event_inside(struct tw_hit_tls *t, struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event)
{
	struct event_writer event_writer = {.t = t,
					    .runtime_event = runtime_event,
					    .recheck = {.wants = wants_of(tracee, runtime_event)},
					    .flags_mask = runtime_event->want < TW_WANT_KINDS ? ~0u : 0,
					    .flags = runtime_event->seq ? tw_seq_event_stamp(runtime_event->seq) : 0,
					    .todo = sessions_of(tracee, runtime_event)};
	bool is_foreign = t->tracee != tracee;

	if (!event_writer.todo)
		return;
	if (is_foreign)
		borrow(t, tracee);
	else
		tw_thread_follow_runs(t);
	event_writer.ticks = tw_clock_ticks();
	tell(&event_writer);
	if (is_foreign)
		tw_hit_give_back(t);
}

/* Handles a thread that is not ready: counts what cannot be recorded, as hits do. True: it is ready now. */
static __attribute__((noinline, cold)) bool make_ready(struct tw_hit_tls *t, struct tw_tracee *tracee,
						       const struct tw_runtime_event *runtime_event, void *frame)
{
	enum tw_thread_state state = tw_hit_make_ready(t, frame);

	if (state == TW_THREAD_NEW)
		return true;
	if (state == TW_THREAD_IN_HIT) {
		uint64_t entered = tw_progress_enter_nested(&t->thread->reader);

		tw_hit_count_nested(t, sessions_of(tracee, runtime_event));
		tw_progress_exit_nested(&t->thread->reader, entered);
	} else if (state != TW_THREAD_JOINING) {
		/* RELAXED hit.wants: only for a session that is never destroyed. */
		tw_hit_count_pinned(tw_load_relaxed(wants_of(tracee, runtime_event)) & ~runtime_event->except, state);
	}
	return false;
}

/* Apart from the test before it, which most events do not pass: this one saves registers and takes a frame. */
static __attribute__((noinline)) void event_wanted(struct tw_tracee *tracee,
						   const struct tw_runtime_event *runtime_event)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	while (tw_unlikely(!tw_hit_begin(t, __builtin_frame_address(0))))
		if (!make_ready(t, tracee, runtime_event, __builtin_frame_address(0)))
			return;
	tw_progress_enter(&t->thread->reader);
	/* PAIR bp.active: acquire; as in hit_inside(). 0 in a forked child that is not traced. */
	if (tw_load_acquire(&tw_bp_gate.active))
		event_inside(t, tracee, runtime_event);
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	tw_hit_go_back(t);
}

void tw_runtime_event(struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event)
{
	/* RELAXED hit.wants: an early test; the decisive one is inside the read section. */
	if (!tw_load_relaxed(wants_of(tracee, runtime_event)))
		return;
	event_wanted(tracee, runtime_event);
}
