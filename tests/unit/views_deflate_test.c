/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: Output that is packed in pieces is, unpacked piece by piece, what was given, and no item lies in two of them.
 *
 * Method: Items of random lengths, some larger than a piece, none at all, and one whose length is that of a piece; zlib unpacks.
 */
#include "views/output/deflate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define BYTES_MAX (8u << 20)

struct unpacked {
	uint8_t *data;
	size_t used, pieces;
	size_t ends[4096];
};

static void put(void *context, const void *data, size_t bytes)
{
	struct unpacked *unpacked = context;
	uLongf room = (uLongf)(BYTES_MAX - unpacked->used);

	assert_int_equal(uncompress(unpacked->data + unpacked->used, &room, data, (uLong)bytes), Z_OK);
	unpacked->used += room;
	assert_true(unpacked->pieces < sizeof unpacked->ends / sizeof *unpacked->ends);
	unpacked->ends[unpacked->pieces++] = unpacked->used;
}

/* Items of these bytes at most, `count` of them. */
static void play(unsigned count, unsigned bytes_max, unsigned seed)
{
	struct unpacked unpacked = {.data = malloc(BYTES_MAX)};
	uint8_t *given = malloc(BYTES_MAX), *item_ends = calloc(BYTES_MAX + 1, 1);
	struct tw_deflate *packer = tw_deflate_create(put, &unpacked);
	size_t used = 0;

	assert_non_null(packer);
	item_ends[0] = 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned bytes = 1 + (unsigned)rand_r(&seed) % bytes_max, head = (unsigned)rand_r(&seed) % bytes;

		assert_true(used + bytes <= BYTES_MAX);
		for (unsigned k = 0; k < bytes; k++)
			given[used + k] = (uint8_t)(k % 16 < 12 ? k % 16 : (unsigned)rand_r(&seed));
		assert_true(tw_deflate_add(packer, given + used, head, given + used + head, bytes - head));
		used += bytes;
		item_ends[used] = 1;
	}
	assert_true(tw_deflate_finish(packer));
	tw_deflate_destroy(packer);
	assert_int_equal(unpacked.used, used);
	assert_memory_equal(unpacked.data, given, used);
	for (size_t i = 0; i < unpacked.pieces; i++)
		assert_true(item_ends[unpacked.ends[i]]);
	assert_true(unpacked.pieces >= used / (TW_DEFLATE_BYTES + bytes_max));
	free(unpacked.data);
	free(given);
	free(item_ends);
}

static void pieces_are_whole(void **state)
{
	(void)state;
	play(0, 1, 1);
	play(1, 1, 2);
	play(100000, 40, 3);
	play(10, 2 * TW_DEFLATE_BYTES, 4);
}

static void a_piece_exactly(void **state)
{
	struct unpacked unpacked = {.data = malloc(BYTES_MAX)};
	static uint8_t item[TW_DEFLATE_BYTES];
	struct tw_deflate *packer = tw_deflate_create(put, &unpacked);

	(void)state;
	assert_true(tw_deflate_add(packer, item, 5, item + 5, sizeof item - 5));
	assert_true(tw_deflate_finish(packer));
	assert_int_equal(unpacked.pieces, 1);
	assert_int_equal(unpacked.used, sizeof item);
	/* The end of a user that has failed. */
	assert_true(tw_deflate_add(packer, item, 5, item, 5));
	tw_deflate_destroy(packer);
	free(unpacked.data);
}

int main(void)
{
	/* .workers = 1: packing has a thread. */
	const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_are_whole), cmocka_unit_test(a_piece_exactly)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
