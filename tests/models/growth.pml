/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.pml - images that end while their rings are scanned, and threads that die while their rings grow.
 * cc: -DSAFETY
 *
 * Code	    ringbuf/image.c tw_rs_image_claim(), end_predecessor(); ringbuf/pool.c cut(), tw_rs_ring_grow(); ringbuf/owner.c
 *	    scan_slot(), scan_table(), tw_rs_image_reap(), tw_rs_ring_reap(), tw_rs_image_recycle();
 *	    pipeline/recorder/writer.c see_lease(), is_behind_another(), tw_writer_end_ring(), tw_writer_has_rings_in_use();
 *	    pipeline/recorder/recorder.c drain_round(), end_images(); finish.c drain_for_good().
 * Threads  A process of two images: exec() makes the second.  The thread of the first cuts a small ring, writes, grows
 *	    into a larger one, writes, and ends its ring; that of the second cuts a ring, writes, and ends it.  Each may
 *	    die before any of these steps, alone, with exec(), or with the process.  The recorder runs rounds: it scans
 *	    images and their tables, drains rings, follows a stream from ring to ring, gives up images that have ended;
 *	    in between it checks for deaths.  When the process is gone it finishes.
 * Memory   Every arrow is acquire or release, so steps are taken as they stand.  The recorder's loads of an image's state, its
 *	    count of rings, a ring's state and its position are steps of their own.
 * Entries  The recorder's entries of rings are given out in any order: those of an image that was given up come again.
 * Claims   1 Each record is stored once, in the order of its stream. 2 An image is given up only when all that its
 *	    threads committed is stored. 3 The same holds at the end.
 * Left out Several threads of an image and reused rings (lifetime.pml), losses, writes of hostile programs.
 *
 * Broken   TABLE_FIRST: the count of rings is read before the state of the image: a ring cut in between is given up
 *	    unseen.  END_UNSEEN: an image whose process is found dead is given up without another scan of its table.
 *	    POSITION_FIRST: a ring's position is read before its state.  NO_HOLD: a larger ring is drained beside the
 *	    smaller one.  ONE_ROUND: the end of a recording is one round (once in the code: a larger ring whose entry
 *	    came before that of the smaller one was never drained).
 */
#define IMAGES 2
#define RINGS  3 /* 0, 1 (into which it grows): image 0; 2: image 1 */
#define NONE   RINGS

#define IMAGE(r) ((r) / 2)

mtype = { FREE, LIVE, ENDED, READY };

/* Shared memory. */
mtype image[IMAGES] = FREE;
byte ring_count[IMAGES];
mtype ring[RINGS] = FREE;
byte committed[RINGS], first_pos; /* of ring 1 */
bool has_grown_from, has_grown_to;

/* The kernel's knowledge. */
bool process_lives = true, thread_lives[IMAGES] = true;

byte emitted[IMAGES], stored[IMAGES];

/* ---- the program ---- */

inline cut(i, r)
{
	ring_count[i]++;
	ring[r] = LIVE
}

inline write_record(i, r)
{
	atomic {
		committed[r]++;
		emitted[i]++
	}
}

inline end_ring_of_thread(r)
{
	atomic {
		if
		:: ring[r] == LIVE -> ring[r] = ENDED
		:: else
		fi
	}
}

inline grow()
{
	ring_count[0]++;
	atomic {
		first_pos = committed[0];
		committed[1] = committed[0];
		has_grown_from = true
	};
	ring[1] = LIVE;
	may_die();
	has_grown_to = true;
	may_die();
	end_ring_of_thread(0)
}

inline may_die()
{
	if
	:: skip
	:: goto dead
	fi
}

inline live(i)
{
	image[i] = LIVE;
	if
	:: i == 1 -> atomic {
			if
			:: image[0] == LIVE -> image[0] = ENDED
			:: else
			fi
		}
	:: else
	fi;
	may_die();
	cut(i, 2 * i);
	may_die();
	write_record(i, 2 * i);
	may_die();
	if
	:: i == 0 ->
		grow();
		may_die();
		write_record(0, 1);
		may_die();
		end_ring_of_thread(1)
	:: else -> end_ring_of_thread(2)
	fi
}

proctype program()
{
	byte i = 0;

next:
	live(i);
dead:
	/* Also while the process goes on; exec() ends it at the latest. */
	thread_lives[i] = false;
	if
	:: i == 0 -> i = 1; goto next
	:: process_lives = false
	fi
}

/* ---- the recorder ---- */

mtype seen_image[IMAGES] = FREE;
bool is_over[IMAGES];
byte seen_count[IMAGES];
byte entry[RINGS] = NONE;
bool is_listed[RINGS];
bool is_known[RINGS], is_held, is_moved, has_successor; /* ring 1; ring 0; ring 0 */
byte pos[RINGS];
bool is_finishing;

#define STATE(r) (ring[r] == LIVE && seen_image[IMAGE(r)] == ENDED -> ENDED : ring[r])
#define IS_SEEN(r) (is_known[r] && !((r) == 1 && is_held) && !((r) == 0 && is_moved))

inline look_at_state(i)
{
	atomic {
		if
		:: !is_over[i] && (image[i] == ENDED || (image[i] == LIVE && seen_image[i] == FREE)) -> seen_image[i] = image[i]
		:: else
		fi
	}
}

inline scan_table(i)
{
	atomic {
		do
		:: seen_image[i] != FREE && seen_count[i] < ring_count[i] ->
			if
			:: e = 0
			:: e = 1
			:: e = 2
			fi;
			do
			:: entry[e] != NONE -> e = (e + 1) % RINGS
			:: else -> break
			od;
			entry[e] = 2 * i + seen_count[i];
			is_listed[entry[e]] = true;
			e = 0;
			seen_count[i]++
		:: else -> break
		od
	}
}

