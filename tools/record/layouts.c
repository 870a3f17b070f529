/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c - writes the layouts of the functions that patterns name, for the agents. */
#include "tools/record/layouts.h"
#include "base/grow.h"
#include "tools/record/config.h"
#include "tools/record/prototypes.h"
#include "tools/common/entries.h"
#include "views/names/names.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include "tracewheel/debug.h"
#include "tracewheel/error.h"
#include "tracewheel/layout.h"
#include "tracewheel/symbols.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* With more enumerators than this the number is shown. */
#define ENUMERATORS_MAX 64
/* The line of one function; it fits at least without enumerators. */
#define LINE_BYTES (TW_LAYOUT_TEXT_BYTES_MAX - 100)

struct line {
	char text[LINE_BYTES];
	size_t bytes;
	bool is_full;
	bool has_enumerators;
	bool reports_errno; /* the next value, which is the result */
};

struct walk {
	struct tw_layouts *layouts;
	struct tw_patterns patterns;
	struct tw_patterns_subject subject;
	const struct tw_symbols_object *object;
	struct tw_debug *debug;
	uint64_t last_value, wanted_value, bare_value;
	bool has_last, has_wanted, has_bare;
	unsigned long condition; /* of the last line */
	struct walk_prototype {
		uint64_t value;
		const char *layout;
	} given, other; /* of the last names */
};

/* ---- one line ---- */

static void put(struct line *line, const char *text)
{
	size_t bytes = strlen(text);
	if (bytes >= sizeof line->text - line->bytes) {
		line->is_full = true;
		return;
	}
	memcpy(line->text + line->bytes, text, bytes + 1);
	line->bytes += bytes;
}

/* Writes a name without the characters that separate the parts of a line. */
static void put_name(struct line *line, const char *name)
{
	char clean[200];
	size_t used = 0;
	for (; *name && used < sizeof clean - 1; name++)
		if (*name != ' ')
			clean[used++] =
				(unsigned char)*name < 0x21 || *name == 0x7f || strchr(":@/{},=", *name) ? '_' : *name;
	clean[used] = 0;
	put(line, clean);
}

static void put_enumerators(struct line *line, const struct tw_debug_type *type)
{
	if (!line->has_enumerators || !type->enumerator_count || type->enumerator_count > ENUMERATORS_MAX)
		return;
	for (uint32_t i = 0; i < type->enumerator_count; i++) {
		char number[32];
		put(line, i ? "," : "{");
		put_name(line, type->enumerators[i].name);
		snprintf(number, sizeof number, "=%lld", (long long)type->enumerators[i].value);
		put(line, number);
	}
	put(line, "}");
}

static const char letters[] =
	{[TW_DEBUG_UNKNOWN] = '_', [TW_DEBUG_VOID] = 'v',  [TW_DEBUG_SIGNED] = 'i',  [TW_DEBUG_UNSIGNED] = 'u',
	 [TW_DEBUG_BOOL] = 'b',	   [TW_DEBUG_ENUM] = 'e',  [TW_DEBUG_POINTER] = 'p', [TW_DEBUG_STRING] = 's',
	 [TW_DEBUG_FLOAT] = 'f',   [TW_DEBUG_STRUCT] = 'S'};

/* Writes the fields of a struct that is passed in registers, one word for each eight bytes. */
static void put_fields(struct line *line, const struct tw_debug_value *value)
{
	const struct tw_debug_type *type = value->type;
	unsigned words = (value->registers[0] >= 0) + (value->registers[1] >= 0);
	if (!line->has_enumerators || !type->field_count || (type->bytes + 7) / 8 != words)
		return;
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct tw_debug_field *field = &type->fields[i];
		char text[48];
		put(line, i ? "," : "{");
		put_name(line, field->name);
		snprintf(text, sizeof text, ".%c%u=%u", letters[field->kind], field->bits, field->first_bit);
		put(line, text);
	}
	put(line, "}");
}

