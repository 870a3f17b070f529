/* SPDX-License-Identifier: Apache-2.0 */
/* skew_help.h - rings as on a machine whose processors' clocks disagree. */
#ifndef TW_TESTS_SKEW_HELP_H
#define TW_TESTS_SKEW_HELP_H

#include "base/clock.h"
#include "pipeline/block/block.h"
#include "ringbuf/ringset.h"

/* As if each processor's counter had another offset: 40 us and more apart, the worst of them backwards. */
static void skew_rings(struct tw_rs *rs)
{
	uint64_t skew = tw_clock_ticks_per_second() / 20000;

	/* @rs: the owner's. */
	for (uint32_t i = 0; i < tw_rs_scan(rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(rs, i);
		uint64_t pos = tw_load_relaxed(&ring->tail_pos), end;
		const uint8_t *at;
		int64_t bytes;

		if (tw_rs_ring_state(rs, i) != TW_RB_LIVE && tw_rs_ring_state(rs, i) != TW_RB_ENDED)
			continue;
		while ((bytes = tw_rb_peek(ring, pos, TW_BLOCK_RAW_BYTES_MAX, &at, &end)) > 0) {
			for (int64_t b = 0; b < bytes;) {
				struct tw_rb_record *record = (struct tw_rb_record *)(uintptr_t)(at + b);

				record->ticks += (ring->scheduler_id * 2 % 3) * skew;
				b += TW_RB_HEAD_BYTES(record->head);
			}
			pos = end;
		}
	}
}

#endif
