/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - the values of native calls, for the general way in which they end. */
#include "pipeline/hit/result.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/arguments.h"
#include "pipeline/hit/described.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/open_calls.h"
#include "pipeline/thread/thread.h"

/* As in native.c: identifies a call during its hits. */
#define FRAME(slot) ((void *)((slot)-1))

_Static_assert(TW_DESCRIBED_WORDS_MAX <= TW_ARG_WORDS_MAX, "descriptions fit where arguments do");

/* The result, and what the call has made or filled. */
static __attribute__((noinline)) void return_more(const struct tw_frame_wants *wants, const uint64_t *slot,
						  uint64_t value, struct tw_frame_back *back)
{
	const struct tw_arg_plan *plan = wants->place->function->arguments;
	struct tw_thread *thread = tw_hit_tls.thread;
	/* Not in a hit, whose are those of the thread. */
	struct tw_arg_copying copying;
	uint64_t words[TW_ARG_WORDS_MAX];
	struct tw_frame_value given = {.kind = TW_FRAME_MANY, .many = {.words = words, .count = 1}};

	words[0] = value;
	if (thread && plan) {
		const uint64_t *words_of_call = tw_open_calls_take(&thread->open_calls, plan, (uintptr_t)FRAME(slot));
		given.many.count = plan->describes ? tw_described_return(plan->describes, value, words_of_call, words)
						   : tw_arg_capture_filled(plan, value, words_of_call,
									   *thread->errno_at, &copying, words);
	}
	tw_frame_return(wants, &given, back);
}

/* The value is in rax, unless debug information said otherwise. */
void tw_result_return(const struct tw_frame_wants *wants, const uint64_t *slot, uint64_t value,
		      struct tw_frame_back *back)
{
	static const enum tw_frame_value_kind kinds[] = {TW_FRAME_NO_VALUE, TW_FRAME_WORD, TW_FRAME_WORDS};
	struct tw_frame_value given = {.kind = TW_FRAME_WORD, .word = value};

	if (tw_unlikely(wants->place->gives)) {
		if (wants->place->gives == TW_BP_GIVES_MORE) {
			return_more(wants, slot, value, back);
			return;
		}
		given.kind =
			kinds[tw_arg_read_result(wants->place->gives, value, tw_returns_second(slot), given.words)];
	}
	tw_frame_return(wants, &given, back);
}