static void put_value(struct line *line, const struct tw_debug_value *value)
{
	static const char digits[] = "0123456789abcdef";
	const struct tw_debug_type *type = value->type;
	bool is_known = type->kind != TW_DEBUG_UNKNOWN;
	char letter = letters[type->kind], text[32];
	put_name(line, value->name);
	if (letter == 'e' && type->is_signed)
		letter = 'n';
	snprintf(text, sizeof text, ":%c%u", letter, type->bytes);
	put(line, text);
	if (*type->name) {
		put(line, "/");
		put_name(line, type->name);
	}
	put_enumerators(line, type);
	put_fields(line, value);
	if (line->reports_errno && value->registers[0] >= 0 && strchr("iup", letter))
		put(line, "{errno=1}");
	line->reports_errno = false;
	snprintf(text, sizeof text, "@%c%c", is_known && value->registers[0] >= 0 ? digits[value->registers[0]] : '-',
		 is_known && value->registers[0] >= 0 && value->registers[1] >= 0 ? digits[value->registers[1]] : '-');
	put(line, text);
}

/* Debug information does not tell that a function sets errno; @prototype does, perhaps.  NULL: there is none. */
static bool reports_errno(const char *prototype)
{
	const char *found = prototype ? strstr(prototype, "{errno=1}") : NULL;
	return found && found < prototype + strcspn(prototype, " ");
}

/*
 * Nor does it tell that a function fills memory, which before the call holds what lay there.  True: the prototype says so, and
 * has all arguments.
 */
static bool fills_memory(const char *prototype, const struct tw_debug_function *function)
{
	uint32_t count = 0;
	bool is_filled = false;
	for (const char *at = prototype; at && (at = strchr(at, ' ')); at++) {
		const char *type = at + 1 + strcspn(at + 1, ": ");
		count += *type == ':';
		is_filled |= *type == ':' && type[1] && strchr("MVZ", type[1]);
	}
	return is_filled && count == function->arity;
}

/* False: it does not fit. */
static bool make_line(struct line *line, const struct tw_debug_function *function, const char *prototype,
		      bool has_enumerators)
{
	char text[32];
	line->bytes = 0;
	line->is_full = false;
	line->has_enumerators = has_enumerators;
	line->reports_errno = reports_errno(prototype);
	snprintf(text, sizeof text, "f %llx ", (unsigned long long)function->value);
	put(line, text);
	put_value(line, &function->result);
	for (uint32_t i = 0; i < function->arity; i++) {
		put(line, " ");
		put_value(line, &function->parameters[i]);
	}
	if (function->is_variadic)
		put(line, " ...");
	put(line, "\n");
	return !line->is_full;
}

/* ---- the text ---- */

bool tw_layouts_append(struct tw_layouts *layouts, const char *text, size_t bytes)
{
	if (!tw_grow_by(layouts->text, layouts->bytes, layouts->capacity, bytes + 1))
		return false;
	memcpy(layouts->text + layouts->bytes, text, bytes);
	layouts->bytes += bytes;
	layouts->text[layouts->bytes] = 0;
	return true;
}

/* A value that is read where an argument points becomes the pointer: name:m1/TYPE{LENGTH}@REGISTERS is name:p8/TYPE@REGISTERS. */
static void hide_strings(char *line)
{
	char *to = line;
	bool is_hidden = false;
	for (const char *from = line; *from;) {
		is_hidden &= *from != ' ';
		if (is_hidden && *from == '{') {
			from += strcspn(from, "}");
			from += *from == '}';
			continue;
		}
		*to++ = *from++;
		if (to[-1] != ':' || !*from || !strchr("smMZ", *from))
			continue;
		is_hidden = true;
		*to++ = 'p';
		*to++ = '8';
		from += 1 + strspn(from + 1, "0123456789");
	}
	*to = 0;
}

/* The line of a function. */
static bool append_function(struct tw_layouts *layouts, const char *head, const char *layout)
{
	/* A letter without bytes becomes longer by one. */
	size_t bytes = strlen(head) + strlen(layout);
	char *line = malloc(bytes + TW_LAYOUT_VALUES_MAX + 2);
	if (!line)
		return false;
	strcpy(stpcpy(line, head), layout);
	if (layouts->hides_strings)
		hide_strings(line);
	bool is_right = tw_layouts_append(layouts, line, strlen(line));
	free(line);
	return is_right;
}

