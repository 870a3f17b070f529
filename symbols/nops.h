/* SPDX-License-Identifier: Apache-2.0 */
/* nops.h - NOP instructions at a function's entry, in running programs and in files. */
#ifndef TW_SYMBOLS_NOPS_H
#define TW_SYMBOLS_NOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No instruction is longer. */
#define TW_INSTRUCTION_BYTES_MAX 15
#define TW_ENDBR_BYTES		 4

static inline bool tw_is_endbr(const uint8_t *at)
{
	return !memcmp(at, "\xf3\x0f\x1e\xfa", TW_ENDBR_BYTES);
}

/* 90 with any number of 66 before it; 0f 1f /0 with its operand and prefixes 66, 2e. */
static inline unsigned tw_nop_bytes(const uint8_t *at, size_t capacity)
{
	size_t n = 0;
	unsigned mod, rm;

	while (n < capacity && n < TW_INSTRUCTION_BYTES_MAX && (at[n] == 0x66 || at[n] == 0x2e))
		n++;
	if (n < capacity && at[n] == 0x90)
		return (unsigned)n + 1;
	if (n + 3 > capacity || at[n] != 0x0f || at[n + 1] != 0x1f || (at[n + 2] & 0x38))
		return 0;
	mod = at[n + 2] >> 6;
	rm = at[n + 2] & 7;
	n += 3;
	if (mod != 3 && rm == 4)
		n++;
	if (mod == 1)
		n += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		n += 4;
	return n <= capacity && n <= TW_INSTRUCTION_BYTES_MAX ? (unsigned)n : 0;
}

#endif
