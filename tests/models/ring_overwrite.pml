/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite.pml - a snapshot of an overwriting ring, taken while the producer goes on.
 * cc: -DSAFETY -DCOLLAPSE
 *
 * Code	    ringbuf/produce.c enter_chunk(); overwrite.c tw_rb_snapshot().
 * Memory   The producer's stores reach memory in any order, but the release store of committed_pos after those
 *	    before it, and the exchange of oldest_pos (acquire and release) before all that follow it.
 * Claim    What tw_rb_snapshot() returns are the records of its stretch, whole and in order.
 * Left out Pads, records of several cells, counts of what was forgotten.  4 cells in 2 chunks.
 *
 * Broken   OLDEST_RELAXED: giving up is a plain store, which new bytes may pass.
 *	    NO_SECOND_LOOK: the snapshot does not look again at what was given up meanwhile.
 */
#define CELLS	4
#define CHUNK	2
#define RECORDS 9
#define COMMIT	4 /* places of the store buffer: the cells, then these */
#define OLDEST	5
#define BUFFER	4

byte cell[CELLS]; /* the number of the record that stands there */
byte committed_pos, oldest_pos;
byte b_place[BUFFER], b_value[BUFFER];
byte b_count;

inline buffer_store(p, v)
{
	atomic {
		b_count < BUFFER;
		b_place[b_count] = p;
		b_value[b_count] = v;
		b_count++
	}
}

proctype producer()
{
	byte pos;

	do
	:: pos < RECORDS ->
		if
		:: pos % CHUNK == 0 && pos + CHUNK > CELLS ->
#ifdef OLDEST_RELAXED
			buffer_store(OLDEST, pos + CHUNK - CELLS)
#else
			/* An exchange: empties the buffer, and nothing that follows is before it. */
			atomic { b_count == 0 -> oldest_pos = pos + CHUNK - CELLS }
#endif
		:: else
		fi;
		buffer_store(pos % CELLS, pos + 1);
		pos++;
		buffer_store(COMMIT, pos)
	:: else -> break
	od
}

proctype memory()
{
	byte i, j;
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
		ok = (b_place[i] != COMMIT || i == 0);
		j = 0;
		do
		:: j < i ->
			if
			:: b_place[j] == b_place[i] -> ok = false
			:: else
			fi;
			j++
		:: else -> break
		od;
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
				j++
			:: else -> break
			od;
			b_count--;
			b_place[b_count] = 0;
			b_value[b_count] = 0
		fi;
		i = 0;
		j = 0;
		ok = false
	}
	od
}

proctype snapshot()
{
	byte end_pos, oldest, still_there, at;
	byte copy[CELLS];

	end_pos = committed_pos;
	oldest = oldest_pos;
	if
	:: end_pos < oldest -> end_pos = oldest
	:: else
	fi;
	at = oldest;
	do
	:: at < end_pos ->
		copy[at - oldest] = cell[at % CELLS];
		at++
	:: else -> break
	od;
#ifdef NO_SECOND_LOOK
	still_there = oldest;
#else
	still_there = oldest_pos;
#endif
	if
	:: still_there > end_pos -> still_there = end_pos
	:: else
	fi;
	at = still_there;
	do
	:: at < end_pos ->
		assert(copy[at - oldest] == at + 1);
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
