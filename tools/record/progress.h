/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - what a recording has stored so far, and of which function most, said while it goes on: each second, on a terminal in one line that is replaced, and
 * for each SIGUSR1.
 *
 * Threads  one, and signal handlers for tw_progress_ask().
 */
#ifndef TW_TOOLS_PROGRESS_H
#define TW_TOOLS_PROGRESS_H

#include "tracewheel/consumer.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed, except recorder and is_shown. */
struct tw_progress {
	struct tw_recorder *recorder;
	bool is_shown; /* each second */
	uint64_t shown_ns;
	uint64_t events; /* at that time */
	bool is_line;	 /* the terminal's last line is this one */
};

/* Has the terminal a line for it? @is_shared: the program's standard output, if it is a terminal, must be left alone. */
bool tw_progress_has_terminal(bool is_shared);
/* Shows what is due. */
void tw_progress_poll(struct tw_progress *progress);
/* Removes the line, before anything else is said. */
void tw_progress_clear(struct tw_progress *progress);
/* A line is wanted at the next poll. Signal handlers: yes. */
void tw_progress_ask(void);

#endif
