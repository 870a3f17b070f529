/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - how a hit writes records: plain ones in place, all others by tw_record_put().
 *
 * Called in a read section, on a thread that is in a hit. A record that finds no space is counted as lost.
 */
#ifndef TW_PIPELINE_RECORD_H
#define TW_PIPELINE_RECORD_H

#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

/* The words of a record: in registers if there are at most two, else in memory. */
struct tw_words {
	unsigned count; /* to record */
	uint64_t a, b;
	const uint64_t *more;
	unsigned more_count; /* for match programs, which see argument registers that are not recorded */
	bool is_local;	     /* the call is without the module's name */
	uint8_t flags;	     /* TW_EVENT_FLAG_ARGS, or none */
	/* Instead of words; NULL: words. */
	const struct tw_term *terms;
	unsigned term_count;
	void *frame; /* identifies the call during its hit; NULL: the frame of the hit's own function */
};

static inline void tw_record_copy(uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = from[i];
}

static inline __attribute__((always_inline)) void tw_record_fill(uint64_t *payload, struct tw_words w)
{
	if (w.more) {
		for (unsigned i = 0; i < w.count; i++)
			payload[i] = w.more[i];
		return;
	}
	if (w.count > 0)
		payload[0] = w.a;
	if (w.count > 1)
		payload[1] = w.b;
}

/* The stamp that precedes all other words of the payload. */
enum tw_record_stamp { TW_RECORD_NO_STAMP, TW_RECORD_UNIQUE_INTEGER, TW_RECORD_CPU_TIME };

static inline enum tw_record_stamp tw_record_stamp_of(unsigned flags, unsigned session)
{
	unsigned stamp = flags & TW_EVENT_FLAG_STAMP_MASK;

	if (stamp == TW_STAMP_STRICT_MONOTONIC)
		return TW_RECORD_UNIQUE_INTEGER;
	/* RELAXED hit.cpu_stamped: a change is seen by this record or by the next, and each says which it is. */
	return stamp == TW_STAMP_TIMESTAMP && (tw_load_relaxed(&tw_hit_cpu_stamped) >> session & 1)
		       ? TW_RECORD_CPU_TIME
		       : TW_RECORD_NO_STAMP;
}

/*
 * The stamp's word, taken when there is space for the record. CPU time costs a system call; 0 if a filter refuses it
 * by now.
 */
static inline uint64_t tw_record_stamp_word(enum tw_record_stamp stamp)
{
	int64_t ns;

	if (stamp == TW_RECORD_UNIQUE_INTEGER)
		return tw_hit_unique_integer();
	ns = tw_thread_may_call_system() ? tw_sys_process_cpu_ns() : 0;
	return ns < 0 ? 0 : (uint64_t)ns;
}

/* The kind as a head carries it. */
static inline unsigned tw_record_kind(unsigned kind, enum tw_record_stamp stamp)
{
	return kind | (stamp == TW_RECORD_CPU_TIME ? TW_EVENT_CPU_TIME : 0);
}

/* As tw_record_plain(); with may_be_stamped, a strict or CPU stamp is the first word of the record. */
static inline __attribute__((always_inline)) uint64_t tw_record_words(struct tw_hit_tls *t, enum tw_event_kind kind,
								      const struct tw_place *place,
								      const struct tw_place *place_now, uint64_t todo,
								      struct tw_words w, bool may_be_stamped)
{
	uint64_t ticks = tw_clock_ticks();
	uint64_t wanted = ~UINT64_C(0);

	/* The stamp is taken before space is claimed, as in tw_record_at_once(). */
	tw_compiler_barrier();
	do {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_thread_ring *ring = &t->thread->rings[session];
		/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
		unsigned flags = w.flags | tw_load_relaxed(&t->tracee->record_flags[session]);
		enum tw_record_stamp stamp = may_be_stamped ? tw_record_stamp_of(flags, session) : TW_RECORD_NO_STAMP;
		unsigned count = w.count + (stamp != TW_RECORD_NO_STAMP);
		uint32_t bytes = (uint32_t)sizeof(struct tw_rb_record) + (count + 1) / 2 * 16;
		struct tw_rb_record *record;
		enum tw_rb_outcome outcome;

		todo &= todo - 1;
		flags |= count % 2 ? TW_EVENT_FLAG_HALF : 0;
		/*
		 * As tw_thread_ring_reserve(), spelled out: the call of it costs 5 of the 112 instructions of a guard
		 * that a range test decides, since the compiler keeps the masks elsewhere.
		 */
		if (tw_unlikely(ring->run_stamp != t->run_stamp)) {
			struct tw_recheck recheck = {place_now, &t->tracee->wants_call};

			if (!tw_thread_ring_catch_up(t, &recheck, session, ticks, &wanted)) {
				todo &= wanted;
				continue;
			}
			todo &= wanted;
		}
		outcome = tw_rb_reserve(&ring->producer, bytes, ticks, (void **)&record);
		if (tw_unlikely(outcome != TW_RB_OK)) {
			struct tw_recheck recheck = {place_now, &t->tracee->wants_call};

			if (outcome == TW_RB_WAIT && tw_thread_ring_wait(t, &recheck, session, bytes, ticks, &wanted))
				outcome = tw_rb_reserve(&ring->producer, bytes, ticks, (void **)&record);
			todo &= wanted;
			if (outcome != TW_RB_OK)
				continue;
		}
		record->ticks = ticks;
		record->head = TW_RB_HEAD(tw_record_kind(kind, stamp), flags, bytes, place->place_id);
		if (stamp)
			*(uint64_t *)(record + 1) = tw_record_stamp_word(stamp);
		tw_record_fill((uint64_t *)(record + 1) + (stamp != TW_RECORD_NO_STAMP), w);
		tw_rb_commit(&ring->producer, bytes);
	} while (todo);
	return wanted;
}

