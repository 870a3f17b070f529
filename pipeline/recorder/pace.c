/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - sleeps between rounds. */
#include "pipeline/recorder/pace.h"

#include <time.h>

#define MS	UINT64_C(1000000)
#define BUSY_NS UINT64_C(20000)
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
	pace->sleep_ns = BUSY_NS;
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

void tw_pace_rest(struct tw_pace *pace, struct tw_rs *rs, bool is_busy, uint64_t longest_ns, uint64_t timeout_ns)
{
	uint64_t sleep_ns;

	pace->sleep_ns = is_busy ? BUSY_NS : pace->sleep_ns * 2;
	if (pace->sleep_ns > longest_ns)
		pace->sleep_ns = longest_ns;
	sleep_ns = pace->sleep_ns < timeout_ns ? pace->sleep_ns : timeout_ns;
	if (is_busy && sleep_ns) {
		struct timespec pause = {0, (long)sleep_ns};

		nanosleep(&pause, NULL);
	} else if (sleep_ns) {
		tw_rs_wait(rs, sleep_ns);
	}
}
