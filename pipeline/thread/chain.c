/* SPDX-License-Identifier: Apache-2.0 */
/* chain.c - chains of tail calls. */
#include "pipeline/thread/chain.h"
#include "base/clock.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/process_memory.h"

#include <string.h>

enum { HEAD_WORDS = 13, SEGMENT_WORDS = TW_BLOCK_WORDS - 2, CONTEXTS_A_BLOCK = 4, CONTEXTS_MAX = 1 << 15 };

#define CONTEXT_SHIFT 48
#define PLACE_MASK    ((UINT64_C(1) << CONTEXT_SHIFT) - 1)
#define IS_COUNT      (UINT64_C(1) << 63)

/* The sessions that want the end of a call, by event. */
struct context {
	uint64_t returns, exceptions, meta_returns, meta_exceptions;
	uint64_t return_tos; /* sessions whose return_to follows this call's end */
	uint64_t epoch;
};

/* Lies in the words of the block that the frame refers to. */
struct head {
	struct tw_block *segment;  /* the last one; NULL: all words are in the head */
	struct tw_block *contexts; /* those after the first one; the last block of them */
	uint64_t return_tos;	   /* of all calls in the chain */
	uint64_t epoch;		   /* the epoch at which they were checked */
	uint64_t last, repeats;	   /* the word on top, which is in no segment yet, and how many more calls equal
				 * it */
	uint64_t lost;		   /* calls that did not fit */
	uint32_t lost_context;	   /* the context of these calls */
	uint32_t last_context;
	uint32_t context_count;
	uint32_t count; /* of words */
	struct context first;
	uint64_t words[HEAD_WORDS];
};

struct segment {
	struct tw_block *below;
	uint64_t count;
	uint64_t words[SEGMENT_WORDS];
};

struct contexts {
	struct tw_block *before;
	struct context contexts[CONTEXTS_A_BLOCK];
};

_Static_assert(sizeof(struct head) <= TW_BLOCK_WORDS * 8 && sizeof(struct segment) == TW_BLOCK_WORDS * 8 &&
		       sizeof(struct contexts) <= TW_BLOCK_WORDS * 8,
	       "each fits a block");

static struct head *head_of(struct tw_block *block)
{
	return (struct head *)block->words;
}

static struct segment *segment_of(struct tw_block *block)
{
	return (struct segment *)block->words;
}

static struct contexts *contexts_of(struct tw_block *block)
{
	return (struct contexts *)block->words;
}

static struct tw_process_memory *memory_here(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	/* &tw_hit_nobody is shared by all threads. */
	return t->tracee == &tw_hit_nobody ? &t->thread->memory : &t->tracee->memory;
}

/* ---- what is wanted ---- */

static uint64_t events_of(const struct tw_frame_wants *wants)
{
	return wants->returns | wants->exceptions |
	       (wants->more & 1 ? wants->meta_returns | wants->meta_exceptions : 0);
}

/* Clears the bits of sessions that are gone, and brings the rest to a later epoch. */
static void renew(struct tw_frame_wants *wants, uint64_t epoch)
{
	uint64_t gone = tw_hit_newer_than(wants->epoch);

	wants->returns &= ~gone;
	wants->exceptions &= ~gone;
	wants->return_tos &= ~gone;
	wants->meta_returns &= ~gone;
	wants->meta_exceptions &= ~gone;
	wants->epoch = epoch;
}

/* ---- contexts ---- */

static struct context *context_at(struct head *head, uint32_t number)
{
	struct tw_block *block = head->contexts;

	if (!number)
		return &head->first;
	for (uint32_t i = (head->context_count - 2) / CONTEXTS_A_BLOCK; i > (number - 1) / CONTEXTS_A_BLOCK; i--)
		block = contexts_of(block)->before;
	return &contexts_of(block)->contexts[(number - 1) % CONTEXTS_A_BLOCK];
}

static uint64_t sessions_of(const struct context *context)
{
	return context->returns | context->exceptions | context->meta_returns | context->meta_exceptions |
	       context->return_tos;
}

