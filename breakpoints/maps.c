/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - /proc/self/maps. */
#include "breakpoints/maps.h"

#include "base/grow.h"
#include "base/search.h"
#include "base/sys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

static int parse_protection(const char *flags)
{
	return (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
	       (flags[2] == 'x' ? PROT_EXEC : 0);
}

/* False: no memory. */
static bool add_line(struct tw_mappings *mappings, const char *line)
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
	if (!tw_grow(mappings->list, mappings->count, mappings->capacity))
		return false;
	mappings->list[mappings->count++] = mapping;
	return true;
}

/* On failure no mapping is known, and callers report that.  Without stdio, which calls the program's malloc. */
static void read_mappings(struct tw_mappings *mappings)
{
	char text[4096], line[128];
	size_t filled = 0;
	bool is_going_on = true;
	int fd = tw_sys_open_to_read("/proc/self/maps");
	long bytes;

	tw_mappings_forget(mappings);
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
			is_going_on = add_line(mappings, line);
		}
	if (fd >= 0)
		tw_sys_close(fd);
}

static const struct tw_mapping *find(const struct tw_mappings *mappings, uintptr_t address)
{
	size_t low = tw_search(i, mappings->count, mappings->list[i].high <= address);

	return low < mappings->count && mappings->list[low].low <= address ? &mappings->list[low] : NULL;
}

const struct tw_mapping *tw_mapping_at(struct tw_mappings *mappings, uintptr_t address)
{
	const struct tw_mapping *mapping = find(mappings, address);

	if (!mapping) {
		read_mappings(mappings);
		mapping = find(mappings, address);
	}
	return mapping;
}

void tw_mappings_forget(struct tw_mappings *mappings)
{
	free(mappings->list);
	*mappings = (struct tw_mappings){.list = NULL};
}
