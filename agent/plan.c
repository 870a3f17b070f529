/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - finds the sleds, entries and slots that the configuration requests.
 *
 * Names are compared first: that is cheap, and most are not requested.  Only then is a slot's symbol resolved, which
 * gives the module that the other half of the pattern refers to.
 */
#include "agent/agent.h"

#include "base/assert.h"
#include "base/grow.h"
#include "tracewheel/error.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 64

/* ---- patterns ---- */

/* Without patterns everything is asked for, unless only descriptors are. */
static bool wants_all(const struct tw_agent_config *config)
{
	return !config->pattern_count && !config->has_ports;
}

static bool wants_function(const char *function, const struct tw_agent_config *config)
{
	char *demangled = NULL;
	bool is_wanted = wants_all(config) || tw_agent_is_port_function(config, function);

	for (size_t i = 0; i < config->pattern_count && !is_wanted; i++) {
		const struct tw_pattern *pattern = config->patterns[i];

		if (!demangled && tw_pattern_wants_demangled_of(pattern, function))
			demangled = tw_sym_demangle(function);
		is_wanted = tw_pattern_match_function(pattern, function, demangled);
	}
	free(demangled);
	return is_wanted;
}

static bool matches(const struct tw_agent_config *config, const struct tw_pattern *pattern,
		    const struct tw_sym_object *definer, struct tw_pattern_subject *subject)
{
	subject->module = definer->name;
	if (definer->name == tw_agent_probes) {
		subject->file = NULL;
		return tw_pattern_match(pattern, subject);
	}
	subject->file = definer->path;
	if (tw_pattern_match(pattern, subject))
		return true;
	subject->file = definer->elf.soname;
	if (*subject->file && tw_pattern_match(pattern, subject))
		return true;
	subject->module = config->alias;
	subject->file = NULL;
	return config->alias && definer->role == TW_SYM_PROGRAM && !strcmp(definer->path, config->alias_path) &&
	       tw_pattern_match(pattern, subject);
}

/* True if a pattern may match functions of this object. */
static bool is_module_wanted(const struct tw_agent_config *config, const struct tw_sym_object *definer)
{
	bool has_alias = config->alias && definer->role == TW_SYM_PROGRAM && !strcmp(definer->path, config->alias_path);
	bool is_wanted = wants_all(config) || tw_agent_is_port_module(config, definer->elf.soname);

	for (size_t i = 0; i < config->pattern_count && !is_wanted; i++) {
		const struct tw_pattern *pattern = config->patterns[i];

		is_wanted = tw_pattern_match_module(pattern, definer->name, definer->path) ||
			    (*definer->elf.soname &&
			     tw_pattern_match_module(pattern, definer->name, definer->elf.soname)) ||
			    (has_alias && tw_pattern_match_module(pattern, config->alias, NULL));
	}
	return is_wanted;
}

/* The first that matches; @count: none.  Sets the subject's demangled name, to be freed, when a pattern first needs it. */
static size_t first_of(const struct tw_agent_config *config, struct tw_pattern *const *patterns, size_t count,
		       const struct tw_sym_object *definer, struct tw_pattern_subject *subject, char **demangled)
{
	for (size_t i = 0; i < count; i++) {
		/* Patterns for functions select no probe, but may say that one is counted, or left out. */
		if (definer->name == tw_agent_probes && patterns == config->patterns &&
		    !tw_pattern_is_of_probes(patterns[i]))
			continue;
		if (!*demangled && tw_pattern_wants_demangled_of(patterns[i], subject->function))
			subject->demangled = *demangled = tw_sym_demangle(subject->function);
		if (matches(config, patterns[i], definer, subject))
			return i;
	}
	return count;
}

static bool is_any(const struct tw_agent_config *config, struct tw_pattern *const *patterns, size_t count,
		   const struct tw_sym_object *definer, struct tw_pattern_subject *subject, char **demangled)
{
	return first_of(config, patterns, count, definer, subject, demangled) < count;
}

/* A constructor of TW_DEFINE_FUNCTION(): no code of the program. */
static bool is_declaration(const char *function)
{
	static const char prefix[] = "tw_declare_";

	return !strncmp(function, prefix, sizeof prefix - 1);
}

