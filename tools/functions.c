/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.c - `tracewheel functions`: what could be traced in a program, which way, and why not.
 *
 * Looks at the files only; the program is not run.
 */
#include "tools/launch.h"
#include "tools/names.h"
#include "tools/tool.h"

#include "tracewheel/error.h"
#include "tracewheel/pattern.h"
#include "tracewheel/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATTERNS_MAX 64
#define NAME_COLUMNS 48

enum { KEY_JSON = 256, KEY_REFUSED };

static const struct tw_option options_table[] = {
	{'t', "trace", "PATTERN", "these functions only; may be given often"},
	{KEY_REFUSED, "refused", NULL, "those that cannot be traced, one by one, with the reason"},
	{KEY_JSON, "json", NULL, "as JSON (docs/json.md)"},
	{0},
};

static const struct tw_command command = {
	.name = "functions",
	.arguments = "[OPTION]... PROGRAM",
	.summary = "What could be traced in a program or library and those it needs, without running it:\n"
		   "  slot  calls from another object, through the global offset table (any program)\n"
		   "  sled  every call, at the function's entry (compiled with -fpatchable-function-entry)\n"
		   "Functions that a run-time system declares show only when it runs.",
	.options = options_table,
	.examples = "  tracewheel functions sqlite3\n"
		    "  tracewheel functions -t 'libc:mem*' /usr/bin/git\n"
		    "  tracewheel functions --json ./app | jq -r '.functions[].function'\n",
};

struct row {
	struct tw_symbols_place place;
	const char *module;
};

struct request {
	struct tw_pattern *patterns[PATTERNS_MAX];
	size_t pattern_count;
	bool is_json;
	bool wants_refused;
};

struct list {
	const struct request *request;
	struct row *rows;
	size_t count;
	size_t room;
};

static struct tw_out out;

static bool is_wanted(const struct request *request, const struct tw_symbols_place *place)
{
	struct tw_pattern_subject subject = {.module = place->module ? place->module->name : NULL,
					     .function = place->function,
					     .arity = TW_PATTERN_ARITY_UNKNOWN};
	char *demangled = tw_name_demangled(place->function);
	bool matches = request->pattern_count == 0;
	subject.demangled = demangled;
	for (size_t i = 0; i < request->pattern_count && !matches; i++) {
		subject.file = place->module ? place->module->path : NULL;
		matches = tw_pattern_match(request->patterns[i], &subject);
		subject.file = place->module ? place->module->soname : NULL;
		matches = matches || tw_pattern_match(request->patterns[i], &subject);
	}
	free(demangled);
	return matches;
}

static int take_place(const struct tw_symbols_place *place, void *arg)
{
	struct list *list = arg;
	if (!is_wanted(list->request, place))
		return 0;
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		struct row *grown = realloc(list->rows, room * sizeof *grown);
		if (!grown)
			return TW_ENOMEM;
		list->rows = grown;
		list->room = room;
	}
	list->rows[list->count++] = (struct row){*place, place->module ? place->module->name : "?"};
	return 0;
}

/* One function's places stand together: those that can be traced, then the others. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->module, y->module);
	if (!order)
		order = strcmp(x->place.function, y->place.function);
	if (!order)
		order = (x->place.refusal != NULL) - (y->place.refusal != NULL);
	if (!order)
		order = (int)y->place.how - (int)x->place.how;
	return order ? order : strcmp(x->place.caller->name, y->place.caller->name);
}

static bool is_same_function(const struct row *a, const struct row *b)
{
	return strcmp(a->module, b->module) == 0 && strcmp(a->place.function, b->place.function) == 0 &&
	       (a->place.refusal != NULL) == (b->place.refusal != NULL) && a->place.how == b->place.how;
}

static const char *how_name(const struct row *row)
{
	return row->place.how == TW_SYMBOLS_SLED ? "sled" : "slot";
}

/* How many rows from this one on are one function. */
static size_t run_of(const struct list *list, size_t at)
{
	size_t end = at + 1;
	while (end < list->count && is_same_function(&list->rows[at], &list->rows[end]))
		end++;
	return end - at;
}

