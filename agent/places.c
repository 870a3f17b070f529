/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - turns a plan into places, which it stages for the session.  Under the permit. */
#include "agent/agent.h"
#include "agent/condition.h"
#include "agent/refusals.h"

#include "base/figure.h"
#include "base/quiet.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "pipeline/format/definitions.h"
#include "pipeline/hit/callers.h"
#include "pipeline/hit/hit.h"
#include "session/definitions.h"
#include "session/native.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "symbols/entries.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tw_agent_config *config;
/* Functions of fewer bytes are counted, not recorded: see choose_recorded(). */
static uint32_t counted_below;

void tw_agent_places_init(const struct tw_agent_config *new_config)
{
	config = new_config;
	counted_below = 0;
	tw_agent_held_init();
	tw_agent_written_init();
	/* For tests: a jump into the bytes behind a planted jump ends the program. */
	tw_entry_fills_windows = secure_getenv("TRACEWHEEL_ENTRY_TRAPS") != NULL;
}

static int add_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **module)
{
	return *module ? 0 : tw_native_module(permit, object, module);
}

/* The most of a path, without typed arguments. */
#define PORT_PATH_BYTES 256

/* The number of arguments, if known. */
static uint32_t arity_of(const char *text)
{
	struct tw_layout *layout = NULL;
	uint32_t arity = TW_PATTERN_ARITY_UNKNOWN;

	if (text && !tw_layout_parse(text, strlen(text), &layout) && !layout->is_variadic)
		arity = layout->count;
	tw_layout_destroy(layout);
	return arity;
}

static int add_function(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module *module,
			const char *name, uint64_t address, struct tw_function **out)
{
	const char *text = tw_agent_layouts_find(config->layouts, object, address - object->elf.base), *port;
	char layout[TW_PORT_LAYOUT_BYTES];
	int error = tw_bp_function_add(permit, module, name, arity_of(text), address, out);

	port = config->has_ports ? tw_agent_port_layout(config, object->elf.soname, name, layout) : NULL;
	if (!error && (port || config->string_bytes))
		tw_agent_set_layout(*out, port ? port : text,
				    config->string_bytes ? config->string_bytes : PORT_PATH_BYTES);
	return error;
}

/* How a function is requested. */
struct asked {
	struct tw_plan_condition condition; /* on its calls */
	const struct tw_call_condition *trigger;
	bool is_counted; /* its calls are counted, all of them, and not recorded */
	bool is_bare;	 /* recorded without callers and returns */
	uint8_t words;	 /* of the arguments */
};

/* False: it is not requested.  Calls that use descriptors have no condition: the table of ports needs all of them. */
static bool is_asked_for(const struct tw_sym_object *object, const char *name, uint64_t address, struct asked *asked)
{
	uint64_t value = address - object->elf.base;
	bool is_port = tw_agent_is_port_module(config, object->elf.soname) && tw_agent_is_port_function(config, name);
	uint32_t arity = config->has_arities ? arity_of(tw_agent_layouts_find(config->layouts, object, value))
					     : TW_PATTERN_ARITY_UNKNOWN;

	*asked = (struct asked){.trigger = tw_agent_trigger_of(config, object, name, value)};
	/* The plan was made without arities: those of a library are known only after the command has examined it. */
	if (config->has_arities && !tw_plan_wants(config, object, name, arity))
		return false;
	asked->is_counted = !is_port && config->counted_count && tw_plan_counts(config, object, name, arity);
	asked->is_bare = !is_port && config->bare_count && tw_plan_is_bare(config, object, name);
	asked->words = (uint8_t)(config->argument_words ? tw_plan_words(config, object, name) : 0);
	if (is_port || asked->is_counted)
		return true;
	return tw_plan_chooses(config, object, name, arity, value, &asked->condition);
}

/* Must the returns of a function not be watched, though its name does not say so? */
static bool is_unwatched(const struct tw_sym_object *object, uintptr_t address)
{
	return tw_agent_end_actions(config) &&
	       (tw_sym_is_stack_copier(object->path) || tw_agent_keeps_return(object, address));
}

