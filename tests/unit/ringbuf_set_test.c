/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A ring set is private, survives its writers, hands each ring to one thread at a time, counts who got
 *	none, takes rings and images of the dead back, and refuses what is foreign or damaged.
 * Method	Sets on tmpfs under a name of this process; children that die by SIGKILL; files damaged on purpose.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/ringset.h"

#include <fcntl.h>
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
	struct tw_rs_options options = { .cap_bytes = cap_bytes, .ring_bytes = ring_bytes, .config = "pattern a:b/_\n" };

	assert_int_equal(tw_rs_create(rs, &options), 0);
}

static void the_directory_is_private_and_goes_with_the_owner(void **state)
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
		{ .ring_bytes = 100000 }, { .ring_bytes = 4096 },		      { .ring_bytes = UINT64_C(1) << 31 },
		{ .cap_bytes = 65536 },	  { .cap_bytes = (UINT64_C(8) << 20) + 1 }, { .name = "a/../../b" },
	};

	for (size_t i = 0; i < TW_COUNT_OF(bad); i++)
		assert_true(tw_rs_create(&rs, &bad[i]) < 0);
}

static void each_ring_has_one_owner_and_runs_out(void **state)
{
	struct tw_rs rs;
	struct tw_rb_producer producers[64];
	struct tw_rs_claim who = { 0 };
	unsigned got = 0, added;

	create(&rs, 1 << 20, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &who.image), 0);
	do {
		while (got < 64 && tw_rs_ring_claim(&rs, &who, &producers[got]))
			got++;
		added = tw_rs_refill(&rs, 1);
	} while (added);
	assert_in_range(got, 6, 15);
	assert_true(rs.used_bytes <= rs.cap_bytes);
	assert_false(tw_rs_ring_claim(&rs, &who, &producers[got]));
	for (unsigned i = 0; i < got; i++)
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(producers[i].shared, producers[j].shared);
	tw_rs_count_no_ring(&rs, who.image, 7);
	tw_rs_count_no_ring(&rs, who.image, 9);
	assert_int_equal(rs.control->images[who.image].no_ring_lost, 2);
	assert_int_equal(rs.control->images[who.image].no_ring_first_ticks, 7);
	assert_int_equal(rs.control->images[who.image].no_ring_last_ticks, 9);
	tw_rs_ring_end(&rs, &producers[0]);
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	tw_rs_ring_recycle(&rs, 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producers[0]));
	assert_int_equal(producers[0].ring_index, 0);
	tw_rs_destroy(&rs);
}

/* Stops without a word: as a thread does that ends by a bare system call. */
static void *claim_and_end(void *arg)
{
	struct tw_rs_claim who = { 0 };

	assert_true(tw_rs_ring_claim(((void **)arg)[0], &who, ((void **)arg)[1]));
	return NULL;
}

static void who_ends_a_ring_late_ends_its_own_lease_only(void **state)
{
	struct tw_rb_producer first, second;
	struct tw_rs_claim who = { 0 };
	struct tw_rs rs;
	void *arg[2] = { &rs, &first };
	pthread_t thread;

	create(&rs, 1 << 20, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &who.image), 0);
	pthread_create(&thread, NULL, claim_and_end, arg);
	pthread_join(thread, NULL);
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

