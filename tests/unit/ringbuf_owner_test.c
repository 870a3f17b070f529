/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The rings of a process are taken back when that process is dead and not before, whatever its slot in the table
 *	of images; a claim writes all its fields.  A damaged overwriting ring is refused.
 * Method	Several processes with images of one set, of which one is killed; headers read back; positions that no
 *	producer writes.
 */
#include "base/error.h"
#include "ringbuf/ringset.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { MEMBERS = 3, RECORDS = 40 };

/* A process of the set: writes, reports that, and waits to be killed. */
static void be_member(const char *path, int told)
{
	struct tw_rs rs;
	struct tw_rs_claim who = {0};
	uint32_t image;
	struct tw_rb_producer producer;
	struct tw_rb_record *record;
	uint32_t said[2];

	/* A failing test must not leave it behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (tw_rs_attach(&rs, path) || tw_rs_image_claim(&rs, &image) || !tw_rs_ring_claim(&rs, &who, &producer))
		_exit(1);
	for (unsigned i = 0; i < RECORDS; i++) {
		if (tw_rb_reserve(&producer, 16, i, (void **)&record) != TW_RB_OK)
			_exit(2);
		*record = (struct tw_rb_record){i + 1, TW_RB_HEAD(3, 0, 16, i)};
		tw_rb_commit(&producer, 16);
	}
	said[0] = image;
	said[1] = producer.ring_index;
	if (write(told, said, sizeof said) != sizeof said)
		_exit(3);
	for (;;)
		pause();
}

static void rings_are_taken_back_from_the_dead_only(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	uint32_t image[MEMBERS], ring[MEMBERS], own, seen = 0;
	pid_t child[MEMBERS];
	struct tw_rs rs;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	/* The first slot of the table belongs to a process that lives throughout. */
	assert_int_equal(tw_rs_image_claim(&rs, &own), 0);
	for (unsigned i = 0; i < MEMBERS; i++) {
		uint32_t said[2];
		int told[2];

		assert_int_equal(pipe(told), 0);
		child[i] = fork();
		if (child[i] == 0)
			be_member(rs.path, told[1]);
		close(told[1]);
		assert_int_equal(read(told[0], said, sizeof said), sizeof said);
		close(told[0]);
		image[i] = said[0];
		tw_rs_scan(&rs);
		ring[i] = tw_rs_image(&rs, said[0])->first_ring;
		assert_int_not_equal(image[i], own);
		seen |= 1u << image[i];
	}
	assert_int_equal(__builtin_popcount(seen), MEMBERS);
	for (unsigned dead = 0; dead < MEMBERS; dead++) {
		const uint8_t *out;
		uint64_t end;

		for (unsigned i = dead; i < MEMBERS; i++) {
			assert_false(tw_rs_image_reap(&rs, image[i]));
			assert_false(tw_rs_ring_reap(&rs, ring[i]));
			assert_int_equal(tw_rs_ring_state(&rs, ring[i]), TW_RB_LIVE);
		}
		kill(child[dead], SIGKILL);
		waitpid(child[dead], NULL, 0);
		assert_true(tw_rs_image_reap(&rs, image[dead]));
		/* All of them ended with it. */
		assert_false(tw_rs_ring_reap(&rs, ring[dead]));
		assert_int_equal(tw_rs_ring_state(&rs, ring[dead]), TW_RB_ENDED);
		assert_int_equal(tw_rs_ring_image(&rs, ring[dead]), image[dead]);
		assert_int_equal(tw_rb_peek(tw_rs_ring(&rs, ring[dead]), 0, 65536, &out, &end), 16 * RECORDS);
		for (uint64_t i = 0; i < RECORDS; i++)
			assert_int_equal(((const struct tw_rb_record *)out)[i].ticks, i + 1);
	}
	tw_rs_destroy(&rs);
}

static void a_claim_writes_all_its_fields(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	struct tw_rs_claim who = {.session_index = 3, .scheduler_id = 5, .tracee_id = 9};
	struct tw_rb_producer producer;
	const struct tw_rb_shared *ring;
	struct tw_rs rs;
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(tw_rs_ring_claim(&rs, &who, &producer));
		ring = producer.shared;
		assert_int_equal(ring->thread_id, gettid());
		assert_int_equal(ring->session_index, who.session_index);
		assert_int_equal(ring->scheduler_id, who.scheduler_id);
		assert_int_equal(ring->tracee_id, who.tracee_id);
		who.session_index++, who.scheduler_id += 2, who.tracee_id += 3;
	}
	tw_rs_destroy(&rs);
}

