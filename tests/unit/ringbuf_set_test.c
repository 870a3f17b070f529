/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A ring set is private, survives its writers, gives each ring to one thread at a time, gives rings memory before
 *	they are written, lets them grow without losing, doubling or moving a record, counts threads without a ring,
 *	takes rings and images of the dead back, maps little, and refuses what is foreign or damaged.
 * Method	Sets on tmpfs under a name of this process; children that die by SIGKILL; files damaged on purpose.
 */
#include "sanitized_help.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/answers.h"
#include "ringbuf/ringset.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void create(struct tw_rs *rs, uint64_t cap_bytes, uint64_t ring_bytes)
{
	struct tw_rs_options options = {.cap_bytes = cap_bytes, .ring_bytes = ring_bytes, .config = "pattern a:b/_\n"};

	assert_int_equal(tw_rs_create(rs, &options), 0);
}

static void the_directory_is_private_and_removed_by_the_owner(void **state)
{
	struct tw_rs rs;
	struct stat st;
	char path[256];

	create(&rs, 1 << 22, 1 << 17);
	strcpy(path, rs.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	tw_rs_destroy(&rs);
	assert_int_equal(stat(path, &st), -1);
}

static void bad_options_are_refused(void **state)
{
	struct tw_rs rs;
	struct tw_rs_options bad[] = {
		{.ring_bytes = 100000},
		{.ring_bytes = 4096},
		{.ring_bytes = UINT64_C(1) << 31},
		{.cap_bytes = 65536},
		{.cap_bytes = (UINT64_C(8) << 20) + 1},
		{.name = "a/../../b"},
	};

	for (size_t i = 0; i < TW_COUNT_OF(bad); i++)
		assert_true(tw_rs_create(&rs, &bad[i]) < 0);
}

static void put(struct tw_rb_producer *producer, uint64_t number)
{
	struct tw_rb_record *record;

	assert_int_equal(tw_rb_reserve(producer, 16, number + 1, (void **)&record), TW_RB_OK);
	*record = (struct tw_rb_record){number + 1, TW_RB_HEAD(3, 0, 16, number)};
	tw_rb_commit(producer, 16);
}

/* Changes a word in a file of the set. */
static void damage(const struct tw_rs *rs, const char *file, size_t offset, uint64_t value)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/%s", rs->path, file);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)offset), sizeof value);
	close(fd);
}

/*
 * Up to half of the cap all threads find a ring; then a thread that would wait forever may have one in spite of the
 * cap, and so may the first thread of another process.
 */
static void each_ring_has_one_owner_and_runs_out(void **state)
{
	struct tw_rs rs, other;
	struct tw_rb_producer producers[64];
	struct tw_rs_claim who = {0};
	unsigned got = 0;
	uint32_t image;

	create(&rs, 1 << 20, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	while (got < 64 && tw_rs_ring_claim(&rs, &who, &producers[got]))
		got++;
	assert_int_equal(got, (1 << 20) / ((1 << 16) + TW_PAGE_BYTES));
	/* A failed claim has taken nothing. */
	assert_int_equal(atomic_load(&rs.control->used_bytes), got * ((1 << 16) + TW_PAGE_BYTES));
	assert_int_equal(atomic_load(&rs.control->wanted_count), 1);
	for (unsigned i = 0; i < got; i++)
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(producers[i].shared, producers[j].shared);
	tw_rs_count_no_ring(&rs, 7);
	tw_rs_count_no_ring(&rs, 9);
	tw_rs_scan(&rs);
	assert_int_equal(tw_rs_head(&rs, image)->no_ring_lost, 2);
	assert_int_equal(tw_rs_head(&rs, image)->no_ring_first_ticks, 7);
	assert_int_equal(tw_rs_head(&rs, image)->no_ring_last_ticks, 9);
	tw_rs_ring_end(&rs, &producers[0]);
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	assert_false(tw_rs_ring_claim(&rs, &who, &producers[0]));
	tw_rs_ring_recycle(&rs, 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producers[0]));
	assert_int_equal(producers[0].ring_index, 0);
	assert_false(tw_rs_ring_claim(&rs, &who, &producers[got]));
	who.may_pass_cap = true;
	assert_true(tw_rs_ring_claim(&rs, &who, &producers[got]));
	put(&producers[got], 1);
	who.may_pass_cap = false;
	assert_int_equal(tw_rs_attach(&other, rs.path), 0);
	assert_int_equal(tw_rs_image_claim(&other, &image), 0);
	assert_true(tw_rs_ring_claim(&other, &who, &producers[0]));
	assert_false(tw_rs_ring_claim(&other, &who, &producers[1]));
	put(&producers[0], 1);
	tw_rs_detach(&other);
	tw_rs_destroy(&rs);
}

