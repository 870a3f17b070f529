/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.c - the frames that declared functions give back: tail calls, returns, exceptions.
 *
 * A frame holds what the function that runs in it wants of its end.  A tail call pushes that to a node of a
 * pool, and the frame holds what the callee wants; the end pops them, the last called first.  The pool is
 * bounded: a call that finds no node is counted as lost, and its callers' are kept.
 */
#include "base/export.h"
#include "pipeline/hit.h"
#include "pipeline/stack.h"
#include "tracewheel/function.h"

#define NODES 4096

struct node {
	struct tw_frame_wants wants;
	uint64_t return_tos; /* sessions that want one of this call or of those below */
	uint32_t below;	     /* 1 + a node; 0: the last */
	_Atomic uint32_t next_free;
};

_Static_assert(sizeof(struct tw_frame_wants) <= sizeof((struct tw_frame *)0)->words,
	       "a frame holds what it wants");

static struct node nodes[NODES];
/* 1 + the first free node in the low half, a count against reuse in the high half; and how many were never
 * used. */
static _Atomic uint64_t free_nodes;
static _Atomic uint32_t fresh_nodes;

static uint32_t take_node(void)
{
	/* PAIR token.node: acquire; release in give_node(): who gave it has read it. */
	uint64_t head = tw_load_acquire(&free_nodes);

	while ((uint32_t)head) {
		/* RELAXED token.next: the compare-and-swap fails if it was another's meanwhile. */
		uint32_t next = tw_load_relaxed(&nodes[(uint32_t)head - 1].next_free);

		/* PAIR token.node: acquire; as above. */
		if (tw_cas_acq_rel(&free_nodes, &head, ((head >> 32) + 1) << 32 | next))
			return (uint32_t)head;
	}
	/* RELAXED token.fresh: each number once. */
	if (tw_load_relaxed(&fresh_nodes) >= NODES)
		return 0;
	/* RELAXED token.fresh: as above; a few may go beyond the end, and find nothing. */
	head = tw_fetch_add_relaxed(&fresh_nodes, 1);
	return head < NODES ? (uint32_t)head + 1 : 0;
}

static void give_node(uint32_t number)
{
	/* RELAXED token.node: the compare-and-swap decides. */
	uint64_t head = tw_load_relaxed(&free_nodes);

	do {
		/* RELAXED token.next: published by the compare-and-swap. */
		tw_store_relaxed(&nodes[number - 1].next_free, (uint32_t)head);
		/* PAIR token.node: release; acquire in take_node(). */
	} while (!tw_cas_acq_rel(&free_nodes, &head, ((head >> 32) + 1) << 32 | number));
}

static struct tw_frame_wants *wants_of(struct tw_frame *frame)
{
	return (struct tw_frame_wants *)frame->words;
}

/* The sessions that want a return_to of a call that went over to another one. */
static uint64_t return_tos_below(const struct tw_frame *frame)
{
	return frame->tail ? nodes[frame->tail - 1].return_tos : 0;
}

TW_API void tw_hit_tail(struct tw_declared_function *function, struct tw_frame *frame,
			const struct tw_frame_call *call)
{
	struct tw_frame callee;
	uint32_t number;

	if (!frame->is_open) {
		tw_hit_enter(function, frame, call);
		return;
	}
	tw_hit_enter(function, &callee, call);
	if (!callee.is_open)
		return;
	number = take_node();
	if (!number) {
		/* One return_to there is all the same. */
		wants_of(frame)->return_tos |= wants_of(&callee)->return_tos;
		tw_frame_refuse(wants_of(&callee));
		return;
	}
	nodes[number - 1].wants = *wants_of(frame);
	nodes[number - 1].return_tos = wants_of(frame)->return_tos | return_tos_below(frame);
	nodes[number - 1].below = frame->tail;
	*wants_of(frame) = *wants_of(&callee);
	frame->tail = number;
}

/* How all that share a frame end. */
struct ending {
	struct tw_frame_value value;
	const struct tw_raise *raise; /* NULL: a return */
};

static void end_one(const struct tw_frame_wants *wants, const struct ending *ending,
		    struct tw_frame_back *back)
{
	if (ending->raise)
		tw_frame_exception(wants, (enum tw_frame_class)ending->raise->exception_class,
				   ending->value.term, "undefined", back);
	else
		tw_frame_return(wants, &ending->value, back);
}

/* A chain of tail calls has one return_to: that of the first call whose return_to was wanted, when that one ends. */
static void go_back(const struct tw_frame *frame, struct tw_frame_back *back)
{
	struct tw_frame_back first = *back;
	struct tw_frame_where where;

	first.sessions &= ~return_tos_below(frame);
	if (!first.sessions)
		return;
	back->sessions &= ~first.sessions;
	where = tw_stack_where();
	tw_frame_return_to(&first, &where);
}

static void end_all(struct tw_frame *frame, const struct ending *ending, struct tw_frame_back *back)
{
	frame->is_open = 0;
	end_one(wants_of(frame), ending, back);
	while (frame->tail) {
		struct node *node = &nodes[frame->tail - 1];
		uint32_t number = frame->tail;

		if (!ending->raise)
			go_back(frame, back);
		frame->tail = node->below;
		end_one(&node->wants, ending, back);
		give_node(number);
	}
	if (!ending->raise)
		go_back(frame, back);
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
