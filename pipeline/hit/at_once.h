/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at_once.h - the common case of a native call and of its return, in as few instructions as possible.
 *
 *	one session wants the call		a plain record, or one with words of the argument registers
 *	its range test, if it has one		accepts, or drops the call
 *	there is space in the ring		and no switch record is due
 *
 * All is decided before anything is done; any other case is left to native.c, one.c and hit.c.  Included by native.c only, whose
 * functions end in jumps to those: what they keep in registers across a call would be saved and restored by each hit.
 *
 * Threads  in a hit, in its read section.
 */
#ifndef TW_PIPELINE_AT_ONCE_H
#define TW_PIPELINE_AT_ONCE_H

#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/record.h"

#define INLINE inline __attribute__((always_inline))

/* The heads of records of calls, without place and the tracee's flags, by the form of a generation. */
#define HEAD(count, flags)                                                          \
	TW_RB_HEAD(TW_EVENT_CALL, (flags) | ((count) % 2 ? TW_EVENT_FLAG_HALF : 0), \
		   sizeof(struct tw_rb_record) + ((count) + 1) / 2 * 16, 0)
#define HEADS(form, flags)                                                                           \
	[form] = HEAD(0, flags), [(form) + 1] = HEAD(1, flags), [(form) + 2] = HEAD(2, flags),       \
	[(form) + 3] = HEAD(3, flags), [(form) + 4] = HEAD(4, flags), [(form) + 5] = HEAD(5, flags), \
	[(form) + 6] = HEAD(6, flags)
_Static_assert(TW_ARGS_MAX == 6, "heads of all counts");
static const uint32_t heads[TW_BP_FORMS] = {HEADS(TW_BP_FORM_RAW, 0), HEADS(TW_BP_FORM_TYPED, TW_EVENT_FLAG_ARGS)};

/* The session that wants the call, and nothing but a record of it; 0: no session, or more has to be done. */
static INLINE uint64_t wants_at_once(const struct tw_hit_tls *t, const struct tw_bp_generation *generation)
{
	const struct tw_tracee *tracee = t->tracee;
	/* PROGRESS hit.wants: as in hit(). */
	uint64_t todo = generation->sessions & tw_load_relaxed(&tracee->wants_call);
	/* RELAXED hit.special, hit.return_to: a change is seen by this call or by the next. */
	uint64_t more = tw_load_relaxed(&tracee->special) | tw_load_relaxed(&tracee->wants_return_to);

	return (todo & (todo - 1)) | (todo & (more | ~generation->at_once)) ? 0 : todo;
}

/* The words of a record after its head; a last half is filled with any word. */
static INLINE void put_words(uint64_t *payload, uint32_t bytes, const uint64_t *words, const uint8_t *registers)
{
	payload[0] = words[registers[0]];
	payload[1] = words[registers[1]];
	if (bytes <= sizeof(struct tw_rb_record) + 16)
		return;
	payload[2] = words[registers[2]];
	payload[3] = words[registers[3]];
	if (bytes <= sizeof(struct tw_rb_record) + 32)
		return;
	payload[4] = words[registers[4]];
	payload[5] = words[registers[5]];
}

/* The thread ring of the one session in todo.  The compiler is not to know how it was found, or it finds it again each time. */
static INLINE struct tw_thread_ring *ring_of(const struct tw_hit_tls *t, uint64_t session)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];

	__asm__("" : "+r"(ring));
	return ring;
}

/*
 * Counts a record as lost where there was no space for the one before either: limit_pos is 0 while a loss is not told.  The run that
 * is due then is begun before the next record that finds space.
 */
static INLINE bool is_lost_again(struct tw_thread_ring *ring)
{
	return tw_unlikely(!ring->producer.limit_pos) && tw_rb_refuse_again(&ring->producer);
}

/* The same, with the time where it is due.  (For calls whose end is wanted, it would take registers from those that are recorded.) */
static INLINE bool is_lost_again_in_time(struct tw_thread_ring *ring)
{
	if (tw_likely(ring->producer.limit_pos))
		return false;
	return tw_rb_refuse_again(&ring->producer) ||
	       (tw_clock_is_counter() && tw_rb_refuse_timed(&ring->producer, tw_clock_counter()));
}

