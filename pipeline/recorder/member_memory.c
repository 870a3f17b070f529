/* SPDX-License-Identifier: Apache-2.0 */
/* member_memory.c - the memory of a member, by /proc/PID/task/TID/mem. */
#include "pipeline/recorder/member_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool tw_member_memory_read(int memory, uint64_t address, void *out, size_t bytes)
{
	return address <= INT64_MAX && pread(memory, out, bytes, (off_t)address) == (ssize_t)bytes;
}

/* Has the process mapped the image's file?  By the kernel's list; names may differ in another mount namespace. */
static bool has_image(const struct tw_rs *rs, const struct tw_rs_held_request *where, int thread_id)
{
	unsigned major_number, minor_number;
	unsigned long long inode;
	struct stat image;
	char *line = NULL;
	char path[320];
	size_t capacity = 0;
	bool has = false;
	FILE *maps;

	snprintf(path, sizeof path, "%s/image-%llu", rs->path, (unsigned long long)where->lease);
	if (stat(path, &image))
		return false;
	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", (int)where->process_id, thread_id);
	maps = fopen(path, "re");
	while (maps && !has && getline(&line, &capacity, maps) > 0)
		has = sscanf(line, "%*x-%*x %*s %*x %x:%x %llu", &major_number, &minor_number, &inode) == 3 &&
		      inode == image.st_ino && major_number == major(image.st_dev) &&
		      minor_number == minor(image.st_dev);
	free(line);
	if (maps)
		fclose(maps);
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

int tw_member_memory_open(const struct tw_rs *rs, const struct tw_rs_held_request *where)
{
	int memory = open_through(rs, where, where->thread_id);
	struct dirent *entry;
	char path[32];
	DIR *tasks;

	if (memory >= 0)
		return memory;
	snprintf(path, sizeof path, "/proc/%d/task", (int)where->process_id);
	tasks = opendir(path);
	while (tasks && memory < 0 && (entry = readdir(tasks))) {
		int thread_id = atoi(entry->d_name), found;

		if (thread_id <= 0)
			continue;
		found = open_through(rs, where, thread_id);
		/* A refusal matters more than a thread that has ended. */
		if (found >= 0 || memory == -ENOENT)
			memory = found;
	}
	if (tasks)
		closedir(tasks);
	return memory;
}
