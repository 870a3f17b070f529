/* SPDX-License-Identifier: Apache-2.0 */
/* child_memory.h - reads and writes the memory of a child, for tests with cmocka. */
#ifndef TW_TESTS_CHILD_MEMORY_H
#define TW_TESTS_CHILD_MEMORY_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>

/* A descriptor of the process' memory; the caller closes it. */
static inline int memory_of(pid_t child)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)child);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

#endif