static bool selects(const struct tw_agent_config *config, const struct tw_sym_object *definer,
		    struct tw_pattern_subject *subject, char **demangled)
{
	if (is_declaration(subject->function))
		return false;
	return (definer->name != tw_agent_probes &&
		(wants_all(config) || (tw_agent_is_port_module(config, definer->elf.soname) &&
				       tw_agent_is_port_function(config, subject->function)))) ||
	       is_any(config, config->patterns, config->pattern_count, definer, subject, demangled);
}

bool tw_plan_selects(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function)
{
	struct tw_pattern_subject subject = {.function = function, .arity = TW_PATTERN_ARITY_ANY};
	char *demangled = NULL;
	bool is_selected = selects(config, definer, &subject, &demangled);

	free(demangled);
	return is_selected;
}

bool tw_plan_wants(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		   uint32_t arity)
{
	struct tw_pattern_subject subject = {.function = function, .arity = arity};
	char *demangled = NULL;
	bool is_wanted = selects(config, definer, &subject, &demangled);

	/* Before the lookup, only patterns that exclude any arity are certain. */
	if (arity == TW_PATTERN_ARITY_ANY)
		subject.arity = TW_PATTERN_ARITY_UNKNOWN;
	is_wanted =
		is_wanted && !is_any(config, config->excluded, config->excluded_count, definer, &subject, &demangled);
	free(demangled);
	return is_wanted;
}

static bool is_listed(const struct tw_agent_config *config, struct tw_pattern *const *patterns, size_t count,
		      const struct tw_sym_object *definer, const char *function, uint32_t arity)
{
	struct tw_pattern_subject subject = {.function = function, .arity = arity};
	char *demangled = NULL;
	bool is_any_of_them = is_any(config, patterns, count, definer, &subject, &demangled);

	free(demangled);
	return is_any_of_them;
}

bool tw_plan_matches(const struct tw_agent_config *config, struct tw_pattern *pattern,
		     const struct tw_sym_object *definer, const char *function)
{
	return is_listed(config, &pattern, 1, definer, function, TW_PATTERN_ARITY_ANY);
}

bool tw_plan_counts(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		    uint32_t arity)
{
	return is_listed(config, config->counted, config->counted_count, definer, function, arity);
}

bool tw_plan_is_bare(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function)
{
	return is_listed(config, config->bare, config->bare_count, definer, function, TW_PATTERN_ARITY_ANY);
}

unsigned tw_plan_words(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function)
{
	for (unsigned i = 0; i < TW_AGENT_WORD_LISTS && i + 1 < config->argument_words; i++)
		if (is_listed(config, config->at_most[i], config->at_most_count[i], definer, function,
			      TW_PATTERN_ARITY_ANY))
			return i + 1;
	return config->argument_words;
}

/* The number of the condition on its calls: of the first pattern that names it. */
static uint32_t condition_number(const struct tw_agent_config *config, const struct tw_sym_object *definer,
				 const char *function, uint32_t arity)
{
	struct tw_pattern_subject subject = {.function = function, .arity = arity};
	char *demangled = NULL;
	size_t first = config->condition_count > 1 ? first_of(config, config->patterns, config->pattern_count, definer,
							      &subject, &demangled)
						   : config->pattern_count;

	free(demangled);
	return first < config->pattern_count ? config->condition_of[first] : 0;
}

bool tw_plan_chooses(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		     uint32_t arity, uint64_t value, struct tw_plan_condition *out)
{
	uint32_t number = condition_number(config, definer, function, arity);

	*out = (struct tw_plan_condition){.least_ns = config->longer_ns};
	if (number >= config->condition_count)
		return true;
	out->least_ns = out->least_ns ?: config->conditions[number].least_ns;
	out->program = config->conditions[number].program;
	out->text = config->conditions[number].text;
	out->shown = config->conditions[number].shown;
	if (!config->conditions[number].has_guards)
		return true;
	out->text = tw_agent_layouts_guard_text(config->layouts, definer, value, number);
	out->program = config->has_ends ? NULL : tw_agent_layouts_guard(config->layouts, definer, value, number);
	return config->has_ends ? out->text != NULL : out->program != NULL;
}

