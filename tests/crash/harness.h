/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - one round of the kill test: record, kill, recover, compare with the witness.
 *
 *	kill.c		starts the processes, and kills them
 *	recorder.c	the recorder's process, with a disk as bad as the variant requires
 *	verify.c	compares the capture with the witness
 */
#ifndef CRASH_HARNESS_H
#define CRASH_HARNESS_H

#include "tests/crash/witness.h"
#include "tracewheel/consumer.h"

#include <stdbool.h>
#include <stdio.h>

enum disk { DISK_GOOD, DISK_CUT, DISK_FULL_NOW_AND_THEN, DISK_SLOW };

struct variant {
	const char *name;
	uint32_t threads;
	uint32_t calls_a_pause, pause_us;
	enum tw_recorder_policy policy;
	uint64_t ring_bytes, cap_bytes;
	enum disk disk;
	bool is_slots;
	bool by_command; /* the recorder is `tracewheel record` */
	bool by_itself;	 /* the recorder is a thread of the program */
	uint64_t segment_bytes;
	uint32_t longest_us; /* of life after the start */
};

/* The child's whole life: creates the recorder, reports the ring set's path, records until told to stop. */
_Noreturn void record_in_child(const struct variant *variant, struct witness *witness, const char *capture,
			       unsigned seed, int path_fd);

/* Sums over all rounds. */
struct totals {
	uint64_t kills, rounds, of_program, of_recorder, of_both, stopped_first, recoveries, recoveries_killed;
	uint64_t committed, returned, lost, in_flight, duplicate_blocks;
	uint64_t damaged_before_recovery;
};

/*
 * verify_capture - are all committed events there, once, unchanged and in order?
 *
 * @recorder_finished	the recorder ended in an orderly way; its account must agree with the file.
 * Returns NULL, or a sentence about the error (lends until the next call).
 */
const char *verify_capture(const char *path, const struct witness *witness, bool recorder_finished,
			   struct totals *totals);

/* Checks a truncated capture before its recovery: it may show less, but nothing wrong. */
const char *verify_before_recovery(const char *path, const struct witness *witness, struct totals *totals);

#endif
