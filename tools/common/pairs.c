/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - functions that allocate and free: pairs.h. */
#include "tools/common/pairs.h"
#include "tools/tool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The part before "($N)" at the end, to be freed, and N; 0: there is none. NULL: it is empty or the number is wrong. */
static char *take_side(const char *text, size_t bytes, uint8_t *number)
{
	char *name = strndup(text, bytes), *end;
	char *open = name ? strstr(name, "($") : NULL;
	*number = 0;
	if (open && name[bytes - 1] == ')') {
		unsigned long value = strtoul(open + 2, &end, 10);
		*open = '\0';
		*number = (uint8_t)value;
		if (value < 1 || value > 6 || end != name + bytes - 1)
			*name = '\0';
	}
	if (name && *name)
		return name;
	free(name);
	return NULL;
}

bool tw_pairs_take(struct tw_pairs *pairs, const struct tw_command *command, const char *text)
{
	const char *middle = strchr(text, '=');
	size_t at = pairs->patterns.wanted_count;
	uint8_t size = 0, block = 0;
	char *makes = middle ? take_side(text, (size_t)(middle - text), &size) : NULL;
	char *frees = middle && middle[1] ? take_side(middle + 1, strlen(middle + 1), &block) : NULL;
	bool is_right = makes && frees && at < (size_t)2 * TW_PAIRS_MAX;
	if (!is_right)
		tw_usage(
			command,
			"--pair is NEW=FREE, two functions, or NEW($1)=FREE($1) with numbers of arguments from 1 to 6, at most %d times; not '%s'.",
			TW_PAIRS_MAX, text);
	is_right = is_right && tw_patterns_take(&pairs->patterns, command, false, makes) &&
		   tw_patterns_take(&pairs->patterns, command, false, frees);
	if (is_right) {
		pairs->list[at] = (struct tw_memory_function){.name = makes, .does = TW_MEMORY_ALLOCATES, .size = size};
		pairs->list[at + 1] =
			(struct tw_memory_function){.name = frees, .does = TW_MEMORY_FREES, .block = block};
		return true;
	}
	free(makes);
	free(frees);
	return false;
}

static uint8_t mark(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_pairs *pairs = context;
	const struct tw_capture_function *function = place->function;
	if (!function || !function->module)
		return 0;
	const struct tw_patterns_subject subject = {.module = function->module->name,
						    .path = function->module->path,
						    .soname = function->module->soname,
						    .function = function->name,
						    .arity = function->arity};
	size_t first = tw_patterns_first(&pairs->patterns, &subject);
	return first == pairs->patterns.wanted_count ? 0 : (uint8_t)(first + 1);
}

const struct tw_memory_functions *tw_pairs_functions(struct tw_pairs *pairs)
{
	pairs->functions =
		(struct tw_memory_functions){mark, pairs, pairs->list, (unsigned)pairs->patterns.wanted_count};
	return pairs->patterns.wanted_count ? &pairs->functions : NULL;
}

void tw_pairs_free(struct tw_pairs *pairs)
{
	for (unsigned i = 0; i < 2 * TW_PAIRS_MAX; i++)
		free((char *)(uintptr_t)pairs->list[i].name);
	tw_patterns_free(&pairs->patterns);
}