bool tw_plan_is_named(const struct tw_agent_config *config, const char *function)
{
	for (size_t i = 0; i < config->pattern_count; i++)
		if (tw_pattern_match_function(config->patterns[i], function, NULL) &&
		    !tw_pattern_match_function(config->patterns[i], "", NULL) &&
		    !tw_pattern_match_function(config->patterns[i], "\001", NULL))
			return true;
	return false;
}

/* unloaded already */

static int add_slot(struct tw_plan *plan, const struct tw_plan_slot *slot)
{
	if (!tw_grow(plan->slots, plan->count, plan->capacity))
		return TW_ENOMEM;
	plan->slots[plan->count++] = *slot;
	return 0;
}

void tw_plan_put_note(struct tw_plan *plan, const void *unless, const char *format, ...)
{
	struct tw_plan_note note = {.unless = unless};
	va_list list;
	int bytes;

	if (plan->note_count == NOTES_MAX)
		return;
	va_start(list, format);
	bytes = vasprintf(&note.text, format, list);
	va_end(list);
	if (bytes < 0)
		return;
	if (tw_grow(plan->notes, plan->note_count, plan->note_capacity))
		plan->notes[plan->note_count++] = note;
	else
		free(note.text);
}

static int add_sled(struct tw_plan *plan, size_t object, const struct tw_sym_sled *sled)
{
	if (!tw_grow(plan->sleds, plan->sled_count, plan->sled_capacity))
		return TW_ENOMEM;
	plan->sleds[plan->sled_count++] = (struct tw_plan_sled){object, *sled};
	return 0;
}

/* Plans a sled under the first of its names that is requested. */
static int add_sleds_of(struct tw_plan *plan, const struct tw_agent_config *config, size_t index)
{
	const struct tw_sym_object *object = &plan->set->objects[index];
	struct tw_sym_sleds *sleds = &plan->sleds_of[index];
	uintptr_t last = 0;
	int error = tw_sym_sleds(object, sleds);

	for (size_t i = 0; i < sleds->count && !error; i++) {
		const struct tw_sym_sled *sled = &sleds->entries[i];

		if (sled->where == last || !tw_plan_wants(config, object, sled->function, TW_PATTERN_ARITY_ANY))
			continue;
		last = sled->where;
		if (!sled->refusal)
			error = add_sled(plan, index, sled);
		/* An unexpected refusal is reported even if the pattern matches many functions. */
		else if (tw_plan_is_named(config, sled->function) || sled->refusal == TW_SYM_SLED_OTHER)
			tw_plan_put_note(plan, NULL, "%s of %s is not traced: %s", sled->function, object->name,
					 tw_sym_refusal_text(sled->refusal));
	}
	return error;
}

/* libc's version examines its return address; our wrapper knows when that may be ours (preload/preload.c). */
static bool is_watched(const char *function)
{
	return !strcmp(function, "dlopen") || !strcmp(function, "dlclose");
}

static const struct tw_sym_object *real_definer(const struct tw_plan *plan, const struct tw_sym_slot *slot)
{
	void *real;

	if (slot->refusal != TW_SYM_OWN || !tw_sym_is_wrapped(slot->function))
		return NULL;
	real = dlsym(RTLD_NEXT, slot->function);
	return real ? tw_sym_object_at(plan->set, (uintptr_t)real) : NULL;
}

struct caller {
	const struct tw_agent_config *config;
	const struct tw_plan *plan;
	const struct tw_sym_object *object;
};

static bool wants_name(const char *function, void *arg)
{
	const struct caller *caller = arg;

	return wants_function(function, caller->config);
}

/* Slots that are requested, and those whose refusal deserves a note. */
static bool suits(const struct tw_sym_slot *slot, void *arg)
{
	const struct caller *caller = arg;
	const struct tw_agent_config *config = caller->config;
	const struct tw_sym_object *definer = slot->definer, *real = real_definer(caller->plan, slot);

	if (real)
		definer = real;
	else if (slot->refusal)
		return slot->refusal != TW_SYM_NOT_FUNCTION && tw_plan_is_named(config, slot->function);
	/* Calls of an object's own functions through its GOT are requested only by `callers all`. */
	if ((!config->has_all_callers || config->is_global) && definer == caller->object)
		return false;
	return tw_plan_wants(config, definer, slot->function, TW_PATTERN_ARITY_ANY);
}

