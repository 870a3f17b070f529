/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.c - is there a process that is traced, or will be?
 *
 * Between fork() and its first use of the ring set, or between exec() and the constructor of the preloaded library, a
 * process is in no table. It is young then, and either its memory, copied from its parent, has the ring set mapped,
 * or its environment contains the ring set's name. Older processes are not waited for.
 *
 * A process may be listed, create another and end before it is examined: then the other is found only by the next
 * pass.
 */
#include "tools/record/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A process that has not attached within this time, even on a busy machine, will not. */
#define AGE_MAX_S 5
/* The number of passes that must find nothing on a machine that creates processes all the time. */
#define PASSES_MAX 8

/* The beginning of a file in /proc/PID; "" if it cannot be read. */
static size_t read_file(const char *pid, const char *name, char *out, size_t capacity)
{
	char path[64];
	size_t used = 0;
	ssize_t got;
	snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && used < capacity - 1 && (got = read(fd, out + used, capacity - 1 - used)) > 0)
		used += (size_t)got;
	if (fd >= 0)
		close(fd);
	out[used] = 0;
	return used;
}

/* Field 22 of stat, counted from the end of the name, which may contain anything. */
static bool is_young(const char *pid)
{
	char text[1024];
	struct timespec now;
	unsigned long long start;
	read_file(pid, "stat", text, sizeof text);
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || clock_gettime(CLOCK_BOOTTIME, &now))
		return false;
	start = strtoull(at + 1, NULL, 10) / (unsigned long long)sysconf(_SC_CLK_TCK);
	return start + AGE_MAX_S > (unsigned long long)now.tv_sec;
}

static bool names_set(const char *pid, const char *ring_set)
{
	enum { ROOM = 1 << 20 };
	char *text = malloc(ROOM);
	bool found = false;
	size_t used = text ? read_file(pid, "environ", text, ROOM) : 0;
	if (used)
		found = memmem(text, used, ring_set, strlen(ring_set)) != NULL;
	if (text && !found && read_file(pid, "maps", text, ROOM))
		found = strstr(text, ring_set) != NULL;
	free(text);
	return found;
}

/* The id of the last process or thread that was created, as text. */
static void read_last(char *out, size_t capacity)
{
	char text[256];
	read_file("", "loadavg", text, sizeof text);
	const char *last = strrchr(text, ' ');
	snprintf(out, capacity, "%s", last ? last : "");
}

static bool are_coming(const char *ring_set, bool *is_sure)
{
	char before[32], after[32], own[24];
	read_last(before, sizeof before);
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	bool found = false;
	*is_sure = true;
	if (!*ring_set)
		return false;
	snprintf(own, sizeof own, "%d", (int)getpid());
	while (folder && !found && (entry = readdir(folder)) != NULL)
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && strcmp(entry->d_name, own) != 0 &&
			is_young(entry->d_name) && names_set(entry->d_name, ring_set);
	if (folder)
		closedir(folder);
	read_last(after, sizeof after);
	*is_sure = strcmp(before, after) == 0;
	return found;
}

/* The table is read first: a process that enters it afterwards is found in /proc. */
bool tw_children_are_left(struct tw_recorder *recorder)
{
	struct tw_recorder_stats stats;
	bool is_sure = false;
	for (int tries = 0; tries < PASSES_MAX && !is_sure; tries++) {
		tw_recorder_drain(recorder);
		tw_recorder_stats(recorder, &stats);
		if (stats.images_alive || are_coming(tw_recorder_ring_set_path(recorder), &is_sure))
			return true;
	}
	return false;
}
