/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switches.c - a software event that counts nothing, and tells of context switches, on each processor: switches.h.
 *
 * A ring that is full loses switches of any thread that runs on its processor.  The kernel says so with a record, but only when
 * a later one finds space.  Until then a thread would seem to be as it was last seen.  Therefore a ring that has no space for
 * another record when it is emptied is taken to have lost some: a gap begins behind its last record, and ends when it has been emptied.
 */
#include "base/switches.h"
#include "base/atomic.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* All rings together, on machines with many processors. */
#define ALL_BYTES_MAX (UINT64_C(64) << 20)
/* With less space than this a record, or that of a loss before it, may not fit. */
#define FULL_BYTES 128
/* The largest record that is looked at: others are skipped. */
#define RECORD_BYTES_MAX 128

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t bytes;
	uint64_t head, at; /* of this round; what was read */
	uint64_t last_ns;  /* of the last record read */
	/* The ring had no space at this position, until then; 0: it had. */
	uint64_t full_at, full_until_ns;
	bool is_told; /* that gap was the last that was read */
	bool has_next;
	struct tw_switch next;
};

struct tw_switches {
	uint32_t count;
	uint64_t now_ns; /* of the round */
	struct ring rings[];
};

/* ---- opening ---- */

static int open_event(int processor)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.context_switch = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.inherit = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, processor, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Returns the bytes of its data, 0 if no ring could be mapped. */
static uint64_t map_ring(struct ring *ring, uint64_t most)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t bytes = most; bytes >= TW_SWITCHES_BYTES_MIN; bytes /= 2) {
		void *map = mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

		if (map == MAP_FAILED)
			continue;
		ring->page = map;
		ring->data = (const uint8_t *)map + page_bytes;
		ring->bytes = bytes;
		return bytes;
	}
	return 0;
}

static uint64_t most_bytes(uint32_t processors)
{
	uint64_t bytes = TW_SWITCHES_BYTES_MAX;

	while (bytes > TW_SWITCHES_BYTES_MIN && bytes * processors > ALL_BYTES_MAX)
		bytes /= 2;
	return bytes;
}

int tw_switches_open(struct tw_switches **out)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	uint32_t all = processors > 0 ? (uint32_t)processors : 1;
	struct tw_switches *switches = calloc(1, sizeof *switches + all * sizeof *switches->rings);
	uint64_t most = most_bytes(all);
	int error = switches ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < all && !error; i++) {
		struct ring *ring = &switches->rings[switches->count];

		ring->fd = open_event((int)i);
		/* A processor that is not there, or off. */
		if (ring->fd == -ENODEV || (ring->fd == -EINVAL && switches->count))
			continue;
		error = ring->fd < 0 ? ring->fd : 0;
		if (error)
			continue;
		switches->count++;
		most = map_ring(ring, most);
		error = most ? 0 : -ENOBUFS;
	}
	if (!error && !switches->count)
		error = -ENOENT;
	if (error) {
		tw_switches_close(switches);
		return error;
	}
	*out = switches;
	return 0;
}

void tw_switches_close(struct tw_switches *switches)
{
	if (!switches)
		return;
	for (uint32_t i = 0; i < switches->count; i++) {
		struct ring *ring = &switches->rings[i];

		if (ring->page)
			munmap(ring->page, (size_t)(ring->data - (const uint8_t *)ring->page) + ring->bytes);
		close(ring->fd);
	}
	free(switches);
}

/* ---- reading ---- */

/* Copies bytes at a position, around the end of the ring. */
static void copy_out(const struct ring *ring, uint64_t pos, void *to, size_t bytes)
{
	uint64_t at = pos % ring->bytes;
	size_t first = bytes < ring->bytes - at ? bytes : (size_t)(ring->bytes - at);

	memcpy(to, ring->data + at, first);
	memcpy((uint8_t *)to + first, ring->data, bytes - first);
}

/* What every record has at its end. */
struct trailer {
	uint32_t process_id, thread_id;
	uint64_t ns;
};

/* The words behind the head of a record. */
struct body {
	uint64_t words[(RECORD_BYTES_MAX - sizeof(struct perf_event_header)) / 8];
};

