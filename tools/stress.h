/* SPDX-License-Identifier: Apache-2.0 */
/* stress.h - the proof under load behind `tracewheel stress`, for the command and its test. */
#ifndef TW_TOOLS_STRESS_H
#define TW_TOOLS_STRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tw_stress_options {
	double seconds;
	uint32_t threads;   /* that call, 1 .. 256 */
	uint32_t functions; /* 2 .. 100,000; rounded down to pairs */
	uint64_t seed;
	bool is_torn; /* for the test of this test: makes each change in two steps, which must be noticed */
};

struct tw_stress_result {
	double seconds;
	uint64_t calls;
	uint64_t switches; /* transactions, each over all functions */
	uint64_t changes;  /* of other sessions meanwhile */
	uint64_t latency_ns[4]; /* of a switch: median, 90 and 99 of 100, the longest */
	/* Calls come in pairs, of which a switch leaves exactly one counted, but where it falls between the two. */
	uint64_t pairs;
	uint64_t counted;
	uint64_t tolerated; /* pairs that switches can have fallen into */
	uint64_t moved;	    /* counters that counted after the change that stopped them had returned */
	/* Numbered calls into a capture. */
	uint64_t numbered;
	uint64_t stored;
	uint64_t lost;
	uint64_t disordered;
	uint64_t failed; /* calls of the library that failed */
	int error;	 /* of the first */
};

/* Returns 0 and the result, or an error of tracewheel/error.h when it could not be begun. */
int tw_stress_run(const struct tw_stress_options *options, struct tw_stress_result *result);
bool tw_stress_has_passed(const struct tw_stress_result *result);

#endif
