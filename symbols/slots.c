/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.c - the GOT slots of a loaded object: the target of each, and the slots that must not be armed.
 *
 * Known difficulties, handled below:
 *  - libc binds its own malloc and realloc lazily, and *defines* them: an unbound slot of a defined symbol is
 *    resolved like any other, or the binder would overwrite the stub.
 *  - A name may have several versions (memcpy@GLIBC_2.2.5 and @@GLIBC_2.14): resolved by the version
 *    that the linker recorded in the caller.
 *  - Another preloaded library's malloc has no version.  ld.so accepts it for any requested version, if it comes
 *    first; dlvsym does not.  Thus both are used, and the order of loading decides.
 *  - In a program that is not position-independent dlsym may answer with the program's own PLT: the
 *    address that stands for the function everywhere.  A slot must not lead there, or calls would loop: ld.so skips
 *    such symbols when it binds slots, and so does this code.
 *  - dlsym answers from the scope of its caller, here the global one.  Libraries that a plugin was linked with are
 *    found only in the plugin's own scope, so that is searched second.
 */
#include "symbols/symbols.h"

#include "base/atomic.h"
#include "base/grow.h"
#include "base/search.h"
#include "tracewheel/error.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const struct tw_sym_set *set;
	const struct tw_sym_object *caller;
	struct tw_sym_wish wish;
	struct tw_sym_slot *slots;
	size_t count, capacity;
	const struct tw_sym_object *last_definer; /* most neighbours lead to the same object */
	const struct tw_sym_object *pinned;	  /* searched by its own handle; most results come from libc */
	void *pin;
};

/* Does the object define the name without a version, which ld.so takes for any version? */
static bool is_unversioned(const struct tw_sym_object *object, const char *name, void *address)
{
	const ElfW(Sym) *symbol = tw_elf_lookup(&object->elf, name, (uintptr_t)address);

	return symbol && !tw_elf_version(&object->elf, (size_t)(symbol - object->elf.symbols));
}

/* The result of ld.so's own search in a scope: the first definition that has this version or no version. */
static void *find(const struct scan *scan, void *scope, const struct tw_sym_slot *slot)
{
	void *any = dlsym(scope, slot->function), *exact;
	const struct tw_sym_object *any_definer, *exact_definer;

	if (!slot->version)
		return any;
	exact = dlvsym(scope, slot->function, slot->version);
	if (!exact || !any || any == exact)
		return exact ? exact : any;
	any_definer = tw_sym_object_at(scan->set, (uintptr_t)any);
	exact_definer = tw_sym_object_at(scan->set, (uintptr_t)exact);
	if (any_definer && exact_definer && any_definer < exact_definer &&
	    is_unversioned(any_definer, slot->function, any))
		return any;
	return exact;
}

/* The program's PLT entry that stands for a function of another object. */
static bool is_stand_in(const struct scan *scan, const struct tw_sym_slot *slot)
{
	const struct tw_elf *program = &scan->set->objects[0].elf;

	return slot->target && tw_elf_is_code(program, (uintptr_t)slot->target) &&
	       !tw_elf_lookup(program, slot->function, (uintptr_t)slot->target);
}

static void *pin(struct scan *scan, const struct tw_sym_object *object)
{
	if (scan->pinned == object)
		return scan->pin;
	if (scan->pinned)
		tw_sym_unpin(scan->pin);
	scan->pinned = tw_sym_pin(object, &scan->pin) ? object : NULL;
	return scan->pinned ? scan->pin : NULL;
}

/* Searches the objects after the program for the first that defines the function. */
static void resolve_behind_program(struct scan *scan, struct tw_sym_slot *slot)
{
	slot->target = NULL;
	for (size_t i = 1; i < scan->set->count && !slot->target; i++) {
		const struct tw_sym_object *object = &scan->set->objects[i];
		void *handle;

		if (!tw_elf_lookup(&object->elf, slot->function, 0))
			continue;
		handle = pin(scan, object);
		if (handle)
			slot->target = find(scan, handle, slot);
	}
}

/*
 * An object's own scope is searched through a handle from dlopen: before that, the link_map of an initially loaded
 * library has no search list, and dlsym would follow a null pointer.
 */
static void resolve(struct scan *scan, struct tw_sym_slot *slot)
{
	void *handle;

	slot->target = find(scan, RTLD_DEFAULT, slot);
	if (is_stand_in(scan, slot)) {
		resolve_behind_program(scan, slot);
		return;
	}
	if (slot->target || scan->caller->role == TW_SYM_PROGRAM)
		return;
	handle = pin(scan, scan->caller);
	if (handle)
		slot->target = find(scan, handle, slot);
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
	const ElfW(Sym) *symbol;
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
	/* The target of a data slot without a function symbol may be anything, even a label inside code. */
	if (slot->is_data_slot && type != STT_FUNC && type != STT_GNU_IFUNC)
		return TW_SYM_NOT_FUNCTION;
	return TW_SYM_OK;
}

