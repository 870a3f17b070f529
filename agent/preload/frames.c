/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - unwinders find the stubs of entry sleds, which lie in no object.
 *
 * libgcc asks libc by this name (since 2.35) in which object an address lies, and where its call frame information is; the
 * answer for a stub is ours.  To register frames with libgcc itself is no way: from then on each exception and each
 * backtrace() of the program would take a lock there and might allocate, also in handlers, which it did not before.
 */
#include "base/atomic.h"
#include "base/export.h"
#include "breakpoints/unwind.h"

#include <dlfcn.h>

#if __GLIBC_PREREQ(2, 35)

typedef int (*find_fn)(void *, struct dl_find_object *);

static _Atomic(find_fn) real_find;

static find_fn find(void)
{
	/* RELAXED agent.real: whoever comes first finds the same answer. */
	find_fn real = tw_load_relaxed(&real_find);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "_dl_find_object");
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(&real_find, real);
	}
	return real;
}

/* Before a handler asks, where the loader must not be asked. */
__attribute__((constructor(101))) static void find_early(void)
{
	find();
}

TW_API int _dl_find_object(void *pc, struct dl_find_object *out)
{
	struct tw_unwind_code code;
	find_fn real = find();
	int result;

	if (!real)
		return -1;
	if (!tw_unwind_find_code((uintptr_t)pc, &code))
		return real(pc, out);
	/* The object that the stubs belong to is this one. */
	result = real((void *)(uintptr_t)&find, out);
	if (result)
		return result;
	out->dlfo_map_start = (void *)(uintptr_t)code.start;
	out->dlfo_map_end = (void *)(uintptr_t)code.end;
	out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	return 0;
}

#endif
