/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special.c - hits that are more than a plain call event: match programs, counters, strict stamps.
 *
 * Out of line, so that the plain case of hit.c needs no callee-saved registers.  Called inside the
 * read section.  Compiled without vector registers, as hit.c; what needs them is wrapped.
 */
#include "pipeline/hit.h"
#include "base/clock.h"
#include "breakpoints/patch.h"
#include "match/match.h"

static _Atomic uint64_t unique_integer;

uint64_t tw_hit_unique_integer(void)
{
	/* RELAXED hit.unique: a read-modify-write hands out each number once, in one order for all. */
	return tw_fetch_add_relaxed(&unique_integer, 1) + 1;
}

static struct tw_term self_of(struct tw_match_run *run)
{
	return tw_term_pid(tw_match_arena(run), tw_hit_tls.tracee->pid_number, 0);
}

static int trace_of(struct tw_match_run *run, struct tw_term who, struct tw_term off, struct tw_term on)
{
	const struct tw_thread *thread = run->context;

	return tw_hit_host.trace(thread->run_session, who, off, on);
}

static const struct tw_match_host host = { .self = self_of, .trace = trace_of };

void tw_hit_prepare_run(struct tw_thread *thread)
{
	thread->run = (struct tw_match_run){ .host = &host,
					     .context = thread,
					     .scratch = thread->scratch,
					     .scratch_bytes = sizeof thread->scratch,
					     .keep_vectors = tw_patch_call_keeping_vectors };
}

/* ---- the record ---- */

struct encoding {
	struct tw_term term;
	char *buffer;
	size_t room, bytes;
};

static void encode_there(void *arg)
{
	struct encoding *e = arg;
	struct tw_sink sink = { .start = e->buffer, .at = e->buffer, .end = e->buffer + e->room };

	e->bytes = tw_etf_encode(e->term, (struct tw_term){ 0 }, &sink) == 0 ? (size_t)(sink.at - sink.start) : 0;
}

/* The extra element as bytes, filled up to a word.  One that is too large leaves the event without it. */
static size_t encode_extra(struct tw_hit_tls *t, struct tw_term extra, const uint8_t **out)
{
	struct encoding e = { extra, (char *)t->thread->extra, sizeof t->thread->extra, 0 };

	tw_patch_call_keeping_vectors(encode_there, &e);
	for (size_t i = e.bytes; i % 8; i++)
		t->thread->extra[i] = 0;
	*out = t->thread->extra;
	return e.bytes;
}

static void copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = from[i];
}

/* One call record: [unique integer] [counts] words [extra element]. */
static void record(struct tw_hit_tls *t, struct tw_place *place, unsigned session, const struct tw_hit_call *call,
		   struct tw_term extra, uint64_t *todo)
{
	struct tw_lane *lane = &t->thread->lanes[session];
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	unsigned flags = tw_load_relaxed(&t->tracee->record_flags[session]);
	bool is_strict = (flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC;
	const uint8_t *extra_at = NULL;
	size_t extra_bytes = extra.word ? encode_extra(t, extra, &extra_at) : 0;
	size_t extra_words = (extra_bytes + 7) / 8;
	size_t count = is_strict + (extra_bytes != 0) + call->recorded_count + extra_words;
	uint32_t bytes = (uint32_t)(sizeof(struct tw_rb_record) + (count + 1) / 2 * 16);
	uint64_t ticks = tw_clock_ticks();
	struct tw_rb_record *r;
	uint64_t *payload;
	enum tw_rb_outcome outcome;

	if (lane->run_stamp != t->run_stamp && !tw_lane_catch_up(t, place, session, ticks, todo))
		return;
	outcome = tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&r);
	if (outcome == TW_RB_WAIT && tw_lane_wait(t, place, session, bytes, ticks, todo))
		outcome = tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&r);
	if (outcome != TW_RB_OK)
		return;
	payload = (uint64_t *)(r + 1);
	r->ticks = ticks;
	flags |= (count % 2 ? TW_EVENT_FLAG_HALF : 0) | (extra_bytes ? TW_EVENT_FLAG_EXTRA : 0);
	r->head = TW_RB_HEAD(TW_EVENT_CALL, flags, bytes, place->place_id);
	if (is_strict)
		*payload++ = tw_hit_unique_integer();
	if (extra_bytes)
		*payload++ = call->recorded_count | (uint64_t)extra_bytes << 32;
	copy_words(payload, call->words, call->recorded_count);
	copy_words(payload + call->recorded_count, (const uint64_t *)extra_at, extra_words);
	tw_rb_commit(&lane->producer, bytes);
}

