/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked.c - members ask, the holder writes and answers, the recorder goes on with its rounds meanwhile.
 *
 * The holder answers itself: the member does not wait for a recorder that has been stopped.
 */
#include "pipeline/recorder/asked.h"

#include "pipeline/recorder/member_memory.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- in the holder ---- */

static size_t table_bytes(uint64_t count)
{
	return sizeof(struct tw_rs_held_table) + count * sizeof(struct tw_rs_held_piece);
}

/* The table, to be unmapped; NULL: it is not there, or not the one of this image. */
static struct tw_rs_held_table *read_table(int memory, const struct tw_rs_held_request *request)
{
	struct tw_rs_held_table head, *table;

	if (!tw_member_memory_read(memory, request->table, &head, sizeof head) || head.magic != TW_RS_HELD_MAGIC ||
	    head.lease != request->lease || head.count > TW_RS_HELD_PIECES_MAX)
		return NULL;
	table = tw_held_memory(table_bytes(head.count));
	if (table && !tw_member_memory_read(memory, request->table, table, table_bytes(head.count))) {
		munmap(table, table_bytes(head.count));
		return NULL;
	}
	if (table)
		table->count = head.count;
	return table;
}

static bool is_wanted(void *arg)
{
	return tw_rs_held_is_wanted(arg);
}

static void answer(struct tw_held *held, const struct tw_rs *rs, struct tw_holder_job *job)
{
	struct tw_rs_held_mapping image;
	struct tw_rs_held_table *table;
	int memory;

	job->outcome = TW_RS_HELD_DENIED;
	if (!tw_rs_held_map(rs, &job->where, &image))
		return;
	memory = tw_member_memory_open(rs, &job->where);
	table = memory >= 0 ? read_table(memory, &job->where) : NULL;
	if (table) {
		uint64_t count = table->count;

		job->outcome = tw_held_write(held, job->where.process_id, memory, table->pieces, count, is_wanted,
					     image.held, &job->number);
		munmap(table, table_bytes(count));
	}
	if (memory >= 0)
		close(memory);
	tw_rs_held_done(image.held, job->outcome, job->number);
	tw_rs_held_unmap(&image);
}

/* ---- in the recorder ---- */

static void give(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs)
{
	struct tw_holder_job job = {.run = answer, .where = asked->request};

	asked->is_out = true;
	asked->tries++;
	tw_holder_begin(holder, rs, &job);
}

/* Answers what the holder could not. */
static bool is_back(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs)
{
	struct tw_holder_job job = {.outcome = TW_RS_HELD_ENDED};
	enum tw_holder_state state = tw_holder_look(holder, &job);
	struct tw_rs_held *held = tw_rs_held_of(rs, &asked->request);

	if (state == TW_HOLDER_BUSY)
		return false;
	if (state == TW_HOLDER_ENDED && held && tw_rs_held_is_wanted(held) && asked->tries < TW_HOLDER_TRIES) {
		give(asked, holder, rs);
		return false;
	}
	if (held)
		tw_rs_held_done(held, job.outcome, job.number);
	asked->is_out = false;
	return true;
}

void tw_asked_poll(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs)
{
	uint32_t count;

	if (asked->is_out && !is_back(asked, holder, rs))
		return;
	asked->has_more |= tw_rs_held_poll(rs);
	if (!asked->has_more)
		return;
	tw_rs_scan(rs);
	count = tw_rs_image_count(rs);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = (asked->next_slot + i) % count;

		if (!tw_rs_held_take(rs, slot, &asked->request))
			continue;
		asked->next_slot = slot + 1;
		asked->tries = 0;
		give(asked, holder, rs);
		return;
	}
	asked->has_more = false;
}

void tw_asked_finish(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs)
{
	while (asked->is_out && !is_back(asked, holder, rs))
		tw_holder_wait(holder);
}
