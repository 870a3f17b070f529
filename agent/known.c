/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.c - the objects that were examined, and the age of scans.
 *
 * ld.so counts the objects it loads and unloads, and a scan records these counts.  Scans of several threads get the
 * permit in any order, so two sets of counts are kept:
 *
 *	applied		the counts of the newest applied scan, under the permit.  An older scan must not be applied:
 *			it lacks newer objects, which would be taken for unloaded while their sleds are armed.
 *	seen		the counts of the last scan that was committed and left nothing to do: with these counts, none
 *			is needed.
 *
 * An object unloaded and loaded again between two scans has the known address and path, but nothing of what was written
 * into it.  Thus if something was unloaded since the last scan, each known object must still contain what we wrote;
 * otherwise it is forgotten and examined as new.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/grow.h"
#include "base/lock.h"
#include "breakpoints/breakpoints.h"

#include <stdlib.h>
#include <string.h>

struct known {
	uintptr_t base;
	char *path;
	bool is_put_off; /* to be examined again, but forgotten like others */
};

struct counts {
	uint64_t loaded, unloaded;
};

/* Protects everything here; held only briefly. */
static struct tw_lock lock = TW_LOCK_INIT;
static struct known *known;
static size_t known_count, known_capacity;
static struct counts seen, applied;

void tw_known_before_fork(void)
{
	tw_lock_seize(&lock);
}

void tw_known_after_fork(void)
{
	tw_lock_drop(&lock);
}

/* ---- counts ---- */

static struct counts counts_of(const struct tw_sym_set *set)
{
	return (struct counts){set->loaded_count, set->unloaded_count};
}

/* Both only grow, under ld.so's lock. */
static bool is_before(struct counts a, struct counts b)
{
	return a.loaded < b.loaded || a.unloaded < b.unloaded;
}

bool tw_known_is_change(void)
{
	struct counts now;
	bool is_change;

	tw_sym_counts(&now.loaded, &now.unloaded);
	tw_lock_seize(&lock);
	is_change = is_before(seen, now);
	tw_lock_drop(&lock);
	return is_change;
}

bool tw_known_is_outdated(const struct tw_sym_set *set)
{
	bool is_outdated;

	tw_lock_seize(&lock);
	is_outdated = is_before(counts_of(set), applied);
	tw_lock_drop(&lock);
	return is_outdated;
}

void tw_known_saw(const struct tw_sym_set *set)
{
	tw_lock_seize(&lock);
	if (is_before(seen, counts_of(set)))
		seen = counts_of(set);
	tw_lock_drop(&lock);
}

/* ---- objects ---- */

static bool is_same(const struct known *entry, const struct tw_sym_object *object)
{
	return entry->base == object->elf.base && !strcmp(entry->path, object->path);
}

/* Under the lock. */
static struct known *find_known(const struct tw_sym_object *object)
{
	for (size_t i = 0; i < known_count; i++)
		if (is_same(&known[i], object))
			return &known[i];
	return NULL;
}

bool tw_known_has(const struct tw_sym_object *object, void *unused)
{
	const struct known *found;
	bool is_examined;

	tw_lock_seize(&lock);
	found = find_known(object);
	is_examined = found && !found->is_put_off;
	tw_lock_drop(&lock);
	return is_examined;
}

void tw_known_add(const struct tw_sym_object *object, bool is_put_off)
{
	char *path = strdup(object->path);
	struct known *found;

	tw_lock_seize(&lock);
	found = find_known(object);
	if (found) {
		found->is_put_off = is_put_off;
	} else if (path && tw_grow(known, known_count, known_capacity)) {
		known[known_count++] = (struct known){object->elf.base, path, is_put_off};
		path = NULL;
	}
	tw_lock_drop(&lock);
	free(path);
}

static bool is_in_set(const struct tw_sym_set *set, const struct known *entry)
{
	for (size_t i = 0; i < set->count; i++)
		if (is_same(entry, &set->objects[i]))
			return true;
	return false;
}

void tw_known_doubt(void)
{
	tw_lock_seize(&lock);
	seen = (struct counts){0};
	for (size_t i = 0; i < known_count; i++)
		known[i].is_put_off = true;
	tw_lock_drop(&lock);
}

/* The object's first module behind another one (NULL: of all), and whether it has a place that can reveal a replaced object.  Probes have one of their own. */
static struct tw_module *module_of(struct tw_permit *permit, const struct known *entry, const struct tw_module *before)
{
	for (struct tw_module *module = before ? before->next : tw_bp_modules(permit); module; module = module->next)
		if (!module->is_declared && module->base_address == entry->base && module->path &&
		    !strcmp(module->path, entry->path))
			return module;
	return NULL;
}

static void forget_gone(struct tw_permit *permit, const struct tw_sym_set *set)
{
	for (size_t i = 0; i < known_count;) {
		bool is_there = is_in_set(set, &known[i]), is_replaced = false;
		struct tw_module *module = NULL;

		while ((module = module_of(permit, &known[i], module)))
			is_replaced |= module->is_replaced;
		if (is_there && !is_replaced) {
			i++;
			continue;
		}
		/* Each leaves the list of those that are there. */
		while ((module = module_of(permit, &known[i], NULL)))
			tw_bp_module_gone(permit, module, !is_there);
		free(known[i].path);
		known[i] = known[--known_count];
	}
}

bool tw_known_update(struct tw_permit *permit, const struct tw_plan *plan)
{
	bool is_whole = true;

	tw_lock_seize(&lock);
	if (applied.unloaded != plan->set->unloaded_count)
		tw_bp_modules_check(permit);
	applied = counts_of(plan->set);
	forget_gone(permit, plan->set);
	for (size_t i = 0; i < plan->set->count; i++)
		is_whole &= !plan->was_known[i] || find_known(&plan->set->objects[i]);
	tw_lock_drop(&lock);
	return is_whole;
}
