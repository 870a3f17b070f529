/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrong_order.c - a recorder that is built wrongly on purpose: the negative control of the kill test.
 *
 * Linked with --wrap=tw_segment_append.  Returns a ring's memory before its block is written, so that a recorder that
 * dies in between has lost these events.
 */
#include "pipeline/block/segment.h"
#include "pipeline/recorder/writer.h"
#include "tests/crash/witness.h"

int __real_tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored);
int __wrap_tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored);
extern void (*wrong_order_begin)(struct tw_rs *rs, struct witness *witness);

static struct tw_rs *rs;
static struct witness *witness;

static void begin(struct tw_rs *ring_set, struct witness *of_round)
{
	rs = ring_set;
	witness = of_round;
}

__attribute__((constructor)) static void enlist(void)
{
	wrong_order_begin = begin;
}

int __wrap_tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored)
{
	/* Recovery and the definitions have no ring to return memory to. */
	for (uint32_t i = 0; rs && header->type == TW_BLOCK_EVENTS && i < tw_rs_scan(rs); i++) {
		if (tw_rs_ring(rs, i)->lease != header->ring_lease)
			continue;
		tw_rb_consume(tw_rs_ring(rs, i), header->end_pos);
		witness->negative_hits++;
	}
	return __real_tw_segment_append(segment, header, stored);
}