/* Stages that the calls are counted. */
static int count_place(struct tw_permit *permit, struct tw_place *place)
{
	if (place->place_id < TW_COUNTERS_MAX)
		return tw_session_stage_counted(tw_agent_session, permit, place);
	tw_agent_tell_unarmed(1, "some functions are neither recorded nor counted: a process counts those among its "
				 "first 1,048,576 functions; select fewer with -t");
	return 0;
}

/* The same with those recorded that the end decides on; where no return is seen, that is not known. */
static int count_by_end(struct tw_permit *permit, struct tw_place *place, const struct asked *asked, uint8_t slot_words)
{
	const struct tw_session_longer *longer = tw_agent_longer(&asked->condition, config->children_bytes);
	const struct tw_arg_plan *plan = place->function->arguments;

	if (place->place_id >= TW_COUNTERS_MAX || !config->has_returns || place->is_unwatched) {
		if (place->is_unwatched && config->has_ends)
			tw_agent_tell_unended(place, "calls are counted, and none is recorded,");
		return count_place(permit, place);
	}
	/* Vector registers hold other values when the call ends. */
	if (slot_words == TW_SLOT_WORDS_TYPED && (!plan || plan->has_vectors))
		slot_words = 0;
	return longer ? tw_session_stage_longer(tw_agent_session, permit, place, longer, slot_words) : TW_ENOMEM;
}

/* Adds the place and stages it. */
static int arm_place(struct tw_permit *permit, struct tw_function *function, const struct asked *asked,
		     const struct tw_place_options *options)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL | (asked->is_bare ? 0 : tw_agent_end_actions(config)),
				  .slot_words = asked->words,
				  .stack_depth = asked->is_bare ? 0 : (uint8_t)config->stack_depth};
	struct tw_place *place;
	bool is_port = tw_agent_is_port_module(config, function->module->soname) &&
		       tw_agent_is_port_function(config, function->name),
	     is_typed;
	int error;

	if (is_port)
		part.actions |= TW_ACTION_RETURN;
	if (!asked->is_counted && tw_session_has_declared(permit, function))
		return 0;
	error = tw_bp_place_add(permit, function, options, &place);
	if (error)
		return error;
	if (!tw_is_place_defined(tw_agent_session, place))
		tw_bp_place_renew(permit, place, function, options);
	/* An earlier recorder may have asked for what this one has not. */
	is_typed = place->function->arguments && (is_port || config->string_bytes);
	if (is_typed)
		part.slot_words = TW_SLOT_WORDS_TYPED;
	place->gives = is_typed ? place->function->arguments->gives : TW_BP_GIVES_WORD;
	tw_agent_trigger_set(place, asked->trigger);
	if (asked->condition.program && !config->has_ends)
		tw_session_use_program(&part, place, asked->condition.program);
	tw_agent_written_expect(place);
	if (asked->is_counted || tw_agent_is_demoted(function)) {
		tw_agent_aggregate(config, place);
		return count_place(permit, place);
	}
	if (tw_agent_is_by_end(config))
		return count_by_end(permit, place, asked, part.slot_words);
	return tw_session_stage(tw_agent_session, permit, place, &part);
}

static int arm_sled(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_sled *planned,
		    struct tw_module **modules)
{
	const struct tw_sym_sled *sled = &planned->sled;
	struct tw_place_options options = {.kind = TW_BP_SLED,
					   .where = (void *)sled->where,
					   .sled_bytes = (uint8_t)sled->bytes};
	const struct tw_sym_object *object = &plan->set->objects[planned->object];
	struct asked asked;
	struct tw_function *function;
	int error;

	if (!is_asked_for(object, sled->function, sled->entry, &asked))
		return 0;
	error = add_module(permit, object, &modules[planned->object]);
	if (!error)
		error = add_function(permit, object, modules[planned->object], sled->function, sled->entry, &function);
	if (error)
		return error;
	function->bytes = sled->function_bytes;
	asked.is_counted |= function->bytes < counted_below;
	options.is_unwatched = is_unwatched(object, sled->entry);
	return arm_place(permit, function, &asked, &options);
}

/* Does the place belong to the function that begins there?  Versions of one name are one function with several addresses. */
static bool is_place_of(const struct tw_place *place, uintptr_t address)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (place->kind == TW_BP_ENTRY && !(place->entry && place->entry->row->flags & TW_ENTRY_SITE))
		return place->entry && place->entry->base + place->entry->row->value == address;
	return place->kind == TW_BP_SLED &&
	       ((uintptr_t)place->where == address || place->function->address == address ||
		!memcmp((const void *)address, endbr64, sizeof endbr64));
}

