/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert.h - assertions that stay on, and the hints that go with them.
 *
 * TW_ASSERT is for bugs: conditions that no input can cause.  It is on in every build.  It
 * writes one line to standard error by a single system call and aborts; it takes no lock and allocates nothing, so it
 * may be used in a hook.
 */
#ifndef TW_BASE_ASSERT_H
#define TW_BASE_ASSERT_H

#define tw_likely(x)   __builtin_expect(!!(x), 1)
#define tw_unlikely(x) __builtin_expect(!!(x), 0)

_Noreturn void tw_assert_failed(const char *expression, const char *file, int line);

#define TW_ASSERT(e)                                              \
	do {                                                      \
		if (tw_unlikely(!(e)))                            \
			tw_assert_failed(#e, __FILE__, __LINE__); \
	} while (0)

/* The element count of a true array. */
#define TW_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#endif
