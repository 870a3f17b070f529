/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime.pml - the life of a ring: READY, CLAIMED, LIVE, ENDED, and READY again.
 * cc: -DSAFETY
 *
 * Code	    ringbuf/pool.c try_claim(), tw_rs_ring_claim(), tw_rs_ring_end(), tw_rs_ring_reap(),
 *	    tw_rs_ring_recycle(); pipeline/thread/thread.c join(), leave(), tw_threads_end_rings(),
 *	    tw_threads_after_fork_in_child().
 * Threads  Threads claim the one ring, write, and then leave (ending the ring), or die without notice: their thread_ring
 *	    stays, and the clearer ends it later.  The owner reaps rings of dead threads, drains, recycles.  Thread 1
 *	    calls vfork() before its ring or with it: the child runs with the thread's memory, and so its thread_ring,
 *	    under a number of its own that is soon dead; the thread is stopped meanwhile.  Thread 2 forks in the middle
 *	    of a record: the child continues with a copy of the thread_ring, and the ring's memory is the same.
 * Memory   Every arrow is acquire or release, so steps are executed in order.  The owner's load of the state, its check
 *	    of the thread, and its compare-and-swap are three steps.
 * Claims   1 A ring has at most one living writer, and none while it is READY. 2 Committed records are drained before
 *	    the ring is given away. 3 Only its thread, or a process that finds it dead, ends a lease.
 *	    4 Nothing is committed twice, and no position goes back.
 * Left out Images and their death, and rings that grow (growth.pml), the 65,536 leases after which half of the number comes
 *	    again, the touching of pages.
 *
 * Broken   END_WITHOUT_LEASE: the end is a plain store (as it was once: a late end of a dead thread's thread_ring ended
 *	    the next thread's ring).  RECYCLE_EARLY: recycled before it is drained.  REAP_WITHOUT_LOOK: reaped without
 *	    checking that the thread is dead.  CHILD_CLAIMS: a vfork() child claims a ring for the thread whose memory
 *	    it has, under its own number (once in the code): the dead owner's ring is written by the living thread.
 *	    CHILD_COMMITS: a forked child ends the record that its parent was writing (once in the code).
 */
#define THREADS 3
#define VFORKED 4 /* the number of the child of thread 1 */

mtype = { READY, CLAIMED, LIVE, ENDED };

mtype state = READY;
byte lease;		/* in the state word, while LIVE */
byte next_lease;
byte header_thread;	/* the thread in the ring's header */
byte committed, tail;
bool alive[THREADS + 2] = true;
bool writing[THREADS + 1];
byte thread_ring_lease[THREADS + 1]; /* 0: no ring */
byte thread_ring_pos[THREADS + 1];   /* the producer's next position */
bool vforked, forked;
byte emitted, drained;
byte gone;

inline ring_end(id)
{
#ifdef END_WITHOUT_LEASE
	state = ENDED;
#else
	atomic {
		if
		:: state == LIVE && lease == thread_ring_lease[id] -> state = ENDED
		:: else
		fi
	};
#endif
	thread_ring_lease[id] = 0
}

/* One record, written with this thread_ring: one store publishes it. */
inline write_record(w)
{
	atomic {
		/* Claims 1, 3 and 4 */
		assert(state == LIVE && lease == thread_ring_lease[w]);
		assert(committed == thread_ring_pos[w]);
		thread_ring_pos[w]++;
		committed = thread_ring_pos[w];
		emitted++
	}
}

/* tw_rs_ring_claim() for the thread_ring of a thread, by the thread or, as a mistake, by its child. */
inline claim(thread_ring, whose)
{
	/* The header and the producer are this thread's. */
	header_thread = whose;
	assert(committed == tail);
	next_lease++;
	thread_ring_lease[thread_ring] = next_lease;
	thread_ring_pos[thread_ring] = committed;
	atomic {
		assert(state == CLAIMED);
		state = LIVE;
		lease = thread_ring_lease[thread_ring];
		writing[thread_ring] = true
	}
}

/* A child that has the thread's memory and thread_ring; the thread waits for its end. */
inline vfork_child(parent)
{
	vforked = true;
	if
	:: thread_ring_lease[parent] ->
		/* With the thread's thread_ring. */
		write_record(parent)
#ifdef CHILD_CLAIMS
	:: !thread_ring_lease[parent] && state == READY ->
		atomic { state == READY -> state = CLAIMED };
		claim(parent, VFORKED);
		write_record(parent)
#endif
	:: skip /* no ring of its own: counted */
	fi;
	alive[VFORKED] = false
}

/* The copy of a thread that was writing a record continues it, in the same shared memory. */
proctype forked_child(byte pos)
{
#ifdef CHILD_COMMITS
	atomic {
		committed = pos + 1;
		emitted++
	}
#else
	/* Its thread rings were cleared: it writes nowhere. */
	skip
#endif
}

proctype thread(byte id)
{
	if
	:: id == 1 -> vfork_child(id)
	:: skip
	fi;
	if
	:: thread_ring_lease[id] -> skip /* claimed by the child, as a mistake */
	:: atomic { !thread_ring_lease[id] && state == READY -> state = CLAIMED }; claim(id, id)
	:: !thread_ring_lease[id] -> goto over /* no ring in the pool */
	fi;
	if
	:: id == 2 ->
		atomic {
			forked = true;
			run forked_child(thread_ring_pos[id])
		}
	:: skip
	fi;
	if
	:: write_record(id)
	:: skip
	fi;
	if
	:: id == 1 && !vforked -> vfork_child(id); write_record(id)
	:: else
	fi;
	writing[id] = false;
	if
	:: ring_end(id)	/* leave() */
	:: skip		/* a bare system call ends it */
	fi;
over:
	atomic {
		alive[id] = false;
		gone++
	}
}

/*
 * tw_threads_end_rings(): ends the rings that dead threads' thread rings still name; living threads have left already.
 */
proctype clearer()
{
	byte id;

	for (id : 1 .. THREADS) {
		if
		:: !alive[id] && thread_ring_lease[id] -> ring_end(id)
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
