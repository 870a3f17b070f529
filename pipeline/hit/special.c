/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special.c - hits that are more than a plain call event: match programs, counters, strict and CPU stamps, meta.
 *
 * Out of line, so that the plain case of hit.c needs no callee-saved registers. Called inside the read section.
 * Compiled without vector registers, as hit.c; code that needs them is wrapped.
 */
#include "pipeline/hit/record.h"
#include "breakpoints/own_stack.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/arguments.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/module.h"
#include "pipeline/hit/special.h"
#include "pipeline/thread/stack.h"
#include "pipeline/thread/thread.h"
#include "match/match.h"
#include "term/term.h"

static struct tw_term self_of(struct tw_match_run *run)
{
	const struct tw_tracee *tracee = tw_hit_tls.tracee;

	return tracee->port_slot ? tw_term_port(tw_match_arena(run), tracee->pid_number)
				 : tw_term_pid(tw_match_arena(run), tracee->pid_number, 0);
}

static struct tw_term node_of(struct tw_match_run *run)
{
	return tw_term_is_none(tw_hit_host.node) ? tw_atom(TW_ATOM_NONODE) : tw_hit_host.node;
}

static int trace_of(struct tw_match_run *run, struct tw_term who, struct tw_term off, struct tw_term on)
{
	const struct tw_thread *thread = run->context;

	return tw_hit_host.trace(thread->run_session, who, off, on);
}

/* False for a process without flags of this session, which appears in meta events only; it stays without. */
static bool has_flags(const struct tw_tracee *tracee, unsigned session)
{
	/* RELAXED tracee.flags: its own, or a change seen by this call or by the next. */
	return tw_load_relaxed(&tracee->flags[session]) != 0;
}

static void silence_of(struct tw_match_run *run, bool is_silent)
{
	const struct tw_thread *thread = run->context;

	if (has_flags(tw_hit_tls.tracee, thread->run_session))
		tw_hit_host.silence(thread->run_session, is_silent);
}

static bool has_seq_token(struct tw_match_run *run)
{
	return tw_seq_is_current(&tw_hit_tls.tracee->seq.token);
}

static struct tw_term get_seq_token(struct tw_match_run *run)
{
	return tw_hit_host.get_seq_token(tw_match_arena(run));
}

static struct tw_term set_seq_token(struct tw_match_run *run, struct tw_term component, struct tw_term value)
{
	return tw_hit_host.set_seq_token(component, value) == 0 ? tw_atom(TW_ATOM_TRUE) : tw_word(0);
}

/* Longer strings are cut: guards do not compare with such long ones. */
static struct tw_term string_at(struct tw_match_run *run, uint64_t address)
{
	char text[TW_ARG_STRING_BYTES_MAX];
	long bytes = tw_arg_read_string(address, text, sizeof text);

	return bytes < 0 ? tw_word(0) : tw_term_binary(tw_match_arena(run), text, (size_t)bytes);
}

static bool is_string(struct tw_match_run *run, uint64_t address, const void *text, size_t bytes)
{
	return tw_arg_is_string(address, text, (unsigned)bytes);
}

/* Only a call through a trampoline has any. */
static bool vector_of(struct tw_match_run *run, uint64_t number, uint64_t *bits)
{
	*bits = tw_hit_tls.thread->vectors[number];
	return run->keep_vectors != NULL;
}

/*
 * The interpreter is next: this is the last moment at which the registers hold the call's values.  A stack of our own costs two system
 * calls, which a program that sets its own sessions does not need: it knows what its stacks have left.
 */
static void keep_vectors(void (*function)(void *), void *arg)
{
	struct tw_thread *thread = tw_hit_tls.thread;

	tw_arg_read_vectors(thread->vectors);
	if (tw_hit_host.pinned_rs && thread->run_session == tw_hit_host.pinned_session)
		tw_own_stack_call(function, arg);
	else
		tw_patch_call_keeping_vectors(function, arg);
}