/* The function's sled or entry, which begins with it or after the endbr64 there; NULL: it has none. */
static struct tw_place *place_inside(struct tw_permit *permit, const void *function)
{
	for (uintptr_t distance = 0; distance <= 4; distance += 4) {
		struct tw_place *place = tw_bp_place_at(permit, (void *)((uintptr_t)function + distance));

		if (place && is_place_of(place, (uintptr_t)function))
			return place;
	}
	return NULL;
}

/* Is the function recorded at its sled or entry?  Then its slots are left alone: no call is recorded twice. */
static bool is_recorded_inside(struct tw_permit *permit, const void *function)
{
	struct tw_place *place = place_inside(permit, function);
	struct tw_bp_part part;

	return place && (place->kind == TW_BP_SLED ? !place->is_back : place->is_planted) &&
	       tw_bp_staged_part(permit, place, tw_agent_session->slot, &part);
}

/* Will its entry be planted when a dlclose() has ended?  Caller and callee are then examined again. */
static bool is_put_off(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_slot *slot)
{
	const struct tw_place *place = plan->is_put_off[slot->definer] ? place_inside(permit, slot->target) : NULL;

	return place && place->kind == TW_BP_ENTRY;
}

static int arm_slot(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_slot *slot,
		    struct tw_module **modules)
{
	struct tw_place_options options = {.kind = TW_BP_SLOT, .where = slot->where, .target = slot->target};
	struct asked asked;
	struct tw_function *function;
	int error;

	if (is_put_off(permit, plan, slot)) {
		plan->is_put_off[slot->caller] = true;
		return 0;
	}
	if (is_recorded_inside(permit, slot->target) ||
	    !is_asked_for(&plan->set->objects[slot->definer], slot->function, (uint64_t)(uintptr_t)slot->target,
			  &asked))
		return 0;
	error = add_module(permit, &plan->set->objects[slot->definer], &modules[slot->definer]);
	if (!error)
		error = add_module(permit, &plan->set->objects[slot->caller], &modules[slot->caller]);
	if (!error)
		error = add_function(permit, &plan->set->objects[slot->definer], modules[slot->definer], slot->function,
				     (uint64_t)(uintptr_t)slot->target, &function);
	if (error)
		return error;
	options.caller_module_id = modules[slot->caller]->module_id;
	options.is_watched = slot->is_watched;
	options.is_unwatched = is_unwatched(&plan->set->objects[slot->definer], (uintptr_t)slot->target);
	return arm_place(permit, function, &asked, &options);
}

static int arm_entry(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_entry *planned,
		     struct tw_module **modules)
{
	const struct tw_sym_object *object = &plan->set->objects[planned->object];
	uintptr_t address = object->elf.base + planned->row->value;
	struct tw_place_options options = {.kind = TW_BP_ENTRY,
					   .where = (void *)(address + planned->row->window_offset)};
	struct asked asked;
	char nameless[TW_SYM_NAMELESS_BYTES];
	const char *name = planned->name ? planned->name : nameless;
	const struct tw_bp_entry entry = {planned->plan, planned->row, object->elf.base};
	struct tw_function *function;
	int error;

	tw_sym_nameless(planned->row->value, nameless);
	if (!is_asked_for(object, name, address, &asked))
		return 0;
	error = add_module(permit, object, &modules[planned->object]);
	if (!error)
		error = add_function(permit, object, modules[planned->object], name, address, &function);
	if (error)
		return error;
	function->bytes = planned->row->function_bytes;
	asked.is_counted |= function->bytes < counted_below;
	options.entry = &entry;
	options.is_unwatched = is_unwatched(object, address);
	return arm_place(permit, function, &asked, &options);
}

/* Other threads ran, and the recorder was asked to write. */
static void tell_unready(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_agent_refusals *refusals)
{
	unsigned count = 0;

	for (size_t i = 0; i < plan->sled_count; i++) {
		const struct tw_place *place = tw_bp_place_at(permit, (void *)plan->sleds[i].sled.where);

		count += place && place->kind == TW_BP_SLED && place->stub && place->is_back;
		if (i + 1 < plan->sled_count && plan->sleds[i + 1].object == plan->sleds[i].object)
			continue;
		if (count)
			tw_agent_held_tell(count, plan->set->objects[plan->sleds[i].object].name,
					   tw_agent_without_entry(refusals, count));
		count = 0;
	}
}

