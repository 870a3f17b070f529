/* SPDX-License-Identifier: Apache-2.0 */
/* protection_help.h - the protection of a page, as the kernel has it. */
#ifndef TW_TESTS_PROTECTION_HELP_H
#define TW_TESTS_PROTECTION_HELP_H

#include <stdint.h>
#include <stdio.h>

/* 'w' writable, 'x' executable, 'r' neither; '?': not mapped. */
static inline char protection_of(const void *address)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512], flags[8], found = '?';
	unsigned long low, high;

	while (fgets(line, sizeof line, file))
		if (sscanf(line, "%lx-%lx %7s", &low, &high, flags) == 3 && (uintptr_t)address >= low &&
		    (uintptr_t)address < high)
			found = flags[1] == 'w' ? 'w' : flags[2] == 'x' ? 'x' : 'r';
	fclose(file);
	return found;
}

#endif
