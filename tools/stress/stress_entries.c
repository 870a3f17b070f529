/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_entries.c - plants entries of this program's own functions, as the agent does in other programs.
 *
 * It looks into the rooms: sessions set entries that are there, but only the agent makes them.
 */
#include "tools/stress/stress_inside.h"

#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "plan/plan.h"
#include "session/change.h"
#include "session/native.h"
#include "symbols/symbols.h"
#include "tracewheel/error.h"

#include <string.h>

struct planting {
	const struct tw_stress_form *form;
	const struct tw_sym_object *object;
	const struct tw_entry_plan *plan;
	struct tw_module *module;
	unsigned count;
};

static bool is_among(const struct tw_stress_form *form, const char *name)
{
	for (const char *const *at = form->names; *at; at++)
		if (!strcmp(*at, name))
			return true;
	for (unsigned i = 0; i < TW_STRESS_SLED_PAIRS; i++)
		if (!strcmp(form->counted[i][0], name) || !strcmp(form->counted[i][1], name))
			return true;
	return !strcmp(form->numbered[0], name) || !strcmp(form->numbered[1], name);
}

static int add(struct tw_permit *permit, struct planting *planting, const struct tw_entry_plan_row *row,
	       const char *name)
{
	uintptr_t base = planting->object->elf.base;
	const struct tw_bp_entry entry = {planting->plan, row, base};
	const struct tw_place_options options = {.kind = TW_BP_ENTRY,
						 .where = (void *)(base + row->value + row->window_offset),
						 .entry = &entry};
	struct tw_function *function;
	struct tw_place *place;
	int error = tw_bp_function_add(permit, planting->module, name, UINT32_MAX, base + row->value, &function);

	if (!error)
		error = tw_bp_place_add(permit, function, &options, &place);
	if (!error)
		error = tw_patch_prepare(permit, place);
	planting->count += !error;
	return error;
}

static int plant(struct tw_permit *permit, struct planting *planting)
{
	int error = tw_native_module(permit, planting->object, &planting->module);

	tw_patch_begin(permit);
	for (uint32_t i = 0; i < planting->plan->header->row_count && !error; i++) {
		const struct tw_entry_plan_row *row = &planting->plan->rows[i];
		const char *name = tw_entry_plan_name(planting->plan, row, 0);

		if (name && !row->refusal && is_among(planting->form, name))
			error = add(permit, planting, row, name);
	}
	tw_patch_end(permit);
	return error;
}

int tw_stress_plant(const struct tw_stress_form *form)
{
	static struct tw_entry_plan plan;
	struct planting planting = {.form = form, .plan = &plan};
	struct tw_elf_file *file;
	struct tw_permit *permit;
	struct tw_sym_set *set;
	/* Stays until the process ends, because places refer to it. */
	static void *bytes;
	size_t count;
	int error = bytes ? 0 : tw_elf_file_open("/proc/self/exe", &file);

	if (!bytes && !error) {
		error = tw_entry_plan_make(file, &bytes, &count);
		tw_elf_file_close(file);
		if (!error)
			error = tw_entry_plan_open(bytes, count, &plan);
	}
	if (!error)
		error = tw_sym_load(&set);
	if (error)
		return error;
	for (size_t i = 0; i < set->count; i++)
		if (set->objects[i].role == TW_SYM_PROGRAM)
			planting.object = &set->objects[i];
	error = planting.object ? tw_change_begin(&permit) : TW_ENOENT;
	if (!error)
		error = tw_change_end(permit, plant(permit, &planting));
	tw_sym_unload(set);
	/* All counted and recorded ones, and most of the others. */
	return error || planting.count >= 2 * TW_STRESS_SLED_PAIRS + 2 ? error : TW_ENOTSUP;
}
