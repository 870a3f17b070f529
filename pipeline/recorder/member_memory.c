/* SPDX-License-Identifier: Apache-2.0 */
/* member_memory.c - the memory of a member, by /proc/PID/task/TID/mem. */
#include "pipeline/recorder/member_memory.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* More than a line of the longest name. */
#define MAPS_BYTES 8192

bool tw_member_memory_read(int memory, uint64_t address, void *out, size_t bytes)
{
	return address <= INT64_MAX && pread(memory, out, bytes, (off_t)address) == (ssize_t)bytes;
}

/* Is a line of /proc/PID/maps of that file? */
static bool is_of(const char *line, const struct stat *file)
{
	unsigned major_number, minor_number;
	unsigned long long inode;

	return sscanf(line, "%*x-%*x %*s %*x %x:%x %llu", &major_number, &minor_number, &inode) == 3 &&
	       inode == file->st_ino && major_number == major(file->st_dev) && minor_number == minor(file->st_dev);
}

/* Looks for a file among maps; a name that is longer than the buffer is cut into lines that match no file. */
static bool is_mapped(int maps, const struct stat *file)
{
	char text[MAPS_BYTES];
	size_t filled = 0;
	long got;

	while ((got = tw_sys_read(maps, text + filled, sizeof text - 1 - filled)) > 0) {
		char *line = text, *end;

		filled += (size_t)got;
		text[filled] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			if (is_of(line, file))
				return true;
			line = end + 1;
		}
		filled -= (size_t)(line - text);
		memmove(text, line, filled);
		if (filled == sizeof text - 1)
			filled = 0;
	}
	return false;
}

/* Has the process mapped the image's file?  By the kernel's list; names may differ in another mount namespace. */
static bool has_image(const struct tw_rs *rs, const struct tw_rs_held_request *where, int thread_id)
{
	struct stat image;
	char path[320];
	bool has;
	int maps;

	snprintf(path, sizeof path, "%s/image-%llu", rs->path, (unsigned long long)where->lease);
	if (stat(path, &image))
		return false;
	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", (int)where->process_id, thread_id);
	maps = tw_sys_open_to_read(path);
	if (maps < 0)
		return false;
	has = is_mapped(maps, &image);
	tw_sys_close(maps);
	return has;
}

static int open_through(const struct tw_rs *rs, const struct tw_rs_held_request *where, int thread_id)
{
	char path[64];
	int memory;

	snprintf(path, sizeof path, "/proc/%d/task/%d/mem", (int)where->process_id, thread_id);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return -errno;
	if (has_image(rs, where, thread_id))
		return memory;
	close(memory);
	return -ENOENT;
}

struct search {
	const struct tw_rs *rs;
	const struct tw_rs_held_request *where;
	int memory;
};

static void try_thread(int folder, const char *name, void *arg)
{
	struct search *search = arg;
	int thread_id = atoi(name), found;

	(void)folder;
	if (search->memory >= 0 || thread_id <= 0)
		return;
	found = open_through(search->rs, search->where, thread_id);
	/* A refusal matters more than a thread that has ended. */
	if (found >= 0 || search->memory == -ENOENT)
		search->memory = found;
}

int tw_member_memory_open(const struct tw_rs *rs, const struct tw_rs_held_request *where)
{
	struct search search = {rs, where, open_through(rs, where, where->thread_id)};
	char path[32];
	int tasks;

	if (search.memory >= 0)
		return search.memory;
	snprintf(path, sizeof path, "/proc/%d/task", (int)where->process_id);
	tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks >= 0) {
		tw_sys_each_name(tasks, try_thread, &search);
		close(tasks);
	}
	return search.memory;
}
