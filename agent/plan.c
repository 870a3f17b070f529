/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - finds the sleds and slots that the configuration requests.
 *
 * Names are compared first: that is cheap, and most are not requested.  Only then is a slot's symbol resolved, which
 * gives the module that the other half of the pattern refers to.
 */
#include "agent/agent.h"

#include "base/assert.h"
#include "base/grow.h"
#include "symbols/entries.h"
#include "symbols/entry_plan.h"
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

bool tw_plan_wants(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		   uint32_t arity)
{
	struct tw_pattern_subject subject = {.function = function, .arity = arity};
	char *demangled = NULL;
	bool is_wanted = wants_all(config) || (tw_agent_is_port_module(config, definer->elf.soname) &&
					       tw_agent_is_port_function(config, function));

	for (size_t i = 0; i < config->pattern_count && !is_wanted; i++) {
		if (!demangled && tw_pattern_wants_demangled(config->patterns[i]))
			subject.demangled = demangled = tw_sym_demangle(function);
		is_wanted = matches(config, config->patterns[i], definer, &subject);
	}
	/* Before the lookup, only patterns that exclude any arity are certain. */
	if (arity == TW_PATTERN_ARITY_ANY)
		subject.arity = TW_PATTERN_ARITY_UNKNOWN;
	for (size_t i = 0; i < config->excluded_count && is_wanted; i++) {
		if (!demangled && tw_pattern_wants_demangled(config->excluded[i]))
			subject.demangled = demangled = tw_sym_demangle(function);
		is_wanted = !matches(config, config->excluded[i], definer, &subject);
	}
	free(demangled);
	return is_wanted;
}

/* A pattern names exactly this function: its absence deserves a note. */
static bool is_named(const struct tw_agent_config *config, const char *function)
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

__attribute__((format(printf, 2, 3))) static void put_note(struct tw_plan *plan, const char *format, ...)
{
	char *note, **notes;
	va_list list;
	int bytes;

	if (plan->note_count == NOTES_MAX)
		return;
	va_start(list, format);
	bytes = vasprintf(&note, format, list);
	va_end(list);
	if (bytes < 0)
		return;
	notes = realloc(plan->notes, (plan->note_count + 1) * sizeof *notes);
	if (!notes) {
		free(note);
		return;
	}
	plan->notes = notes;
	notes[plan->note_count++] = note;
}

static void add_note(struct tw_plan *plan, const char *function, const char *relation,
		     const struct tw_sym_object *object, const char *refusal)
{
	put_note(plan, "%s %s %s is not traced: %s", function, relation, object->name, refusal);
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
		else if (is_named(config, sled->function) || sled->refusal == TW_SYM_SLED_OTHER)
			add_note(plan, sled->function, "of", object, tw_sym_refusal_text(sled->refusal));
	}
	return error;
}

/* ---- entries ---- */

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* The functions that have sleds, ascending; to be freed.  NULL: no memory. */
static uintptr_t *list_sleds(const struct tw_sym_sleds *sleds)
{
	uintptr_t *list = malloc((sleds->count + 1) * sizeof *list);

	for (size_t i = 0; list && i < sleds->count; i++)
		list[i] = sleds->entries[i].entry;
	if (list && sleds->count)
		qsort(list, sleds->count, sizeof *list, by_address);
	return list;
}

/* The first name of a function that is requested; false: none is.  *name NULL: it has none. */
static bool choose_name(const struct tw_agent_config *config, const struct tw_sym_object *object,
			const struct tw_plan_entry *entry, const char **name, char nameless[TW_SYM_NAMELESS_BYTES])
{
	tw_sym_nameless(entry->row->value, nameless);
	*name = NULL;
	if (!entry->row->name_count)
		return tw_plan_wants(config, object, nameless, TW_PATTERN_ARITY_ANY);
	for (unsigned n = 0; (*name = tw_entry_plan_name(entry->plan, entry->row, n)); n++)
		if (tw_plan_wants(config, object, *name, TW_PATTERN_ARITY_ANY))
			return true;
	return false;
}

static int add_entry(struct tw_plan *plan, const struct tw_plan_entry *entry)
{
	if (!tw_grow(plan->entries, plan->entry_count, plan->entry_capacity))
		return TW_ENOMEM;
	plan->entries[plan->entry_count++] = *entry;
	return 0;
}