static const struct tw_match_host host = {.self = self_of,
					  .node = node_of,
					  .trace = trace_of,
					  .silence = silence_of,
					  .has_seq_token = has_seq_token,
					  .get_seq_token = get_seq_token,
					  .set_seq_token = set_seq_token,
					  .caller = tw_stack_caller,
					  .caller_line = tw_stack_caller_line,
					  .stacktrace = tw_stack_trace,
					  .string_at = string_at,
					  .is_string = is_string,
					  .vector = vector_of};

void tw_hit_prepare_run(struct tw_thread *thread)
{
	thread->run = (struct tw_match_run){.host = &host,
					    .context = thread,
					    .scratch = thread->scratch,
					    .scratch_bytes = sizeof thread->scratch,
					    .keep_vectors = keep_vectors};
}

/* ---- the record ---- */

/* One session's local or meta part of a call. */
struct decision {
	unsigned session;
	bool is_meta;
	const uint64_t *words;
	unsigned recorded_count; /* words */
	uint8_t stack_depth;	 /* return addresses to record after the call */
	uint64_t ticks;		 /* of both records; 0: now */
	uint8_t flags;		 /* TW_EVENT_FLAG_ARGS: they follow the function's layout */
	struct tw_term extra;	 /* none, or X of {message,X} */
};

/* Did the hit come through a trampoline, so that vector registers are the program's? */
static bool keeps_vectors_of(const struct tw_place *place)
{
	return place->kind != TW_BP_DECLARED;
}

/*
 * Passes the call to the session's tracer module. Arguments by layout are not passed: their words are not the call's
 * arguments.
 */
static void tell(struct tw_hit_tls *t, const struct tw_place *place, const struct decision *d,
		 const struct tw_hit_call *call)
{
	const struct tw_module_event event = {.kind = TW_EVENT_CALL,
					      .is_meta = d->is_meta,
					      .place = place,
					      .has_arguments = call->terms != NULL,
					      .terms = call->terms,
					      .term_count = call->term_count,
					      .words = d->words,
					      .word_count = d->recorded_count,
					      .result = d->extra};

	tw_module_tell(t, d->session, &event, keeps_vectors_of(place));
}

/* Writes one call record and updates *wanted for the other sessions. Returns whether it was written. */
static bool record(struct tw_hit_tls *t, struct tw_place *place, const struct decision *d,
		   const struct tw_hit_call *call, uint64_t *wanted)
{
	struct tw_record_terms terms = {t->thread, 0, 0, keeps_vectors_of(place)};
	struct tw_recheck recheck = {place, d->is_meta ? NULL : &t->tracee->wants_call};
	struct tw_record_content content = {.kind = TW_EVENT_CALL,
					    .id = place->place_id,
					    .ticks = d->ticks,
					    .is_meta = d->is_meta};

	if (call->terms) {
		tw_record_list(&terms, call->terms, call->term_count);
		content.flags = TW_EVENT_FLAG_TERMS;
	} else {
		content.words = d->words;
		content.flags = d->flags;
		content.word_count = d->recorded_count;
	}
	if (!tw_term_is_none(d->extra)) {
		tw_record_term(&terms, d->extra);
		content.flags |= TW_EVENT_FLAG_EXTRA;
	}
	content.encoded = t->thread->terms;
	content.encoded_bytes = terms.bytes;
	content.term_count = terms.count;
	return tw_record_put(t, &recheck, d->session, &content, wanted);
}

