/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calltree.h - the calls between functions, with numbers and times: one tree of a whole capture.
 *
 * A node is a function at the end of a chain of callers. Sums by function and by caller are derived from it, so that
 * all views agree. Total time counts only the outermost call of a recursive function; self time is the time in the
 * function itself, without calls that are in the capture and without time in which its process was scheduled out.
 *
 * If calls return and have recorded call stacks, an outermost call lies below the callers that its stack names: they
 * have its time, but no calls of their own.
 *
 * If nothing returns, but call stacks were recorded, the tree is made of stacks: a node's total is the number of
 * events that were recorded with its function on the stack; its self is the number of those of the function itself,
 * which are its calls.
 *
 * Memory  48 bytes a node and at most TW_CALLTREE_NODES_MAX of them: calls beyond that are counted, by function,
 *	below a node of their own.  A histogram for each function that returned.
 */
#ifndef TW_VIEWS_CALLTREE_H
#define TW_VIEWS_CALLTREE_H

#include "views/folds/frames.h"
#include "views/folds/groups_processes.h"
#include "views/folds/histogram.h"
#include "views/folds/parts.h"
#include "views/folds/pass.h"
#include "views/folds/spread.h"
#include "views/folds/call_stacks.h"
#include "views/folds/stacks_spans.h"
#include "base/map.h"

#define TW_CALLTREE_NODES_MAX (UINT32_C(1) << 20)
/* Chains of callers longer than this continue below the same node. */
#define TW_CALLTREE_DEPTH_MAX 2000
/* With has_node_spread: nodes beyond these have none. They take 80 MB. */
#define TW_CALLTREE_SPREADS_MAX (UINT32_C(1) << 18)

struct tw_call_node {
	/* The fields that every call reads and changes. */
	uint32_t function;  /* of a process: the number of its stack */
	uint32_t last_used; /* the child of the last call */
	uint64_t calls;
	uint64_t total_ns; /* both: numbers of events, if the tree is made of stacks */
	uint64_t self_ns;
	uint32_t parent;
	uint32_t first_child, next_sibling;
	uint16_t depth;
	bool is_recursive : 1; /* its function is also an ancestor */
	bool is_process : 1;
	bool is_hidden : 1; /* left out by tw_calltree_hide_waits(): it has no calls and no time */
	bool is_lossy : 1;  /* its sums contain losses, or calls that were cut */
};

/* The root, and the node for calls beyond the limit. */
enum { TW_CALLTREE_ROOT, TW_CALLTREE_BEYOND, TW_CALLTREE_FIRST };

struct tw_call_function {
	/* The fields that every call changes lie side by side: two cache lines. */
	uint64_t calls; /* that began in the selection */
	uint64_t total_ns;
	uint64_t self_ns;
	struct tw_cost_times paid; /* in the selection */
	struct tw_histogram took;  /* of the calls that returned, by value or exception, with no loss in them */
	uint64_t before;	   /* calls that were open at the beginning: their time counts from there */
	uint64_t exceptions;
	uint64_t cut;
	uint64_t no_end;	     /* whose ends are not recorded: their time is their callers' */
	uint64_t lossy;		     /* calls that continued after a loss, or ended in one */
	uint64_t lossy_ns;	     /* of total_ns: time in losses */
	struct tw_state_sums states; /* of total_ns: the time in which its threads ran, ...; the rest is unknown */
	uint64_t open;
	uint64_t lock_ns;	  /* of total_ns: in waits for locks that other threads held, with locks */
	struct tw_spread *spread; /* of own times; NULL without has_spread */
};

/* Sums up a call that ended. @is_nested: its time is already in the total. False: no memory. */
static inline bool tw_call_function_end(struct tw_call_function *function, enum tw_frame_end how,
					const struct tw_frame_time *time, bool is_nested)
{
	function->self_ns += time->self_ns;
	function->total_ns += is_nested ? 0 : time->total_ns;
	if (how != TW_FRAME_RETURNED) {
		function->exceptions += how == TW_FRAME_EXCEPTION;
		function->cut += how == TW_FRAME_CUT;
		function->open += how == TW_FRAME_OPEN;
	}
	if (time->is_lossy) {
		function->lossy++;
		function->lossy_ns += is_nested ? 0 : time->lost_ns;
	}
	if (time->states && !is_nested)
		tw_state_sums_add(&function->states, &time->states->total);
	return !time->is_exact || tw_histogram_add(&function->took, time->total_ns);
}

