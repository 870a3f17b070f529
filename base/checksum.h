/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.h - the one checksum of every stored byte: XXH3, 64 bits, seed 0. */
#ifndef TW_BASE_CHECKSUM_H
#define TW_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t tw_checksum64(const void *data, size_t bytes);
/* Checksum of a header and its data: the XXH3 of the data, seeded with the XXH3 of the header. */
uint64_t tw_checksum64_two(const void *head, size_t head_bytes, const void *data, size_t bytes);

#endif