/* ---- growth ---- */

/* Checks that a ring's records are in order; returns their number. */
static uint64_t check_records(const struct tw_rs *rs, uint32_t index, uint64_t from_pos, uint64_t first)
{
	const uint8_t *out;
	uint64_t pos = from_pos, end, number = first;
	int64_t bytes;

	while ((bytes = tw_rb_peek(tw_rs_ring(rs, index), pos, 1 << 20, &out, &end)) > 0 || end != pos) {
		for (int64_t at = 0; at < bytes; at += 16)
			assert_int_equal(((const struct tw_rb_record *)(out + at))->ticks, ++number);
		pos = end;
	}
	return number - first;
}

static void a_full_ring_is_replaced_by_a_larger_one(void **state)
{
	struct tw_rs rs;
	struct tw_rs_claim who = {.scheduler_id = 4, .tracee_id = 5, .thread_start_ticks = 6};
	struct tw_rb_producer producer;
	uint64_t made = 0, found = 0, lease, first_pos[8];
	uint32_t image, index = 0;
	unsigned grown = 0;
	void *space;

	create(&rs, 1 << 26, 1 << 20);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	lease = producer.shared->lease;
	first_pos[0] = 0;
	for (;;) {
		enum tw_rb_outcome outcome = tw_rb_reserve(&producer, 16, made + 1, &space);

		if (outcome == TW_RB_WAIT) {
			if (tw_rb_lacks_memory(&producer, 16)) {
				assert_true(tw_rs_ring_populate(&rs, &producer, true));
			} else {
				assert_true(tw_rs_ring_grow(&rs, &producer));
				first_pos[++grown] = producer.pos;
			}
			continue;
		}
		if (outcome != TW_RB_OK)
			break;
		*(struct tw_rb_record *)space = (struct tw_rb_record){made + 1, TW_RB_HEAD(3, 0, 16, made)};
		tw_rb_commit(&producer, 16);
		made++;
	}
	/* 64 KiB, 256 KiB, 1 MiB: then it has the requested size, and drops. */
	assert_int_equal(grown, 2);
	assert_int_equal(made, ((1 << 16) + (1 << 18) + (1 << 20)) / 16);
	assert_false(tw_rs_ring_grow(&rs, &producer));
	assert_int_equal(tw_rs_scan(&rs), 3);
	for (unsigned i = 0; i <= grown; i++) {
		const struct tw_rb_shared *shared;

		index = tw_rs_ring_sibling(&rs, index, i);
		shared = tw_rs_ring(&rs, index);
		assert_int_equal(shared->lease, lease);
		assert_int_equal(shared->first_pos, first_pos[i]);
		assert_int_equal(shared->grown_from, i);
		assert_int_equal(shared->grown_to, i < grown ? i + 2 : 0);
		assert_int_equal(shared->thread_start_ticks, 6);
		assert_int_equal(shared->scheduler_id, 4);
		assert_int_equal(tw_rs_ring_state(&rs, index), i < grown ? TW_RB_ENDED : TW_RB_LIVE);
		found += check_records(&rs, index, first_pos[i], found);
	}
	assert_int_equal(found, made);
	/* The stream's losses are in its present ring. */
	assert_int_equal(tw_rs_ring(&rs, index)->lost[TW_RB_LOST_FULL], 1);
	/* The old ring goes to the next thread. */
	tw_rs_ring_recycle(&rs, tw_rs_ring_sibling(&rs, index, 1));
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(producer.ring_index, 1);
	tw_rs_destroy(&rs);
}

