/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - native calls for which a flight recorder writes a snapshot (ringbuf/trigger.h).
 *
 *	decided as the call begins	behind its record
 *	decided by how it ends		a frame of its own keeps when it began, and the arguments that are needed; told behind the record of
 *					the return
 *
 * The records come first, so that they are in the snapshot.  Durations are without the tracer's own time.  Calls that are left by exceptions, or by jumps, do
 * not decide.
 *
 * For the session of the command (tw_hit_host.pinned_session).  Threads: in hits, and where calls end; as native.h.
 */
#ifndef TW_PIPELINE_TRIGGER_H
#define TW_PIPELINE_TRIGGER_H

#include "breakpoints/breakpoints.h"
#include "pipeline/hit/condition.h"
#include "pipeline/hit/frame.h"

#include <stdint.h>

/* The most argument registers that are kept until a call ends. */
#define TW_TRIGGER_KEPT_MAX 3

struct tw_return_entry;

/* Takes the place of struct tw_frame_wants. */
struct tw_trigger_frame {
	const struct tw_place *place;
	uint64_t begin_ticks;
	uint64_t kept[TW_TRIGGER_KEPT_MAX];
	uint64_t more; /* TW_TRIGGER_FRAME, and the thread's own_ticks then */
};
#define TW_TRIGGER_FRAME     UINT64_C(0x80)
#define TW_TRIGGER_OWN_SHIFT 19

/* The tracer's own time on a thread since the value that a frame has, of which it has the low bits. */
static inline uint64_t tw_trigger_own_since(uint64_t own_ticks, uint64_t before)
{
	return (own_ticks - before) & (UINT64_MAX >> TW_TRIGGER_OWN_SHIFT);
}

static inline bool tw_trigger_is(const struct tw_frame_wants *wants)
{
	return wants->more & TW_TRIGGER_FRAME;
}

/* Calls that fulfil their conditions as they end; frame NULL: none. */
struct tw_trigger_met {
	const struct tw_trigger_frame *frame;
	uint64_t others; /* tail calls inside of it, which end with it and fulfil theirs */
};

/*
 * The call's hit is over: decides, or opens a frame.  @resume_at: where the hit said that the call continues; the result says it instead.
 */
const char *tw_trigger_call(struct tw_place *place, const uint64_t *words, uint64_t *slot, const char *resume_at);
/* The calls of an entry have returned: which fulfil their conditions?  In no hit; the entry stays as it is. */
struct tw_trigger_met tw_trigger_end(const struct tw_return_entry *entry, uint64_t *slot, uint64_t value);
/* Tells the recorder, behind the records of the call.  In no hit. */
void tw_trigger_tell(struct tw_trigger_met met, uint64_t *slot);

#endif
