/* SPDX-License-Identifier: Apache-2.0 */
/* entries.c - plans of function entries, as places. */
#include "tools/common/entries.h"
#include "base/grow.h"
#include "base/sys.h"

#include "plan/plan.h"
#include "symbols/entries.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN_PATH_BYTES 600

struct object {
	bool is_examined;
	const char *problem;
	void *bytes;
	size_t count;
	struct tw_entry_plan plan;
	char (*nameless)[TW_SYM_NAMELESS_BYTES]; /* by row */
};

struct sled {
	const struct tw_symbols_object *module;
	uint64_t value;
};

struct tw_entries {
	const struct tw_symbols *symbols;
	bool is_careful;
	struct object *objects;
	struct sled *sleds; /* sorted */
	size_t sled_count, sled_capacity;
};

static int compare_sleds(const void *a, const void *b)
{
	const struct sled *x = a, *y = b;
	if (x->module != y->module)
		return (x->module > y->module) - (x->module < y->module);
	return (x->value > y->value) - (x->value < y->value);
}

static int take_sled(const struct tw_symbols_place *place, void *arg)
{
	struct tw_entries *entries = arg;
	if (place->how != TW_SYMBOLS_SLED)
		return 0;
	if (!tw_grow(entries->sleds, entries->sled_count, entries->sled_capacity))
		return TW_ENOMEM;
	entries->sleds[entries->sled_count++] = (struct sled){place->module, place->value};
	return 0;
}

struct tw_entries *tw_entries_open(const struct tw_symbols *symbols, bool is_careful)
{
	struct tw_entries *entries = calloc(1, sizeof *entries);
	if (!entries)
		return NULL;
	entries->symbols = symbols;
	entries->is_careful = is_careful;
	entries->objects = calloc(tw_symbols_object_count(symbols) + 1, sizeof *entries->objects);
	if (!entries->objects || tw_symbols_each_place(symbols, take_sled, entries)) {
		tw_entries_close(entries);
		return NULL;
	}
	if (entries->sled_count)
		qsort(entries->sleds, entries->sled_count, sizeof *entries->sleds, compare_sleds);
	return entries;
}

void tw_entries_close(struct tw_entries *entries)
{
	if (!entries)
		return;
	for (size_t i = 0; entries->objects && i < tw_symbols_object_count(entries->symbols); i++) {
		free(entries->objects[i].bytes);
		free(entries->objects[i].nameless);
	}
	free(entries->objects);
	free(entries->sleds);
	free(entries);
}

static const char *make_plan(const struct tw_elf_file *file, struct object *object)
{
	if (!file->elf.build_id_bytes)
		return "its file has no build-id, by which it would be known in memory";
	int error = tw_entry_plan_get(file, &object->bytes, &object->count, NULL);
	if (error == TW_ENOENT)
		return "it has no call frame information, which says where functions begin";
	if (!error)
		error = tw_entry_plan_open(object->bytes, object->count, &object->plan);
	return error ? tw_strerror(error) : NULL;
}

static const char *make_plan_of(const char *path, struct object *object)
{
	struct tw_elf_file *file;
	int error = tw_elf_file_open(path, &file);
	if (error)
		return tw_strerror(error);
	const char *problem = make_plan(file, object);
	tw_elf_file_close(file);
	return problem;
}

static void name_rows(struct object *object)
{
	object->nameless = malloc((object->plan.header->row_count + 1) * sizeof *object->nameless);
	for (uint32_t i = 0; object->nameless && i < object->plan.header->row_count; i++)
		tw_sym_nameless(object->plan.rows[i].value, object->nameless[i]);
	if (!object->nameless)
		object->problem = tw_strerror(TW_ENOMEM);
}

/* NULL: it is not. */
static const char *why_left_alone(const char *path, const char *soname, bool is_program)
{
	enum tw_sym_role role = is_program ? TW_SYM_PROGRAM : tw_sym_role_of(path, soname);
	if (role == TW_SYM_ROLE_OWN || role == TW_SYM_ROLE_LOADER)
		return "it is the dynamic loader, or a part of Tracewheel";
	return tw_sym_left_alone(soname);
}

static struct object *examine(struct tw_entries *entries, size_t index)
{
	const struct tw_symbols_object *shown = tw_symbols_object(entries->symbols, index);
	struct object *object = &entries->objects[index];
	if (object->is_examined)
		return object;
	object->is_examined = true;
	object->problem = why_left_alone(shown->path, shown->soname, !index);
	if (!object->problem)
		object->problem = make_plan_of(shown->path, object);
	if (!object->problem)
		name_rows(object);
	return object;
}

const char *tw_entries_problem(struct tw_entries *entries, const struct tw_symbols_object *shown)
{
	for (size_t i = 0; entries && i < tw_symbols_object_count(entries->symbols); i++)
		if (tw_symbols_object(entries->symbols, i) == shown)
			return examine(entries, i)->problem;
	return NULL;
}

