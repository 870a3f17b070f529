/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - many small functions with known results; compiled by each compiler with each sled.
 *
 * PREFIX distinguishes the program's from the library's.  Some are static and reached by their address only, some are
 * cold, some begin with a loop, whose alignment puts NOPs after the sled.
 */
#include <stdint.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(n)	    JOIN(PREFIX, n)

#define PLAIN(n)                                                                   \
	__attribute__((noinline)) uint64_t NAME(plain##n)(uint64_t a, uint64_t b); \
	__attribute__((noinline)) uint64_t NAME(plain##n)(uint64_t a, uint64_t b)  \
	{                                                                          \
		__asm__ volatile("" : "+r"(a));                                    \
		return a * 3 + b + n;                                              \
	}
#define LOCAL(n)                                                                         \
	__attribute__((noinline)) static uint64_t NAME(local##n)(uint64_t a, uint64_t b) \
	{                                                                                \
		__asm__ volatile("" : "+r"(b));                                          \
		return a * 3 + b + n;                                                    \
	}
#define COLD(n)                                                                         \
	__attribute__((noinline, cold)) uint64_t NAME(cold##n)(uint64_t a, uint64_t b); \
	__attribute__((noinline, cold)) uint64_t NAME(cold##n)(uint64_t a, uint64_t b)  \
	{                                                                               \
		__asm__ volatile("" : "+r"(a));                                         \
		return a * 3 + b + n;                                                   \
	}
#define LOOP(n)                                                                   \
	__attribute__((noinline)) uint64_t NAME(loop##n)(uint64_t a, uint64_t b); \
	__attribute__((noinline)) uint64_t NAME(loop##n)(uint64_t a, uint64_t b)  \
	{                                                                         \
		do {                                                              \
			__asm__ volatile("" : "+r"(b));                           \
			b++;                                                      \
		} while (b & 3);                                                  \
		return a * 3 + (b & 3) + n;                                       \
	}

#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
EACH(PLAIN)
EACH(LOCAL)
EACH(COLD)
EACH(LOOP)

typedef uint64_t (*work_fn)(uint64_t a, uint64_t b);
extern const work_fn NAME(work)[32];

#define PLAIN_ENTRY(n) NAME(plain##n),
#define LOCAL_ENTRY(n) NAME(local##n),
#define COLD_ENTRY(n)  NAME(cold##n),
#define LOOP_ENTRY(n)  NAME(loop##n),
const work_fn NAME(work)[32] = {EACH(PLAIN_ENTRY) EACH(LOCAL_ENTRY) EACH(COLD_ENTRY) EACH(LOOP_ENTRY)};
