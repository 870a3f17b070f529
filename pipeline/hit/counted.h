/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.h - the fast path of native calls that are counted and nothing else.
 *
 * Threads  in hits, and where calls end; as native.h.
 */
#ifndef TW_PIPELINE_COUNTED_H
#define TW_PIPELINE_COUNTED_H

#include "breakpoints/breakpoints.h"

#include <stdint.h>

struct tw_return_entry;

/* Takes the place of struct tw_frame_wants for calls whose end is wanted by accounts of one session only. */
struct tw_counted_frame {
	const struct tw_place *place;
	union {
		/* The accounts to resume when the call ends, as `on` of an account. */
		struct {
			uint64_t time_before, words_before;
		};
		/* Of a call that is aggregated; @number: the ticks when it began, if that is its duration. */
		struct {
			uint64_t key, number;
		};
	};
	uint64_t session;
	uint64_t unused;
	uint64_t more; /* 0: the end is not wanted */
};
/* In `more`: marks such a frame, and which accounts wait for its end. Never set in struct tw_frame_wants. */
#define TW_COUNTED_TIME	      UINT64_C(0x1000)
#define TW_COUNTED_MEMORY     UINT64_C(0x2000)
#define TW_COUNTED_AGGREGATED UINT64_C(0x4000)
#define TW_COUNTED_FRAME      (TW_COUNTED_TIME | TW_COUNTED_MEMORY | TW_COUNTED_AGGREGATED)

/*
 * tw_counted_call - count the call, if only call_count is wanted of it. tw_counted_enter - the same with call_time
 * and call_memory; the return is watched if it is wanted.  tw_counted_call() also aggregates the call, if that is wanted.
 *
 * Parameters and result as of tw_bp_hit_fn. If there is more to do, they only call tw_native_hit_whole().
 */
const char *tw_counted_call(struct tw_place *place, const uint64_t *words, uint64_t *slot);
const char *tw_counted_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot);

/* The call returned @value, the only one of its entry. Closes the entry and returns the true return address. */
uintptr_t tw_counted_return(struct tw_return_entry *entry, const uint64_t *slot, uint64_t value);
/* A call has ended, by return or otherwise. @hit_frame: identified it during its hit. @value: NULL: it returned none. */
void tw_counted_end(const struct tw_counted_frame *frame, const void *hit_frame, const uint64_t *value);

#endif
