/* SPDX-License-Identifier: Apache-2.0 */
/* functions_text.c - the list of `tracewheel functions` as text. */
#include "tools/functions.h"
#include "views/names/names.h"
#include "views/names/namesakes.h"
#include "base/search.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_COLUMNS 48

static bool is_same_function(const struct tw_functions_row *a, const struct tw_functions_row *b)
{
	return strcmp(a->module, b->module) == 0 && strcmp(a->place.function, b->place.function) == 0 &&
	       (a->place.refusal != NULL) == (b->place.refusal != NULL) && a->place.how == b->place.how &&
	       a->is_chosen == b->is_chosen;
}

const char *tw_functions_way(const struct tw_functions_row *row)
{
	return row->place.how == TW_SYMBOLS_SLED ? "sled" : row->place.how == TW_SYMBOLS_ENTRY ? "entry" : "slot";
}

size_t tw_functions_run(const struct tw_functions *list, size_t at)
{
	size_t end = at + 1;
	while (end < list->count && is_same_function(&list->rows[at], &list->rows[end]))
		end++;
	return end - at;
}

/* The row before it says so: an entry comes before slots. */
static bool is_slot_of_chosen(const struct tw_functions *list, size_t at)
{
	const struct tw_functions_row *row = &list->rows[at];
	return at && row->place.how == TW_SYMBOLS_SLOT && row[-1].is_chosen &&
	       strcmp(row->module, row[-1].module) == 0 && strcmp(row->place.function, row[-1].place.function) == 0;
}

/* Those of the list. Without memory none: no row says which of them it is. */
static struct tw_namesakes find_namesakes(const struct tw_functions *list)
{
	struct tw_namesakes namesakes = {0};
	for (size_t i = 0; i < list->count; i++) {
		if (!tw_namesakes_add(&namesakes, list->rows[i].module, list->rows[i].place.function)) {
			tw_namesakes_free(&namesakes);
			break;
		}
	}
	tw_namesakes_keep(&namesakes);
	return namesakes;
}

static void put_rows(const struct tw_functions *list, const struct tw_namesakes *namesakes, bool refused)
{
	char name[1200], clean[2400];
	for (size_t i = 0, n; i < list->count; i += n) {
		const struct tw_functions_row *row = &list->rows[i];
		n = tw_functions_run(list, i);
		if ((row->place.refusal != NULL) != refused)
			continue;
		char *demangled = tw_name_demangled(row->place.function);
		char arity[16] = "";
		tw_name_arity_shown(row->arity, arity, sizeof arity - 1);
		bool is_shared = demangled && tw_namesakes_have(namesakes, row->module, row->place.function);
		snprintf(name, sizeof name, "%s:%s%s%s%s%s", row->module, demangled ? demangled : row->place.function,
			 is_shared ? " [" : "", is_shared ? row->place.function : "", is_shared ? "]" : "", arity);
		free(demangled);
		clean[tw_clean(name, strlen(name), clean, sizeof clean - 1)] = 0;
		bool is_alone =
			row->place.how != TW_SYMBOLS_SLOT && !refused && !row->is_chosen && !row->place.has_no_end;
		tw_out_format(&tw_functions_out, "%s%s  %-*s", tw_functions_way(row),
			      row->place.how == TW_SYMBOLS_ENTRY || !list->entries ? "" : " ",
			      is_alone ? 0 : NAME_COLUMNS, clean);
		for (size_t k = 0; k < n && row->place.how == TW_SYMBOLS_SLOT; k++) {
			tw_out_text(&tw_functions_out, k ? ", " : "  from ");
			tw_out_name(&tw_functions_out, row[k].place.caller->name);
		}
		if (row->place.has_no_end && !refused)
			tw_out_text(&tw_functions_out, "  without ends");
		if (row->is_chosen && !refused)
			tw_out_text(&tw_functions_out, "  of the code that the loader chooses");
		if (!refused && is_slot_of_chosen(list, i))
			tw_out_text(&tw_functions_out, ", if another function has the same code");
		if (refused) {
			tw_out_text(&tw_functions_out, ": ");
			tw_out_name(&tw_functions_out, row->place.refusal);
		}
		tw_out_text(&tw_functions_out, "\n");
	}
}

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return TW_ORDER(*x, *y);
}

typedef bool is_place_fn(const struct tw_symbols_place *place);

static bool is_endless(const struct tw_symbols_place *place)
{
	return !place->refusal && place->has_no_end;
}

static bool is_entry(const struct tw_symbols_place *place)
{
	return place->how == TW_SYMBOLS_ENTRY && !place->refusal;
}

static bool is_refused_entry(const struct tw_symbols_place *place)
{
	return place->how == TW_SYMBOLS_ENTRY && place->refusal;
}

static bool is_sled(const struct tw_symbols_place *place)
{
	return place->how == TW_SYMBOLS_SLED && !place->refusal;
}

static bool is_loose_sled(const struct tw_symbols_place *place)
{
	return is_sled(place) && place->is_loose;
}

/* The functions of an object with such a place, however many names each has. */
static size_t count_functions(const struct tw_functions *list, const struct tw_symbols_object *module, is_place_fn *is)
{
	uint64_t *values = malloc((list->count + 1) * sizeof *values);
	size_t count = 0, different = 0;
	for (size_t i = 0; values && i < list->count; i++) {
		if (list->rows[i].place.module == module && !list->rows[i].is_chosen && is(&list->rows[i].place))
			values[count++] = list->rows[i].place.value;
	}
	if (count)
		qsort(values, count, sizeof *values, compare_values);
	for (size_t i = 0; i < count; i++)
		different += !i || values[i] != values[i - 1];
	free(values);
	return different;
}