/* Writes the call and its callers. A wait between them may free the part, so it is not used afterwards. */
static void record_with_stack(struct tw_hit_tls *t, struct tw_place *place, const struct decision *d,
			      const struct tw_hit_call *call, uint64_t *wanted)
{
	struct tw_thread *thread = t->thread;
	struct tw_recheck recheck = {place, &t->tracee->wants_call};
	struct tw_record_content content = {.kind = TW_EVENT_STACK,
					    .id = place->place_id,
					    .ticks = d->ticks,
					    .words = thread->callers};

	/* In a hit through a trampoline the state is the address below the slot. */
	content.word_count = tw_walk_callers(thread, (const uint64_t *)t->state + 1, call->words[TW_WALK_FRAME_WORD],
					     thread->callers, d->stack_depth);
	if (record(t, place, d, call, wanted) && content.word_count && (*wanted >> d->session & 1))
		tw_record_put(t, &recheck, d->session, &content, wanted);
}

/* ---- the decision ---- */

static void silence_there(void *arg)
{
	const struct tw_thread *thread = arg;

	tw_hit_host.silence(thread->run_session, thread->run.result.actions & TW_MATCH_SILENCE);
}

/* Adds what the session wants of the call's end. */
static void open_frame(const struct tw_bp_part *part, uint64_t bit, uint8_t actions, const struct tw_hit_call *call)
{
	struct tw_frame_wants *frame = call->frame;

	if (!frame)
		return;
	if (actions & (TW_MATCH_RETURN_TRACE | TW_MATCH_EXCEPTION_TRACE))
		frame->returns |= bit;
	if (actions & TW_MATCH_EXCEPTION_TRACE)
		frame->exceptions |= bit;
	if (part->actions & (TW_ACTION_RETURN | TW_ACTION_EXCEPTION))
		frame->returns |= bit;
	if (part->actions & TW_ACTION_EXCEPTION)
		frame->exceptions |= bit;
}

/* RELAXED hit.silent: this tracee's own, or a change seen by this call or by the next. */
#define IS_SILENT(t, bit) ((tw_load_relaxed(&(t)->tracee->silent) & (bit)) != 0)

/* There is no event of the call, but of its return, which needs its arguments. */
static void keep_suppressed(struct tw_hit_tls *t, const struct tw_place *place, const struct tw_bp_part *part,
			    const struct tw_hit_call *call)
{
	const struct tw_arg_plan *plan = place->function->arguments;

	if (part->slot_words == TW_SLOT_WORDS_TYPED && plan && plan->keeps && call->words)
		tw_open_calls_add(&t->thread->open_calls, plan, t->state, call->words);
}

/* Handles a call that is accepted, with the result of its match program (NULL: it has none). */
static uint64_t do_call(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call, const struct tw_match_result *result)
{
	uint64_t wanted = ~UINT64_C(0), bit = UINT64_C(1) << part->session;
	struct decision d = {.session = part->session, .words = call->words, .recorded_count = call->recorded_count};
	bool is_suppressed = result && result->verdict == TW_MATCH_SUPPRESS;

	if (IS_SILENT(t, bit))
		return wanted;
	open_frame(part, bit, result ? result->actions : 0, call);
	if (is_suppressed) {
		keep_suppressed(t, place, part, call);
		return wanted;
	}
	/* RELAXED hit.return_to: a change is seen by this call or by the next. */
	if (call->frame && !(part->actions & TW_ACTION_GLOBAL) && place->kind != TW_BP_SLOT)
		call->frame->return_tos |= bit & tw_load_relaxed(&t->tracee->wants_return_to);
	if (result && result->verdict == TW_MATCH_EXTRA)
		d.extra = result->message;
	if (tw_unlikely(tw_module_of(part->session) != NULL)) {
		if (part->slot_words != TW_SLOT_WORDS_TYPED && place->kind != TW_BP_DECLARED)
			d.recorded_count = part->slot_words;
		tell(t, place, &d, call);
		return wanted;
	}
	if (part->slot_words && place->kind != TW_BP_DECLARED)
		tw_hit_take_arguments(t, place, part, &d.words, &d.recorded_count, &d.flags, true);
	if (part->stack_depth && place->kind != TW_BP_DECLARED) {
		d.stack_depth = part->stack_depth;
		d.ticks = tw_clock_ticks();
		record_with_stack(t, place, &d, call, &wanted);
		return wanted;
	}
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	if (!call->terms && tw_term_is_none(d.extra) &&
	    !tw_record_stamp_of(tw_load_relaxed(&t->tracee->record_flags[part->session]), part->session))
		return tw_record_plain(t, TW_EVENT_CALL, place, place, bit,
				       (struct tw_words){.count = d.recorded_count, .more = d.words, .flags = d.flags});
	record(t, place, &d, call, &wanted);
	return wanted;
}