/*
 * Writes one plain record of a place for each session in todo: words, and no stamp before them. @place_now as in
 * struct tw_recheck. Returns the mask of sessions that still want the other records; after a wait some may not.
 */
static inline __attribute__((always_inline)) uint64_t tw_record_plain(struct tw_hit_tls *t, enum tw_event_kind kind,
								      const struct tw_place *place,
								      const struct tw_place *place_now, uint64_t todo,
								      struct tw_words w)
{
	return tw_record_words(t, kind, place, place_now, todo, w, false);
}

/*
 * Begins a record with its time, if there is space at once, the clock is read without a call, and no switch record is due: its head
 * and words follow, and tw_rb_commit(). NULL: nothing was done, and tw_record_plain() must do it.
 */
static inline __attribute__((always_inline)) struct tw_rb_record *tw_record_at_once(struct tw_hit_tls *t,
										    struct tw_thread_ring *ring,
										    uint32_t bytes)
{
	/*
	 * The clock is read first: losses that a handler counted before it are seen below; later ones follow this
	 * record.
	 */
	struct tw_rb_record *record;
	uint64_t ticks;

	if (tw_unlikely(!tw_clock_is_counter()))
		return NULL;
	ticks = tw_clock_counter();
	tw_compiler_barrier();
	if (tw_unlikely(ring->run_stamp != t->run_stamp || ring->producer.pos + bytes > ring->producer.limit_pos))
		return NULL;
	record = (struct tw_rb_record *)(ring->producer.data + (ring->producer.pos & ring->producer.mask));
	record->ticks = ticks;
	return record;
}

/* As tw_record_plain(), for calls with `count` words and sessions that may want strict or CPU stamps. */
uint64_t tw_record_stamped(struct tw_hit_tls *t, const struct tw_place *place, uint64_t todo, const uint64_t *words,
			   unsigned count);

/* The contents of a record. Zeroed fields mean none. */
struct tw_record_content {
	enum tw_event_kind kind;
	uint32_t id;
	uint64_t ticks;	       /* the time; 0: now */
	bool is_meta;	       /* stamped as meta events are, whatever the tracee's flags */
	unsigned flags;	       /* TW_EVENT_FLAG_TERMS, _EXTRA, _ARGS */
	const uint64_t *words; /* raw */
	uint32_t word_count;
	/* External terms, in the thread's `terms` or elsewhere; the last word is padded with zeros here. */
	const uint8_t *encoded;
	uint32_t encoded_bytes;
	uint32_t term_count; /* with TW_EVENT_FLAG_TERMS */
};

/*
 * tw_record_put - write one record for one session: [unique integer or CPU time] [counts] words [terms].
 *
 * @recheck	whether the record is still wanted after a wait; this function may wait.
 * @todo	as for tw_thread_ring_wait().
 *
 * Returns whether it was written.
 */
bool tw_record_put(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
		   const struct tw_record_content *content, uint64_t *todo);

/* Terms for records, encoded one behind the other into the thread's `terms`. */
struct tw_record_terms {
	struct tw_thread *thread;
	uint32_t bytes, count;
	bool keeps_vectors; /* the hit came through a trampoline: vector registers are the program's */
};

/* Appends a term. A term that does not fit is cut; a mark shows where. */
void tw_record_term(struct tw_record_terms *terms, struct tw_term term);
/* Appends one term, a list of these. Elements that do not fit are cut, in the last resort to the atom '...'. */
void tw_record_list(struct tw_record_terms *terms, const struct tw_term *elements, unsigned count);
/* {First, Second} of two atoms, or of an atom and a term; {M, F, A}; `undefined` where @module is NULL. */
void tw_record_atoms(struct tw_record_terms *terms, const char *first, const char *second);
void tw_record_pair(struct tw_record_terms *terms, const char *first, struct tw_term second);
void tw_record_mfa(struct tw_record_terms *terms, const char *module, const char *function, uint32_t arity);

/*
 * Encodes the term, or as much of it as fits, cut as by tw_term_copy(); `capacity` is large enough for '...' at least.
 * Called in a hit; may use any register. Returns the bytes.
 */
size_t tw_record_encode(struct tw_term term, uint8_t *at, size_t capacity);

#endif
