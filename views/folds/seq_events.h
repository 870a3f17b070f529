/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_events.h - the events of sequential tracing in a capture, block by block, with the nodes of their processes.
 *
 * A pid in such an event is one of the process image that recorded it, or one of another node, which it names. A node is
 * an Erlang node, or an operating-system process: 'tw-PID-START@BOOT' (the process id; when it started, in the clock
 * ticks of /proc; the first eight hex digits of the kernel's boot id). By it a receive in one image leads to the send in
 * another.
 *
 * Blocks without such events are not read: a large capture with few of them is read in the time that its headers take.
 *
 * Threads  one. Terms are lent until the next event is taken apart.
 */
#ifndef TW_VIEWS_SEQ_EVENTS_H
#define TW_VIEWS_SEQ_EVENTS_H

#include "views/output/output.h"
#include "base/map.h"

#include "tracewheel/capture.h"
#include "tracewheel/term.h"

/* No node: the target is no pid. */
#define TW_SEQ_NO_NODE UINT32_MAX
/* The most nodes: more are no memory. */
#define TW_SEQ_NODES_MAX (UINT32_C(1) << 22)

struct tw_seq_node {
	char *name;
	uint32_t image; /* the first with this name; TW_CAPTURE_NONE: the capture has no events of this node */
	bool is_learnt; /* the name is that of an Erlang node, and was found in its events */
};

struct tw_seq_nodes {
	const struct tw_capture *capture;
	struct tw_seq_node *nodes;
	uint32_t count, capacity;
	struct tw_map by_name;
	uint32_t *of_image; /* by image */
	uint32_t image_count;
	struct tw_term atoms[16]; /* a cache: atoms and their nodes */
	uint32_t atom_nodes[16];
};

/* Finds the nodes of all images. Returns 0 or TW_ENOMEM; tw_seq_nodes_free() in both cases. */
int tw_seq_nodes_make(struct tw_seq_nodes *nodes, const struct tw_capture *capture);
void tw_seq_nodes_free(struct tw_seq_nodes *nodes);
/* How people know a node: as the capture calls it, or the name of its program and its process id. */
#define TW_SEQ_NODE_BYTES 128
const char *tw_seq_node_text(const struct tw_seq_nodes *nodes, uint32_t node, char text[TW_SEQ_NODE_BYTES]);
/* Are there several nodes, so that processes must be shown with theirs? */
bool tw_seq_nodes_are_shown(const struct tw_seq_nodes *nodes);

/* A process of a node, or another target of a message. */
struct tw_seq_process {
	uint32_t node; /* TW_SEQ_NO_NODE: only the term tells */
	uint32_t number, serial;
	uint32_t creation; /* 0 for nodes whose events are in the capture */
	struct tw_term term;
};

struct tw_seq_event {
	uint64_t time_ns, ticks;
	uint32_t image, stream;
	uint8_t kind;	 /* TW_CAPTURE_SEQ_SEND, _RECEIVE, _PRINT */
	uint8_t flags;	 /* of the event: its stamp */
	uint64_t unique; /* of a strict stamp */
	struct tw_term label;
	int64_t previous, current;
	struct tw_seq_process from, to;
	/* The message in the external term format. */
	const void *message;
	size_t message_bytes;
};

/* Takes an event apart; its time is not set. Returns 1, 0: it is damaged, or TW_ENOMEM. */
int tw_seq_take(struct tw_seq_nodes *nodes, const struct tw_capture_event *from, struct tw_seq_event *event);

/* A number that the send and the receive of a message share, and hardly any other. */
uint64_t tw_seq_key(const struct tw_seq_event *event);

/* Events lost in one place of a stream. */
struct tw_seq_loss {
	uint64_t from_ns, to_ns;
	uint32_t image, stream;
	uint64_t count, overwritten; /* lost; replaced by newer ones, which are not among the lost */
};

struct tw_seq_reader {
	struct tw_seq_nodes *nodes;
	uint64_t from_ns, to_ns; /* 0: no end */
	/* False ends the reading with TW_ENOMEM. */
	bool (*event)(void *context, const struct tw_seq_event *event);
	/* Losses in blocks that were read; NULL: of no interest. */
	bool (*loss)(void *context, const struct tw_seq_loss *loss);
	void *context;
	/* out */
	uint64_t damaged; /* events that cannot be decoded */
};

/* Reads all of them: in the order of each stream, streams in no order. Returns 0 or an error. */
int tw_seq_read(struct tw_seq_reader *reader, struct tw_capture *capture);

#endif
