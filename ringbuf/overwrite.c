/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overwrite.c - a snapshot of an overwriting ring, taken while its producer runs.
 *
 * Works like a sequence lock, piece by piece from the oldest byte on: copy one, then check whether it was given up
 * meanwhile.  The producer gives up whole chunks (oldest_pos) before it writes into them, so bytes at or after the
 * oldest_pos read after the copy were not overwritten during it.  Two fences keep that order: the producer's between
 * oldest_pos and the bytes, and this one's between the bytes and oldest_pos.  A piece that was copied whole stays, whether
 * or not it is given up later.  The copy begins anew at a piece that was given up before, with the oldest position of then.
 *
 * Records are looked at while their piece is in the cache: lengths are checked, and pads left out.
 */
#include "ringbuf/ringbuf.h"
#include "base/error.h"

#include <string.h>

#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define RACES_BY_DESIGN __attribute__((no_sanitize("thread"), noinline))
#else
#define RACES_BY_DESIGN
#endif

/* A piece: several in the nearest cache. */
#define PIECE_BYTES (UINT64_C(16) << 10)

/* Bytes torn here lie before the oldest_pos that is read afterwards, and are discarded. */
RACES_BY_DESIGN static void copy_words(uint64_t *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		to[i] = from[i];
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

/* The copy so far. */
struct copying {
	const struct tw_rb_shared *shared;
	uint64_t data_bytes;
	uint8_t *out;
	uint64_t pos;	/* of the ring: what is copied next */
	uint64_t bytes; /* at out */
	uint64_t whole; /* of these: records that were looked at, without pads */
	uint64_t kinds;
};

static uint64_t chunk_end(const struct copying *copying)
{
	return (copying->pos | (copying->data_bytes / TW_RB_CHUNKS - 1)) + 1;
}

/* Copies the next piece, which ends in the same chunk; false: the producer has given it up. */
static bool copy_piece(struct copying *copying, uint64_t end)
{
	uint64_t start = copying->pos & (copying->data_bytes - 1), bytes = chunk_end(copying) - copying->pos;

	if (bytes > end - copying->pos)
		bytes = end - copying->pos;
	if (bytes > PIECE_BYTES)
		bytes = PIECE_BYTES;
	copy_words((uint64_t *)(copying->out + copying->bytes), (const uint64_t *)(tw_rb_data(copying->shared) + start),
		   bytes / 8);
	/*
	 * PAIR rb.overwritten: acquire fence; release fence in give_up().
	 * Without it the position could be loaded before the last bytes are copied.
	 */
	tw_fence_acquire();
	/* RELAXED rb.oldest: ordered by the fence; a stale position is that from before the bytes were given up. */
	if (tw_load_relaxed(&copying->shared->oldest_pos) > copying->pos)
		return false;
	copying->pos += bytes;
	copying->bytes += bytes;
	return true;
}

/* Looks at records that are copied by now, and leaves pads out, each of which ends its chunk; false: no producer writes such. */
static bool look(struct copying *copying)
{
	uint64_t chunk_left = (copying->data_bytes - copying->pos) & (copying->data_bytes / TW_RB_CHUNKS - 1);

	while (copying->bytes - copying->whole >= TW_RB_ALIGN_BYTES) {
		const uint8_t *record = copying->out + copying->whole;
		uint64_t head, there = copying->bytes - copying->whole;
		uint32_t length;

		memcpy(&head, record + offsetof(struct tw_rb_record, head), sizeof head);
		length = TW_RB_HEAD_BYTES(head);
		if (length < TW_RB_ALIGN_BYTES || length % TW_RB_ALIGN_BYTES || length > there + chunk_left)
			return false;
		if (TW_RB_HEAD_KIND(head) == TW_RB_KIND_PAD) {
			if (length != there + chunk_left)
				return false;
			copying->bytes = copying->whole;
			copying->pos += chunk_left;
			return true;
		}
		if (length > there)
			return true;
		copying->kinds |= TW_RB_HEAD_KIND(head) < 64 ? UINT64_C(1) << TW_RB_HEAD_KIND(head) : 0;
		copying->whole += length;
	}
	return true;
}

/* Begins with what is oldest now; nothing of what was copied before follows on it. */
static void begin_at_oldest(struct copying *copying, struct tw_rb_stretch *copied)
{
	copied->overwritten = tw_rb_overwritten(copying->shared, &copied->first_pos);
	copying->pos = copied->first_pos;
	copying->bytes = copying->whole = copying->kinds = 0;
}

int64_t tw_rb_snapshot(const struct tw_rb_shared *shared, uint64_t data_bytes, uint8_t *out,
		       struct tw_rb_stretch *copied)
{
	struct copying copying = {.shared = shared, .data_bytes = data_bytes, .out = out};
	uint64_t end = tw_rb_committed(shared), oldest;

	begin_at_oldest(&copying, copied);
	oldest = copied->first_pos;
	if (end < oldest)
		end = oldest;
	if (end - oldest > data_bytes || (end | oldest) % TW_RB_ALIGN_BYTES)
		return TW_EFORMAT;
	while (copying.pos < end) {
		if (copy_piece(&copying, end)) {
			if (!look(&copying) || copying.pos > end)
				return TW_EFORMAT;
			continue;
		}
		begin_at_oldest(&copying, copied);
		if (copied->first_pos < oldest || copied->first_pos % TW_RB_ALIGN_BYTES)
			return TW_EFORMAT;
		oldest = copied->first_pos;
	}
	if (copying.whole != copying.bytes)
		return TW_EFORMAT;
	copied->end_pos = copying.pos;
	copied->kinds = copying.kinds;
	return (int64_t)copying.bytes;
}
