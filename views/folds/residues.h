/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residues.h - the sums of calls of one segment, and what it knows of calls that cross its borders.
 *
 *	segment 1                segment 2                  segment 3
 *	call f  call g  return g | return f  call h | return h
 *	        (sum of g)       | open: f          | return f without a call; open: h
 *
 * Sums have the calls that ended in the segment with their times. A call that is open at its end is a *frame*, a return of a call that began
 * before it is a *return*: both belong to a stack, which has the same name in all segments of its process. Frames and returns of
 * all segments in order give the remaining calls with their times:
 *
 *	a return ends the innermost open frame of its function; frames inside are cut
 *	total   from the frame's start to the return, without the tracer's time on the stack between
 *	self    total without the calls inside: of each segment the outermost calls of the stack, which lie in its innermost open frame, and
 *		the calls joined this way
 *	within  a total counts the outermost call of a recursive function only; in segments that the call crosses, calls of its function looked outermost.
 *		Their time up to the return is in the return, in whole segments in the stack's sums
 *
 * Memory  that of the call tree, with a node for each process; 40 bytes a residue, TW_RESIDUES_MAX a stack.
 */
#ifndef TW_VIEWS_RESIDUES_H
#define TW_VIEWS_RESIDUES_H

#include "views/folds/calltree.h"

/* Of a stack, of both kinds: later ones are counted only. */
#define TW_RESIDUES_MAX 4096

/* A return whose call began before the segment. */
struct tw_residue_return {
	uint32_t function;
	bool is_exception;
	uint64_t at_ns;
	uint64_t own_ns;    /* the tracer's time on the stack up to then, in this segment */
	uint64_t inner_ns;  /* of outermost calls that ended between the return before it and this one */
	uint64_t within_ns; /* total of the function on this stack up to then, in this segment */
};

struct tw_residue_stack {
	const struct tw_stack *stack; /* its frames are those that are open at the end; NULL: none of this number */
	struct tw_residue_return *returns;
	uint32_t count, capacity;
	uint32_t dropped;  /* returns beyond the limit */
	uint64_t outer_ns; /* of outermost calls that had ended at the last return */
	uint64_t inner_ns; /* of those that ended behind it */
	uint64_t *totals;  /* by function: as in the sums, of this stack; NULL: there are none */
	uint64_t own_ns;   /* the tracer's time on the stack in this segment */
	uint64_t last_ns;  /* the end of its thread or process, or the last that is known of it */
};

struct tw_residues {
	struct tw_calltree tree;	 /* functions[] are the sums */
	struct tw_residue_stack *stacks; /* by number */
	uint32_t count, capacity;
	bool has_no_memory;
};

/*
 * tw_residues_make - read all events of a capture.
 *
 * @residues	is written.
 * Returns 0 or an error; tw_residues_free() in both cases.
 */
int tw_residues_make(struct tw_residues *residues, struct tw_capture *capture);
void tw_residues_free(struct tw_residues *residues);

#endif
