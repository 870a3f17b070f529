/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit.pml - the one permit: a ticket lock whose waiters sleep.
 * cc: -DSAFETY -DCOLLAPSE
 *
 * Code	    breakpoints/permit.c tw_permit_seize(), tw_permit_drop().
 * Claims   1 One holder at a time. 2 In the order of the tickets. 3 No waiter sleeps forever: a wake-up is not lost
 *	    between the check and the sleep.  (Deadlock is the error.)
 * Left out fork().
 *
 * Broken   WAKE_ONE: the drop wakes one sleeper, which may not be the next.  SLEEP_WITHOUT_LOOK: the futex does not
 *	    compare.
 */
#define THREADS 3
#define ROUNDS	2

byte next_ticket, serving;
byte holders;
bool asleep[THREADS];

proctype thread(byte id)
{
	byte ticket, now, rounds, i;

	do
	:: rounds < ROUNDS ->
		rounds++;
		atomic {
			ticket = next_ticket;
			next_ticket++
		};
		do
		:: true ->
			now = serving;
			if
			:: now == ticket -> break
			:: else
			fi;
			atomic {
				if
#ifdef SLEEP_WITHOUT_LOOK
				:: true -> asleep[id] = true
#else
				:: serving == now -> asleep[id] = true
				:: else
#endif
				fi
			};
			!asleep[id]
		od;
		holders++;
		assert(holders == 1 && serving == ticket);
		holders--;
		serving++;
		atomic {
			for (i : 0 .. THREADS - 1) {
				if
				:: asleep[i] ->
					asleep[i] = false;
#ifdef WAKE_ONE
					break
#endif
				:: else
				fi
			}
		}
	:: else -> break
	od
}

init {
	byte i;

	atomic {
		for (i : 0 .. THREADS - 1) {
			run thread(i)
		}
	}
}
