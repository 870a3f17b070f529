/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.h - the owner of a ring set writes into a member's memory while all its threads are stopped: because the member asks, and
 * at the end, to take back what was written.
 *
 * Errors  outcomes only: what is not written is no error here.
 */
#ifndef TW_RINGBUF_HELD_H
#define TW_RINGBUF_HELD_H

#include "base/atomic.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_rs;

/* ---- in shared memory ---- */

/* A member's request that the owner write into its memory while all its threads are stopped (held.c). */
enum tw_rs_held_state { TW_RS_HELD_IDLE, TW_RS_HELD_ASKED, TW_RS_HELD_TAKEN, TW_RS_HELD_DONE, TW_RS_HELD_DROPPED };

enum tw_rs_held_outcome {
	TW_RS_HELD_WRITTEN,    /* all of it, but for pieces that a thread was inside of, or that had changed */
	TW_RS_HELD_DENIED,     /* the system does not let the owner trace the member */
	TW_RS_HELD_TRACED,     /* another tracer has it */
	TW_RS_HELD_TOO_MANY,   /* it has more threads than are stopped; number: how many */
	TW_RS_HELD_STUCK,      /* a thread could not be stopped */
	TW_RS_HELD_UNANSWERED, /* the owner is gone, or has no time */
	TW_RS_HELD_ENDED,      /* the process that stops threads for the owner was ended meanwhile */
	TW_RS_HELD_OUTCOMES
};

struct tw_rs_held {
	_Atomic uint32_t state; /* PAIR rs.held; a futex */
	/* Written by the member before ASKED. */
	int32_t thread_id;
	uint64_t table; /* an address in its memory: struct tw_rs_held_table */
	/* Written by the owner before DONE. */
	uint32_t outcome;
	uint32_t number;
	/* Written by the member: an address in its memory of its struct tw_rs_written; 0: none. */
	_Atomic uint64_t written; /* PAIR rs.written */
};

#define TW_RS_HELD_MAGIC     UINT64_C(0x31444c4548575754) /* "TWWHELD1" */
#define TW_RS_HELD_BYTES_MAX 24u

/* Bytes to write, within one page.  No thread may be between the first and the last of them. */
struct tw_rs_held_piece {
	uint64_t at;
	uint32_t count;	  /* 1 .. TW_RS_HELD_BYTES_MAX */
	uint32_t is_kept; /* in a list of what was written: not to be taken back */
	uint8_t before[TW_RS_HELD_BYTES_MAX];
	uint8_t after[TW_RS_HELD_BYTES_MAX];
};

/* In the member's own memory. */
struct tw_rs_held_table {
	uint64_t magic, lease;
	uint64_t count; /* at most TW_RS_HELD_PIECES_MAX */
	struct tw_rs_held_piece pieces[];
};

#define TW_RS_WRITTEN_MAGIC	   UINT64_C(0x3154495257485754) /* "TWHWRIT1" */
#define TW_RS_WRITTEN_BLOCK_PIECES 512u
#define TW_RS_WRITTEN_BLOCKS_MAX   4096u

/* The bytes written into the member's code and tables, and those that were there before.  In the member's own memory. */
struct tw_rs_written {
	uint64_t magic, lease;
	_Atomic uint64_t version; /* odd while the member changes anything below */
	/* Each an address of TW_RS_WRITTEN_BLOCK_PIECES pieces, or 0; pieces without bytes are not used. */
	uint64_t blocks[TW_RS_WRITTEN_BLOCKS_MAX];
};

/* ---- private to each side ---- */

/*
 * tw_rs_held_write - ask the owner to write the pieces of a table into this process, and wait.
 *
 * @table	its pieces; the other fields are filled here.
 * @number	see enum tw_rs_held_outcome.
 *
 * Afterwards each piece is written or not, whatever the outcome: memory shows which.  Waits TW_RS_HELD_TAKE_NS for an
 * owner that does not begin, TW_RS_HELD_DONE_NS for one that has begun.  Threads: one at a time per process.
 */
enum tw_rs_held_outcome tw_rs_held_write(struct tw_rs *rs, struct tw_rs_held_table *table, uint32_t *number);

/*
 * tw_rs_written_show - tell the owner where the list of this image is; an image that a forked child claims has its copy from the
 * beginning.
 *
 * @written	shares: until the process ends; its magic and lease are filled here.
 */
void tw_rs_written_show(struct tw_rs *rs, struct tw_rs_written *written);
/* Bracket each change of the list.  Threads: one at a time per process. */
void tw_rs_written_begin(struct tw_rs_written *written);
void tw_rs_written_end(struct tw_rs_written *written);

struct tw_rs_held_request {
	uint32_t slot;
	int32_t process_id, thread_id;
	uint64_t lease, table;
};

/* The owner: has any member asked since the last call? */
bool tw_rs_held_poll(struct tw_rs *rs);
/* Takes the request of an image; false: there is none. */
bool tw_rs_held_take(struct tw_rs *rs, uint32_t slot, struct tw_rs_held_request *out);
/* The words of an image that has asked; NULL: it has been recycled. */
struct tw_rs_held *tw_rs_held_of(struct tw_rs *rs, const struct tw_rs_held_request *request);
/* The same in a child of tw_sys_fork(), which has none of the owner's mappings; false: they cannot be mapped. */
struct tw_rs_held_mapping {
	struct tw_rs_held *held;
	void *memory;
	size_t bytes;
};
bool tw_rs_held_map(const struct tw_rs *rs, const struct tw_rs_held_request *request, struct tw_rs_held_mapping *out);
void tw_rs_held_unmap(struct tw_rs_held_mapping *mapping);
/* True if the member has not withdrawn it: to be asked while its threads are stopped. */
bool tw_rs_held_is_wanted(const struct tw_rs_held *held);
/* Does nothing if the request has been answered already, or withdrawn. */
void tw_rs_held_done(struct tw_rs_held *held, enum tw_rs_held_outcome outcome, uint32_t number);
/* The place where a living image other than the owner's process has its list of what was written; false: there is none. */
bool tw_rs_written_find(struct tw_rs *rs, uint32_t slot, struct tw_rs_held_request *out);

#endif