static size_t count_everywhere(const struct tw_functions *list, is_place_fn *is)
{
	size_t count = 0;
	for (size_t i = 0; i < tw_symbols_object_count(list->symbols); i++)
		count += count_functions(list, tw_symbols_object(list->symbols, i), is);
	return count;
}

/* The entries of each object by themselves. */
static void put_entries(const struct tw_functions *list)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	for (size_t i = 0; i < tw_symbols_object_count(list->symbols); i++) {
		const struct tw_symbols_object *object = tw_symbols_object(list->symbols, i);
		if (!tw_functions_wants_module(list, i))
			continue;
		size_t good = count_functions(list, object, is_entry);
		size_t refused = count_functions(list, object, is_refused_entry);
		const char *problem = tw_entries_problem(list->entries, object);
		if (!problem && !good && !refused)
			continue;
		tw_out_name(&tw_functions_out, object->name);
		if (problem)
			tw_out_format(&tw_functions_out, ": its entries are left alone: %s.\n", problem);
		else
			tw_out_format(&tw_functions_out, ": %s of %s can be traced at %s (%.1f %%).\n",
				      tw_figure_count(a, good),
				      tw_figure_of(b, good + refused, "function", "functions"),
				      good + refused == 1 ? "its entry" : "their entries",
				      good ? 100.0 * (double)good / (double)(good + refused) : 0.0);
	}
}

static void put_refusal(const char *refusal)
{
	tw_out_text(&tw_functions_out, "Nothing of this program can be recorded: ");
	tw_out_name(&tw_functions_out, refusal);
	tw_out_text(&tw_functions_out, ".\n");
}

/* How many can be traced which way. */
static void put_sums(const struct tw_functions *list, const struct tw_symbols *symbols)
{
	size_t entries = count_everywhere(list, is_entry), refused = count_everywhere(list, is_refused_entry);
	size_t sleds = count_everywhere(list, is_sled), loose = count_everywhere(list, is_loose_sled);
	size_t endless = count_everywhere(list, is_endless);
	size_t slots = 0, objects = tw_symbols_object_count(symbols);
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	for (size_t i = 0, n; i < list->count; i += n) {
		n = tw_functions_run(list, i);
		if (list->rows[i].place.refusal)
			refused += list->rows[i].place.how != TW_SYMBOLS_ENTRY;
		else
			slots += list->rows[i].place.how == TW_SYMBOLS_SLOT;
	}
	if (list->entries)
		put_entries(list);
	if (list->request->is_global)
		tw_out_format(&tw_functions_out, "%s can be traced through slots, in %s.\n",
			      tw_figure_of(a, slots, "function", "functions"),
			      tw_figure_of(d, objects, "object", "objects"));
	else if (list->request->is_local)
		tw_out_format(&tw_functions_out, "%s can be traced at %s and %s through sleds, in %s.\n",
			      tw_figure_of(a, entries, "function", "functions"),
			      entries == 1 ? "its entry" : "their entries", tw_figure_count(b, sleds),
			      tw_figure_of(d, objects, "object", "objects"));
	else
		tw_out_format(&tw_functions_out,
			      "%s can be traced at %s, %s through sleds and %s through slots, in %s.\n",
			      tw_figure_of(a, entries, "function", "functions"),
			      entries == 1 ? "its entry" : "their entries", tw_figure_count(b, sleds),
			      tw_figure_count(c, slots), tw_figure_of(d, objects, "object", "objects"));
	if (endless)
		tw_out_format(
			&tw_functions_out,
			"Of %s only calls are recorded, without ends: such functions return twice or never, or use their "
			"return address.\n",
			tw_figure_of(a, endless, "function", "functions"));
	if (loose)
		tw_out_format(
			&tw_functions_out,
			"%s of several instructions: in a library that a program with threads opens later, "
			"such sleds are traced only if all threads can be stopped; `tracewheel compact` makes one instruction of each.\n",
			tw_figure_of(a, loose, "sled is", "sleds are"));
	if (refused && !list->request->wants_refused)
		tw_out_format(&tw_functions_out, "%s cannot be traced; --refused says why.\n",
			      tw_figure_of(a, refused, "place", "places"));
}

static void put_missing(const struct tw_symbols *symbols)
{
	const char *missing;
	for (size_t i = 0; (missing = tw_symbols_missing(symbols, i)); i++) {
		tw_out_text(&tw_functions_out, "The library ");
		tw_out_name(&tw_functions_out, missing);
		tw_out_text(&tw_functions_out, " was not found: calls to it are not shown.\n");
	}
}

void tw_functions_put_text(const struct tw_functions *list, const struct tw_symbols *symbols)
{
	const char *refusal = tw_symbols_refusal(symbols);
	uint64_t begin;
	if (refusal && list->count)
		put_refusal(refusal);
	begin = tw_out_mark(&tw_functions_out);
	struct tw_namesakes namesakes = find_namesakes(list);
	put_rows(list, &namesakes, list->request->wants_refused);
	tw_namesakes_free(&namesakes);
	if (tw_out_mark(&tw_functions_out) > begin)
		tw_out_text(&tw_functions_out, "\n");
	/* Behind a long list too, where sums would say otherwise. */
	if (refusal)
		put_refusal(refusal);
	else
		put_sums(list, symbols);
	put_missing(symbols);
}