/* Called for each place that is armed in a quiet section: signals wait for 64 of them at most. */
static void let_signals_in(size_t place)
{
	if (place % 64 == 63) {
		tw_quiet_end();
		tw_quiet_begin();
	}
}

static void arm_sleds(struct tw_permit *permit, const struct tw_plan *plan, struct tw_module **modules,
		      struct tw_agent_refusals *refusals)
{
	tw_patch_begin(permit);
	tw_quiet_begin();
	for (size_t i = 0; i < plan->sled_count && !refusals->lacks_memory; i++) {
		const struct tw_sym_object *object = &plan->set->objects[plan->sleds[i].object];

		let_signals_in(i);
		/* One note per object. */
		if (refusals->late_sleds && refusals->late != object) {
			tw_agent_refusals_tell_late(refusals);
			refusals->late_sleds = 0;
		}
		refusals->late = object;
		tw_agent_refusal_count(refusals, arm_sled(permit, plan, &plan->sleds[i], modules), TW_BP_SLED);
	}
	tw_quiet_end();
	tw_patch_end(permit);
	tell_unready(permit, plan, refusals);
}

/* The place of an entry whose jump was to be written, and is not there; NULL: it is there, or was refused before. */
static struct tw_place *unplanted_place(struct tw_permit *permit, const struct tw_plan *plan,
					const struct tw_plan_entry *entry)
{
	uintptr_t address = plan->set->objects[entry->object].elf.base + entry->row->value;
	struct tw_place *place = tw_bp_place_at(permit, (void *)(address + entry->row->window_offset));

	return place && place->kind == TW_BP_ENTRY && place->stub && !place->is_planted ? place : NULL;
}

/*
 * Counts functions whose jump is not there, by object.  Their slots are armed instead, so the session gives up the entry: another
 * session may plant it later.
 */
static void give_up_unplanted(struct tw_permit *permit, const struct tw_plan *plan,
			      const struct tw_agent_refusals *refusals, bool is_noted)
{
	unsigned count = 0;

	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct tw_plan_entry *entry = &plan->entries[i];
		struct tw_place *place = unplanted_place(permit, plan, entry);

		count += place != NULL;
		if (place && !config->is_local)
			tw_bp_stage_clear(permit, place, tw_agent_session->slot);
		if (i + 1 < plan->entry_count && plan->entries[i + 1].object == entry->object)
			continue;
		/* Other threads ran, and the recorder was asked to write. */
		if (count && is_noted)
			tw_agent_held_tell(count, plan->set->objects[entry->object].name,
					   tw_agent_without_entry(refusals, count));
		count = 0;
	}
}

static bool is_refused_by_shadow_stack(const struct tw_plan *plan, const struct tw_plan_entry *planned)
{
	const struct tw_bp_entry entry = {planned->plan, planned->row, plan->set->objects[planned->object].elf.base};

	return tw_entry_is_refused_by_shadow_stack(&entry);
}

/* Objects whose entries have to wait are examined again. */
static void arm_entries(struct tw_permit *permit, const struct tw_plan *plan, struct tw_module **modules,
			struct tw_agent_refusals *refusals)
{
	uint32_t unplanted;
	int error;

	tw_patch_begin(permit);
	tw_quiet_begin();
	for (size_t i = 0; i < plan->entry_count && !refusals->lacks_entry_memory; i++) {
		const struct tw_plan_entry *entry = &plan->entries[i];

		let_signals_in(i);
		error = arm_entry(permit, plan, entry, modules);
		if (error == TW_ENOTSUP && is_refused_by_shadow_stack(plan, entry))
			refusals->shadow_entries++;
		else
			tw_agent_refusal_count(refusals, error, TW_BP_ENTRY);
		if (i + 1 < plan->entry_count && plan->entries[i + 1].object == entry->object)
			continue;
		tw_agent_refusals_tell_entries(refusals, &plan->set->objects[entry->object]);
		plan->is_put_off[entry->object] = refusals->put_off_entries != 0;
		refusals->shadow_entries = refusals->late_entries = refusals->other_entries =
			refusals->put_off_entries = 0;
	}
	tw_quiet_end();
	tw_patch_end(permit);
	if (plan->entry_count && tw_agent_bind_beside)
		tw_agent_bind_beside(permit);
	unplanted = tw_patch_take_unplanted(permit);
	refusals->entries += unplanted;
	give_up_unplanted(permit, plan, refusals, !unplanted);
}

