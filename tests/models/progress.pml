/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.pml - grace periods: a waiter, and readers whose barriers the waiter executes.
 * cc: -DSAFETY
 *
 * Code	    progress/read_side.h tw_progress_enter(), tw_progress_exit(); progress/grace.c tw_progress_wait(),
 *	    sleep_until_over(), tw_progress_wake_waiter().  Numbers of steps as there.
 * Memory   Each reader has a store buffer: its stores reach memory in order but at any later time, so its loads
 *	    overtake its stores.  Loads are in program order (acquire). membarrier() empties the buffer of every reader.
 * Claims   1 An object found by a reader is not freed while it reads. 2 A sleeping waiter is woken (deadlock is the
 * error).  Left out Joining and leaving; readers that are not allowed to wake; the time-out of the sleep, which would
 * hide 2.
 *
 * Broken   NO_BARRIER: without step 2.  NO_SECOND_BARRIER: without that of step 4.  NO_SECOND_LOOK: the sleep comes
 *	    without step 5.  ONE_BIT: epochs alternate between 1 and 2, and one round is waited for.  EARLY_END: the
 *	    section ends before the last read.
 */
#define READERS	 2
#define SECTIONS 2 /* of the first reader; the second has one less */
#define CHANGES	 2

byte epoch = 1;
byte section[READERS];	  /* in memory */
chan buffer[READERS] = [2] of { byte };
byte current;		  /* the object that readers find */
bool is_freed[CHANGES + 1];
bool has_waiter, is_asleep;

inline barrier_everywhere()
{
	d_step {
		r = 0;
		do
		:: r < READERS && nempty(buffer[r]) -> buffer[r] ? v; section[r] = v
		:: r < READERS && empty(buffer[r]) -> r++
		:: else -> break
		od;
		r = 0;
		v = 0
	}
}

#ifdef ONE_BIT
#define IS_BEHIND(i) (section[i] && section[i] != epoch)
#else
#define IS_BEHIND(i) (section[i] && section[i] < epoch)
#endif

proctype memory(byte id)
{
	byte v;

end:
	do
	:: d_step { buffer[id] ? v -> section[id] = v }
	od
}

inline wake()
{
	if
	:: has_waiter -> atomic { has_waiter = false; is_asleep = false }
	:: else
	fi
}

proctype reader(byte id)
{
	byte sections, mine, found;

	do
	:: sections < SECTIONS - id ->
		sections++;
		mine = epoch;
		buffer[id] ! mine;
		found = current;
		assert(!is_freed[found]);
#ifdef EARLY_END
		buffer[id] ! 0;
		assert(!is_freed[found]);
#else
		assert(!is_freed[found]);
		buffer[id] ! 0;
#endif
		wake();
		mine = 0;
		found = 0
	:: else -> break
	od
}

inline look()
{
	i = 0;
	is_found = false;
	do
	:: i < READERS && !is_found ->
		is_found = IS_BEHIND(i);
		i++
	:: else -> break
	od;
	i = 0
}

proctype waiter()
{
	byte changes, r, v, i;
	bool is_found;

	do
	:: changes < CHANGES ->
		changes++;
		current = changes;
		/* 1 */
#ifdef ONE_BIT
		epoch = 3 - epoch;
#else
		epoch++;
#endif
#ifndef NO_BARRIER
		barrier_everywhere();	/* 2 */
#endif
		look();			/* 3 */
		do
		:: is_found ->
			has_waiter = true;	/* 4 */
#ifndef NO_SECOND_BARRIER
			barrier_everywhere();
#endif
#ifndef NO_SECOND_LOOK
			look();			/* 5 */
#endif
			if
			:: is_found ->
				/* The futex compares. */
				atomic {
					if
					:: has_waiter -> is_asleep = true
					:: else
					fi
				};
				!is_asleep;
				look()
			:: else
			fi
		:: else -> break
		od;
		has_waiter = false;
		is_freed[changes - 1] = true
	:: else -> break
	od
}

init {
	byte id;

	atomic {
		for (id : 0 .. READERS - 1) {
			run memory(id);
			run reader(id)
		}
		run waiter()
	}
}
