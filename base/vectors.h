/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors.h - the space that the vector registers need, for code that saves them.
 *
 * Threads  any.
 * Units    bytes of an XSAVE area in the standard format; mask: state components as in XCR0.
 */
#ifndef TW_BASE_VECTORS_H
#define TW_BASE_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

struct tw_vectors {
	uint32_t bytes; /* 0: the processor, or the system, has no XSAVE */
	uint32_t mask;
};

/* Executes cpuid six times: each takes 6 us and more in a virtual machine. */
void tw_vectors_measure(struct tw_vectors *out);

/* Are these values plausible?  For values that come from another process on this machine. */
bool tw_vectors_are_sound(const struct tw_vectors *vectors);

#endif
