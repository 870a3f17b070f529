/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lates.h - the messages that waited longest in their receivers' queues, and the causes of their waits.
 *
 *	 step 0, the receiver	|--- runs ---|-- blocked by B --|- ready -|--- runs --|	 from the arrival until the message is taken
 *	 step 1, B		             |- ready -|- runs -|			 while it blocked, until it sent
 *
 * The longest blocked stretch of a step leads to the next: the process whose message ended it, and what it did until
 * it sent it.
 */
#ifndef TW_VIEWS_LATES_H
#define TW_VIEWS_LATES_H

#include "views/folds/histogram.h"
#include "views/folds/mailboxes.h"

#include "tracewheel/capture.h"

#define TW_LATE_STEPS	8
#define TW_LATE_COLUMNS 800 /* columns of a step's time line: each shows the state that took most of its time */
#define TW_LATE_TEXT	200

struct tw_late_step {
	uint32_t process;
	uint64_t from_ns, to_ns;
	uint64_t ns[TW_DOINGS];
	uint64_t times[TW_DOINGS];
	uint64_t takes;
	/* The process that caused most of the blocked time, and the longest stretch that it caused. */
	uint32_t by;
	uint64_t by_ns, by_times;
	struct tw_stretch longest;
	uint8_t lane[TW_LATE_COLUMNS];
};

struct tw_late {
	uint64_t number; /* of the message */
	uint64_t arrived_ns, sent_ns, taken_ns;
	uint32_t sender, receiver;
	uint32_t length;
	uint64_t others; /* messages that the receiver took meanwhile */
	uint64_t own_ns; /* of the wait: the time in which the tracer delayed some thread */
	bool is_sure;
	bool is_traced; /* its steps were made */
	uint32_t step_count;
	struct tw_late_step *steps; /* TW_LATE_STEPS of them */
	char text[TW_LATE_TEXT];    /* the message */
};

struct tw_lates {
	struct tw_mailboxes mailboxes;
	struct tw_histogram waits;
	struct tw_late *rows; /* the slowest first */
	size_t count, capacity;
	uint64_t from_ns, to_ns;  /* taken in this time; to_ns 0: no end */
	uint64_t history;	  /* the number of stretches kept, a power of two; 0: 2 Mi */
	const char *process;	  /* only messages to this process: its pid or its name; NULL: all */
	uint64_t unsure;	  /* messages taken whose wait may be wrong */
	uint64_t without_arrival; /* messages taken, of an Erlang VM, whose send is not in the capture */
	uint64_t waiting;	  /* messages that were still in queues at the end */
	uint64_t zero_ns;
	/* The tracer's own time: a ring buffer of the newest. */
	struct tw_late_own {
		uint64_t from_ns, to_ns;
	} * own;
	uint64_t own_count;
	bool has_no_memory;
};

/*
 * @capacity: the most rows. Returns 0 or an error; tw_lates_free() in both cases.
 */
int tw_lates_make(struct tw_lates *lates, struct tw_capture *capture, size_t capacity);
void tw_lates_free(struct tw_lates *lates);

static inline uint64_t tw_late_wait(const struct tw_late *late)
{
	return late->taken_ns > late->arrived_ns ? late->taken_ns - late->arrived_ns : 0;
}

/* Notes about the limits of the capture, one by one: false after the last. */
#define TW_LATE_NOTE 300
bool tw_late_note(const struct tw_lates *lates, const struct tw_capture *capture, unsigned number, char *text,
		  bool *warns);

#endif
