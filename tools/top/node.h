/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - processes of an Erlang node and functions that it counts, as the lines of tracewheel_top bring them, and rows of them in order.
 *
 * Threads  the command's.
 */
#ifndef TW_TOOLS_TOP_NODE_H
#define TW_TOOLS_TOP_NODE_H

#include "tools/top/top.h"

/* In the order in which the key s goes through them. */
enum tw_node_order {
	TW_NODE_BY_RATE,
	TW_NODE_BY_REDUCTIONS,
	TW_NODE_BY_MAILBOX,
	TW_NODE_BY_MEMORY,
	TW_NODE_BY_NAME,
	TW_NODE_ORDERS
};

/* Texts of a process, by the words of `report --by`. */
enum {
	TW_NODE_PID,
	TW_NODE_NAME,
	TW_NODE_INITIAL_CALL,
	TW_NODE_BEHAVIOUR,
	TW_NODE_APPLICATION,
	TW_NODE_LABEL,
	TW_NODE_TEXTS
};

/* A process; or a function, which has calls for reductions, and its name for a pid. */
struct tw_node_row {
	uint64_t all;  /* since the process began, or the last reset */
	uint64_t last; /* between the two last looks at it */
	uint64_t us;   /* the time between these; 0: that of the round */
	uint64_t mailbox, memory_bytes;
	char *line;			  /* has the texts */
	const char *texts[TW_NODE_TEXTS]; /* "": not known, or none */
};

struct tw_node_rows {
	struct tw_node_row *rows;
	uint32_t count, capacity;
};

struct tw_node_round {
	uint64_t all_ns, round_ns; /* since the beginning, or the last reset; of this round */
	uint64_t processes, known; /* in the node; of which numbers are known */
};

/* Zeroed at first, but what the user chose. */
struct tw_node {
	bool has_functions; /* -t was given */
	bool shows_functions;
	enum tw_node_order order;
	char filter[TW_TOP_FILTER_BYTES]; /* rows contain it; "": all */
	struct tw_node_round now, coming; /* the last round, and the one of which lines come */
	struct tw_node_rows processes, functions, coming_processes, coming_functions;
	const struct tw_node_row **shown; /* in order */
	uint32_t shown_count, shown_capacity;
	char *input; /* a part of a line, with input_bytes */
	size_t input_bytes, input_capacity;
	bool is_watching;
	char end[512]; /* a sentence that says why it has ended; "": as it was asked for */
	int code;      /* the exit code of that */
};

extern const struct tw_top_kind tw_top_of_node;

/* The order of a word; TW_NODE_ORDERS: none. */
enum tw_node_order tw_node_order_named(const char *name);
/*
 * tw_node_read - wait for more of the helper's lines, and take in all that have come; @is_dropped: forget rounds.
 *
 * Returns TW_TOP_ROUND, TW_TOP_PIECE, TW_TOP_ENDED, or TW_ENOMEM.
 */
int tw_node_read(struct tw_node *node, int fd, bool is_dropped);
void tw_node_free(struct tw_node *node);

#endif
