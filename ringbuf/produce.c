/* SPDX-License-Identifier: Apache-2.0 */
/*
 * produce.c - the producer's slow path.
 *
 * limit_pos is where the fast path must stop: the end of the known free space, the end of the data (or of the chunk, in
 * an overwriting ring), or the end of the data that has memory, whichever comes first.  A refusal sets it to 0, so that
 * every further record takes the slow path until the loss has been reported.
 */
#include "ringbuf/ringbuf.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"

#include <string.h>

void tw_rb_shared_init(struct tw_rb_shared *shared, uint32_t ring_index, uint64_t data_bytes)
{
	TW_ASSERT(data_bytes >= TW_RB_BYTES_MIN && data_bytes <= TW_RB_BYTES_MAX);
	TW_ASSERT((data_bytes & (data_bytes - 1)) == 0);
	shared->magic = TW_RB_MAGIC;
	shared->data_bytes = data_bytes;
	shared->ring_index = ring_index;
}

/* The end of the data, or of the chunk, that contains pos. */
static uint64_t piece_end(const struct tw_rb_producer *producer, uint64_t pos)
{
	uint64_t mask = producer->mask;

	if (producer->policy == TW_RB_OVERWRITE)
		mask = (mask + 1) / TW_RB_CHUNKS - 1;
	return (pos | mask) + 1;
}

static uint64_t wake_pos(const struct tw_rb_producer *producer)
{
	return producer->cached_tail_pos + (producer->mask + 1) / 4;
}

/* An owner without work sleeps long.  One wake suffices: it scans every ring before it sleeps again. */
static void wake_owner(struct tw_rb_producer *producer, uint32_t bytes)
{
	if (!producer->owner_wake || producer->pos + bytes <= wake_pos(producer))
		return;
	/* PAIR rb.consume: acquire; as in find_space(). */
	producer->cached_tail_pos = tw_load_acquire(&producer->shared->tail_pos);
	/* RELAXED rs.wake: a word already raised needs no wake; the addition below orders. */
	if (producer->pos + bytes <= wake_pos(producer) || tw_load_relaxed(producer->owner_wake))
		return;
	if (!tw_thread_may_call_system()) {
		/* RELAXED rs.unwakeable: an independent word; the owner sleeps only briefly from now on. */
		tw_store_relaxed(producer->owner_unwakeable, 1);
		return;
	}
	/* PAIR rs.wake: release; acquire in tw_rs_wait().  The owner's next scan sees everything committed before. */
	if (tw_fetch_add_acq_rel(producer->owner_wake, 1) == 0)
		tw_sys_futex_wake(producer->owner_wake, 1);
}

static void set_limit(struct tw_rb_producer *producer)
{
	uint64_t end = piece_end(producer, producer->pos);
	uint64_t room_end = producer->cached_tail_pos + producer->mask + 1, next;

	/* The end of the data that has memory; the end of the data once all of it has. */
	next = producer->pos - (producer->pos & producer->mask) + producer->present_bytes;
	if (producer->policy == TW_RB_OVERWRITE) {
		producer->limit_pos = producer->chunk_end_pos < next ? producer->chunk_end_pos : next;
		return;
	}
	if (next < end)
		end = next;
	producer->limit_pos = end < room_end ? end : room_end;
	/* Stop again when a quarter of the ring is waiting, to wake a sleeping owner. */
	next = producer->pos < wake_pos(producer) ? wake_pos(producer) : producer->pos + (producer->mask + 1) / 4;
	if (next < producer->limit_pos)
		producer->limit_pos = next;
}

void tw_rb_producer_set_present(struct tw_rb_producer *producer, uint64_t present_bytes)
{
	producer->present_bytes = present_bytes;
	producer->limit_pos = 0;
}

/* Space for the record, a loss record before it, and a pad before each. */
static uint64_t room_for(uint32_t bytes)
{
	return (uint64_t)bytes * 2 + sizeof(struct tw_rb_loss_record) * 2;
}

bool tw_rb_lacks_memory(const struct tw_rb_producer *producer, uint32_t bytes)
{
	uint64_t data_bytes = producer->mask + 1, end = (producer->pos & producer->mask) + room_for(bytes);

	return producer->present_bytes < data_bytes && producer->present_bytes < end;
}

