/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.h - the messages between nodes of several captures, by their ends: sends in one, receives in another.
 *
 * Memory   bounded: more messages than fit at once are matched in parts, by several readings of the captures.
 * Threads  one.
 */
#ifndef TW_TOOLS_MESSAGES_H
#define TW_TOOLS_MESSAGES_H

#include "views/folds/seq_events.h"
#include "tools/merge/align.h"
#include "base/map.h"

/* The most ends that are kept at once, 32 bytes each. */
#define TW_MESSAGES_ENDS_MAX (UINT32_C(1) << 22)

struct tw_messages_node {
	char *name;
	uint32_t capture; /* UINT32_MAX: no capture has its events */
	bool is_twice;	  /* two captures have events of it */
	uint32_t other;
	uint64_t no_sends, no_receives; /* messages from it, and to it, whose end there is in no capture */
};

struct tw_messages {
	struct tw_capture *const *captures;
	const uint32_t *machines; /* by capture */
	uint32_t count;
	uint32_t ends_max; /* for tests; 0: TW_MESSAGES_ENDS_MAX */
	struct tw_align *align;
	/* Results. */
	struct tw_messages_node *nodes;
	uint32_t node_count, node_capacity;
	struct tw_map by_name;
	uint64_t pairs;	    /* messages between captures */
	uint64_t between;   /* those between machines: they are in align */
	uint64_t ambiguous; /* of serials that occur more than once: not used */
	uint64_t no_send, no_receive;
	uint64_t damaged;
};

/* Finds the nodes, and which are in two captures. Returns 0 or an error. tw_messages_free() in any case. */
int tw_messages_find_nodes(struct tw_messages *messages);
/* Reads all messages between captures, and adds those between machines to messages->align. */
int tw_messages_read(struct tw_messages *messages);
void tw_messages_free(struct tw_messages *messages);

#endif