/* Are these the same sessions, all of them alive? */
static bool is_same(struct context *context, const struct context *wanted)
{
	if (context->returns != wanted->returns || context->exceptions != wanted->exceptions ||
	    context->meta_returns != wanted->meta_returns || context->meta_exceptions != wanted->meta_exceptions ||
	    context->return_tos != wanted->return_tos || (sessions_of(context) & tw_hit_newer_than(context->epoch)))
		return false;
	if (context->epoch < wanted->epoch)
		context->epoch = wanted->epoch;
	return true;
}

static bool are_all_gone(struct head *head)
{
	for (uint32_t i = 0; i < head->context_count; i++) {
		const struct context *context = context_at(head, i);

		/* PAIR hit.epoch: acquire; as in frame.c. */
		if (sessions_of(context) & tw_load_acquire(&tw_hit_alive) & ~tw_hit_newer_than(context->epoch))
			return false;
	}
	return true;
}

static void give_blocks(struct tw_process_memory *memory, struct head *head)
{
	struct tw_block *below;

	for (struct tw_block *block = head->segment; block; block = below) {
		below = segment_of(block)->below;
		tw_block_give(memory, block);
	}
	for (struct tw_block *block = head->contexts; block; block = below) {
		below = contexts_of(block)->before;
		tw_block_give(memory, block);
	}
}

/* No session wants the end of any call in it any more: resets it. */
static void empty(struct tw_process_memory *memory, struct head *head)
{
	uint64_t epoch = head->epoch;

	give_blocks(memory, head);
	memset(head, 0, sizeof *head);
	head->epoch = epoch;
}

/* The number of the context of a call; -1: no memory. */
static int64_t find_context(struct tw_process_memory *memory, struct head *head, const struct tw_frame_wants *wants)
{
	struct context wanted = {wants->returns, wants->exceptions, 0, 0, wants->return_tos, wants->epoch};
	uint32_t number = head->context_count;

	if (wants->more & 1) {
		wanted.meta_returns = wants->meta_returns;
		wanted.meta_exceptions = wants->meta_exceptions;
	}
	if (number && is_same(context_at(head, head->last_context), &wanted))
		return head->last_context;
	while (number-- > 0)
		if (is_same(context_at(head, number), &wanted))
			return head->last_context = number;
	if (head->context_count && are_all_gone(head))
		empty(memory, head);
	number = head->context_count;
	if (number == CONTEXTS_MAX)
		return -1;
	if (number && (number - 1) % CONTEXTS_A_BLOCK == 0) {
		struct tw_block *block = tw_block_take(memory, TW_TAIL_BLOCKS_LEFT);

		if (!block)
			return -1;
		contexts_of(block)->before = head->contexts;
		head->contexts = block;
	}
	head->context_count++;
	*context_at(head, number) = wanted;
	return head->last_context = number;
}

/* ---- entries ---- */

/* `words` consecutive words; NULL: no memory. */
static uint64_t *make_space(struct tw_process_memory *memory, struct head *head, unsigned words)
{
	struct tw_block *block = head->segment;
	struct segment *segment;

	if (!block && head->count + words <= HEAD_WORDS) {
		head->count += words;
		return &head->words[head->count - words];
	}
	if (!block || segment_of(block)->count + words > SEGMENT_WORDS) {
		block = tw_block_take(memory, TW_TAIL_BLOCKS_LEFT);
		if (!block)
			return NULL;
		segment_of(block)->below = head->segment;
		segment_of(block)->count = 0;
		head->segment = block;
	}
	segment = segment_of(block);
	segment->count += words;
	return &segment->words[segment->count - words];
}

static bool put(struct tw_process_memory *memory, struct head *head, uint64_t word)
{
	uint64_t *capacity;

	if (word == head->last) {
		head->repeats++;
		return true;
	}
	if (head->last) {
		capacity = make_space(memory, head, head->repeats ? 2 : 1);
		if (!capacity)
			return false;
		capacity[0] = head->last;
		if (head->repeats)
			capacity[1] = head->repeats | IS_COUNT;
	}
	head->last = word;
	head->repeats = 0;
	return true;
}

