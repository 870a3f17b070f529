/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.c - the names: modules, functions and their places, found again or added, never removed.
 *
 * An id keeps its meaning for the life of the process, because undelivered events may carry it.  Thus unloaded modules
 * and places are kept in lists that no commit walks: gone_modules, and gone_places of each function.  An object loaded again
 * at the same addresses with the same build-id gets its old ids: so a program may open and close a library any number of
 * times.
 */
#include "breakpoints/permit.h"
#include "base/error.h"
#include "base/sys.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "breakpoints/sled.h"
#include "symbols/entry_plan.h"
#include "symbols/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE_BYTES (64 * sizeof(struct tw_place))
#define HUGE_BYTES  ((size_t)2 << 20)

static char *copy_string(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Was this object unloaded before?  Only a build-id proves that its functions are the same. */
static bool is_back(const struct tw_module *module, const struct tw_module_options *options)
{
	return module->base_address == options->base_address && module->end_address == options->end_address &&
	       options->build_id_bytes && module->build_id_bytes == options->build_id_bytes &&
	       !memcmp(module->build_id, options->build_id, module->build_id_bytes) &&
	       strcmp(module->name, options->name) == 0 && module->path && options->path &&
	       strcmp(module->path, options->path) == 0;
}

static struct tw_module *take_gone(struct tw_permit *permit, const struct tw_module_options *options)
{
	for (struct tw_module **link = &permit->gone_modules; *link; link = &(*link)->next) {
		struct tw_module *module = *link;

		if (!is_back(module, options))
			continue;
		*link = module->next;
		module->next = NULL;
		module->is_replaced = false;
		return module;
	}
	return NULL;
}

static bool is_same_module(const struct tw_module *module, const struct tw_module_options *options)
{
	return module->is_declared == options->is_declared && module->base_address == options->base_address &&
	       strcmp(module->name, options->name) == 0;
}

int tw_bp_module_add(struct tw_permit *permit, const struct tw_module_options *options, struct tw_module **out)
{
	struct tw_module *module, **end = &permit->modules;

	TW_ASSERT(tw_permit_is_held(permit));
	for (; *end; end = &(*end)->next) {
		if (is_same_module(*end, options)) {
			*out = *end;
			return 0;
		}
	}
	module = options->is_declared ? NULL : take_gone(permit, options);
	if (module) {
		*end = *out = module;
		return 0;
	}
	module = calloc(1, sizeof *module);
	if (!module)
		return TW_ENOMEM;
	module->name = copy_string(options->name);
	module->path = copy_string(options->path);
	/* Without memory the path is shown as given. */
	module->whole_path = copy_string(options->whole_path);
	module->soname = copy_string(options->soname);
	if (!module->name || (options->path && !module->path) || (options->soname && !module->soname))
		goto free_module;
	module->is_declared = options->is_declared;
	module->base_address = options->base_address;
	module->end_address = options->end_address;
	module->build_id_bytes = options->build_id_bytes;
	if (module->build_id_bytes > sizeof module->build_id)
		module->build_id_bytes = sizeof module->build_id;
	if (module->build_id_bytes)
		memcpy(module->build_id, options->build_id, module->build_id_bytes);
	module->module_id = permit->next_module_id++;
	*end = module;
	*out = module;
	return 0;
free_module:
	free((char *)module->name);
	free((char *)module->path);
	free((char *)module->whole_path);
	free((char *)module->soname);
	free(module);
	return TW_ENOMEM;
}

struct tw_module *tw_bp_modules(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	return permit->modules;
}

/* FNV-1a of the name, the module and the arity. */
static uint32_t hash_of(const struct tw_module *module, const char *name, uint32_t arity)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ module->module_id ^ (uint64_t)arity << 32;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	return (uint32_t)(hash >> 32 ^ hash);
}

struct tw_function *tw_bp_function_find(struct tw_permit *permit, struct tw_module *module, const char *name,
					uint32_t arity)
{
	uint32_t hash = hash_of(module, name, arity);
	struct tw_function *function;

	TW_ASSERT(tw_permit_is_held(permit));
	if (!permit->function_chain_count)
		return NULL;
	function = permit->function_chains[hash & (permit->function_chain_count - 1)];
	while (function && (function->hash != hash || function->module != module || function->arity != arity ||
			    strcmp(function->name, name) != 0))
		function = function->next_of_chain;
	return function;
}

