/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.c - `tracewheel functions`: lists the functions of a program that can be traced, how, and why others
 * cannot.
 *
 * Reads files only; the program is not run.
 */
#include "base/grow.h"
#include "tools/functions.h"
#include "tools/record/check.h"
#include "tools/record/config.h"
#include "tools/record/launch.h"
#include "tools/record/mapped.h"
#include "tools/common/entries.h"
#include "tools/common/pager.h"
#include "tools/common/proc.h"
#include "views/names/names.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include "tracewheel/debug.h"
#include "tracewheel/error.h"
#include "tracewheel/symbols.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct tw_option options_table[] = {
	{'t', "trace", "PATTERN", "these functions only; may be repeated"},
	TW_EXCLUDE_OPTION,
	{TW_SETS(0, struct tw_functions_request, is_local), "local", NULL,
	 "what `record --local` traces: sleds, and entries of functions without sleds"},
	{TW_SETS(0, struct tw_functions_request, is_global), "global", NULL, "what `record --global` traces: slots"},
	{TW_SETS(0, struct tw_functions_request, is_careful), "careful", NULL,
	 "which entries `record --careful` leaves"},
	{TW_SETS(0, struct tw_functions_request, wants_probes), "probes", NULL,
	 "the probes that the program and its libraries bring themselves (docs/probes.md)"},
	{'p', "pid", "PID", "with --probes, in place of PROGRAM: those of a process, and of what it has opened"},
	{TW_SETS(0, struct tw_functions_request, wants_refused), "refused", NULL,
	 "list only what cannot be traced, with the reason"},
	{TW_SETS(0, struct tw_functions_request, is_json), "json", NULL, "as JSON (docs/json.md)"},
	{0},
};

static const struct tw_command command = {
	.name = "functions",
	.arguments = "[OPTION]... PROGRAM",
	.summary =
		"Lists what can be traced in a program or library and the libraries it needs, without running it:\n"
		"  sled   every call, at the function's entry (compiled with -fpatchable-function-entry)\n"
		"  entry  every call, by a jump over the function's first instructions (any program)\n"
		"  slot   calls from another object, through the global offset table (any program), of functions that have neither\n"
		"Functions that a run-time system declares appear only when it runs.",
	.options = options_table,
	.has_pager = true,
	.examples = "  tracewheel functions sqlite3\n"
		    "  tracewheel functions -t 'libc:mem*' /usr/bin/git\n"
		    "  tracewheel functions --refused -t 'libsqlite3:_' sqlite3\n"
		    "  tracewheel functions --probes -t 'sdt:python:_' python3\n"
		    "  tracewheel functions --json ./app | jq -r '.functions[].function'\n",
};

struct tw_out tw_functions_out;

/* Looks up the arity in debug information, which is slow: only if a pattern asks for it. */
static uint32_t arity_of(struct tw_functions *list, const struct tw_symbols_place *place)
{
	const struct tw_debug_function *function;
	if (!tw_patterns_have_arity(&list->request->patterns) || !place->module || !place->value)
		return TW_PATTERN_ARITY_UNKNOWN;
	if (list->debug_module != place->module) {
		tw_debug_close(list->debug);
		list->debug = NULL;
		list->debug_module = place->module;
		if (tw_debug_open(place->module->path, NULL, 0, &list->debug))
			list->debug = NULL;
	}
	if (!list->debug || tw_debug_function(list->debug, place->value, place->function, &function) ||
	    function->is_variadic)
		return TW_PATTERN_ARITY_UNKNOWN;
	return function->arity;
}

static struct tw_patterns_subject subject_of(const struct tw_functions *list, const struct tw_symbols_place *place)
{
	struct tw_patterns_subject subject = {.function = place->function, .arity = TW_PATTERN_ARITY_ANY};
	if (place->module) {
		subject.module = place->module->name;
		subject.path = place->module->path;
		subject.soname = place->module->soname;
		subject.alias = place->module == tw_symbols_object(list->symbols, 0) ? list->request->alias : NULL;
	}
	return subject;
}