bool tw_layouts_put_function(struct tw_layouts *layouts, uint64_t value, const char *layout)
{
	char head[32];
	snprintf(head, sizeof head, "f %llx ", (unsigned long long)value);
	layouts->function_count++;
	return append_function(layouts, head, layout) && tw_layouts_append(layouts, "\n", 1);
}

/* m BUILD-ID PATH.  NULL: no memory. */
static char *module_line(const struct tw_symbols_object *object)
{
	char *line = malloc(2 * (size_t)object->build_id_bytes + strlen(object->path) + 8), *at = line;
	if (!line)
		return NULL;
	at = stpcpy(at, object->build_id_bytes ? "m " : "m -");
	for (uint32_t i = 0; i < object->build_id_bytes; i++)
		at += sprintf(at, "%02x", object->build_id[i]);
	sprintf(at, " %s\n", object->path);
	return line;
}

bool tw_layouts_put_module(struct tw_layouts *layouts, const struct tw_symbols_object *object)
{
	char *line = module_line(object);
	bool is_right = line && tw_layouts_append(layouts, line, strlen(line));
	free(line);
	return is_right;
}

/* Compares build-ids, or paths if there is none. */
static bool has_line_of(const struct tw_layouts *layouts, const struct tw_symbols_object *object)
{
	char *line = module_line(object);
	bool found = false;
	if (line && object->build_id_bytes)
		line[2 + 2 * object->build_id_bytes + 1] = 0;
	for (const char *at = layouts->text; line && at && !found;
	     at = at[strcspn(at, "\n")] ? strchr(at, '\n') + 1 : NULL)
		found = strncmp(at, line, strlen(line)) == 0;
	free(line);
	return found;
}

/* ---- selecting functions ---- */

/* If only arities are needed, patterns without one are skipped. */
static bool is_due(const struct walk *walk, const struct tw_pattern *pattern)
{
	return !walk->layouts->is_for_arities || tw_pattern_arity(pattern) != TW_PATTERN_ARITY_UNKNOWN;
}

static bool is_module_wanted(const struct walk *walk)
{
	const struct tw_patterns *patterns = &walk->patterns;
	for (size_t i = 0; i < patterns->wanted_count; i++)
		if (is_due(walk, patterns->wanted[i]) && tw_pattern_is_module(patterns->wanted[i], &walk->subject))
			return true;
	for (size_t i = 0; i < patterns->excluded_count; i++)
		if (tw_pattern_arity(patterns->excluded[i]) != TW_PATTERN_ARITY_UNKNOWN &&
		    tw_pattern_is_module(patterns->excluded[i], &walk->subject))
			return true;
	return patterns->wanted_count == 0 && !walk->layouts->is_for_arities;
}

static void set_object(struct walk *walk, const struct tw_symbols_object *object, const char *alias)
{
	walk->object = object;
	walk->subject = (struct tw_patterns_subject){.module = object->name,
						     .path = object->path,
						     .soname = object->soname,
						     .alias = alias};
}

/* If a function has several names, the pattern may match another than the first. */
static bool is_wanted(struct walk *walk, const char *name, uint32_t arity)
{
	walk->subject.function = name;
	walk->subject.arity = arity;
	return tw_patterns_match(&walk->patterns, &walk->subject);
}

/* A prototype of this name, or of one before at the same value: any name of a function may have one.  NULL: there is none. */
static const char *prototype_of(struct walk *walk, const char *name, uint64_t value, bool is_given)
{
	const struct tw_prototypes *prototypes = walk->layouts->prototypes;
	struct walk_prototype *kept = is_given ? &walk->given : &walk->other;
	if (!prototypes)
		return NULL;
	if (kept->layout && kept->value == value)
		return kept->layout;
	walk->subject.function = name;
	*kept = (struct walk_prototype){value, tw_prototypes_find(prototypes, &walk->subject, is_given)};
	return kept->layout;
}

