/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h - chains of tail calls: the calls whose ends are wanted, in the order in which they end.
 *
 * A frame of a declared function holds what is wanted of the end of the call that runs in it. A tail call (the
 * function ends by calling another one in its place) passes the frame on, and what was wanted of the caller goes
 *
 *	return_from, exception_from	to the frame's *chain*: one entry a call, the last called on top
 *	return_to			nowhere: a session gets one, after the first call that asked for it; the
 *					call that ends right before carries the bit
 *	call_time, call_memory		nowhere: the frame resumes the account that ran before its first call
 *
 * A chain therefore costs nothing where only return_to or accounts are wanted. Otherwise it costs 8 bytes a call, and
 * consecutive calls of one function cost as much as two: a server loop needs one block however long it runs.
 *
 *	head	struct head | 13 words			blocks of the process (process_memory.h)
 *	segment	below, count | 26 words
 *	word	bits 0 .. 47 a place, 48 .. 62 a context	or, with bit 63: the number of repeats of the word below
 *	context	the sessions that want a call's end: few in a chain, so that entries hold a number
 *
 * Limit	the blocks of a process: 1,597,000 calls that alternate, any number of one function's.  Calls beyond it
 *		are recorded, and their ends are counted when the chain ends: for each session the events that it
 *		would have had, as TW_RB_LOST_FULL.
 * Memory	is given back when the frame ends, when the process exits, or, once all sessions that wanted ends of the
 *		chain are gone, when the process is scheduled in next or another session wants an end of it.
 * Threads	on the thread that runs the process, as frames.
 * Source	OTP: return_trace and return_to of tail-recursive functions.
 */
#ifndef TW_PIPELINE_CHAIN_H
#define TW_PIPELINE_CHAIN_H

#include "pipeline/hit/frame.h"

struct tw_block;
struct tw_tracee;

/*
 * tw_chain_go_over - the call that runs in a frame ends by calling another one in its place.
 *
 * @chain	reference of the frame's chain, 0: none; may become one.
 * @wants	of the frame; becomes what the frame holds from here on.
 * @callee	what is wanted of the callee, which is open.
 */
void tw_chain_go_over(uint32_t *chain, struct tw_frame_wants *wants, struct tw_frame_wants *callee);

/*
 * Called before a process runs: if sessions have gone since the last check, frees chains that no session wants any
 * more.
 */
void tw_chains_sweep(struct tw_tracee *tracee);

/* Iterates over the calls of a chain as they end, the last called first. */
struct tw_chain_walk {
	struct tw_block *head, *segment;
	uint64_t word, repeats; /* the next word to report, and how often more; 0: it must be read first */
	uint64_t count;		/* of words in the segment */
};

/* The calls below the one whose wants the frame holds. False: the process has no chain with that reference. */
bool tw_chain_walk_begin(struct tw_chain_walk *walk, uint32_t chain);
bool tw_chain_walk_next(struct tw_chain_walk *walk, struct tw_frame_wants *wants);
/* All calls have ended: counts those that could not be kept, and gives the memory back. */
void tw_chain_walk_end(struct tw_chain_walk *walk, bool is_exception);

#endif
