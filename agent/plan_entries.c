/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_entries.c - which functions of an object are recorded at their entries, and under which name.
 *
 * A function with a sled is recorded there.  With --local, all others that patterns select are recorded at their entries.
 * Otherwise some are left to slots:
 *
 *	functions that preload/ wraps	the program's calls lead to our wrapper, under the program's name for them, and from there
 *					perhaps to another function of libc
 *	functions of --ports		libc calls them from each other (fread: read): a transfer would be counted twice
 *	one code, several functions	memcpy and memmove: only the caller's slot says which of them it is
 *
 * Of some functions the loader chooses an implementation (STT_GNU_IFUNC).  The symbol is the resolver's, which chooses; calls
 * enter the implementation, which has another name or none.  Its entry is recorded under the name of the function.
 */
#include "agent/agent.h"

#include "base/figure.h"
#include "base/grow.h"
#include "base/search.h"
#include "symbols/entries.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* A function whose implementation the loader has chosen. */
struct chosen {
	uintptr_t implementation;
	uint64_t resolver; /* the symbol's value: names with the same one are one function's */
	bool is_weak;
	const char *name; /* borrowed from the object */
};

struct scan {
	struct tw_plan *plan;
	const struct tw_agent_config *config;
	const struct tw_sym_object *object;
	uintptr_t *sleds; /* functions that have sleds, ascending */
	size_t sled_count;
	struct chosen *chosen; /* by implementation */
	size_t chosen_count, chosen_capacity;
	unsigned refused_count;
};

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return TW_ORDER(x, y);
}

static int list_sleds(struct scan *scan, const struct tw_sym_sleds *sleds)
{
	scan->sleds = malloc((sleds->count + 1) * sizeof *scan->sleds);
	if (!scan->sleds)
		return TW_ENOMEM;
	scan->sled_count = sleds->count;
	for (size_t i = 0; i < sleds->count; i++)
		scan->sleds[i] = sleds->entries[i].entry;
	if (sleds->count)
		qsort(scan->sleds, sleds->count, sizeof *scan->sleds, by_address);
	return 0;
}

/* ---- functions whose implementation is chosen ---- */

/* strchr comes before index. */
static int by_implementation(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;

	if (x->implementation != y->implementation)
		return by_address(&x->implementation, &y->implementation);
	return x->is_weak != y->is_weak ? x->is_weak - y->is_weak : strcmp(x->name, y->name);
}

/* As ld.so asks: dlsym() would do the same. */
static uintptr_t ask_resolver(uintptr_t resolver)
{
	uintptr_t (*ask)(void);

	memcpy(&ask, &resolver, sizeof ask);
	return ask();
}

static bool is_chosen(const struct scan *scan, const ElfW(Sym) *symbol)
{
	return symbol && ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC && symbol->st_shndx != SHN_UNDEF &&
	       tw_elf_is_code(&scan->object->elf, scan->object->elf.base + symbol->st_value);
}

static bool wants(const struct scan *scan, const char *name)
{
	return tw_plan_wants(scan->config, scan->object, name, TW_PATTERN_ARITY_ANY);
}

/* Also if it is excluded. */
static bool selects(const struct scan *scan, const char *name)
{
	return tw_plan_selects(scan->config, scan->object, name);
}

static int add_chosen(struct scan *scan, const ElfW(Sym) *symbol)
{
	const struct tw_elf *elf = &scan->object->elf;

	if (!tw_grow(scan->chosen, scan->chosen_count, scan->chosen_capacity))
		return TW_ENOMEM;
	scan->chosen[scan->chosen_count++] =
		(struct chosen){.implementation = ask_resolver(elf->base + symbol->st_value),
				.resolver = symbol->st_value,
				.is_weak = ELF64_ST_BIND(symbol->st_info) == STB_WEAK,
				.name = tw_elf_string(elf, symbol->st_name)};
	return 0;
}

/* Resolvers are asked only if one of their functions is requested; then all, to find functions that share their code. */
static int list_chosen(struct scan *scan)
{
	const struct tw_elf *elf = &scan->object->elf;
	size_t count = tw_elf_symbol_count(elf);
	bool is_any_wanted = false;
	int error = 0;

	for (size_t i = 1; i < count && !is_any_wanted; i++) {
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, i);

		is_any_wanted = is_chosen(scan, symbol) && selects(scan, tw_elf_string(elf, symbol->st_name));
	}
	for (size_t i = 1; i < count && is_any_wanted && !error; i++) {
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, i);

		if (is_chosen(scan, symbol))
			error = add_chosen(scan, symbol);
	}
	if (scan->chosen_count)
		qsort(scan->chosen, scan->chosen_count, sizeof *scan->chosen, by_implementation);
	return error;
}