/* Rings get memory during their first round. */

static uint64_t file_pages(const char *directory)
{
	char command[400];
	uint64_t kib = 0;
	FILE *du;

	snprintf(command, sizeof command, "du -k -c %s/image-* | tail -n 1", directory);
	du = popen(command, "r");
	assert_non_null(du);
	assert_int_equal(fscanf(du, "%" SCNu64, &kib), 1);
	pclose(du);
	return kib / 4;
}

/* Fills a ring to its end; returns how often it requested memory. */
static unsigned fill_ring(struct tw_rs *rs, struct tw_rb_producer *producer, uint64_t records, uint32_t bytes,
			  bool may_call)
{
	unsigned asked = 0;
	void *space;

	for (uint64_t made = 0; made < records;) {
		if (tw_rb_reserve(producer, bytes, made + 1, &space) == TW_RB_OK) {
			memset(space, 0, bytes);
			*(struct tw_rb_record *)space = (struct tw_rb_record){made + 1, TW_RB_HEAD(3, 0, bytes, made)};
			tw_rb_commit(producer, bytes);
			made++;
			continue;
		}
		assert_true(tw_rb_lacks_memory(producer, bytes));
		if (!tw_rs_ring_populate(rs, producer, may_call))
			break;
		asked++;
	}
	return asked;
}

static void memory_comes_as_a_ring_is_filled(void **state)
{
	static const enum tw_rb_policy policies[] = {TW_RB_DROP, TW_RB_BLOCK, TW_RB_OVERWRITE};
	struct tw_rs_claim who = {0};

	for (unsigned i = 0; i < 3; i++) {
		struct tw_rs_options options = {.cap_bytes = 64 << 20,
						.ring_bytes = i < 2 ? 1 << 16 : 1 << 20,
						.policy = policies[i]};
		struct tw_rb_producer producer;
		struct tw_rs rs;
		uint64_t before;
		uint32_t image;

		assert_int_equal(tw_rs_create(&rs, &options), 0);
		assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
		before = file_pages(rs.path);
		assert_true(tw_rs_ring_claim(&rs, &who, &producer));
		/* A page of the table may have been added. */
		assert_in_range(file_pages(rs.path) - before, 4, 5);
		/* No store without memory, whatever the length. */
		assert_int_equal(fill_ring(&rs, &producer, 100, 32, false), 0);
		assert_int_equal(fill_ring(&rs, &producer, 10000, TW_RB_RECORD_BYTES_MAX, false), 0);
		assert_in_range(file_pages(rs.path) - before, 4, 5);
		assert_in_range(producer.pos, 3200, 12 << 10);
		/* To the end: one round of the ring, in steps of 64 KiB. */
		assert_int_equal(fill_ring(&rs, &producer, (options.ring_bytes - producer.pos) / 32, 32, true),
				 options.ring_bytes >> 16);
		assert_true(file_pages(rs.path) - before >= options.ring_bytes >> 12);
		assert_false(tw_rs_ring_populate(&rs, &producer, true));
		tw_rs_destroy(&rs);
	}
}

static void no_call_is_needed_for_memory_made_present_before(void **state)
{
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	struct tw_rs rs;
	uint32_t image;

	create(&rs, 64 << 20, 1 << 16);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(fill_ring(&rs, &producer, 2048, 32, false), 0);
	assert_true(producer.pos <= 12 << 10);
	tw_rs_scan(&rs);
	tw_rs_populate_own(&rs);
	assert_int_equal(fill_ring(&rs, &producer, 2048 - producer.pos / 32, 32, false), 1);
	assert_int_equal(producer.pos, 1 << 16);
	tw_rs_destroy(&rs);
}

