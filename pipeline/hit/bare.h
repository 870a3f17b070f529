/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare.h - what bare_x86_64.S knows of the structures of C.  Included by both.
 *
 * Threads  any, as for hits.
 */
#ifndef TW_PIPELINE_BARE_H
#define TW_PIPELINE_BARE_H

/* struct tw_hit_tls */
#define TW_BARE_TLS_TRACEE    8
#define TW_BARE_TLS_THREAD    16
#define TW_BARE_TLS_RUN_STAMP 24
/* struct tw_tracee */
#define TW_BARE_WANTS_CALL   0
#define TW_BARE_SPECIAL	     8
#define TW_BARE_RETURN_TO    24
#define TW_BARE_RECORD_FLAGS 76
/* struct tw_place: a generation's session, and the size of a generation */
#define TW_BARE_SESSION		 48
#define TW_BARE_GENERATION_SHIFT 7
#define TW_BARE_COUNTING	 256
#define TW_BARE_PLACE_ID	 264
/* struct tw_progress_global */
#define TW_BARE_NOTES 8
/* struct tw_thread, whose first word is that of the read section: a ring, by session */
#define TW_BARE_RING_SHIFT    8
#define TW_BARE_RING(offset)  (64 + (offset))
#define TW_BARE_RUN_STAMP     TW_BARE_RING(0)
#define TW_BARE_POS	      TW_BARE_RING(8)
#define TW_BARE_LIMIT_POS     TW_BARE_RING(16)
#define TW_BARE_MASK	      TW_BARE_RING(24)
#define TW_BARE_DATA	      TW_BARE_RING(32)
#define TW_BARE_SHARED	      TW_BARE_RING(40)
#define TW_BARE_RECORDS	      TW_BARE_RING(48)
#define TW_BARE_CACHED_TAIL   TW_BARE_RING(72)
#define TW_BARE_REFUSALS_LEFT TW_BARE_RING(100)
#define TW_BARE_UNTIMED	      TW_BARE_RING(90)
/* struct tw_rb_shared */
#define TW_BARE_COMMITTED 256
#define TW_BARE_LOST_FULL 384
#define TW_BARE_TAIL	  512
/* The record: its head without the place and the tracee's flags, and its size. */
#define TW_BARE_HEAD  0x100003
#define TW_BARE_BYTES 16
/* The table of known values of %fs */
#define TW_BARE_BASES_BITS  9
#define TW_BARE_BASES_SHIFT 6

#ifndef __ASSEMBLER__

#include "base/thread_base.h"
#include "pipeline/hit/hit.h"
#include "progress/read_side.h"

#define TW_BARE_IS(type, member, offset) \
	_Static_assert(offsetof(struct type, member) == (offset), "bare_x86_64.S uses it")
TW_BARE_IS(tw_hit_tls, state, 0);
TW_BARE_IS(tw_hit_tls, tracee, TW_BARE_TLS_TRACEE);
TW_BARE_IS(tw_hit_tls, thread, TW_BARE_TLS_THREAD);
TW_BARE_IS(tw_hit_tls, run_stamp, TW_BARE_TLS_RUN_STAMP);
TW_BARE_IS(tw_tracee, wants_call, TW_BARE_WANTS_CALL);
TW_BARE_IS(tw_tracee, special, TW_BARE_SPECIAL);
TW_BARE_IS(tw_tracee, wants_return_to, TW_BARE_RETURN_TO);
TW_BARE_IS(tw_tracee, record_flags, TW_BARE_RECORD_FLAGS);
TW_BARE_IS(tw_place, gen, 0);
TW_BARE_IS(tw_bp_generation, bare, TW_BARE_SESSION);
TW_BARE_IS(tw_place, counting, TW_BARE_COUNTING);
TW_BARE_IS(tw_place, place_id, TW_BARE_PLACE_ID);
TW_BARE_IS(tw_bp_gate, active, 0);
TW_BARE_IS(tw_progress_global, epoch, 0);
TW_BARE_IS(tw_progress_global, notes, TW_BARE_NOTES);
TW_BARE_IS(tw_thread, reader.section, 0);
TW_BARE_IS(tw_thread, rings[0].run_stamp, TW_BARE_RUN_STAMP);
TW_BARE_IS(tw_thread, rings[0].producer.pos, TW_BARE_POS);
TW_BARE_IS(tw_thread, rings[0].producer.limit_pos, TW_BARE_LIMIT_POS);
TW_BARE_IS(tw_thread, rings[0].producer.mask, TW_BARE_MASK);
TW_BARE_IS(tw_thread, rings[0].producer.data, TW_BARE_DATA);
TW_BARE_IS(tw_thread, rings[0].producer.shared, TW_BARE_SHARED);
TW_BARE_IS(tw_thread, rings[0].producer.records, TW_BARE_RECORDS);
TW_BARE_IS(tw_thread, rings[0].producer.cached_tail_pos, TW_BARE_CACHED_TAIL);
TW_BARE_IS(tw_thread, rings[0].producer.refusals_left, TW_BARE_REFUSALS_LEFT);
TW_BARE_IS(tw_thread, rings[0].producer.has_untimed_refusals, TW_BARE_UNTIMED);
TW_BARE_IS(tw_rb_shared, committed_pos, TW_BARE_COMMITTED);
TW_BARE_IS(tw_rb_shared, lost[TW_RB_LOST_FULL], TW_BARE_LOST_FULL);
TW_BARE_IS(tw_rb_shared, tail_pos, TW_BARE_TAIL);
_Static_assert(sizeof(struct tw_bp_generation) == 1 << TW_BARE_GENERATION_SHIFT &&
		       sizeof(struct tw_thread_ring) == 1 << TW_BARE_RING_SHIFT &&
		       TW_BARE_HEAD == TW_RB_HEAD(TW_EVENT_CALL, 0, TW_BARE_BYTES, 0) &&
		       sizeof(struct tw_rb_record) == TW_BARE_BYTES && TW_THREAD_READY == 1 &&
		       TW_PROGRESS_FENCED == 1 && TW_BARE_BASES_BITS == TW_THREAD_BASE_SET_BITS &&
		       sizeof tw_thread_bases[0] == 1 << TW_BARE_BASES_SHIFT,
	       "bare_x86_64.S uses them");
#undef TW_BARE_IS

/* Ways of slots and of sleds: tw_bp_bare_slot, tw_bp_bare_sled.  Only where %fs can be asked, and the clock is the processor's. */
extern const char tw_hit_bare_slot[] __attribute__((visibility("hidden")));
extern const char tw_hit_bare_sled[] __attribute__((visibility("hidden")));

#endif

#endif
