/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layouts.c - how functions take their arguments, as the command found out: a text in the ring set that grows on
 * request.
 *
 *	m BUILD-ID PATH		an examined module; the build-id in hexadecimal digits, "-" for none
 *	f VALUE LAYOUT		its function at that value (hexadecimal), see tracewheel/layout.h
 *	w VALUE N GUARD		condition number N on that function's calls, see docs/match.md
 *
 * A loaded module is an examined one if the build-ids are equal or, without build-ids, the paths.  Other lines are
 * skipped.
 */
#include "agent/agent.h"
#include "base/search.h"

#include "breakpoints/breakpoints.h"
#include "pipeline/hit/arguments.h"
#include "ringbuf/answers.h"
#include "session/definitions.h"
#include "tracewheel/error.h"
#include "tracewheel/match.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct module {
	const char *build_id, *path;
};

struct entry {
	uint32_t module;
	char letter;
	uint32_t condition; /* of a guard: its number */
	uint64_t value;
	const char *text;
};

/* A compiled guard; many functions share one. */
struct guard {
	struct guard *next;
	const char *text; /* borrowed by the entry */
	struct tw_match_program *program;
};

/* One piece of the text; later pieces follow in a list. */
struct tw_agent_layouts {
	struct tw_agent_layouts *next;
	char *text;
	struct module *modules;
	size_t module_count;
	struct entry *entries; /* sorted by module, letter, condition and value */
	size_t entry_count;
	struct guard *guards; /* of all pieces; only in the first */
};

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return TW_ORDER(x->module, y->module)
		       ?: TW_ORDER(x->letter, y->letter)
		       ?: TW_ORDER(x->condition, y->condition)
		       ?: TW_ORDER(x->value, y->value);
}

static void take_line(struct tw_agent_layouts *layouts, char *line)
{
	struct entry entry;
	char *second;

	if ((line[0] != 'm' && line[0] != 'f' && line[0] != 'w') || line[1] != ' ' || !(second = strchr(line + 2, ' ')))
		return;
	*second++ = '\0';
	if (line[0] == 'm')
		layouts->modules[layouts->module_count++] = (struct module){line + 2, second};
	else if (layouts->module_count) {
		entry = (struct entry){.module = (uint32_t)layouts->module_count - 1, .letter = line[0]};
		entry.value = strtoull(line + 2, NULL, 16);
		if (line[0] == 'w')
			entry.condition = (uint32_t)strtoul(second, &second, 10);
		entry.text = second;
		layouts->entries[layouts->entry_count++] = entry;
	}
}

/* Parses the text of the layouts file, which it takes, also on error. */
static int make_layouts(char *text, size_t bytes, struct tw_agent_layouts **out)
{
	struct tw_agent_layouts *layouts = calloc(1, sizeof *layouts);
	size_t lines = 1;
	char *line, *rest = text;

	for (size_t i = 0; i < bytes; i++)
		lines += text[i] == '\n';
	if (layouts) {
		layouts->modules = malloc(lines * sizeof *layouts->modules);
		layouts->entries = malloc(lines * sizeof *layouts->entries);
	}
	if (!layouts || !layouts->modules || !layouts->entries) {
		free(text);
		tw_agent_layouts_destroy(layouts);
		return TW_ENOMEM;
	}
	layouts->text = text;
	while ((line = strsep(&rest, "\n")))
		take_line(layouts, line);
	if (layouts->entry_count)
		qsort(layouts->entries, layouts->entry_count, sizeof *layouts->entries, by_value);
	*out = layouts;
	return 0;
}

void tw_agent_layouts_destroy(struct tw_agent_layouts *layouts)
{
	while (layouts) {
		struct tw_agent_layouts *piece = layouts;
		struct guard *guard;

		layouts = piece->next;
		while ((guard = piece->guards)) {
			piece->guards = guard->next;
			tw_match_destroy(guard->program);
			free(guard);
		}
		free(piece->modules);
		free(piece->entries);
		free(piece->text);
		free(piece);
	}
}

/* The path as given to dlopen, or as the kernel names it. */
static bool is_path(const char *path, const struct tw_sym_object *object)
{
	char whole[PATH_MAX];

	if (!strcmp(path, object->path))
		return true;
	return *path == '/' && realpath(object->path, whole) && !strcmp(path, whole);
}

static bool is_module(const struct module *module, const struct tw_sym_object *object)
{
	size_t bytes = strlen(module->build_id) / 2;

	if (!strcmp(module->build_id, "-"))
		return !object->elf.build_id_bytes && is_path(module->path, object);
	if (bytes != object->elf.build_id_bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		char digits[3];

		snprintf(digits, sizeof digits, "%02x", object->elf.build_id[i]);
		if (memcmp(digits, module->build_id + 2 * i, 2))
			return false;
	}
	return true;
}

/* A module may occur twice: with layouts, and with guards. */
static const char *find_in(const struct tw_agent_layouts *piece, const struct tw_sym_object *object,
			   struct entry wanted)
{
	for (size_t i = 0; piece->entry_count && i < piece->module_count; i++) {
		const struct entry *found;

		if (!is_module(&piece->modules[i], object))
			continue;
		wanted.module = (uint32_t)i;
		found = bsearch(&wanted, piece->entries, piece->entry_count, sizeof wanted, by_value);
		if (found)
			return found->text;
	}
	return NULL;
}

static const char *find(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object, struct entry wanted)
{
	const char *text = NULL;

	for (; layouts && !text; layouts = layouts->next)
		text = find_in(layouts, object, wanted);
	return text;
}

static bool was_examined(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object)
{
	for (; layouts; layouts = layouts->next)
		for (size_t i = 0; i < layouts->module_count; i++)
			if (is_module(&layouts->modules[i], object))
				return true;
	return false;
}