/* A name that patterns name, without a layout.  Another one of the same function may have one. */
static void count_bare(struct walk *walk, uint64_t value, int change)
{
	if ((change > 0) == (walk->has_bare && walk->bare_value == value))
		return;
	walk->layouts->bare_count += (size_t)change;
	walk->has_bare = change > 0;
	walk->bare_value = value;
}

/* c NUMBER: the condition of the functions behind it, up to the next such line or module. False: there is no memory. */
static bool append_condition(struct walk *walk)
{
	const struct tw_patterns *patterns = &walk->patterns;
	size_t first = patterns->has_conditions ? tw_patterns_first(patterns, &walk->subject) : patterns->wanted_count;
	const char *text = first < patterns->wanted_count ? patterns->conditions[first] : NULL;
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;
	char line[32];
	if (number == walk->condition)
		return true;
	walk->condition = number;
	return tw_layouts_append(walk->layouts, line, (size_t)snprintf(line, sizeof line, "c %lu\n", number));
}

static int take_prototype(struct walk *walk, uint64_t value, const char *layout)
{
	count_bare(walk, value, -1);
	walk->has_last = true;
	walk->last_value = value;
	return append_condition(walk) && tw_layouts_put_function(walk->layouts, value, layout) ? 0 : TW_ENOMEM;
}

static int take_symbol(const char *name, uint64_t value, void *arg)
{
	struct walk *walk = arg;
	const struct tw_debug_function *function;
	struct line line;
	if (walk->layouts->stop && __atomic_load_n(walk->layouts->stop, __ATOMIC_RELAXED))
		return TW_EPIPE;
	/* The names of one function are adjacent. */
	if (walk->has_last && walk->last_value == value)
		return 0;
	const char *given = prototype_of(walk, name, value, true), *other = prototype_of(walk, name, value, false);
	if (is_wanted(walk, name, TW_PATTERN_ARITY_ANY)) {
		walk->has_wanted = true;
		walk->wanted_value = value;
	} else if (!walk->has_wanted || walk->wanted_value != value || !(given || other)) {
		return 0;
	}
	if (given)
		return take_prototype(walk, value, given);
	int error = tw_debug_function(walk->debug, value, name, &function);
	if (error == TW_ENOMEM)
		return error;
	if (error && other)
		return take_prototype(walk, value, other);
	if (error) {
		count_bare(walk, value, 1);
		return 0;
	}
	uint32_t arity = function->is_variadic ? TW_PATTERN_ARITY_UNKNOWN : function->arity;
	if (fills_memory(other, function) && is_wanted(walk, name, arity))
		return take_prototype(walk, value, other);
	if (!is_wanted(walk, name, arity)) {
		/* Its line tells the agents that it is not selected. */
		walk->layouts->other_arity = function->arity;
		walk->layouts->other_count++;
	} else {
		walk->layouts->function_count++;
	}
	walk->has_last = true;
	walk->last_value = value;
	if (!make_line(&line, function, other, true) && !make_line(&line, function, other, false))
		return 0;
	return append_condition(walk) && append_function(walk->layouts, "", line.text) ? 0 : TW_ENOMEM;
}

static int take_object(struct walk *walk)
{
	int error = tw_debug_open(walk->object->path, walk->object->build_id_bytes ? walk->object->build_id : NULL,
				  walk->object->build_id_bytes, &walk->debug);
	if (error)
		return error;
	const char *problem = tw_debug_problem(walk->debug);
	bool has_prototypes =
		walk->layouts->prototypes && tw_prototypes_have_module(walk->layouts->prototypes, &walk->subject);
	size_t bare_count = walk->layouts->bare_count;
	walk->condition = 0;
	if (!tw_layouts_put_module(walk->layouts, walk->object)) {
		error = TW_ENOMEM;
	} else if (!problem || has_prototypes) {
		walk->has_last = walk->has_wanted = walk->has_bare = false;
		walk->given = walk->other = (struct walk_prototype){0};
		error = tw_debug_each_symbol(walk->debug, take_symbol, walk);
	}
	if (problem && !walk->layouts->problem[0] && (!has_prototypes || walk->layouts->bare_count > bare_count))
		snprintf(walk->layouts->problem, sizeof walk->layouts->problem, "%s", problem);
	tw_debug_close(walk->debug);
	return error;
}