static void the_last_quarter_is_for_first_rings(void **state)
{
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producers[64];
	struct tw_rs rs;
	unsigned threads = 0;
	uint32_t image;

	create(&rs, 8 << 20, 4 << 20);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	for (; threads < 8; threads++) {
		assert_true(tw_rs_ring_claim(&rs, &who, &producers[threads]));
		while (tw_rs_ring_grow(&rs, &producers[threads]))
			;
	}
	assert_true(atomic_load(&rs.control->used_bytes) <= (6 << 20) + 8 * ((1 << 16) + TW_PAGE_BYTES));
	while (threads < 24)
		assert_true(tw_rs_ring_claim(&rs, &who, &producers[threads++]));
	tw_rs_destroy(&rs);
}

/* ---- what a member maps ---- */

static unsigned long mapped_kib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return pages * 4;
}

static void a_member_maps_what_it_uses(void **state)
{
	struct tw_rs rs, member;
	struct tw_rs_claim who = {0};
	struct tw_rb_producer first, second;
	unsigned long before, after;
	static char definition[60000];
	uint32_t image;

	create(&rs, 1 << 30, 1 << 26);
	before = mapped_kib();
	assert_int_equal(tw_rs_attach(&member, rs.path), 0);
	assert_int_equal(tw_rs_image_claim(&member, &image), 0);
	assert_true(tw_rs_ring_claim(&member, &who, &first));
	for (int i = 0; i < 5; i++)
		assert_int_equal(tw_rs_defs_append(&member, 5, definition, sizeof definition), 0);
	assert_true(tw_rs_ring_claim(&member, &who, &second));
	after = mapped_kib();
	assert_true(after - before < 1024);
	put(&first, 1);
	put(&second, 1);
	tw_rs_detach(&member);
	assert_true(mapped_kib() <= before + 8);
	tw_rs_destroy(&rs);
}

/* ---- fork ---- */

static void a_child_reaches_nothing_of_its_parent(void **state)
{
	struct tw_rs rs;
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	uint32_t image, own;
	uint64_t committed, defined;
	pid_t child;
	int status;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(tw_rs_defs_append(&rs, 5, "hello", 5), 0);
	put(&producer, 0);
	child = fork();
	if (child == 0) {
		struct tw_rb_producer mine;

		tw_rs_after_fork_in_child(&rs);
		tw_rs_ring_after_fork_in_child(&rs, &producer);
		/* The interrupted code continues, without an effect. */
		for (unsigned i = 1; i < 100; i++)
			put(&producer, i);
		tw_rs_count_no_ring(&rs, 3);
		if (tw_rs_defs_append(&rs, 5, "child", 5) || tw_rs_ring_claim(&rs, &who, &mine))
			_exit(1);
		if (tw_rs_image_claim(&rs, &own) || own == image || !tw_rs_ring_claim(&rs, &who, &mine))
			_exit(2);
		put(&mine, 7);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tw_rs_scan(&rs);
	committed = tw_rb_committed(tw_rs_ring(&rs, 0));
	defined = atomic_load(&tw_rs_head(&rs, image)->defs_committed_bytes);
	assert_int_equal(committed, 16);
	assert_int_equal(defined, 24);
	assert_int_equal(tw_rs_head(&rs, image)->no_ring_lost, 0);
	/* And the child's own ring belongs to its own image. */
	assert_int_equal(tw_rs_image_count(&rs), 2);
	assert_int_equal(tw_rs_ring_image(&rs, 1), 1);
	assert_int_equal(tw_rb_committed(tw_rs_ring(&rs, 1)), 16);
	tw_rs_destroy(&rs);
}

/* ---- many images ---- */

static void slots_of_dead_images_are_reused(void **state)
{
	struct tw_rs_options options = {.cap_bytes = 1 << 28, .ring_bytes = 1 << 16, .follow_fork = true};
	static pid_t children[1000];
	struct tw_rs rs;
	int hold[2], said[2];
	unsigned images = test_rounds(1000, 8), ended = 0;
	char byte;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(said), 0);
	for (unsigned i = 0; i < images; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct tw_rs_claim who = {0};
			struct tw_rb_producer producer;
			uint32_t image;

			close(hold[1]);
			if (tw_rs_image_claim(&rs, &image) || !tw_rs_ring_claim(&rs, &who, &producer))
				_exit(1);
			put(&producer, i);
			if (write(said[1], "", 1) != 1 || read(hold[0], &byte, 1) != 0)
				_exit(2);
			_exit(0);
		}
		assert_true(children[i] > 0);
	}
	for (unsigned i = 0; i < images; i++)
		assert_int_equal(read(said[0], &byte, 1), 1);
	assert_int_equal(tw_rs_scan(&rs), images);
	assert_int_equal(tw_rs_image_count(&rs), images);
	for (unsigned i = 0; i < TW_RS_REFUSALS; i++)
		assert_int_equal(atomic_load(&rs.control->images_refused[i]), 0);
	close(hold[1]);
	for (unsigned i = 0; i < images; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	for (uint32_t i = 0; i < images; i++) {
		ended += tw_rs_image_reap(&rs, i);
		tw_rs_image_recycle(&rs, i);
	}
	assert_int_equal(ended, images);
	assert_int_equal(atomic_load(&rs.control->used_bytes), 0);
	close(hold[0]), close(said[0]), close(said[1]);
	tw_rs_destroy(&rs);
}