static struct tw_block *make_head(struct tw_process_memory *memory)
{
	struct tw_block *block = tw_block_take(memory, TW_TAIL_BLOCKS_LEFT);

	if (block) {
		memset(block->words, 0, sizeof block->words);
		block->is_chain = true;
	}
	return block;
}

/* Moves what the frame holds to its chain. False: no memory. */
static bool push(struct tw_process_memory *memory, struct head *head, const struct tw_frame_wants *wants)
{
	int64_t context = find_context(memory, head, wants);

	if (context < 0 || !put(memory, head, (uintptr_t)wants->place | (uint64_t)context << CONTEXT_SHIFT))
		return false;
	head->return_tos |= wants->return_tos;
	return true;
}

/* ---- losses ---- */

static void count_ends(const struct context *context, uint64_t count, bool is_exception)
{
	/* PAIR hit.epoch: acquire; as in frame.c. */
	uint64_t gone = tw_hit_newer_than(context->epoch), alive = tw_load_acquire(&tw_hit_alive) & ~gone;
	/* PAIR hit.epoch: acquire; as in frame.c. */
	uint64_t traced = tw_load_acquire(&tw_hit_tls.tracee->wants_call) & ~gone;

	tw_frame_count_lost((is_exception ? context->exceptions : context->returns) & traced, count);
	tw_frame_count_lost((is_exception ? context->meta_exceptions : context->meta_returns) & alive, count);
}

/*
 * The callee's end will not be seen. Until more is known it counts as a return, if it cannot be kept with the others.
 */
static void refuse(struct tw_process_memory *memory, struct head *head, const struct tw_frame_wants *callee)
{
	struct context context = {callee->returns, callee->exceptions, 0, 0, 0, callee->epoch};
	struct tw_frame_wants wants = *callee;
	int64_t number = -1;

	if (callee->more & 1) {
		context.meta_returns = callee->meta_returns;
		context.meta_exceptions = callee->meta_exceptions;
	}
	wants.return_tos = 0;
	if (head)
		number = find_context(memory, head, &wants);
	if (number < 0) {
		count_ends(&context, 1, false);
		return;
	}
	if (head->lost && head->lost_context != number) {
		count_ends(context_at(head, head->lost_context), head->lost, false);
		head->lost = 0;
	}
	head->lost_context = (uint32_t)number;
	head->lost++;
}

/* ---- a tail call ---- */

static void go_over(struct tw_process_memory *memory, uint32_t *chain, struct tw_frame_wants *wants,
		    struct tw_frame_wants *callee)
{
	struct tw_block *block = *chain ? tw_block_find(memory, *chain) : NULL;
	struct head *head = block ? head_of(block) : NULL;
	uint64_t first;

	if (!head)
		*chain = 0;
	renew(wants, callee->epoch);
	if (head) {
		head->return_tos &= ~tw_hit_newer_than(head->epoch);
		head->epoch = callee->epoch;
	}
	/* Sessions of which the callee is the first call to want return_to. */
	first = callee->return_tos & ~(wants->return_tos | (head ? head->return_tos : 0));
	if (!events_of(wants)) {
		uint64_t return_tos = first | wants->return_tos;

		*wants = *callee;
		wants->return_tos = return_tos;
		return;
	}
	if (!events_of(callee) && !(first & events_of(wants))) {
		wants->return_tos |= first;
		return;
	}
	if (!head) {
		block = make_head(memory);
		if (block) {
			head = head_of(block);
			head->epoch = callee->epoch;
			*chain = tw_block_reference(block);
		}
	}
	if (head && push(memory, head, wants)) {
		*wants = *callee;
		wants->return_tos = first;
	} else {
		wants->return_tos |= first;
		refuse(memory, head, callee);
	}
}