/* ---- the decision ---- */

static void silence_there(void *arg)
{
	const struct tw_thread *thread = arg;

	tw_hit_host.silence(thread->run_session, thread->run.result.actions & TW_MATCH_SILENCE);
}

/* The event of a call that is wanted, unless the process is silent. */
static void record_unless_silent(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
				 unsigned session, const struct tw_hit_call *call, struct tw_term extra,
				 uint64_t *wanted)
{
	struct tw_hit_call recorded = *call;

	if (part && part->slot_words && place->kind != TW_BP_DECLARED)
		recorded.recorded_count = part->slot_words;
	/* RELAXED hit.silent: this tracee's own, or a change seen by this call or by the next. */
	if (!(tw_load_relaxed(&t->tracee->silent) >> session & 1))
		record(t, place, session, &recorded, extra, wanted);
}

uint64_t tw_hit_decided(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call)
{
	const struct tw_match_result *result = &t->thread->run.result;
	uint64_t wanted = ~UINT64_C(0);

	if (result->actions & (TW_MATCH_SILENCE | TW_MATCH_UNSILENCE))
		tw_patch_call_keeping_vectors(silence_there, t->thread);
	if (result->verdict != TW_MATCH_SUPPRESS)
		record_unless_silent(t, place, part, part->session, call,
				     result->verdict == TW_MATCH_EXTRA ? result->message : (struct tw_term){ 0 },
				     &wanted);
	return wanted;
}

/* One session's part of a call; NULL: plain, but for the stamp. */
static void do_part(struct tw_hit_tls *t, struct tw_place *place, unsigned session, const struct tw_bp_part *part,
		    const struct tw_hit_call *call, uint64_t *wanted)
{
	int quick = 1;

	if (part && (part->actions & TW_ACTION_COUNT)) {
		/* RELAXED hit.count: a count, summed when somebody asks. */
		tw_fetch_add_relaxed(part->counter, 1);
	}
	/* PROGRESS hit.wants: as in hit(). */
	if ((part && !(part->actions & TW_ACTION_CALL)) ||
	    !(tw_load_relaxed(&t->tracee->wants_call) >> session & 1))
		return;
	if (part && part->program)
		quick = tw_bp_quick_test(&part->quick, call->words, call->count);
	if (quick < 0 && tw_hit_run(t, part, call) != TW_HIT_UNWANTED)
		*wanted &= tw_hit_decided(t, place, part, call);
	else if (quick > 0)
		record_unless_silent(t, place, part, session, call, (struct tw_term){ 0 }, wanted);
}

/*
 * A record may have to wait for room, outside of the read section: then the generation that this hit
 * began with is gone, and each session is looked up in the one that is active now.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call)
{
	uint64_t wanted = ~UINT64_C(0);

	for (; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		uint64_t bit = UINT64_C(1) << session;
		/* PAIR bp.active: acquire; as in hit(). */
		uint32_t active = tw_load_acquire(&tw_bp_gate.active);
		const struct tw_bp_generation *generation = &place->gen[(active - 1) & 1];
		const struct tw_bp_part *part = NULL;

		if (!active || !(generation->sessions & bit))
			continue;
		if (generation->special & bit)
			part = tw_bp_part_of(generation, bit);
		do_part(t, place, session, part, call, &wanted);
	}
	return wanted;
}