/* False: it says nothing of a thread's state. */
static bool take(struct ring *ring, const struct perf_event_header *head, const struct body *body,
		 const struct trailer *trailer)
{
	struct tw_switch *next = &ring->next;

	*next = (struct tw_switch){.ns = trailer->ns, .thread_id = (int32_t)trailer->thread_id};
	switch (head->type) {
	case PERF_RECORD_SWITCH:
		next->kind = !(head->misc & PERF_RECORD_MISC_SWITCH_OUT)	? TW_SWITCH_IN
			     : head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? TW_SWITCH_PREEMPTED
										: TW_SWITCH_OUT;
		break;
	case PERF_RECORD_COMM:
		next->kind = TW_SWITCH_EXEC;
		if (!(head->misc & PERF_RECORD_MISC_COMM_EXEC))
			return false;
		break;
	case PERF_RECORD_EXIT:
		/* u32 process, parent's process, thread, parent's thread. */
		next->kind = TW_SWITCH_EXIT;
		next->thread_id = (int32_t)(uint32_t)body->words[1];
		break;
	case PERF_RECORD_LOST:
		/* u64 id, number. Of a gap that was told already only the number is new. */
		*next = (struct tw_switch){.kind = TW_SWITCH_GAP,
					   .ns = ring->last_ns,
					   .until_ns = ring->is_told ? ring->last_ns : trailer->ns,
					   .lost = body->words[1]};
		break;
	default: return false;
	}
	if (head->type != PERF_RECORD_LOST) {
		ring->last_ns = trailer->ns;
		ring->is_told = false;
	}
	return true;
}

/* The record at the ring's position, which is passed; false: it is of no interest, or there is none. */
static bool take_record(struct ring *ring)
{
	struct perf_event_header head;
	struct trailer trailer;
	struct body body;
	bool is_small;

	copy_out(ring, ring->at, &head, sizeof head);
	/* The kernel writes only whole records. */
	if (head.size < sizeof head + sizeof trailer || head.size > ring->head - ring->at) {
		ring->at = ring->head;
		return false;
	}
	is_small = head.size <= RECORD_BYTES_MAX;
	memset(&body, 0, sizeof body);
	if (is_small)
		copy_out(ring, ring->at + sizeof head, &body, head.size - sizeof head);
	copy_out(ring, ring->at + head.size - sizeof trailer, &trailer, sizeof trailer);
	ring->at += head.size;
	return is_small && take(ring, &head, &body, &trailer);
}

static void load_next(struct ring *ring)
{
	while (!ring->has_next) {
		if (ring->full_at && ring->at >= ring->full_at) {
			ring->next = (struct tw_switch){.kind = TW_SWITCH_GAP,
							.ns = ring->last_ns,
							.until_ns = ring->full_until_ns};
			ring->full_at = 0;
			ring->is_told = ring->has_next = true;
		} else if (ring->at < ring->head) {
			ring->has_next = take_record(ring);
		} else {
			return;
		}
	}
}

uint64_t tw_switches_begin(struct tw_switches *switches)
{
	/* The time first: of one thread, a switch before it is in its ring, or no later one is read either. */
	switches->now_ns = tw_clock_monotonic_ns();
	for (uint32_t i = 0; i < switches->count; i++) {
		struct ring *ring = &switches->rings[i];

		/* PAIR switches.head: acquire: the kernel's release; the bytes of records before it are written. */
		ring->head = tw_load_plain_acquire(&ring->page->data_head);
		load_next(ring);
	}
	return switches->now_ns;
}

bool tw_switches_next(struct tw_switches *switches, struct tw_switch *out)
{
	struct ring *first = NULL;

	for (uint32_t i = 0; i < switches->count; i++) {
		struct ring *ring = &switches->rings[i];

		if (ring->has_next && ring->next.ns <= switches->now_ns && (!first || ring->next.ns < first->next.ns))
			first = ring;
	}
	if (!first)
		return false;
	*out = first->next;
	first->has_next = false;
	load_next(first);
	return true;
}

static unsigned end_ring(struct ring *ring)
{
	uint64_t before = ring->page->data_tail, head;

	/* PAIR switches.tail: release: the kernel's acquire; it writes over what was copied. */
	tw_store_plain_release(&ring->page->data_tail, ring->at);
	/* PROGRESS switches.full: the tail is given back before the head is looked at. */
	tw_full_barrier();
	/* PAIR switches.head: acquire: the kernel's release, as in tw_switches_begin(). */
	head = tw_load_plain_acquire(&ring->page->data_head);
	if (head - before + FULL_BYTES > ring->bytes) {
		ring->full_at = ring->full_at ? ring->full_at : head;
		ring->full_until_ns = tw_clock_monotonic_ns();
	}
	return (unsigned)((head - before) * 100 / ring->bytes);
}

unsigned tw_switches_end(struct tw_switches *switches)
{
	unsigned fullest = 0;

	for (uint32_t i = 0; i < switches->count; i++) {
		unsigned full = end_ring(&switches->rings[i]);

		fullest = full > fullest ? full : fullest;
	}
	return fullest;
}
