/* SPDX-License-Identifier: Apache-2.0 */
/* slot_help.h - one slot in memory of its own, as a place. */
#ifndef TW_TESTS_SLOT_HELP_H
#define TW_TESTS_SLOT_HELP_H

#include "breakpoints/breakpoints.h"

#include <sys/mman.h>

/* A slot that leads to `target`, of a function of that name in a module of that name. */
static struct tw_place *add_slot_place(const char *module_name, void *target, void ***slot)
{
	struct tw_module_options module_options = {.name = module_name, .is_declared = true};
	struct tw_place_options place_options = {.kind = TW_BP_SLOT, .target = target};
	struct tw_module *module;
	struct tw_function *function;
	struct tw_place *place;
	struct tw_permit *permit;

	*slot = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*slot, MAP_FAILED);
	**slot = target;
	place_options.where = *slot;
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_module_add(permit, &module_options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, "target", UINT32_MAX, 0, &function), 0);
	assert_int_equal(tw_bp_place_add(permit, function, &place_options, &place), 0);
	tw_permit_drop(permit);
	return place;
}

#endif