static void put_in_chain(struct tw_function **chains, uint32_t count, struct tw_function *function)
{
	struct tw_function **chain = &chains[function->hash & (count - 1)];

	function->next_of_chain = *chain;
	*chain = function;
}

/* Makes as many chains as functions.  False: there are no chains; if only growing fails, chains are longer. */
static bool grow_chains(struct tw_permit *permit)
{
	uint32_t count = permit->function_chain_count ? 2 * permit->function_chain_count : 1024;
	struct tw_function **chains;

	if (permit->next_function_id < permit->function_chain_count || !count)
		return true;
	chains = calloc(count, sizeof(struct tw_function *));
	if (!chains)
		return permit->function_chain_count != 0;
	for (uint32_t i = 0; i < permit->function_chain_count; i++) {
		for (struct tw_function *function = permit->function_chains[i], *next; function; function = next) {
			next = function->next_of_chain;
			put_in_chain(chains, count, function);
		}
	}
	free(permit->function_chains);
	permit->function_chains = chains;
	permit->function_chain_count = count;
	return true;
}

int tw_bp_function_add(struct tw_permit *permit, struct tw_module *module, const char *name, uint32_t arity,
		       uint64_t address, struct tw_function **out)
{
	struct tw_function *function = tw_bp_function_find(permit, module, name, arity);

	if (function) {
		*out = function;
		return 0;
	}
	function = calloc(1, sizeof *function);
	if (!function)
		return TW_ENOMEM;
	function->name = strdup(name);
	function->module = module;
	function->arity = arity;
	function->address = address;
	function->is_exported = true;
	if (!function->name || !grow_chains(permit)) {
		free((char *)function->name);
		free(function);
		return TW_ENOMEM;
	}
	function->hash = hash_of(module, name, arity);
	put_in_chain(permit->function_chains, permit->function_chain_count, function);
	function->function_id = permit->next_function_id++;
	function->next_of_module = module->functions;
	module->functions = function;
	*out = function;
	return 0;
}

/* The size arguments of the C library's allocators.  Those of C++ call these. */
static const struct allocator {
	const char *name;
	enum tw_bp_allocator rule;
} allocators[] = {
	{"malloc", TW_BP_ALLOCATES_FIRST},	{"calloc", TW_BP_ALLOCATES_PRODUCT},
	{"realloc", TW_BP_ALLOCATES_SECOND},	{"aligned_alloc", TW_BP_ALLOCATES_SECOND},
	{"memalign", TW_BP_ALLOCATES_SECOND},	{"posix_memalign", TW_BP_ALLOCATES_THIRD},
	{"pthread_create", TW_BP_MAKES_THREAD},
};

enum tw_bp_allocator tw_bp_allocator_of(const char *function)
{
	for (size_t i = 0; i < TW_COUNT_OF(allocators); i++)
		if (!strcmp(allocators[i].name, function))
			return allocators[i].rule;
	return TW_BP_ALLOCATES_NOTHING;
}

/*
 * Memory for places, which live forever: pieces of a few KiB at first, of a huge page for thousands, so that a change
 * of all places walks over contiguous memory.
 */
static struct tw_place *take_place(struct tw_permit *permit)
{
	if (!permit->free_count) {
		bool is_huge = permit->made_count * sizeof(struct tw_place) >= HUGE_BYTES / 2;
		size_t bytes = is_huge ? HUGE_BYTES : PIECE_BYTES;
		struct tw_place *block = aligned_alloc(is_huge ? HUGE_BYTES : TW_CACHELINE_BYTES, bytes);

		if (!block)
			return NULL;
#ifdef MADV_HUGEPAGE
		if (is_huge)
			madvise(block, bytes, MADV_HUGEPAGE);
#endif
		permit->free_places = block;
		permit->free_count = bytes / sizeof *block;
		permit->made_count += permit->free_count;
	}
	return permit->free_places;
}

static void set_entry(struct tw_place *place, const struct tw_bp_entry *entry)
{
	if (entry)
		place->own_entry = *entry;
	place->entry = entry ? &place->own_entry : NULL;
}

