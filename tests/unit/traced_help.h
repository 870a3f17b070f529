/* SPDX-License-Identifier: Apache-2.0 */
/* traced_help.h - arms a TRACED function of returns_help.h; after cmocka.h. */
#ifndef TW_TESTS_TRACED_HELP_H
#define TW_TESTS_TRACED_HELP_H

#include "breakpoints/breakpoints.h"

#include <string.h>

#define SESSION 3

/* The NOPs of a function, behind its endbr64. */
static uint8_t *sled_of(uintptr_t function)
{
	uint8_t *at = (uint8_t *)function;

	return memcmp(at, "\xf3\x0f\x1e\xfa", 4) ? at : at + 4;
}

static struct tw_place *arm(uintptr_t function)
{
	const struct tw_module_options options = {.name = "libtraced", .is_declared = true};
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_place_options place_options = {.kind = TW_BP_SLED, .where = sled_of(function), .sled_bytes = 9};
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_function *named;
	struct tw_place *place;

	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, "traced", UINT32_MAX, function, &named), 0);
	assert_int_equal(tw_bp_place_add(permit, named, &place_options, &place), 0);
	assert_int_equal(tw_bp_stage_set(permit, place, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	return place;
}
#define ARM(function) arm((uintptr_t)(function))

#endif
