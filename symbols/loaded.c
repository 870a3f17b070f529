/* SPDX-License-Identifier: Apache-2.0 */
/* loaded.c - the objects that ld.so has loaded into this process. */
#include "symbols/symbols.h"

#include "base/grow.h"
#include "base/limits.h"
#include "tracewheel/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gathering {
	struct tw_sym_set *set;
	size_t capacity;
	int error;
};

/* The program's own file.  Started as `ld.so PROGRAM` /proc/self/exe is the loader: then the path is the name as called.
 */
static char *program_path(void)
{
	char path[TW_PATH_BYTES_MAX + 1];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);

	if (bytes > 0) {
		path[bytes] = '\0';
		if (tw_sym_role_of(path, "") != TW_SYM_ROLE_LOADER)
			return strdup(path);
	}
	return strdup(program_invocation_name ? program_invocation_name : "program");
}

/* Copies the strings that identify an object, because they are read without a pin, even after unloading. */
static bool keep_names(struct tw_sym_object *object)
{
	struct tw_elf *elf = &object->elf;
	size_t bytes = strlen(elf->soname) + 1;

	object->copy = malloc(bytes + elf->build_id_bytes);
	if (!object->copy)
		return false;
	memcpy(object->copy, elf->soname, bytes);
	if (elf->build_id_bytes)
		memcpy(object->copy + bytes, elf->build_id, elf->build_id_bytes);
	elf->soname = object->copy;
	elf->build_id = (const uint8_t *)object->copy + bytes;
	return true;
}

static int fill_object(struct tw_sym_object *object, const struct dl_phdr_info *info, bool is_first)
{
	char name[TW_NAME_BYTES_MAX + 1];
	bool is_program = is_first || !info->dlpi_name || !*info->dlpi_name;

	tw_elf_init(&object->elf, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
	object->path = is_program ? program_path() : strdup(info->dlpi_name);
	if (!object->path || !keep_names(object))
		return TW_ENOMEM;
	object->role = is_program ? TW_SYM_PROGRAM : tw_sym_role_of(object->path, object->elf.soname);
	tw_sym_module_name(object->path, name, sizeof name);
	object->name = strdup(name);
	return object->name ? 0 : TW_ENOMEM;
}

/* Runs under the loader's lock, so it only copies. */
static int gather(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct gathering *gathering = arg;
	struct tw_sym_set *set = gathering->set;

	if (!tw_grow(set->objects, set->count, gathering->capacity)) {
		gathering->error = TW_ENOMEM;
		return 1;
	}
	set->loaded_count = info->dlpi_adds;
	set->unloaded_count = info->dlpi_subs;
	memset(&set->objects[set->count], 0, sizeof set->objects[0]);
	set->count++;
	gathering->error = fill_object(&set->objects[set->count - 1], info, set->count == 1);
	return gathering->error != 0;
}

int tw_sym_load(struct tw_sym_set **out)
{
	struct gathering gathering = {.set = calloc(1, sizeof *gathering.set)};

	if (!gathering.set)
		return TW_ENOMEM;
	dl_iterate_phdr(gather, &gathering);
	if (gathering.error) {
		tw_sym_unload(gathering.set);
		return gathering.error;
	}
	*out = gathering.set;
	return 0;
}

void tw_sym_unload(struct tw_sym_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++) {
		free(set->objects[i].name);
		free(set->objects[i].copy);
		free(set->objects[i].path);
	}
	free(set->objects);
	free(set);
}

static int first_only(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct tw_sym_set *set = arg;

	set->loaded_count = info->dlpi_adds;
	set->unloaded_count = info->dlpi_subs;
	return 1;
}

void tw_sym_counts(uint64_t *loaded_count, uint64_t *unloaded_count)
{
	struct tw_sym_set set = {0};

	dl_iterate_phdr(first_only, &set);
	*loaded_count = set.loaded_count;
	*unloaded_count = set.unloaded_count;
}

bool tw_sym_pin(const struct tw_sym_object *object, void **handle)
{
	struct link_map *map = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);

	if (!map)
		return false;
	/* The file may have been unloaded and loaded elsewhere since the snapshot. */
	if (map->l_addr != object->elf.base) {
		dlclose(map);
		return false;
	}
	*handle = map;
	return true;
}

void tw_sym_unpin(void *handle)
{
	dlclose(handle);
}

struct tw_sym_object *tw_sym_object_at(const struct tw_sym_set *set, uintptr_t address)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct tw_elf_range *image = &set->objects[i].elf.image;

		if (address >= image->low && address < image->high)
			return &set->objects[i];
	}
	return NULL;
}
