/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Directories with ring sets are accepted from their own user only, and their contents are read whole; sets being
 *	created are not taken for those of dead owners; a destroyed or detached set leaves no memory mapped.
 * Method	A directory of this test serves as /dev/shm (TRACEWHEEL_SHM): sets in it are made by hand, half or
 *	whole, and given to other users if the test may do that.
 */
#include "base/error.h"
#include "ringbuf/backing.h"
#include "ringbuf/ringset.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { SOMEBODY = 4711, SOMEBODY_ELSE = 4712 };

static char folder[64], own[128];

/* ---- sets of the dead ---- */

static unsigned dead_count(void)
{
	return tw_rs_list_dead(NULL, NULL);
}

/* As if nothing had been created in it for that long. */
static void set_age(const char *path, time_t seconds)
{
	const struct timespec then = {time(NULL) - seconds, 0}, times[2] = {then, then};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void write_file(const char *path, const void *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, count), count);
	close(fd);
}

static void a_set_being_created_is_not_dead(void **state)
{
	struct tw_rs_config other = {.magic = TW_RS_MAGIC, .version = TW_RS_VERSION + 1};
	struct tw_rs_options options = {.ring_bytes = 1 << 16};
	char path[256], config[300];
	struct tw_rs alive;

	assert_int_equal(tw_rs_create(&alive, &options), 0);
	set_age(alive.path, 120);
	assert_int_equal(dead_count(), 0);
	snprintf(path, sizeof path, "%s/made", own);
	snprintf(config, sizeof config, "%s/config", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(dead_count(), 0);
	set_age(path, 120);
	assert_int_equal(dead_count(), 1);
	/* Half of its configuration is there. */
	write_file(config, &other, sizeof other / 2);
	set_age(path, 0);
	assert_int_equal(dead_count(), 0);
	set_age(path, 120);
	assert_int_equal(dead_count(), 1);
	/* Another version cannot be judged. */
	write_file(config, &other, sizeof other);
	set_age(path, 120);
	assert_int_equal(dead_count(), 0);
	assert_int_equal(tw_rs_remove(path), 0);
	tw_rs_destroy(&alive);
	assert_int_equal(dead_count(), 0);
}

/* A library of another version does not touch the memory. */
static void a_set_of_another_version_is_not_attached(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16};
	struct tw_rs_config config;
	struct tw_rs set, member;
	char path[300];

	assert_int_equal(tw_rs_create(&set, &options), 0);
	snprintf(path, sizeof path, "%s/config", set.path);
	for (int more = -1; more <= 1; more++) {
		config = set.config;
		config.version += (uint32_t)more;
		write_file(path, &config, sizeof config);
		assert_int_equal(tw_rs_attach(&member, set.path), more ? TW_EVERSION : 0);
		if (!more)
			tw_rs_detach(&member);
	}
	tw_rs_destroy(&set);
}

/* ---- owners ---- */

static void files_that_others_can_write_are_refused(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16};
	struct tw_rs set, member;
	char control[300];

	assert_int_equal(tw_rs_create(&set, &options), 0);
	assert_int_equal(tw_backing_check_directory(set.path), 0);
	snprintf(control, sizeof control, "%s/control", set.path);
	for (unsigned mode = 0720; mode != 0700; mode = mode == 0720 ? 0702 : 0700) {
		assert_int_equal(chmod(set.path, mode), 0);
		assert_int_equal(tw_rs_attach(&member, set.path), TW_EPERM);
		assert_int_equal(tw_rs_remove(set.path), TW_EPERM);
		assert_int_equal(chmod(set.path, 0700), 0);
		assert_int_equal(chmod(control, mode & 0666), 0);
		assert_int_equal(tw_rs_attach(&member, set.path), TW_EPERM);
		assert_int_equal(chmod(control, 0600), 0);
	}
	assert_int_equal(tw_rs_attach(&member, set.path), 0);
	tw_rs_detach(&member);
	if (geteuid() == 0) {
		assert_int_equal(chown(control, SOMEBODY, SOMEBODY), 0);
		assert_int_equal(tw_rs_attach(&member, set.path), TW_EPERM);
		assert_int_equal(chown(control, 0, 0), 0);
		assert_int_equal(chown(set.path, SOMEBODY, SOMEBODY), 0);
		assert_int_equal(tw_rs_attach(&member, set.path), TW_EPERM);
		assert_int_equal(tw_rs_remove(set.path), TW_EPERM);
		assert_int_equal(chown(set.path, 0, 0), 0);
	}
	tw_rs_destroy(&set);
}

/* The first of the possible directory names that belongs to no other user. */
static void a_taken_name_is_skipped(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16};
	char taken[2][160], found[200];
	struct tw_rs set;

	rmdir(own);
	for (int i = 0; i < 2; i++) {
		snprintf(taken[i], sizeof taken[i], i ? "%s-1" : "%s", own);
		assert_int_equal(symlink("/nowhere", taken[i]), 0);
	}
	assert_int_equal(tw_rs_create(&set, &options), 0);
	snprintf(found, sizeof found, "%s-2/", own);
	assert_int_equal(strncmp(set.path, found, strlen(found)), 0);
	tw_rs_destroy(&set);
	for (int i = 0; i < 2; i++)
		unlink(taken[i]);
	found[strlen(found) - 1] = '\0';
	assert_int_equal(rmdir(found), 0);
}