bool tw_rb_producer_init(struct tw_rb_producer *producer, struct tw_rb_shared *shared, enum tw_rb_policy policy)
{
	memset(producer, 0, sizeof *producer);
	producer->shared = shared;
	producer->data = tw_rb_data(shared);
	producer->mask = shared->data_bytes - 1;
	producer->present_bytes = shared->data_bytes;
	producer->policy = (uint16_t)policy;
	producer->ring_index = shared->ring_index;
	/* RELAXED rb.claim: the ring is this thread's alone until it becomes LIVE by PAIR rs.state. */
	producer->pos = tw_load_relaxed(&shared->committed_pos);
	/* RELAXED rb.claim: as above. */
	producer->cached_tail_pos = tw_load_relaxed(&shared->tail_pos);
	if (producer->pos != producer->cached_tail_pos) {
		tw_rb_producer_fini(producer);
		return false;
	}
	shared->policy = (uint32_t)policy;
	shared->first_pos = producer->pos;
	shared->grown_from = 0;
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->grown_to, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->thread_end_ticks, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->oldest_pos, producer->pos);
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		/* RELAXED rb.claim: as above. */
		tw_store_relaxed(&shared->lost[cause], 0);
	}
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->lost_first_ticks, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->lost_last_ticks, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->giving_up_lost, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->giving_up_pos, 0);
	producer->chunk_end_pos = piece_end(producer, producer->pos);
	set_limit(producer);
	return true;
}

static uint64_t load(const _Atomic uint64_t *word)
{
	/* RELAXED rb.claim: only this thread writes the ring; signals are blocked. */
	return tw_load_relaxed(word);
}

static void stop_refusing(struct tw_rb_producer *producer)
{
	producer->is_refusing = false;
	producer->refusals_left = 0;
}

void tw_rb_producer_move(struct tw_rb_producer *producer, struct tw_rb_shared *to)
{
	struct tw_rb_shared *from = producer->shared;

	to->lease = from->lease;
	to->first_ticks = from->first_ticks;
	to->thread_start_ticks = from->thread_start_ticks;
	to->first_pos = producer->pos;
	to->thread_id = from->thread_id;
	to->session_index = from->session_index;
	to->scheduler_id = from->scheduler_id;
	to->tracee_id = from->tracee_id;
	to->is_own_tracee = from->is_own_tracee;
	to->policy = from->policy;
	to->grown_from = from->ring_index + 1;
	memcpy(to->thread_name, from->thread_name, sizeof to->thread_name);
	/* RELAXED rb.claim: the new ring is this thread's alone until it becomes LIVE by PAIR rs.state. */
	tw_store_relaxed(&to->committed_pos, producer->pos);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->tail_pos, producer->pos);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->oldest_pos, producer->pos);
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		/* RELAXED rb.claim: as above. */
		tw_store_relaxed(&to->lost[cause], load(&from->lost[cause]));
	}
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->lost_first_ticks, load(&from->lost_first_ticks));
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->lost_last_ticks, load(&from->lost_last_ticks));
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->grown_to, 0);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&to->thread_end_ticks, 0);
	producer->shared = to;
	producer->data = tw_rb_data(to);
	producer->mask = to->data_bytes - 1;
	producer->present_bytes = to->data_bytes;
	producer->ring_index = to->ring_index;
	producer->cached_tail_pos = producer->pos;
	producer->chunk_end_pos = piece_end(producer, producer->pos);
	stop_refusing(producer);
	/* Unreported losses come first: take the slow path. */
	producer->limit_pos = 0;
}

void tw_rb_producer_fini(struct tw_rb_producer *producer)
{
	if (producer->has_untimed_refusals) {
		/* RELAXED rb.lost: published by the state ENDED (PAIR rs.state). */
		tw_store_relaxed(&producer->shared->lost_last_ticks, tw_clock_ticks());
	}
	memset(producer, 0, sizeof *producer);
}

