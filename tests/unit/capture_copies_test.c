/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: several threads make of each copied ring the blocks that one thread makes of it, in their order; invalid records spoil their
 * own block only; the user may leave at any point; what waits to be stored is limited, and nobody waits for ever.
 *
 * Method: rings of many sizes, also empty and invalid ones, are encoded by one thread first. Blocks that are taken, with no, little and
 * much space ahead, and a slow user, are compared with these. Also under the thread sanitizer.
 */
#include "base/file.h"
#include "pipeline/recorder/copies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RINGS = 9, BLOCKS_MAX = 64, INVALID = 4, RECORD_BYTES = 32 };

struct block {
	struct tw_block_header header;
	uint8_t *stored; /* NULL: invalid */
};

static struct tw_writer_copy copies[RINGS];
static struct block expected[RINGS][BLOCKS_MAX];
static uint32_t expected_count[RINGS];

/* Records of calls with an argument, now and then a switch to another tracee. */
static void fill(struct tw_writer_copy *copy, uint64_t bytes, uint64_t seed)
{
	copy->raw = malloc(bytes + TW_COLUMN_SLACK_BYTES);
	assert_non_null(copy->raw);
	copy->bytes = bytes;
	copy->is_there = true;
	copy->at = (struct tw_rb_stretch){.first_pos = 4096, .end_pos = 4096 + bytes};
	for (uint64_t at = 0; at < bytes; at += RECORD_BYTES) {
		const bool is_switch = at / RECORD_BYTES % 5000 == 4999;
		const uint64_t words[] = {1000 + at * 3,
					  TW_RB_HEAD(is_switch ? TW_EVENT_SWITCH : TW_EVENT_CALL, 0, RECORD_BYTES,
						     at / RECORD_BYTES * seed % 97 + 1),
					  at * seed, seed};

		memcpy(copy->raw + at, words, sizeof words);
	}
}

static struct tw_copies_ring ring_of(uint32_t number)
{
	struct tw_copies_ring ring = {.copy = &copies[number], .ring = {.lease = number + 1, .thread_id = 100}};

	ring.ring.at.pos = copies[number].at.first_pos;
	return ring;
}

static void encode_alone(uint32_t number)
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	struct tw_copies_ring from = ring_of(number);
	const uint8_t *stored;

	while (from.at < copies[number].bytes) {
		struct block *block = &expected[number][expected_count[number]++];
		const uint8_t *raw = copies[number].raw + from.at;
		uint32_t bytes = tw_writer_start_copied(&from.ring, &copies[number], from.at, &block->header);

		from.at += bytes;
		if (tw_block_encode_events(encoder, &block->header, raw, bytes, &stored))
			continue;
		block->stored = malloc(block->header.stored_bytes);
		assert_non_null(block->stored);
		memcpy(block->stored, stored, block->header.stored_bytes);
		tw_writer_advance(&from.ring.at, &block->header, tw_block_encoder_tracee(encoder));
	}
	tw_block_encoder_destroy(encoder);
}

static int make_rings(void **state)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		fill(&copies[i], i == 2 ? 0 : RECORD_BYTES * (1 + i * UINT64_C(13331)), i * 2 + 1);
		/* In its second block: as long as it says, but of a shape that no producer writes. */
		if (i == INVALID)
			tw_put64(copies[i].raw + TW_BLOCK_RAW_BYTES_MAX + 8,
				 TW_RB_HEAD(TW_RB_KIND_LOSS, 0, RECORD_BYTES, 1));
		encode_alone(i);
	}
	assert_true(expected_count[INVALID] > 2 && !expected[INVALID][1].stored && expected[INVALID][2].stored);
	return 0;
}

static int free_rings(void **state)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		free(copies[i].raw);
		for (uint32_t k = 0; k < expected_count[i]; k++)
			free(expected[i][k].stored);
	}
	return 0;
}

static void expect(const struct tw_copies_block *block, const struct block *alone)
{
	const struct tw_block_header *header = &block->header;

	assert_int_equal(block->is_bad, !alone->stored);
	assert_int_equal(header->first_pos, alone->header.first_pos);
	assert_int_equal(header->end_pos, alone->header.end_pos);
	if (block->is_bad)
		return;
	assert_int_equal(header->event_count, alone->header.event_count);
	assert_int_equal(header->end_sequence, alone->header.end_sequence);
	assert_int_equal(header->tracee_id, alone->header.tracee_id);
	assert_int_equal(header->stored_bytes, alone->header.stored_bytes);
	assert_memory_equal(block->stored, alone->stored, header->stored_bytes);
}

/* Takes so many blocks, and leaves. Returns those that were there. */
static uint32_t take(uint64_t ahead_bytes, uint32_t until, unsigned user_spins)
{
	struct tw_copies_ring rings[RINGS];
	struct tw_copies *made = NULL;
	struct tw_copies_block *block;
	uint32_t taken = 0;
	int error = 0;

	for (uint32_t i = 0; i < RINGS; i++)
		rings[i] = ring_of(i);
	assert_int_equal(tw_copies_start(rings, RINGS, ahead_bytes, &made), 0);
	for (uint32_t i = 0; i < RINGS && taken < until; i++) {
		uint32_t k = 0;

		while (taken < until && (block = tw_copies_take(made, i, &error))) {
			assert_true(k < expected_count[i]);
			expect(block, &expected[i][k++]);
			free(block);
			taken++;
			for (unsigned spin = 0; spin < user_spins * 2000; spin++)
				__asm__ volatile("");
		}
		assert_int_equal(error, 0);
		assert_true(taken == until || k == expected_count[i]);
	}
	tw_copies_stop(made);
	return taken;
}

static void blocks_are_those_of_one_thread(void **state)
{
	static const uint64_t ahead[] = {0, 1, 100000, UINT64_MAX};
	uint32_t all = 0;

	for (uint32_t i = 0; i < RINGS; i++)
		all += expected_count[i];
	for (unsigned i = 0; i < TW_COUNT_OF(ahead); i++) {
		assert_int_equal(take(ahead[i], UINT32_MAX, 0), all);
		assert_int_equal(take(ahead[i], UINT32_MAX, 30), all);
	}
}

static void the_user_may_leave(void **state)
{
	static const uint64_t ahead[] = {0, 100000, UINT64_MAX};

	for (uint32_t until = 0; until < 20; until++)
		assert_int_equal(take(ahead[until % 3], until, until % 4), until);
}

static void count(void *arg, uint32_t number)
{
	unsigned *counts = arg;

	counts[number]++;
}

static void each_number_is_taken_once(void **state)
{
	unsigned counts[200] = {0};

	tw_copies_each(TW_COUNT_OF(counts), count, counts);
	for (unsigned i = 0; i < TW_COUNT_OF(counts); i++)
		assert_int_equal(counts[i], 1);
	tw_copies_each(0, count, counts);
	tw_copies_each(1, count, counts);
	assert_int_equal(counts[0], 2);
	assert_int_equal(counts[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_those_of_one_thread),
		cmocka_unit_test(the_user_may_leave),
		cmocka_unit_test(each_number_is_taken_once),
	};

	/* A thread that waits for ever. */
	alarm(300);
	return cmocka_run_group_tests(tests, make_rings, free_rings);
}
