/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c - takes back what was written into the code of members that live on when the recording ends (docs/decisions/0033).
 *
 * In the holder, a member a job:
 *
 *	1 open the member's memory; read its list of what was written (struct tw_rs_written)
 *	2 stop all threads, as held.c does
 *	3 has the list changed since, or is it being changed?  Let all go, and read it again
 *	4 write what was there before, where memory still holds what was written; let all go
 *
 * The member says in its list what its own sessions still need.  It writes nothing for the recording any more: the set is
 * closed, and while it is in the middle of writing, its list says so.
 */
#include "pipeline/recorder/restore.h"

#include "base/clock.h"
#include "base/sys.h"
#include "pipeline/recorder/member_memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAP_NS UINT64_C(1000000)
/* The most blocks that a member may claim. */
#define BLOCKS_MAX ((UINT32_C(1) << 20) / TW_RS_WRITTEN_BLOCK_PIECES)

struct list {
	struct tw_rs_held_piece *pieces;
	size_t count, capacity;
};

struct member {
	const struct tw_rs_held_request *where;
	uint64_t deadline_ns;
	int memory;
	uint64_t version;
	struct list list;
};

/* ---- the list ---- */

static void free_list(struct list *list)
{
	if (list->pieces)
		munmap(list->pieces, list->capacity * sizeof *list->pieces);
	*list = (struct list){0};
}

static bool has_room(struct list *list, size_t count)
{
	if (list->capacity >= count)
		return true;
	free_list(list);
	list->pieces = tw_held_memory(count * sizeof *list->pieces);
	list->capacity = list->pieces ? count : 0;
	return list->pieces != NULL;
}

static bool add_block(struct member *member, uint64_t address)
{
	struct tw_rs_held_piece block[TW_RS_WRITTEN_BLOCK_PIECES];
	struct list *list = &member->list;

	if (!tw_member_memory_read(member->memory, address, block, sizeof block))
		return false;
	for (unsigned i = 0; i < TW_RS_WRITTEN_BLOCK_PIECES; i++) {
		struct tw_rs_held_piece *piece = &block[i];
		uint8_t bytes[TW_RS_HELD_BYTES_MAX];

		if (!piece->count || piece->count > TW_RS_HELD_BYTES_MAX || piece->is_kept ||
		    !memcmp(piece->before, piece->after, piece->count))
			continue;
		memcpy(bytes, piece->before, sizeof bytes);
		memcpy(piece->before, piece->after, sizeof bytes);
		memcpy(piece->after, bytes, sizeof bytes);
		list->pieces[list->count++] = *piece;
	}
	return true;
}

/* False: the list is not there. */
static bool read_version(const struct member *member, uint64_t *version)
{
	struct {
		uint64_t magic, lease, version;
	} head;

	_Static_assert(offsetof(struct tw_rs_written, version) == 16, "the head of a list");
	if (!tw_member_memory_read(member->memory, member->where->table, &head, sizeof head) ||
	    head.magic != TW_RS_WRITTEN_MAGIC || head.lease != member->where->lease)
		return false;
	*version = head.version;
	return true;
}

/* False: it is being changed. */
static bool read_list(struct member *member)
{
	uint64_t blocks[TW_RS_WRITTEN_BLOCKS_MAX], version;
	unsigned block_count = 0;

	member->list.count = 0;
	if (!read_version(member, &member->version) || member->version % 2 ||
	    !tw_member_memory_read(member->memory, member->where->table + offsetof(struct tw_rs_written, blocks),
				   blocks, sizeof blocks))
		return false;
	for (unsigned i = 0; i < TW_RS_WRITTEN_BLOCKS_MAX && block_count < BLOCKS_MAX; i++)
		if (blocks[i])
			blocks[block_count++] = blocks[i];
	if (!has_room(&member->list, block_count * TW_RS_WRITTEN_BLOCK_PIECES))
		return false;
	for (unsigned i = 0; i < block_count; i++)
		if (!add_block(member, blocks[i]))
			return false;
	return read_version(member, &version) && version == member->version;
}

/* Asked while all threads are stopped. */
static bool is_unchanged(void *arg)
{
	const struct member *member = arg;
	uint64_t version;

	return tw_clock_monotonic_ns() < member->deadline_ns && read_version(member, &version) &&
	       version == member->version;
}

