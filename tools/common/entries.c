/* SPDX-License-Identifier: Apache-2.0 */
/* entries.c - plans of function entries, as places. */
#include "tools/common/entries.h"
#include "base/search.h"
#include "base/sys.h"

#include "plan/notes.h"
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
#define PLAN_BEFORE	"plan-"

struct object {
	bool is_examined;
	const char *problem;
	void *bytes;
	size_t count;
	struct tw_entry_plan plan;
	char (*nameless)[TW_SYM_NAMELESS_BYTES]; /* of the rows without a name, in their order */
	uint64_t *sleds;			 /* values of functions that have one, sorted */
	size_t sled_count;
	uint64_t *resolvers; /* values of functions that choose the code of another, sorted */
	size_t resolver_count;
};

struct tw_entries {
	const struct tw_symbols *symbols;
	bool is_careful, has_slots;
	struct object *objects;
};

struct tw_entries *tw_entries_open(const struct tw_symbols *symbols, bool is_careful, bool has_slots)
{
	struct tw_entries *entries = calloc(1, sizeof *entries);
	if (!entries)
		return NULL;
	entries->symbols = symbols;
	entries->is_careful = is_careful;
	entries->has_slots = has_slots;
	entries->objects = calloc(tw_symbols_object_count(symbols) + 1, sizeof *entries->objects);
	if (!entries->objects) {
		tw_entries_close(entries);
		return NULL;
	}
	return entries;
}

void tw_entries_close(struct tw_entries *entries)
{
	if (!entries)
		return;
	for (size_t i = 0; entries->objects && i < tw_symbols_object_count(entries->symbols); i++) {
		free(entries->objects[i].bytes);
		free(entries->objects[i].nameless);
		free(entries->objects[i].sleds);
		free(entries->objects[i].resolvers);
	}
	free(entries->objects);
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

static bool name_rows(struct object *object)
{
	const struct tw_entry_plan *plan = &object->plan;
	size_t count = 0;
	for (uint32_t i = 0; i < plan->header->row_count; i++)
		count += !plan->rows[i].name_count;
	object->nameless = malloc((count + 1) * sizeof *object->nameless);
	count = 0;
	for (uint32_t i = 0; object->nameless && i < plan->header->row_count; i++)
		if (!plan->rows[i].name_count)
			tw_sym_nameless(plan->rows[i].value, object->nameless[count++]);
	return object->nameless;
}

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return TW_ORDER(*x, *y);
}

static bool list_sleds(struct object *object, const struct tw_elf_file *file)
{
	object->sleds = malloc((file->sleds.count + 1) * sizeof *object->sleds);
	for (size_t i = 0; object->sleds && i < file->sleds.count; i++)
		object->sleds[object->sled_count++] = file->sleds.entries[i].entry - file->elf.base;
	if (object->sled_count)
		qsort(object->sleds, object->sled_count, sizeof *object->sleds, compare_values);
	return object->sleds;
}

static const ElfW(Sym) *chosen_symbol(const struct tw_elf *elf, size_t index)
{
	const ElfW(Sym) *symbol = tw_elf_symbol(elf, index);
	return symbol && ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC && symbol->st_shndx != SHN_UNDEF ? symbol
													  : NULL;
}

static bool list_resolvers(struct object *object, const struct tw_elf *elf)
{
	size_t count = tw_elf_symbol_count(elf), all = 0;
	for (size_t i = 1; i < count; i++)
		all += chosen_symbol(elf, i) != NULL;
	object->resolvers = malloc((all + 1) * sizeof *object->resolvers);
	for (size_t i = 1; object->resolvers && i < count; i++)
		if (chosen_symbol(elf, i))
			object->resolvers[object->resolver_count++] = chosen_symbol(elf, i)->st_value;
	if (object->resolver_count)
		qsort(object->resolvers, object->resolver_count, sizeof *object->resolvers, compare_values);
	return object->resolvers;
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
	const struct tw_elf_file *file = tw_symbols_file(entries->symbols, index);
	struct object *object = &entries->objects[index];
	if (object->is_examined)
		return object;
	object->is_examined = true;
	object->problem = why_left_alone(shown->path, shown->soname, !index);
	if (!object->problem)
		object->problem = make_plan(file, object);
	if (!object->problem &&
	    (!name_rows(object) || !list_sleds(object, file) || !list_resolvers(object, &file->elf)))
		object->problem = tw_strerror(TW_ENOMEM);
	return object;
}

const char *tw_entries_problem(struct tw_entries *entries, const struct tw_symbols_object *shown)
{
	for (size_t i = 0; entries && i < tw_symbols_object_count(entries->symbols); i++)
		if (tw_symbols_object(entries->symbols, i) == shown)
			return examine(entries, i)->problem;
	return NULL;
}

