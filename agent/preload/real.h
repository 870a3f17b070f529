/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h - finds the functions that this library wraps.
 *
 * Threads: any; the first lookup calls the loader.  In contexts that must not call it (a child of vfork(), a
 *	    handler), a constructor has done the lookup before.
 */
#ifndef TW_AGENT_PRELOAD_REAL_H
#define TW_AGENT_PRELOAD_REAL_H

#include "base/atomic.h"

#include <dlfcn.h>

/*
 * The real function may depend on its caller (dlopen() takes the calling object from it) or return on another stack:
 * jump to it instead of calling it, also without optimization.
 */
#ifdef __clang__
#define TAIL_CALLING
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALLING __attribute__((optimize("O2")))
#define TAIL_CALL    return
#endif

/* The next function of that name after this library. */
static inline void *tw_real(_Atomic(void *) *known, const char *name)
{
	/* RELAXED agent.real: every thread finds the same answer. */
	void *real = tw_load_relaxed(known);

	if (!real) {
		real = dlsym(RTLD_NEXT, name);
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(known, real);
	}
	return real;
}

/* Defines find_NAME(), which returns the real function of this type. */
#define TW_REAL(type, name, symbol)                              \
	static type find_##name(void)                            \
	{                                                        \
		static _Atomic(void *) known;                    \
                                                                 \
		return (type)(uintptr_t)tw_real(&known, symbol); \
	}

#endif
