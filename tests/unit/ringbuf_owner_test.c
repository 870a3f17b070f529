/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The rings of a process are taken back when that process is dead and not before, whatever its slot in the table
 *	of images, and those of a thread when its number is another thread's; a claim writes all its fields, a larger
 *	ring continues the losses.  Rings that overlap, a damaged overwriting ring, and a ring without memory are refused.
 * Method	Several processes with images of one set, of which one is killed; threads that take each other's place;
 *	headers read back; tables and positions that no member writes; an image's file that is cut short.
 */
#include "base/error.h"
#include "ringbuf/ringset.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

/* ---- threads that take each other's place ---- */

/* A thread that starts later than the process, in another unit of the kernel's start times, and waits to be ended. */
struct later {
	pthread_t thread;
	_Atomic int thread_id, is_over;
};

static void *live_on(void *arg)
{
	struct later *later = arg;

	atomic_store(&later->thread_id, gettid());
	while (!atomic_load(&later->is_over))
		usleep(1000);
	return NULL;
}

static int begin_later(struct later *later)
{
	*later = (struct later){0};
	/* Two of its units, of 10 ms each. */
	usleep(20000);
	assert_int_equal(pthread_create(&later->thread, NULL, live_on, later), 0);
	while (!atomic_load(&later->thread_id))
		usleep(100);
	return atomic_load(&later->thread_id);
}

static void end_later(struct later *later)
{
	atomic_store(&later->is_over, 1);
	pthread_join(later->thread, NULL);
}

/* As if the owner had last asked for the start of the ring's thread long ago. */
static void let_ask(struct tw_rs *rs, uint32_t index)
{
	rs->rings[index].asked_ns = 0;
}

/*
 * The kernel gives the number of a thread that has ended to another: the owner knows by the time of its start that the
 * ring's thread is gone.
 */
static void a_number_given_again_is_another_thread(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22};
	struct tw_rb_producer producer;
	struct tw_rs_claim who = {0};
	struct later later;
	struct tw_rs rs;
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	tw_rs_scan(&rs);
	assert_false(tw_rs_ring_reap(&rs, 0));
	let_ask(&rs, 0);
	assert_false(tw_rs_ring_reap(&rs, 0));
	/* From here on the ring's thread has the number, and the start, of a thread that began later. */
	producer.shared->thread_id = begin_later(&later);
	let_ask(&rs, 0);
	assert_true(tw_rs_ring_reap(&rs, 0));
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	/* A recycled ring belongs to a thread of its own: its start is not compared with that of the thread before. */
	tw_rs_ring_recycle(&rs, 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(producer.ring_index, 0);
	producer.shared->thread_id = atomic_load(&later.thread_id);
	for (int i = 0; i < 2; i++) {
		let_ask(&rs, 0);
		assert_false(tw_rs_ring_reap(&rs, 0));
	}
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_LIVE);
	end_later(&later);
	tw_rs_destroy(&rs);
}

/* ---- growth ---- */

static void put(struct tw_rb_producer *producer, uint64_t ticks)
{
	struct tw_rb_record *record;

	assert_int_equal(tw_rb_reserve(producer, 16, ticks, (void **)&record), TW_RB_OK);
	*record = (struct tw_rb_record){ticks, TW_RB_HEAD(3, 0, 16, 0)};
	tw_rb_commit(producer, 16);
}