static void a_slot_whose_claimant_died_is_free_again(void **state)
{
	struct tw_rs rs;
	uint32_t image;
	pid_t child;

	create(&rs, 1 << 22, 1 << 17);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	/* The state after a member was killed between its first and its last step. */
	atomic_store(&rs.control->slots[0].state, TW_RS_IMAGE_CLAIMED | (uint64_t)child << 32);
	atomic_store(&rs.control->slot_count, 1);
	tw_rs_scan(&rs);
	assert_false(tw_rs_image_reap(&rs, 0));
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_int_equal(image, 0);
	tw_rs_destroy(&rs);
}

/* Ends without notice: like a thread that ends by a bare system call. */
static void *claim_and_end(void *arg)
{
	struct tw_rs_claim who = {0};

	assert_true(tw_rs_ring_claim(((void **)arg)[0], &who, ((void **)arg)[1]));
	return NULL;
}

static void a_late_end_ends_its_own_lease_only(void **state)
{
	struct tw_rb_producer first, second;
	struct tw_rs_claim who = {0};
	struct tw_rs rs;
	void *arg[2] = {&rs, &first};
	pthread_t thread;
	uint32_t image;

	create(&rs, 1 << 20, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	pthread_create(&thread, NULL, claim_and_end, arg);
	pthread_join(thread, NULL);
	tw_rs_scan(&rs);
	while (!tw_rs_ring_reap(&rs, first.ring_index))
		usleep(1000);
	tw_rs_ring_recycle(&rs, first.ring_index);
	assert_true(tw_rs_ring_claim(&rs, &who, &second));
	assert_ptr_equal(first.shared, second.shared);
	tw_rs_ring_end(&rs, &first);
	assert_int_equal(tw_rs_ring_state(&rs, second.ring_index), TW_RB_LIVE);
	tw_rs_ring_end(&rs, &second);
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	tw_rs_destroy(&rs);
}

static void records_of_a_killed_member_are_kept(void **state)
{
	struct tw_rs rs, dead;
	const uint8_t *out;
	uint64_t end;
	int status;
	pid_t child;

	create(&rs, 1 << 22, 1 << 17);
	child = fork();
	if (child == 0) {
		struct tw_rs member;
		struct tw_rs_claim who = {0};
		struct tw_rb_producer producer;
		struct tw_rb_record *record;
		uint32_t image;

		if (tw_rs_attach(&member, rs.path) || strcmp(member.text, "pattern a:b/_\n"))
			_exit(1);
		if (tw_rs_image_claim(&member, &image) || !tw_rs_ring_claim(&member, &who, &producer))
			_exit(2);
		if (tw_rs_defs_append(&member, 5, "hello", 5))
			_exit(3);
		for (unsigned i = 0; i < 100; i++) {
			if (tw_rb_reserve(&producer, 16, i, (void **)&record) != TW_RB_OK)
				_exit(4);
			*record = (struct tw_rb_record){i, TW_RB_HEAD(3, 0, 16, i)};
			tw_rb_commit(&producer, 16);
		}
		raise(SIGKILL);
	}
	/* Until it is waited for it is a zombie: that counts as dead. */
	while (!tw_rs_scan(&rs) || tw_rs_image_state(&rs, 0) != TW_RS_IMAGE_LIVE || !tw_rs_image_reap(&rs, 0))
		usleep(1000);
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	assert_int_equal(tw_rb_peek(tw_rs_ring(&rs, 0), 0, 65536, &out, &end), 1600);
	assert_int_equal(tw_rs_ring(&rs, 0)->thread_id, child);
	/* The owner is alive: nothing is to be recovered. */
	assert_int_equal(tw_rs_open_dead(&dead, rs.path, false), TW_EEXIST);
	damage(&rs, "config", offsetof(struct tw_rs_config, owner_start_time), rs.config.owner_start_time + 1);
	assert_int_equal(tw_rs_open_dead(&dead, rs.path, false), 0);
	assert_int_equal(tw_rs_scan(&dead), 1);
	{
		uint64_t at = 0;
		const void *payload;
		size_t bytes;
		uint32_t type;

		assert_int_equal(tw_rs_defs_next(&dead, 0, &at, &type, &payload, &bytes), 1);
		assert_int_equal(type, 5);
		assert_int_equal(bytes, 5);
		assert_memory_equal(payload, "hello", 5);
		assert_int_equal(tw_rs_defs_next(&dead, 0, &at, &type, &payload, &bytes), 0);
		/* The copy is private: damage to it is not damage to the set. */
		dead.images[0].memory[TW_RS_HEAD_BYTES + 20] ^= 1;
		at = 0;
		assert_int_equal(tw_rs_defs_next(&dead, 0, &at, &type, &payload, &bytes), TW_EFORMAT);
		at = 0;
		assert_int_equal(tw_rs_defs_next(&rs, 0, &at, &type, &payload, &bytes), 1);
	}
	tw_rs_detach(&dead);
	tw_rs_image_recycle(&rs, 0);
	assert_int_equal(tw_rs_image_state(&rs, 0), TW_RS_IMAGE_FREE);
	tw_rs_destroy(&rs);
}

static void a_thread_that_died_without_a_word_is_reaped(void **state)
{
	struct tw_rs rs;
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	uint32_t image;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	tw_rs_scan(&rs);
	assert_false(tw_rs_ring_reap(&rs, 0));
	producer.shared->thread_id = 0x3ffffff;
	assert_true(tw_rs_ring_reap(&rs, 0));
	tw_rs_destroy(&rs);
}

/* Without a file descriptor no death can be detected: nothing may be taken from the living. */
static void an_unreadable_process_is_not_dead(void **state)
{
	struct tw_rb_producer producer;
	uint32_t image;
	struct tw_rs_claim who = {0};
	struct rlimit before, none;
	struct tw_rs rs;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	tw_rs_scan(&rs);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(tw_rs_image_reap(&rs, image));
	assert_false(tw_rs_ring_reap(&rs, producer.ring_index));
	assert_false(tw_sys_is_process_gone(getpid(), 1));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(tw_sys_is_process_gone(getpid(), 1));
	assert_false(tw_rs_image_reap(&rs, image));
	tw_rs_destroy(&rs);
}

static void exec_ends_the_image_before(void **state)
{
	struct tw_rs rs;
	uint32_t first, second;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &first), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &second), 0);
	tw_rs_scan(&rs);
	assert_int_equal(tw_rs_image_state(&rs, first), TW_RS_IMAGE_ENDED);
	assert_int_equal(tw_rs_image_state(&rs, second), TW_RS_IMAGE_LIVE);
	assert_true(tw_rs_image(&rs, first)->lease != tw_rs_image(&rs, second)->lease);
	tw_rs_destroy(&rs);
}