/* @nameless	its name, if the plan has none. */
static int visit_row(const struct tw_entries *entries, size_t index, const struct tw_entry_plan_row *row,
		     const char *nameless, tw_symbols_place_fn visit, void *arg)
{
	const struct tw_entry_plan *plan = &entries->objects[index].plan;
	const struct tw_symbols_object *shown = tw_symbols_object(entries->symbols, index);
	enum tw_entry_refusal refusal = tw_entry_plan_refusal(row, entries->is_careful);
	struct tw_symbols_place place = {
		.how = TW_SYMBOLS_ENTRY,
		.module = shown,
		.caller = shown,
		.refusal = refusal ? tw_entry_refusal_text(refusal) : NULL,
		.value = row->value,
		.has_no_end = row->flags & TW_ENTRY_UNWATCHED,
	};
	unsigned n = 0;
	int result;
	place.function = row->name_count ? tw_entry_plan_name(plan, row, n) : nameless;
	do
		result = visit(&place, arg);
	while (!result && (place.function = tw_entry_plan_name(plan, row, ++n)));
	return result;
}

static bool has_sled(const struct object *object, uint64_t value)
{
	return object->sled_count && bsearch(&value, object->sleds, object->sled_count, sizeof value, compare_values);
}

/* The program's calls of it lead to the agent's wrapper. */
static bool is_left_to_slots(const struct tw_entries *entries, size_t index, const struct tw_entry_plan_row *row)
{
	const char *name;
	if (!entries->has_slots || strncmp(tw_symbols_object(entries->symbols, index)->soname, "libc.so", 7) != 0)
		return false;
	for (unsigned n = 0; (name = tw_entry_plan_name(&entries->objects[index].plan, row, n)); n++)
		if (tw_sym_is_wrapped(name))
			return true;
	return false;
}

int tw_entries_each(struct tw_entries *entries, size_t index, tw_symbols_place_fn visit, void *arg)
{
	const struct object *object = examine(entries, index);
	size_t nameless_count = 0;
	int result = 0;
	for (uint32_t i = 0; !object->problem && i < object->plan.header->row_count && !result; i++) {
		const struct tw_entry_plan_row *row = &object->plan.rows[i];
		const char *nameless = row->name_count ? NULL : object->nameless[nameless_count++];
		if (!has_sled(object, row->value) && !is_left_to_slots(entries, index, row))
			result = visit_row(entries, index, row, nameless, visit, arg);
	}
	return result;
}

int tw_entries_each_chosen(struct tw_entries *entries, size_t index, tw_symbols_place_fn visit, void *arg)
{
	const struct tw_elf *elf = &tw_symbols_file(entries->symbols, index)->elf;
	struct tw_symbols_place place =
		{.how = TW_SYMBOLS_ENTRY,
		 .module = tw_symbols_object(entries->symbols, index),
		 .caller = tw_symbols_object(entries->symbols, index),
		 .refusal = entries->has_slots
				    ? NULL
				    : "the loader chooses its code, which is recorded under this name without --local"};
	int result = 0;
	if (examine(entries, index)->problem)
		return 0;
	for (size_t i = 1, count = tw_elf_symbol_count(elf); i < count && !result; i++) {
		const ElfW(Sym) *symbol = chosen_symbol(elf, i);
		if (!symbol)
			continue;
		place.function = tw_elf_string(elf, symbol->st_name);
		result = visit(&place, arg);
	}
	return result;
}

bool tw_entries_has_probes(const struct tw_symbols *symbols, size_t index)
{
	return tw_notes_are_in(tw_symbols_file(symbols, index));
}

int tw_entries_each_probe(struct tw_entries *entries, size_t index, tw_entries_probe_fn visit, void *arg)
{
	if (!tw_entries_has_probes(entries->symbols, index))
		return 0;
	const struct object *object = examine(entries, index);
	const struct tw_entry_plan *plan = &object->plan;
	int result = 0;
	for (uint32_t i = 0; !object->problem && i < plan->header->site_count && !result; i++) {
		const struct tw_entry_plan_site *site = &plan->sites[i];
		const struct tw_entries_probe probe = {
			.module = tw_symbols_object(entries->symbols, index),
			.name = tw_entry_plan_name(plan, &site->row, 0),
			.arguments = plan->strings + site->arguments,
			.value = site->row.value,
			.semaphore = site->semaphore,
			.argument_count = site->argument_count,
			.is_shared = site->row.flags & TW_ENTRY_SHARES,
			.refusal = site->row.refusal ? tw_entry_refusal_text(site->row.refusal) : NULL,
		};
		result = visit(&probe, arg);
	}
	return result;
}

bool tw_entries_is_better_name(const struct tw_entries *entries, size_t index, const char *name, const char *than)
{
	return tw_elf_is_better_name(&tw_symbols_file(entries->symbols, index)->elf, name, than);
}

static bool has_good_sled(const struct tw_elf_file *file, uint64_t value)
{
	for (size_t i = 0; i < file->sleds.count; i++)
		if (file->sleds.entries[i].entry - file->elf.base == value)
			return !file->sleds.entries[i].refusal;
	return false;
}

