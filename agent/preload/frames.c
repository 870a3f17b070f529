/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - unwinders find the stubs of entry sleds, which lie in no object.
 *
 * libgcc asks libc by this name (since 2.35) in which object an address lies, and where its call frame information is; the
 * answer for a stub is ours.  To register frames with libgcc itself is no way: from then on each exception and each
 * backtrace() of the program would take a lock there and might allocate, also in handlers, which it did not before.
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "breakpoints/unwind.h"

#include <dlfcn.h>

#if __GLIBC_PREREQ(2, 35)

typedef int (*find_fn)(void *, struct dl_find_object *);

TW_REAL(find_fn, object, "_dl_find_object")

/* Before a handler asks, where the loader must not be asked. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_object();
}

TW_API int _dl_find_object(void *pc, struct dl_find_object *out)
{
	struct tw_unwind_code code;
	find_fn real = find_object();
	int result;

	if (!real)
		return -1;
	if (!tw_unwind_find_code((uintptr_t)pc, &code))
		return real(pc, out);
	/* The object that the stubs belong to is this one. */
	result = real((void *)(uintptr_t)&find_object, out);
	if (result)
		return result;
	out->dlfo_map_start = (void *)(uintptr_t)code.start;
	out->dlfo_map_end = (void *)(uintptr_t)code.end;
	out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	return 0;
}

#endif