/* Calls through the pointer are not seen: readers must not take what they do see for all. */
static void add_pointer(const char *function, struct caller *caller, struct tw_plan *plan)
{
	bool is_stream;

	if (caller->config->has_ports && tw_agent_is_port_transfer(function, &is_stream) &&
	    tw_grow(plan->pointers, plan->pointer_count, plan->pointer_capacity))
		plan->pointers[plan->pointer_count++] =
			(struct tw_plan_pointer){(size_t)(caller->object - plan->set->objects), function, is_stream};
}

struct pointers {
	struct caller *caller;
	struct tw_plan *plan;
};

static void see_pointer(const char *function, void *arg)
{
	const struct pointers *pointers = arg;

	add_pointer(function, pointers->caller, pointers->plan);
}

static int add_slots_of(struct tw_plan *plan, const struct tw_agent_config *config, size_t index)
{
	struct caller caller = {config, plan, &plan->set->objects[index]};
	const struct tw_sym_wish wish = {.wants = wants_name, .suits = suits, .arg = &caller};
	struct tw_sym_slot *slots;
	size_t count;
	int error = tw_sym_slots(plan->set, caller.object, &wish, &slots, &count);

	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++) {
		const struct tw_sym_object *real = real_definer(plan, &slots[i]),
					   *definer = real ? real : slots[i].definer;

		if (!real && slots[i].refusal) {
			/* Code that uses the function's address is detected only here. */
			if (slots[i].refusal == TW_SYM_ADDRESS_TAKEN)
				add_pointer(slots[i].function, &caller, plan);
			if (tw_plan_is_named(config, slots[i].function))
				tw_plan_put_note(plan, slots[i].target, "%s called by %s is not traced: %s",
						 slots[i].function, caller.object->name,
						 tw_sym_refusal_text(slots[i].refusal));
			continue;
		}
		error = add_slot(plan, &(struct tw_plan_slot){index, (size_t)(definer - plan->set->objects),
							      slots[i].where, slots[i].target, slots[i].function,
							      real && is_watched(slots[i].function)});
	}
	free(slots);
	if (config->has_ports)
		tw_sym_pointers(caller.object, see_pointer, &(struct pointers){&caller, plan});
	return error;
}

/*
 * True if this object's calls are requested: the program's alone, or all but ours and ld.so's.  Character set
 * converters are loaded and unloaded by libc itself, without our dlclose: their slots could disappear at any time.
 */
static bool is_caller(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	if (object->role == TW_SYM_PROGRAM)
		return true;
	/* Calls made by a tracer module are not events: each of them would be nested in an event. */
	if (config->tracer_path && !strcmp(object->path, config->tracer_path))
		return false;
	return config->has_all_callers && object->role == TW_SYM_ORDINARY && !strstr(object->path, "/gconv/");
}

/* A sled does not know its caller: the program's own calls are taken to be those of its own functions. */
static bool has_wanted_sleds(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	return !config->is_global && is_caller(config, object);
}

static bool may_have_sites(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	return is_caller(config, object) && tw_agent_wants_probes(config);
}

static bool has_wanted_entries(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	/* Only functions of ports are wanted: these have slots. */
	if (!config->is_local && !config->pattern_count && config->has_ports)
		return false;
	return !config->is_global && is_caller(config, object) && is_module_wanted(config, object);
}

/* Its memory may be read only when it is pinned.  False: it is unloaded already. */
static bool pin(struct tw_plan *plan, size_t index, bool is_pinning)
{
	const struct tw_sym_object *object = &plan->set->objects[index];

	return !is_pinning || object->role == TW_SYM_PROGRAM || plan->pins[index] ||
	       tw_sym_pin(object, &plan->pins[index]);
}