static void note_loss_ticks(struct tw_rb_shared *shared, uint64_t first_ticks, uint64_t last_ticks)
{
	/* RELAXED rb.lost: nothing is derived from them before the ring ENDED (PAIR rs.state). */
	uint64_t first = tw_load_relaxed(&shared->lost_first_ticks);

	/* A hit that stopped waiting is older than the events its handlers lost meanwhile. */
	if (!first || first_ticks < first) {
		/* RELAXED rb.lost: as above. */
		tw_store_relaxed(&shared->lost_first_ticks, first_ticks);
	}
	/* RELAXED rb.lost: as above. */
	if (!first || last_ticks > tw_load_relaxed(&shared->lost_last_ticks)) {
		/* RELAXED rb.lost: as above. */
		tw_store_relaxed(&shared->lost_last_ticks, last_ticks);
	}
}

void tw_rb_refuse_several(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t count, uint64_t ticks)
{
	/*
	 * RELAXED rb.lost: counts that nothing is derived from before the ring ENDED (PAIR rs.state);
	 * an addition in one instruction, because a signal handler may add between load and store.
	 */
	tw_fetch_add_relaxed(&producer->shared->lost[cause], count);
	note_loss_ticks(producer->shared, ticks, ticks);
	producer->has_untimed_refusals = false;
	/* RELAXED rb.waiting_ticks: what is refused does not wait. */
	tw_store_relaxed(&producer->shared->waiting_ticks, 0);
	producer->limit_pos = 0;
}

void tw_rb_refuse(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t ticks)
{
	tw_rb_refuse_several(producer, cause, 1, ticks);
}

static bool has_unreported(const struct tw_rb_producer *producer)
{
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		/* RELAXED rb.lost: this thread's own counts. */
		if (tw_load_relaxed(&producer->shared->lost[cause]) != producer->told[cause])
			return true;
	}
	return false;
}

static void put_pad(struct tw_rb_producer *producer, uint64_t bytes, uint64_t ticks)
{
	struct tw_rb_record *pad = (struct tw_rb_record *)(producer->data + (producer->pos & producer->mask));

	pad->ticks = ticks;
	pad->head = TW_RB_HEAD(TW_RB_KIND_PAD, 0, bytes, 0);
	/* A handler that jumps out must find either the complete pad before the position, or no pad. */
	tw_compiler_barrier();
	producer->pos += bytes;
}

/* Finds contiguous space for `bytes`, after a pad if necessary.  Changes nothing if there is none. */
static bool find_space(struct tw_rb_producer *producer, uint64_t bytes, uint64_t ticks)
{
	uint64_t end = piece_end(producer, producer->pos);
	uint64_t pad = producer->pos + bytes > end ? end - producer->pos : 0;
	uint64_t need_pos = producer->pos + pad + bytes;

	if (need_pos > producer->cached_tail_pos + producer->mask + 1) {
		/*
		 * PAIR rb.consume: acquire; release in tw_rb_consume().
		 * The consumer has read everything before the tail.  Without it the bytes could be overwritten while
		 * the consumer still reads them.
		 */
		producer->cached_tail_pos = tw_load_acquire(&producer->shared->tail_pos);
		if (need_pos > producer->cached_tail_pos + producer->mask + 1)
			return false;
	}
	if (pad)
		put_pad(producer, pad, ticks);
	return true;
}

/*
 * If the process died between storing the position that gives up a chunk and counting the chunk's records, the count
 * would be lost.  It is therefore announced first; lost_so_far() reads the announcement.
 */
static void announce_loss(struct tw_rb_shared *shared, uint64_t oldest_pos, uint64_t lost)
{
	/*
	 * RELAXED rb.giving_up: the position first, so that no count is paired with an older position.  After a death
	 * the stores appear in program order; for a living producer the release that follows orders them.
	 */
	tw_store_relaxed(&shared->giving_up_pos, oldest_pos);
	tw_compiler_barrier();
	/* RELAXED rb.giving_up: as above. */
	tw_store_relaxed(&shared->giving_up_lost, lost);
}

/* The time of the record stored at pos.  At the start of a chunk being overwritten, that is its oldest record. */
static uint64_t ticks_at(const struct tw_rb_producer *producer, uint64_t pos)
{
	return ((const struct tw_rb_record *)(producer->data + (pos & producer->mask)))->ticks;
}

