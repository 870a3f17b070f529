/* SPDX-License-Identifier: Apache-2.0 */
/* locked.h - how much memory of the calling process is locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In KiB; -1: not known. */
static inline long locked_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, "VmLck:", 6))
			kib = atol(line + 6);
	if (status)
		fclose(status);
	return kib;
}
