/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - sleeps between rounds. */
#include "pipeline/recorder/pace.h"

#include <time.h>

#define MS UINT64_C(1000000)
/* The first sleep of a recorder. */
#define FIRST_NS UINT64_C(20000)
/*
 * The limits of a sleep while many events come. Longer sleeps would not make larger blocks; there is no shorter sleep.
 * Between the limits, a thread that only writes events fills at most a quarter of its ring during a sleep.
 */
#define BUSY_MIN_NS UINT64_C(20000)
#define BUSY_MAX_NS UINT64_C(500000)
/* The limit of what one thread writes. */
#define FAST_BYTES_PER_NS 1
/*
 * The longest sleep while a thread lives that cannot wake the recorder: a fast thread fills a ring in about this
 * time.
 */
#define LIVE_NS MS
#define IDLE_NS (5 * MS)
/* The longest sleep while few events come: the delay until they are on disk. */
#define QUIET_NS (250 * MS)

void tw_pace_init(struct tw_pace *pace)
{
	pace->sleep_ns = FIRST_NS;
	pace->busy_ns = 0;
}

void tw_pace_note_busy(struct tw_pace *pace, uint64_t ring_bytes)
{
	uint64_t pause_ns = ring_bytes / 4 / FAST_BYTES_PER_NS;

	if (pause_ns < BUSY_MIN_NS)
		pause_ns = BUSY_MIN_NS;
	if (pause_ns > BUSY_MAX_NS)
		pause_ns = BUSY_MAX_NS;
	if (!pace->busy_ns || pause_ns < pace->busy_ns)
		pace->busy_ns = pause_ns;
}

uint64_t tw_pace_longest_ns(const struct tw_writer *writer, bool has_failed, uint64_t now_ns)
{
	const struct tw_store *store = &writer->store;
	uint64_t longest = !store->stats.images_alive ? IDLE_NS : QUIET_NS;

	/* The reader of a stream waits for its marks. */
	if (store->is_stream || tw_rs_is_unwakeable(&writer->rs))
		return LIVE_NS;
	if (has_failed)
		return TW_PACE_RETRY_NS;
	for (uint32_t i = 0; store->durable_ns && i < tw_rs_image_count(&writer->rs); i++) {
		uint64_t due_ns = tw_store_sync_due(store, &writer->images[i].store, now_ns);

		if (due_ns < longest)
			longest = due_ns > LIVE_NS ? due_ns : LIVE_NS;
	}
	return longest;
}

struct tw_pace_sleep tw_pace_next(struct tw_pace *pace, uint64_t longest_ns, uint64_t now_ns)
{
	struct tw_pace_sleep sleep = {0};

	if (pace->busy_ns) {
		uint64_t quarter_ns = (now_ns - pace->last_busy_ns) / 4;

		sleep.is_deaf = quarter_ns <= pace->busy_ns;
		pace->sleep_ns = sleep.is_deaf ? pace->busy_ns : quarter_ns;
		pace->last_busy_ns = now_ns;
		pace->busy_ns = 0;
	} else {
		pace->sleep_ns *= 2;
	}
	if (pace->sleep_ns > longest_ns)
		pace->sleep_ns = longest_ns;
	sleep.ns = pace->sleep_ns;
	return sleep;
}

void tw_pace_rest(struct tw_pace *pace, struct tw_rs *rs, uint64_t longest_ns, uint64_t timeout_ns)
{
	struct tw_pace_sleep sleep = tw_pace_next(pace, longest_ns, tw_clock_monotonic_ns());

	if (sleep.ns > timeout_ns)
		sleep.ns = timeout_ns;
	if (sleep.is_deaf && sleep.ns) {
		struct timespec pause = {0, (long)sleep.ns};

		nanosleep(&pause, NULL);
	} else if (sleep.ns) {
		tw_rs_wait(rs, sleep.ns);
	}
}
