/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - lets unwinders find the stubs of entry sleds, which belong to no object.
 *
 * libgcc calls this libc function (since 2.35) to find the object that contains an address and its call frame
 * information; for a stub we answer.  Registering frames with libgcc is no alternative: each exception and each
 * backtrace() of the program would then take a lock, and perhaps allocate, also in handlers.
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "breakpoints/unwind.h"

#include <dlfcn.h>

#if __GLIBC_PREREQ(2, 35)

typedef int (*find_fn)(void *, struct dl_find_object *);

TW_REAL(find_fn, object, "_dl_find_object")

/* Looked up early: a handler must not call the loader. */
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
	/* Stubs belong to this library's object. */
	result = real((void *)(uintptr_t)&find_object, out);
	if (result)
		return result;
	out->dlfo_map_start = (void *)(uintptr_t)code.start;
	out->dlfo_map_end = (void *)(uintptr_t)code.end;
	out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	return 0;
}

#endif
