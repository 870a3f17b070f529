/* SPDX-License-Identifier: Apache-2.0 */
/* layout_memory.c - what stands in the braces of a layout's types: see tracewheel/layout.h. */
#include "tracewheel/layout.h"

#include "base/export.h"

#include <stdlib.h>
#include <string.h>

/* A number that ends the text. */
static bool take_number(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*out = strtoull(text, &end, 10);
	return !*end;
}

TW_API bool tw_layout_factor(const struct tw_layout_value *value, uint32_t at, struct tw_layout_factor *out)
{
	const struct tw_layout_enumerator *entry;
	uint64_t number = 0;

	if ((value->type != 'm' && value->type != 'M') || at >= value->enumerator_count)
		return false;
	entry = &value->enumerators[at];
	switch (entry->name[0]) {
	case 'n':
		if (entry->name[1] || entry->value < 0 || entry->value > UINT32_MAX)
			return false;
		number = (uint64_t)entry->value;
		break;
	case 'r':
		if (entry->name[1])
			return false;
		break;
	case 'a':
	case 'p':
	case 'q':
		if (!take_number(entry->name + 1, &number) || number >= TW_LAYOUT_VALUES_MAX)
			return false;
		break;
	default: return false;
	}
	*out = (struct tw_layout_factor){entry->name[0], (uint32_t)number};
	return true;
}

TW_API bool tw_layout_numbers(const struct tw_layout_value *value, struct tw_layout_value *element, uint32_t *count)
{
	const struct tw_layout_enumerator *entry = value->enumerators;
	uint64_t bytes;

	if (value->type != 'V' || value->enumerator_count != 1 || !entry->name[0] || !strchr("iupx", entry->name[0]))
		return false;
	if (!take_number(entry->name + 1, &bytes) || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return false;
	if (entry->value < 1 || entry->value > 32)
		return false;
	*element = (struct tw_layout_value){.name = "",
					    .type_name = "",
					    .type = entry->name[0],
					    .bytes = (uint32_t)bytes,
					    .registers = {0, -1}};
	*count = (uint32_t)entry->value;
	return true;
}

TW_API bool tw_layout_flag(const struct tw_layout_enumerator *entry, size_t *name_bytes, uint64_t *mask)
{
	const char *dot = strrchr(entry->name, '.');

	*name_bytes = dot ? (size_t)(dot - entry->name) : strlen(entry->name);
	*mask = (uint64_t)entry->value;
	return !dot || take_number(dot + 1, mask);
}

TW_API bool tw_layout_is_given(const struct tw_layout *layout, const struct tw_layout_value *value,
			       const uint64_t *words)
{
	const struct tw_layout_enumerator *entry = value->enumerators;
	uint32_t at = 0;
	uint64_t number;

	if (value->type != 'o' || value->enumerator_count != 1 || !take_number(entry->name, &number) ||
	    number >= layout->count || layout->values[number].registers[0] < 0)
		return true;
	for (uint32_t i = 0; i < number; i++)
		at += (layout->values[i].registers[0] >= 0) + (layout->values[i].registers[1] >= 0);
	return (words[at] & (uint64_t)entry->value) != 0;
}