/* Losses that a loss record has reported, and losses that none has: both are in the counts of the larger ring. */
static void losses_go_along_to_the_larger_ring(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 20, .cap_bytes = 1 << 24};
	const struct tw_rb_loss_record *loss;
	struct tw_rb_loss_record rest;
	struct tw_rb_producer producer;
	struct tw_rs_claim who = {0};
	uint64_t told[TW_RB_CAUSES] = {0}, moved_pos, end;
	const uint8_t *out;
	struct tw_rs rs;
	uint32_t image;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	tw_rb_refuse_several(&producer, TW_RB_LOST_NESTED, 3, 10);
	put(&producer, 20);
	tw_rb_refuse_several(&producer, TW_RB_LOST_TOO_BIG, 4, 30);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 40);
	assert_true(tw_rs_ring_grow(&rs, &producer));
	moved_pos = producer.pos;
	/* The counts of the stream: what a consumer subtracts the reported ones from. */
	told[TW_RB_LOST_NESTED] = 3;
	assert_true(tw_rb_unreported_loss(producer.shared, told, &rest));
	assert_int_equal(rest.lost[TW_RB_LOST_NESTED], 1);
	assert_int_equal(rest.lost[TW_RB_LOST_TOO_BIG], 4);
	assert_int_equal(rest.lost[TW_RB_LOST_FULL], 0);
	assert_int_equal(rest.first_ticks, 30);
	assert_int_equal(rest.record.ticks, 40);
	/* The first record there is a loss record of the rest. */
	put(&producer, 50);
	assert_int_equal(tw_rb_peek(producer.shared, moved_pos, 1 << 16, &out, &end), sizeof *loss + 16);
	loss = (const struct tw_rb_loss_record *)(const void *)out;
	assert_int_equal(TW_RB_HEAD_KIND(loss->record.head), TW_RB_KIND_LOSS);
	assert_memory_equal(loss->lost, rest.lost, sizeof loss->lost);
	assert_int_equal(loss->first_ticks, 30);
	assert_int_equal(loss->record.ticks, 40);
	told[TW_RB_LOST_NESTED] += 1;
	told[TW_RB_LOST_TOO_BIG] += 4;
	assert_false(tw_rb_unreported_loss(producer.shared, told, &rest));
	tw_rs_destroy(&rs);
}

/* ---- the table of rings ---- */

/* A member that lets two rings overlap could make the owner read, and free, the records of one through the other. */
static void rings_that_overlap_are_refused(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	enum { RINGS = 3, RING_PAGES = (1 << 16) / TW_PAGE_BYTES + 1 };
	/* Of the last ring, in pages from where it is: on the ring before it, in the middle of it, on the first ring. */
	static const uint32_t moved[] = {RING_PAGES, 1, RING_PAGES * 2};

	for (unsigned i = 0; i < TW_COUNT_OF(moved); i++) {
		struct tw_rb_producer producer[RINGS];
		struct tw_rs_claim who = {0};
		struct tw_rs_ring *last;
		struct tw_rs rs;
		uint32_t image;

		assert_int_equal(tw_rs_create(&rs, &options), 0);
		assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
		for (unsigned r = 0; r < RINGS; r++)
			assert_true(tw_rs_ring_claim(&rs, &who, &producer[r]));
		last = &rs.own.head->rings[RINGS - 1];
		atomic_store(&last->offset_pages, atomic_load(&last->offset_pages) - moved[i]);
		assert_int_equal(tw_rs_scan(&rs), RINGS - 1);
		assert_int_equal(rs.damaged_tables, 1);
		tw_rs_destroy(&rs);
	}
}

/* While another image lives, an image that goes gives back exactly what its rings took of the cap. */
static void an_image_gives_back_its_share_of_the_cap(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	const uint64_t ring_bytes = (1 << 16) + TW_PAGE_BYTES;
	struct tw_rb_producer producer;
	struct tw_rs_claim who = {0};
	struct tw_rs rs, other;
	uint32_t first, second;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &first), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(tw_rs_attach(&other, rs.path), 0);
	assert_int_equal(tw_rs_image_claim(&other, &second), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(tw_rs_ring_claim(&other, &who, &producer));
	tw_rs_scan(&rs);
	assert_int_equal(atomic_load(&rs.control->used_bytes), 5 * ring_bytes);
	tw_rs_image_recycle(&rs, second);
	assert_int_equal(atomic_load(&rs.control->used_bytes), 3 * ring_bytes);
	tw_rs_detach(&other);
	tw_rs_destroy(&rs);
}

/* ---- a ring without memory ---- */