static void a_place_added_again_has_no_settings(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22};
	const struct tw_rs_image_head *image;
	const void *payload;
	struct tw_rs rs;
	uint32_t index, again, type;
	uint64_t at = 0;
	size_t bytes;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &index), 0);
	assert_int_equal(tw_rs_defs_append(&rs, 7, "text", 4), 0);
	tw_rs_count_no_ring(&rs, 5);
	atomic_store(&rs.own.head->defs_refused, 3);
	tw_rs_image_end(&rs, index);
	tw_rs_scan(&rs);
	tw_rs_image_recycle(&rs, index);
	assert_int_equal(tw_rs_image_claim(&rs, &again), 0);
	assert_int_equal(again, index);
	tw_rs_scan(&rs);
	image = tw_rs_head(&rs, again);
	assert_int_equal(atomic_load(&image->defs_refused), 0);
	assert_int_equal(atomic_load(&image->no_ring_lost), 0);
	assert_int_equal(atomic_load(&image->no_ring_first_ticks), 0);
	assert_int_equal(atomic_load(&image->no_ring_last_ticks), 0);
	assert_int_equal(tw_rs_defs_next(&rs, again, &at, &type, &payload, &bytes), 0);
	tw_rs_destroy(&rs);
}

/* If there is only space for one of its own size, a ring stays as it is. */
static void a_ring_grows_or_stays(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 17, .cap_bytes = 320 << 10};
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	struct tw_rs rs;
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(producer.mask + 1, TW_RS_FIRST_RING_BYTES);
	assert_false(tw_rs_ring_grow(&rs, &producer));
	assert_int_equal(tw_rs_scan(&rs), 1);
	assert_int_equal(atomic_load(&rs.control->used_bytes), TW_RS_FIRST_RING_BYTES + TW_PAGE_BYTES);
	tw_rs_destroy(&rs);
}

/* ---- a damaged overwriting ring ---- */

static void positions_that_no_producer_writes_are_refused(void **state)
{
	struct tw_rb_shared *shared = aligned_alloc(TW_PAGE_BYTES, TW_PAGE_BYTES + TW_RB_BYTES_MIN);
	/* Exactly as large as the ring: the address sanitizer notices a copy beyond it. */
	uint8_t *out = malloc(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	uint64_t first, end, committed, oldest;

	assert_non_null(shared);
	assert_non_null(out);
	memset(shared, 0, TW_PAGE_BYTES + TW_RB_BYTES_MIN);
	tw_rb_shared_init(shared, 0, TW_RB_BYTES_MIN);
	tw_rb_producer_init(&producer, shared, TW_RB_OVERWRITE);
	for (uint64_t i = 0; i < 3 * TW_RB_BYTES_MIN / 16; i++) {
		struct tw_rb_record *record;

		assert_int_equal(tw_rb_reserve(&producer, 16, i + 1, (void **)&record), TW_RB_OK);
		*record = (struct tw_rb_record){i + 1, TW_RB_HEAD(3, 0, 16, i)};
		tw_rb_commit(&producer, 16);
	}
	assert_true(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end) > 0);
	committed = atomic_load(&shared->committed_pos);
	oldest = atomic_load(&shared->oldest_pos);
	/* Too far apart, aligned. */
	atomic_store(&shared->oldest_pos, committed - TW_RB_BYTES_MIN - TW_RB_ALIGN_BYTES);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end), TW_EFORMAT);
	atomic_store(&shared->oldest_pos, 0);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end), TW_EFORMAT);
	/* At the right distance, but misaligned. */
	atomic_store(&shared->oldest_pos, oldest + 8);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end), TW_EFORMAT);
	atomic_store(&shared->oldest_pos, oldest);
	atomic_store(&shared->committed_pos, committed - 8);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end), TW_EFORMAT);
	/* And at the largest valid distance. */
	atomic_store(&shared->committed_pos, committed);
	atomic_store(&shared->oldest_pos, committed - TW_RB_BYTES_MIN);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &first, &end), TW_RB_BYTES_MIN);
	free(out);
	free(shared);
}

/* The owner polls for a process under a filter, and for no other. */
static void an_unwakeable_image_is_known_while_it_lives(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22};
	struct tw_rs rs;
	struct tw_rb_producer producer;
	struct tw_rs_claim who = {0};
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	tw_rs_scan(&rs);
	assert_false(tw_rs_is_unwakeable(&rs));
	tw_store_relaxed(producer.owner_unwakeable, 1);
	assert_true(tw_rs_is_unwakeable(&rs));
	tw_rs_image_end(&rs, image);
	tw_rs_scan(&rs);
	assert_false(tw_rs_is_unwakeable(&rs));
	tw_rs_destroy(&rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_taken_back_from_the_dead_only),
		cmocka_unit_test(a_claim_writes_all_its_fields),
		cmocka_unit_test(a_place_added_again_has_no_settings),
		cmocka_unit_test(a_ring_grows_or_stays),
		cmocka_unit_test(positions_that_no_producer_writes_are_refused),
		cmocka_unit_test(an_unwakeable_image_is_known_while_it_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