/* Restores an old place, except the fields that depend on the memory at `where`; no session has set anything on it. */
static struct tw_place *take_gone_place(struct tw_permit *permit, struct tw_function *function,
					const struct tw_place_options *options)
{
	for (struct tw_place **link = &function->gone_places; *link; link = &(*link)->next_of_function) {
		struct tw_place *place = *link;

		if (place->where != options->where || place->kind != options->kind ||
		    place->caller_module_id != options->caller_module_id || place->sled_bytes != options->sled_bytes)
			continue;
		if (tw_ck_table_put(&permit->places, (uintptr_t)options->where, place) != 0)
			return NULL;
		*link = place->next_of_function;
		place->is_gone = place->is_due = false;
		place->is_back = true;
		set_entry(place, options->entry);
		/* RELAXED bp.target: as in tw_bp_place_add(); it is not installed. */
		tw_store_relaxed(&place->target, options->target);
		for (unsigned session = 0; session < TW_SESSIONS_MAX; session++)
			tw_bp_stage_clear(permit, place, session);
		if (place->is_allocating)
			tw_bp_stage_allocations(permit, place, false);
		return place;
	}
	return NULL;
}

/* Whether the end of its calls may be watched, and where they end if it may not. */
static void set_end(struct tw_place *place, const struct tw_place_options *options)
{
	const char *name = place->function->name, *soname = place->function->module->soname;
	/* The plan of entries has examined the code of those that may be others of the same name. */
	bool is_examined = options->entry && tw_sym_may_return_once(soname, name);
	bool is_known = !is_examined && tw_sym_is_never_returning(soname, name);

	if (options->kind == TW_BP_DECLARED || options->is_watched)
		return;
	place->is_unwatched = is_known || options->is_unwatched ||
			      (options->entry && options->entry->row->flags & TW_ENTRY_UNWATCHED);
	/* Those that are not known by name do return. */
	place->has_no_end = place->is_unwatched && (!is_known || tw_sym_has_no_end(name));
}

static struct tw_place *make_place(struct tw_permit *permit, struct tw_function *function,
				   const struct tw_place_options *options)
{
	struct tw_place *place = take_place(permit);

	if (!place)
		return NULL;
	memset(place, 0, sizeof *place);
	place->kind = options->kind;
	place->arity = function->arity;
	place->where = options->where;
	place->sled_bytes = options->sled_bytes;
	set_entry(place, options->entry);
	place->caller_module_id = options->caller_module_id;
	place->function = function;
	place->allocator = options->kind == TW_BP_SLOT ? tw_bp_allocator_of(function->name) : TW_BP_ALLOCATES_NOTHING;
	set_end(place, options);
	/* RELAXED bp.target: published with the place itself (PAIR bp.place, or step 5's wait). */
	tw_store_relaxed(&place->target, options->target);
	/* RELAXED bp.way: as above. */
	tw_store_relaxed(&place->way, options->kind == TW_BP_SLOT ? tw_bp_whole_slot : tw_bp_whole_sled);
	/* An unloaded object may have had a place at this address: it is replaced. */
	if (tw_ck_table_put(&permit->places, (uintptr_t)options->where, place) != 0)
		return NULL;
	permit->free_places++;
	permit->free_count--;
	place->place_id = permit->next_place_id++;
	/*
	 * PAIR bp.first: release; acquire in tw_native_hit().  The place is initialised before a slot or sled leads to it:
	 * step 5 orders that for threads, and this shows it to sanitizers, which do not see jumps.
	 */
	tw_store_release(&place->first, place->allocator ? TW_BP_FIRST_ALLOCATION : 0);
	return place;
}

int tw_bp_place_add(struct tw_permit *permit, struct tw_function *function, const struct tw_place_options *options,
		    struct tw_place **out)
{
	struct tw_place *place;

	TW_ASSERT(tw_permit_is_held(permit));
	place = tw_bp_place_at(permit, options->where);
	if (place && options->entry && place->entry &&
	    (options->entry->row->flags ^ place->entry->row->flags) & TW_ENTRY_SITE)
		return TW_EFORMAT;
	if (place) {
		*out = place;
		return 0;
	}
	place = take_gone_place(permit, function, options);
	if (!place)
		place = make_place(permit, function, options);
	if (!place)
		return TW_ENOMEM;
	place->next_of_function = function->places;
	function->places = place;
	*out = place;
	return 0;
}

