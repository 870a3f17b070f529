/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.h - what depends on the processor and on the kind of a place: making it fire.
 *
 * prepare may fail and changes nothing of what the program does; install and uninstall cannot fail any more
 * and are atomic for threads that run the place meanwhile.  All under the permit.
 */
#ifndef TW_BREAKPOINTS_PATCH_H
#define TW_BREAKPOINTS_PATCH_H

#include "base/vectors.h"
#include "breakpoints/breakpoints.h"

/*
 * Makes whatever must exist before the place can be installed (a stub); resolves its target.
 * Idempotent.  Errors: TW_ENOMEM, TW_ENOTSUP (this place cannot be traced; of a sled of one-byte NOPs also: not
 * while other threads may run it), TW_EPERM (the system refuses to make the memory writable).
 */
int tw_patch_prepare(struct tw_place *place);

/* What another process on this machine has measured, before the first place is prepared; what is not sound is passed over. */
void tw_patch_use_vectors(const struct tw_vectors *vectors);
/* From now on calls come to the hit.  Needs a code wait before anybody relies on it. */
void tw_patch_install(struct tw_place *place);
void tw_patch_uninstall(struct tw_place *place);
/*
 * What an installed place was made to hold: fills at most eight bytes that lie at *at.  0: nothing is known to have
 * been written.
 */
size_t tw_patch_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
size_t tw_got_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
size_t tw_sled_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
/* Does this place's installation change what processors fetch as instructions? */
bool tw_patch_is_code(const struct tw_place *place);

/*
 * Around a run of prepares, of installs or of uninstalls: memory that must be made writable for them is made
 * so once a page (of text: once a mapping), and put back by tw_patch_end().  Without the bracket each call
 * does so on its own.
 */
void tw_patch_begin(void);
void tw_patch_end(void);

/*
 * tw_patch_call_keeping_vectors - call a function that may use vector registers, from inside a hit.
 *
 * Trampolines keep the integer registers only; what a hit seldom does with libc's help (join, claim a ring)
 * goes through this.  Up to 2.7 KiB of stack.  Threads: any, signal handlers too; after the first
 * tw_patch_prepare().
 */
void tw_patch_call_keeping_vectors(void (*function)(void *), void *argument);

/* got.c: slots.  The same contracts for TW_BP_SLOT. */
int tw_got_prepare(struct tw_place *place);
void tw_got_install(struct tw_place *place);
void tw_got_uninstall(struct tw_place *place);
void tw_got_begin(void);
void tw_got_end(void);

/*
 * Around the unloading of objects: from suspend on no slot and no sled is written, so that none can be written
 * after its memory is gone and before tw_bp_module_gone() says so.  What is installed and uninstalled
 * meanwhile is done by the last resume.  May nest, on several threads.
 *
 * Suspend waits for a run of writes to end (no lock is held over such a run).  Resume takes the permit as
 * what it is; NULL, where it could not be had: the next one makes up for it.
 */
void tw_got_suspend(void);
void tw_got_resume(struct tw_permit *permit);
/*
 * Slots that were armed before they were bound: a thread that was binding one just then writes the target over the stub when it
 * is done, and calls pass unseen from then on.  Such slots are armed again; returns how many there were, and how many of them
 * have not been seen to be called for a while.  Asked for until none may be bound any more, or the program ends.
 */
bool tw_got_may_be_bound(struct tw_permit *permit);
unsigned tw_got_bind_again(struct tw_permit *permit, unsigned *late_count);
/* In a forked child: so many of them are the calling thread's; the others' threads are not there. */
void tw_got_after_fork_in_child(uint32_t suspension_count);
/* Is there anything, of slots or sleds, that the last resume will have to write?  Under the permit. */
bool tw_patch_is_due(struct tw_permit *permit);
bool tw_got_is_due(void);
bool tw_sled_is_due(void);
/* In a run: was it begun while nothing is suspended? */
bool tw_got_may_write(void);

/* sled.c: entry sleds.  The same contracts for TW_BP_SLED. */
int tw_sled_prepare(struct tw_place *place);
void tw_sled_install(struct tw_place *place);
void tw_sled_uninstall(struct tw_place *place);
void tw_sled_begin(void);
void tw_sled_end(void);
/* Writes what could not be written while unloading was under way. */
void tw_sled_make_up(void);

#endif
