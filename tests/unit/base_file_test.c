/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A name that others have chosen makes no command wait, act on a device, or read for hours: only regular files are opened, and
 *         files of holes are refused. The identity of a file changes with each of its bytes, and nobody can put it back.
 * Method  A pipe, a folder, a device, a socket, links and sparse files, under names in an empty folder.
 */
#include "base/file.h"
#include "base/limits.h"

#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int set_up(void **state)
{
	static char folder[32];

	strcpy(folder, "/tmp/tw-file-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	*state = folder;
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
	return chdir("/") || system(command);
}

static void make(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* The result of opening, which is closed again. */
static int opened(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : fd;
}

static void only_regular_files_are_opened(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	struct stat status = {.st_ino = 4711};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[8];

	assert_int_equal(mkfifo("pipe", 0644), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	assert_int_equal(symlink("pipe", "link_to_pipe"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(opened(tw_file_open("pipe", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open("link_to_pipe", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open("socket", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open(".", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open("/dev/null", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open("/dev/tty", &status)), TW_EFORMAT);
	assert_int_equal(opened(tw_file_open("loop", &status)), TW_ENOENT);
	assert_int_equal(opened(tw_file_open("nothing", &status)), TW_ENOENT);
	assert_int_equal(status.st_ino, 4711);
	make("file", "text");
	fd = tw_file_open("file", &status);
	assert_true(fd >= 0);
	assert_int_equal(status.st_size, 4);
	assert_int_equal(read(fd, text, sizeof text), 4);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void links_are_followed_or_not(void **state)
{
	struct stat status;
	char here[64], path[96];
	int error;

	make("file", "text");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(mkdir("folder", 0755), 0);
	assert_int_equal(symlink("folder", "other"), 0);
	make("folder/file", "text");
	assert_int_equal(opened(tw_file_open("link", &status)), 0);
	assert_int_equal(opened(tw_file_open("other/file", &status)), 0);
	error = opened(tw_file_open_exactly("file", &status));
	if (error == TW_ENOTSUP)
		skip();
	assert_int_equal(error, 0);
	assert_int_equal(opened(tw_file_open_exactly("folder/file", &status)), 0);
	assert_int_equal(opened(tw_file_open_exactly("link", &status)), TW_ENOENT);
	assert_int_equal(opened(tw_file_open_exactly("other/file", &status)), TW_ENOENT);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "/proc/self/root%s/file", here);
	assert_int_equal(opened(tw_file_open_exactly(path, &status)), TW_ENOENT);
	assert_int_equal(mkfifo("pipe", 0644), 0);
	assert_int_equal(opened(tw_file_open_exactly("pipe", &status)), TW_EFORMAT);
}

static void put(int fd, off_t at, size_t bytes)
{
	char *text = malloc(bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	assert_int_equal(pwrite(fd, text, bytes, at), bytes);
	free(text);
}

static void files_of_holes_are_refused(void **state)
{
	struct stat status;
	int fd = open("sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)TW_FILE_HOLES_BYTES_MIN), 0);
	assert_int_equal(opened(tw_file_open("sparse", &status)), 0);
	assert_int_equal(ftruncate(fd, 2 * (off_t)TW_FILE_HOLES_BYTES_MIN), 0);
	assert_int_equal(opened(tw_file_open("sparse", &status)), TW_ELIMIT);
	/* Data at the end, and in the middle; then enough of it. */
	put(fd, 2 * (off_t)TW_FILE_HOLES_BYTES_MIN - 4096, 4096);
	assert_int_equal(opened(tw_file_open("sparse", &status)), TW_ELIMIT);
	put(fd, (off_t)TW_FILE_HOLES_BYTES_MIN, 1 << 20);
	assert_int_equal(opened(tw_file_open("sparse", &status)), TW_ELIMIT);
	put(fd, 0, 1 << 20);
	assert_int_equal(opened(tw_file_open("sparse", &status)), 0);
	assert_int_equal(ftruncate(fd, (off_t)TW_FILE_BYTES_MAX + 1), 0);
	assert_int_equal(opened(tw_file_open("sparse", &status)), TW_ELIMIT);
	close(fd);
}

static struct tw_file_identity identity_of(const char *name)
{
	struct tw_file_identity identity;
	struct stat status;

	assert_int_equal(opened(tw_file_open(name, &status)), 0);
	tw_file_identify(&status, &identity);
	return identity;
}

static void a_change_shows(void **state)
{
	struct timespec past[2] = {{1000000000, 0}, {1000000000, 0}};
	struct tw_file_identity before, after;

	make("file", "text");
	assert_int_equal(utimensat(AT_FDCWD, "file", past, 0), 0);
	before = identity_of("file");
	while (!tw_file_is_settled(&before))
		usleep(1000);
	after = identity_of("file");
	assert_memory_equal(&before, &after, sizeof before);
	/* Another byte, and the time that it had. */
	make("file", "tent");
	assert_int_equal(utimensat(AT_FDCWD, "file", past, 0), 0);
	after = identity_of("file");
	assert_int_equal(before.modified_s, after.modified_s);
	assert_int_equal(before.inode, after.inode);
	assert_true(memcmp(&before, &after, sizeof before) != 0);
	assert_false(tw_file_is_settled(&(struct tw_file_identity){.changed_s = INT64_MAX}));
	assert_true(tw_file_is_settled(&(struct tw_file_identity){.changed_s = 0}));
}

static void owners_are_trusted(void **state)
{
	struct stat status = {.st_mode = S_IFREG | 0755, .st_uid = geteuid()};
	int fd;

	assert_true(tw_file_is_trusted(&status));
	status.st_uid = 0;
	assert_true(tw_file_is_trusted(&status));
	status.st_mode = S_IFREG | 0775;
	assert_false(tw_file_is_trusted(&status));
	status.st_mode = S_IFREG | 0757;
	assert_false(tw_file_is_trusted(&status));
	status.st_mode = S_IFREG | 0755;
	status.st_uid = geteuid() + 1;
	assert_false(tw_file_is_trusted(&status));
	/* A file of root, as some are in procfs, with contents of its process' choice. */
	fd = tw_file_open("/proc/self/cmdline", &status);
	assert_true(fd >= 0);
	assert_true(tw_file_is_synthetic(fd));
	close(fd);
	make("file", "text");
	fd = tw_file_open("file", &status);
	assert_false(tw_file_is_synthetic(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_regular_files_are_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(links_are_followed_or_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_holes_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_change_shows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(owners_are_trusted, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
