/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume.c - the consumer's half, also for the memory of a dead process.
 *
 * Trusts nothing in the data, because a traced program can write over it: every length is checked before use, and every
 * walk ends after data_bytes / TW_RB_ALIGN_BYTES steps.
 */
#include "ringbuf/ringbuf.h"
#include "base/error.h"
#include "base/sys.h"

#include <string.h>

/* The length of the record at `data`, or 0 if no producer writes such a record into that much space. */
static uint32_t record_bytes(const uint8_t *data, uint64_t capacity)
{
	uint64_t head;
	uint32_t bytes;

	memcpy(&head, data + offsetof(struct tw_rb_record, head), sizeof head);
	bytes = TW_RB_HEAD_BYTES(head);
	if (bytes < TW_RB_ALIGN_BYTES || bytes % TW_RB_ALIGN_BYTES || bytes > capacity)
		return 0;
	if (TW_RB_HEAD_KIND(head) == TW_RB_KIND_LOSS && bytes != sizeof(struct tw_rb_loss_record))
		return 0;
	return bytes;
}

static bool is_pad(const uint8_t *data)
{
	uint64_t head;

	memcpy(&head, data + offsetof(struct tw_rb_record, head), sizeof head);
	return TW_RB_HEAD_KIND(head) == TW_RB_KIND_PAD;
}

/* True if [from, to) can be a stretch of this ring. */
static bool is_stretch(uint64_t data_bytes, uint64_t from_pos, uint64_t to_pos)
{
	return to_pos - from_pos <= data_bytes && (from_pos | to_pos) % TW_RB_ALIGN_BYTES == 0;
}

/* Measures the records at `data`, up to a pad, the end, or max_bytes. */
static int64_t whole_records(const uint8_t *data, uint64_t from_pos, uint64_t whole, size_t max_bytes,
			     uint64_t *end_pos)
{
	uint64_t bytes = 0;

	while (bytes < whole && bytes < max_bytes) {
		uint32_t length = record_bytes(data + bytes, whole - bytes);

		if (!length)
			return TW_EFORMAT;
		if (is_pad(data + bytes)) {
			*end_pos = from_pos + bytes + length;
			return (int64_t)bytes;
		}
		if (bytes + length > max_bytes)
			break;
		bytes += length;
	}
	*end_pos = from_pos + bytes;
	return (int64_t)bytes;
}

int64_t tw_rb_peek(const struct tw_rb_shared *shared, uint64_t from_pos, size_t max_bytes, const uint8_t **out,
		   uint64_t *end_pos)
{
	uint64_t committed = tw_rb_committed(shared);
	uint64_t mask = shared->data_bytes - 1;
	uint64_t start = from_pos & mask;
	const uint8_t *data = tw_rb_data(shared) + start;
	uint64_t whole;

	*out = data;
	*end_pos = committed;
	if (!is_stretch(shared->data_bytes, from_pos, committed))
		return TW_EFORMAT;
	whole = committed - from_pos;
	if (whole > shared->data_bytes - start)
		whole = shared->data_bytes - start;
	return whole_records(data, from_pos, whole, max_bytes, end_pos);
}

int64_t tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
		   uint8_t *out, uint64_t *end_pos)
{
	uint64_t committed = tw_rb_committed(shared);
	uint64_t start = from_pos & (data_bytes - 1), whole;

	*end_pos = committed;
	if (!is_stretch(data_bytes, from_pos, committed))
		return TW_EFORMAT;
	whole = committed - from_pos;
	if (whole > data_bytes - start)
		whole = data_bytes - start;
	memcpy(out, tw_rb_data(shared) + start, whole < max_bytes ? whole : max_bytes);
	return whole_records(out, from_pos, whole, max_bytes, end_pos);
}

void tw_rb_consume(struct tw_rb_shared *shared, uint64_t pos)
{
	/*
	 * PAIR rb.consume: release (as part of seq_cst); acquire in find_space().
	 * Everything before pos has been read.  Without it the producer could overwrite records that are still being
	 * read.
	 * PAIR rb.waiting: seq_cst; has_space() reads the tail after it has set `waiting`.
	 */
	tw_store_seq_cst(&shared->tail_pos, pos);
	/* PAIR rb.waiting: seq_cst; as above. */
	if (tw_load_seq_cst(&shared->waiting)) {
		/* PAIR rb.waiting: seq_cst; as above. */
		tw_exchange_seq_cst(&shared->waiting, 0);
		tw_sys_futex_wake(&shared->waiting, 1);
	}
}

/* The losses of one cause. */
static uint64_t lost_so_far(const struct tw_rb_shared *shared, int cause)
{
	uint64_t oldest_pos;

	if (cause == TW_RB_LOST_FULL && shared->policy == TW_RB_OVERWRITE)
		return tw_rb_overwritten(shared, &oldest_pos);
	/* RELAXED rb.lost: exact once the ring has ENDED (PAIR rs.state); a lower bound before. */
	return tw_load_relaxed(&shared->lost[cause]);
}

uint64_t tw_rb_waiting_ticks(const struct tw_rb_shared *shared)
{
	/* PAIR rb.waiting_ticks: acquire; release in tw_rb_tell_waiting().  The position is that of this wait or of a later one. */
	uint64_t ticks = tw_load_acquire(&shared->waiting_ticks);
	uint64_t committed = tw_rb_committed(shared);

	/*
	 * RELAXED rb.waiting_ticks: after the end of what is committed: a position that is stored before a commit is seen with it.
	 * A later wait's position with this time makes the answer earlier than it need be.
	 */
	return ticks && committed <= tw_load_relaxed(&shared->waiting_pos) ? ticks : UINT64_MAX;
}

bool tw_rb_unreported_loss(const struct tw_rb_shared *shared, const uint64_t told[TW_RB_CAUSES],
			   struct tw_rb_loss_record *out)
{
	bool any = false;

	memset(out, 0, sizeof *out);
	out->record.head = TW_RB_HEAD(TW_RB_KIND_LOSS, 0, sizeof *out, 0);
	/* RELAXED rb.lost: exact once the ring has ENDED (PAIR rs.state); a lower bound before. */
	out->record.ticks = tw_load_relaxed(&shared->lost_last_ticks);
	/* RELAXED rb.lost: as above. */
	out->first_ticks = tw_load_relaxed(&shared->lost_first_ticks);
	if (!out->first_ticks)
		out->first_ticks = out->record.ticks;
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		uint64_t lost = lost_so_far(shared, cause);

		if (lost > told[cause] && lost - told[cause] <= TW_RB_LOST_MAX) {
			out->lost[cause] = lost - told[cause];
			any = true;
		}
	}
	return any;
}

bool tw_rb_is_loss_forged(const struct tw_rb_shared *shared, const uint64_t told[TW_RB_CAUSES])
{
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		uint64_t lost = lost_so_far(shared, cause);

		if (lost > told[cause] && lost - told[cause] > TW_RB_LOST_MAX)
			return true;
	}
	return false;
}
