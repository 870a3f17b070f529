/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite.pml - a snapshot of an overwriting ring, taken while the producer runs.
 * cc: -DSAFETY
 *
 * Code	    ringbuf/produce.c give_up(); overwrite.c tw_rb_snapshot().
 * Stores   The producer's stores reach memory in any order, but: a release store comes after all stores before it (and
 *	    not before those that follow it: the release fence is for that); two stores to one location keep their
 *	    order.
 * Loads    The reader's loads are done in any order, but: loads after an acquire load come after it, loads after the
 *	    acquire fence come after all loads before it.
 * Claims   1 tw_rb_snapshot() returns the records of its stretch, whole and in order. 2 The stretch is never longer
 *	    than the ring.
 * Left out Pads, records of several cells, counts of what was forgotten.  4 cells in 2 chunks.
 *
 * Broken   NO_RELEASE_FENCE: new bytes may overtake the position that gives up their location (once in the code).
 *	    NO_ACQUIRE_FENCE: the second load of the position may overtake the copy (once in the code).  NO_SECOND_LOOK:
 *	    the snapshot does not check what was given up meanwhile.  COMMIT_RELAXED: the copy and the first load of the
 *	    position may overtake the load of committed_pos.
 */
#define CELLS	4
#define CHUNK	2
#define RECORDS 9
#define COMMIT	4 /* entries of the store buffer: the cells, then these */
#define OLDEST	5
#define BUFFER	4
#define NONE	99

/* When a cell may be copied, and when the second load may be done. */
#ifdef COMMIT_RELAXED
#define AFTER_COMMIT true
#else
#define AFTER_COMMIT (end_pos != NONE)
#endif
#ifdef NO_ACQUIRE_FENCE
#define AFTER_COPY true
#else
#define AFTER_COPY (left == 0)
#endif

byte cell[CELLS]; /* the number of the record stored there */
byte committed_pos, oldest_pos;
byte b_place[BUFFER], b_value[BUFFER];
bool b_fenced[BUFFER]; /* a release fence precedes this store */
byte b_count;

inline buffer_store(p, v, behind_fence)
{
	atomic {
		b_count < BUFFER;
		b_place[b_count] = p;
		b_value[b_count] = v;
		b_fenced[b_count] = behind_fence;
		b_count++
	}
}

proctype producer()
{
	byte pos;
	bool fence;

	do
	:: pos < RECORDS ->
		fence = false;
		if
		:: pos % CHUNK == 0 && pos + CHUNK > CELLS ->
			buffer_store(OLDEST, pos + CHUNK - CELLS, false);
#ifndef NO_RELEASE_FENCE
			fence = true
#endif
		:: else
		fi;
		buffer_store(pos % CELLS, pos + 1, fence);
		pos++;
		buffer_store(COMMIT, pos, false)
	:: else -> break
	od
}

/* May the store at i of the buffer reach memory before earlier ones? */
inline look_at_buffer()
{
	ok = true;
	j = 0;
	do
	:: j < i ->
		if
		:: b_place[j] == b_place[i] || b_place[i] >= COMMIT || b_fenced[i] -> ok = false
		/* A fence orders everything after it behind everything before it. */
		:: else ->
			k = j + 1;
			do
			:: k < i ->
				if
				:: b_fenced[k] -> ok = false
				:: else
				fi;
				k++
			:: else -> break
			od
		fi;
		j++
	:: else -> break
	od
}

proctype memory()
{
	byte i, j, k;
	bool ok;
end:
	do
	:: atomic {
		b_count > 0;
		i = 0;
		do
		:: i + 1 < b_count -> i++
		:: break
		od;
		look_at_buffer();
		if
		:: !ok
		:: else ->
			if
			:: b_place[i] == COMMIT -> committed_pos = b_value[i]
			:: b_place[i] == OLDEST -> oldest_pos = b_value[i]
			:: else -> cell[b_place[i]] = b_value[i]
			fi;
			j = i;
			do
			:: j + 1 < b_count ->
				b_place[j] = b_place[j + 1];
				b_value[j] = b_value[j + 1];
				b_fenced[j] = b_fenced[j + 1];
				j++
			:: else -> break
			od;
			b_count--;
			b_place[b_count] = 0;
			b_value[b_count] = 0;
			b_fenced[b_count] = false
		fi;
		i = 0;
		j = 0;
		k = 0;
		ok = false
	}
	od
}

proctype snapshot()
{
	byte end_pos = NONE, oldest = NONE, oldest_now = NONE, at, left;
	byte copy[CELLS];
	bool copied[CELLS]; /* by location: a load may be done before it is known to be needed */

	left = CELLS;
	/* Loads in any order that the acquires and the fence allow. */
	do
	:: end_pos == NONE -> end_pos = committed_pos
	:: oldest == NONE && AFTER_COMMIT -> oldest = oldest_pos
	:: left > 0 && AFTER_COMMIT ->
		atomic {
			at = 0;
			do
			:: at + 1 < CELLS -> at++
			:: break
			od;
			if
			:: copied[at]
			:: else ->
				copy[at] = cell[at];
				copied[at] = true;
				left--
			fi;
			at = 0
		}
#ifndef NO_SECOND_LOOK
	:: oldest_now == NONE && oldest != NONE && AFTER_COPY -> oldest_now = oldest_pos
	:: left == 0 && oldest_now != NONE && end_pos != NONE -> break
#else
	:: left == 0 && oldest != NONE && end_pos != NONE ->
		oldest_now = oldest;
		break
#endif
	od;
	if
	:: end_pos < oldest -> end_pos = oldest
	:: else
	fi;
	assert(end_pos - oldest <= CELLS);	/* Claim 2 */
	if
	:: oldest_now > end_pos -> oldest_now = end_pos
	:: else
	fi;
	at = oldest_now;
	do
	:: at < end_pos ->
		assert(copy[at % CELLS] == at + 1);	/* Claim 1 */
		at++
	:: else -> break
	od
}

init {
	atomic {
		run producer();
		run memory();
		run snapshot()
	}
}
