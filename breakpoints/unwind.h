/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.h - exceptions that pass watched calls, as the unwinder tells them.
 *
 * The stub's frame has a personality routine, like any function with destructors to run: libgcc calls it once for
 * each such frame that an exception passes on its way to the handler, the innermost first, when it is certain
 * that there is one.  So nothing of the C++ library is replaced, and rethrown and nested exceptions, cleanups and
 * std::terminate() go their own ways.
 *
 * Threads  any.  Nothing here throws or allocates.
 */
#ifndef TW_BREAKPOINTS_UNWIND_H
#define TW_BREAKPOINTS_UNWIND_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tw_unwind_class { TW_UNWIND_ERROR = 0, TW_UNWIND_EXIT, TW_UNWIND_THROW };

/* What passes. */
struct tw_unwind {
	enum tw_unwind_class class;
	const char *name;      /* of a C++ class, or of what it is otherwise; lent for the call */
	uintptr_t stopping_at; /* the canonical frame address of the frame that catches it; 0: not known */
};

/* A watched call is left.  Set once by the room above.  Keeps errno. */
typedef void (*tw_bp_throw_fn)(uint64_t *slot, const struct tw_unwind *unwind);
extern tw_bp_throw_fn tw_bp_trampoline_throw;

/*
 * tw_unwind_find - find the unwinder of this process, which must be libgcc's.
 *
 * Calls the loader: never with the permit.  Again after objects were loaded.  Returns a sentence where exceptions
 * cannot be told, else NULL.
 */
const char *tw_unwind_find(void);
/* Is there one?  Calls need not hear of exceptions where not. */
extern _Atomic bool tw_unwind_known;
static inline bool tw_unwind_is_known(void)
{
	/* PAIR unwind.known: acquire; release in tw_unwind_find().  What was found is seen. */
	return tw_load_acquire(&tw_unwind_known);
}

/* Code that was made at run time, and what unwinders are told of it. */
struct tw_unwind_code {
	const void *start, *end;
	const void *header; /* an .eh_frame_hdr */
};
/* The stubs of sleds that an address lies in; false: in none.  Wait-free; signal handlers: yes. */
bool tw_unwind_find_code(uintptr_t pc, struct tw_unwind_code *out);

/* The code address that the frame with this canonical frame address will go on at; 0: it is not found. */
uintptr_t tw_unwind_address_at(uintptr_t frame_address);

#endif