enum chosen_kind {
	IS_NOT_CHOSEN, /* the code implements no function that a pattern selects */
	IS_CHOSEN,
	IS_SHARED,	   /* it also implements another one */
	IS_CHOSEN_EXCLUDED /* its function is excluded */
};

/* *name: the first name that a pattern selects. */
static enum chosen_kind find_chosen(const struct scan *scan, uintptr_t address, const char **name)
{
	size_t low = tw_search(i, scan->chosen_count, scan->chosen[i].implementation < address);
	const char *found = NULL;
	bool is_shared = false;

	for (size_t i = low; i < scan->chosen_count && scan->chosen[i].implementation == address; i++) {
		is_shared |= scan->chosen[i].resolver != scan->chosen[low].resolver;
		if (!found && selects(scan, scan->chosen[i].name))
			found = scan->chosen[i].name;
	}
	if (!found)
		return IS_NOT_CHOSEN;
	*name = found;
	if (is_shared)
		return IS_SHARED;
	return wants(scan, found) ? IS_CHOSEN : IS_CHOSEN_EXCLUDED;
}

static bool is_chosen_name(const struct scan *scan, const char *name)
{
	for (size_t i = 0; i < scan->chosen_count; i++)
		if (!strcmp(scan->chosen[i].name, name))
			return true;
	return false;
}

/* Functions with the same code that patterns name. */
static void tell_shared(struct scan *scan, uintptr_t address)
{
	for (size_t i = 0; i < scan->chosen_count; i++)
		if (scan->chosen[i].implementation == address && tw_plan_is_named(scan->config, scan->chosen[i].name) &&
		    wants(scan, scan->chosen[i].name))
			tw_plan_put_note(
				scan->plan, NULL,
				"%s of %s is traced only where other objects call it: another function has the same code",
				scan->chosen[i].name, scan->object->name);
}

/* ---- rows ---- */

static bool is_left_to_slots(const struct scan *scan, const char *name)
{
	return (tw_sym_is_wrapped(name) && !strncmp(scan->object->elf.soname, "libc.so", 7)) ||
	       (tw_agent_is_port_module(scan->config, scan->object->elf.soname) &&
		tw_agent_is_port_function(scan->config, name));
}

/* Exclusion of one name leaves out the code, so functions of other names that patterns name are missing. */
static void tell_excluded(struct scan *scan, const char *name, const char *excluded)
{
	if (name != excluded && tw_plan_is_named(scan->config, name) && wants(scan, name))
		tw_plan_put_note(scan->plan, NULL, "%s of %s is not traced: %s, which has the same code, is excluded",
				 name, scan->object->name, excluded);
}

/*
 * Is the function requested, and recorded at its entry?  *name: the best of its names that a pattern selects; NULL: it has none.
 * If that one is excluded, the function is: without malloc there is no __libc_malloc.
 */
static bool is_wanted(struct scan *scan, const struct tw_plan_entry *entry, uintptr_t address, const char **name,
		      char nameless[TW_SYM_NAMELESS_BYTES])
{
	const char *next;

	tw_sym_nameless(entry->row->value, nameless);
	*name = NULL;
	if (scan->chosen_count) {
		enum chosen_kind kind = find_chosen(scan, address, name);

		if (kind == IS_SHARED)
			tell_shared(scan, address);
		if (kind != IS_NOT_CHOSEN)
			return kind == IS_CHOSEN;
	}
	if (!entry->row->name_count)
		return wants(scan, nameless);
	for (unsigned n = 0; (next = tw_entry_plan_name(entry->plan, entry->row, n)); n++) {
		if (!scan->config->is_local && is_left_to_slots(scan, next))
			return false;
		if (selects(scan, next) && (!*name || tw_elf_is_better_name(&scan->object->elf, next, *name)))
			*name = next;
	}
	if (!*name || wants(scan, *name))
		return *name != NULL;
	for (unsigned n = 0; (next = tw_entry_plan_name(entry->plan, entry->row, n)); n++)
		tell_excluded(scan, next, *name);
	return false;
}

