/* SPDX-License-Identifier: Apache-2.0 */
/* stress.h - the proof under load behind `tracewheel stress`, for the command and its test. */
#ifndef TW_TOOLS_STRESS_H
#define TW_TOOLS_STRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The kinds of places that are called. */
enum tw_stress_place { TW_STRESS_AT_DECLARED, TW_STRESS_AT_SLED, TW_STRESS_AT_SLOT, TW_STRESS_PLACES };

/* What is done. */
enum {
	TW_STRESS_DECLARED = 1 << TW_STRESS_AT_DECLARED,
	TW_STRESS_SLEDS = 1 << TW_STRESS_AT_SLED,
	TW_STRESS_SLOTS = 1 << TW_STRESS_AT_SLOT,
	TW_STRESS_RETURNS = 8,	/* calls are watched to their ends: returns, longjmp, ends of threads */
	TW_STRESS_THREADS = 16, /* come and go, and idle beside */
	TW_STRESS_SIGNALS = 32, /* hold threads up wherever they are */
	TW_STRESS_ALL = 63
};

#define TW_STRESS_TOLD	     16u
#define TW_STRESS_TOLD_BYTES 200u

struct tw_stress_options {
	double seconds;	    /* 0: until stopped */
	uint32_t threads;   /* that call, 1 .. 256 */
	uint32_t changers;  /* that change sessions of their own, 0 .. 16 */
	uint32_t functions; /* declared, 2 .. 100,000; rounded down to pairs */
	uint32_t pause_us;  /* the longest between two changes of one thread */
	unsigned what;	    /* with one kind of place at least */
	uint64_t seed;
	const volatile int *stop; /* not 0: end now; may be NULL */
	bool is_torn; /* for the test of this test: makes each change in several steps, which must be noticed */
};

struct tw_stress_result {
	double seconds;
	uint64_t calls[TW_STRESS_PLACES];
	uint64_t threads;	/* that came and went */
	uint64_t stalls;	/* threads held up by a signal */
	uint64_t switches;	/* transactions, each over all functions */
	uint64_t changes;	/* of other sessions meanwhile */
	uint64_t latency_ns[4]; /* of a switch: median, 90 and 99 of 100, the longest */
	uint64_t waits;		/* for thread progress */
	uint64_t code_waits;	/* of these: with a barrier for instructions */
	uint64_t wait_ns[4];	/* of one, as of a switch */
	/* Calls come in pairs, of which a switch leaves exactly one counted, but where it falls between the two. */
	uint64_t pairs;
	uint64_t counted;
	uint64_t tolerated; /* pairs that switches can have fallen into */
	uint64_t moved;	    /* counters that counted after the change that stopped them had returned */
	/* Recorded rounds: a call of each kind for each half, and a mark. */
	uint64_t numbered;    /* made */
	uint64_t stored;      /* in the capture */
	uint64_t unaccounted; /* neither there nor told as lost */
	uint64_t disordered;
	uint64_t within;   /* of those stored: with a switch in the middle */
	uint64_t excused;  /* not looked at: something of it was lost, or several switches fell into it */
	uint64_t torn;	   /* that show another set of functions than any moment had */
	uint64_t ends;	   /* of calls, told */
	uint64_t bad_ends; /* with the wrong value, or missing, or of nothing */
	uint64_t lost;	   /* events told as lost */
	uint64_t failed;   /* calls of the library that failed */
	uint64_t wrong;	   /* all that was told: these, answers, registers, rounds */
	/* The first of what was wrong, one sentence each. */
	char told[TW_STRESS_TOLD][TW_STRESS_TOLD_BYTES];
	uint32_t told_count;
};

/* Returns 0 and the result, or an error of tracewheel/error.h when it could not be begun. */
int tw_stress_run(const struct tw_stress_options *options, struct tw_stress_result *result);
bool tw_stress_has_passed(const struct tw_stress_result *result);

#endif