static enum tw_sym_refusal judge(struct scan *scan, struct tw_sym_slot *slot, size_t symbol_index)
{
	/* RELAXED slots.target: another session may arm the slot meanwhile; both values are valid. */
	slot->target = tw_load_plain_relaxed(slot->where);
	if (tw_sym_is_never(slot->function))
		return TW_SYM_NEVER;
	if (scan->caller->role == TW_SYM_ROLE_OWN || scan->caller->role == TW_SYM_ROLE_LOADER)
		return TW_SYM_OWN_CALLER;
	if (!slot->target)
		return TW_SYM_NULL;
	if (!slot->is_data_slot && tw_elf_is_code(&scan->caller->elf, (uintptr_t)slot->target)) {
		/* Unbound, or bound to the object itself: the same answer is right for both. */
		slot->was_unbound = true;
		slot->version = tw_elf_version(&scan->caller->elf, symbol_index);
		resolve(scan, slot);
		if (!slot->target)
			return TW_SYM_UNRESOLVED;
	}
	return judge_target(scan, slot);
}

static bool is_wished(const struct scan *scan, const char *function)
{
	return !scan->wish.wants || scan->wish.wants(function, scan->wish.arg);
}

static int add(struct scan *scan, const ElfW(Rela) *relocation)
{
	const struct tw_elf *elf = &scan->caller->elf;
	size_t index = ELF64_R_SYM(relocation->r_info);
	const ElfW(Sym) *symbol = tw_elf_symbol(elf, index);
	struct tw_sym_slot slot = {0};

	if (!tw_elf_is_slot(relocation) || !symbol || !symbol->st_name ||
	    !tw_elf_holds(elf, elf->base + relocation->r_offset, sizeof(void *)) ||
	    relocation->r_offset % sizeof(void *) || !is_wished(scan, tw_elf_string(elf, symbol->st_name)))
		return 0;
	slot.where = (void **)(elf->base + relocation->r_offset);
	slot.function = tw_elf_string(elf, symbol->st_name);
	slot.is_data_slot = ELF64_R_TYPE(relocation->r_info) == R_X86_64_GLOB_DAT;
	slot.refusal = judge(scan, &slot, index);
	if (scan->wish.suits && !scan->wish.suits(&slot, scan->wish.arg))
		return 0;
	if (!slot.version)
		slot.version = tw_elf_version(elf, index);
	if (!tw_grow(scan->slots, scan->count, scan->capacity))
		return TW_ENOMEM;
	scan->slots[scan->count++] = slot;
	return 0;
}

static int add_all(struct scan *scan, const ElfW(Rela) *relocations, size_t count)
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

	return TW_ORDER(x, y);
}

/* Most linkers leave them in order already. */
static void sort(struct scan *scan)
{
	size_t i = 1;

	while (i < scan->count && scan->slots[i - 1].where <= scan->slots[i].where)
		i++;
	if (i < scan->count)
		qsort(scan->slots, scan->count, sizeof *scan->slots, by_where);
}

/* Refuses data slots that code reads as a value. */
static int refuse_taken(struct scan *scan)
{
	uintptr_t *wheres = malloc((scan->count + 1) * sizeof *wheres);
	bool *taken = malloc(scan->count + 1);
	size_t count = 0, at = 0;
	int error = TW_ENOMEM;

	if (!wheres || !taken)
		goto free_all;
	sort(scan);
	for (size_t i = 0; i < scan->count; i++)
		if (scan->slots[i].is_data_slot && !scan->slots[i].refusal)
			wheres[count++] = (uintptr_t)scan->slots[i].where;
	error = tw_sym_address_taken(&scan->caller->elf, wheres, count, taken);
	for (size_t i = 0; !error && i < scan->count; i++)
		if (scan->slots[i].is_data_slot && !scan->slots[i].refusal && taken[at++])
			scan->slots[i].refusal = TW_SYM_ADDRESS_TAKEN;
free_all:
	free(wheres);
	free(taken);
	return error;
}

int tw_sym_slots(const struct tw_sym_set *set, const struct tw_sym_object *caller, const struct tw_sym_wish *wish,
		 struct tw_sym_slot **out, size_t *count)
{
	struct scan scan = {.set = set, .caller = caller};
	const struct tw_elf *elf = &caller->elf;
	int error = 0;

	if (wish)
		scan.wish = *wish;
	/* The vdso has no slots, and ld.so does not relocate its tables. */
	if (caller->role != TW_SYM_ROLE_VDSO) {
		error = add_all(&scan, elf->plt_relocations, elf->plt_relocation_count);
		if (!error)
			error = add_all(&scan, elf->relocations + elf->relative_count,
					elf->relocation_count - elf->relative_count);
		if (!error && scan.count)
			error = refuse_taken(&scan);
	}
	if (scan.pinned)
		tw_sym_unpin(scan.pin);
	if (error) {
		free(scan.slots);
		return error;
	}
	*out = scan.slots;
	*count = scan.count;
	return 0;
}

void tw_sym_pointers(const struct tw_sym_object *object, void (*found)(const char *function, void *arg), void *arg)
{
	const struct tw_elf *elf = &object->elf;

	if (object->role == TW_SYM_ROLE_VDSO)
		return;
	for (size_t i = elf->relative_count; i < elf->relocation_count; i++) {
		const ElfW(Rela) *relocation = &elf->relocations[i];
		const ElfW(Sym) *symbol = ELF64_R_TYPE(relocation->r_info) == R_X86_64_64
						  ? tw_elf_symbol(elf, ELF64_R_SYM(relocation->r_info))
						  : NULL;

		if (symbol && symbol->st_name && symbol->st_shndx == SHN_UNDEF)
			found(tw_elf_string(elf, symbol->st_name), arg);
	}
}