/* The bytes of an image's file: as if the file system had none left, or had some again. */
static void set_file_bytes(const struct tw_rs *rs, uint32_t image, off_t bytes)
{
	char path[400];

	snprintf(path, sizeof path, "%s/image-%llu", rs->path, (unsigned long long)tw_rs_image(rs, image)->lease);
	assert_int_equal(truncate(path, bytes), 0);
}

static off_t file_bytes(const struct tw_rs *rs, uint32_t image)
{
	char path[400];
	struct stat st;

	snprintf(path, sizeof path, "%s/image-%llu", rs->path, (unsigned long long)tw_rs_image(rs, image)->lease);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* READY means that the header and the first of the data have memory. */
static void a_ring_without_memory_is_not_ready(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	struct tw_rb_producer first, second;
	struct tw_rs_claim who = {0};
	struct tw_rs rs;
	uint32_t image;
	off_t bytes;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &first));
	tw_rs_scan(&rs);
	bytes = file_bytes(&rs, image);
	/* The file ends with the first ring. */
	set_file_bytes(&rs, image, TW_RS_RINGS_AT + TW_PAGE_BYTES + (1 << 16));
	for (int i = 0; i < 2; i++) {
		assert_false(tw_rs_ring_claim(&rs, &who, &second));
		tw_rs_scan(&rs);
		assert_int_equal(tw_rs_ring_state(&rs, 1), TW_RB_ABSENT);
		assert_int_equal(atomic_load(&rs.own.head->rings[1].present_pages), 0);
	}
	set_file_bytes(&rs, image, bytes);
	/* The same ring, and no other is cut. */
	assert_true(tw_rs_ring_claim(&rs, &who, &second));
	assert_int_equal(second.ring_index, 1);
	assert_int_equal(tw_rs_scan(&rs), 2);
	put(&second, 1);
	tw_rs_destroy(&rs);
}

/* ---- a damaged overwriting ring ---- */

static void positions_that_no_producer_writes_are_refused(void **state)
{
	struct tw_rb_shared *shared = aligned_alloc(TW_PAGE_BYTES, TW_PAGE_BYTES + TW_RB_BYTES_MIN);
	/* Exactly as large as the ring: the address sanitizer notices a copy beyond it. */
	uint8_t *out = malloc(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	struct tw_rb_stretch copied;
	uint64_t committed, oldest;

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
	assert_true(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied) > 0);
	committed = atomic_load(&shared->committed_pos);
	oldest = atomic_load(&shared->oldest_pos);
	/* Too far apart, aligned. */
	atomic_store(&shared->oldest_pos, committed - TW_RB_BYTES_MIN - TW_RB_ALIGN_BYTES);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied), TW_EFORMAT);
	atomic_store(&shared->oldest_pos, 0);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied), TW_EFORMAT);
	/* At the right distance, but misaligned. */
	atomic_store(&shared->oldest_pos, oldest + 8);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied), TW_EFORMAT);
	atomic_store(&shared->oldest_pos, oldest);
	atomic_store(&shared->committed_pos, committed - 8);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied), TW_EFORMAT);
	/* And at the largest valid distance. */
	atomic_store(&shared->committed_pos, committed);
	atomic_store(&shared->oldest_pos, committed - TW_RB_BYTES_MIN);
	assert_int_equal(tw_rb_snapshot(shared, TW_RB_BYTES_MIN, out, &copied), TW_RB_BYTES_MIN);
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
		cmocka_unit_test(a_number_given_again_is_another_thread),
		cmocka_unit_test(losses_go_along_to_the_larger_ring),
		cmocka_unit_test(rings_that_overlap_are_refused),
		cmocka_unit_test(an_image_gives_back_its_share_of_the_cap),
		cmocka_unit_test(a_ring_without_memory_is_not_ready),
		cmocka_unit_test(positions_that_no_producer_writes_are_refused),
		cmocka_unit_test(an_unwakeable_image_is_known_while_it_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
