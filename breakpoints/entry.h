/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.h - declarations shared by the files about entries of unmodified functions.  Under the permit.
 *
 *	entry.c		plants a jump over a function's first instructions, and switches where it leads
 *	entry_stub.c	the code to which the jump leads
 *	entry_copies.c	stubs and copies of the displaced instructions, within reach, with call frame information
 */
#ifndef TW_BREAKPOINTS_ENTRY_H
#define TW_BREAKPOINTS_ENTRY_H

#include "breakpoints/breakpoints.h"
#include "breakpoints/entry_stub.h"
#include "breakpoints/run.h"
#include "breakpoints/unwind.h"
#include "symbols/entry_plan.h"

/* patch.h's contracts for TW_BP_ENTRY. */
int tw_entry_prepare(struct tw_patch_run *run, struct tw_place *place);
void tw_entry_install(struct tw_place *place);
void tw_entry_uninstall(struct tw_place *place);
size_t tw_entry_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);

/* The object of the place seems to be gone. */
void tw_entry_forget(struct tw_place *place);

/*
 * The word that switches a planted place on, and its bytes: `off` when the place is not installed, `on` when it is.
 * Returns their number, within a page.
 */
size_t tw_entry_switch(const struct tw_place *place, uint8_t off[8], uint8_t on[8], uintptr_t *at);

/* See tw_patch_was_taken_back(). */
void tw_entry_was_taken_back(struct tw_place *place);

/* Before a run ends: writes the jumps of the entries that it has prepared. */
void tw_entry_plant(struct tw_patch_run *run);

/*
 * Writes the bytes of these entries and sleds (tw_patch_change_of()) while other threads run.  Set once by the room above, which can have them stopped;
 * NULL: it cannot, and then entries are planted only while there is one thread.  Each jump is written whole or not at all;
 * memory shows which.  Called with the permit.
 */
typedef void (*tw_entry_write_held_fn)(struct tw_place *const *places, size_t count);
extern tw_entry_write_held_fn tw_entry_write_held;

/* Called once, with the permit, before the first jump is written; NULL: nothing is. */
extern void (*tw_entry_before_first)(void);

#define TW_ENTRY_CHANGE_BYTES_MAX 24u
/*
 * Was an entry refused (TW_ENOTSUP) because of a shadow stack?  Else because several threads run, and its jump would lie on
 * two pages.
 */
bool tw_entry_is_refused_by_shadow_stack(const struct tw_bp_entry *entry);

/* The bytes that such a write changes; none crosses a page. */
struct tw_entry_change {
	uintptr_t at;
	unsigned count;
	uint8_t before[TW_ENTRY_CHANGE_BYTES_MAX], after[TW_ENTRY_CHANGE_BYTES_MAX];
};
void tw_entry_change_of(const struct tw_place *place, struct tw_entry_change *out);

/* For tests: the rest of each window that is planted from now on becomes int3, so that a jump into it is noticed. */
extern bool tw_entry_fills_windows;

/*
 * tw_entry_beside - where a function that was planted is entered without a hit; NULL: it was not planted.
 *
 * For our own calls, which are no events: they run the copy, and continue in the function.  Valid forever.
 */
const void *tw_entry_beside(struct tw_permit *permit, const void *function);

/* The address in the function that unwinders are shown: they look for the instruction before. */
static inline uintptr_t tw_entry_shown(const struct tw_bp_entry *entry)
{
	return entry->base + entry->row->value + 1;
}

/*
 * tw_entry_make_copy - make a stub, not armed, and a copy of the displaced instructions, for a place with an entry.
 *
 * @stub	lends: until tw_entry_forget_copies().  It can be executed after tw_entry_seal_copies().  A jump at place->where
 *		reaches it.
 *
 * Errors: TW_ENOMEM (also: no address space in reach of the window and of what the copy refers to), TW_EPERM (the system refuses
 * executable memory).
 */
int tw_entry_make_copy(struct tw_place *place, uint8_t **stub);

/* Makes all copies executable; false: the system refuses, and those made since the last call are not. */
bool tw_entry_seal_copies(void);

/*
 * The object at this address was unloaded: frees its copies and their frames.  Nothing leads to them: its jumps are unmapped,
 * and no thread was in it.
 */
void tw_entry_forget_copies(uintptr_t base);

/* As tw_unwind_find_code(), for copies and their stubs. */
bool tw_entry_find_code(uintptr_t pc, struct tw_unwind_code *out);
/* As tw_unwind_each_code(), for them. */
int tw_entry_each_code(tw_unwind_visit_fn visit, void *arg);

/*
 * tw_entry_original - the function's own instruction for which a copy or stub runs at an address; 0: it is in neither, or where the
 * stub has words of its own on the stack.
 *
 * tw_entry_moved: where to continue when a handler, which was shown the original of `there`, has set `pc`: in the same copy, if
 * that is an instruction behind the function's first that the jump replaces; else at `pc`.
 * Wait-free; signal handlers: yes.
 */
uintptr_t tw_entry_original(uintptr_t pc);
/* The copy behind a stub that finds too little stack for a hit at this address; 0: it is no such instruction.  As above. */
uintptr_t tw_entry_without_hit(uintptr_t pc);
uintptr_t tw_entry_moved(uintptr_t pc, uintptr_t there);

#endif
