/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - shared by the stepping parent (step_test.c) and the stepped child (step_target.c). */
#ifndef TW_TESTS_PROOF_STEP_H
#define TW_TESTS_PROOF_STEP_H

/* How the thread makes hits, and the actions of its signal handler. */
enum step_place { STEP_DECLARED, STEP_SLOT, STEP_RETURN };
enum step_handler { STEP_RETURNS, STEP_JUMPS };

/* Exit codes of the child; 0: success. */
enum {
	STEP_BAD_SETUP = 10,
	STEP_BAD_ERRNO,
	STEP_BAD_REGISTERS,
	STEP_BAD_STREAM,    /* a ring holds an impossible record */
	STEP_TWICE,	    /* a call was recorded twice */
	STEP_NOT_ACCOUNTED, /* calls != events + counted */
	STEP_DEAF	    /* calls after the proof were not recorded */
};

/* An int3 and a return: the mark between the thread's first call and its later ones. */
void step_between(void);

/* In the child: sets up a session, runs the stepped thread, checks, exits. */
void step_child(enum step_place place, enum step_handler handler) __attribute__((noreturn));

#endif