void tw_hit_act(struct tw_hit_tls *t)
{
	if (t->thread->run.result.actions & (TW_MATCH_SILENCE | TW_MATCH_UNSILENCE))
		tw_own_stack_call(silence_there, t->thread);
}

uint64_t tw_hit_do(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
		   const struct tw_hit_call *call, const struct tw_match_result *result)
{
	return do_call(t, place, part, call, result);
}

uint64_t tw_hit_decided(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call)
{
	/* A copy: acting and recording may overwrite the thread's run. */
	struct tw_match_result result = t->thread->run.result;

	tw_hit_act(t);
	return do_call(t, place, part, call, &result);
}

/* Runs a program over the call's terms or words; its result stays in the thread's run. */
static enum tw_match_verdict run_program(struct tw_hit_tls *t, const struct tw_match_program *program, unsigned session,
					 const struct tw_hit_call *call)
{
	struct tw_thread *thread = t->thread;

	thread->run_session = session;
	thread->run_call = call;
	if (call->terms) {
		void (*kept)(void (*)(void *), void *) = thread->run.keep_vectors;
		enum tw_match_verdict verdict;

		/* Terms come by an ordinary call: vector registers need not be kept. */
		thread->run.keep_vectors = NULL;
		verdict = tw_match_run(program, call->terms, call->term_count, &thread->run);
		thread->run.keep_vectors = kept;
		return verdict;
	}
	return tw_match_run_raw(program, call->words, call->count, &thread->run);
}

/* ---- meta: every process, whatever its flags ---- */

static void note_without_tracer(struct tw_place *place, uint64_t bit)
{
	/* RELAXED hit.without_tracer: only read by info. */
	if (!(tw_load_relaxed(&place->without_tracer) & bit))
		tw_fetch_or_relaxed(&place->without_tracer, bit);
}

static bool wants_meta(struct tw_hit_tls *t, struct tw_place *place, unsigned session)
{
	enum tw_tracer_answer answer = tw_module_ask(t, session, TW_EVENT_CALL, keeps_vectors_of(place));

	if (answer == TW_TRACER_REMOVE)
		note_without_tracer(place, UINT64_C(1) << session);
	return answer == TW_TRACER_TRACE;
}

static void do_meta(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
		    const struct tw_hit_call *call, uint64_t *wanted)
{
	struct decision d = {.session = part->session,
			     .is_meta = true,
			     .words = call->words,
			     .recorded_count = call->recorded_count};
	uint64_t bit = UINT64_C(1) << part->session;
	struct tw_match_result result = {.verdict = TW_MATCH_YES};

	/* RELAXED hit.meta_alive: a thread that sees the bit late makes an event that is never received. */
	if (tw_unlikely(!(tw_load_relaxed(&tw_hit_alive) & bit))) {
		note_without_tracer(place, bit);
		return;
	}
	/* RELAXED hit.tracer_of: a session's tracer is set before its breakpoints. */
	if (tw_load_relaxed(&t->tracee->tracer_of) & bit)
		return;
	if (tw_unlikely(tw_module_of(part->session) != NULL) && !wants_meta(t, place, part->session))
		return;
	if (part->meta_program) {
		if (run_program(t, part->meta_program, part->session, call) == TW_MATCH_NO)
			return;
		result = t->thread->run.result;
		if ((result.actions & (TW_MATCH_SILENCE | TW_MATCH_UNSILENCE)) && has_flags(t->tracee, part->session))
			tw_own_stack_call(silence_there, t->thread);
	}
	if (call->frame && (result.actions & (TW_MATCH_RETURN_TRACE | TW_MATCH_EXCEPTION_TRACE))) {
		call->frame->meta_returns |= bit;
		call->frame->meta_exceptions |= result.actions & TW_MATCH_EXCEPTION_TRACE ? bit : 0;
		call->frame->more = 1;
	}
	if (result.verdict == TW_MATCH_SUPPRESS)
		return;
	if (result.verdict == TW_MATCH_EXTRA)
		d.extra = result.message;
	if (tw_unlikely(tw_module_of(part->session) != NULL))
		tell(t, place, &d, call);
	else
		record(t, place, &d, call, wanted);
}

