/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h - the functions behind those that this library puts in front.
 *
 * Threads  any; the first look asks the loader.  Where it must not be asked (in a child of vfork(), in a handler) a
 *	    constructor has asked before.
 */
#ifndef TW_AGENT_PRELOAD_REAL_H
#define TW_AGENT_PRELOAD_REAL_H

#include "base/atomic.h"

#include <dlfcn.h>

/*
 * The real function may have to see our own caller (whose object dlopen() looks from; what comes back on another stack):
 * it is jumped to and not called, also without optimization.
 */
#ifdef __clang__
#define TAIL_CALLING
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALLING __attribute__((optimize("O2")))
#define TAIL_CALL    return
#endif

/* The next function of that name behind this library. */
static inline void *tw_real(_Atomic(void *) *known, const char *name)
{
	/* RELAXED agent.real: whoever comes first finds the same answer. */
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
