/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confined.c - finds seccomp filters that a traced program has set without libc, and tells the program.
 *
 * The program itself knows of filters that were set by prctl() and syscall() (base/filter.h). The owner of its rings
 * finds the others in /proc, at intervals; the word that it sets then applies to all threads of the process.
 *
 * A thread that has set a filter in this way, and makes one of our system calls before the filter is found, may be
 * killed by it. The thread cannot check without a system call; docs/reliability.md says how long the interval is.
 */
#include "pipeline/recorder/confined.h"
#include "base/atomic.h"
#include "base/filter.h"
#include "base/sys.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#define ACTIVE_NS    UINT64_C(10000000)
#define ACTIVE_SHARE 100
#define ALL_NS	     UINT64_C(1000000000)
/* The most threads of a process that are checked in one pass over all. */
#define THREADS_A_PASS 32

static bool has_more_filters(int32_t process_id, int own_count, uint32_t first)
{
	char path[64];
	struct dirent *entry;
	uint32_t number = 0;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%d/task", process_id);
	tasks = opendir(path);
	while (tasks && !found && number < first + THREADS_A_PASS && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.' || number++ < first)
			continue;
		snprintf(path, sizeof path, "%d/task/%.20s", process_id, entry->d_name);
		found = tw_filter_count(path) > own_count;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

static _Atomic uint32_t *seen_of(const struct tw_rs *rs, uint32_t image)
{
	return &rs->control->slots[image].filter_seen;
}

static bool is_to_be_watched(const struct tw_rs *rs, uint32_t image)
{
	const struct tw_rs_seen_image *seen = &rs->images[image];

	/* RELAXED filter.seen: a single word; a thread that reads it late makes one more system call. */
	return seen->lease && seen->state == TW_RS_IMAGE_LIVE && seen->process_id != tw_sys_process_id() &&
	       !tw_load_relaxed(seen_of(rs, image));
}

static void check_all(struct tw_rs *rs, const struct tw_confined *confined)
{
	for (uint32_t i = 0; i < tw_rs_image_count(rs); i++) {
		int32_t process_id = rs->images[i].process_id;

		/* The first threads each time, and others in turn. */
		if (is_to_be_watched(rs, i) &&
		    (has_more_filters(process_id, confined->own_count, 0) ||
		     has_more_filters(process_id, confined->own_count, confined->turn % 64 * THREADS_A_PASS))) {
			/* RELAXED filter.seen: as above. */
			tw_store_relaxed(seen_of(rs, i), 1);
		}
	}
}

/* Only threads that make traced calls make our system calls: checks those whose rings have advanced. */
static void check_active(struct tw_rs *rs, const struct tw_confined *confined)
{
	char path[64];

	for (uint32_t i = 0; i < rs->ring_count; i++) {
		struct tw_rs_seen_ring *ring = &rs->rings[i];
		uint64_t committed;

		if (!ring->shared || !is_to_be_watched(rs, ring->image) || tw_rs_ring_state(rs, i) != TW_RB_LIVE)
			continue;
		committed = tw_rb_committed(ring->shared);
		if (committed == ring->watched_pos)
			continue;
		ring->watched_pos = committed;
		snprintf(path, sizeof path, "%d/task/%d", (int)rs->images[ring->image].process_id,
			 (int)ring->shared->thread_id);
		if (tw_filter_count(path) > confined->own_count) {
			/* RELAXED filter.seen: as above. */
			tw_store_relaxed(seen_of(rs, ring->image), 1);
		}
	}
}

static uint64_t own_cpu_ns(void)
{
	struct timespec time = {0, 0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void tw_confined_check(struct tw_rs *rs, struct tw_confined *confined, uint64_t now_ns)
{
	uint64_t before, pause_ns;

	if (now_ns < confined->active_ns)
		return;
	if (!confined->all_ns)
		confined->own_count = tw_filter_count("self");
	if (confined->own_count < 0) {
		confined->all_ns = confined->active_ns = UINT64_MAX;
		return;
	}
	before = own_cpu_ns();
	check_active(rs, confined);
	pause_ns = (own_cpu_ns() - before) * ACTIVE_SHARE;
	confined->active_ns = now_ns + (pause_ns > ACTIVE_NS ? pause_ns : ACTIVE_NS);
	if (now_ns < confined->all_ns)
		return;
	confined->all_ns = now_ns + ALL_NS;
	check_all(rs, confined);
	confined->turn++;
}
