/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.pml - one ring: reserve, commit, peek, consume; pads, refusals, loss records; death at any step.
 * cc: -DSAFETY -DCOLLAPSE
 *
 * Code	    ringbuf/ringbuf.h tw_rb_reserve(), tw_rb_commit(); produce.c find_space(), put_pad(), tell_loss(),
 *	    tw_rb_reserve_slow(); consume.c tw_rb_peek(), tw_rb_consume(); the writer's rule that a block is
 *	    stored before the tail moves (docs/architecture.md).
 * Memory   The producer's stores wait in a buffer and reach memory in any order; only the release store of
 *	    committed_pos waits for all before it (weaker than x86, as weak as C11's relaxed stores).  Stores after a
 *	    release may overtake it.  The consumer's loads follow its acquire load of committed_pos.
 * Claims   1 A record is seen whole. 2 In order, each once, and missing ones are reported at their position with the
 *	    exact number. 3 No byte is written before the consumer has passed it. 4 If all processes die at any step,
 *	    everything committed is in the file or between tail and committed_pos.
 * Left out Overwriting (ring_overwrite.pml), waiting (block.pml), hostile content, time stamps, several sizes
 *	    of ring: 4 cells, records of 1 or 2, RECORDS of them.
 *
 * Broken   BYTES_AFTER_COMMIT: the position is stored first.  RELAXED_COMMIT: it does not wait for the bytes.
 *	    TAIL_FIRST: the tail moves before the bytes are read.  STORE_LATE: it moves before the block is stored.
 */
#ifndef RECORDS
#define RECORDS 6
#endif
#define CELLS	4
#define PAD	1
#define LOSS	2
#define WHOLE1	3 /* a record of one cell */
#define HEAD2	4 /* the first cell of a record of two */
#define BODY2	5
#define NOTHING 0

/* Memory.  A cell is {kind, value}; value: the record's number, or the number lost. */
byte kind[CELLS];
byte value[CELLS];
byte committed_pos, tail_pos;

/* The producer's store buffer: entry 0 .. CELLS-1 is a cell, CELLS is committed_pos. */
#define BUFFER 6
byte b_place[BUFFER], b_kind[BUFFER], b_value[BUFFER];
byte b_count;

/* The file: the last record stored or reported as lost, and up to which position.  One step: a block has a checksum. */
byte stored, stored_pos;
bool producer_done;

inline buffer_store(p, k, v)
{
	atomic {
		b_count < BUFFER;
		b_place[b_count] = p;
		b_kind[b_count] = k;
		b_value[b_count] = v;
		b_count++
	}
}

/*
 * May store number i reach memory now?  Not before an earlier store to the same location; a release only as the first.
 */
inline flush_one()
{
	atomic {
		b_count > 0;
		i = 0;
		do
		:: i + 1 < b_count -> i++
		:: break
		od;
		j = 0;
		ok = true;
		do
		:: j < i ->
			if
			:: b_place[j] == b_place[i] -> ok = false
			:: else
			fi;
			j++
		:: else -> break
		od;
#ifndef RELAXED_COMMIT
		if
		:: b_place[i] == CELLS && i > 0 -> ok = false
		:: else
		fi;
#endif
		if
		:: !ok
		:: ok && b_place[i] == CELLS -> committed_pos = b_value[i]
		:: ok && b_place[i] < CELLS ->
			kind[b_place[i]] = b_kind[i];
			value[b_place[i]] = b_value[i]
		fi;
		if
		:: ok ->
			j = i;
			do
			:: j + 1 < b_count ->
				b_place[j] = b_place[j + 1];
				b_kind[j] = b_kind[j + 1];
				b_value[j] = b_value[j + 1];
				j++
			:: else -> break
			od;
			b_count--;
			b_place[b_count] = 0;
			b_kind[b_count] = 0;
			b_value[b_count] = 0
		:: else
		fi;
		i = 0;
		j = 0;
		ok = false
	}
}

/* As the file's reader does: the next record, or those reported as lost. */
#define EXPECT(number) assert(number == seen + 1)

/* find_space(): may a record of `need` cells go to pos, after a pad?  Loads the tail if the cached one is too old. */
inline find_space(need)
{
	d_step {
		pad = 0;
		if
		:: pos % CELLS + need > CELLS -> pad = CELLS - pos % CELLS
		:: else
		fi
	}
	if
	:: pos + pad + need > cached_tail + CELLS -> cached_tail = tail_pos
	:: else
	fi;
	room = (pos + pad + need <= cached_tail + CELLS);
	if
	:: room && pad > 0 ->
		assert(pos + 1 <= tail_pos + CELLS);
		buffer_store(pos % CELLS, PAD, pad);
		pos = pos + pad
	:: else
	fi
}

inline write_and_commit(cells, k, v)
{
	/* Claim 3, against the consumer's actual tail. */
	assert(pos + cells <= tail_pos + CELLS);
#ifdef BYTES_AFTER_COMMIT
	buffer_store(CELLS, 0, pos + cells);
#endif
	buffer_store(pos % CELLS, k, v);
	if
	:: cells == 2 -> buffer_store((pos + 1) % CELLS, BODY2, v)
	:: else
	fi;
	pos = pos + cells;
#ifndef BYTES_AFTER_COMMIT
	buffer_store(CELLS, 0, pos)
#endif
}

proctype producer()
{
	byte pos, cached_tail, pad, number, cells, lost, told;
	bool room;

	do
	:: number < RECORDS ->
		number++;
		if
		:: cells = 1
		:: cells = 2
		fi;
		room = true;
		if
		:: lost != told ->
			find_space(1);
			if
			:: room ->
				write_and_commit(1, LOSS, lost - told);
				told = lost
			:: else
			fi
		:: else
		fi;
		if
		:: room -> find_space(cells)
		:: else
		fi;
		if
		:: room && cells == 1 -> write_and_commit(1, WHOLE1, number)
		:: room && cells == 2 -> write_and_commit(2, HEAD2, number)
		:: !room -> lost++
		fi
	:: else -> break
	od;
	/* Losses not reported at the end are in the header: tw_rb_unreported_loss(). */
	b_count == 0;
	producer_done = true
}

/* The producer's processor: stores leave the buffer at any time. */
proctype memory()
{
	byte i, j;
	bool ok;
end:
	do
	:: flush_one()
	od
}

/* One block is one record here.  Reads cell by cell: the producer may write between the reads. */
inline read_record()
{
	k = kind[at % CELLS];
	v = value[at % CELLS];
	assert(k == PAD || k == LOSS || k == WHOLE1 || k == HEAD2);
	if
	:: k == PAD -> at = at + v
	:: k == LOSS ->
		seen = seen + v;
		at = at + 1
	:: k == WHOLE1 ->
		EXPECT(v);
		seen = v;
		at = at + 1
	:: k == HEAD2 ->
		EXPECT(v);
		assert(kind[(at + 1) % CELLS] == BODY2);
		assert(value[(at + 1) % CELLS] == v);
		seen = v;
		at = at + 2
	fi
}

proctype consumer()
{
	byte at, seen, end_pos, k, v;

	do
	:: atomic { committed_pos > at -> end_pos = committed_pos };
		do
		:: at < end_pos ->
#ifdef TAIL_FIRST
			tail_pos = end_pos;
#endif
			read_record();
#ifdef STORE_LATE
			tail_pos = at;
			atomic { stored = seen; stored_pos = at }
#else
			atomic { stored = seen; stored_pos = at };
			tail_pos = at
#endif
		:: else -> break
		od
	:: producer_done && committed_pos == at -> break
	od
}

/* All processes die at any step; recovery reads the file, then the ring from where the file ends. */
proctype death()
{
	byte at, seen, k, v;

	d_step {
		seen = stored;
		at = (tail_pos > stored_pos -> tail_pos : stored_pos);
		do
		:: at < committed_pos ->
			k = kind[at % CELLS];
			v = value[at % CELLS];
			if
			:: k == PAD -> at = at + v
			:: k == LOSS ->
				seen = seen + v;
				at = at + 1
			:: k == WHOLE1 ->
				EXPECT(v);
				seen = v;
				at = at + 1
			:: k == HEAD2 ->
				EXPECT(v);
				assert(kind[(at + 1) % CELLS] == BODY2 && value[(at + 1) % CELLS] == v);
				seen = v;
				at = at + 2
			:: else -> assert(false)
			fi
		:: else -> break
		od;
		at = 0;
		seen = 0;
		k = 0;
		v = 0
	}
}

init {
	atomic {
		run producer();
		run memory();
		run consumer();
		run death()
	}
}
