/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.h - exceptions that pass watched calls, as the unwinder reports them.
 *
 * The stub's frame has a personality routine, like any function with destructors to run: libgcc calls it once for
 * each such frame that an exception passes on its way to the handler, innermost first, after a handler has been
 * found.  Thus no part of the C++ library is replaced, and rethrown and nested exceptions, cleanups and
 * std::terminate() work unchanged.
 *
 * Threads  any.  No function here throws or allocates.
 */
#ifndef TW_BREAKPOINTS_UNWIND_H
#define TW_BREAKPOINTS_UNWIND_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tw_unwind_class { TW_UNWIND_ERROR = 0, TW_UNWIND_EXIT, TW_UNWIND_THROW };

/* A passing exception. */
struct tw_unwind {
	enum tw_unwind_class class;
	const char *name;      /* of a C++ class, or another description; borrowed for the call */
	uintptr_t stopping_at; /* the canonical frame address of the frame that catches it; 0: not known */
};

/* Called when an exception leaves a watched call.  Set once by the room above.  Keeps errno. */
typedef void (*tw_bp_throw_fn)(uint64_t *slot, const struct tw_unwind *unwind);
extern tw_bp_throw_fn tw_bp_trampoline_throw;

/*
 * tw_unwind_find - find the unwinder of this process, which must be libgcc's.
 *
 * Calls the loader: never with the permit.  To be called again after objects were loaded.  Returns a sentence if
 * exceptions cannot be reported, else NULL.
 */
const char *tw_unwind_find(void);
/* Is the unwinder known?  If not, calls need no notification of exceptions. */
extern _Atomic bool tw_unwind_known __attribute__((visibility("hidden")));
static inline bool tw_unwind_is_known(void)
{
	/* PAIR unwind.known: acquire; release in tw_unwind_find().  The unwinder's data is visible. */
	return tw_load_acquire(&tw_unwind_known);
}

/* After libgcc's functions were planted: calls of them from here are no events.  Under the permit. */
struct tw_permit;
void tw_unwind_enter_beside(struct tw_permit *permit);

/* Code made at run time, and its call frame information. */
struct tw_unwind_code {
	const void *start, *end;
	const void *header; /* an .eh_frame_hdr */
	size_t header_bytes;
};
/* Finds the area of sled stubs that contains an address; false: none.  Wait-free; signal handlers: yes. */
bool tw_unwind_find_code(uintptr_t pc, struct tw_unwind_code *out);

/* The stubs of returns (returns.h), with the call frame information that libunwind needs in place of their own. */
void tw_unwind_return_stubs(struct tw_unwind_code *out);

/*
 * tw_unwind_each_code - call `visit` with each area of stubs, and of copies, until one call does not return 0.
 *
 * An area's header has a sorted table of rows, with a number of rows that does not change; rows at the end may be 0.  Returns
 * what the last call has returned.  Wait-free but for `visit`; signal handlers: yes.
 */
typedef int (*tw_unwind_visit_fn)(const struct tw_unwind_code *code, void *arg);
int tw_unwind_each_code(tw_unwind_visit_fn visit, void *arg);

/* The code address at which the frame with this canonical frame address will continue; 0: not found. */
uintptr_t tw_unwind_address_at(uintptr_t frame_address);

#endif
