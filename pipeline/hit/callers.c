/* SPDX-License-Identifier: Apache-2.0 */
/* callers.c - a sorted table of functions by address. Read in hits: compiled without vector registers. */
#include "pipeline/hit/callers.h"
#include "base/search.h"
#include "progress/progress.h"
#include "tracewheel/term.h"

#include <stdlib.h>

struct range {
	uintptr_t low, high;
	union {
		const struct tw_function *function;
		const struct tw_module *module;
	};
};

/* Functions, followed by modules. */
struct table {
	size_t functions, modules;
	struct range ranges[];
};

static struct table *_Atomic current;
static _Atomic uint32_t is_kept; /* tables that were replaced: the program crashes */

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/* The functions of all loaded modules; with out NULL: their number only. */
static size_t gather_functions(struct tw_permit *permit, struct range *out)
{
	size_t count = 0;

	for (const struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		for (const struct tw_function *f = module->functions; f; f = f->next_of_module) {
			if (!f->address || !f->bytes)
				continue;
			if (out)
				out[count] = (struct range){f->address, f->address + f->bytes, {.function = f}};
			count++;
		}
	}
	return count;
}

static size_t gather_modules(struct tw_permit *permit, struct range *out)
{
	size_t count = 0;

	for (const struct tw_module *m = tw_bp_modules(permit); m; m = m->next) {
		if (m->is_declared || m->end_address <= m->base_address)
			continue;
		if (out)
			out[count] = (struct range){m->base_address, m->end_address, {.module = m}};
		count++;
	}
	return count;
}

/* Interns all names now: hits need them as atoms. */
static void name_all(const struct table *table)
{
	const struct range *modules = table->ranges + table->functions;

	tw_term_atom_z("_");
	for (size_t i = 0; i < table->functions; i++)
		tw_term_atom_z(table->ranges[i].function->name);
	for (size_t i = 0; i < table->modules; i++)
		tw_term_atom_z(modules[i].module->name);
}

void tw_callers_update(struct tw_permit *permit, bool has_functions)
{
	/* RELAXED callers.table: written under the permit. */
	struct table *old = tw_load_relaxed(&current), *table;
	size_t functions = has_functions ? gather_functions(permit, NULL) : 0, modules = gather_modules(permit, NULL);

	table = malloc(sizeof *table + (functions + modules) * sizeof *table->ranges);
	if (!table)
		return;
	table->functions = functions ? gather_functions(permit, table->ranges) : 0;
	table->modules = gather_modules(permit, table->ranges + functions);
	qsort(table->ranges, functions, sizeof *table->ranges, compare);
	qsort(table->ranges + functions, modules, sizeof *table->ranges, compare);
	if (has_functions)
		name_all(table);
	/* PAIR callers.table: release; acquire in tw_callers_find() and tw_callers_code(). */
	tw_exchange_seq_cst(&current, table);
	if (old)
		tw_progress_wait();
	/* PAIR callers.kept: seq_cst; tw_callers_keep().  Either the old one is kept, or that thread finds the new one. */
	if (!tw_load_seq_cst(&is_kept))
		free(old);
}

void tw_callers_keep(void)
{
	/* PAIR callers.kept: seq_cst; tw_callers_update(). */
	tw_exchange_seq_cst(&is_kept, 1);
}

static const struct range *find(const struct range *ranges, size_t count, uintptr_t address)
{
	size_t low = tw_search(i, count, ranges[i].low <= address);

	return low && address < ranges[low - 1].high ? &ranges[low - 1] : NULL;
}

bool tw_callers_code(uintptr_t address, struct tw_caller_code *out)
{
	/* PAIR callers.table: acquire; release in tw_callers_update(). */
	const struct table *table = tw_load_acquire(&current);
	const struct range *module = table ? find(table->ranges + table->functions, table->modules, address) : NULL;

	if (!module)
		return false;
	*out = (struct tw_caller_code){module->low, module->high, module->module->frames};
	return true;
}

struct tw_caller tw_callers_find(uintptr_t return_address)
{
	/* PAIR callers.table: acquire; release in tw_callers_update(). */
	const struct table *table = tw_load_acquire(&current);
	/* A call may be the last instruction of a function. */
	uintptr_t address = return_address - 1;
	const struct range *function, *module;
	struct tw_caller caller = {0};

	if (!table)
		return caller;
	function = find(table->ranges, table->functions, address);
	module = find(table->ranges + table->functions, table->modules, address);
	if (function)
		caller.function = function->function;
	if (function || module)
		caller.module = function ? function->function->module : module->module;
	if (caller.module)
		caller.offset = return_address - caller.module->base_address;
	return caller;
}