/* Callers may lie in any object, so a reader of their addresses needs all modules. */
static void add_all_modules(struct tw_permit *permit, const struct tw_plan *plan, struct tw_module **modules)
{
	bool has_conditions = tw_agent_has_conditions(config);

	if (!has_conditions && !config->stack_depth && !config->tells_crash && !config->has_return_to &&
	    !tw_agent_aggregates_callers(config))
		return;
	for (size_t i = 0; i < plan->set->count; i++)
		if (plan->set->objects[i].elf.image.high && !add_module(permit, &plan->set->objects[i], &modules[i])) {
			modules[i]->frames = plan->frames[i] ? plan->frames[i] : modules[i]->frames;
			tw_define_module(tw_agent_session, modules[i]);
		}
	if (has_conditions || tw_agent_wants_frames(config))
		tw_callers_update(permit, has_conditions);
}

static int by_size(const void *a, const void *b)
{
	return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

static void tell_counted(size_t count, size_t all)
{
	char text[512], figures[2][TW_COUNT_TEXT_BYTES];

	snprintf(
		text, sizeof text,
		"the program has %s functions: its largest are recorded, and calls of the %s that are smaller than %u bytes "
		"are counted; -t _ --callers main records all",
		tw_count_text(figures[0], all), tw_count_text(figures[1], count), counted_below);
	tw_agent_tell(text);
}

/*
 * Of very many functions that no pattern names, the largest are recorded: they are the ones that do the work, and
 * the many calls are those of the smallest.
 */
static void choose_recorded(const struct tw_plan *plan)
{
	size_t count = plan->entry_count + plan->sled_count, below = 0;
	uint32_t *sizes = config->recorded_most && count > config->recorded_most ? malloc(count * sizeof *sizes) : NULL;

	if (!sizes)
		return;
	for (size_t i = 0; i < plan->entry_count; i++)
		sizes[i] = plan->entries[i].row->function_bytes;
	for (size_t i = 0; i < plan->sled_count; i++)
		sizes[plan->entry_count + i] = plan->sleds[i].sled.function_bytes;
	qsort(sizes, count, sizeof *sizes, by_size);
	counted_below = sizes[count - config->recorded_most];
	while (sizes[below] < counted_below)
		below++;
	free(sizes);
	tell_counted(below, count);
}

/* Sleds and entries first: a function that is recorded there needs no slot. */
void tw_agent_arm_plan(struct tw_permit *permit, const struct tw_plan *plan)
{
	struct tw_module **modules = calloc(plan->set->count + 1, sizeof *modules);
	struct tw_agent_refusals refusals = {.is_local = config->is_local};

	if (!modules)
		return;
	choose_recorded(plan);
	arm_sleds(permit, plan, modules, &refusals);
	if (!refusals.lacks_memory)
		arm_entries(permit, plan, modules, &refusals);
	tw_agent_arm_sites(config, permit, plan);
	tw_patch_begin(permit);
	tw_quiet_begin();
	for (size_t i = 0; i < plan->count && !refusals.lacks_memory && !refusals.lacks_slots; i++) {
		let_signals_in(i);
		tw_agent_refusal_count(&refusals, arm_slot(permit, plan, &plan->slots[i], modules), TW_BP_SLOT);
	}
	tw_quiet_end();
	tw_patch_end(permit);
	add_all_modules(permit, plan, modules);
	free(modules);
	for (size_t i = 0; i < plan->note_count; i++)
		if (!plan->notes[i].unless || !is_recorded_inside(permit, plan->notes[i].unless))
			tw_agent_tell(plan->notes[i].text);
	for (const struct tw_plan_pointer *p = plan->pointers; p < plan->pointers + plan->pointer_count; p++)
		tw_agent_ports_pointer(plan->set->objects[p->object].name, p->function, p->is_stream);
	tw_agent_refusals_tell(&refusals);
}
