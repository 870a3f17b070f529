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

/* Closes the gaps left by pads, one at the end of each chunk; returns the remaining bytes, or an error. */
static int64_t remove_pads(uint8_t *out, uint64_t bytes)
{
	uint64_t from = 0, to = 0, begin = 0; /* what lies before begin is moved */

	while (from < bytes) {
		uint64_t head;
		uint32_t length;

		memcpy(&head, out + from + offsetof(struct tw_rb_record, head), sizeof head);
		length = TW_RB_HEAD_BYTES(head);
		if (length < TW_RB_ALIGN_BYTES || length % TW_RB_ALIGN_BYTES || length > bytes - from)
			return TW_EFORMAT;
		if (TW_RB_HEAD_KIND(head) == TW_RB_KIND_PAD) {
			memmove(out + to, out + begin, from - begin);
			to += from - begin;
			begin = from + length;
		}
		from += length;
	}
	memmove(out + to, out + begin, from - begin);
	return (int64_t)(to + from - begin);
}

/* The producer moves the position once in a chunk; one that moves it all the time is not followed. */
#define OVERWRITTEN_TRIES 1000

uint64_t tw_rb_overwritten(const struct tw_rb_shared *shared, uint64_t *oldest_pos)
{
	uint64_t again, lost;

	/* PAIR rb.oldest: acquire; release in give_up(), which announces the loss first. */
	*oldest_pos = tw_load_acquire(&shared->oldest_pos);
	for (unsigned tries = 0; tries < OVERWRITTEN_TRIES; tries++, *oldest_pos = again) {
		/* RELAXED rb.giving_up: exact if the position is the same afterwards. */
		uint64_t announced = tw_load_relaxed(&shared->giving_up_lost);
		/* RELAXED rb.giving_up: as above. */
		uint64_t announced_pos = tw_load_relaxed(&shared->giving_up_pos);

		/* RELAXED rb.lost: as above; for a chunk that was just given up, the count is only in its announcement. */
		lost = tw_load_relaxed(&shared->lost[TW_RB_LOST_FULL]);
		if (announced_pos && announced_pos <= *oldest_pos && announced > lost)
			lost = announced;
		/* PAIR rb.oldest: acquire; as above. */
		again = tw_load_acquire(&shared->oldest_pos);
		if (again == *oldest_pos)
			break;
	}
	return lost;
}

int64_t tw_rb_snapshot(const struct tw_rb_shared *shared, uint64_t data_bytes, uint8_t *out,
		       struct tw_rb_stretch *copied)
{
	uint64_t end = tw_rb_committed(shared), oldest, oldest_now, overwritten;

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
	/* Anything given up during the copy is discarded: all of it, if the producer went once around. */
	overwritten = tw_rb_overwritten(shared, &oldest_now);
	if (oldest_now < oldest || oldest_now % TW_RB_ALIGN_BYTES)
		return TW_EFORMAT;
	if (oldest_now > end)
		end = oldest_now;
	else if (oldest_now != oldest)
		memmove(out, out + (oldest_now - oldest), end - oldest_now);
	*copied = (struct tw_rb_stretch){oldest_now, end, overwritten};
	return remove_pads(out, end - oldest_now);
}