/* Everything the owner asks of its members, however long. */
static void members_read_what_was_asked(void **state)
{
	static char text[3000];

	for (size_t bytes = 0; bytes < sizeof text; bytes += bytes < 3 ? 1 : 700) {
		struct tw_rs_options options = {.ring_bytes = 1 << 16, .config = text};
		struct tw_rs set, member;

		memset(text, 0, sizeof text);
		memset(text, 'x', bytes);
		assert_int_equal(tw_rs_create(&set, &options), 0);
		assert_int_equal(tw_rs_attach(&member, set.path), 0);
		assert_string_equal(member.text, text);
		tw_rs_detach(&member);
		tw_rs_destroy(&set);
	}
}

/* The owner runs as root and has given its program other permissions. */
static void roots_and_ones_own_are_taken(void **state)
{
	char theirs[160];
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	snprintf(theirs, sizeof theirs, "%s/theirs", folder);
	assert_int_equal(mkdir(theirs, 0755), 0);
	child = fork();
	if (child == 0) {
		if (setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
			_exit(1);
		_exit(tw_backing_check_directory(theirs) == 0 ? 0 : 2);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	for (int is_own = 0; is_own < 2; is_own++) {
		assert_int_equal(chown(theirs, is_own ? SOMEBODY : SOMEBODY_ELSE, 0), 0);
		child = fork();
		if (child == 0) {
			if (setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
				_exit(1);
			_exit(tw_backing_check_directory(theirs) == (is_own ? 0 : TW_EPERM) ? 0 : 2);
		}
		waitpid(child, &status, 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(rmdir(theirs), 0);
}

/* ---- memory ---- */

/* Mappings of files of the set, and of anonymous memory that is shared. */
static unsigned mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned count = 0;

	while (fgets(line, sizeof line, maps))
		count += strstr(line, name) != NULL;
	fclose(maps);
	return count;
}

static void a_destroyed_set_leaves_no_memory(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 20};
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	struct tw_rs set, member;
	const char shared[] = "/dev/zero";
	unsigned before = mapped(shared);
	char path[256];
	uint32_t image;

	assert_int_equal(tw_rs_create(&set, &options), 0);
	strcpy(path, set.path);
	assert_int_equal(mapped(path), 1);
	assert_int_equal(tw_rs_attach(&member, path), 0);
	assert_int_equal(tw_rs_image_claim(&member, &image), 0);
	assert_true(tw_rs_ring_claim(&member, &who, &producer));
	tw_rs_scan(&set);
	assert_true(mapped(path) > 3);
	tw_rs_detach(&member);
	tw_rs_destroy(&set);
	assert_int_equal(mapped(path), 0);
	options.is_anonymous = true;
	assert_int_equal(tw_rs_create(&set, &options), 0);
	assert_true(mapped(shared) > before);
	tw_rs_destroy(&set);
	assert_int_equal(mapped(shared), before);
}

/* Also in a child without fork handlers. */
static void children_map_nothing_of_it(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 20};
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	struct tw_rs set, member;
	uint32_t image;
	int status;
	pid_t child;

	assert_int_equal(tw_rs_create(&set, &options), 0);
	assert_int_equal(tw_rs_attach(&member, set.path), 0);
	assert_int_equal(tw_rs_image_claim(&member, &image), 0);
	assert_true(tw_rs_ring_claim(&member, &who, &producer));
	tw_rs_scan(&set);
	assert_true(mapped("/image-") > 0);
	child = (pid_t)syscall(SYS_fork);
	if (child == 0)
		_exit(mapped("/image-") ? 1 : 0);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	tw_rs_detach(&member);
	tw_rs_destroy(&set);
}

/* Without files there is one mapping, which belongs to the set until its end: images come and go in it. */
static void memory_without_a_name_stays_until_the_end(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 20, .is_anonymous = true};
	struct tw_rs_claim who = {0};
	struct tw_rb_producer producer;
	struct tw_rs set;
	uint32_t image;

	assert_int_equal(tw_rs_create(&set, &options), 0);
	for (int round = 0; round < 3; round++) {
		struct tw_rb_record *record;

		assert_int_equal(tw_rs_image_claim(&set, &image), 0);
		assert_true(tw_rs_ring_claim(&set, &who, &producer));
		assert_int_equal(tw_rb_reserve(&producer, 16, 1, (void **)&record), TW_RB_OK);
		*record = (struct tw_rb_record){1, TW_RB_HEAD(3, 0, 16, 0)};
		tw_rb_commit(&producer, 16);
		assert_int_equal(tw_rs_scan(&set), 1);
		assert_int_equal(tw_rb_committed(tw_rs_ring(&set, 0)), 16);
		tw_rs_ring_end(&set, &producer);
		tw_rs_image_end(&set, image);
		tw_rs_scan(&set);
		tw_rs_ring_recycle(&set, 0);
		tw_rs_image_recycle(&set, image);
	}
	tw_rs_destroy(&set);
}

static int set_up(void **state)
{
	strcpy(folder, "/dev/shm/tracewheel-folder-XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/tracewheel-folder-XXXXXX");
		if (!mkdtemp(folder))
			return -1;
	}
	chmod(folder, 0755);
	setenv("TRACEWHEEL_SHM", folder, 1);
	snprintf(own, sizeof own, "%s/tracewheel-%u", folder, (unsigned)geteuid());
	return 0;
}

static int tear_down(void **state)
{
	rmdir(own);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_being_created_is_not_dead),
		cmocka_unit_test(a_set_of_another_version_is_not_attached),
		cmocka_unit_test(files_that_others_can_write_are_refused),
		cmocka_unit_test(roots_and_ones_own_are_taken),
		cmocka_unit_test(a_taken_name_is_skipped),
		cmocka_unit_test(members_read_what_was_asked),
		cmocka_unit_test(a_destroyed_set_leaves_no_memory),
		cmocka_unit_test(children_map_nothing_of_it),
		cmocka_unit_test(memory_without_a_name_stays_until_the_end),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