/* Gives up everything before oldest_pos: all records before the chunk `kept` are lost. */
static void give_up(struct tw_rb_producer *producer, uint64_t oldest_pos, unsigned kept)
{
	struct tw_rb_shared *shared = producer->shared;
	uint64_t lost = producer->chunk_first[kept], first_ticks = ticks_at(producer, producer->pos);

	/* The ring's first chunk may begin with records of an earlier lease. */
	if (first_ticks < shared->first_ticks)
		first_ticks = shared->first_ticks;
	announce_loss(shared, oldest_pos, lost);
	/* PAIR rb.oldest: release; acquire in tw_rb_overwritten().  The announcement comes first. */
	tw_store_release(&shared->oldest_pos, oldest_pos);
	/*
	 * PAIR rb.overwritten: release fence; acquire fence in copy_piece().
	 * A release store orders what comes before it, not what follows.  Without the fence a snapshot could copy bytes
	 * written into the chunk from here on, and still load the position that keeps the chunk.
	 */
	tw_fence_release();
	/* RELAXED rb.lost: in an overwriting ring only this thread counts this cause. */
	if (lost == tw_load_relaxed(&shared->lost[TW_RB_LOST_FULL]))
		return;
	/* The loss covers the chunk: from its first record to the first record that is kept. */
	note_loss_ticks(shared, first_ticks, ticks_at(producer, oldest_pos));
	/* RELAXED rb.lost: as above. */
	tw_store_relaxed(&shared->lost[TW_RB_LOST_FULL], lost);
}

/*
 * Enters the next chunk, which begins at the producer's position, and gives up its old records.
 *
 * A signal handler may jump out at any instruction.  Everything here is derived from the position and the number of
 * records, which do not change before the next commit, and the end of the chunk is stored last.  The next record thus
 * repeats this with the same result.
 */
static void enter_chunk(struct tw_rb_producer *producer)
{
	uint64_t data_bytes = producer->mask + 1;
	uint64_t end_pos = piece_end(producer, producer->pos);
	unsigned entered = (unsigned)(producer->pos / (data_bytes / TW_RB_CHUNKS) % TW_RB_CHUNKS);

	producer->chunk_first[entered] = producer->records;
	if (end_pos > producer->shared->first_pos + data_bytes)
		give_up(producer, end_pos - data_bytes, (entered + 1) % TW_RB_CHUNKS);
	tw_compiler_barrier();
	producer->chunk_end_pos = end_pos;
}

/* Makes space in an overwriting ring: there always is some in the next chunk. */
static void make_space(struct tw_rb_producer *producer, uint64_t bytes, uint64_t ticks)
{
	if (producer->pos + bytes <= producer->chunk_end_pos)
		return;
	if (producer->pos < producer->chunk_end_pos)
		put_pad(producer, producer->chunk_end_pos - producer->pos, ticks);
	enter_chunk(producer);
}

/*
 * True if there are unreported losses older than `ticks`.  Losses of handlers during the record's own hit come after
 * it; the next record reports them.
 */
static bool is_loss_due(const struct tw_rb_producer *producer, uint64_t ticks)
{
	/* RELAXED rb.lost: written by this thread or its handlers. */
	return has_unreported(producer) && tw_load_relaxed(&producer->shared->lost_first_ticks) <= ticks;
}

static void tell_loss(struct tw_rb_producer *producer, uint64_t ticks)
{
	struct tw_rb_shared *shared = producer->shared;
	struct tw_rb_loss_record *loss =
		(struct tw_rb_loss_record *)(producer->data + (producer->pos & producer->mask));

	loss->reserved = 0;
	loss->record.head = TW_RB_HEAD(TW_RB_KIND_LOSS, 0, sizeof *loss, 0);
	/* RELAXED rb.lost: this thread's own counts. */
	loss->first_ticks = tw_load_relaxed(&shared->lost_first_ticks);
	/* RELAXED rb.lost: as above. */
	loss->record.ticks = tw_load_relaxed(&shared->lost_last_ticks);
	/* A loss record for older losses includes those of its own hit's handlers. */
	if (loss->record.ticks > ticks || producer->has_untimed_refusals)
		loss->record.ticks = ticks;
	producer->has_untimed_refusals = false;
	/* RELAXED rb.lost: as above; the next record reports a handler that counts right now. */
	tw_store_relaxed(&shared->lost_first_ticks, 0);
	for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
		/* RELAXED rb.lost: as above. */
		uint64_t lost = tw_load_relaxed(&shared->lost[cause]);

		loss->lost[cause] = lost - producer->told[cause];
		producer->told[cause] = lost;
	}
	if (!loss->first_ticks)
		loss->first_ticks = loss->record.ticks;
	tw_rb_commit_uncounted(producer, sizeof *loss);
}

