/* SPDX-License-Identifier: Apache-2.0 */
/* run_delay.c - samples the run delay of threads: run_delay.h. */
#include "pipeline/recorder/run_delay.h"
#include "base/sys.h"
#include "term/etf.h"
#include "term/term.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
/* The pause between samples: half of the limit, but in these bounds. */
#define PAUSE_LEAST_NS (5 * MS)
#define PAUSE_MOST_NS  (100 * MS)
/* All samples together take at most this part of one processor. */
#define SHARE 100

/* A record holds the event's name, its list, and the words around them. */
#define TERMS_BYTES 256
#define INFO_BYTES  1024

/* False: the thread is gone, or the kernel does not count. */
static bool read_counts(int32_t process_id, int32_t thread_id, uint64_t *delay_ns, uint64_t *turns)
{
	unsigned long long run, delay, count;
	char text[96];

	if (!tw_sys_read_of_thread(process_id, thread_id, "schedstat", text, sizeof text) ||
	    sscanf(text, "%llu %llu %llu", &run, &delay, &count) != 3)
		return false;
	*delay_ns = delay;
	*turns = count;
	return true;
}

/* ---- the record ---- */

static struct tw_term pair(struct tw_arena *arena, const char *key, uint64_t value)
{
	return tw_term_tuple(arena, (struct tw_term[]){tw_term_atom_z(key), tw_term_unsigned(arena, value)}, 2);
}

/* long_schedule, [{timeout,Ms},{run_delay,Ns},{waits,N},{sampled,Ns}]: in so many ns before the record's time. */
static uint32_t make_record(uint64_t *words, uint64_t delay_ns, uint64_t waits, uint64_t window_ns)
{
	struct tw_rb_record *record = (struct tw_rb_record *)words;
	uint8_t *at = (uint8_t *)(words + 3), *end = at + TERMS_BYTES;
	size_t bytes;
	char buffer[INFO_BYTES];
	struct tw_arena arena;
	struct tw_term pairs[4];
	uint32_t count, whole;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	pairs[0] = pair(&arena, "timeout", delay_ns / MS);
	pairs[1] = pair(&arena, "run_delay", delay_ns);
	pairs[2] = pair(&arena, "waits", waits);
	pairs[3] = pair(&arena, "sampled", window_ns);
	memset(at, 0, TERMS_BYTES + 8);
	bytes = tw_etf_encode_fixed(tw_term_atom_z("long_schedule"), at, TERMS_BYTES);
	bytes += tw_etf_encode_fixed(tw_term_list(&arena, pairs, 4, tw_term_nil()), at + bytes,
				     (size_t)(end - at) - bytes);
	words[2] = 2 | (uint64_t)bytes << 32;
	count = (uint32_t)(1 + (bytes + 7) / 8);
	whole = (uint32_t)sizeof *record + (count + 1) / 2 * 16;
	record->ticks = tw_clock_ticks();
	record->head =
		TW_RB_HEAD(TW_EVENT_MONITOR, TW_EVENT_FLAG_TERMS | (count % 2 ? TW_EVENT_FLAG_HALF : 0), whole, 0);
	return whole;
}

/* Returns 1, 0, or the write error. */
static int tell(struct tw_writer *writer, uint32_t index, uint64_t delay_ns, uint64_t waits, uint64_t window_ns)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t words[3 + (TERMS_BYTES + 16) / 8];
	struct tw_block_header header;
	int stored = tw_writer_drain_ring(writer, index, 1);
	uint32_t bytes;

	/* Another process' record in between: the thread runs processes. */
	if (stored < 0 || ring->at.tracee_id != ring->own_tracee_id)
		return stored;
	bytes = make_record(words, delay_ns, waits, window_ns);
	tw_writer_start_header(ring, &header);
	header.first_pos = header.end_pos = ring->at.pos;
	return tw_writer_store_records(writer, index, &header, words, bytes);
}

/* ---- samples ---- */

static void sample(struct tw_writer *writer, uint32_t index, uint64_t limit_ns, uint64_t now_ns)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	struct tw_writer_run_delay before = ring->run_delay, now = {.sampled_ns = now_ns};
	uint32_t image = tw_rs_ring_image(&writer->rs, index);

	if (!read_counts(writer->images[image].store.process_id, ring->thread_id, &now.delay_ns, &now.turns))
		return;
	if (before.sampled_ns && now.delay_ns > before.delay_ns && now.delay_ns - before.delay_ns >= limit_ns &&
	    tell(writer, index, now.delay_ns - before.delay_ns, now.turns - before.turns, now_ns - before.sampled_ns) <
		    0)
		return;
	ring->run_delay = now;
}

static bool is_sampled(const struct tw_writer *writer, uint32_t index)
{
	const struct tw_writer_ring *ring = &writer->rings[index];
	uint32_t image = tw_rs_ring_image(&writer->rs, index);

	return ring->is_seen && ring->own_tracee_id && image < TW_RS_IMAGES_MAX &&
	       tw_rs_ring_state(&writer->rs, index) == TW_RB_LIVE &&
	       tw_rs_image_state(&writer->rs, image) == TW_RS_IMAGE_LIVE && tw_writer_knows_image(writer, image);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec time = {0, 0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void tw_run_delay_sample(struct tw_writer *writer, struct tw_run_delay *run_delay, uint64_t now_ns)
{
	uint64_t before, pause_ns = run_delay->limit_ns / 2, last_ns = run_delay->cost_ns, cost_ns;

	if (!run_delay->limit_ns || now_ns < run_delay->due_ns)
		return;
	before = own_cpu_ns();
	for (uint32_t i = 0; i < writer->rs.ring_count; i++)
		if (is_sampled(writer, i))
			sample(writer, i, run_delay->limit_ns, tw_clock_monotonic_ns());
	run_delay->cost_ns = own_cpu_ns() - before;
	cost_ns = SHARE * (last_ns && last_ns < run_delay->cost_ns ? last_ns : run_delay->cost_ns);
	if (pause_ns < PAUSE_LEAST_NS)
		pause_ns = PAUSE_LEAST_NS;
	else if (pause_ns > PAUSE_MOST_NS)
		pause_ns = PAUSE_MOST_NS;
	run_delay->due_ns = now_ns + (pause_ns > cost_ns ? pause_ns : cost_ns);
}

uint64_t tw_run_delay_rest_ns(const struct tw_run_delay *run_delay, uint64_t now_ns, uint64_t longest_ns)
{
	uint64_t left = run_delay->due_ns > now_ns ? run_delay->due_ns - now_ns : 0;

	return run_delay->limit_ns && left < longest_ns ? left : longest_ns;
}
