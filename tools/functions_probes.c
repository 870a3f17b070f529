/* SPDX-License-Identifier: Apache-2.0 */
/* functions_probes.c - `tracewheel functions --probes`: the probes that a program and its libraries bring themselves. */
#include "base/grow.h"
#include "base/search.h"
#include "tools/functions.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_COLUMNS	  44
#define ARGUMENTS_COLUMNS 32

struct list {
	const struct tw_functions *functions;
	struct tw_entries_probe *probes;
	size_t count, capacity;
};

static int add_probe(const struct tw_entries_probe *probe, void *arg)
{
	struct list *list = arg;
	const struct tw_patterns_subject subject = {.module = TW_PATTERN_PROBES,
						    .function = probe->name,
						    .arity = probe->argument_count};
	if (!tw_patterns_match(&list->functions->request->patterns, &subject))
		return 0;
	if (!tw_grow(list->probes, list->count, list->capacity))
		return TW_ENOMEM;
	list->probes[list->count++] = *probe;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct tw_entries_probe *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->module->path, y->module->path);
	return order ?: TW_ORDER(x->value, y->value);
}

static void put_line(const struct tw_entries_probe *probe, bool is_refused)
{
	char name[300], where[100];
	snprintf(name, sizeof name, "%s:%.280s", TW_PATTERN_PROBES, probe->name);
	tw_out_name(&tw_functions_out, name);
	tw_out_format(&tw_functions_out, "%*s", strlen(name) < NAME_COLUMNS ? (int)(NAME_COLUMNS - strlen(name)) : 0,
		      "");
	tw_out_text(&tw_functions_out, "  ");
	tw_out_name(&tw_functions_out, probe->arguments);
	if (strlen(probe->arguments) < ARGUMENTS_COLUMNS)
		tw_out_format(&tw_functions_out, "%*s", (int)(ARGUMENTS_COLUMNS - strlen(probe->arguments)), "");
	tw_out_text(&tw_functions_out, "  ");
	tw_out_name(&tw_functions_out, probe->module->name);
	snprintf(where, sizeof where, " 0x%llx%s", (unsigned long long)probe->value,
		 probe->semaphore ? ", semaphore" : "");
	tw_out_text(&tw_functions_out, where);
	if (probe->is_shared)
		tw_out_text(&tw_functions_out, ", unless its function's entry is traced");
	if (is_refused)
		tw_out_format(&tw_functions_out, ": %s", probe->refusal);
	tw_out_text(&tw_functions_out, "\n");
}

static void put_text(const struct list *list)
{
	bool wants_refused = list->functions->request->wants_refused;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	size_t good = 0, names = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct tw_entries_probe *probe = &list->probes[i];
		good += !probe->refusal;
		names += !i || strcmp(probe->name, probe[-1].name) != 0;
		if (!wants_refused || probe->refusal)
			put_line(probe, probe->refusal);
	}
	if (list->count)
		tw_out_text(&tw_functions_out, "\n");
	tw_out_format(&tw_functions_out, "%s at %s; %zu of them can be traced.\n",
		      tw_figure_of(a, names, "probe", "probes"), tw_figure_of(b, list->count, "place", "places"), good);
	for (size_t i = 0; i < tw_symbols_object_count(list->functions->symbols); i++) {
		const struct tw_symbols_object *object = tw_symbols_object(list->functions->symbols, i);
		const char *problem = tw_entries_problem(list->functions->entries, object);
		if (problem && !i)
			tw_out_format(&tw_functions_out, "%s: its probes are not known: %s.\n", object->name, problem);
	}
}

static void put_json(const struct list *list)
{
	struct tw_json json = {.out = &tw_functions_out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	tw_json_open(&json, "probes", '[');
	for (size_t i = 0; i < list->count; i++) {
		const struct tw_entries_probe *probe = &list->probes[i];
		size_t provider = strcspn(probe->name, ":");
		tw_json_open(&json, NULL, '{');
		tw_json_text(&json, "provider", probe->name, provider);
		tw_json_string(&json, "name", probe->name + provider + 1);
		tw_json_string(&json, "module", probe->module->name);
		tw_json_string(&json, "path", probe->module->path);
		tw_json_u64(&json, "address", probe->value);
		tw_json_string(&json, "arguments", probe->arguments);
		tw_json_u64(&json, "argument_count", probe->argument_count);
		if (probe->semaphore)
			tw_json_u64(&json, "semaphore", probe->semaphore);
		if (probe->is_shared)
			tw_json_bool(&json, "shared", true);
		if (probe->refusal)
			tw_json_string(&json, "refusal", probe->refusal);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

int tw_functions_put_probes(const struct tw_functions *functions)
{
	struct list list = {.functions = functions};
	int error = 0;
	for (size_t i = 0; i < tw_symbols_object_count(functions->symbols) && !error; i++)
		error = tw_entries_each_probe(functions->entries, i, add_probe, &list);
	if (!error && list.count)
		qsort(list.probes, list.count, sizeof *list.probes, compare);
	if (!error && functions->request->is_json)
		put_json(&list);
	else if (!error)
		put_text(&list);
	free(list.probes);
	return error;
}
