/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe.h - is a stopped thread at a point where it may be made to create a thread?
 *
 * Threads  the command's, which has stopped the thread.
 */
#ifndef TW_TOOLS_SAFE_H
#define TW_TOOLS_SAFE_H

#include <stdbool.h>
#include <stdint.h>

#define TW_SAFE_REASON_BYTES 256

struct user_regs_struct;
struct tw_safe;

/* The functions needed of the program's libc, and a place to write behind its code. */
struct tw_safe_libc {
	uint64_t attributes_init, attributes_detached, create, open, error;
};

/*
 * tw_safe_open - examine the objects of a process.
 *
 * @out		gives; tw_safe_close() takes.
 * @reason	TW_SAFE_REASON_BYTES: a clause that says why it is no process that this can be done to; "": there is no memory.
 */
bool tw_safe_open(int process, struct tw_safe **out, struct tw_safe_libc *libc, char *reason);
void tw_safe_close(struct tw_safe *safe);

/* NULL: it is safe; else why not, as a clause. */
const char *tw_safe_why_not(struct tw_safe *safe, int thread, const struct user_regs_struct *registers);

#endif
