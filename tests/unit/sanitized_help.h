/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitized_help.h - whether this is a sanitizer's build.  Sanitizers track stacks themselves, map memory where shadows
 * lie, and bring an allocator of their own.
 */
#ifndef TW_TESTS_SANITIZED_HELP_H
#define TW_TESTS_SANITIZED_HELP_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__ || __has_feature(thread_sanitizer) || \
	__has_feature(address_sanitizer)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

#endif