/* Pieces that still hold what was written.  Each page is read once, as pieces that were written are in order of their addresses. */
static size_t count_left(const struct member *member)
{
	size_t left = 0;
	uint8_t page[TW_PAGE_BYTES];
	uint64_t page_at = UINT64_MAX;
	bool is_there = false;

	for (size_t i = 0; i < member->list.count; i++) {
		const struct tw_rs_held_piece *piece = &member->list.pieces[i];
		uint64_t within = piece->at % TW_PAGE_BYTES;

		if (piece->at - within != page_at) {
			page_at = piece->at - within;
			is_there = tw_member_memory_read(member->memory, page_at, page, sizeof page);
		}
		left += is_there && within + piece->count <= sizeof page &&
			!memcmp(page + within, piece->before, piece->count);
	}
	return left;
}

/* ---- a member ---- */

static enum tw_rs_held_outcome restore_member(struct tw_held *held, struct member *member, uint32_t *number)
{
	enum tw_rs_held_outcome outcome = TW_RS_HELD_UNANSWERED;

	/* Not answered: the list has changed, or is being changed. */
	while (outcome == TW_RS_HELD_UNANSWERED) {
		bool is_read = read_list(member);

		if (tw_clock_monotonic_ns() >= member->deadline_ns)
			break;
		if (is_read)
			outcome = tw_held_write(held, member->where->process_id, member->memory, member->list.pieces,
						member->list.count, is_unchanged, member, number);
		/* It may have ended, or be executing another program: then nothing is left of what was written. */
		else if (!read_version(member, &member->version))
			break;
		if (outcome == TW_RS_HELD_UNANSWERED)
			tw_sys_sleep(NAP_NS);
	}
	return outcome;
}

/* In the holder; in the recorder too, if it only counts. */
static void restore(struct tw_held *held, const struct tw_rs *rs, struct tw_holder_job *job)
{
	struct member member = {.where = &job->where,
				.deadline_ns = job->deadline_ns,
				.memory = tw_member_memory_open(rs, &job->where)};

	job->outcome = TW_RS_HELD_DENIED;
	job->left = 0;
	if (member.memory < 0)
		return;
	if (held)
		job->outcome = restore_member(held, &member, &job->number);
	else
		read_list(&member);
	job->left = count_left(&member);
	close(member.memory);
	free_list(&member.list);
}

/* ---- in the recorder ---- */

static void restore_one(struct tw_holder *holder, const struct tw_rs *rs, const struct tw_rs_held_request *where,
			uint64_t deadline_ns, struct tw_restore_failure *out)
{
	struct tw_holder_job job = {.run = restore, .where = *where, .deadline_ns = deadline_ns};
	enum tw_holder_state state = TW_HOLDER_ENDED;
	int memory = tw_member_memory_open(rs, where);
	bool is_hidden = memory == -EACCES || memory == -EPERM;

	/* It has ended. */
	if (memory < 0 && !is_hidden)
		return;
	if (memory >= 0)
		close(memory);
	for (unsigned tries = 0; state == TW_HOLDER_ENDED && tries < TW_HOLDER_TRIES; tries++) {
		tw_holder_begin(holder, rs, &job);
		while ((state = tw_holder_look(holder, &job)) == TW_HOLDER_BUSY)
			tw_holder_wait(holder);
	}
	if (state == TW_HOLDER_ENDED) {
		restore(NULL, rs, &job);
		job.outcome = TW_RS_HELD_ENDED;
	}
	if (!job.left && !is_hidden)
		return;
	out->processes++;
	out->pieces += job.left;
	out->outcome = job.outcome;
	out->number = job.number;
}

void tw_restore_all(struct tw_holder *holder, struct tw_rs *rs, struct tw_restore_failure *out)
{
	uint64_t deadline_ns = tw_clock_monotonic_ns() + TW_RESTORE_NS;
	struct tw_rs_held_request where;

	*out = (struct tw_restore_failure){0};
	tw_rs_scan(rs);
	for (uint32_t i = 0; i < tw_rs_image_count(rs); i++)
		if (tw_rs_written_find(rs, i, &where))
			restore_one(holder, rs, &where, deadline_ns, out);
}
