/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longer.h - native calls of which only those are recorded that take long enough, or that fulfil a condition by how they end.
 *
 *	the call	is counted, and its frame keeps when it began and which such call is around it; no record
 *	its return	sooner than the limit, or the condition is false: the frame is dropped
 *			else: the call is recorded, with its time, before its return, and counted as a recorded one
 *
 * Both numbers only grow, and their difference are the calls that were only counted (account.h).  Each call is in the events or in the
 * difference, never in both: also one that never returns, of a thread or a program that dies.
 * The calls around one that is recorded are recorded before it, the outermost first, so that a thread's records of calls and returns
 * stay in the order of their times, and nested.  They took as long already; whether they fulfil a condition is not known then, and
 * no later record could take their place.  For the same reason a call that has lasted long enough
 * is recorded before the next one inside of it, and at the end of the program: what was under way is not missing then.
 *
 *	left by a jump		its frame is dropped by the next call; it stays counted.  With exceptions, these end it
 *	returns on another	thread than it began on, or in a forked child: it stays counted
 *	tail calls		frames of one return slot, each around the next
 *	neither limit nor	the call is recorded as it begins, with those around it
 *	condition
 *
 * Where the condition or the record needs the arguments, the frame keeps the registers, in a block; strings and other memory are read
 * when the call ends.
 *
 * For the session of the command (tw_hit_host.pinned_session), whose counters are shared (count.h); other sessions may set the same
 * places.  Threads: in hits, and where calls end; as native.h.
 */
#ifndef TW_PIPELINE_LONGER_H
#define TW_PIPELINE_LONGER_H

#include "base/limits.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/hit/frame.h"

#include <stdint.h>

struct tw_return_entry;
struct tw_thread;

/* Takes the place of struct tw_frame_wants.  It lies in memory that is never unmapped. */
struct tw_longer_frame {
	const struct tw_place *place;
	uint64_t ticks;		       /* when the call began */
	struct tw_longer_frame *above; /* the call around it; NULL: none.  May have ended: see outer_of() */
	uint64_t *slot;		       /* its return address */
	const struct tw_thread *owner; /* the thread that made it */
	uint64_t more; /* TW_LONGER_*, and forks of the process before it in the upper half; 0: it has ended */
};
/* The same with the registers of the call. */
struct tw_longer_long_frame {
	struct tw_longer_frame frame;
	uint64_t registers[TW_ARGS_MAX];
};
/* In `more`: marks such a frame; its call is recorded; it is counted for all threads together. */
#define TW_LONGER_FRAME	   UINT64_C(0x8000)
#define TW_LONGER_RECORDED UINT64_C(0x10000)
#define TW_LONGER_OF_ALL   UINT64_C(0x20000)
/* It fulfils its condition, or a call around it does: all calls in it are recorded as they begin. */
#define TW_LONGER_WHOLE UINT64_C(0x40000)
/* And of all frames of a place, its longer_flags: the condition decides at the end; the frame is a long one; the call is recorded as it begins. */
#define TW_LONGER_FLAGS_SHIFT 19
#define TW_LONGER_OF_END      (UINT64_C(1) << TW_LONGER_FLAGS_SHIFT)
#define TW_LONGER_KEEPS	      (UINT64_C(2) << TW_LONGER_FLAGS_SHIFT)
#define TW_LONGER_AT_ONCE     (UINT64_C(4) << TW_LONGER_FLAGS_SHIFT)
/* With the calls in those that are recorded, see children.h; and its end decides nothing. */
#define TW_LONGER_CHILDREN   (UINT64_C(8) << TW_LONGER_FLAGS_SHIFT)
#define TW_LONGER_CHILD_ONLY (UINT64_C(16) << TW_LONGER_FLAGS_SHIFT)
#define TW_LONGER_FORK_SHIFT 32

static inline bool tw_longer_is(const struct tw_frame_wants *wants)
{
	return wants->more & TW_LONGER_FRAME;
}

/* Parameters and result as of tw_bp_hit_fn. */
const char *tw_longer_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot);
/* The call returned, the only one of its entry.  Closes the entry and returns the true return address. */
uintptr_t tw_longer_return(struct tw_return_entry *entry, uint64_t *slot, uint64_t value);
/* The same for all calls of an entry, of which each is such a call. */
uintptr_t tw_longer_return_all(struct tw_return_entry *entry, uint64_t *slot, uint64_t value);

/* The call returned, as one of several kinds of its entry. */
void tw_longer_end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value);
/* The call ended otherwise, as for tw_frame_exception(). */
void tw_longer_throw(struct tw_longer_frame *frame, uint64_t *slot, enum tw_frame_class exception_class,
		     const char *name);

/*
 * Records the calling thread's open calls that are long already: before the program ends, or executes another one.  In a child
 * that shares this memory, nothing.
 */
void tw_longer_record_open(void);

void tw_longer_after_fork_in_child(void);

#endif
