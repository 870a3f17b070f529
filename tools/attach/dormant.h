/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dormant.h - finds the dormant agent of a process, and wakes it (base/doorbell.h).
 *
 * Threads  the command's.
 */
#ifndef TW_TOOLS_DORMANT_H
#define TW_TOOLS_DORMANT_H

#include "base/doorbell.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define TW_DORMANT_REASON_BYTES (PATH_MAX + 512)

struct tw_dormant {
	int process, thread;
	bool is_without_agent; /* it never had one, and may get one (inject.h) */
	uint64_t at;	       /* its words, in its memory */
	struct tw_doorbell seen;
	char reason[TW_DORMANT_REASON_BYTES]; /* why something was refused: a sentence */
};

/*
 * tw_dormant_find - find the agent of the process that has this number, or a thread with this number.
 *
 * Returns 0, or an exit code: TW_EXIT_NOT_FOUND without such a process, or an agent in it; TW_EXIT_NOT_STARTED if the system does not let
 * this user reach it, or it cannot answer now, or is of another version.  The reason has been reported, but for a process that is
 * without an agent.  For root, a process of another user makes this command begin anew (as_user.h).
 */
int tw_dormant_find(struct tw_dormant *dormant, int pid);

/* The system has refused something for the thread: `reason` says why, and what to do. */
void tw_dormant_refuse_by_rights(struct tw_dormant *dormant);

/* Does the process run as the user of this command, whose ring set it can open? False: `reason` says what to do. */
bool tw_dormant_is_of_user(struct tw_dormant *dormant);

/* The thread of an agent in this process; 0: it has none. */
int tw_dormant_thread(int process);

/* Reads the words again: `seen`. False: the process or the thread is gone, as after exec. */
bool tw_dormant_read(struct tw_dormant *dormant);

/*
 * tw_dormant_ring - wake it for a request; it is answered when `seen.answered` is the number returned.
 *
 * @why		to detach: a note for the capture; NULL: none.
 *
 * Returns 0 if it could not be woken: `reason` says why.
 */
uint32_t tw_dormant_ring(struct tw_dormant *dormant, enum tw_doorbell_request asked, const char *path, const char *why);

#endif
