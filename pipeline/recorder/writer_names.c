/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_names.c - the last names of threads, and the last program of a process.
 *
 * Threads are named late, and by other threads: the rings have the names that threads give themselves, and names of
 * living threads are read in /proc at intervals, short ones at first.
 */
#include "base/clock.h"
#include "base/sys.h"
#include "pipeline/recorder/writer.h"

#define NAMES_PAUSE_FIRST_NS UINT64_C(10000000)
#define NAMES_PAUSE_NS	     UINT64_C(250000000)

void tw_writer_read_names(struct tw_writer *writer, uint32_t count)
{
	uint64_t now_ns = tw_clock_monotonic_ns();

	if (writer->is_dead || now_ns < writer->names_ns)
		return;
	writer->names_pause_ns = writer->names_pause_ns ? NAMES_PAUSE_NS : NAMES_PAUSE_FIRST_NS;
	writer->names_ns = now_ns + writer->names_pause_ns;
	for (uint32_t i = 0; i < count; i++) {
		struct tw_writer_ring *ring = &writer->rings[i];
		uint32_t image = tw_rs_ring_image(&writer->rs, i);

		if (ring->is_seen && image < TW_RS_IMAGES_MAX && tw_rs_ring_state(&writer->rs, i) == TW_RB_LIVE)
			tw_sys_name_of_thread(writer->images[image].store.process_id, ring->thread_id,
					      ring->thread_name);
	}
}

void tw_writer_read_name(struct tw_writer_ring *ring, const struct tw_rb_shared *shared)
{
	char name[16];

	memcpy(name, shared->thread_name, sizeof name);
	if (memcmp(name, ring->ring_name, sizeof name) == 0)
		return;
	memcpy(ring->ring_name, name, sizeof name);
	memcpy(ring->thread_name, name, sizeof name);
}

bool tw_writer_is_last_of(const struct tw_writer *writer, uint32_t index, int32_t process_id)
{
	const struct tw_store_image *image = &writer->images[index].store;

	if (!process_id || image->process_id != process_id)
		return false;
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		const struct tw_store_image *other = &writer->images[i].store;

		if (i != index && other->process_id == process_id && other->start_ticks > image->start_ticks)
			return false;
	}
	return true;
}
