/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lead.c - an agent that was loaded into a program that runs: calls of the functions that it wraps are led to it.
 *
 * A preloaded library comes before libc, and ld.so binds all objects to its functions.  A library that comes later is asked by nobody.
 * Therefore the slots of all objects that lead to libc's functions of these names get the addresses of ours, as if ld.so had bound them so.
 * This is done when the agent is loaded, and before each examination of objects (arm.c).
 *
 * Not led are slots that lead to another library's wrapper, or that code reads as a value, and pointers that dlsym() has given.  A thread
 * that binds a slot just now may set it to libc's function again, until the next time.
 *
 * libc opens libgcc_s by itself, for pthread_cancel(), pthread_exit() and backtrace(): it is opened here, so that it asks us for frames from
 * its first call on.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/atomic.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/maps.h"
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096

bool tw_agent_is_late(void)
{
	static enum { UNKNOWN, LATE, FIRST } answer;
	struct link_map *map = NULL;
	Dl_info info;

	if (answer != UNKNOWN)
		return answer == LATE;
	answer = FIRST;
	/* Objects of the program's start stand before the loader, which they need. */
	if (dladdr1((void *)(uintptr_t)&tw_agent_is_late, &info, (void **)&map, RTLD_DL_LINKMAP))
		for (; map; map = map->l_prev)
			if (strstr(map->l_name, "/ld-linux"))
				answer = LATE;
	return answer == LATE;
}

static bool is_led(const char *function, void *unused)
{
	static const char *const others[] = {"_dl_find_object", "_Fork", "syscall", "capset"};

	(void)unused;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (*function == *others[i] && !strcmp(function, others[i]))
			return true;
	return tw_sym_is_wrapped(function);
}

/* Does the slot lead to libc's function, or will it? */
static bool leads_to_libc(const struct tw_sym_slot *slot, void *unused)
{
	(void)unused;
	return slot->target && slot->target == dlsym(RTLD_NEXT, slot->function);
}

static void write_slot(struct tw_mappings *mappings, void **where, void *target)
{
	void *page = (void *)((uintptr_t)where & ~(uintptr_t)(PAGE_BYTES - 1));
	const struct tw_mapping *mapping = tw_mapping_at(mappings, (uintptr_t)where);
	int protection = mapping ? mapping->protection : 0;

	if (!(protection & PROT_READ))
		return;
	if (!(protection & PROT_WRITE) && mprotect(page, PAGE_BYTES, protection | PROT_WRITE))
		return;
	/* RELAXED agent.lead: a function of ours that was ready before; another thread calls it or libc's. */
	tw_store_relaxed((void *_Atomic *)where, target);
	if (!(protection & PROT_WRITE))
		mprotect(page, PAGE_BYTES, protection);
}

/* The slots of one object, which stays loaded until they are written. */
struct led {
	struct tw_sym_slot *slots;
	size_t count;
	void *pin;
};

/* All objects are held by now, so that what is read of their mappings stays true: ld.so protects none of them any more. */
static void write_slots(const struct tw_elf *own, const struct led *led, size_t count)
{
	struct tw_mappings mappings = {0};
	struct tw_permit *permit;

	/* Others open pages for writing under it. */
	if (tw_permit_seize(&permit))
		return;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < led[i].count; k++) {
			const struct tw_sym_slot *slot = &led[i].slots[k];
			const ElfW(Sym) *symbol = tw_elf_lookup(own, slot->function, 0);

			if (symbol && slot->refusal != TW_SYM_ADDRESS_TAKEN)
				write_slot(&mappings, slot->where, (void *)(own->base + symbol->st_value));
		}
	tw_permit_drop(permit);
	tw_mappings_forget(&mappings);
}

static void find_slots(const struct tw_sym_set *set, const struct tw_sym_object *object, struct led *led)
{
	const struct tw_sym_wish wish = {.wants = is_led, .suits = leads_to_libc};

	/* ld.so and libc itself call their own. */
	if (object->role != TW_SYM_PROGRAM && (object->role != TW_SYM_ORDINARY || !tw_sym_pin(object, &led->pin)))
		return;
	if (tw_sym_slots(set, object, &wish, &led->slots, &led->count))
		*led = (struct led){.pin = led->pin};
}

static void lead_objects(const struct tw_sym_set *set, const struct tw_elf *own)
{
	struct led *led = calloc(set->count ? set->count : 1, sizeof *led);
	size_t slots = 0;

	for (size_t i = 0; led && i < set->count; i++) {
		find_slots(set, &set->objects[i], &led[i]);
		slots += led[i].count;
	}
	if (slots)
		write_slots(own, led, set->count);
	for (size_t i = 0; led && i < set->count; i++) {
		free(led[i].slots);
		if (led[i].pin)
			tw_sym_unpin(led[i].pin);
	}
	free(led);
}

void tw_agent_lead(void)
{
	const struct tw_elf *own = NULL;
	struct tw_sym_set *set;
	int saved_errno = errno;

	if (!tw_agent_is_late() || tw_sym_load(&set))
		return;
	for (size_t i = 0; i < set->count; i++)
		if (set->objects[i].role == TW_SYM_ROLE_OWN &&
		    tw_elf_is_code(&set->objects[i].elf, (uintptr_t)&tw_agent_lead))
			own = &set->objects[i].elf;
	if (own)
		lead_objects(set, own);
	tw_sym_unload(set);
	dlerror();
	errno = saved_errno;
}

void tw_agent_came_late(void)
{
	dlopen("libgcc_s.so.1", RTLD_NOW);
	tw_agent_lead();
}
