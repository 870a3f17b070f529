/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defs.c - the definitions log of an image: appended as a whole, published once, checked when read.
 *
 *	| head: checksum, type, payload_bytes | payload | padding to 8 | next ...
 */
#include "ringbuf/ringset.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/sys.h"

#include <string.h>

static size_t record_bytes(size_t payload_bytes)
{
	return (sizeof(struct tw_rs_defs_head) + payload_bytes + 7) & ~(size_t)7;
}

static uint64_t checksum_of(const struct tw_rs_defs_head *head, const void *payload)
{
	return tw_checksum64_two((const uint8_t *)head + sizeof head->checksum, sizeof *head - sizeof head->checksum,
				 payload, head->payload_bytes);
}

/*
 * Allocates the pages that this record is the first to touch: a store into a hole on a full tmpfs would be a SIGBUS.
 * The page in which the record starts is already present unless the record starts at its beginning, so most records
 * need no system call.
 */
static int make_present(uint8_t *from, size_t bytes)
{
	uintptr_t first = ((uintptr_t)from + TW_PAGE_BYTES - 1) & ~(uintptr_t)(TW_PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)from + bytes + TW_PAGE_BYTES - 1) & ~(uintptr_t)(TW_PAGE_BYTES - 1);

	if (first >= end)
		return 0;
	return tw_sys_populate_write((void *)first, end - first) < 0 ? TW_ENOSPC : 0;
}

/* Maps the log up to the record's end, in steps; the mapping may move. */
static bool map_log(struct tw_rs *rs, uint64_t end)
{
	struct tw_rs_own *own = &rs->own;
	uint64_t bytes = (end + TW_RS_DEFS_STEP_BYTES - 1) / TW_RS_DEFS_STEP_BYTES * TW_RS_DEFS_STEP_BYTES;
	uint64_t signals;
	uint8_t *at;

	if (end <= own->defs_mapped_bytes)
		return true;
	if (bytes > TW_RS_DEFS_BYTES)
		bytes = TW_RS_DEFS_BYTES;
	/*
	 * A child that another thread forks now cannot know what is mapped here; blocked signals keep this thread from
	 * forking.
	 */
	tw_sys_block_signals(&signals);
	own->is_moving = true;
	tw_compiler_barrier();
	at = tw_sys_map_more(own->defs, own->defs_mapped_bytes, bytes);
	if (at) {
		tw_sys_keep_from_children(at, bytes);
		own->defs = at;
		own->defs_mapped_bytes = bytes;
	}
	tw_compiler_barrier();
	own->is_moving = false;
	tw_sys_restore_signals(&signals);
	return at != NULL;
}

int tw_rs_defs_append(struct tw_rs *rs, uint32_t type, const void *payload, size_t bytes)
{
	struct tw_rs_image_head *image = rs->own.head;
	struct tw_rs_defs_head head = {0, type, (uint32_t)bytes};
	/* RELAXED rs.defs: only this thread writes the position. */
	uint64_t at = tw_load_relaxed(&image->defs_committed_bytes);
	size_t whole = record_bytes(bytes);
	uint8_t *to;

	/* A process without an image has no reader for its definitions. */
	if (!rs->own.process_id)
		return 0;
	if (at > TW_RS_DEFS_BYTES || whole > TW_RS_DEFS_BYTES - at || !map_log(rs, at + whole) ||
	    make_present(rs->own.defs + at, whole) < 0) {
		/* RELAXED rs.refused: a count for the summary. */
		tw_fetch_add_relaxed(&image->defs_refused, 1);
		return TW_ENOSPC;
	}
	to = rs->own.defs + at;
	head.checksum = checksum_of(&head, payload);
	memset(to + whole - 8, 0, 8);
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, payload, bytes);
	/*
	 * PAIR rs.defs: release; acquire in tw_rs_defs_next().  The record is complete before the position includes it.
	 */
	tw_store_release(&image->defs_committed_bytes, at + whole);
	return 0;
}

int tw_rs_defs_next(const struct tw_rs *rs, uint32_t slot, uint64_t *at_bytes, uint32_t *type, const void **payload,
		    size_t *bytes)
{
	const uint8_t *log = rs->images[slot].memory + TW_RS_HEAD_BYTES;
	/* PAIR rs.defs: acquire; release in tw_rs_defs_append(). */
	uint64_t end = tw_load_acquire(&tw_rs_head(rs, slot)->defs_committed_bytes);
	uint64_t at = *at_bytes;
	struct tw_rs_defs_head head;

	if (end > TW_RS_DEFS_BYTES)
		end = TW_RS_DEFS_BYTES;
	if (at >= end)
		return 0;
	*at_bytes = end;
	if (end - at < sizeof head)
		return TW_EFORMAT;
	memcpy(&head, log + at, sizeof head);
	if (head.payload_bytes > end - at - sizeof head || record_bytes(head.payload_bytes) > end - at)
		return TW_EFORMAT;
	if (head.checksum != checksum_of(&head, log + at + sizeof head))
		return TW_EFORMAT;
	*type = head.type;
	*payload = log + at + sizeof head;
	*bytes = head.payload_bytes;
	*at_bytes = at + record_bytes(head.payload_bytes);
	return 1;
}