enum tw_rb_outcome tw_rb_reserve_slow(struct tw_rb_producer *producer, uint32_t bytes, uint64_t ticks, void **out)
{
	bool is_overwriting = producer->policy == TW_RB_OVERWRITE;

	if (bytes > TW_RB_RECORD_BYTES_MAX) {
		tw_rb_refuse(producer, TW_RB_LOST_TOO_BIG, ticks);
		return TW_RB_TOO_BIG;
	}
	if (tw_rb_lacks_memory(producer, bytes))
		return TW_RB_WAIT;
	/* An overwriting ring reports its losses at the start of a snapshot, not before the next record. */
	if (!is_overwriting && is_loss_due(producer, ticks)) {
		if (!find_space(producer, sizeof(struct tw_rb_loss_record), ticks))
			goto refuse;
		tell_loss(producer, ticks);
	}
	if (!is_overwriting)
		wake_owner(producer, bytes);
	if (is_overwriting)
		make_space(producer, bytes, ticks);
	else if (!find_space(producer, bytes, ticks))
		goto refuse;
	/* Unreported losses keep limit_pos at 0, so that the next record reports them. */
	if (is_overwriting || !has_unreported(producer))
		set_limit(producer);
	stop_refusing(producer);
	*out = producer->data + (producer->pos & producer->mask);
	return TW_RB_OK;
refuse:
	if ((producer->policy == TW_RB_BLOCK && ticks >= producer->wait_after_ticks) ||
	    (producer->growth_bytes && ticks >= producer->growth_after_ticks))
		return TW_RB_WAIT;
	tw_rb_refuse(producer, TW_RB_LOST_FULL, ticks);
	producer->is_refusing = producer->policy == TW_RB_DROP && !producer->growth_bytes;
	producer->refusals_left = producer->is_refusing ? TW_RB_REFUSALS_UNTIMED : 0;
	return TW_RB_FULL;
}

static bool has_space(struct tw_rb_producer *producer, uint32_t bytes)
{
	/*
	 * PAIR rb.waiting: seq_cst; the exchange in tw_rb_consume().  Either this load sees the new
	 * tail, or the consumer's exchange sees the 1 in `waiting`.
	 */
	uint64_t tail = tw_load_seq_cst(&producer->shared->tail_pos);

	return producer->pos + room_for(bytes) <= tail + producer->mask + 1;
}

bool tw_rb_begin_wait(struct tw_rb_producer *producer, uint32_t bytes)
{
	/* PAIR rb.waiting: seq_cst; see has_space(). */
	tw_store_seq_cst(&producer->shared->waiting, TW_RB_IS_WAITING);
	return has_space(producer, bytes);
}

void tw_rb_end_wait(struct tw_rb_producer *producer)
{
	/* PAIR rb.waiting: seq_cst; this thread no longer needs a wake. */
	tw_store_seq_cst(&producer->shared->waiting, 0);
}

void tw_rb_tell_waiting(struct tw_rb_producer *producer, uint64_t ticks)
{
	/* RELAXED rb.waiting_ticks: the time, or the next commit, which is stored behind it, shows it. */
	tw_store_relaxed(&producer->shared->waiting_pos, producer->pos);
	/* PAIR rb.waiting_ticks: release; acquire in tw_rb_waiting_ticks(). */
	tw_store_release(&producer->shared->waiting_ticks, ticks);
}

void tw_rb_keep_waiting(struct tw_rb_producer *producer)
{
	/* RELAXED rb.waiting_ticks: as above. */
	tw_store_relaxed(&producer->shared->waiting_pos, UINT64_MAX);
}

bool tw_rb_wait_space(struct tw_rb_producer *producer, uint32_t bytes, uint64_t timeout_ns)
{
	uint64_t until = tw_clock_monotonic_ns() + timeout_ns, now;
	bool has_space;

	while (!(has_space = tw_rb_begin_wait(producer, bytes)) && (now = tw_clock_monotonic_ns()) < until)
		tw_sys_futex_wait(&producer->shared->waiting, TW_RB_IS_WAITING, until - now);
	tw_rb_end_wait(producer);
	return has_space;
}
