/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - a member that a signal ends writes down where: the signal, and the stack of the thread that it was for.
 *
 *	NONE --a thread--> TAKEN --: signal and registers are written--> TOLD --: the stack is--> WALKED
 *
 * The first thread of an image that crashes writes; the image's file keeps it when the process has died, in whatever state.
 *
 * Threads  member: any, in a signal handler; owner: the recorder's, and who reads the set of another process.
 */
#ifndef TW_RINGBUF_CRASH_H
#define TW_RINGBUF_CRASH_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_rs;

/* ---- in shared memory ---- */

#define TW_RS_CRASH_FRAMES 128

enum tw_rs_crash_state { TW_RS_CRASH_NONE, TW_RS_CRASH_TAKEN, TW_RS_CRASH_TOLD, TW_RS_CRASH_WALKED };

/* The data that are written down.  Constant once its state says that it is there. */
struct tw_rs_crash_report {
	uint64_t ticks;
	uint64_t address;	/* that could not be used; 0: none, or that address */
	uint64_t stack_pointer; /* when it happened */
	int32_t thread_id;
	int32_t signal, code; /* as in siginfo_t */
	uint32_t sender;      /* the process that has sent the signal; 0: none has, or it is not known */
	uint32_t frame_count; /* 1 or more */
	uint32_t end;	      /* enum tw_walk_end: of the stack; TW_RS_CRASH_UNWALKED: it was not walked to its end */
	uint64_t frames[TW_RS_CRASH_FRAMES]; /* the instruction, then return addresses */
};
#define TW_RS_CRASH_UNWALKED UINT32_MAX

struct tw_rs_crash {
	_Atomic uint32_t state; /* enum tw_rs_crash_state; PAIR rs.crash */
	struct tw_rs_crash_report report;
};

/* ---- private to each side ---- */

/* Member: the report that the calling thread writes; NULL: another one does, or has.  Lends until the set is detached. */
struct tw_rs_crash_report *tw_rs_crash_take(struct tw_rs *rs);
/* Member: so much of it is there. */
void tw_rs_crash_put(struct tw_rs *rs, enum tw_rs_crash_state state);
/* Member: has the thread that writes it ended that? */
bool tw_rs_crash_is_whole(const struct tw_rs *rs);

/* Owner: what the last image of this process has written, in @image; false: nothing. */
bool tw_rs_crash_read(const struct tw_rs *rs, int32_t process_id, uint32_t *image, struct tw_rs_crash_report *out);

#endif