void tw_bp_place_renew(struct tw_permit *permit, struct tw_place *place, struct tw_function *function,
		       const struct tw_place_options *options)
{
	struct tw_place **link = &place->function->places;

	TW_ASSERT(tw_permit_is_held(permit));
	if (place->function != function) {
		while (*link != place)
			link = &(*link)->next_of_function;
		*link = place->next_of_function;
		place->next_of_function = function->places;
		function->places = place;
		place->function = function;
		place->arity = function->arity;
	}
	set_end(place, options);
}

static void forget_place(struct tw_permit *permit, struct tw_function *function, struct tw_place **link)
{
	struct tw_place *place = *link;

	*link = place->next_of_function;
	place->next_of_function = function->gone_places;
	function->gone_places = place;
	tw_ck_table_remove(&permit->places, (uintptr_t)place->where);
	place->is_gone = true;
	place->is_installed = false;
	if (tw_bp_list)
		tw_bp_list->forget(place);
	if (place->kind == TW_BP_ENTRY)
		tw_entry_forget(place);
	if (place->kind == TW_BP_SLED && place->stub)
		tw_sled_give_stub(place);
}

/* Removes the object's slots, for any callee, and the places inside its own functions. */
void tw_bp_module_gone(struct tw_permit *permit, struct tw_module *gone, bool is_unloaded)
{
	struct tw_module **link = &permit->modules;

	TW_ASSERT(tw_permit_is_held(permit));
	for (struct tw_module *module = permit->modules; module; module = module->next) {
		for (struct tw_function *f = module->functions; f; f = f->next_of_module) {
			for (struct tw_place **at = &f->places, *place; (place = *at);) {
				if (place->caller_module_id == gone->module_id ||
				    (module == gone && place->kind != TW_BP_SLOT))
					forget_place(permit, f, at);
				else
					at = &place->next_of_function;
			}
		}
	}
	if (is_unloaded && !gone->is_declared)
		tw_entry_forget_copies(gone->base_address);
	gone->is_replaced = false;
	while (*link != gone)
		link = &(*link)->next;
	*link = gone->next;
	gone->next = permit->gone_modules;
	permit->gone_modules = gone;
}

/* Returns 1 if the place holds the bytes written there, 0 if not, -1 if not known. */
static int holds_its_own(const struct tw_place *place)
{
	uint8_t written[8], found[8];
	uintptr_t at = 0;
	size_t bytes = tw_patch_written(place, written, &at);
	long readable = bytes ? tw_sys_read_own_memory(getpid(), found, at, bytes) : 0;

	if (!bytes || (readable < 0 && readable != -EFAULT))
		return -1;
	return (readable == (long)bytes && !memcmp(written, found, bytes)) ||
	       (tw_bp_list && tw_bp_list->is_taken_back(place));
}

/* The state of a module, by its number: found present or replaced. */
enum { UNCHECKED, IS_THERE, IS_OTHER };

void tw_bp_modules_check(struct tw_permit *permit)
{
	uint8_t *states = calloc(permit->next_module_id + 1, 1);

	TW_ASSERT(tw_permit_is_held(permit));
	for (struct tw_module *module = permit->modules; states && module; module = module->next) {
		for (struct tw_function *f = module->functions; f; f = f->next_of_module) {
			for (struct tw_place *place = f->places; place; place = place->next_of_function) {
				uint8_t *state = &states[place->kind == TW_BP_SLOT ? place->caller_module_id
										   : module->module_id];
				int holds;

				if (place->kind == TW_BP_DECLARED || place->is_gone || *state == IS_THERE)
					continue;
				holds = holds_its_own(place);
				if (holds >= 0)
					*state = holds ? IS_THERE : IS_OTHER;
			}
		}
	}
	for (struct tw_module *module = permit->modules; states && module; module = module->next)
		module->is_replaced = states[module->module_id] == IS_OTHER;
	free(states);
}