inline look_at_image(i)
{
#ifdef TABLE_FIRST
	/* As if the image were known already. */
	atomic {
		if
		:: seen_image[i] == FREE && image[i] != FREE && !is_over[i] -> seen_image[i] = LIVE
		:: else
		fi
	};
	scan_table(i);
	look_at_state(i)
#else
	look_at_state(i);
	scan_table(i)
#endif
}

inline see(r)
{
	if
	:: is_listed[r] && !is_known[r] && (STATE(r) == LIVE || STATE(r) == ENDED) ->
		is_known[r] = true;
		pos[r] = (r == 1 -> first_pos : 0)
	:: else
	fi
}

inline recycle(r)
{
	is_known[r] = false;
	if
	:: r == 0 -> is_moved = false
	:: else
	fi;
	ring[r] = READY
}

inline look_at_ring(r)
{
	if
	:: r == 1 && is_listed[1] && !is_known[1] && (STATE(1) == LIVE || STATE(1) == ENDED) ->
		see(1);
		see(0);
#ifndef NO_HOLD
		if
		:: is_known[0] && !is_moved ->
			is_held = true;
			has_successor = true
		:: else
		fi
#endif
	:: else -> see(r)
	fi;
	if
	:: r == 0 && is_moved && STATE(0) == ENDED -> recycle(0)
	:: else
	fi
}

inline store(r, to)
{
	/* Claim 1 */
	assert(pos[r] == stored[IMAGE(r)]);
	stored[IMAGE(r)] = to;
	pos[r] = to
}

inline end_ring(r)
{
	if
	:: r == 0 && !has_successor && has_grown_to ->
		look_at_image(0);
		atomic { look_at_ring(1) }
	:: else
	fi;
	atomic {
		if
		:: r == 0 && has_successor ->
			pos[1] = (pos[1] > pos[0] -> pos[1] : pos[0]);
			is_held = false;
			is_moved = true;
			has_successor = false
		:: else
		fi;
		if
		:: STATE(r) == ENDED -> recycle(r)
		:: else
		fi
	}
}

inline take(r)
{
#ifdef POSITION_FIRST
	seen_pos = committed[r];
	is_ended = STATE(r) == ENDED || (r == 0 && has_successor && is_finishing);
#else
	is_ended = STATE(r) == ENDED || (r == 0 && has_successor && is_finishing);
	seen_pos = committed[r];
#endif
	atomic { store(r, seen_pos) };
	if
	:: is_ended -> end_ring(r)
	:: else
	fi;
	seen_pos = 0;
	is_ended = false
}

#define IN_USE(r) (is_listed[r] && STATE(r) == ENDED && (!is_known[r] || IS_SEEN(r)))

inline give_up(i)
{
	/* Claim 2 */
	assert(stored[i] == emitted[i]);
	for (e : 0 .. RINGS - 1) {
		if
		:: entry[e] != NONE && IMAGE(entry[e]) == i -> entry[e] = NONE
		:: else
		fi
	}
	for (e : 0 .. RINGS - 1) {
		if
		:: IMAGE(e) == i ->
			is_listed[e] = false;
			is_known[e] = false
		:: else
		fi
	}
	if
	:: i == 0 -> is_held = false
	:: else
	fi;
	e = 0;
	is_over[i] = true;
	seen_image[i] = FREE;
	image[i] = FREE
}

inline end_images()
{
	atomic {
		if
		:: seen_image[0] == ENDED && !IN_USE(0) && !IN_USE(1) -> give_up(0)
		:: else
		fi;
		if
		:: seen_image[1] == ENDED && !IN_USE(2) -> give_up(1)
		:: else
		fi
	}
}

inline reap()
{
	atomic {
		for (n : 0 .. IMAGES - 1) {
			if
			:: seen_image[n] == LIVE && !process_lives -> seen_image[n] = ENDED
			:: else
			fi
		}
#ifdef END_UNSEEN
		end_images();
#endif
		for (n : 0 .. RINGS - 1) {
			if
			:: is_listed[n] && ring[n] == LIVE && seen_image[IMAGE(n)] == LIVE && !thread_lives[IMAGE(n)] -> ring[n] = ENDED
			:: else
			fi
		}
		n = 0
	}
}

inline round()
{
	look_at_image(0);
	look_at_image(1);
	for (n : 0 .. RINGS - 1) {
		atomic {
			if
			:: entry[n] != NONE -> look_at_ring(entry[n])
			:: else
			fi
		}
	}
	n = 0;
	for (n : 0 .. RINGS - 1) {
		if
		:: entry[n] != NONE && IS_SEEN(entry[n]) -> take(entry[n])
		:: else
		fi
	}
	n = 0;
	end_images()
}

#define LEFT(r) (((r) == 1 && is_held) || (IS_SEEN(r) && STATE(r) == ENDED))

proctype recorder()
{
	byte e, n, seen_pos;
	bool is_ended;

	do
	:: round()
	:: reap()
	:: !process_lives -> break
	od;
	is_finishing = true;
	look_at_image(0);
	look_at_image(1);
	reap();
	round();
#ifndef ONE_ROUND
	do
	:: LEFT(0) || LEFT(1) || LEFT(2) -> round()
	:: else -> break
	od;
#endif
	/* Claim 3 */
	assert(stored[0] == emitted[0] && stored[1] == emitted[1])
}

init {
	atomic {
		run program();
		run recorder()
	}
}
