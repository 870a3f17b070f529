/* SPDX-License-Identifier: Apache-2.0 */
/* layout_probes.c - probes that programs bring have no types but in prototypes: sdt:PROVIDER:NAME(...). */
#include "tools/record/layouts.h"
#include "tools/record/prototypes.h"
#include "tools/common/entries.h"
#include "tools/common/patterns.h"

#include "tracewheel/error.h"
#include "tracewheel/layout.h"

#include <stdlib.h>
#include <string.h>

struct walk {
	struct tw_layouts *layouts;
	const struct tw_patterns *patterns;
	const struct tw_symbols_object *object;
	bool has_module;
};

/* No argument of a probe is in a vector register. */
static bool has_only_words(const char *text)
{
	struct tw_layout *layout;
	if (tw_layout_parse(text, strlen(text), &layout))
		return false;
	bool are_words = true;
	for (uint32_t i = 0; i < layout->count; i++)
		are_words &= layout->values[i].registers[0] < 6 && layout->values[i].registers[1] < 0;
	tw_layout_destroy(layout);
	return are_words;
}

static int take_probe(const struct tw_entries_probe *probe, void *arg)
{
	struct walk *walk = arg;
	const struct tw_patterns_subject subject = {.module = TW_PATTERN_PROBES,
						    .function = probe->name,
						    .arity = probe->argument_count};
	const char *layout = probe->refusal || !tw_patterns_match(walk->patterns, &subject)
				     ? NULL
				     : tw_prototypes_find(walk->layouts->prototypes, &subject, false);
	if (!layout || !has_only_words(layout))
		return 0;
	if (!walk->has_module && !tw_layouts_put_module(walk->layouts, walk->object))
		return TW_ENOMEM;
	walk->has_module = true;
	return tw_layouts_put_function(walk->layouts, probe->value, layout) ? 0 : TW_ENOMEM;
}

int tw_layouts_take_probes(struct tw_layouts *layouts, const struct tw_symbols *symbols, size_t index,
			   const struct tw_patterns *patterns)
{
	struct walk walk = {layouts, patterns, tw_symbols_object(symbols, index), false};
	bool is_asked = false;
	for (size_t i = 0; i < patterns->wanted_count; i++)
		is_asked |= tw_pattern_is_of_probes(patterns->wanted[i]);
	if (!is_asked || !layouts->prototypes || !tw_entries_has_probes(symbols, index))
		return 0;
	struct tw_entries *entries = tw_entries_open(symbols, false, true);
	int error = entries ? tw_entries_each_probe(entries, index, take_probe, &walk) : TW_ENOMEM;
	tw_entries_close(entries);
	return error;
}
