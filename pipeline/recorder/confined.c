/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confined.c - seccomp filters that a traced program set without libc: seen from outside, and told it.
 *
 * The program's side knows of those that were set by prctl() and syscall() (base/filter.h).  Of the others the owner of its rings
 * reads in /proc, now and then, some threads at a time; the word that it sets then holds for all threads of the process.
 */
#include "pipeline/recorder/confined.h"
#include "base/atomic.h"
#include "base/filter.h"
#include "base/sys.h"

#include <dirent.h>
#include <stdio.h>

/* So many threads of a process at a look. */
#define THREADS_A_LOOK 32

static bool has_more_filters(int32_t process_id, int own_count, uint32_t first)
{
	char path[64];
	struct dirent *entry;
	uint32_t number = 0;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%d/task", process_id);
	tasks = opendir(path);
	while (tasks && !found && number < first + THREADS_A_LOOK && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.' || number++ < first)
			continue;
		snprintf(path, sizeof path, "%d/task/%.20s", process_id, entry->d_name);
		found = tw_filter_count(path) > own_count;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

void tw_confined_look(struct tw_rs *rs, uint32_t turn)
{
	int own_count = tw_filter_count("self");

	for (uint32_t i = 0; own_count >= 0 && i < tw_rs_image_count(rs); i++) {
		_Atomic uint32_t *seen = &rs->control->slots[i].filter_seen;
		int32_t process_id = rs->images[i].process_id;

		if (!rs->images[i].lease || rs->images[i].state != TW_RS_IMAGE_LIVE || process_id == tw_sys_process_id())
			continue;
		/* RELAXED filter.seen: a lone word; one who reads it late makes a system call more. */
		if (tw_load_relaxed(seen)) {
			/* Rings that were taken just before. */
			tw_rs_populate_for(rs, i);
			continue;
		}
		/* The first threads each time, and others in turn. */
		if (has_more_filters(process_id, own_count, 0) ||
		    has_more_filters(process_id, own_count, turn % 64 * THREADS_A_LOOK)) {
			tw_rs_populate_for(rs, i);
			/* RELAXED filter.seen: as above. */
			tw_store_relaxed(seen, 1);
		}
	}
}