static void foreign_and_damaged_sets_are_refused(void **state)
{
	struct tw_rs rs, member;
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	uint32_t image;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_attach(&member, "relative"), TW_EBADARG);
	assert_int_equal(tw_rs_attach(&member, "/dev/shm/there-is-no-such-set"), TW_ENOENT);
	assert_int_equal(tw_rs_attach(&member, "/dev/shm"), TW_EPERM);
	chmod(rs.path, 0777);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EPERM);
	chmod(rs.path, 0700);
	damage(&rs, "config", offsetof(struct tw_rs_config, ring_bytes), 12345);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EFORMAT);
	damage(&rs, "config", offsetof(struct tw_rs_config, ring_bytes), 1 << 17);
	assert_int_equal(tw_rs_attach(&member, rs.path), 0);
	tw_rs_detach(&member);
	/* Entries of a table of rings that lie outside the file, or are no rings, are ignored. */
	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = rs.damaged_tables;
		uint32_t rings;

		assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
		assert_true(tw_rs_ring_claim(&rs, &who, &producer));
		atomic_store(i ? &rs.own.head->rings[0].data_pages : &rs.own.head->rings[0].offset_pages,
			     i ? 17 : UINT32_MAX);
		rings = tw_rs_scan(&rs);
		assert_int_equal(rings, 0);
		assert_int_equal(rs.damaged_tables, before + 1);
		assert_int_equal(tw_rs_scan(&rs), 0);
		assert_int_equal(rs.damaged_tables, before + 1);
	}
	damage(&rs, "config", 0, 0);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EFORMAT);
	tw_rs_destroy(&rs);
}