static int add_entry(struct tw_plan *plan, const struct tw_plan_entry *entry)
{
	if (!tw_grow(plan->entries, plan->entry_count, plan->entry_capacity))
		return TW_ENOMEM;
	plan->entries[plan->entry_count++] = *entry;
	return 0;
}

/* Nothing calls these. */
static bool is_never_called(enum tw_entry_refusal refusal)
{
	return refusal == TW_ENTRY_NO_CALLER || refusal == TW_ENTRY_SIGNAL;
}

static void refuse(struct scan *scan, const char *name, uintptr_t address, enum tw_entry_refusal refusal)
{
	const char *text = tw_entry_refusal_text(refusal);

	if (!scan->config->is_local && (is_never_called(refusal) || is_chosen_name(scan, name)))
		return;
	if (!tw_plan_is_named(scan->config, name))
		scan->refused_count++;
	else if (scan->config->is_local)
		tw_plan_put_note(scan->plan, NULL, "%s of %s is not traced: %s", name, scan->object->name, text);
	else
		tw_plan_put_note(scan->plan, (const void *)address,
				 "%s of %s is traced only where other objects call it: %s", name, scan->object->name,
				 text);
}

static void tell_refused(struct scan *scan)
{
	unsigned count = scan->refused_count;
	char figure[TW_COUNT_TEXT_BYTES];

	if (!count)
		return;
	if (scan->config->is_local)
		tw_plan_put_note(
			scan->plan, NULL,
			"%s %s of %s that %s not traced at %s: `tracewheel functions --local --refused` says why",
			tw_count_text(figure, count), count == 1 ? "function" : "functions", scan->object->name,
			count == 1 ? "matches is" : "match are", count == 1 ? "its entry" : "their entries");
	else
		tw_plan_put_note(
			scan->plan, NULL,
			"%s %s of %s that %s traced only where other objects call %s: `tracewheel functions --refused` says why",
			tw_count_text(figure, count), count == 1 ? "function" : "functions", scan->object->name,
			count == 1 ? "matches is" : "match are", count == 1 ? "it" : "them");
}

static int add_row(struct scan *scan, struct tw_plan_entry *entry)
{
	uintptr_t address = scan->object->elf.base + entry->row->value;
	char nameless[TW_SYM_NAMELESS_BYTES];
	enum tw_entry_refusal refusal;

	if (bsearch(&address, scan->sleds, scan->sled_count, sizeof address, by_address) ||
	    !is_wanted(scan, entry, address, &entry->name, nameless))
		return 0;
	refusal = tw_entry_plan_refusal(entry->row, scan->config->is_careful);
	if (!refusal)
		return add_entry(scan->plan, entry);
	refuse(scan, entry->name ? entry->name : nameless, address, refusal);
	return 0;
}

/* Without entries, a program of sleds was compiled for that; in others slots show calls between objects. */
static void tell_no_plan(const struct scan *scan, size_t index)
{
	const struct tw_sym_object *object = scan->object;
	bool is_unforeseen;
	const char *why = tw_agent_entries_why_none(object, &tw_agent_ring_set, &is_unforeseen);

	if (scan->plan->sleds_of[index].count || tw_sym_left_alone(object->elf.soname))
		return;
	if (scan->config->is_local)
		tw_plan_put_note(scan->plan, NULL, "every function without a sled of %s is not traced: %s",
				 object->name, why);
	else if (is_unforeseen)
		tw_plan_put_note(scan->plan, NULL, "functions of %s are traced only where other objects call them: %s",
				 object->name, why);
}

int tw_plan_add_entries(struct tw_plan *plan, const struct tw_agent_config *config, size_t index)
{
	const struct tw_sym_object *object = &plan->set->objects[index];
	struct scan scan = {.plan = plan, .config = config, .object = object};
	struct tw_plan_entry entry = {.object = index, .plan = tw_agent_entry_plan(object)};
	int error;

	if (!entry.plan) {
		tell_no_plan(&scan, index);
		return 0;
	}
	error = list_sleds(&scan, &plan->sleds_of[index]);
	if (!error && !config->is_local)
		error = list_chosen(&scan);
	for (uint32_t i = 0; !error && i < entry.plan->header->row_count; i++) {
		entry.row = &entry.plan->rows[i];
		error = add_row(&scan, &entry);
	}
	tell_refused(&scan);
	free(scan.sleds);
	free(scan.chosen);
	return error;
}
