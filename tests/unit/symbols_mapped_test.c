/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A file that is mapped is the file that is read, byte for byte; one that is cut while it is open ends nobody; one that others may
 *         write is read.
 * Method  A copy of this program, opened in both ways; truncated; with other rights.  In a process without the handler, the same access is
 *         SIGBUS.
 */
#include "symbols/file.h"

#include "tracewheel/error.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Makes this program's file large enough: a small segment is read. */
static volatile uint8_t large[1 << 20] = {[0 ...(1 << 20) - 1] = 7};

static char path[] = "/tmp/tracewheel-mapped.XXXXXX";

static void copy_program(mode_t mode)
{
	char bytes[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t got;

	assert_true(from >= 0 && to >= 0);
	while ((got = read(from, bytes, sizeof bytes)) > 0)
		assert_int_equal(write(to, bytes, (size_t)got), got);
	assert_int_equal(fchmod(to, mode), 0);
	close(from);
	close(to);
}

static struct tw_elf_file *open_copy(void)
{
	struct tw_elf_file *file = NULL;

	assert_int_equal(tw_elf_file_open(path, &file), 0);
	return file;
}

/* The whole image, whatever it is now. */
static unsigned sum_of(const struct tw_elf_file *file)
{
	const uint8_t *bytes = file->image;
	unsigned sum = 0;

	for (size_t i = 0; i < file->image_bytes; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

/* In a process of its own, whose handler of SIGBUS is not cmocka's: 0, or the line of what is wrong. */
#define MUST(condition)                  \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int run_alone(int (*body)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		int line;

		signal(SIGBUS, SIG_DFL);
		line = body();
		if (line)
			dprintf(STDERR_FILENO, "line %d\n", line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int compare(void)
{
	struct tw_elf_file *as_read = open_copy(), *mapped;

	MUST(!as_read->mapped);
	tw_symbols_map_files();
	mapped = open_copy();
	MUST(mapped->mapped && mapped->image_bytes == as_read->image_bytes);
	MUST(!memcmp(mapped->image, as_read->image, as_read->image_bytes));
	MUST(mapped->sleds.count == as_read->sleds.count);
	tw_elf_file_close(mapped);
	tw_elf_file_close(as_read);
	return 0;
}

static void mapped_is_what_is_read(void **state)
{
	copy_program(0644);
	assert_int_equal(run_alone(compare), 0);
}

static int cut(void)
{
	struct tw_elf_file *file, *again = NULL;
	unsigned whole;

	tw_symbols_map_files();
	file = open_copy();
	whole = sum_of(file);
	MUST(large[0] && !truncate(path, 4096));
	MUST(sum_of(file) != whole);
	MUST(tw_elf_file_open(path, &again) == TW_EFORMAT);
	tw_elf_file_close(file);
	/* Its mark is free for the next one. */
	copy_program(0644);
	file = open_copy();
	MUST(file->mapped && sum_of(file) == whole);
	tw_elf_file_close(file);
	return 0;
}

static void cut_files_end_nobody(void **state)
{
	copy_program(0644);
	assert_int_equal(run_alone(cut), 0);
}

static int read_others(void)
{
	struct tw_elf_file *file;

	tw_symbols_map_files();
	file = open_copy();
	MUST(!file->mapped);
	tw_elf_file_close(file);
	return 0;
}

static void files_of_others_are_read(void **state)
{
	copy_program(0664);
	assert_int_equal(run_alone(read_others), 0);
}

/* What the handler is for. */
static int cut_without_handler(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	volatile const char *bytes = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, fd, 0);

	MUST(bytes != MAP_FAILED && !truncate(path, 4096));
	return bytes[(1 << 16) - 1];
}

static void without_it_a_cut_file_is_a_signal(void **state)
{
	int status;

	copy_program(0644);
	status = run_alone(cut_without_handler);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapped_is_what_is_read),
		cmocka_unit_test(cut_files_end_nobody),
		cmocka_unit_test(files_of_others_are_read),
		cmocka_unit_test(without_it_a_cut_file_is_a_signal),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
