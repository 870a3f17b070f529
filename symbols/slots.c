/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.c - the GOT slots of a loaded object: what each leads to, and which must be left alone.
 *
 * Traps that were met, and stand here in code:
 *  - libc binds its own malloc and realloc lazily, and *defines* them: an unbound slot of a defined
 *    symbol is resolved like any other, or the binder would overwrite what was put there.
 *  - A name may have several versions (memcpy@GLIBC_2.2.5 and @@GLIBC_2.14): resolved by the version
 *    that the linker recorded in the caller.
 *  - dlsym answers from the scope of its caller, here the global one.  What a plugin was linked with
 *    is found only in the plugin's own scope, so that is asked second.
 */
#include "symbols/symbols.h"

#include "tracewheel/error.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const struct tw_sym_set *set;
	const struct tw_sym_object *caller;
	tw_sym_wants_fn wants;
	void *wants_arg;
	struct tw_sym_slot *slots;
	size_t count, room;
	const struct tw_sym_object *last_definer; /* most neighbours lead to the same object */
};

static void *find(void *scope, const struct tw_sym_slot *slot)
{
	return slot->version ? dlvsym(scope, slot->function, slot->version) : dlsym(scope, slot->function);
}

/*
 * An object's own scope is asked through a handle that dlopen gave: the link_map of a library that was
 * there from the start has no list to search until then, and dlsym would follow a null pointer.
 */
static void resolve(const struct scan *scan, struct tw_sym_slot *slot)
{
	void *handle;

	slot->target = find(RTLD_DEFAULT, slot);
	if (slot->target || scan->caller->role == TW_SYM_PROGRAM || !tw_sym_pin(scan->caller, &handle))
		return;
	slot->target = find(handle, slot);
	tw_sym_unpin(handle);
}

static const struct tw_sym_object *definer_of(struct scan *scan, uintptr_t address)
{
	const struct tw_sym_object *last = scan->last_definer;

	if (!last || address < last->elf.image.low || address >= last->elf.image.high)
		scan->last_definer = tw_sym_object_at(scan->set, address);
	return scan->last_definer;
}

static enum tw_sym_refusal judge_role(const struct tw_sym_object *definer)
{
	switch (definer->role) {
	case TW_SYM_ROLE_OWN: return TW_SYM_OWN;
	case TW_SYM_ROLE_LOADER: return TW_SYM_LOADER;
	case TW_SYM_ROLE_VDSO: return TW_SYM_VDSO;
	default: return TW_SYM_OK;
	}
}

/* The slot has a target: is it a function that may be hooked? */
static enum tw_sym_refusal judge_target(struct scan *scan, struct tw_sym_slot *slot)
{
	uintptr_t target = (uintptr_t)slot->target;
	const ElfW(Sym) * symbol;
	enum tw_sym_refusal refusal;
	unsigned type;

	slot->definer = definer_of(scan, target);
	if (!slot->definer)
		return TW_SYM_NO_OBJECT;
	refusal = judge_role(slot->definer);
	if (refusal)
		return refusal;
	symbol = tw_elf_lookup(&slot->definer->elf, slot->function, target);
	type = symbol ? ELF64_ST_TYPE(symbol->st_info) : STT_NOTYPE;
	if (type == STT_OBJECT || type == STT_COMMON || type == STT_TLS)
		return TW_SYM_NOT_FUNCTION;
	if (!tw_elf_is_code(&slot->definer->elf, target))
		return type == STT_GNU_IFUNC ? TW_SYM_IFUNC : TW_SYM_NOT_FUNCTION;
	/* A data slot without a function symbol behind it may be anything, also a label inside code. */
	if (slot->is_data_slot && type != STT_FUNC && type != STT_GNU_IFUNC)
		return TW_SYM_NOT_FUNCTION;
	return TW_SYM_OK;
}