/* The head of a call's record. */
static INLINE uint64_t head_of_call(const struct tw_hit_tls *t, const struct tw_place *place,
				    const struct tw_bp_generation *generation, uint64_t session)
{
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	uint64_t flags = tw_load_relaxed(&t->tracee->record_flags[session]);

	return heads[generation->form] | flags << 8 | (uint64_t)place->place_id << 32;
}

/* Writes and commits the record of a call, which tw_record_at_once() has begun. */
static INLINE void write_call(struct tw_thread_ring *ring, struct tw_rb_record *record, uint64_t head,
			      const struct tw_bp_generation *generation, const uint64_t *words)
{
	record->head = head;
	if (TW_RB_HEAD_BYTES(head) > sizeof *record)
		put_words((uint64_t *)(record + 1), TW_RB_HEAD_BYTES(head), words, generation->registers);
	tw_rb_commit(&ring->producer, TW_RB_HEAD_BYTES(head));
}

/* Records a call, or counts it as lost.  False: nothing was done. */
static INLINE bool put_call(struct tw_hit_tls *t, const struct tw_place *place,
			    const struct tw_bp_generation *generation, uint64_t todo, const uint64_t *words)
{
	uint64_t session = (unsigned)__builtin_ctzll(todo), head = head_of_call(t, place, generation, session);
	struct tw_thread_ring *ring = ring_of(t, session);
	struct tw_rb_record *record;

	if (is_lost_again_in_time(ring))
		return true;
	record = tw_record_at_once(t, ring, TW_RB_HEAD_BYTES(head));
	if (tw_unlikely(!record))
		return false;
	write_call(ring, record, head, generation, words);
	return true;
}

/* As put_call(), for a return with its value. */
static INLINE bool put_return(struct tw_hit_tls *t, const struct tw_place *place, uint64_t todo, uint64_t value)
{
	const uint32_t bytes = (uint32_t)sizeof(struct tw_rb_record) + 16;
	uint64_t session = (unsigned)__builtin_ctzll(todo);
	struct tw_thread_ring *ring = ring_of(t, session);
	struct tw_rb_record *record;
	/* RELAXED hit.record_flags: as above. */
	uint64_t flags = tw_load_relaxed(&t->tracee->record_flags[session]);

	if (is_lost_again(ring))
		return true;
	record = tw_record_at_once(t, ring, bytes);
	if (tw_unlikely(!record))
		return false;
	record->head = TW_RB_HEAD(TW_EVENT_RETURN_FROM, TW_EVENT_FLAG_HALF, bytes, place->place_id) | flags << 8;
	*(uint64_t *)(record + 1) = value;
	tw_rb_commit(&ring->producer, bytes);
	return true;
}

/* The return of a call that one session wants; its value is one word. */
static INLINE bool is_return_at_once(const struct tw_frame_wants *wants)
{
	uint64_t todo = wants->returns;

	/* RELAXED hit.special: a change is seen by this call or by the next. */
	return tw_hit_tls.state == TW_THREAD_READY && todo &&
	       !((todo & (todo - 1)) | (todo & tw_load_relaxed(&tw_hit_tls.tracee->special)) | wants->return_tos |
		 wants->more | wants->place->gives);
}

/*
 * PAIR bp.active, hit.epoch: acquire; as in the general case. If no session was made since the call, each bit has its old
 * owner; otherwise the general case tells them apart.
 */
static INLINE bool return_at_once(struct tw_hit_tls *t, const struct tw_frame_wants *wants, uint64_t value)
{
	return tw_load_acquire(&tw_bp_gate.active) && (tw_load_acquire(&t->tracee->wants_call) & wants->returns) &&
	       tw_load_acquire(&tw_hit_epoch) == wants->epoch && put_return(t, wants->place, wants->returns, value);
}

#endif