struct tw_calltree {
	struct tw_capture *capture;
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_tracer_cost cost;
	struct tw_stacks_spans spans;
	struct tw_call_node *nodes;
	uint32_t node_count, node_capacity;
	struct tw_when *when;		    /* other calls are left out; NULL: none is.  Borrowed */
	uint32_t node_max;		    /* 0: TW_CALLTREE_NODES_MAX */
	struct tw_map by_key;		    /* nodes of functions, by parent and function */
	struct tw_call_function *functions; /* by number */
	uint32_t function_count;
	bool is_by_stack;
	bool has_stack_callers; /* some outermost calls lie below callers of their stacks */
	struct tw_frames frames;
	struct tw_call_stacks call_stacks; /* if the capture has any */
	uint64_t stackless;		   /* calls without a stack, if others have one */
	uint32_t *process_nodes;	   /* by stack number; the root if processes are merged */
	uint32_t process_capacity;
	bool is_by_process;
	bool is_by_kind; /* wanted, with is_by_process: processes of one kind are one */
	enum tw_process_kind kind;
	struct tw_calltree_kind {
		char *text;
		uint32_t node;
	} * kinds;
	uint32_t kind_count, kind_capacity;
	struct tw_map by_kind;
	bool is_of_off;			       /* wanted: tw_calltree_take_off() */
	bool hides_waits;		       /* wanted: tw_calltree_hide_waits() */
	uint64_t hidden_waits, hidden_wait_ns; /* calls that it left out */
	struct tw_state_sums states;	       /* of outermost calls; what they lack in outermost_ns is unknown */
	uint64_t outermost_ns;
	bool has_spread;		 /* how own times vary is wanted */
	bool has_node_spread;		 /* likewise, at each node */
	struct tw_spread **node_spreads; /* of own times, by node; NULL: too few calls, or too many nodes */
	uint32_t node_spread_capacity, node_spread_count;
	struct tw_frame_states *node_states; /* of times, by node, if threads have states */
	uint32_t node_state_capacity;
	bool follows_locks; /* wanted: waits for locks (calltree_locks.h) */
	struct tw_call_locks *locks;
	uint64_t lock_ns;	/* of outermost calls: in waits for locks */
	uint64_t *node_lock_ns; /* by node, of total_ns: likewise */
	uint32_t node_lock_capacity;
	struct tw_parts *parts; /* wanted: sums by thread and time; NULL: not; borrowed */
	bool is_full;		/* nodes were refused */
	bool has_no_memory;
	bool is_in_part; /* the selection has begun */
	uint64_t events;
	uint64_t lost;
	/* Called for every event as well; NULL: none. */
	bool (*on_event)(void *context, const struct tw_capture_event *event, const struct tw_step *step);
	/* Called for returns whose calls are not known; NULL: none. */
	void (*on_unmatched)(void *context, const struct tw_stack *stack, uint32_t function, enum tw_frame_end how,
			     uint64_t ns);
	void *context;
};

/* A pair of caller and function, summed up. */
struct tw_call_edge {
	uint32_t caller; /* a function; TW_PLACES_NONE: none is known */
	uint32_t callee;
	uint64_t calls;
	uint64_t total_ns;
	uint64_t self_ns;
	bool is_lossy; /* the sums contain losses, or calls that were cut */
};

/*
 * tw_calltree_begin - the fold that makes the tree of a selection; tw_calltree_end() after its pass.
 *
 * @tree	zeroed, except is_by_process, is_by_kind, kind, is_of_off, hides_waits, follows_locks, has_spread, has_node_spread, parts, when, node_max, on_event, on_unmatched and context, and places if they are made.
 * @filter	if calls return, events before its from_ns are read too: calls that are open there count from there on.
 * @fold	is written; it refers to the tree.
 *
 * Returns 0 or an error; tw_calltree_free() in both cases.
 */
int tw_calltree_begin(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_fold *fold);
void tw_calltree_end(struct tw_calltree *tree, const struct tw_capture_filter *filter);
/* The same with that of waits for locks before it, if the tree follows them and the capture has any. */
int tw_calltree_folds(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_fold folds[2], size_t *count);
/* The two around a pass of their own. Returns 0 or an error; tw_calltree_free() in both cases. */
int tw_calltree_make(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter);
/*
 * The same in one reading of the capture, with places that are presumed (places.h): they keep what was counted, for tw_totals_take().
 *
 * Returns 1; 0 if it needs a scan: the tree is as before; or an error, with tw_calltree_free().
 */
int tw_calltree_make_at_once(struct tw_calltree *tree, struct tw_capture *capture,
			     const struct tw_capture_filter *filter);
void tw_calltree_free(struct tw_calltree *tree);

/* Does this function wait (waits.h)? */
bool tw_calltree_waits(const struct tw_calltree *tree, uint32_t function);
/* Of tw_calltree_end(): leaves out calls of functions that wait, all in them, and their time in the calls around. */
void tw_calltree_hide_waits(struct tw_calltree *tree);

/* Of tw_calltree_end(): times become those in which threads were off the processor. Durations of calls stay. */
void tw_calltree_take_off(struct tw_calltree *tree);

/* All pairs of caller and function, to be freed. NULL: no memory. */
struct tw_call_edge *tw_calltree_edges(const struct tw_calltree *tree, size_t *count);

/* The children of a node, most total time first (calls, if there are no times), to be freed. */
uint32_t *tw_calltree_children(const struct tw_calltree *tree, uint32_t node, size_t *count);

/*
 * A tree that is put together from others (treediff.h): an empty one, zeroed except node_max, and the child of a node for a function, which is
 * added if it is not there. False: no memory; the child is then TW_CALLTREE_BEYOND, and has_no_memory is set.
 */
bool tw_calltree_init(struct tw_calltree *tree);
uint32_t tw_calltree_child(struct tw_calltree *tree, uint32_t node, uint32_t function);

/*
 * tw_calltree_add_stack - for a tree that is made of stacks alone: an empty one whose capture and places are made.
 *
 * @words	return addresses, the innermost first, whose function has the sums for its own; those above it have them in their totals.
 *		None: callers that are not known have a node of that name.
 * @amount	in the place of times: bytes, say.
 *
 * Returns false without memory.
 */
bool tw_calltree_add_stack(struct tw_calltree *tree, uint32_t image, const uint64_t *words, uint32_t count,
			   uint64_t calls, uint64_t amount);

/* The name of a node: borrowed. */
const char *tw_calltree_name(const struct tw_calltree *tree, uint32_t node);

#endif
