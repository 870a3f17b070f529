/* SPDX-License-Identifier: Apache-2.0 */
/* callers.c - a sorted table of functions by address.  Read in hits: compiled without vector registers. */
#include "pipeline/callers.h"
#include "progress/progress.h"
#include "tracewheel/term.h"

#include <stdlib.h>

struct range {
	uintptr_t low, high;
	const struct tw_function *function;
};

struct table {
	size_t count;
	struct range ranges[];
};

static struct table *_Atomic current;

static bool has_extent(const struct tw_function *function)
{
	return function->address && function->bytes;
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/* Those of all modules that are there; without a table: how many. */
static size_t gather(struct tw_permit *permit, struct table *table)
{
	size_t count = 0;

	for (const struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		for (const struct tw_function *f = module->functions; f && !module->is_gone; f = f->next_of_module) {
			if (!has_extent(f))
				continue;
			if (table)
				table->ranges[count] = (struct range){ f->address, f->address + f->bytes, f };
			count++;
		}
	}
	return count;
}

/* Hits find names that are atoms already. */
static void name_all(const struct table *table)
{
	tw_term_atom_z("_");
	for (size_t i = 0; i < table->count; i++) {
		tw_term_atom_z(table->ranges[i].function->name);
		tw_term_atom_z(table->ranges[i].function->module->name);
	}
}

void tw_callers_update(struct tw_permit *permit)
{
	/* RELAXED callers.table: written under the permit. */
	struct table *old = tw_load_relaxed(&current), *table;
	size_t count = gather(permit, NULL);

	table = malloc(sizeof *table + count * sizeof *table->ranges);
	if (!table)
		return;
	table->count = gather(permit, table);
	qsort(table->ranges, count, sizeof *table->ranges, compare);
	name_all(table);
	/* PAIR callers.table: release; acquire in tw_callers_find(). */
	tw_store_release(&current, table);
	if (old)
		tw_progress_wait();
	free(old);
}

const struct tw_function *tw_callers_find(uintptr_t return_address)
{
	/* PAIR callers.table: acquire; release in tw_callers_update(). */
	const struct table *table = tw_load_acquire(&current);
	/* A call may be the last instruction of a function. */
	uintptr_t address = return_address - 1;
	size_t low = 0, high = table ? table->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->ranges[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= table->ranges[low - 1].high)
		return NULL;
	return table->ranges[low - 1].function;
}
