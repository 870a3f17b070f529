/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_names.c - names of locks: the variable that contains the lock, or where it was made.
 *
 * Variables are found in the symbol tables of the module's file, which must be the recorded one by its build-id.
 */
#include "views/names/lines.h"
#include "base/grow.h"
#include "base/search.h"
#include "views/names/names.h"
#include "views/folds/locks.h"
#include "views/output/output.h"

#include "tracewheel/debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- variables of a module ---- */

struct variable {
	uint64_t value, bytes;
	char *name;
};

struct variables {
	const struct tw_capture_module *module;
	struct variable *at;
	size_t count, capacity;
};

static struct variables *tables;
static size_t table_count;

static int by_value(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;
	return TW_ORDER(x->value, y->value);
}

static int add_variable(const char *name, uint64_t value, uint64_t bytes, void *arg)
{
	struct variables *variables = arg;
	char *copy = tw_grow(variables->at, variables->count, variables->capacity) ? strdup(name) : NULL;
	if (copy)
		variables->at[variables->count++] = (struct variable){value, bytes, copy};
	return !copy;
}

static void read_variables(struct variables *variables)
{
	const struct tw_capture_module *module = variables->module;
	struct tw_debug *debug;
	if (tw_debug_open(module->path, module->build_id_bytes ? module->build_id : NULL, module->build_id_bytes,
			  &debug))
		return;
	tw_debug_each_variable(debug, add_variable, variables);
	tw_debug_close(debug);
	if (variables->count)
		qsort(variables->at, variables->count, sizeof *variables->at, by_value);
}

static const struct variables *variables_of(const struct tw_capture_module *module)
{
	for (size_t i = 0; i < table_count; i++) {
		if (tables[i].module == module)
			return &tables[i];
	}
	if (!tw_grow_one(tables, table_count))
		return NULL;
	tables[table_count] = (struct variables){.module = module};
	read_variables(&tables[table_count]);
	return &tables[table_count++];
}

void tw_lock_names_forget(void)
{
	for (size_t i = 0; i < table_count; i++) {
		for (size_t k = 0; k < tables[i].count; k++)
			free(tables[i].at[k].name);
		free(tables[i].at);
	}
	free(tables);
	tables = NULL;
	table_count = 0;
}

/* The variable that contains an address. */
static const struct variable *find_variable(const struct variables *variables, uint64_t value)
{
	size_t end = tw_search(i, variables->count, variables->at[i].value <= value);
	for (size_t i = end; i > 0 && end - i < 8; i--) {
		const struct variable *variable = &variables->at[i - 1];
		if (value - variable->value < variable->bytes)
			return variable;
	}
	return NULL;
}

/* ---- names ---- */

size_t tw_lock_symbol(const struct tw_locks *locks, const struct tw_lock_row *lock, char *text)
{
	uint64_t offset;
	const struct tw_capture_module *module = tw_name_address(locks->capture, lock->image, lock->address, &offset);
	const struct variables *variables = module ? variables_of(module) : NULL;
	*text = 0;
	if (!variables)
		return 0;
	uint64_t value = lock->address - module->base_address;
	const struct variable *variable = find_variable(variables, value);
	size_t bytes = tw_clean(module->name, strlen(module->name), text, TW_LOCK_NAME_BYTES / 4);
	if (!variable)
		return bytes + (size_t)snprintf(text + bytes, TW_LOCK_NAME_BYTES - bytes, "+0x%llx",
						(unsigned long long)offset);
	char *demangled = tw_name_demangled(variable->name);
	const char *name = demangled ? demangled : variable->name;
	text[bytes++] = ':';
	bytes += tw_clean(name, strlen(name), text + bytes, TW_LOCK_NAME_BYTES / 4);
	text[bytes] = 0;
	if (value > variable->value)
		bytes += (size_t)snprintf(text + bytes, TW_LOCK_NAME_BYTES - bytes, "+%llu",
					  (unsigned long long)(value - variable->value));
	free(demangled);
	return bytes;
}

size_t tw_lock_site(const struct tw_locks *locks, const struct tw_lock_row *lock, char *text)
{
	struct tw_line line;
	size_t bytes = 0;
	*text = 0;
	if (!lock->site)
		return 0;
	tw_line_of_return(locks->capture, lock->image, lock->site, &line);
	if (!line.module)
		return (size_t)snprintf(text, TW_LOCK_NAME_BYTES, "0x%llx", (unsigned long long)lock->site);
	bytes = tw_clean(line.module->name, strlen(line.module->name), text, TW_LOCK_NAME_BYTES / 4);
	if (line.function) {
		char *demangled = tw_name_demangled(line.function);
		const char *name = demangled ? demangled : line.function;
		text[bytes++] = ':';
		bytes += tw_clean(name, strlen(name), text + bytes, TW_LOCK_NAME_BYTES / 4);
		free(demangled);
	} else {
		bytes += (size_t)snprintf(text + bytes, TW_LOCK_NAME_BYTES - bytes, "+0x%llx",
					  (unsigned long long)line.offset);
	}
	text[bytes] = 0;
	if (line.file) {
		const char *slash = strrchr(line.file, '/');
		const char *file = slash ? slash + 1 : line.file;
		text[bytes++] = ' ';
		bytes += tw_clean(file, strlen(file), text + bytes, TW_LOCK_NAME_BYTES / 8);
		bytes += (size_t)snprintf(text + bytes, TW_LOCK_NAME_BYTES - bytes, ":%u", line.line);
	}
	return bytes;
}

const struct tw_capture_stream *tw_lock_thread(const struct tw_locks *locks, uint32_t thread)
{
	const struct tw_capture_stream *stream;
	for (uint32_t i = 0; thread != TW_LOCK_NONE && (stream = tw_capture_stream(locks->capture, i)); i++) {
		if (stream->thread == thread)
			return stream;
	}
	return NULL;
}
