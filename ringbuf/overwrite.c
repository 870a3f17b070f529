/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overwrite.c - a snapshot of an overwriting ring, taken while its producer runs.
 *
 * Works like a sequence lock: copy first, then check which part of the copy was given up meanwhile.  The producer gives
 * up whole chunks (oldest_pos) before it writes into them, so bytes at or after the oldest_pos read after the copy were
 * not overwritten during it.  Two fences keep that order: the producer's between oldest_pos and the bytes, and this
 * one's between the bytes and oldest_pos.
 */
#include "ringbuf/ringbuf.h"
#include "base/error.h"

#include <string.h>

#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define RACES_BY_DESIGN __attribute__((no_sanitize("thread"), noinline))
#else
#define RACES_BY_DESIGN
#endif

/* Bytes torn here lie before the oldest_pos that is read afterwards, and are discarded. */
RACES_BY_DESIGN static void copy_words(uint64_t *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		to[i] = from[i];
}

/* Copies [from, to) to out, unwrapped. */
static void copy_stretch(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, uint64_t to_pos,
			 uint8_t *out)
{
	uint64_t start = from_pos & (data_bytes - 1);
	uint64_t bytes = to_pos - from_pos;
	uint64_t first = bytes < data_bytes - start ? bytes : data_bytes - start;
	const uint8_t *data = tw_rb_data(shared);

	copy_words((uint64_t *)out, (const uint64_t *)(data + start), first / 8);
	copy_words((uint64_t *)(out + first), (const uint64_t *)data, (bytes - first) / 8);
}

/* Closes the gaps left by pads; returns the remaining bytes, or an error. */
static int64_t remove_pads(uint8_t *out, uint64_t bytes)
{
	uint64_t from = 0, to = 0;

	while (from < bytes) {
		uint64_t head;
		uint32_t length;

		memcpy(&head, out + from + offsetof(struct tw_rb_record, head), sizeof head);
		length = TW_RB_HEAD_BYTES(head);
		if (length < TW_RB_ALIGN_BYTES || length % TW_RB_ALIGN_BYTES || length > bytes - from)
			return TW_EFORMAT;
		if (TW_RB_HEAD_KIND(head) != TW_RB_KIND_PAD) {
			memmove(out + to, out + from, length);
			to += length;
		}
		from += length;
	}
	return (int64_t)to;
}

int64_t tw_rb_snapshot(const struct tw_rb_shared *shared, uint64_t data_bytes, uint8_t *out, uint64_t *first_pos,
		       uint64_t *end_pos)
{
	uint64_t end = tw_rb_committed(shared), oldest, still_there;

	/*
	 * RELAXED rb.oldest: loaded after the position above; if it is stale, the second load discards the difference.
	 */
	oldest = tw_load_relaxed(&shared->oldest_pos);
	if (end < oldest)
		end = oldest;
	if (end - oldest > data_bytes || (end | oldest) % TW_RB_ALIGN_BYTES)
		return TW_EFORMAT;
	copy_stretch(shared, data_bytes, oldest, end, out);
	/*
	 * PAIR rb.overwritten: acquire fence; release fence in give_up().
	 * Without it the position could be loaded before the last bytes are copied.
	 */
	tw_fence_acquire();
	/* RELAXED rb.overwritten: ordered by the fence; anything given up during the copy is discarded. */
	still_there = tw_load_relaxed(&shared->oldest_pos);
	if (still_there > end)
		still_there = end;
	if (still_there < oldest)
		return TW_EFORMAT;
	memmove(out, out + (still_there - oldest), end - still_there);
	*first_pos = still_there;
	*end_pos = end;
	return remove_pads(out, end - still_there);
}
