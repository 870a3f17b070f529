/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.c - the size of the vector state, from the processor. */
#include "base/vectors.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

/*
 * x87, SSE, AVX and AVX-512; not protection keys (no vector), not AMX (8 KiB, and no function takes or
 * keeps tiles across a call).
 */
#define VECTOR_STATES 0xe7u
/* x87 and SSE, with the header of the area. */
#define BYTES_MIN 576u
#define BYTES_MAX 4096u

void tw_vectors_measure(struct tw_vectors *out)
{
	*out = (struct tw_vectors){0, 0};
#if defined __x86_64__
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	out->mask = a & VECTOR_STATES;
	out->bytes = BYTES_MIN;
	for (unsigned state = 2; state < 8; state++) {
		if (!(out->mask & 1u << state))
			continue;
		__cpuid_count(0xd, state, a, b, c, d);
		/* a: its size, b: its offset in the area */
		if (a + b > out->bytes)
			out->bytes = a + b;
	}
#endif
}

bool tw_vectors_are_sound(const struct tw_vectors *vectors)
{
	return vectors->bytes >= BYTES_MIN && vectors->bytes <= BYTES_MAX && !(vectors->mask & ~VECTOR_STATES) &&
	       (vectors->mask & 3) == 3;
}
