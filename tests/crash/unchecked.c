/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unchecked.c - a negative control: with a constant checksum, a test of damage must fail.
 *
 * Linked into tests/unit/capture_damage_test.c with --wrap=tw_checksum64.
 */
#include <stddef.h>
#include <stdint.h>

uint64_t __wrap_tw_checksum64(const void *data, size_t bytes);

uint64_t __wrap_tw_checksum64(const void *data, size_t bytes)
{
	return 1;
}
