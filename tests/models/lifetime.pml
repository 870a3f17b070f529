/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime.pml - the life of a ring: READY, CLAIMED, LIVE, ENDED, and READY again.
 * cc: -DSAFETY -DCOLLAPSE
 *
 * Code	    ringbuf/pool.c try_claim(), tw_rs_ring_claim(), tw_rs_ring_end(), tw_rs_ring_reap(),
 *	    tw_rs_ring_recycle(); pipeline/thread.c leave(), tw_threads_end_lanes().
 * Who	    Threads claim the one ring, write, and then leave (ending the ring), or die without a word: their
 *	    lane stays, and the clearer ends it later.  The owner reaps rings of dead threads, drains, recycles.
 * Memory   Every arrow is acquire or release, so steps are taken as they stand.  The owner's look at the state,
 *	    at the thread, and its compare-and-swap are three steps.
 * Claims   1 A ring has at most one living writer, and none while it is READY.  2 What was committed is
 *	    drained before the ring is given away.  3 Nobody but its thread, or who finds it dead, ends a lease.
 * Left out Images and their death (the same arrows, with the image in place of the thread), the 65,536 leases
 *	    after which half of the number comes again, the touching of pages.
 *
 * Broken   END_WITHOUT_LEASE: the end is a plain store (as it was once: a late end of a dead thread's lane ended
 *	    the next thread's ring).  RECYCLE_EARLY: recycled before it is drained.  REAP_WITHOUT_LOOK: reaped
 *	    without asking whether the thread lives.
 */
#define THREADS 3

mtype = { READY, CLAIMED, LIVE, ENDED };

mtype state = READY;
byte lease;		/* of the state word, while LIVE */
byte next_lease;
byte header_thread;	/* whose it is, in the ring's header */
byte committed, tail;
bool alive[THREADS + 1] = true;
bool writing[THREADS + 1];
byte lane_lease[THREADS + 1]; /* 0: no ring */
byte emitted, drained;
byte gone;

inline ring_end(id)
{
#ifdef END_WITHOUT_LEASE
	state = ENDED;
#else
	atomic {
		if
		:: state == LIVE && lease == lane_lease[id] -> state = ENDED
		:: else
		fi
	};
#endif
	lane_lease[id] = 0
}

proctype thread(byte id)
{
	if
	:: atomic { state == READY -> state = CLAIMED };
		/* The header and the producer are this thread's. */
		header_thread = id;
		assert(committed == tail);
		next_lease++;
		lane_lease[id] = next_lease;
		atomic {
			assert(state == CLAIMED);
			state = LIVE;
			lease = lane_lease[id];
			writing[id] = true
		};
		if
		:: atomic {
				/* Claims 1 and 3 */
				assert(state == LIVE && lease == lane_lease[id]);
				committed++;
				emitted++
			}
		:: skip
		fi;
		writing[id] = false;
		if
		:: ring_end(id)	/* leave() */
		:: skip		/* a bare system call ends it */
		fi
	:: skip			/* no ring in the pool */
	fi;
	atomic {
		alive[id] = false;
		gone++
	}
}

/* tw_threads_end_lanes(): ends what the lanes of dead threads still name; living ones have left already. */
proctype clearer()
{
	byte id;

	for (id : 1 .. THREADS) {
		if
		:: !alive[id] && lane_lease[id] -> ring_end(id)
		:: else
		fi
	}
}

proctype owner()
{
	byte seen_lease, i;

	do
	/* tw_rs_ring_reap() */
	:: atomic { state == LIVE -> seen_lease = lease };
		if
#ifdef REAP_WITHOUT_LOOK
		:: true ->
#else
		:: !alive[header_thread] ->
#endif
			atomic {
				if
				:: state == LIVE && lease == seen_lease -> state = ENDED
				:: else
				fi
			}
		:: else
		fi
	/* drain at any time: the block is stored, the tail moves */
	:: atomic { tail != committed ->
			drained = drained + committed - tail;
			tail = committed
		}
	/* ENDED, drained: recycle */
#ifdef RECYCLE_EARLY
	:: state == ENDED ->
#else
	:: atomic { state == ENDED && tail == committed -> skip };
#endif
		atomic {
			for (i : 1 .. THREADS) {
				assert(!writing[i] || !alive[i])
			}
		};
		tail = committed;
		state = READY
	:: atomic { gone == THREADS && state != LIVE && state != ENDED && tail == committed ->
			assert(drained == emitted);
			break
		}
	od
}

init {
	byte i;

	atomic {
		for (i : 1 .. THREADS) {
			run thread(i)
		}
		run clearer();
		run owner()
	}
}
