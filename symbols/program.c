/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - a program's file and the libraries it needs: which functions can be traced. */
#include "tracewheel/symbols.h"

#include "base/export.h"
#include "base/grow.h"
#include "base/search.h"
#include "symbols/file.h"
#include "symbols/sections.h"
#include "symbols/symbols.h"
#include "tracewheel/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More libraries than any program has: a limit for hostile files. */
#define OBJECTS_MAX 2048

struct object {
	struct tw_symbols_object shown;
	struct tw_elf_file *file;
	enum tw_sym_role role;
	char *name;
};

struct tw_symbols {
	struct object *objects;
	size_t count, capacity;
	char **missing; /* closed by NULL */
	size_t missing_count;
};

static int add_object(struct tw_symbols *symbols, struct tw_elf_file *file)
{
	char name[256];
	struct object *object;

	if (!tw_grow(symbols->objects, symbols->count, symbols->capacity))
		return TW_ENOMEM;
	tw_sym_module_name(file->path, name, sizeof name);
	object = &symbols->objects[symbols->count];
	*object = (struct object){.file = file, .name = strdup(name)};
	if (!object->name)
		return TW_ENOMEM;
	object->role = symbols->count ? tw_sym_role_of(file->path, file->elf.soname) : TW_SYM_PROGRAM;
	object->shown = (struct tw_symbols_object){
		.name = object->name,
		.path = file->path,
		.soname = file->elf.soname,
		.build_id = file->elf.build_id,
		.build_id_bytes = file->elf.build_id_bytes,
	};
	symbols->count++;
	return 0;
}

/* Before searching, ld.so uses an already loaded library with the SONAME. */
static bool has_object(const struct tw_symbols *symbols, const char *soname)
{
	for (size_t i = 1; i < symbols->count; i++)
		if (!strcmp(symbols->objects[i].file->elf.soname, soname))
			return true;
	return false;
}

static bool has_file(const struct tw_symbols *symbols, const struct tw_elf_file *file)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (symbols->objects[i].file->identity.device == file->identity.device &&
		    symbols->objects[i].file->identity.inode == file->identity.inode)
			return true;
	return false;
}

static int add_missing(struct tw_symbols *symbols, const char *name)
{
	char **missing;

	for (size_t i = 0; i < symbols->missing_count; i++)
		if (!strcmp(symbols->missing[i], name))
			return 0;
	missing = realloc(symbols->missing, (symbols->missing_count + 2) * sizeof *missing);
	if (!missing)
		return TW_ENOMEM;
	symbols->missing = missing;
	missing[symbols->missing_count] = strdup(name);
	if (!missing[symbols->missing_count])
		return TW_ENOMEM;
	missing[++symbols->missing_count] = NULL;
	return 0;
}

static int add_needed(struct tw_symbols *symbols, size_t requester, const char *name)
{
	struct tw_elf_file *file;
	int error;

	if (has_object(symbols, name))
		return 0;
	error = tw_elf_search(name, symbols->objects[requester].file, symbols->objects[0].file, &file);
	if (error == TW_ENOENT)
		return add_missing(symbols, name);
	if (error)
		return error;
	if (has_file(symbols, file) || symbols->count >= OBJECTS_MAX) {
		tw_elf_file_close(file);
		return 0;
	}
	error = add_object(symbols, file);
	if (error)
		tw_elf_file_close(file);
	return error;
}

TW_API int tw_symbols_open(const char *path, struct tw_symbols **out)
{
	struct tw_symbols *symbols;
	struct tw_elf_file *file;
	char *real;
	int error;

	if (!path || !*path)
		return TW_EBADARG;
	/* A running program has its real path (/proc/self/exe), libraries have the path of the link used.  */
	real = realpath(path, NULL);
	error = tw_elf_file_open(real ? real : path, &file);
	free(real);
	if (error)
		return error;
	symbols = calloc(1, sizeof *symbols);
	error = symbols ? add_object(symbols, file) : TW_ENOMEM;
	if (error)
		tw_elf_file_close(file);
	/* Breadth first, as ld.so loads: the list grows while it is walked. */
	for (size_t i = 0; !error && i < symbols->count; i++) {
		const char *name;

		for (size_t n = 0; !error && (name = tw_elf_needed(&symbols->objects[i].file->elf, n)); n++)
			error = add_needed(symbols, i, name);
	}
	if (error) {
		tw_symbols_close(symbols);
		return error;
	}
	*out = symbols;
	return 0;
}

