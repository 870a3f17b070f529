/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation.pml - two generations of two places, switched by one index under running hits.
 * cc: -DSAFETY -DCOLLAPSE
 *
 * Code	    breakpoints/commit.c tw_bp_commit() (steps in the comments below), bp.c replace_parts();
 *	    pipeline/hit/hit.c hit(); progress/ as its contract: a wait ends when every read section that was
 *	    under way at its beginning has ended.
 * Memory   The writer's stores reach memory in order (x86) where it publishes by release; stores while
 *	    staging are seen at any time before the switch, since nothing in the model orders readers by them.
 * Claims   1 Nothing that a hit holds is freed or written. 2 All changes of a transaction are seen at one moment: a hit
 *	    that has seen the new setting of one place never sees the old one of the other.
 *	    3 When a change has returned, no hit works with the old setting.  Left out Sessions (one), other readers
 * (they share nothing with this one), text patching (a place is one
 *	    armed word), memory that runs out.
 *
 * Broken   NO_WAIT: step 7 is left out.  FREE_FIRST: parts are freed before it.  SWITCH_FIRST: the switch comes
 *	    before new places are installed.  ONE_BY_ONE: each place has an index of its own.  SWITCH_UNORDERED: the
 *	    index is stored without release, and reaches memory before what was staged.
 */
#define PLACES	2
#define CHANGES 3
#define PARTS	6 /* 0: none; parts are not reused, so that a use after free shows */

bool armed[PLACES];
/* gen[index * PLACES + place]: the part; 0 if the session does not want calls here. */
byte gen[4];
byte current;
#ifdef ONE_BY_ONE
byte current_of[PLACES];
#define CURRENT(place) current_of[place]
#else
#define CURRENT(place) current
#endif
bool allocated[8];
byte version_of[8]; /* by part */
bool is_cleared; /* the last change, which clears, has been switched to */
byte returned;	    /* changes that have returned; version n is made by change n */
bool reading;
byte section; /* counts read sections */

/* tw_progress_wait(): a section that was under way has ended. */
inline wait()
{
	atomic {
		before = section;
		was = reading
	};
	!was || !reading || section != before
}

proctype writer()
{
	byte change = 1, place, next_part = 1, staging;
	byte before;
	bool was;

	do
	:: change <= CHANGES ->
		/* 2 fill the staging generation: the first two changes set both places, the last clears both */
		staging = 1 - current;
#ifdef SWITCH_UNORDERED
		current = staging;
#endif
		for (place : 0 .. PLACES - 1) {
			if
			:: change < CHANGES ->
				d_step {
					allocated[next_part] = true;
					version_of[next_part] = change
				};
				gen[staging * PLACES + place] = next_part;
				next_part++
			:: else -> gen[staging * PLACES + place] = 0
			fi
		}
#ifdef SWITCH_FIRST
		current = staging;	/* and 6 below changes nothing any more */
#endif
		/* 4 install; 3 and 5 are for code only */
		for (place : 0 .. PLACES - 1) {
			if
			:: change < CHANGES -> armed[place] = true
			:: else
			fi
		}
		/* 6 switch */
#ifdef ONE_BY_ONE
		for (place : 0 .. PLACES - 1) {
			current_of[place] = staging
		}
#endif
		atomic {
			current = staging;
			is_cleared = (change == CHANGES)
		};
		staging = 1 - current;
#ifdef FREE_FIRST
		for (place : 0 .. PLACES - 1) {
			allocated[gen[staging * PLACES + place]] = false
		}
#endif
#ifndef NO_WAIT
		wait(); /* 7 */
#endif
		/* 8 uninstall */
		for (place : 0 .. PLACES - 1) {
			if
			:: gen[current * PLACES + place] == 0 -> armed[place] = false
			:: else
			fi
		}
		/* 10 consolidate, 12 free */
		for (place : 0 .. PLACES - 1) {
			allocated[gen[staging * PLACES + place]] = false;
			gen[staging * PLACES + place] = gen[current * PLACES + place]
		}
		returned = change;
		change++
	:: else -> break
	od
}

/* One call of a place: `saw` is the version it found, CHANGES if it found nothing after the clear. */
inline call(place)
{
	if
	:: !armed[place] -> part = 0
	:: else ->
		since = returned;
		atomic {
			reading = true;
			section++
		};
		index = CURRENT(place);
		part = gen[index * PLACES + place];
		if
		:: part ->
			/* 1 */
			assert(allocated[part]);
			saw = version_of[part];
			assert(allocated[part]);
			/* 3: what a change has replaced is gone when it has returned. */
			assert(saw >= since && since < CHANGES)
		:: else
		fi;
		reading = false
	fi
}

proctype reader()
{
	byte part, saw, index, since, first, calls;

	do
	:: calls < 3 ->
		calls++;
		first = 0;
		call(0);
		if
		:: part -> first = saw
		:: else
		fi;
		call(1);
		/* 2: the second call finds something at least as new; nothing only after the clear. */
		if
		:: first && part -> assert(saw >= first)
		:: first && !part -> assert(is_cleared)
		:: else
		fi
	:: else -> break
	od
}

init {
	atomic {
		run writer();
		run reader()
	}
}
