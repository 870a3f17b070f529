/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - the known state of seccomp filters and system call user dispatch, kept in memory. */
#include "base/filter.h"
#include "base/atomic.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_ASKED, FREE, FILTERED };

static const _Atomic uint32_t never_seen;

static __thread uint8_t own;
static __thread struct tw_dispatch dispatch;
static _Atomic uint32_t set_by_threads; /* number of filters of all threads: later threads may have inherited them */
static _Atomic uint32_t set_everywhere;
static _Atomic bool has_dispatched; /* some thread has asked for dispatch */
static const _Atomic uint32_t *_Atomic seen = &never_seen;

__attribute__((target("general-regs-only"))) bool tw_thread_may_call_system(void)
{
	/*
	 * PAIR filter.everywhere: seq_cst; tw_filter_begin().  Either this thread sees the filter, or the thread that sets
	 * it sees that this one waits.
	 */
	if (tw_load_seq_cst(&set_everywhere))
		return false;
	/* RELAXED filter.seen: single words, set as soon as the filter is known. */
	if (tw_load_relaxed(tw_load_relaxed(&seen)))
		return false;
	/* The kernel's SYSCALL_DISPATCH_FILTER_ALLOW is 0. */
	if (dispatch.is_on && (!dispatch.selector || *dispatch.selector))
		return false;
	if (own == NOT_ASKED) {
		/* RELAXED filter.set: a thread that inherited a filter was created after this was raised. */
		if (tw_load_relaxed(&set_by_threads))
			return false;
		own = FREE;
	}
	return own == FREE;
}

__attribute__((target("general-regs-only"))) bool tw_process_may_call_system(void)
{
	/* PAIR filter.everywhere: seq_cst; as in tw_thread_may_call_system(). */
	return !tw_load_seq_cst(&set_everywhere) &&
	       /* RELAXED filter.seen, filter.set, filter.dispatched: set by the thread itself, or as soon as it is known. */
	       !tw_load_relaxed(tw_load_relaxed(&seen)) && !tw_load_relaxed(&set_by_threads) &&
	       !tw_load_relaxed(&has_dispatched);
}

struct tw_filter_change tw_filter_begin(enum tw_filter_scope scope)
{
	struct tw_filter_change change = {own, scope};

	own = FILTERED;
	/* RELAXED filter.set: as above. */
	tw_fetch_add_relaxed(&set_by_threads, 1);
	if (scope == TW_FILTER_ALL_THREADS) {
		/* PAIR filter.everywhere: seq_cst; tw_thread_may_call_system(). */
		tw_fetch_add_seq_cst(&set_everywhere, 1);
	}
	return change;
}

void tw_filter_end(struct tw_filter_change change, bool was_set)
{
	if (was_set)
		return;
	own = change.kept;
	/* RELAXED filter.set: as above; a thread that was checked meanwhile is not checked again, and avoids system calls. */
	tw_fetch_add_relaxed(&set_by_threads, (uint32_t)-1);
	if (change.scope == TW_FILTER_ALL_THREADS) {
		/* PAIR filter.everywhere: seq_cst; as above. */
		tw_fetch_add_seq_cst(&set_everywhere, (uint32_t)-1);
	}
}

struct tw_dispatch tw_dispatch_set(struct tw_dispatch new_dispatch)
{
	struct tw_dispatch before = dispatch;

	if (new_dispatch.is_on)
		/* RELAXED filter.dispatched: before the calling thread is dispatched. */
		tw_store_relaxed(&has_dispatched, true);
	/* A handler that interrupts this finds no selector that is not to be read. */
	dispatch.is_on = true;
	tw_compiler_barrier();
	dispatch.selector = new_dispatch.selector;
	tw_compiler_barrier();
	dispatch.is_on = new_dispatch.is_on;
	return before;
}

void tw_filter_watch(const _Atomic uint32_t *word)
{
	/* RELAXED filter.seen: as above. */
	tw_store_relaxed(&seen, word ? word : &never_seen);
}

static int number_behind(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? (int)strtol(at + strlen(key), NULL, 10) : -1;
}

int tw_filter_count(const char *process)
{
	char path[64], text[8192];
	ssize_t bytes;
	int fd, mode, count;

	snprintf(path, sizeof path, "/proc/%s/status", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	bytes = read(fd, text, sizeof text - 1);
	close(fd);
	if (bytes <= 0)
		return -1;
	text[bytes] = '\0';
	mode = number_behind(text, "\nSeccomp:");
	count = number_behind(text, "\nSeccomp_filters:");
	/* Kernels before 5.9 do not count them. */
	return mode <= 0 || count > 0 ? (mode <= 0 ? mode : count) : 1;
}