static bool has_module(struct walk *walk, const struct tw_symbols *symbols, const struct tw_pattern *pattern,
		       const char *alias)
{
	bool found = false;
	for (size_t i = 0; i < tw_symbols_object_count(symbols) && !found; i++) {
		set_object(walk, tw_symbols_object(symbols, i), i ? NULL : alias);
		found = tw_pattern_is_module(pattern, &walk->subject);
	}
	return found;
}

static int walk_objects(struct walk *walk, const char *program, const char *alias)
{
	struct tw_symbols *symbols;
	int error = tw_symbols_open(program, &symbols);
	if (error)
		return error;
	for (size_t i = 0; i < tw_symbols_object_count(symbols) && !error; i++) {
		set_object(walk, tw_symbols_object(symbols, i), i ? NULL : alias);
		if (is_module_wanted(walk))
			error = take_object(walk);
		if (!error)
			error = tw_layouts_take_probes(walk->layouts, symbols, i, &walk->patterns);
	}
	for (size_t i = 0; i < walk->patterns.wanted_count; i++)
		walk->layouts->has_others |= !tw_pattern_is_of_probes(walk->patterns.wanted[i]) &&
					     !has_module(walk, symbols, walk->patterns.wanted[i], alias);
	tw_symbols_close(symbols);
	return error;
}

void tw_layouts_find(const char *program, const char *config, bool is_quiet, struct tw_layouts *layouts)
{
	struct walk walk = {.layouts = layouts};
	char *alias = tw_config_alias(config, program);
	int error = tw_patterns_read(&walk.patterns, config) ? 0 : TW_ENOMEM;
	if (!error)
		error = walk_objects(&walk, program, alias);
	tw_patterns_free(&walk.patterns);
	free(alias);
	if (error)
		tw_say("debug information cannot be read, so arguments are raw words: %s", tw_strerror(error));
	else if (layouts->problem[0] && !is_quiet)
		tw_say(layouts->bare_count && layouts->function_count
			       ? "%s; the arguments of functions without a prototype (docs/prototypes.md) are raw words."
			       : "%s; its arguments are raw words.",
		       layouts->problem);
}

bool tw_layouts_are_wanted(const char *path, const char *config, bool is_for_arities)
{
	struct tw_layouts layouts = {.is_for_arities = is_for_arities};
	struct walk walk = {.layouts = &layouts};
	const char *slash = strrchr(path, '/');
	char name[NAME_MAX + 1];
	tw_entries_module_name(path, name, sizeof name);
	walk.subject = (struct tw_patterns_subject){.module = name, .path = path, .soname = slash ? slash + 1 : path};
	bool are_wanted = tw_patterns_read(&walk.patterns, config) && is_module_wanted(&walk);
	tw_patterns_free(&walk.patterns);
	return are_wanted;
}

bool tw_layouts_find_file(const char *path, const char *config, const struct tw_layouts *known,
			  struct tw_layouts *layouts)
{
	struct walk walk = {.layouts = layouts};
	struct tw_symbols *symbols = NULL;
	bool is_taken = tw_patterns_read(&walk.patterns, config) && !tw_symbols_open(path, &symbols);
	if (is_taken) {
		set_object(&walk, tw_symbols_object(symbols, 0), NULL);
		is_taken = is_module_wanted(&walk) && !has_line_of(known, walk.object) && !take_object(&walk);
	}
	tw_symbols_close(symbols);
	tw_patterns_free(&walk.patterns);
	return is_taken;
}

void tw_layouts_free(struct tw_layouts *layouts)
{
	free(layouts->text);
	*layouts = (struct tw_layouts){0};
}