static bool is_wanted(const struct tw_functions *list, const struct tw_symbols_place *place,
		      struct tw_patterns_subject *out)
{
	*out = subject_of(list, place);
	return tw_patterns_match(&list->request->patterns, out);
}

static int add_row(struct tw_functions *list, const struct tw_symbols_place *place)
{
	struct tw_patterns_subject subject;
	if (!is_wanted(list, place, &subject))
		return 0;
	subject.arity = arity_of(list, place);
	if (!tw_patterns_match(&list->request->patterns, &subject))
		return 0;
	if (!tw_grow(list->rows, list->count, list->capacity))
		return TW_ENOMEM;
	list->rows[list->count++] =
		(struct tw_functions_row){*place, place->module ? place->module->name : "?", subject.arity, false};
	return 0;
}

/* Versions of one name have a symbol each. */
static int add_chosen(const struct tw_symbols_place *place, void *arg)
{
	struct tw_functions *list = arg;
	size_t before = list->count;
	for (size_t i = 0; i < before; i++)
		if (list->rows[i].is_chosen && list->rows[i].place.module == place->module &&
		    strcmp(list->rows[i].place.function, place->function) == 0)
			return 0;
	int error = add_row(list, place);
	if (list->count > before)
		list->rows[before].is_chosen = true;
	return error;
}

static bool is_covered(const struct tw_functions *list, const struct tw_symbols_place *place)
{
	struct tw_patterns_subject subject;
	return list->entries && is_wanted(list, place, &subject) && tw_entries_cover(list->entries, place);
}

/* By the rules of `record`: no slots of functions that are recorded at a sled or entry. */
static int take_place(const struct tw_symbols_place *place, void *arg)
{
	const struct tw_functions *list = arg;
	if (place->how != TW_SYMBOLS_SLOT)
		return list->request->is_global ? 0 : add_row(arg, place);
	return list->request->is_local || is_covered(list, place) ? 0 : add_row(arg, place);
}

/* The names of one entry, which are visited one after the other. */
struct names {
	struct tw_functions *list;
	size_t object;
	struct tw_symbols_place *places;
	size_t count, capacity;
};

/* By the rules of `record`: the best name that a pattern selects is the function's, and if it is excluded, the function is. */
static int take_names(struct names *names)
{
	const struct tw_symbols_place *best = NULL;
	struct tw_patterns_subject subject;
	int error = 0;
	for (size_t i = 0; i < names->count; i++) {
		subject = subject_of(names->list, &names->places[i]);
		if (tw_patterns_select(&names->list->request->patterns, &subject) &&
		    (!best || tw_entries_is_better_name(names->list->entries, names->object, names->places[i].function,
							best->function)))
			best = &names->places[i];
	}
	for (size_t i = 0; best && is_wanted(names->list, best, &subject) && i < names->count && !error; i++)
		error = take_place(&names->places[i], names->list);
	names->count = 0;
	return error;
}

static int take_entry(const struct tw_symbols_place *place, void *arg)
{
	struct names *names = arg;
	int error = names->count && names->places->value != place->value ? take_names(names) : 0;
	if (!error && !tw_grow(names->places, names->count, names->capacity))
		error = TW_ENOMEM;
	if (!error)
		names->places[names->count++] = *place;
	return error;
}

static int take_entries(struct tw_functions *list, size_t object)
{
	struct names names = {.list = list, .object = object};
	int error = tw_entries_each(list->entries, object, take_entry, &names);
	if (!error)
		error = take_names(&names);
	free(names.places);
	return error;
}

bool tw_functions_wants_module(const struct tw_functions *list, size_t index)
{
	const struct tw_symbols_object *object = tw_symbols_object(list->symbols, index);
	const struct tw_patterns *patterns = &list->request->patterns;
	const struct tw_patterns_subject subject = {.module = object->name,
						    .path = object->path,
						    .soname = object->soname,
						    .alias = index ? NULL : list->request->alias};
	for (size_t i = 0; i < patterns->wanted_count; i++)
		if (tw_pattern_is_module(patterns->wanted[i], &subject))
			return true;
	return !patterns->wanted_count;
}

