/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.c - XXH3 behind our name; inlined, so that no shared library of it is mapped. */
#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t tw_checksum64(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

/* The second piece is hashed with the hash of the first as its seed: one pass over each. */
uint64_t tw_checksum64_two(const void *head, size_t head_bytes, const void *data, size_t bytes)
{
	return XXH3_64bits_withSeed(data, bytes, XXH3_64bits(head, head_bytes));
}