static void what_a_killed_member_committed_is_there(void **state)
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
		struct tw_rs_claim who = { 0 };
		struct tw_rb_producer producer;
		struct tw_rb_record *record;

		if (tw_rs_attach(&member, rs.path) || strcmp(member.control->config, "pattern a:b/_\n"))
			_exit(1);
		if (tw_rs_image_claim(&member, &who.image) || !tw_rs_ring_claim(&member, &who, &producer))
			_exit(2);
		if (tw_rs_defs_append(&member, who.image, 5, "hello", 5))
			_exit(3);
		for (unsigned i = 0; i < 100; i++) {
			if (tw_rb_reserve(&producer, 16, i, (void **)&record) != TW_RB_OK)
				_exit(4);
			*record = (struct tw_rb_record){ i, TW_RB_HEAD(3, 0, 16, i) };
			tw_rb_commit(&producer, 16);
		}
		raise(SIGKILL);
	}
	/* Until it is waited for it is a zombie: dead for us all the same. */
	while (tw_rs_image_state(&rs, 0) != TW_RS_IMAGE_LIVE || !tw_rs_image_reap(&rs, 0))
		usleep(1000);
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(tw_rs_ring_reap(&rs, 0));
	assert_int_equal(tw_rs_ring_state(&rs, 0), TW_RB_ENDED);
	assert_int_equal(tw_rb_peek(tw_rs_ring(&rs, 0), 0, 65536, &out, &end), 1600);
	assert_int_equal(tw_rs_ring(&rs, 0)->thread_id, child);
	/* The owner is alive: nothing is to be recovered. */
	assert_int_equal(tw_rs_open_dead(&dead, rs.path), TW_EEXIST);
	rs.control->owner_start_time++;
	assert_int_equal(tw_rs_open_dead(&dead, rs.path), 0);
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
		dead.defs[20] ^= 1;
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
	struct tw_rs_claim who = { 0 };
	struct tw_rb_producer producer;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &who.image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_false(tw_rs_ring_reap(&rs, 0));
	producer.shared->thread_id = 0x3ffffff;
	assert_true(tw_rs_ring_reap(&rs, 0));
	tw_rs_destroy(&rs);
}

/* Without a file descriptor nobody's death can be seen: nothing may be taken from the living. */
static void nobody_is_dead_who_cannot_be_asked(void **state)
{
	struct tw_rb_producer producer;
	struct tw_rs_claim who = { 0 };
	struct rlimit before, none;
	struct tw_rs rs;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &who.image), 0);
	assert_true(tw_rs_ring_claim(&rs, &who, &producer));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(tw_rs_image_reap(&rs, who.image));
	assert_false(tw_rs_ring_reap(&rs, producer.ring_index));
	assert_false(tw_sys_is_process_gone(getpid(), 1));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(tw_sys_is_process_gone(getpid(), 1));
	assert_false(tw_rs_image_reap(&rs, who.image));
	tw_rs_destroy(&rs);
}

static void exec_ends_the_image_before(void **state)
{
	struct tw_rs rs;
	uint32_t first, second;

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_image_claim(&rs, &first), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &second), 0);
	assert_int_equal(tw_rs_image_state(&rs, first), TW_RS_IMAGE_ENDED);
	assert_int_equal(tw_rs_image_state(&rs, second), TW_RS_IMAGE_LIVE);
	assert_true(rs.control->images[first].lease != rs.control->images[second].lease);
	tw_rs_destroy(&rs);
}

static void damage(const struct tw_rs *rs, size_t offset, uint64_t value)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/control", rs->path);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)offset), sizeof value);
	close(fd);
}

static void foreign_and_damaged_sets_are_refused(void **state)
{
	struct tw_rs rs, member;
	size_t ring = offsetof(struct tw_rs_control, rings);

	create(&rs, 1 << 22, 1 << 17);
	assert_int_equal(tw_rs_attach(&member, "relative"), TW_EBADARG);
	assert_int_equal(tw_rs_attach(&member, "/dev/shm/there-is-no-such-set"), TW_ENOENT);
	assert_int_equal(tw_rs_attach(&member, "/dev/shm"), TW_EPERM);
	chmod(rs.path, 0777);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EPERM);
	chmod(rs.path, 0700);
	damage(&rs, ring + offsetof(struct tw_rs_ring, offset_bytes), UINT64_C(1) << 22);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EFORMAT);
	damage(&rs, ring + offsetof(struct tw_rs_ring, offset_bytes), 0);
	damage(&rs, ring + offsetof(struct tw_rs_ring, data_bytes), 12345);
	assert_int_equal(tw_rs_attach(&member, rs.path), TW_EFORMAT);
	damage(&rs, ring + offsetof(struct tw_rs_ring, data_bytes), 1 << 17);
	assert_int_equal(tw_rs_attach(&member, rs.path), 0);
	tw_rs_detach(&member);
	damage(&rs, 0, 0);
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
	while (tw_rs_defs_append(&rs, image, 9, big, sizeof big - 64 * (size_t)appended) == 0)
		appended++;
	assert_int_equal(appended, TW_RS_DEFS_BYTES / sizeof big);
	assert_int_equal(rs.control->images[image].defs_refused, 1);
	while (tw_rs_defs_next(&rs, image, &at, &type, &payload, &bytes) == 1)
		read++;
	assert_int_equal(read, appended);
	tw_rs_destroy(&rs);
}

