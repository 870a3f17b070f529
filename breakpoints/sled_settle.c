/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_settle.c - sleds of one-byte NOPs that threads may be running: a library opened by a program with
 * threads.
 *
 *  1 the window becomes 66 66 66 66 90: NOPs for everybody, from wherever he stands	tw_sled_join()
 *  2 wait + code: whoever enters from now on runs it as one instruction
 *  3 each thread is seen outside of the code, or has run for a while since: whoever stood between two of
 *    the old NOPs has left, by one instruction
 *  4 now the window can become a jump
 *
 * How a thread is seen: /proc/self/task/ID/syscall has the address where it stands, unless it is "running";
 * then its user time must grow by two ticks.  No thread is stopped or signalled.  What is not seen in time is
 * not traced.  (Not seen: where a signal handler goes back to.  A handler that interrupted one of these very
 * NOPs and sleeps all the while would go back into the jump.)
 */
#include "breakpoints/sled.h"

#include "breakpoints/patch.h"
#include "base/sys.h"
#include "progress/progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS    2u
#define TICKS_MIN 2u

/* What is joined now settles in this round; rounds before are settled. */
static uint32_t round_now = 1;
/* From the first to behind the last window that was joined since. */
static uintptr_t joined_low = UINTPTR_MAX, joined_high;

struct watched {
	int id;
	unsigned long ticks; /* of user time, at first */
	bool has_left;
};

bool tw_sled_is_unsettled(const struct tw_place *place)
{
	return place->joined_in >= round_now;
}

void tw_sled_join(struct tw_place *place, uint8_t *window)
{
	for (unsigned i = 0; i < 4; i++) {
		/* PROGRESS sled.join: whoever sees which of these bytes runs NOPs; all are seen after step 2.
		 */
		tw_store_release((_Atomic uint8_t *)(window + i), 0x66);
	}
	place->joined_in = round_now;
	joined_low = joined_low < (uintptr_t)window ? joined_low : (uintptr_t)window;
	joined_high = joined_high > (uintptr_t)window + 5 ? joined_high : (uintptr_t)window + 5;
}

/* Returns false when the thread is no more, or nothing is said of it. */
static bool read_file(int id, const char *name, char *out, size_t room)
{
	char path[64];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/%s", id, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = read(fd, out, room - 1);
	close(fd);
	out[bytes > 0 ? bytes : 0] = '\0';
	return bytes > 0;
}

/* Field 14 of stat, counted behind the name, which may hold anything. */
static unsigned long user_ticks(int id)
{
	char text[512];
	const char *at;
	unsigned long ticks = 0;

	if (!read_file(id, "stat", text, sizeof text))
		return 0;
	at = strrchr(text, ')');
	if (at)
		sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &ticks);
	return ticks;
}

static bool has_left(const struct watched *watched)
{
	char text[256];
	const char *last;
	uintptr_t address;

	if (!read_file(watched->id, "syscall", text, sizeof text))
		return !tw_sys_is_thread_alive(getpid(), watched->id);
	if (!strncmp(text, "running", 7))
		return user_ticks(watched->id) >= watched->ticks + TICKS_MIN;
	last = strrchr(text, ' ');
	address = last ? strtoul(last, NULL, 16) : 0;
	return address && (address < joined_low || address >= joined_high);
}

/* All threads but this one. */
static struct watched *list_threads(size_t *count)
{
	DIR *folder = opendir("/proc/self/task");
	struct watched *list = NULL;
	size_t room = 0;
	struct dirent *entry;

	*count = 0;
	while (folder && (entry = readdir(folder))) {
		int id = atoi(entry->d_name);

		if (id <= 0 || id == tw_sys_thread_id())
			continue;
		if (*count == room) {
			struct watched *more = realloc(list, (room * 2 + 16) * sizeof *more);

			if (!more)
				break;
			list = more;
			room = room * 2 + 16;
		}
		list[(*count)++] = (struct watched){id, user_ticks(id), false};
	}
	/* Half a list is none. */
	if (!folder || entry) {
		free(list);
		list = NULL;
	}
	if (folder)
		closedir(folder);
	return list;
}

static size_t count_inside(struct watched *list, size_t count)
{
	size_t inside = 0;

	for (size_t i = 0; i < count; i++) {
		list[i].has_left = list[i].has_left || has_left(&list[i]);
		inside += !list[i].has_left;
	}
	return inside;
}

bool tw_patch_settle(unsigned most_ms)
{
	const struct timespec nap = {0, NAP_MS * 1000000L};
	struct watched *list;
	size_t count, inside = 1;

	if (joined_high == 0)
		return false;
	tw_progress_wait_code(); /* 2 */
	list = list_threads(&count);
	for (unsigned waited_ms = 0; list && waited_ms < most_ms; waited_ms += NAP_MS) { /* 3 */
		inside = count_inside(list, count);
		if (!inside)
			break;
		nanosleep(&nap, NULL);
	}
	free(list);
	if (inside)
		return false;
	round_now++;
	joined_low = UINTPTR_MAX;
	joined_high = 0;
	return true;
}