static void a_full_log_refuses_whole_records(void **state)
{
	static char big[1 << 20];
	struct tw_rs rs;
	uint32_t image, type;
	uint64_t at = 0;
	const void *payload;
	size_t bytes;
	int appended = 0, read = 0;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	while (tw_rs_defs_append(&rs, 9, big, sizeof big - 64 * (size_t)appended) == 0)
		appended++;
	assert_int_equal(appended, TW_RS_DEFS_BYTES / sizeof big);
	tw_rs_scan(&rs);
	assert_int_equal(tw_rs_head(&rs, image)->defs_refused, 1);
	while (tw_rs_defs_next(&rs, image, &at, &type, &payload, &bytes) == 1)
		read++;
	assert_int_equal(read, appended);
	tw_rs_destroy(&rs);
}

#define HOURS_NS UINT64_C(10000000000000)

/* Text that the owner has not finished is invisible; later text is read alone. */
static void layouts_grow_and_are_asked_for(void **state)
{
	struct tw_rs_options options = {.cap_bytes = 1 << 22, .ring_bytes = 1 << 17, .answers = "m - /a\n"};
	struct tw_rs rs, member;
	uint64_t at = 0, begun_ns;
	uint32_t number;
	size_t bytes;
	char *text;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_attach(&member, rs.path), 0);
	assert_int_equal(tw_rs_answers_read(&member, &at, &text, &bytes), 0);
	assert_string_equal(text, "m - /a\n");
	free(text);
	assert_false(tw_rs_answers_poll(&rs, TW_RS_QUESTION_LAYOUTS, &number));
	assert_int_equal(tw_rs_answers_want(&member, TW_RS_QUESTION_LAYOUTS), 1);
	/* Each kind of question has numbers of its own, and each image asks for itself, once. */
	assert_false(tw_rs_answers_are_awaited(&member, TW_RS_QUESTION_PLANS));
	assert_false(tw_rs_answers_poll(&rs, TW_RS_QUESTION_PLANS, &number));
	assert_false(tw_rs_answers_take(&rs, TW_RS_QUESTION_PLANS, member.own.slot));
	assert_false(tw_rs_answers_take(&rs, TW_RS_QUESTION_LAYOUTS, member.own.slot + 1));
	assert_true(tw_rs_answers_take(&rs, TW_RS_QUESTION_LAYOUTS, member.own.slot));
	assert_false(tw_rs_answers_take(&rs, TW_RS_QUESTION_LAYOUTS, member.own.slot));
	assert_false(tw_rs_answers_have(&member, TW_RS_QUESTION_LAYOUTS, 1));
	assert_true(tw_rs_answers_are_awaited(&member, TW_RS_QUESTION_LAYOUTS));
	assert_true(tw_rs_answers_poll(&rs, TW_RS_QUESTION_LAYOUTS, &number));
	begun_ns = tw_clock_monotonic_ns();
	assert_false(tw_rs_answers_wait(&member, TW_RS_QUESTION_LAYOUTS, number, 30000000));
	assert_true(tw_clock_monotonic_ns() - begun_ns >= 30000000);
	assert_int_equal(tw_rs_answers_append(&rs, "f 10 :v0@--\n"), 0);
	tw_rs_answers_done(&rs, TW_RS_QUESTION_LAYOUTS, number);
	assert_true(tw_rs_answers_wait(&member, TW_RS_QUESTION_LAYOUTS, number, 0));
	assert_true(tw_rs_answers_have(&member, TW_RS_QUESTION_LAYOUTS, number));
	assert_int_equal(tw_rs_answers_read(&member, &at, &text, &bytes), 0);
	assert_string_equal(text, "f 10 :v0@--\n");
	free(text);
	assert_int_equal(tw_rs_answers_read(&member, &at, &text, &bytes), 0);
	assert_int_equal(bytes, 0);
	free(text);
	/* A file shorter than the owner says; an owner that does not answer, or that has closed. */
	number = tw_rs_answers_want(&member, TW_RS_QUESTION_LAYOUTS);
	/* RELAXED: this test is alone. */
	tw_store_relaxed(&rs.control->answers_bytes, 4096);
	assert_int_equal(tw_rs_answers_read(&member, &at, &text, &bytes), TW_EIO);
	tw_store_relaxed(&rs.control->answers_bytes, UINT64_MAX);
	assert_int_equal(tw_rs_answers_read(&member, &at, &text, &bytes), TW_ELIMIT);
	assert_false(tw_rs_answers_wait(&member, TW_RS_QUESTION_LAYOUTS, number, HOURS_NS));
	assert_true(tw_rs_is_stalled(&member));
	tw_rs_heartbeat(&rs);
	assert_false(tw_rs_is_stalled(&member));
	tw_rs_close(&rs);
	assert_false(tw_rs_answers_wait(&member, TW_RS_QUESTION_LAYOUTS, number, HOURS_NS));
	tw_rs_detach(&member);
	tw_rs_destroy(&rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_directory_is_private_and_removed_by_the_owner),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(each_ring_has_one_owner_and_runs_out),
		cmocka_unit_test(a_full_ring_is_replaced_by_a_larger_one),
		cmocka_unit_test(memory_comes_as_a_ring_is_filled),
		cmocka_unit_test(no_call_is_needed_for_memory_made_present_before),
		cmocka_unit_test(the_last_quarter_is_for_first_rings),
		cmocka_unit_test(a_member_maps_what_it_uses),
		cmocka_unit_test(a_child_reaches_nothing_of_its_parent),
		cmocka_unit_test(slots_of_dead_images_are_reused),
		cmocka_unit_test(a_slot_whose_claimant_died_is_free_again),
		cmocka_unit_test(a_late_end_ends_its_own_lease_only),
		cmocka_unit_test(records_of_a_killed_member_are_kept),
		cmocka_unit_test(a_thread_that_died_without_a_word_is_reaped),
		cmocka_unit_test(an_unreadable_process_is_not_dead),
		cmocka_unit_test(exec_ends_the_image_before),
		cmocka_unit_test(foreign_and_damaged_sets_are_refused),
		cmocka_unit_test(a_full_log_refuses_whole_records),
		cmocka_unit_test(layouts_grow_and_are_asked_for),
	};

	tw_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
