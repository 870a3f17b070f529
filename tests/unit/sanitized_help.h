/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitized_help.h - whether this is a sanitizer's build, and how much of a proof is done there.  Sanitizers track
 * stacks themselves, map memory where shadows lie, and bring an allocator of their own.
 */
#ifndef TW_TESTS_SANITIZED_HELP_H
#define TW_TESTS_SANITIZED_HELP_H

#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#if UNDER_TSAN || defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/*
 * Rounds of a loop: `all` of them, or under a sanitizer, which makes each many times as dear, `all / divisor`; a third of these under the
 * thread sanitizer, which is twice as dear again.  With TW_TEST_LONG (./run test --long) all of them there too.
 */
static inline unsigned test_rounds(unsigned all, unsigned divisor)
{
	unsigned part = all / divisor / (1 + 2 * UNDER_TSAN);

	if (!IS_SANITIZED || getenv("TW_TEST_LONG"))
		return all;
	return part ? part : 1;
}

/* Rounds of a loop that is long in each build: a part of them, and with TW_TEST_LONG all. */
static inline unsigned test_sample(unsigned all, unsigned divisor)
{
	return getenv("TW_TEST_LONG") ? all : all / divisor;
}

/* How far the positions that a loop tests lie apart: 1, or `stride` where test_rounds() would divide. */
static inline unsigned test_stride(unsigned stride)
{
	return IS_SANITIZED && !getenv("TW_TEST_LONG") ? stride : 1;
}

#endif