/* Functions without sleds, if the command has made a plan of the object. */
static int add_entries_of(struct tw_plan *plan, const struct tw_agent_config *config, size_t index)
{
	const struct tw_sym_object *object = &plan->set->objects[index];
	struct tw_plan_entry entry = {.object = index, .plan = tw_agent_entry_plan(object)};
	unsigned refused_count = 0;
	uintptr_t *sleds;
	int error = 0;

	if (!entry.plan) {
		/* A program of sleds was compiled for this. */
		if (!plan->sleds_of[index].count && !tw_sym_left_alone(object->elf.soname))
			add_note(plan, "every function without a sled", "of", object,
				 tw_agent_entries_why_none(object, &tw_agent_ring_set));
		return 0;
	}
	sleds = list_sleds(&plan->sleds_of[index]);
	if (!sleds)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < entry.plan->header->row_count && !error; i++) {
		char nameless[TW_SYM_NAMELESS_BYTES];
		enum tw_entry_refusal refusal;
		uintptr_t address;

		entry.row = &entry.plan->rows[i];
		address = object->elf.base + entry.row->value;
		if (bsearch(&address, sleds, plan->sleds_of[index].count, sizeof address, by_address) ||
		    !choose_name(config, object, &entry, &entry.name, nameless))
			continue;
		refusal = tw_entry_plan_refusal(entry.row, config->is_careful);
		if (!refusal)
			error = add_entry(plan, &entry);
		else if (is_named(config, entry.name ? entry.name : nameless))
			add_note(plan, entry.name ? entry.name : nameless, "of", object,
				 tw_entry_refusal_text(refusal));
		else
			refused_count++;
	}
	if (refused_count)
		put_note(plan,
			 "%u %s of %s that %s not traced at %s: `tracewheel functions --local --refused` says why",
			 refused_count, refused_count == 1 ? "function" : "functions", object->name,
			 refused_count == 1 ? "matches is" : "match are",
			 refused_count == 1 ? "its entry" : "their entries");
	free(sleds);
	return error;
}

/* Functions that preload/ wraps.  Their slots are shown as calls of libc's functions, and lead to our wrappers. */
static bool is_in_between(const char *function)
{
	static const char *const names[] = {
		"dlopen",   "dlclose", "longjmp",     "_longjmp",     "siglongjmp", "__longjmp_chk", "prctl",
		"execve",   "execv",   "execvp",      "execvpe",      "execl",	    "execlp",	     "execle",
		"execveat", "fexecve", "posix_spawn", "posix_spawnp", "mlockall",
	};

	for (size_t i = 0; i < TW_COUNT_OF(names); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

/* libc's version examines its return address; our wrapper knows when that may be ours (preload/preload.c). */
static bool is_watched(const char *function)
{
	return !strcmp(function, "dlopen") || !strcmp(function, "dlclose");
}

static const struct tw_sym_object *real_definer(const struct tw_plan *plan, const struct tw_sym_slot *slot)
{
	void *real;

	if (slot->refusal != TW_SYM_OWN || !is_in_between(slot->function))
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
		return slot->refusal != TW_SYM_NOT_FUNCTION && is_named(config, slot->function);
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
			if (is_named(config, slots[i].function))
				add_note(plan, slots[i].function, "called by", caller.object,
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

static bool has_wanted_entries(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	return config->is_local && is_caller(config, object) && is_module_wanted(config, object);
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
	unsigned count = 0;

	for (size_t i = 0; i < plan->set->count; i++)
		count += !plan->was_known[i] && has_wanted_entries(config, &plan->set->objects[i]) &&
			 pin(plan, i, is_pinning) && tw_agent_entries_lack(&plan->set->objects[i]);
	if (count)
		tw_agent_entries_ask(&tw_agent_ring_set, count);
}

static int plan_object(struct tw_plan *plan, const struct tw_agent_config *config, size_t index, bool is_pinning)
{
	const struct tw_sym_object *object = &plan->set->objects[index];
	int error = 0;

	if (!pin(plan, index, is_pinning))
		return 0;
	plan->is_new[index] = true;
	if (has_wanted_sleds(config, object) && is_module_wanted(config, object))
		error = add_sleds_of(plan, config, index);
	if (!error && has_wanted_entries(config, object))
		error = add_entries_of(plan, config, index);
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
		if (!plan->pins || !plan->is_new || !plan->was_known || !plan->is_put_off || !plan->sleds_of)
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
		free(plan->notes[i]);
	for (size_t i = 0; plan->sleds_of && i < plan->set->count; i++)
		tw_sym_sleds_fini(&plan->sleds_of[i]);
	free(plan->sleds_of);
	free(plan->sleds);
	free(plan->entries);
	free(plan->notes);
	free(plan->pins);
	free(plan->is_new);
	free(plan->was_known);
	free(plan->is_put_off);
	free(plan->slots);
	tw_sym_unload(plan->set);
	free(plan);
}
