/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.h - the clocks of several machines in one time, by messages between them.
 *
 * A message cannot be received before it was sent. Each message from machine a to machine b says that b's clock shows at
 * least so much at the receive as a's at the send, in the common time; messages the other way give the other bound. The
 * time of b as a function of b's clock is a line (or, where clocks were slewed, several joined lines) between both bounds:
 *
 *	common time                          x     messages from b to a: an upper bound at b's send
 *	    ^                  x    x   ...---
 *	    |          x  ...-----           o     messages from a to b: a lower bound at b's receive
 *	    |   ...-----  o      o
 *	    +----------------------------------> b's clock
 *
 * Only points on the convex hulls of both sets bound a line, so that few of many messages are kept (Duda, Harrus, Haddad,
 * Bernard: Estimating global time in distributed systems, 1987; Poirier, Roy, Dagenais: Accurate offline synchronization
 * of distributed traces using kernel-level events, 2010). All lines that are possible form a convex set: the estimate is the
 * middle of it, and its uncertainty half of its width.
 *
 * Units    *_ns are nanoseconds of the machine's own clock unless they are called common.
 * Threads  one.
 */
#ifndef TW_TOOLS_ALIGN_H
#define TW_TOOLS_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest drift of two clocks that is believed. NTP slews a clock by up to 500 ppm. */
#define TW_ALIGN_DRIFT_MAX 600e-6
/* A time is divided into so many windows, at the most the number of joined lines. */
#define TW_ALIGN_WINDOWS      512
#define TW_ALIGN_MACHINES_MAX 1024

/* How a machine's clock was found. */
enum tw_align_by {
	TW_ALIGN_REFERENCE,
	TW_ALIGN_MESSAGES, /* both ways */
	TW_ALIGN_ONE_WAY,  /* messages one way, and the machines' wall clocks within what they allow */
	TW_ALIGN_WALL	   /* wall clocks alone */
};

struct tw_align_machine {
	/* Set by the caller. */
	uint64_t start_ns, end_ns; /* of its events */
	uint64_t start_wall_ns;	   /* CLOCK_REALTIME at start_ns */
	/* Results. */
	enum tw_align_by by;
	uint32_t through;	 /* the machine that it was compared with first */
	uint64_t received, sent; /* messages from others, and to them */
	/* The common time, relative to the reference's start_ns, at the beginning of each piece and at the end of all. */
	double common[TW_ALIGN_WINDOWS + 1];
	uint32_t pieces;
	double drift;		   /* of the whole: the common time runs faster by this */
	double drift_uncertainty;  /* not known: 0, and by is neither REFERENCE nor MESSAGES */
	double uncertainty_ns;	   /* in the middle; not known: 0 */
	double uncertainty_max_ns; /* anywhere between start and end */
};

struct tw_align;

/* Why the clocks do not agree: no lines explain both messages. */
struct tw_align_conflict {
	uint32_t machine, other;
	uint64_t at_ns; /* by the clock of machine: about the time of the step */
	double by_ns;
};

/* @machines: borrows until tw_align_destroy(). NULL: no memory. */
struct tw_align *tw_align_create(struct tw_align_machine *machines, uint32_t count);
void tw_align_destroy(struct tw_align *align);

/* Adds a message. False: no memory. */
bool tw_align_add(struct tw_align *align, uint32_t from, uint64_t sent_ns, uint32_t to, uint64_t received_ns);

/*
 * tw_align_solve - find the common time: that of the reference's clock.
 *
 * Returns 0; TW_ENOMEM; or TW_EFORMAT: *conflict says which clocks contradict each other. Afterwards no message is
 * received before it was sent.
 */
int tw_align_solve(struct tw_align *align, uint32_t reference, struct tw_align_conflict *conflict);

/* The common time of a machine's clock, in ns relative to the start of the reference. */
double tw_align_common(const struct tw_align_machine *machine, uint64_t ns);

#endif
