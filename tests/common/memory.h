/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - how much anonymous memory the process has. */
#ifndef TW_TESTS_MEMORY_H
#define TW_TESTS_MEMORY_H

#include <stdio.h>

/* In kilobytes. */
static inline long memory(void)
{
	char line[256];
	long kb = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof line, file) && sscanf(line, "RssAnon: %ld", &kb) != 1)
		;
	fclose(file);
	return kb;
}

#endif
