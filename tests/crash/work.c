/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - a library whose function is called through a GOT slot. */
#include "tests/crash/work.h"

__attribute__((visibility("default"))) void crash_step(uint64_t word, uint64_t mixed)
{
	__asm__ volatile("" : : "r"(word), "r"(mixed));
}