/* ---- a session's part ---- */

/* Makes the call event of one session. */
static void do_local(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
		     const struct tw_hit_call *call, uint64_t *wanted)
{
	int quick = 1;

	if (tw_unlikely(tw_module_of(part->session) != NULL) &&
	    !tw_module_wants(t, part->session, TW_EVENT_CALL, keeps_vectors_of(place)))
		return;
	if (part->program)
		quick = call->terms ? -1 : tw_bp_quick_test(&part->quick, call->words, call->count);
	if (quick < 0 && run_program(t, part->program, part->session, call) != TW_MATCH_NO)
		*wanted &= tw_hit_decided(t, place, part, call);
	else if (quick > 0)
		*wanted &= do_call(t, place, part, call, NULL);
}

static void do_part(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
		    const struct tw_hit_call *call, uint64_t *wanted)
{
	bool is_local = (part->actions & TW_ACTION_CALL) && !(call->is_local && (part->actions & TW_ACTION_GLOBAL));

	if (part->actions & TW_ACTION_COUNT)
		tw_counter_count(t, part->counter);
	if (part->actions & (TW_ACTION_TIME | TW_ACTION_MEMORY))
		tw_counts_enter(t, part, call->frame);
	/* PROGRESS hit.wants: as in hit(). */
	if (is_local && (tw_load_relaxed(&t->tracee->wants_call) >> part->session & 1))
		do_local(t, place, part, call, wanted);
}

/* A session's part here in the generation that is active now; NULL: none. */
static const struct tw_bp_part *find_part(const struct tw_place *place, unsigned session, struct tw_bp_part *plain)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);
	const struct tw_bp_generation *generation = &place->gen[(active - 1) & 1];
	uint64_t bit = UINT64_C(1) << session;

	if (!active || !(generation->sessions & bit))
		return NULL;
	if (generation->special & bit)
		return tw_bp_part_of(generation, bit);
	/* Only the fields that are read of a plain part: zeroing all of it takes as long as a record. */
	plain->session = (uint8_t)session;
	plain->slot_words = 0;
	plain->stack_depth = 0;
	plain->program = NULL;
	plain->actions = TW_ACTION_CALL | (generation->returns & bit ? TW_ACTION_RETURN : 0) |
			 (generation->exceptions & bit ? TW_ACTION_EXCEPTION : 0) |
			 (generation->global & bit ? TW_ACTION_GLOBAL : 0);
	return plain;
}

/*
 * A record may have to wait for space, outside of the read section. Then the generation that this hit began with may
 * be gone, and each session is looked up in the active one.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call)
{
	uint64_t wanted = ~UINT64_C(0);

	tw_thread_follow_runs(t);
	for (; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_bp_part plain;
		const struct tw_bp_part *part = wanted >> session & 1 ? find_part(place, session, &plain) : NULL;
		bool has_meta = part && (part->actions & TW_ACTION_META);

		if (part)
			do_part(t, place, part, call, &wanted);
		/* Local first, then meta. */
		if (has_meta && (wanted >> session & 1))
			part = find_part(place, session, &plain);
		if (has_meta && part && (part->actions & TW_ACTION_META))
			do_meta(t, place, part, call, &wanted);
	}
	return wanted;
}