TW_API int tw_symbols_add(struct tw_symbols *symbols, int fd, const char *path)
{
	struct tw_elf_file *file;
	struct stat status;
	int error, copy;

	if (!symbols || !path || fd < 0)
		return TW_EBADARG;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0 || fstat(copy, &status)) {
		if (copy >= 0)
			close(copy);
		return TW_EIO;
	}
	error = tw_elf_file_take(copy, &status, path, &file);
	if (error)
		return error;
	if (!has_file(symbols, file) && symbols->count < OBJECTS_MAX)
		error = add_object(symbols, file);
	if (error || symbols->objects[symbols->count - 1].file != file)
		tw_elf_file_close(file);
	return error;
}

TW_API void tw_symbols_close(struct tw_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->count; i++) {
		tw_elf_file_close(symbols->objects[i].file);
		free(symbols->objects[i].name);
	}
	for (size_t i = 0; i < symbols->missing_count; i++)
		free(symbols->missing[i]);
	free(symbols->missing);
	free(symbols->objects);
	free(symbols);
}

/* Linkers mark static programs that may be loaded anywhere; libraries are not marked, and need no name. */
static bool is_library(const struct tw_elf *elf)
{
	bool is_marked = false;

	for (size_t i = 0; i < elf->dynamic_count && elf->dynamic[i].d_tag != DT_NULL; i++)
		is_marked |= elf->dynamic[i].d_tag == DT_FLAGS_1 && elf->dynamic[i].d_un.d_val & DF_1_PIE;
	return elf->dynamic_count && !is_marked;
}

TW_API const char *tw_symbols_refusal(const struct tw_symbols *symbols)
{
	const struct tw_elf_file *file = symbols->objects[0].file;

	if (file->mode & S_ISUID && file->owner != geteuid())
		return "the program is set-uid: the loader preloads nothing into it";
	if (file->mode & S_ISGID && file->mode & S_IXGRP && file->group != getegid())
		return "the program is set-gid: the loader preloads nothing into it";
	if (file->has_capabilities && geteuid() != 0)
		return "the program has file capabilities: the loader preloads nothing into it";
	if (!file->elf.interpreter && !is_library(&file->elf))
		return "the program is statically linked: it has no dynamic loader that could preload "
		       "anything";
	return NULL;
}

TW_API size_t tw_symbols_object_count(const struct tw_symbols *symbols)
{
	return symbols->count;
}

TW_API const struct tw_symbols_object *tw_symbols_object(const struct tw_symbols *symbols, size_t index)
{
	return index < symbols->count ? &symbols->objects[index].shown : NULL;
}

const struct tw_elf_file *tw_symbols_file(const struct tw_symbols *symbols, size_t index)
{
	return index < symbols->count ? symbols->objects[index].file : NULL;
}

TW_API const char *tw_symbols_missing(const struct tw_symbols *symbols, size_t index)
{
	return index < symbols->missing_count ? symbols->missing[index] : NULL;
}

/* ---- places ---- */

/* One slot of an object, with the results of the search. */
struct slot {
	const char *function;
	const struct object *definer;
	uint64_t value; /* of the function */
	uintptr_t where;
	enum tw_sym_refusal refusal;
	bool is_data_slot;
	bool is_wanted;
};

