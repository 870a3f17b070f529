/* SPDX-License-Identifier: Apache-2.0 */
/* special.h - the general case of a hit: match programs, range tests, counters, stamps.  Called by hit.c, in its read section. */
#ifndef TW_PIPELINE_SPECIAL_H
#define TW_PIPELINE_SPECIAL_H

#include "pipeline/hit/hit.h"

/*
 * The general case of hit.c, in special.c: match programs, range tests, counters, strict and CPU time stamps, meta.
 * Adds what those sessions want of the call's end to call->frame, which begins as zeros. Returns the mask of sessions
 * that still want this call; after a wait some may not.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call);

/*
 * Selects the words to record of a call through a trampoline: of @words as many as the part wants, or what the
 * function's layout makes of them; unless @may_have_text, without strings and other memory.
 */
static inline __attribute__((always_inline)) void tw_hit_take_arguments(struct tw_hit_tls *t,
									const struct tw_place *place,
									const struct tw_bp_part *part,
									const uint64_t **words, unsigned *count,
									uint8_t *flags, bool may_have_text)
{
	const struct tw_arg_plan *plan = place->function->arguments;

	if (part->slot_words != TW_SLOT_WORDS_TYPED) {
		*count = part->slot_words;
	} else if (plan) {
		if (tw_unlikely(plan->keeps))
			tw_open_calls_add(&t->thread->open_calls, plan, t->state, *words);
		*count = may_have_text ? tw_arg_capture(plan, *words, &t->thread->copying, t->thread->arguments)
				       : tw_arg_capture_registers(plan, *words, t->thread->arguments);
		*words = t->thread->arguments;
		*flags = TW_EVENT_FLAG_ARGS;
	}
}

/* The verdict of a match program on a call. */
enum tw_hit_verdict {
	TW_HIT_UNWANTED, /* no clause matched */
	TW_HIT_PLAIN,	 /* a plain event */
	TW_HIT_MORE	 /* actions, an extra element, or no event: see tw_hit_decided() */
};
/* Runs the part's program over the words; its result stays in the thread's run. */
static inline enum tw_hit_verdict tw_hit_run(struct tw_hit_tls *t, const struct tw_bp_part *part,
					     const struct tw_hit_call *call)
{
	struct tw_thread *thread = t->thread;
	enum tw_match_verdict verdict;

	thread->run_session = part->session;
	thread->run_call = call;
	verdict = tw_match_run_raw(part->program, call->words, call->count, &thread->run);
	if (verdict == TW_MATCH_NO)
		return TW_HIT_UNWANTED;
	return verdict == TW_MATCH_YES && !thread->run.result.actions ? TW_HIT_PLAIN : TW_HIT_MORE;
}
/* Carries out what the last tw_hit_run() decided. Returns as tw_hit_special(). */
uint64_t tw_hit_decided(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call);

/* The two halves of that: what the program does to the thread; the event, by a copy of the program's result. */
void tw_hit_act(struct tw_hit_tls *t);
uint64_t tw_hit_do(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
		   const struct tw_hit_call *call, const struct tw_match_result *result);

/* Makes a thread ready to run match programs. */
void tw_hit_prepare_run(struct tw_thread *thread);

#endif
