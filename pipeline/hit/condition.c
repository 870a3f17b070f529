/* SPDX-License-Identifier: Apache-2.0 */
/* condition.c - conditions on native calls.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/condition.h"
#include "breakpoints/own_stack.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

static struct tw_match_run *run_of(const struct tw_place *place, const uint64_t *words, unsigned count)
{
	struct tw_thread *thread = tw_hit_tls.thread;
	struct tw_one_hit *one = &thread->one;

	one->wants.place = (struct tw_place *)(uintptr_t)place;
	one->call = (struct tw_hit_call){.words = words, .count = count, .frame = &one->wants};
	thread->run_session = tw_hit_host.pinned_session;
	thread->run_call = &one->call;
	return &thread->run;
}

bool tw_condition_is_met(const struct tw_call_condition *condition, const struct tw_place *place, const uint64_t *words,
			 unsigned count)
{
	return !condition->program ||
	       tw_match_run_raw(condition->program, words, count, run_of(place, words, count)) != TW_MATCH_NO;
}

struct evaluation {
	const struct tw_call_condition *condition;
	const struct tw_place *place;
	const uint64_t *words;
	bool is_met;
};

static void evaluate_there(void *arg)
{
	struct evaluation *e = arg;

	e->is_met = tw_condition_is_met(e->condition, e->place, e->words, TW_CONDITION_WORDS);
}

static __attribute__((noinline)) bool is_met_there(const struct tw_call_condition *condition,
						   const struct tw_place *place, const uint64_t *words)
{
	struct evaluation e = {.condition = condition, .place = place, .words = words};

	tw_own_stack_call(evaluate_there, &e);
	return e.is_met;
}

/* The words are where arguments are described later: the program's stack may have little left. */
bool tw_condition_is_met_by_end(const struct tw_call_condition *condition, const struct tw_place *place,
				const struct tw_condition_end *end)
{
	uint64_t *words = tw_hit_tls.thread->arguments, value = end->value;
	uint64_t error = (uint64_t)(int64_t)*tw_hit_tls.thread->errno_at;
	enum tw_match_verdict verdict;

	for (unsigned i = 0; i < TW_ARGS_MAX; i++)
		words[i] = 0;
	for (unsigned i = 0; i < condition->kept_count; i++)
		words[condition->kept[i]] = end->registers[condition->kept[i]];
	words[TW_CONDITION_DURATION] = (uint64_t)((unsigned __int128)end->ticks * condition->ns_scale >> 32);
	words[TW_CONDITION_EXCEPTION] = end->is_exception;
	words[TW_CONDITION_RESULT] = value;
	words[TW_CONDITION_ERRNO] = error;
	words[TW_CONDITION_ERRNO_OF_INT] = (int32_t)value == -1 ? error : 0;
	words[TW_CONDITION_ERRNO_OF_LONG] = (int64_t)value == -1 ? error : 0;
	words[TW_CONDITION_ERRNO_OF_POINTER] = !value || (int64_t)value == -1 ? error : 0;
	if (!condition->program)
		return true;
	/* The rest takes more stack than the program may have left. */
	verdict = tw_match_run_briefly(condition->program, words, TW_CONDITION_WORDS, &tw_hit_tls.thread->run);
	return verdict == TW_MATCH_UNDECIDED ? is_met_there(condition, place, words) : verdict != TW_MATCH_NO;
}
