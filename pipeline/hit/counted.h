/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.h - the short way of native calls that are counted and nothing else.
 *
 * Threads  in hits, and where calls end; as native.h.
 */
#ifndef TW_PIPELINE_COUNTED_H
#define TW_PIPELINE_COUNTED_H

#include "breakpoints/breakpoints.h"

#include <stdint.h>

struct tw_return_entry;

/* In place of struct tw_frame_wants, of calls whose end only accounts of one session wait for. */
struct tw_counted_frame {
	const struct tw_place *place;
	/* What goes on when the call ends, as `on` of an account. */
	uint64_t time_before, words_before;
	uint64_t session;
	uint64_t unused;
	uint64_t more; /* 0: nobody waits */
};
/* In `more`: the frame is one of these, and what waits; none of them in that of struct tw_frame_wants. */
#define TW_COUNTED_TIME	  UINT64_C(0x1000)
#define TW_COUNTED_MEMORY UINT64_C(0x2000)
#define TW_COUNTED_FRAME  (TW_COUNTED_TIME | TW_COUNTED_MEMORY)

/*
 * tw_counted_call - count the call, if call_count is all that is wanted of it.
 * tw_counted_enter - the same with call_time and call_memory; the return is watched, where it is waited for.
 *
 * Parameters and value as of tw_bp_hit_fn.  Where there is more to do, they do nothing but call tw_native_hit_whole().
 */
const char *tw_counted_call(struct tw_place *place, const uint64_t *words, uint64_t *slot);
const char *tw_counted_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot);

/* The call returned: the only one of its entry.  Closes that, and gives the true return address. */
uintptr_t tw_counted_return(struct tw_return_entry *entry, const uint64_t *slot);
/* A call has ended, however.  @hit_frame: what it was known by while it was hit. */
void tw_counted_end(const struct tw_counted_frame *frame, const void *hit_frame);

#endif