const char *tw_agent_layouts_find(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object,
				  uint64_t value)
{
	return find(layouts, object, (struct entry){.letter = 'f', .value = value});
}

const char *tw_agent_layouts_guard_text(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object,
					uint64_t value, uint32_t condition)
{
	return find(layouts, object, (struct entry){.letter = 'w', .condition = condition, .value = value});
}

const struct tw_match_program *tw_agent_layouts_guard(struct tw_agent_layouts *layouts,
						      const struct tw_sym_object *object, uint64_t value,
						      uint32_t condition)
{
	const char *text = tw_agent_layouts_guard_text(layouts, object, value, condition);
	struct guard *guard = layouts ? layouts->guards : NULL;

	if (!text)
		return NULL;
	while (guard && strcmp(guard->text, text) != 0)
		guard = guard->next;
	if (guard)
		return guard->program;
	guard = calloc(1, sizeof *guard);
	if (!guard || tw_match_compile_when(text, strlen(text), NULL, &guard->program, NULL)) {
		free(guard);
		return NULL;
	}
	guard->text = text;
	guard->next = layouts->guards;
	layouts->guards = guard;
	return guard->program;
}

/* ---- objects opened later ---- */

void tw_agent_layouts_update(struct tw_agent_config *config, const struct tw_rs *rs)
{
	struct tw_agent_layouts **end = &config->layouts, *piece;
	size_t bytes;
	char *text;

	if ((!config->string_bytes && !tw_agent_has_guards(config) && !config->has_arities) ||
	    tw_rs_answers_read(rs, &config->layouts_at, &text, &bytes))
		return;
	if (!bytes) {
		free(text);
		return;
	}
	if (make_layouts(text, bytes, &piece))
		return;
	while (*end)
		end = &(*end)->next;
	*end = piece;
}

static bool is_counted(const struct tw_agent_config *config, struct tw_pattern *const *patterns, size_t count,
		       const struct tw_sym_object *object)
{
	for (size_t i = 0; i < count; i++)
		if (tw_pattern_arity(patterns[i]) != TW_PATTERN_ARITY_UNKNOWN &&
		    (tw_pattern_match_module(patterns[i], object->name, object->path) ||
		     tw_pattern_match_module(patterns[i], config->alias, object->elf.soname)))
			return true;
	return false;
}

/*
 * True if the command can add anything about this object.  Without types and guards, that is the arities in patterns.
 */
static bool is_of_interest(const struct tw_agent_config *config, const struct tw_sym_object *object)
{
	return config->string_bytes || tw_agent_has_guards(config) ||
	       is_counted(config, config->patterns, config->pattern_count, object) ||
	       is_counted(config, config->excluded, config->excluded_count, object);
}

/* An object of the plan that has something to arm and that the command has not examined.  NULL: none. */
static const struct tw_sym_object *unknown_object(const struct tw_agent_config *config, const struct tw_plan *plan,
						  size_t index)
{
	const struct tw_sym_object *object = &plan->set->objects[index];

	return plan->is_new[index] && !was_examined(config->layouts, object) && is_of_interest(config, object) ? object
													       : NULL;
}

const struct tw_sym_object *tw_agent_layouts_missing(const struct tw_agent_config *config, const struct tw_plan *plan)
{
	const struct tw_sym_object *object = NULL;

	for (size_t i = 0; config->ask_ns && i < plan->sled_count && !object; i++)
		object = unknown_object(config, plan, plan->sleds[i].object);
	for (size_t i = 0; config->ask_ns && i < plan->entry_count && !object; i++)
		object = unknown_object(config, plan, plan->entries[i].object);
	for (size_t i = 0; config->ask_ns && i < plan->count && !object; i++)
		object = unknown_object(config, plan, plan->slots[i].definer);
	return object;
}

void tw_agent_layouts_ask(const struct tw_agent_config *config, struct tw_rs *rs, const struct tw_sym_object *object)
{
	bool is_awaited = tw_rs_answers_are_awaited(rs, TW_RS_QUESTION_LAYOUTS);
	char note[256];

	if (tw_rs_answers_wait(rs, TW_RS_QUESTION_LAYOUTS, tw_rs_answers_want(rs, TW_RS_QUESTION_LAYOUTS),
			       is_awaited ? 0 : config->ask_ns))
		return;
	snprintf(note, sizeof note, "%s %.100s: it was opened later, and its debug information was not read in time",
		 tw_agent_has_guards(config) ? "no call is traced of functions of"
		 : config->string_bytes	     ? "arguments are words in"
					     : "numbers of arguments are not known in",
		 object->name);
	tw_agent_tell(note);
}

void tw_agent_set_layout(struct tw_function *function, const char *text, uint32_t string_bytes)
{
	const struct tw_arg_plan *known = function->arguments;
	struct tw_arg_plan *arguments;
	struct tw_layout *layout;
	char *copy;

	/* Events recorded without the layout, or with another one, may be in flight. */
	if (!text || tw_is_function_defined(tw_agent_session, function) || tw_layout_parse(text, strlen(text), &layout))
		return;
	arguments = malloc(sizeof *arguments);
	copy = strdup(text);
	if (arguments)
		tw_arg_plan_make(arguments, layout, string_bytes);
	if (!arguments || !copy ||
	    (known && !strcmp(function->layout, text) && known->string_bytes == arguments->string_bytes)) {
		free(arguments);
		free(copy);
	} else {
		free((char *)function->layout);
		function->layout = copy;
		/* Calls that began in an earlier session may use that one when they return: it is never freed. */
		tw_arg_plan_set(function, arguments);
	}
	tw_layout_destroy(layout);
}