static int visit_row(const struct tw_entries *entries, size_t index, uint32_t number, tw_symbols_place_fn visit,
		     void *arg)
{
	const struct object *object = &entries->objects[index];
	const struct tw_symbols_object *shown = tw_symbols_object(entries->symbols, index);
	const struct tw_entry_plan_row *row = &object->plan.rows[number];
	enum tw_entry_refusal refusal = tw_entry_plan_refusal(row, entries->is_careful);
	struct tw_symbols_place place = {
		.how = TW_SYMBOLS_ENTRY,
		.module = shown,
		.caller = shown,
		.refusal = refusal ? tw_entry_refusal_text(refusal) : NULL,
		.value = row->value,
	};
	unsigned n = 0;
	int result;
	place.function = row->name_count ? tw_entry_plan_name(&object->plan, row, n) : object->nameless[number];
	do
		result = visit(&place, arg);
	while (!result && (place.function = tw_entry_plan_name(&object->plan, row, ++n)));
	return result;
}

int tw_entries_each(struct tw_entries *entries, size_t index, tw_symbols_place_fn visit, void *arg)
{
	const struct object *object = examine(entries, index);
	const struct tw_symbols_object *shown = tw_symbols_object(entries->symbols, index);
	int result = 0;
	for (uint32_t i = 0; !object->problem && i < object->plan.header->row_count && !result; i++) {
		const struct sled sled = {shown, object->plan.rows[i].value};
		if (entries->sled_count &&
		    bsearch(&sled, entries->sleds, entries->sled_count, sizeof sled, compare_sleds))
			continue;
		result = visit_row(entries, index, i, visit, arg);
	}
	return result;
}

bool tw_entries_folder(char *out, size_t bytes)
{
	return tw_entry_plan_folder(out, bytes);
}

static void name_file(char out[PLAN_PATH_BYTES], const char *folder, const uint8_t *build_id, uint32_t bytes)
{
	int used = snprintf(out, PLAN_PATH_BYTES, "%.500s/plan-", folder);
	for (uint32_t i = 0; i < bytes && i < 32; i++)
		used += snprintf(out + used, PLAN_PATH_BYTES - (size_t)used, "%02x", build_id[i]);
}

/* Under a name of its own first: agents that look for the file meanwhile find all of it, or none. */
static bool write_plan(const struct object *object, const char *folder)
{
	char path[PLAN_PATH_BYTES], part[PLAN_PATH_BYTES + 8];
	name_file(path, folder, object->plan.header->build_id, object->plan.header->build_id_bytes);
	snprintf(part, sizeof part, "%s.part", path);
	/* Two objects of one file. */
	if (access(path, F_OK) == 0)
		return true;
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	int written = tw_sys_write_all(fd, object->bytes, object->count);
	if (written)
		errno = -written;
	bool is_whole = !written;
	is_whole = !close(fd) && is_whole && !rename(part, path);
	int error = errno;
	if (!is_whole)
		unlink(part);
	errno = error;
	return is_whole;
}

bool tw_entries_write(struct tw_entries *entries, size_t index, const char *folder)
{
	const struct object *object = examine(entries, index);
	/* No folder: the rings are private memory, and there is no agent. */
	return object->problem || !*folder || write_plan(object, folder);
}

/*
 * A traced process with fewer rights chooses what it maps.  Plans are kept by the build-id that a file claims, so a file of its
 * making could spoil those of other programs.
 */
static bool is_trusted(const struct tw_elf_file *file)
{
	return (file->owner == 0 || file->owner == geteuid()) && !(file->mode & S_IWOTH);
}

static const char *write_file_plan(const struct tw_elf_file *file, const char *folder)
{
	struct object object = {0};
	char path[PLAN_PATH_BYTES];
	name_file(path, folder, file->elf.build_id, file->elf.build_id_bytes);
	if (file->elf.build_id_bytes && access(path, F_OK) == 0)
		return NULL;
	const char *problem = make_plan(file, &object);
	if (!problem && !write_plan(&object, folder))
		problem = "its plan cannot be written into the ring set";
	free(object.bytes);
	return problem;
}

const char *tw_entries_write_file(const struct tw_entries_file *wish, const char *folder)
{
	struct tw_elf_file *file;
	char name[NAME_MAX + 1];
	const char *problem = NULL;
	tw_sym_module_name(wish->path, name, sizeof name);
	/* Or other mapped files than objects. */
	if ((!wish->needs_soname && !wish->wants(name, "", wish->arg)) || tw_elf_file_open(wish->path, &file))
		return NULL;
	if (!why_left_alone(wish->path, file->elf.soname, wish->is_program) &&
	    wish->wants(name, file->elf.soname, wish->arg))
		problem = is_trusted(file) ? write_file_plan(file, folder)
					   : "another user than root and you may write its file";
	tw_elf_file_close(file);
	return problem;
}
