/* SPDX-License-Identifier: Apache-2.0 */
/* stress.h - the proof under load of `tracewheel stress`, for the command and its test. */
#ifndef TW_TOOLS_STRESS_H
#define TW_TOOLS_STRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The kinds of places that are called. */
enum tw_stress_place { TW_STRESS_AT_DECLARED, TW_STRESS_AT_SLED, TW_STRESS_AT_SLOT, TW_STRESS_PLACES };

/* The parts of a run. */
enum {
	TW_STRESS_DECLARED = 1 << TW_STRESS_AT_DECLARED,
	TW_STRESS_SLEDS = 1 << TW_STRESS_AT_SLED,
	TW_STRESS_SLOTS = 1 << TW_STRESS_AT_SLOT,
	TW_STRESS_RETURNS = 8,	/* watch calls to their ends: returns, longjmp, ends of threads */
	TW_STRESS_THREADS = 16, /* threads come and go, and others idle */
	TW_STRESS_SIGNALS = 32, /* signals stop threads wherever they are */
	TW_STRESS_ALL = 63,
	TW_STRESS_ENTRIES = 64 /* in place of sleds: functions without sleds, planted at their entries */
};

#define TW_STRESS_FINDINGS_MAX	16u
#define TW_STRESS_FINDING_BYTES 200u

struct tw_stress_options {
	double seconds;	    /* 0: until stopped */
	uint32_t threads;   /* that make calls, 1 .. 256 */
	uint32_t changers;  /* that change sessions of their own, 0 .. 16 */
	uint32_t functions; /* declared, 2 .. 100,000; rounded down to pairs */
	uint32_t pause_us;  /* the longest between two changes of one thread */
	unsigned what;	    /* with one kind of place at least */
	uint64_t seed;
	const volatile int *stop; /* not 0: end now; may be NULL */
	bool is_torn;		  /* to test this test: each change is made in several steps, which must be noticed */
};

struct tw_stress_result {
	double seconds;
	uint64_t calls[TW_STRESS_PLACES];
	uint64_t threads;	/* that came and went */
	uint64_t stalls;	/* threads stopped by a signal */
	uint64_t switches;	/* transactions, each over all functions */
	uint64_t changes;	/* of other sessions meanwhile */
	uint64_t latency_ns[4]; /* of a switch: median, 90 and 99 of 100, the longest */
	uint64_t waits;		/* for thread progress */
	uint64_t code_waits;	/* of these: with an instruction barrier */
	uint64_t wait_ns[4];	/* of one, in the order of latency_ns */
	/* Calls come in pairs, of which a switch leaves exactly one counted, unless it falls between the two. */
	uint64_t pairs;
	uint64_t counted;
	uint64_t tolerated; /* pairs that switches can have fallen into */
	uint64_t moved;	    /* counters that counted after the change that stopped them had returned */
	/* Recorded rounds: a call of each kind for each half, and a mark. */
	uint64_t numbered;    /* made */
	uint64_t stored;      /* in the capture */
	uint64_t unaccounted; /* neither there nor reported as lost */
	uint64_t disordered;
	uint64_t within;   /* of those stored: with a switch inside */
	uint64_t excused;  /* not checked: part of it was lost, or several switches fell into it */
	uint64_t torn;	   /* that show a set of functions that was active at no moment */
	uint64_t ends;	   /* ends of calls that were reported */
	uint64_t bad_ends; /* with the wrong value, or missing, or without a call */
	uint64_t lost;	   /* events reported as lost */
	uint64_t failed;   /* calls of the library that failed */
	uint64_t wrong;	   /* all errors: these, wrong results, registers, rounds */
	/* The first errors, one sentence each. */
	char findings[TW_STRESS_FINDINGS_MAX][TW_STRESS_FINDING_BYTES];
	uint32_t finding_count;
};

/* Returns 0 and the result, or an error of tracewheel/error.h if it could not begin. */
int tw_stress_run(const struct tw_stress_options *options, struct tw_stress_result *result);
bool tw_stress_has_passed(const struct tw_stress_result *result);

#endif