void tw_chain_go_over(uint32_t *chain, struct tw_frame_wants *wants, struct tw_frame_wants *callee)
{
	struct tw_frame_wants accounts;

	if (!tw_frame_begin(__builtin_frame_address(0), callee->returns))
		return;
	/* The frame keeps its own accounts to the end: the account to resume ran before its first call. */
	tw_counts_hand_over(wants, callee, &accounts);
	go_over(memory_here(), chain, wants, callee);
	tw_counts_keep(wants, &accounts);
	tw_frame_end();
}

/* A chain that no session wants; NULL: there is none. */
static struct tw_block *find_unwanted(const struct tw_process_memory *memory)
{
	struct tw_block *block = memory->used;

	while (block && !(block->is_chain && are_all_gone(head_of(block))))
		block = block->next;
	return block;
}

void tw_chains_sweep(struct tw_tracee *tracee)
{
	struct tw_process_memory *memory = &tracee->memory;
	/* PAIR hit.epoch: acquire; as in frame.c. */
	uint64_t alive = tw_load_acquire(&tw_hit_alive), epoch = tw_load_acquire(&tw_hit_epoch);
	struct tw_block *block;

	if (memory->alive == alive && memory->epoch == epoch)
		return;
	while ((block = find_unwanted(memory))) {
		give_blocks(memory, head_of(block));
		tw_block_give(memory, block);
	}
	memory->alive = alive;
	memory->epoch = epoch;
}

/* ---- the end ---- */

bool tw_chain_walk_begin(struct tw_chain_walk *walk, uint32_t chain)
{
	struct tw_block *block = tw_hit_tls.thread ? tw_block_find(memory_here(), chain) : NULL;
	struct head *head;

	if (!block)
		return false;
	head = head_of(block);
	*walk = (struct tw_chain_walk){block, head->segment, head->last, head->repeats,
				       head->segment ? segment_of(head->segment)->count : head->count};
	return true;
}

/* Removes the next word; 0: there is none. */
static uint64_t take_word(struct tw_chain_walk *walk)
{
	struct head *head = head_of(walk->head);

	if (!walk->count && walk->segment) {
		walk->segment = segment_of(walk->segment)->below;
		walk->count = walk->segment ? segment_of(walk->segment)->count : head->count;
	}
	if (!walk->count)
		return 0;
	walk->count--;
	return walk->segment ? segment_of(walk->segment)->words[walk->count] : head->words[walk->count];
}

bool tw_chain_walk_next(struct tw_chain_walk *walk, struct tw_frame_wants *wants)
{
	const struct context *context;

	if (!walk->word) {
		walk->word = take_word(walk);
		walk->repeats = 0;
		if (walk->word & IS_COUNT) {
			walk->repeats = walk->word & ~IS_COUNT;
			walk->word = take_word(walk);
		}
	}
	if (!walk->word)
		return false;
	context = context_at(head_of(walk->head), (uint32_t)(walk->word >> CONTEXT_SHIFT));
	*wants = (struct tw_frame_wants){.place = (struct tw_place *)(uintptr_t)(walk->word & PLACE_MASK),
					 .returns = context->returns,
					 .exceptions = context->exceptions,
					 .return_tos = context->return_tos,
					 .epoch = context->epoch,
					 .more = (context->meta_returns | context->meta_exceptions) != 0,
					 .meta_returns = context->meta_returns,
					 .meta_exceptions = context->meta_exceptions};
	if (walk->repeats)
		walk->repeats--;
	else
		walk->word = 0;
	return true;
}

void tw_chain_walk_end(struct tw_chain_walk *walk, bool is_exception)
{
	struct tw_process_memory *memory;
	struct head *head = head_of(walk->head);

	if (!tw_frame_begin(__builtin_frame_address(0), 0))
		return;
	memory = memory_here();
	if (head->lost)
		count_ends(context_at(head, head->lost_context), head->lost, is_exception);
	give_blocks(memory, head);
	tw_block_give(memory, walk->head);
	tw_frame_end();
}
