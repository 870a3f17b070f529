/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calltree.h - which function called which, how often and for how long: one tree of a whole capture.
 *
 * A node is a function at the end of a chain of callers.  Sums by function and by caller come from it, so
 * that all views agree.  Total time counts the outermost call of a recursive function only; self time is the
 * time in the function itself, without calls that are in the capture and without what its process was out.
 *
 * Where nothing returns, but call stacks were recorded, the tree is theirs: a node's total is the number of events that
 * were recorded with its function on the stack, its self those of the function itself, which are its calls.
 *
 * Memory  56 bytes a node and at most TW_CALLTREE_NODES_MAX of them: what is called beyond stands, by
 *	function, below a node of its own.  A histogram for each function that returned.
 */
#ifndef TW_TOOLS_CALLTREE_H
#define TW_TOOLS_CALLTREE_H

#include "tools/common/frames.h"
#include "tools/report/histogram.h"
#include "tools/common/stacks.h"

#define TW_CALLTREE_NODES_MAX (UINT32_C(1) << 20)
/* Chains of callers longer than this continue below the same node. */
#define TW_CALLTREE_DEPTH_MAX 2000

struct tw_call_node {
	uint32_t parent;
	uint32_t function; /* TW_CALLTREE_PROCESS: a process, which is stack number `process` */
	uint32_t first_child, next_sibling;
	uint32_t last_used; /* the child that was called last */
	uint16_t depth;
	bool is_recursive; /* its function is further up */
	bool is_process;
	bool is_lossy; /* losses, or calls that were left unseen, lie in its sums */
	uint64_t calls;
	uint64_t total_ns; /* both: events, where the tree is of stacks */
	uint64_t self_ns;
};

/* The root, and what stands in for nodes beyond the limit. */
enum { TW_CALLTREE_ROOT, TW_CALLTREE_BEYOND, TW_CALLTREE_FIRST };

struct tw_call_function {
	uint64_t calls;	 /* that began in what is asked for */
	uint64_t before; /* that were open where it begins: their time counts from there */
	uint64_t total_ns;
	uint64_t self_ns;
	uint64_t exceptions;
	uint64_t cut;
	uint64_t lossy;	   /* calls that went on behind a loss, or ended in one */
	uint64_t lossy_ns; /* of total_ns: in losses */
	uint64_t open;
	struct tw_histogram took; /* of the calls that returned, by value or exception, with no loss in them */
};

/* A call whose stack comes next, on one thread. */
struct tw_call_pending {
	const struct tw_stack *stack; /* NULL: none */
	uint32_t function, place;
};

struct tw_calltree {
	struct tw_capture *capture;
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_call_node *nodes;
	uint32_t node_count;
	uint32_t node_max; /* 0: TW_CALLTREE_NODES_MAX */
	uint32_t *slots;
	uint32_t mask;
	struct tw_call_function *functions; /* by number */
	uint32_t function_count;
	bool is_by_stack;
	struct tw_frames frames;
	struct tw_call_pending *pending; /* by stream */
	uint32_t stream_count;
	uint64_t stackless;	 /* calls without a stack, among others that have one */
	uint32_t *process_nodes; /* by stack number; the root where processes are merged */
	uint32_t process_room;
	bool is_by_process;
	bool is_full; /* nodes were refused */
	bool has_no_memory;
	uint64_t events;
	uint64_t lost;
	/* Who looks at every event beside; NULL: nobody. */
	bool (*on_event)(void *context, const struct tw_capture_event *event, const struct tw_step *step);
	void *context;
};

/* A caller of a function, summed up. */
struct tw_call_edge {
	uint32_t caller; /* a function; TW_PLACES_NONE: none is known */
	uint32_t callee;
	uint64_t calls;
	uint64_t total_ns;
	uint64_t self_ns;
	bool is_lossy; /* losses, or calls that were left unseen, lie in the sums */
};

/*
 * tw_calltree_make - reads the whole selection of a capture.
 *
 * @tree	zeroed, but for is_by_process, node_max, on_event and context.
 * @filter	events before its from_ns are read too where calls return: calls that are open there have their time from there on.
 * Answers 0 or an error; tw_calltree_free() in both cases.
 */
int tw_calltree_make(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_calltree_free(struct tw_calltree *tree);

/* Every pair of caller and function; free().  NULL without memory. */
struct tw_call_edge *tw_calltree_edges(const struct tw_calltree *tree, size_t *count);

/* The children of a node, most total time first (calls, where there are no times); free(). */
uint32_t *tw_calltree_children(const struct tw_calltree *tree, uint32_t node, size_t *count);

/* What a node is called: borrowed. */
const char *tw_calltree_name(const struct tw_calltree *tree, uint32_t node);

#endif
