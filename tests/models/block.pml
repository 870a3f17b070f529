/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.pml - a producer that waits for space, and the consumer that wakes it.
 *
 * Code	    ringbuf/produce.c tw_rb_wait_space(), has_space(); consume.c tw_rb_consume().
 * Memory   tail_pos and waiting are sequentially consistent, as in the code.  With RELAXED_TAIL the consumer's store of
 *	    the tail stays in its store buffer while it loads the flag.
 * Claim    No wake-up is lost: a producer never sleeps forever while there is space.  (Deadlock is the error.  The code
 *	    also wakes by itself each 50 ms, for dead consumers; that is left out, so that a lost wake-up shows.)
 * Left out Closing (blocked.pml), time-outs.
 *
 * Broken   CHECK_BEFORE_FLAG: the producer checks for space first, then sets the flag.  RELAXED_TAIL: see above.
 */
#define ROUNDS 4

byte produced, tail; /* a ring of one record */
bool waiting;
bool asleep;	     /* in the kernel's queue of the futex */

/* futex(WAIT, 1): compares and sleeps in one step. */
inline futex_wait()
{
	atomic {
		if
		:: waiting -> asleep = true
		:: else
		fi
	};
	!asleep
}

active proctype producer()
{
	do
	:: produced < ROUNDS ->
		do
#ifdef CHECK_BEFORE_FLAG
		:: true ->
			if
			:: produced - tail < 1 -> break
			:: else
			fi;
			waiting = true;
			futex_wait()
#else
		:: true ->
			waiting = true;
			if
			:: produced - tail < 1 -> break
			:: else
			fi;
			futex_wait()
#endif
		od;
		waiting = false;
		produced++
	:: else -> break
	od
}

active proctype consumer()
{
	byte pos;
	bool seen;

	do
	:: pos < ROUNDS ->
		produced > pos;
		pos++;
#ifdef RELAXED_TAIL
		seen = waiting;
		tail = pos;
#else
		tail = pos;
		seen = waiting;
#endif
		if
		:: seen ->
			waiting = false; /* the exchange */
			asleep = false	 /* futex(WAKE) */
		:: else
		fi
	:: else -> break
	od
}
