/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.h - installing places: the part that depends on the processor and on the kind of place.
 *
 * prepare may fail and does not change the program's behaviour; install and uninstall cannot fail and are atomic for
 * threads that run the place meanwhile.  All under the permit.
 */
#ifndef TW_BREAKPOINTS_PATCH_H
#define TW_BREAKPOINTS_PATCH_H

#include "base/vectors.h"
#include "breakpoints/breakpoints.h"

/*
 * Makes everything needed before the place can be installed (a stub); resolves its target.
 * Idempotent.  Errors: TW_ENOMEM, TW_ENOTSUP (this place cannot be traced, or, for an entry and for a sled of one-byte
 * NOPs, not while other threads may run it), TW_EPERM (the system refuses to make the memory writable), TW_EFORMAT (an
 * entry: memory does not hold the bytes that its plan expects), TW_EINTR (an entry: not now, because writing is suspended).
 */
int tw_patch_prepare(struct tw_permit *permit, struct tw_place *place);

/* Takes another process' measurements of this machine, before the first place is prepared; unsound ones are ignored. */
void tw_patch_use_vectors(const struct tw_vectors *vectors);
/* Measures them, unless that was done. */
void tw_patch_measure_vectors(void);
/* From now on calls enter the hit.  Relying on it requires a code wait first. */
void tw_patch_install(struct tw_permit *permit, struct tw_place *place);
void tw_patch_uninstall(struct tw_permit *permit, struct tw_place *place);
struct tw_entry_change;
/* The bytes to write for a place while all other threads are stopped (tw_entry_write_held). */
void tw_patch_change_of(const struct tw_place *place, struct tw_entry_change *out);
/* The bytes of an installed place are those of the time before it was prepared: it is prepared again next. */
void tw_patch_was_taken_back(struct tw_place *place);
/*
 * The bytes written to install a place: fills at most eight, located at *at.  0: none are known to have been written.
 */
size_t tw_patch_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
/* Does this place's installation change instructions? */
bool tw_patch_is_code(const struct tw_place *place);

/*
 * Brackets a run of prepares, installs or uninstalls: memory is made writable once per page (text: once per mapping)
 * and restored by tw_patch_end().  Without the bracket each call does so separately.
 */
void tw_patch_begin(struct tw_permit *permit);
void tw_patch_end(struct tw_permit *permit);
/* The number of prepared entries whose jumps could not be written at the end of a run, since it was asked last. */
uint32_t tw_patch_take_unplanted(struct tw_permit *permit);

/*
 * tw_patch_call_keeping_vectors - call a function that may use vector registers, from inside a hit.
 *
 * Trampolines keep the integer registers only.  Up to 2.7 KiB of stack, and what the function needs: only where the program
 * calls on purpose, as for its tracer modules; all else is called on a stack of our own (own_stack.h).
 * Threads: any, signal handlers too; after the first tw_patch_prepare().
 */
void tw_patch_call_keeping_vectors(void (*function)(void *), void *argument);
/* The same on the stack that ends at the argument, which lies at its top.  With all signals blocked. */
void tw_patch_call_on(void (*function)(void *), void *argument);

/*
 * Bracket the unloading of objects: after suspend no slot and no sled is written, so that none can be written after
 * its memory is gone and before tw_bp_module_gone() is called.  The last resume performs the installs and uninstalls
 * made meanwhile.  May nest, on several threads.
 *
 * Suspend waits for a run of writes to end (no lock is held over such a run).  Resume borrows the permit; NULL if it
 * could not be seized: then the next resume writes the rest.
 */
void tw_patch_suspend(void);
/* How often threads have suspended writing.  A hint. */
uint32_t tw_patch_suspension_count(void);
void tw_patch_resume(struct tw_permit *permit);
/* The half of it that needs no permit. */
void tw_patch_end_suspension(void);
/* In a forked child: keeps only the calling thread's suspensions, because the other threads do not exist. */
void tw_patch_after_fork_in_child(uint32_t suspension_count);
/* Does the last resume have to write any slots or sleds?  Under the permit. */
bool tw_patch_is_due(struct tw_permit *permit);

/*
 * Re-arms slots that were armed before they were bound: a thread that was binding one at that moment writes the target over the
 * stub afterwards, and later calls pass unseen.  Returns whether slots may still be bound; to be called until there are none,
 * or the program ends.
 */
bool tw_got_may_be_bound(struct tw_permit *permit);
unsigned tw_got_bind_again(struct tw_permit *permit, unsigned *late_count);

#endif