/* One question for all new objects. */
static void ask_for_entries(struct tw_plan *plan, const struct tw_agent_config *config, bool is_pinning)
{
	unsigned count = 0, frames = 0;

	for (size_t i = 0; i < plan->set->count; i++) {
		const struct tw_sym_object *object = &plan->set->objects[i];
		bool has_entries = has_wanted_entries(config, object) || may_have_sites(config, object);

		if (plan->was_known[i] || !(has_entries || tw_agent_wants_frames(config)) || !pin(plan, i, is_pinning))
			continue;
		count += has_entries && tw_agent_entries_lack(object);
		frames += tw_agent_wants_frames(config) && tw_agent_frame_rows_lack(object);
	}
	if (count || frames)
		tw_agent_entries_ask(&tw_agent_ring_set, count);
}

static int plan_object(struct tw_plan *plan, const struct tw_agent_config *config, size_t index, bool is_pinning)
{
	const struct tw_sym_object *object = &plan->set->objects[index];
	int error = 0;

	if (!pin(plan, index, is_pinning))
		return 0;
	plan->is_new[index] = true;
	if (tw_agent_wants_frames(config))
		plan->frames[index] = tw_agent_frame_rows(object);
	if (has_wanted_sleds(config, object) && is_module_wanted(config, object))
		error = add_sleds_of(plan, config, index);
	if (!error && has_wanted_entries(config, object))
		error = tw_plan_add_entries(plan, config, index);
	if (!error && may_have_sites(config, object))
		error = tw_plan_add_sites(plan, config, index);
	if (!error && plan->has_definer && !config->is_local && is_caller(config, object))
		error = add_slots_of(plan, config, index);
	return error;
}

int tw_plan_make(const struct tw_agent_config *config, tw_plan_is_known_fn is_known, void *arg, struct tw_plan **out)
{
	struct tw_plan *plan = calloc(1, sizeof *plan);
	int error = plan ? tw_sym_load(&plan->set) : TW_ENOMEM;

	if (!error) {
		plan->pins = calloc(plan->set->count + 1, sizeof *plan->pins);
		plan->is_new = calloc(plan->set->count + 1, sizeof *plan->is_new);
		plan->was_known = calloc(plan->set->count + 1, sizeof *plan->was_known);
		plan->sleds_of = calloc(plan->set->count + 1, sizeof *plan->sleds_of);
		plan->is_put_off = calloc(plan->set->count + 1, sizeof *plan->is_put_off);
		plan->frames = calloc(plan->set->count + 1, sizeof *plan->frames);
		if (!plan->frames || !plan->pins || !plan->is_new || !plan->was_known || !plan->is_put_off ||
		    !plan->sleds_of)
			error = TW_ENOMEM;
	}
	/* If no loaded object can define a requested function, slots need not be examined. */
	for (size_t i = 0; !error && i < plan->set->count && !plan->has_definer; i++)
		plan->has_definer = is_module_wanted(config, &plan->set->objects[i]);
	for (size_t i = 0; !error && i < plan->set->count; i++)
		plan->was_known[i] = is_known && is_known(&plan->set->objects[i], arg);
	if (!error)
		ask_for_entries(plan, config, is_known != NULL);
	for (size_t i = 0; !error && i < plan->set->count; i++) {
		if (!plan->was_known[i])
			error = plan_object(plan, config, i, is_known != NULL);
	}
	if (error) {
		tw_plan_destroy(plan);
		return error;
	}
	*out = plan;
	return 0;
}

void tw_plan_destroy(struct tw_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; plan->pins && i < plan->set->count; i++)
		if (plan->pins[i])
			tw_sym_unpin(plan->pins[i]);
	free(plan->pointers);
	for (size_t i = 0; i < plan->note_count; i++)
		free(plan->notes[i].text);
	for (size_t i = 0; plan->sleds_of && i < plan->set->count; i++)
		tw_sym_sleds_fini(&plan->sleds_of[i]);
	free(plan->sleds_of);
	free(plan->sleds);
	free(plan->entries);
	free(plan->sites);
	free(plan->notes);
	free(plan->pins);
	free(plan->is_new);
	free(plan->was_known);
	free(plan->is_put_off);
	free(plan->frames);
	free(plan->slots);
	tw_sym_unload(plan->set);
	free(plan);
}