static void put_rows(const struct list *list, bool refused)
{
	char name[1200], clean[2400];
	for (size_t i = 0, n; i < list->count; i += n) {
		const struct row *row = &list->rows[i];
		n = run_of(list, i);
		if ((row->place.refusal != NULL) != refused)
			continue;
		char *demangled = tw_name_demangled(row->place.function);
		snprintf(name, sizeof name, "%s:%s/_", row->module,
			 demangled ? demangled : row->place.function);
		free(demangled);
		clean[tw_clean(name, strlen(name), clean, sizeof clean - 1)] = 0;
		tw_out_format(&out, "%s  %-*s", how_name(row), NAME_COLUMNS, clean);
		for (size_t k = 0; k < n && row->place.how == TW_SYMBOLS_SLOT; k++) {
			tw_out_text(&out, k ? ", " : "  from ");
			tw_out_name(&out, row[k].place.caller->name);
		}
		if (refused) {
			tw_out_text(&out, ": ");
			tw_out_name(&out, row->place.refusal);
		}
		tw_out_text(&out, "\n");
	}
}

static void put_summary(const struct list *list, const struct tw_symbols *symbols)
{
	size_t slots = 0, sleds = 0, loose = 0, refused = 0;
	for (size_t i = 0, n; i < list->count; i += n) {
		n = run_of(list, i);
		if (list->rows[i].place.refusal)
			refused += n;
		else if (list->rows[i].place.how == TW_SYMBOLS_SLED)
			sleds++, loose += list->rows[i].place.is_loose;
		else
			slots++;
	}
	tw_out_format(&out,
		      "\n%zu functions can be traced through slots and %zu through sleds, in %zu objects.\n",
		      slots, sleds, tw_symbols_object_count(symbols));
	if (loose)
		tw_out_format(&out,
			      "%zu sleds are of several instructions: in a library that a program with threads opens later they "
			      "are not traced. Run `tracewheel compact` on it.\n",
			      loose);
	if (refused && !list->request->wants_refused)
		tw_out_format(&out, "%zu places cannot be traced; --refused says why.\n", refused);
	const char *missing;
	for (size_t i = 0; (missing = tw_symbols_missing(symbols, i)); i++) {
		tw_out_text(&out, "The library ");
		tw_out_name(&out, missing);
		tw_out_text(&out, " was not found: what calls it is not shown.\n");
	}
}

static void put_text(const struct list *list, const struct tw_symbols *symbols)
{
	const char *refusal = tw_symbols_refusal(symbols);
	if (refusal) {
		tw_out_text(&out, "Nothing of this program can be recorded: ");
		tw_out_name(&out, refusal);
		tw_out_text(&out, ".\n\n");
	}
	put_rows(list, false);
	if (list->request->wants_refused) {
		tw_out_text(&out, "\nNot to be traced:\n");
		put_rows(list, true);
	}
	put_summary(list, symbols);
}

