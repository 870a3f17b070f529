/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.pml - the life of sessions: handles, weak ids, destroy, and a last put that no thread waits for.
 * cc: -DSAFETY
 *
 * Code	    session/session.c tw_session_put(); session/registry.c try_get(), tw_session_lock(); session/session.c, tw_session_destroy(), win(),
 *	    win_dropped(), tw_sessions_clear_dropped(), tw_session_clear(), delist(), drop_reference().
 * Threads  Three sessions; the owners of two put their handles, that of the third when all else is quiet; a stranger has
 *	    the weak id of the first, locks it and puts, or destroys and puts; a thread clears dropped sessions, twice,
 *	    and once more at the end.
 * Memory   Each atomic is one step; the registry's lock is a lock.
 * Claims   1 Freed once, and never used after. 2 Cleared once, and a dropped session only while it has no handle. 3
 *	    When all is quiet and some thread calls tw_progress(), no dropped session is left.
 *	    4 When the last handle is put, no weak id gives a new one.
 * Left out What clearing does (blocked.pml, generation.pml), the permit, writers.
 *
 * Broken   WEAK_WITHOUT_CHECK: a weak id is upgraded without checking whether the handles are 0.  COUNT_DROPPED: the
 *	    flag is a count, as it was once.  FLAG_BEFORE_HANDLES: put sets the flag before it takes the handle away.
 *	    NO_REGISTRY_REFERENCE: the registry keeps no reference of its own.
 */
#define SESSIONS 3

mtype = { ALIVE, CLEARING, DEAD };

mtype state[SESSIONS] = ALIVE;
byte handles[SESSIONS] = 1;
#ifdef NO_REGISTRY_REFERENCE
byte references[SESSIONS] = 1;
#else
byte references[SESSIONS] = 2;
#endif
bool listed[SESSIONS] = true;
bool freed[SESSIONS];
byte cleared[SESSIONS];
bool locked;
bool had_last_put[SESSIONS];
byte users_done;
#ifdef COUNT_DROPPED
short dropped;
#else
bool dropped;
#endif

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

#define USE(s) assert(!freed[s])

inline drop_reference(s)
{
	USE(s);
	atomic {
		assert(references[s] > 0);
		references[s]--;
		if
		:: references[s] == 0 ->
			assert(!freed[s]);
			freed[s] = true
		:: else
		fi
	}
}

inline say_dropped()
{
#ifdef COUNT_DROPPED
	dropped = dropped + 1
#else
	dropped = true
#endif
}

inline put(s)
{
	USE(s);
#ifdef FLAG_BEFORE_HANDLES
	if
	:: handles[s] == 1 && state[s] == ALIVE -> say_dropped()
	:: else
	fi;
	handles[s]--;
#else
	atomic {
		handles[s]--;
		is_last = (handles[s] == 0);
		had_last_put[s] = had_last_put[s] || is_last
	};
	USE(s);
	if
	:: is_last && state[s] == ALIVE -> say_dropped()
	:: else
	fi;
#endif
	drop_reference(s)
}

inline clear(s)
{
	USE(s);
	cleared[s]++;
	assert(cleared[s] == 1);
	lock();
	listed[s] = false;
	unlock();
	USE(s);
	state[s] = DEAD;
#ifndef NO_REGISTRY_REFERENCE
	drop_reference(s)
#endif
}

inline destroy(s)
{
	USE(s);
	won = false;
	atomic {
		if
		:: state[s] == ALIVE ->
			state[s] = CLEARING;
			won = true
		:: else
		fi
	};
	if
	:: won -> clear(s)
	:: else
	fi
}

proctype owner(byte s)
{
	bool is_last;

	put(s);
	users_done++
}

/* tw_session_lock() of session 0, then a use. */
proctype stranger()
{
	bool is_last, got, won;

	lock();
	if
	:: listed[0] ->
		USE(0);
		if
		:: state[0] == ALIVE ->
			atomic {
#ifndef WEAK_WITHOUT_CHECK
				if
				:: handles[0] > 0 ->
#endif
					assert(!had_last_put[0]);
					handles[0]++;
					got = true
#ifndef WEAK_WITHOUT_CHECK
				:: else
				fi
#endif
			};
			if
			:: got -> atomic { USE(0); references[0]++ }
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	unlock();
	if
	:: got ->
		if
		:: destroy(0)
		:: skip
		fi;
		put(0)
	:: else
	fi;
	users_done++
}

/* tw_sessions_clear_dropped(), called `times` times, and once more when all others are quiet. */
proctype progress(byte times)
{
	byte s, found;
	bool look;

	do
	:: times > 0 ->
		times--;
#ifdef COUNT_DROPPED
		look = (dropped != 0);
#else
		atomic {
			look = dropped;
			dropped = false
		};
#endif
		do
		:: look ->
			found = SESSIONS;
			lock();
			for (s : 0 .. SESSIONS - 1) {
				if
				:: found == SESSIONS && listed[s] && handles[s] == 0 ->
					atomic {
						if
						:: state[s] == ALIVE ->
							state[s] = CLEARING;
							found = s;
							/* Claim 2 */
							assert(handles[s] == 0)
						:: else
						fi
					}
				:: else
				fi
			}
			unlock();
			if
			:: found == SESSIONS -> break
			:: else ->
#ifdef COUNT_DROPPED
				dropped = dropped - 1;
#endif
				assert(handles[found] == 0);
				clear(found);
				assert(handles[found] == 0)
			fi
		:: else -> break
		od
	:: else -> break
	od;
	users_done++
}

init {
	byte s, last;

	atomic {
		run owner(0);
		run owner(1);
		run stranger();
		run progress(2)
	};
	users_done == 4;
	if
	:: last = 1
	:: last = 2;
		run owner(2);
		users_done == 5
	fi;
	run progress(1);
	users_done == last + 4;
	/* Claims 1 and 3 */
	for (s : 0 .. last) {
		assert(handles[s] == 0);
		assert(state[s] == DEAD && cleared[s] == 1);
		assert(freed[s])
	}
}
