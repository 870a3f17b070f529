/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocked.pml - a producer that sleeps for space while its session is destroyed.
 * cc: -DSAFETY
 *
 * Code	    pipeline/thread/thread.c wait_for_room(), wait_outside(), tw_threads_end_rings(), is_anybody_waiting();
 *	    session/session.c tw_session_clear(); ringbuf/pool.c tw_rs_close().
 * Threads  A thread makes calls; the consumer frees space once, so most calls wait.  The destroyer takes the session's
 *	    bit, waits for read sections, closes, waits for sleepers, waits again, frees the ring.  Then another session
 *	    gets the same bit and a ring of its own.
 * Memory   waiting_session, the bit and read sections are sequentially consistent (grace periods are).
 * Claims   1 A ring is not touched after it was freed. 2 A call that finds its session gone after its wait writes
 *	    nothing, and never through the old thread_ring into the new session. 3 No thread waits forever.
 * Left out Handlers that leave a wait by longjmp and never return: the destroyer waits for them (docs/proofs.md).
 *
 * Broken   NO_LOOK_FOR_WAITERS: sleepers are not waited for.  NO_RECHECK: a woken thread does not check whether its
 *	    session is still wanted.  NO_CLOSE: sleepers are not told.
 */
#define CALLS 3

bool wanted = true;	/* the generation and the tracee want the session */
byte session = 1;	/* the session that has the bit */
byte ring = 1;		/* the session whose ring exists; 0: freed */
byte thread_ring;		/* the session whose ring the thread's thread_ring names; 0: none */
bool closed;		/* of the old set; the new one is never full here */
bool waiting;
bool reading;
byte section;
bool first_wait_over;
byte room = 1;		/* the consumer frees space once, at any time */

inline wait_for_readers()
{
	atomic {
		before = section;
		was = reading
	};
	!was || !reading || section != before
}

#define TOUCH(s) assert(ring == s)

proctype producer()
{
	byte calls, mine;
	bool still, has_space;

	do
	:: calls < CALLS ->
		calls++;
		atomic {
			reading = true;
			section++
		};
		if
		:: wanted ->
			/* catch_up(): a ring for this thread_ring */
			if
			:: thread_ring == 0 -> thread_ring = session
			:: else
			fi;
			mine = thread_ring;
			TOUCH(mine);
			if
			:: mine == 1 ->
				/* wait_for_room(): the old session's ring stays full */
				waiting = true;
				reading = false;
				do
				:: true ->
					TOUCH(mine);	/* the futex lies in the ring */
					if
					:: closed ->
						has_space = false;
						break
					:: room > 0 ->
						atomic { room--; has_space = true };
						break
					fi
				od;
				atomic {
					reading = true;
					section++
				};
#ifdef NO_RECHECK
				still = true;
#else
				still = (wanted && thread_ring == mine);
#endif
				waiting = false;
				if
				:: still ->
					/* Claim 2: the record, or tw_rb_refuse(). */
					TOUCH(mine);
					assert(!first_wait_over)
				:: else
				fi
			:: else ->
				/* A record of the new session. */
				assert(wanted && thread_ring == session);
				TOUCH(mine)
			fi
		:: else
		fi;
		reading = false
	:: else -> break
	od
}

proctype destroyer()
{
	byte before;
	bool was;

	wanted = false;		/* 1 and 2: one switch, and the flags */
	wait_for_readers();	/* 7 of the recipe, and 3 */
	first_wait_over = true;
#ifndef NO_CLOSE
	closed = true;		/* 4 tw_rs_close() */
#endif
#ifndef NO_LOOK_FOR_WAITERS
	!waiting;
#endif
	wait_for_readers();
	thread_ring = 0;		/* end_ring() */
	ring = 0;
	/* The bit is free: another session takes it. */
	atomic {
		session = 2;
		ring = 2
	};
	wanted = true
}

init {
	atomic {
		run producer();
		run destroyer()
	}
}
