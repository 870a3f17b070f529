/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - /proc/self/maps. */
#include "breakpoints/maps.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct tw_mapping *mappings;
static size_t mapping_count;

static int parse_protection(const char *flags)
{
	return (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
	       (flags[2] == 'x' ? PROT_EXEC : 0);
}

/* On failure nothing is known, and who asks says so. */
static void read_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	size_t room = 0;
	char line[512];

	tw_mappings_forget();
	if (!file)
		return;
	while (fgets(line, sizeof line, file)) {
		struct tw_mapping mapping;
		char *end;

		mapping.low = strtoul(line, &end, 16);
		if (*end != '-')
			continue; /* the rest of a long line */
		mapping.high = strtoul(end + 1, &end, 16);
		if (*end != ' ')
			continue;
		mapping.protection = parse_protection(end + 1);
		if (mapping_count == room) {
			struct tw_mapping *more = realloc(mappings, (room * 2 + 64) * sizeof *more);

			if (!more)
				break;
			mappings = more;
			room = room * 2 + 64;
		}
		mappings[mapping_count++] = mapping;
	}
	fclose(file);
}

static const struct tw_mapping *find(uintptr_t address)
{
	size_t low = 0, high = mapping_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings[middle].high <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < mapping_count && mappings[low].low <= address ? &mappings[low] : NULL;
}

const struct tw_mapping *tw_mapping_at(uintptr_t address)
{
	const struct tw_mapping *mapping = find(address);

	if (!mapping) {
		read_mappings();
		mapping = find(address);
	}
	return mapping;
}

void tw_mappings_forget(void)
{
	free(mappings);
	mappings = NULL;
	mapping_count = 0;
}