#define HOURS_NS UINT64_C(10000000000000)

/* What the owner has not finished writing is not there; a piece that came later is read alone. */
static void layouts_grow_and_are_asked_for(void **state)
{
	struct tw_rs_options options = { .cap_bytes = 1 << 22, .ring_bytes = 1 << 17, .layouts = "m - /a\n" };
	struct tw_rs rs, member;
	uint64_t at = 0, begun_ns;
	uint32_t number;
	size_t bytes;
	char *text;

	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_attach(&member, rs.path), 0);
	assert_int_equal(tw_rs_layouts_read(&member, &at, &text, &bytes), 0);
	assert_string_equal(text, "m - /a\n");
	free(text);
	assert_false(tw_rs_layouts_look(&rs, &number));
	assert_int_equal(tw_rs_layouts_want(&member), 1);
	assert_true(tw_rs_layouts_are_awaited(&member));
	assert_true(tw_rs_layouts_look(&rs, &number));
	begun_ns = tw_clock_monotonic_ns();
	assert_false(tw_rs_layouts_wait(&member, number, 30000000));
	assert_true(tw_clock_monotonic_ns() - begun_ns >= 30000000);
	assert_int_equal(tw_rs_layouts_append(&rs, "f 10 :v0@--\n"), 0);
	tw_rs_layouts_done(&rs, number);
	assert_true(tw_rs_layouts_wait(&member, number, 0));
	assert_int_equal(tw_rs_layouts_read(&member, &at, &text, &bytes), 0);
	assert_string_equal(text, "f 10 :v0@--\n");
	free(text);
	assert_int_equal(tw_rs_layouts_read(&member, &at, &text, &bytes), 0);
	assert_int_equal(bytes, 0);
	free(text);
	/* A file that is shorter than the owner says; an owner that does not come round, or that has closed. */
	number = tw_rs_layouts_want(&member);
	/* RELAXED: this test is alone. */
	tw_store_relaxed(&rs.control->layouts_bytes, 4096);
	assert_int_equal(tw_rs_layouts_read(&member, &at, &text, &bytes), TW_EIO);
	tw_store_relaxed(&rs.control->layouts_bytes, UINT64_MAX);
	assert_int_equal(tw_rs_layouts_read(&member, &at, &text, &bytes), TW_ELIMIT);
	assert_false(tw_rs_layouts_wait(&member, number, HOURS_NS));
	assert_true(tw_rs_is_stalled(&member));
	tw_rs_heartbeat(&rs);
	assert_false(tw_rs_is_stalled(&member));
	tw_rs_close(&rs);
	assert_false(tw_rs_layouts_wait(&member, number, HOURS_NS));
	tw_rs_detach(&member);
	tw_rs_destroy(&rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_directory_is_private_and_goes_with_the_owner),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(each_ring_has_one_owner_and_runs_out),
		cmocka_unit_test(who_ends_a_ring_late_ends_its_own_lease_only),
		cmocka_unit_test(what_a_killed_member_committed_is_there),
		cmocka_unit_test(a_thread_that_died_without_a_word_is_reaped),
		cmocka_unit_test(nobody_is_dead_who_cannot_be_asked),
		cmocka_unit_test(exec_ends_the_image_before),
		cmocka_unit_test(foreign_and_damaged_sets_are_refused),
		cmocka_unit_test(a_full_log_refuses_whole_records),
		cmocka_unit_test(layouts_grow_and_are_asked_for),
	};

	tw_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
