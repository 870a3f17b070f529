/* SPDX-License-Identifier: Apache-2.0 */
/* sled_places.h - places at the sleds of the loaded objects, for the tests of this folder. */
#ifndef TW_TESTS_SLED_PLACES_H
#define TW_TESTS_SLED_PLACES_H

#include "breakpoints/breakpoints.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>

static void die(const char *what)
{
	fprintf(stderr, "stress: %s\n", what);
	exit(1);
}

/* Is a sled to become a place?  Called in the order of addresses. */
typedef bool (*wants_sled_fn)(const struct tw_sym_sled *sled);

static unsigned add_sleds(struct tw_permit *permit, const struct tw_sym_object *object, wants_sled_fn wants,
			  struct tw_place **places, unsigned count, unsigned capacity)
{
	const struct tw_module_options options = {.name = object->name, .base_address = object->elf.base};
	struct tw_sym_sleds sleds;
	struct tw_module *module;

	if (tw_sym_sleds(object, &sleds) || tw_bp_module_add(permit, &options, &module))
		die("no memory");
	for (size_t i = 0; i < sleds.count; i++) {
		const struct tw_sym_sled *sled = &sleds.entries[i];
		const struct tw_place_options place_options = {.kind = TW_BP_SLED,
							       .where = (void *)sled->where,
							       .sled_bytes = (uint8_t)sled->bytes};
		struct tw_function *function;

		if (!wants(sled))
			continue;
		if (count == capacity)
			die("more sleds than expected");
		if (tw_bp_function_add(permit, module, sled->function, UINT32_MAX, sled->entry, &function) ||
		    tw_bp_place_add(permit, function, &place_options, &places[count++]))
			die("no memory");
	}
	tw_sym_sleds_fini(&sleds);
	return count;
}

/* Adds those that @wants accepts; returns their number, @capacity at most. */
static unsigned add_all_sleds(wants_sled_fn wants, struct tw_place **places, unsigned capacity)
{
	struct tw_permit *permit;
	struct tw_sym_set *set;
	unsigned count = 0;

	if (tw_sym_load(&set) || tw_permit_seize(&permit))
		die("no memory");
	for (size_t i = 0; i < set->count; i++)
		count = add_sleds(permit, &set->objects[i], wants, places, count, capacity);
	tw_permit_drop(permit);
	tw_sym_unload(set);
	return count;
}

#endif
