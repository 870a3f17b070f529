/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - lines of text at a pace: at most so many in a second, and, for a program that shows them, as fast as it asks.
 *
 * A line that has no room is left out and counted, never waited for: the reader of a recording must keep up with it. A line in the place
 * of the lines that were left out says how many events these are; it comes before the next line, or when the second is over.
 *
 * On request: output is a packet for each line that is read from standard input, or more than one if these came together. A packet is
 * four bytes of length, the highest first, the numbers of events shown and left out so far, a newline, and the lines since the last one.
 * There is none without lines. The end of standard input ends the process.
 *
 * Threads  one of its own, which waits for requests and for the end of a second. The output is the caller's between tw_pace_hold() and
 *	    tw_pace_release() only.
 */
#ifndef TW_PRINT_PACE_H
#define TW_PRINT_PACE_H

#include "views/output/output.h"

struct tw_pace;

/* @lines: the most in a second, 1 at least.  @out: borrows until tw_pace_end().  NULL: no thread or no memory. */
struct tw_pace *tw_pace_begin(struct tw_out *out, uint64_t lines, bool is_on_request);

void tw_pace_hold(struct tw_pace *pace);
/* Writes what is to be written now. */
void tw_pace_release(struct tw_pace *pace);

/* May one more line be written? False: it is counted as left out. @is_event: or a note, of a loss for instance.  While held. */
bool tw_pace_admits(struct tw_pace *pace, bool is_event);

/* Waits until all has been asked for, and written. Held or not. */
void tw_pace_end(struct tw_pace *pace);

#endif
