/* SPDX-License-Identifier: Apache-2.0 */
/* hit_help.h - a hit that counts, and remembers the last place and its arguments. */
#ifndef TW_TESTS_HIT_HELP_H
#define TW_TESTS_HIT_HELP_H

#include "breakpoints/breakpoints.h"

static unsigned hits;
static struct tw_place *last_place;
static uint64_t last_words[6];

/* Fills every register that a function may change with garbage, except vector registers. */
__attribute__((target("general-regs-only"), no_sanitize("alignment"))) static const char *counting_hit(
	struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	hits++;
	last_place = place;
	for (int i = 0; i < 6; i++)
		last_words[i] = words[i];
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
			 "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
	return NULL;
}

#endif
