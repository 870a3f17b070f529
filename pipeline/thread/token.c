/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.c - the frames that declared functions give back: tail calls, returns, exceptions.
 *
 * A frame holds what is wanted of the end of the function that runs in it; the calls that tail calls ended are in its
 * chain (chain.h).
 */
#include "base/export.h"
#include "pipeline/thread/chain.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/stack.h"
#include "tracewheel/function.h"

_Static_assert(sizeof(struct tw_frame_wants) <= sizeof((struct tw_frame *)0)->words, "a frame holds what it wants");

static struct tw_frame_wants *wants_of(struct tw_frame *frame)
{
	return (struct tw_frame_wants *)frame->words;
}

TW_API void tw_hit_tail(struct tw_declared_function *function, struct tw_frame *frame, const struct tw_frame_call *call)
{
	struct tw_frame callee;

	if (!frame->is_open) {
		tw_hit_enter(function, frame, call);
		return;
	}
	tw_hit_enter(function, &callee, call);
	if (callee.is_open)
		tw_chain_go_over(&frame->tail, wants_of(frame), wants_of(&callee));
}

/* How all calls that share a frame end. */
struct ending {
	struct tw_frame_value value;
	const struct tw_raise *raise; /* NULL: a return */
};

static void end_one(const struct tw_frame_wants *wants, const struct ending *ending, struct tw_frame_back *back)
{
	if (ending->raise)
		tw_frame_exception(wants, (enum tw_frame_class)ending->raise->exception_class, ending->value.term,
				   "undefined", back);
	else
		tw_frame_return(wants, &ending->value, back);
}

/*
 * Writes return_to for the sessions that still want it. After an exception only its catcher knows where control
 * continues.
 */
static void go_back(const struct ending *ending, struct tw_frame_back *back)
{
	struct tw_frame_where where;

	if (ending->raise || !back->sessions)
		return;
	where = tw_stack_where();
	tw_frame_return_to(back, &where);
}

static void end_chain(uint32_t chain, const struct ending *ending, struct tw_frame_back *back)
{
	struct tw_frame_wants wants;
	struct tw_chain_walk walk;

	if (!tw_chain_walk_begin(&walk, chain))
		return;
	while (tw_chain_walk_next(&walk, &wants)) {
		end_one(&wants, ending, back);
		go_back(ending, back);
	}
	tw_chain_walk_end(&walk, ending->raise != NULL);
}

static void end_all(struct tw_frame *frame, const struct ending *ending, struct tw_frame_back *back)
{
	uint32_t chain = frame->tail;

	frame->is_open = 0;
	frame->tail = 0;
	end_one(wants_of(frame), ending, back);
	go_back(ending, back);
	if (chain)
		end_chain(chain, ending, back);
}

static void leave(struct tw_frame *frame, struct tw_frame_value value)
{
	struct tw_frame_back back = {0};
	struct ending ending = {value, NULL};

	end_all(frame, &ending, &back);
}

TW_API void tw_hit_leave(struct tw_frame *frame, uint64_t value)
{
	leave(frame, (struct tw_frame_value){.kind = TW_FRAME_WORD, .word = value});
}

TW_API void tw_hit_leave_void(struct tw_frame *frame)
{
	leave(frame, (struct tw_frame_value){.kind = TW_FRAME_NO_VALUE});
}

TW_API void tw_hit_leave_term(struct tw_frame *frame, struct tw_term value)
{
	leave(frame, (struct tw_frame_value){.kind = TW_FRAME_TERM, .term = value});
}

TW_API void tw_hit_unwind(struct tw_frame *frame, struct tw_raise *raise)
{
	struct tw_frame_back back = {.sessions = raise->words[0], .epoch = raise->words[1]};
	struct ending ending = {{.kind = TW_FRAME_TERM, .term = raise->value}, raise};

	end_all(frame, &ending, &back);
	raise->words[0] = back.sessions;
	raise->words[1] = back.epoch;
}

TW_API void tw_hit_caught(struct tw_raise *raise, const struct tw_stack_entry *catcher)
{
	struct tw_frame_back back = {.sessions = raise->words[0], .epoch = raise->words[1]};
	struct tw_frame_where where = {0};

	if (catcher) {
		where.module = catcher->module;
		where.function = catcher->function;
		where.arity = catcher->arity;
	}
	tw_frame_return_to(&back, &where);
	raise->words[0] = raise->words[1] = 0;
}