static void judge_slot(const struct tw_symbols *symbols, const struct object *caller, struct slot *slot, bool is_weak)
{
	const ElfW(Sym) *symbol = NULL;
	uint32_t hash = tw_elf_hash(slot->function);
	unsigned type;

	/* The global scope: the first that defines it, in the order of loading. */
	for (size_t i = 0; i < symbols->count && !symbol; i++) {
		symbol = tw_elf_lookup_hashed(&symbols->objects[i].file->elf, slot->function, hash, 0);
		if (symbol)
			slot->definer = &symbols->objects[i];
	}
	type = symbol ? ELF64_ST_TYPE(symbol->st_info) : STT_NOTYPE;
	slot->value = symbol ? symbol->st_value : 0;
	if (tw_sym_is_never(slot->function))
		slot->refusal = TW_SYM_NEVER;
	else if (caller->role == TW_SYM_ROLE_OWN || caller->role == TW_SYM_ROLE_LOADER)
		slot->refusal = TW_SYM_OWN_CALLER;
	else if (!symbol)
		slot->refusal = is_weak ? TW_SYM_NULL : TW_SYM_UNRESOLVED;
	else if (slot->definer->role == TW_SYM_ROLE_OWN)
		slot->refusal = TW_SYM_OWN;
	else if (slot->definer->role == TW_SYM_ROLE_LOADER)
		slot->refusal = TW_SYM_LOADER;
	else if (type != STT_FUNC && type != STT_GNU_IFUNC && (slot->is_data_slot || type != STT_NOTYPE))
		slot->refusal = TW_SYM_NOT_FUNCTION;
}

static size_t count_candidates(const struct tw_elf *elf)
{
	return elf->plt_relocation_count + elf->relocation_count - elf->relative_count;
}

static size_t collect(const struct tw_symbols *symbols, const struct object *caller, struct slot *slots)
{
	const struct tw_elf *elf = &caller->file->elf;
	size_t count = 0, total = count_candidates(elf);

	for (size_t i = 0; i < total; i++) {
		const ElfW(Rela) *relocation =
			i < elf->plt_relocation_count
				? &elf->plt_relocations[i]
				: &elf->relocations[elf->relative_count + i - elf->plt_relocation_count];
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, ELF64_R_SYM(relocation->r_info));
		struct slot *slot = &slots[count];

		if (!tw_elf_is_slot(relocation) || !symbol || !*tw_elf_string(elf, symbol->st_name) ||
		    relocation->r_offset % sizeof(void *) ||
		    !tw_elf_holds(elf, elf->base + relocation->r_offset, sizeof(void *)))
			continue;
		*slot = (struct slot){
			.function = tw_elf_string(elf, symbol->st_name),
			.where = elf->base + relocation->r_offset,
			.is_data_slot = ELF64_R_TYPE(relocation->r_info) == R_X86_64_GLOB_DAT,
		};
		judge_slot(symbols, caller, slot, ELF64_ST_BIND(symbol->st_info) == STB_WEAK);
		count++;
	}
	return count;
}

static int by_where(const void *a, const void *b)
{
	uintptr_t x = ((const struct slot *)a)->where, y = ((const struct slot *)b)->where;

	return TW_ORDER(x, y);
}

/* All code of the object is looked through for uses of such a slot. */
static bool is_to_be_looked_for(const struct slot *slot)
{
	return slot->is_wanted && slot->is_data_slot && !slot->refusal;
}

static int refuse_taken(const struct object *caller, struct slot *slots, size_t count)
{
	uintptr_t *wheres = malloc((count + 1) * sizeof *wheres);
	bool *taken = malloc(count + 1);
	size_t data_count = 0, at = 0;
	int error = TW_ENOMEM;

	if (wheres && taken) {
		qsort(slots, count, sizeof *slots, by_where);
		for (size_t i = 0; i < count; i++)
			if (is_to_be_looked_for(&slots[i]))
				wheres[data_count++] = slots[i].where;
		error = tw_sym_address_taken(&caller->file->elf, wheres, data_count, taken);
		for (size_t i = 0; !error && i < count; i++)
			if (is_to_be_looked_for(&slots[i]) && taken[at++])
				slots[i].refusal = TW_SYM_ADDRESS_TAKEN;
	}
	free(wheres);
	free(taken);
	return error;
}

static struct tw_symbols_place place_of(const struct slot *slot, const struct object *caller)
{
	return (struct tw_symbols_place){
		.how = TW_SYMBOLS_SLOT,
		.function = slot->function,
		.module = slot->definer ? &slot->definer->shown : NULL,
		.caller = &caller->shown,
		.refusal = slot->refusal ? tw_sym_refusal_text(slot->refusal) : NULL,
		.value = slot->value,
	};
}