static enum tw_sym_refusal judge(struct scan *scan, struct tw_sym_slot *slot)
{
	slot->target = *slot->where;
	if (tw_sym_is_never(slot->function))
		return TW_SYM_NEVER;
	if (scan->caller->role == TW_SYM_ROLE_OWN || scan->caller->role == TW_SYM_ROLE_LOADER)
		return TW_SYM_OWN_CALLER;
	if (!slot->target)
		return TW_SYM_NULL;
	if (!slot->is_data_slot && tw_elf_is_code(&scan->caller->elf, (uintptr_t)slot->target)) {
		/* Unbound, or bound to the object itself: the same answer is right for both. */
		slot->was_unbound = true;
		resolve(scan, slot);
		if (!slot->target)
			return TW_SYM_UNRESOLVED;
	}
	return judge_target(scan, slot);
}

static int add(struct scan *scan, const ElfW(Rela) * relocation)
{
	const struct tw_elf *elf = &scan->caller->elf;
	size_t index = ELF64_R_SYM(relocation->r_info);
	const ElfW(Sym) *symbol = tw_elf_symbol(elf, index);
	struct tw_sym_slot *slot;

	if (!tw_elf_is_slot(relocation) || !symbol || !symbol->st_name ||
	    !tw_elf_holds(elf, elf->base + relocation->r_offset, sizeof(void *)) ||
	    relocation->r_offset % sizeof(void *))
		return 0;
	if (scan->wants && !scan->wants(tw_elf_string(elf, symbol->st_name), scan->wants_arg))
		return 0;
	if (scan->count == scan->room) {
		size_t room = scan->room ? scan->room * 2 : 256;
		struct tw_sym_slot *slots = realloc(scan->slots, room * sizeof *slots);

		if (!slots)
			return TW_ENOMEM;
		scan->slots = slots;
		scan->room = room;
	}
	slot = &scan->slots[scan->count++];
	*slot = (struct tw_sym_slot){
		.where = (void **)(elf->base + relocation->r_offset),
		.function = tw_elf_string(elf, symbol->st_name),
		.version = tw_elf_version(elf, index),
		.is_data_slot = ELF64_R_TYPE(relocation->r_info) == R_X86_64_GLOB_DAT,
	};
	slot->refusal = judge(scan, slot);
	return 0;
}

static int add_all(struct scan *scan, const ElfW(Rela) * relocations, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = add(scan, &relocations[i]);
	return error;
}

static int by_where(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct tw_sym_slot *)a)->where;
	uintptr_t y = (uintptr_t)((const struct tw_sym_slot *)b)->where;

	return (x > y) - (x < y);
}

/* Of the data slots that are still good: those that code reads as a value. */
static int refuse_taken(struct scan *scan)
{
	uintptr_t *wheres = malloc((scan->count + 1) * sizeof *wheres);
	bool *taken = malloc(scan->count + 1);
	size_t count = 0, at = 0;
	int error = TW_ENOMEM;

	if (!wheres || !taken)
		goto free_all;
	qsort(scan->slots, scan->count, sizeof *scan->slots, by_where);
	for (size_t i = 0; i < scan->count; i++)
		if (scan->slots[i].is_data_slot && !scan->slots[i].refusal)
			wheres[count++] = (uintptr_t)scan->slots[i].where;
	error = tw_sym_taken(&scan->caller->elf, wheres, count, taken);
	for (size_t i = 0; !error && i < scan->count; i++)
		if (scan->slots[i].is_data_slot && !scan->slots[i].refusal && taken[at++])
			scan->slots[i].refusal = TW_SYM_ADDRESS_TAKEN;
free_all:
	free(wheres);
	free(taken);
	return error;
}

int tw_sym_slots(const struct tw_sym_set *set, const struct tw_sym_object *caller, tw_sym_wants_fn wants,
		 void *arg, struct tw_sym_slot **out, size_t *count)
{
	struct scan scan = {.set = set, .caller = caller, .wants = wants, .wants_arg = arg};
	const struct tw_elf *elf = &caller->elf;
	int error = 0;

	/* The vdso has no slots, and its tables are not as ld.so leaves them. */
	if (caller->role != TW_SYM_ROLE_VDSO) {
		error = add_all(&scan, elf->plt_relocations, elf->plt_relocation_count);
		if (!error)
			error = add_all(&scan, elf->relocations, elf->relocation_count);
		if (!error && scan.count)
			error = refuse_taken(&scan);
	}
	if (error) {
		free(scan.slots);
		return error;
	}
	*out = scan.slots;
	*count = scan.count;
	return 0;
}
