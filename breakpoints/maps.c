/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - /proc/self/maps. */
#include "breakpoints/maps.h"

#include "base/sys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct tw_mapping *mappings;
static size_t mapping_count;

static int parse_protection(const char *flags)
{
	return (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
	       (flags[2] == 'x' ? PROT_EXEC : 0);
}

/* False: no memory. */
static bool add_line(const char *line, size_t *room)
{
	struct tw_mapping mapping;
	char *end;

	mapping.low = strtoul(line, &end, 16);
	if (*end != '-')
		return true;
	mapping.high = strtoul(end + 1, &end, 16);
	if (*end != ' ')
		return true;
	mapping.protection = parse_protection(end + 1);
	if (mapping_count == *room) {
		struct tw_mapping *more = realloc(mappings, (*room * 2 + 64) * sizeof *more);

		if (!more)
			return false;
		mappings = more;
		*room = *room * 2 + 64;
	}
	mappings[mapping_count++] = mapping;
	return true;
}

/* On failure no mapping is known, and callers report that.  Without stdio, which calls the program's malloc. */
static void read_mappings(void)
{
	char text[4096], line[128];
	size_t filled = 0, room = 0;
	bool is_going_on = true;
	int fd = tw_sys_open_to_read("/proc/self/maps");
	long bytes;

	tw_mappings_forget();
	while (fd >= 0 && is_going_on && (bytes = tw_sys_read(fd, text, sizeof text)) > 0)
		for (long i = 0; i < bytes && is_going_on; i++) {
			/* Only the beginning of each line is kept. */
			if (text[i] != '\n') {
				line[filled] = text[i];
				filled += filled < sizeof line - 1;
				continue;
			}
			line[filled] = '\0';
			filled = 0;
			is_going_on = add_line(line, &room);
		}
	if (fd >= 0)
		tw_sys_close(fd);
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
