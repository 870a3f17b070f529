/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doorbell.h - the words by which the command wakes a dormant agent; they lie in the traced program's own memory.
 *
 *	the agent	one thread of the program, TW_DOORBELL_THREAD, sleeps in a futex on `rung`
 *	the command	finds the thread by its name, and the words by the address on which it sleeps; writes `asked` and `path`, then a
 *			new number to `rung`; interrupts the thread's sleep by ptrace: the kernel begins the wait again, and
 *			finds another number
 *	the agent	does what was asked, and writes `outcome`, `error`, `state`, and last `answered`
 *
 * Memory of another process is written, and its threads are interrupted, as the kernel's rule for ptrace allows it, and by
 * nobody else: so the agent need not ask which user has rung.  No file, no socket and no descriptor is in the program.
 */
#ifndef TW_BASE_DOORBELL_H
#define TW_BASE_DOORBELL_H

#include <stdint.h>

#define TW_DOORBELL_MAGIC      UINT64_C(0x314c4c4542525754) /* "TWRBELL1" */
#define TW_DOORBELL_VERSION    1
#define TW_DOORBELL_THREAD     "tw-dormant"
#define TW_DOORBELL_PATH_BYTES 256
#define TW_DOORBELL_WHY_BYTES  192

enum tw_doorbell_state {
	TW_DOORBELL_DORMANT,
	TW_DOORBELL_ATTACHED,
	TW_DOORBELL_LEAVING, /* nothing is recorded any more; other threads may still be inside the agent */
	TW_DOORBELL_LEFT /* the ring set is still mapped, by which its owner knows the process whose code it restores */
};

enum tw_doorbell_request {
	TW_DOORBELL_ATTACH = 1,
	TW_DOORBELL_DETACH, /* answered at once; then LEAVING, and LEFT */
	TW_DOORBELL_FORGET  /* the owner is done: then DORMANT */
};

enum tw_doorbell_outcome {
	TW_DOORBELL_DONE,
	TW_DOORBELL_BUSY,     /* another recording is under way */
	TW_DOORBELL_FILTERED, /* the program has set a seccomp filter */
	TW_DOORBELL_FAILED,   /* see error */
	TW_DOORBELL_REFUSED   /* see why, which the agent has written */
};

/* Why the last recording ended. */
enum tw_doorbell_end {
	TW_DOORBELL_ASKED, /* by the command, or because it has closed the recording */
	TW_DOORBELL_LEASE  /* the command gave no sign of life */
};

struct tw_doorbell {
	uint64_t magic;
	uint32_t version;
	uint32_t rung; /* a futex: the number of the newest request; written last by the command */
	/* Written by the command. */
	uint32_t asked;			   /* enum tw_doorbell_request */
	char path[TW_DOORBELL_PATH_BYTES]; /* of the ring set: to attach to, or to detach from; "": from any */
	char why[TW_DOORBELL_WHY_BYTES]; /* to detach: a note for the capture; "": none; also the agent's, of REFUSED: a clause */
	/* Written by the agent. */
	uint32_t outcome;		  /* enum tw_doorbell_outcome */
	int32_t error;			  /* of tracewheel/error.h */
	uint32_t state;			  /* enum tw_doorbell_state */
	uint32_t end;			  /* enum tw_doorbell_end */
	int32_t owner;			  /* the process of the command that has attached it */
	char own[TW_DOORBELL_PATH_BYTES]; /* the ring set that is attached; "" */
	uint32_t answered;		  /* the number of the newest request that was answered */
};

#endif