static void put_json_objects(struct tw_json *json, const struct tw_symbols *symbols)
{
	tw_json_open(json, "objects", '[');
	for (size_t i = 0; i < tw_symbols_object_count(symbols); i++) {
		const struct tw_symbols_object *object = tw_symbols_object(symbols, i);
		tw_json_open(json, NULL, '{');
		tw_json_text(json, "name", object->name, strlen(object->name));
		tw_json_text(json, "path", object->path, strlen(object->path));
		tw_json_text(json, "soname", object->soname, strlen(object->soname));
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	tw_json_open(json, "missing", '[');
	const char *missing;
	for (size_t i = 0; (missing = tw_symbols_missing(symbols, i)); i++)
		tw_json_text(json, NULL, missing, strlen(missing));
	tw_json_close(json, ']');
}

static void put_json(const struct list *list, const struct tw_symbols *symbols)
{
	struct tw_json json = {.out = &out, .is_spread = true};
	const char *refusal = tw_symbols_refusal(symbols);
	tw_json_open(&json, NULL, '{');
	tw_json_bool(&json, "recordable", !refusal);
	if (refusal)
		tw_json_text(&json, "refusal", refusal, strlen(refusal));
	put_json_objects(&json, symbols);
	tw_json_open(&json, "functions", '[');
	for (size_t i = 0, n; i < list->count; i += n) {
		const struct row *row = &list->rows[i];
		n = run_of(list, i);
		tw_json_open(&json, NULL, '{');
		tw_json_text(&json, "module", row->module, strlen(row->module));
		tw_json_text(&json, "function", row->place.function, strlen(row->place.function));
		tw_json_text(&json, "way", how_name(row), 4);
		tw_json_open(&json, "callers", '[');
		for (size_t k = 0; k < n && row->place.how == TW_SYMBOLS_SLOT; k++)
			tw_json_text(&json, NULL, row[k].place.caller->name,
				     strlen(row[k].place.caller->name));
		tw_json_close(&json, ']');
		if (row->place.refusal)
			tw_json_text(&json, "refusal", row->place.refusal, strlen(row->place.refusal));
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

/* A file of that name, or the program that a shell would run; for a script, its interpreter. */
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

static int show(const struct request *request, const char *path)
{
	struct tw_symbols *symbols;
	int error = tw_symbols_open(path, &symbols);
	if (error == TW_EFORMAT)
		return tw_fail("'%s' is not an ELF file, or it is damaged.", path);
	if (error == TW_ENOTSUP)
		return tw_fail("'%s' is not made for 64-bit x86 processors; only those can be traced.", path);
	if (error)
		return tw_fail("'%s' cannot be looked at: %s", path, tw_strerror(error));
	struct list list = {.request = request};
	error = tw_symbols_each_place(symbols, take_place, &list);
	int code;
	if (error) {
		code = tw_fail("'%s' cannot be looked at: %s", path, tw_strerror(error));
	} else {
		if (list.count)
			qsort(list.rows, list.count, sizeof *list.rows, compare_rows);
		tw_out_init(&out, STDOUT_FILENO);
		if (request->is_json)
			put_json(&list, symbols);
		else
			put_text(&list, symbols);
		code = tw_out_finish(&out);
	}
	free(list.rows);
	tw_symbols_close(symbols);
	return code;
}

static bool take_option(struct request *request, int key, const char *value)
{
	const char *problem = "there are too many patterns";
	if (key == KEY_JSON) {
		request->is_json = true;
	} else if (key == KEY_REFUSED) {
		request->wants_refused = true;
	} else if (request->pattern_count < PATTERNS_MAX &&
		   tw_pattern_parse(value, &request->patterns[request->pattern_count], &problem) == 0) {
		request->pattern_count++;
	} else {
		tw_usage(&command, "'%s' is not a pattern: %s.", value, problem);
		return false;
	}
	return true;
}

int tw_tool_functions(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	static struct tw_launch launch;
	const char *path = NULL;
	int key, code = TW_EXIT_USAGE;
	while ((key = tw_options_next(&options)) > 0) {
		if (!take_option(&request, key, options.value))
			goto free_patterns;
	}
	if (key < 0) {
		code = tw_options_exit(key);
	} else if (argc - options.index != 1) {
		code = tw_usage(&command, "which program? One name, behind the options.");
	} else if (strcmp(argv[options.index], "-") == 0) {
		code = tw_fail("a program is looked up by its name or path, not on standard input.");
	} else {
		code = find_file(&launch, argv[options.index], &path);
		if (code == TW_EXIT_OK)
			code = show(&request, path);
	}
free_patterns:
	for (size_t i = 0; i < request.pattern_count; i++)
		tw_pattern_destroy(request.patterns[i]);
	return code;
}
