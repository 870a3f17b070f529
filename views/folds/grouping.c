/* SPDX-License-Identifier: Apache-2.0 */
/* grouping.c - by what calls are grouped, as it is typed. */
#include "views/folds/groups.h"
#include "views/names/names.h"
#include "tracewheel/layout.h"

#include <stdlib.h>
#include <string.h>

/* arg:2, $2, arg:size: up to a slash. */
static bool parse_argument(const char *text, struct tw_grouping *out)
{
	char *end;
	const char *name = text + (*text == '$' ? 1 : 4);
	if ((*text != '$' && strncmp(text, "arg:", 4) != 0) || !*name || *name == '/')
		return false;
	unsigned long number = strtoul(name, &end, 10);
	bool is_number = end > name && (!*end || *end == '/');
	*out = (struct tw_grouping){.key = TW_BY_ARGUMENT, .number = is_number ? (uint32_t)number : 0, .name = name};
	return !is_number || (number > 0 && number <= TW_LAYOUT_VALUES_MAX);
}

bool tw_grouping_parse(const char *text, struct tw_grouping *out)
{
	static const char *const words[] = {[TW_BY_RESULT] = "result",
					    [TW_BY_ERRNO] = "errno",
					    [TW_BY_CALLER] = "caller",
					    [TW_BY_LINE] = "line",
					    [TW_BY_THREAD] = "thread",
					    [TW_BY_PROCESS] = "process",
					    [TW_BY_PROGRAM] = "program",
					    [TW_BY_MODULE] = "module",
					    [TW_BY_NAME] = "name",
					    [TW_BY_SERVER] = "server",
					    [TW_BY_INITIAL_CALL] = "initial-call",
					    [TW_BY_BEHAVIOUR] = "behaviour",
					    [TW_BY_APPLICATION] = "application",
					    [TW_BY_LABEL] = "label"};
	for (unsigned key = 0; key < sizeof words / sizeof *words; key++) {
		*out = (struct tw_grouping){.key = (enum tw_group_key)key};
		if (words[key] && strcmp(text, words[key]) == 0)
			return true;
	}
	return !strchr(text, '/') && parse_argument(text, out);
}

bool tw_grouping_parse_histogram(const char *text, struct tw_grouping *out)
{
	size_t bytes = strcspn(text, "/");
	bool is_known = true;
	*out = (struct tw_grouping){.key = TW_BY_DURATION};
	if (bytes == 6 && memcmp(text, "result", bytes) == 0)
		out->key = TW_BY_RESULT;
	else if (bytes != 8 || memcmp(text, "duration", bytes) != 0)
		is_known = parse_argument(text, out);
	out->is_histogram = true;
	if (!is_known || !text[bytes])
		return is_known;
	return (out->key == TW_BY_DURATION ? tw_parse_duration : tw_parse_bytes)(text + bytes + 1, &out->step) &&
	       out->step > 0 && out->step <= INT64_MAX;
}