static int open_entries(struct tw_functions *list)
{
	list->entries = tw_entries_open(list->symbols, list->request->is_careful, !list->request->is_local);
	return list->entries ? 0 : TW_ENOMEM;
}

static int take_places(struct tw_functions *list)
{
	int error = list->request->is_global ? 0 : open_entries(list);
	if (error)
		return error;
	error = tw_symbols_each_place(list->symbols, take_place, list);
	for (size_t i = 0; list->entries && i < tw_symbols_object_count(list->symbols) && !error; i++)
		if (tw_functions_wants_module(list, i)) {
			error = take_entries(list, i);
			if (!error)
				error = tw_entries_each_chosen(list->entries, i, add_chosen, list);
		}
	return error;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep(void *name)
{
	(void)name;
}

struct unplaced {
	struct tw_functions *list;
	void *placed; /* tsearch() tree of names */
};

/* Adds a function of the program itself that has no place at all. */
static int take_unplaced(const char *function, void *arg)
{
	struct unplaced *unplaced = arg;
	const struct tw_symbols_object *program = tw_symbols_object(unplaced->list->symbols, 0);
	if (tfind(function, &unplaced->placed, compare_names))
		return 0;
	char *copy = strdup(function); /* kept until the command ends */
	if (!copy || !tsearch(copy, &unplaced->placed, compare_names))
		return TW_ENOMEM;
	return add_row(
		unplaced->list,
		&(struct tw_symbols_place){
			.how = TW_SYMBOLS_SLED,
			.function = copy,
			.module = program,
			.caller = program,
			.refusal = unplaced->list->request->is_global
					   ? "it has no sled: compile with -fpatchable-function-entry=9, see "
					     "docs/instrumenting.md"
					   : "it has no sled, and no call frame information to find its entry by: "
					     "compile with -fpatchable-function-entry=9, see docs/instrumenting.md"});
}

/* Adds none if there is no symbol table. */
static int take_all_unplaced(struct tw_functions *list)
{
	struct unplaced unplaced = {.list = list};
	int error = 0;
	for (size_t i = 0; i < list->count && !error; i++)
		if (list->rows[i].place.module == tw_symbols_object(list->symbols, 0) &&
		    !tsearch(list->rows[i].place.function, &unplaced.placed, compare_names))
			error = TW_ENOMEM;
	if (!error && tw_symbols_each_function(list->symbols, 0, take_unplaced, &unplaced) == TW_ENOMEM)
		error = TW_ENOMEM;
	tdestroy(unplaced.placed, keep);
	return error;
}

/* A function's places are adjacent: those that can be traced, then the others. */
static int compare_rows(const void *a, const void *b)
{
	const struct tw_functions_row *x = a, *y = b;
	int order = strcmp(x->module, y->module);
	if (!order)
		order = strcmp(x->place.function, y->place.function);
	if (!order)
		order = (x->place.refusal != NULL) - (y->place.refusal != NULL);
	if (!order)
		order = (int)y->place.how - (int)x->place.how;
	return order ? order : strcmp(x->place.caller->name, y->place.caller->name);
}

static void put_json_objects(struct tw_json *json, const struct tw_symbols *symbols)
{
	tw_json_open(json, "objects", '[');
	for (size_t i = 0; i < tw_symbols_object_count(symbols); i++) {
		const struct tw_symbols_object *object = tw_symbols_object(symbols, i);
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "name", object->name);
		tw_json_string(json, "path", object->path);
		tw_json_string(json, "soname", object->soname);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	tw_json_open(json, "missing", '[');
	const char *missing;
	for (size_t i = 0; (missing = tw_symbols_missing(symbols, i)); i++)
		tw_json_string(json, NULL, missing);
	tw_json_close(json, ']');
}

static void put_json(const struct tw_functions *list, const struct tw_symbols *symbols)
{
	struct tw_json json = {.out = &tw_functions_out, .is_spread = true};
	const char *refusal = tw_symbols_refusal(symbols);
	tw_json_open(&json, NULL, '{');
	tw_json_bool(&json, "recordable", !refusal);
	if (refusal)
		tw_json_string(&json, "refusal", refusal);
	put_json_objects(&json, symbols);
	tw_json_open(&json, "functions", '[');
	for (size_t i = 0, n; i < list->count; i += n) {
		const struct tw_functions_row *row = &list->rows[i];
		n = tw_functions_run(list, i);
		tw_json_open(&json, NULL, '{');
		tw_json_string(&json, "module", row->module);
		const char *name = tw_name_shown(row->place.function);
		tw_json_string(&json, "function", name);
		if (name != row->place.function)
			tw_json_string(&json, "linkage", row->place.function);
		tw_json_string(&json, "way", tw_functions_way(row));
		tw_json_open(&json, "callers", '[');
		for (size_t k = 0; k < n && row->place.how == TW_SYMBOLS_SLOT; k++)
			tw_json_string(&json, NULL, row[k].place.caller->name);
		tw_json_close(&json, ']');
		if (row->place.refusal)
			tw_json_string(&json, "refusal", row->place.refusal);
		else
			tw_json_bool(&json, "ends", !row->place.has_no_end);
		if (row->is_chosen)
			tw_json_bool(&json, "chosen", true);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

static int put(struct tw_functions *list)
{
	tw_out_init(&tw_functions_out, STDOUT_FILENO);
	if (list->request->wants_probes)
		return tw_functions_put_probes(list);
	if (list->count)
		qsort(list->rows, list->count, sizeof *list->rows, compare_rows);
	if (list->request->is_json)
		put_json(list, list->symbols);
	else
		tw_functions_put_text(list, list->symbols);
	return 0;
}

/* Finds a file of that name, or the program that a shell would run; for a script, its interpreter. */
static int find_file(struct tw_launch *launch, const char *name, const char **path)
{
	if (strchr(name, '/') && access(name, R_OK) == 0 && access(name, X_OK) != 0) {
		*path = name; /* a library */
		return TW_EXIT_OK;
	}
	int code = tw_launch_find(launch, name);
	if (code == TW_EXIT_NOT_FOUND || code == TW_EXIT_NOT_EXECUTABLE)
		return tw_fail("%s", launch->reason);
	*path = launch->program;
	if (launch->is_script)
		tw_say("'%s' is a script; this is its interpreter, %s.", launch->path, launch->program);
	return TW_EXIT_OK;
}

/* Says of each pattern that matches nothing traceable why. */
static void say_reasons(const struct tw_functions_request *request, const char *path)
{
	struct tw_check *check = tw_check_open(&(struct tw_check_options){.program = path,
									  .alias = request->alias,
									  .is_local = request->is_local,
									  .is_global = request->is_global,
									  .has_entries = !request->is_global,
									  .is_careful = request->is_careful});
	const char *pattern, *reason;
	tw_check_patterns(check, request->config.text);
	for (size_t i = 0; (reason = tw_check_reason(check, i, &pattern)); i++)
		tw_say("-t '%s' names nothing that can be traced: %s.", pattern, reason);
	tw_check_close(check);
}

static int show(const struct tw_functions_request *request, const char *path)
{
	struct tw_symbols *symbols;
	int error = tw_symbols_open(path, &symbols);
	if (error == TW_EFORMAT)
		return tw_fail("'%s' is not an ELF file, or it is damaged.", path);
	if (error == TW_ENOTSUP)
		return tw_fail("'%s' is not made for 64-bit x86 processors; only those can be traced.", path);
	if (error == TW_ELIMIT)
		return tw_fail(
			"'%s' spans more than 2 GiB of addresses, or nearly all of it is holes; its functions cannot be listed, nor traced at their entries.",
			path);
	if (error)
		return tw_fail("'%s' cannot be read: %s", path, tw_strerror(error));
	unsigned left = request->process_id ? tw_mapped_add(request->process_id, symbols) : 0;
	if (left) {
		char figure[TW_FIGURE_BYTES];
		tw_say("%s of the process cannot be looked at, or others than root and you may have written %s: probes there are not listed.",
		       tw_figure_of(figure, left, "file", "files"), left == 1 ? "it" : "them");
	}
	struct tw_functions list = {.request = request, .symbols = symbols};
	error = request->wants_probes ? open_entries(&list) : take_places(&list);
	if (!error && request->wants_refused && !request->wants_probes)
		error = take_all_unplaced(&list);
	tw_debug_close(list.debug);
	if (!error)
		error = put(&list);
	int code =
		error ? tw_fail("'%s' cannot be read: %s", path, tw_strerror(error)) : tw_out_finish(&tw_functions_out);
	free(list.rows);
	tw_entries_close(list.entries);
	tw_symbols_close(symbols);
	if (request->patterns.wanted_count && !request->wants_probes)
		say_reasons(request, path);
	return code;
}

static int show_process(const struct tw_functions_request *request)
{
	char path[PATH_MAX];
	if (tw_proc_program(request->process_id, path))
		return tw_fail("process %d cannot be looked at: there is none, or it is another user's.",
			       request->process_id);
	tw_pager_start();
	return show(request, path);
}

static bool take_option(void *context, int key, const char *value)
{
	struct tw_functions_request *request = context;
	if (key == 'p') {
		request->process_id = tw_proc_number(value);
		return request->process_id || tw_refuse(&command, "-p '%s': that is no number of a process.", value);
	} else {
		bool is_excluding = key == 'N';
		char *absolute = tw_patterns_absolute(value);
		bool is_right = tw_patterns_take(&request->patterns, &command, is_excluding, value) && absolute &&
				tw_config_add(&request->config, is_excluding ? "exclude" : "pattern", absolute);
		free(absolute);
		if (is_right && request->patterns.has_conditions)
			return tw_refuse(
				&command,
				"-t '%s': functions are listed, whatever their calls: leave out the condition.", value);
		return is_right;
	}
	return true;
}

int tw_tool_functions(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_functions_request request = {0};
	static struct tw_launch launch;
	const char *path = NULL;
	int code;
	if (!tw_options_read(&options, take_option, &request, &code))
		goto free_patterns;
	if (request.wants_probes && (request.is_local || request.is_global)) {
		code = tw_usage(&command, "--probes lists probes, which --local and --global do not concern.");
	} else if (request.is_local && request.is_global) {
		code = tw_usage(&command, "--local and --global exclude each other.");
	} else if (request.process_id && !request.wants_probes) {
		code = tw_usage(&command, "-p belongs to --probes; functions are listed by the name of their program.");
	} else if (request.process_id) {
		code = argc == options.index ? show_process(&request)
					     : tw_usage(&command, "-p PID and a PROGRAM exclude each other.");
	} else if (argc - options.index != 1) {
		code = tw_usage(&command, "which program? Give one name, after the options.");
	} else if (strcmp(argv[options.index], "-") == 0) {
		code = tw_fail("a program is looked up by its name or path, not on standard input.");
	} else {
		code = find_file(&launch, argv[options.index], &path);
		char *real = code == TW_EXIT_OK ? realpath(path, NULL) : NULL;
		request.alias = real && !launch.is_script ? tw_patterns_alias(argv[options.index], real) : NULL;
		if (code == TW_EXIT_OK)
			tw_pager_start();
		if (code == TW_EXIT_OK)
			code = show(&request, path);
		free(real);
	}
free_patterns:
	tw_patterns_free(&request.patterns);
	free(request.config.text);
	return code;
}