static bool covers(struct tw_entries *entries, size_t index, uint64_t value)
{
	const struct object *object = examine(entries, index);
	const struct tw_entry_plan_row *row;
	/* Of a function whose code is chosen the value is the resolver's. */
	if (!object->problem && object->resolver_count &&
	    bsearch(&value, object->resolvers, object->resolver_count, sizeof value, compare_values))
		return false;
	/* Without a plan the sleds are not listed, and may be there. */
	if (object->problem || has_sled(object, value))
		return has_good_sled(tw_symbols_file(entries->symbols, index), value);
	row = tw_entry_plan_find(&object->plan, value);
	return row && !tw_entry_plan_refusal(row, entries->is_careful) && !is_left_to_slots(entries, index, row);
}

bool tw_entries_cover(struct tw_entries *entries, const struct tw_symbols_place *slot)
{
	for (size_t i = 0; slot->value && i < tw_symbols_object_count(entries->symbols); i++)
		if (tw_symbols_object(entries->symbols, i) == slot->module)
			return covers(entries, i, slot->value);
	return false;
}

bool tw_entries_folder(char *out, size_t bytes)
{
	return tw_entry_plan_folder(out, bytes);
}

static void name_file(char out[PLAN_PATH_BYTES], const char *folder, const char *before, const struct tw_elf_file *file)
{
	char name[TW_ENTRY_PLAN_NAME_BYTES];
	tw_entry_plan_name_file(before, &file->elf, &file->identity, name);
	snprintf(out, PLAN_PATH_BYTES, "%.480s/%s", folder, name);
}

/* Under a name of its own first: agents that look for the file meanwhile find all of it, or none. */
static bool write_file(const char *path, const void *bytes, size_t count)
{
	char part[PLAN_PATH_BYTES + 8];
	snprintf(part, sizeof part, "%s.part", path);
	/* Two objects of one file. */
	if (access(path, F_OK) == 0)
		return true;
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	int written = tw_sys_write_all(fd, bytes, count);
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

static bool write_plan(const struct tw_elf_file *file, const struct object *object, const char *folder)
{
	char path[PLAN_PATH_BYTES];
	name_file(path, folder, PLAN_BEFORE, file);
	return write_file(path, object->bytes, object->count);
}

/* An object without call frame information has no table, and needs none. */
static bool write_frames(const struct tw_elf_file *file, const char *folder)
{
	char path[PLAN_PATH_BYTES];
	void *bytes;
	size_t count;
	name_file(path, folder, "frames-", file);
	if (!file->elf.build_id_bytes || access(path, F_OK) == 0 || tw_frame_rows_get(file, &bytes, &count))
		return true;
	bool is_written = write_file(path, bytes, count);
	free(bytes);
	return is_written;
}

bool tw_entries_write_frames(const struct tw_symbols *symbols, size_t index, const char *folder)
{
	return !*folder || write_frames(tw_symbols_file(symbols, index), folder);
}

bool tw_entries_write(struct tw_entries *entries, size_t index, const char *folder)
{
	const struct object *object = examine(entries, index);
	/* No folder: the rings are private memory, and there is no agent. */
	return object->problem || !*folder || write_plan(tw_symbols_file(entries->symbols, index), object, folder);
}

static const char *write_file_plan(const struct tw_elf_file *file, const char *folder)
{
	struct object object = {0};
	char path[PLAN_PATH_BYTES];
	name_file(path, folder, PLAN_BEFORE, file);
	if (file->elf.build_id_bytes && access(path, F_OK) == 0)
		return NULL;
	const char *problem = make_plan(file, &object);
	if (!problem && !write_plan(file, &object, folder))
		problem = "its plan cannot be written into the ring set";
	free(object.bytes);
	return problem;
}

void tw_entries_module_name(const char *path, char *out, size_t bytes)
{
	tw_sym_module_name(path, out, bytes);
}

bool tw_entries_may_want(const struct tw_entries_file *wish)
{
	const char *slash = strrchr(wish->path, '/'), *soname = slash ? slash + 1 : wish->path;
	char name[NAME_MAX + 1];
	if (wish->has_frames)
		return true;
	tw_sym_module_name(wish->path, name, sizeof name);
	return wish->wants && !why_left_alone(wish->path, soname, wish->is_program) &&
	       (wish->has_probes || wish->needs_soname || wish->wants(name, "", wish->arg));
}

const char *tw_entries_write_file(const struct tw_entries_file *wish, int fd, const struct stat *status,
				  const char *folder)
{
	struct tw_elf_file *file;
	char name[NAME_MAX + 1];
	const char *problem = NULL;
	int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	tw_sym_module_name(wish->path, name, sizeof name);
	/* Or other mapped files than objects. */
	if (own_fd < 0 || tw_elf_file_take(own_fd, status, wish->path, &file))
		return NULL;
	if (wish->has_frames)
		write_frames(file, folder);
	if (wish->wants && !why_left_alone(wish->path, file->elf.soname, wish->is_program) &&
	    (file->elf.build_id_bytes || !wish->has_slots) &&
	    (wish->wants(name, file->elf.soname, wish->arg) || (wish->has_probes && tw_notes_are_in(file))))
		problem = write_file_plan(file, folder);
	tw_elf_file_close(file);
	return problem;
}
