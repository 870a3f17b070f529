/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A traced program that overwrites shared memory of the ring set changes no address that the member writes to.
 * Method	The words of an image's head and of a free ring are overwritten with bad values; then rings are claimed
 *	and grown.
 */
#include "ringbuf/ringset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <cmocka.h>

/* The head of the image and the rings are memory of the traced program, which may write anything anywhere. */
static void a_stray_write_to_the_image_changes_no_address_of_the_member(void **state)
{
	static const uint64_t values[] = {0, 7, TW_RS_IMAGE_RINGS_MAX + 1, UINT32_MAX, UINT64_MAX};
	struct tw_rs_options options = {.cap_bytes = 1 << 22, .ring_bytes = 1 << 17, .config = "pattern a:b/_\n"};
	struct tw_rb_producer first, second;
	struct tw_rs_claim who = {0};
	struct tw_rb_shared *ring;
	struct tw_rs rs;
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	for (size_t i = 0; i < TW_COUNT_OF(values); i++) {
		/* A used ring whose header was overwritten. */
		assert_true(tw_rs_ring_claim(&rs, &who, &first));
		ring = first.shared;
		tw_rs_ring_end(&rs, &first);
		tw_rs_scan(&rs);
		tw_rs_ring_recycle(&rs, 0);
		ring->data_bytes = values[i];
		ring->ring_index = (uint32_t)values[i];
		atomic_store(&rs.own.head->ring_count, (uint32_t)values[i]);
		atomic_store(&rs.own.head->cut_bytes, values[i]);
		assert_true(tw_rs_ring_claim(&rs, &who, &first));
		assert_ptr_equal(first.shared, ring);
		assert_int_equal(first.ring_index, 0);
		assert_int_equal(first.mask + 1, rs.own.ring_bytes[0]);
		atomic_store(&rs.own.head->ring_count, (uint32_t)values[i]);
		atomic_store(&rs.own.head->cut_bytes, values[i]);
		/* Growing examines all rings. */
		assert_true(tw_rs_ring_grow(&rs, &first));
		assert_ptr_equal(first.shared, rs.own.rings[first.ring_index]);
		assert_true(tw_rs_ring_claim(&rs, &who, &second));
		assert_ptr_not_equal(second.shared, first.shared);
		tw_rs_ring_end(&rs, &first);
		tw_rs_ring_end(&rs, &second);
		tw_rs_scan(&rs);
		for (uint32_t ring_index = 0; ring_index < rs.own.ring_count; ring_index++)
			tw_rs_ring_recycle(&rs, ring_index);
	}
	tw_rs_destroy(&rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stray_write_to_the_image_changes_no_address_of_the_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