static int visit_slots(const struct tw_symbols *symbols, const struct object *caller, tw_symbols_wants_fn wants,
		       tw_symbols_place_fn visit, void *arg)
{
	const struct tw_elf *elf = &caller->file->elf;
	struct slot *slots = calloc(count_candidates(elf) + 1, sizeof *slots);
	size_t count;
	int result;

	if (!slots)
		return TW_ENOMEM;
	count = collect(symbols, caller, slots);
	for (size_t i = 0; i < count; i++) {
		struct tw_symbols_place place = place_of(&slots[i], caller);

		slots[i].is_wanted = !wants || wants(&place, arg);
	}
	result = refuse_taken(caller, slots, count);
	for (size_t i = 0; !result && i < count; i++) {
		struct tw_symbols_place place = place_of(&slots[i], caller);

		if (!slots[i].is_wanted)
			continue;
		place.has_no_end =
			tw_sym_is_never_returning(place.module ? place.module->soname : NULL, place.function);
		result = visit(&place, arg);
	}
	free(slots);
	return result;
}

/* Does an instruction end inside the first five bytes of the sled?  Then a thread can be stopped there. */
static bool is_loose(const struct tw_elf *elf, const struct tw_sym_sled *sled)
{
	return !sled->refusal && tw_elf_holds(elf, sled->where, sled->bytes) &&
	       tw_sym_nop_bytes((const uint8_t *)sled->where, sled->bytes) < TW_SYM_JUMP_BYTES;
}

TW_API int tw_symbols_each_place(const struct tw_symbols *symbols, tw_symbols_place_fn visit, void *arg)
{
	return tw_symbols_each_wanted_place(symbols, NULL, visit, arg);
}

TW_API int tw_symbols_each_wanted_place(const struct tw_symbols *symbols, tw_symbols_wants_fn wants,
					tw_symbols_place_fn visit, void *arg)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->count; i++) {
		const struct object *object = &symbols->objects[i];

		for (size_t j = 0; !result && j < object->file->sleds.count; j++) {
			const struct tw_sym_sled *sled = &object->file->sleds.entries[j];
			enum tw_sym_refusal refusal = object->role == TW_SYM_ROLE_OWN ? TW_SYM_OWN : sled->refusal;
			struct tw_symbols_place place = {
				.how = TW_SYMBOLS_SLED,
				.function = sled->function,
				.module = &object->shown,
				.caller = &object->shown,
				.refusal = refusal ? tw_sym_refusal_text(refusal) : NULL,
				.value = sled->entry - object->file->elf.base,
				.is_loose = is_loose(&object->file->elf, sled),
				.has_no_end = tw_sym_is_never_returning(object->shown.soname, sled->function),
			};

			result = !wants || wants(&place, arg) ? visit(&place, arg) : 0;
		}
		if (!result)
			result = visit_slots(symbols, object, wants, visit, arg);
	}
	return result;
}

/* Visits functions whose code is chosen at run time (ifuncs): they have no sleds, and are not in the list of functions. */
static int each_chosen(const struct tw_elf *elf, tw_symbols_function_fn visit, void *arg)
{
	size_t count = tw_elf_symbol_count(elf);
	int result = 0;

	for (size_t i = 1; i < count && !result; i++) {
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, i);

		if (!symbol)
			break;
		if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC && symbol->st_shndx != SHN_UNDEF)
			result = visit(tw_elf_string(elf, symbol->st_name), arg);
	}
	return result;
}

TW_API int tw_symbols_each_function(const struct tw_symbols *symbols, size_t index, tw_symbols_function_fn visit,
				    void *arg)
{
	const struct tw_elf_file *file = index < symbols->count ? symbols->objects[index].file : NULL;
	int fd = file ? tw_elf_file_reopen(file) : -1, result;
	struct tw_elf_sections sections;

	if (fd < 0)
		return TW_ENOENT;
	result = tw_elf_sections_read(&sections, &file->header, fd);
	if (!result)
		result = tw_elf_sections_read_functions(&sections, fd);
	for (size_t i = 0; !result && i < sections.function_count; i++)
		result = visit(sections.strings + sections.functions[i].name, arg);
	if (!result)
		result = each_chosen(&file->elf, visit, arg);
	tw_elf_sections_fini(&sections);
	close(fd);
	return result;
}

TW_API bool tw_symbols_exports(const struct tw_symbols *symbols, size_t index, const char *function)
{
	return index < symbols->count && tw_elf_lookup(&symbols->objects[index].file->elf, function, 0) != NULL;
}
