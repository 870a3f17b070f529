/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.c - plans of function entries, which the command has left in the ring set: one file a build-id.
 *
 * A plan that was read once stays mapped: places refer to it until the process ends.  It is not trusted: it is checked as a
 * whole here, and the bytes of each function before they are changed.
 */
#include "agent/agent.h"

#include "base/lock.h"
#include "symbols/entry_plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct read_plan {
	struct read_plan *next;
	struct tw_entry_plan plan;
};

static struct tw_lock lock = TW_LOCK_INIT;
static struct read_plan *plans;

void tw_agent_entries_before_fork(void)
{
	tw_lock_seize(&lock);
}

void tw_agent_entries_after_fork(void)
{
	tw_lock_drop(&lock);
}

/* e_type of the loaded object, whose headers lie at its lowest address; 0: not known. */
static uint32_t type_of(const struct tw_elf *elf)
{
	ElfW(Ehdr) header;

	if (!tw_elf_holds(elf, elf->image.low, sizeof header))
		return 0;
	memcpy(&header, (const void *)elf->image.low, sizeof header);
	return memcmp(header.e_ident, ELFMAG, SELFMAG) ? 0 : header.e_type;
}

static bool is_plan_of(const struct tw_entry_plan *plan, const struct tw_sym_object *object)
{
	return plan->header->build_id_bytes == object->elf.build_id_bytes &&
	       !memcmp(plan->header->build_id, object->elf.build_id, object->elf.build_id_bytes) &&
	       plan->header->type == type_of(&object->elf);
}

/* Opens the file of that build-id.  Negative: there is none. */
static int open_plan(const struct tw_sym_object *object)
{
	char path[sizeof tw_agent_ring_set.path + 80], *at = path;

	at += snprintf(at, sizeof tw_agent_ring_set.path + 8, "%s/plan-", tw_agent_ring_set.path);
	for (uint32_t i = 0; i < object->elf.build_id_bytes && i < 32; i++)
		at += sprintf(at, "%02x", object->elf.build_id[i]);
	return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

static const struct tw_entry_plan *read_plan(const struct tw_sym_object *object)
{
	struct read_plan *made = malloc(sizeof *made);
	int fd = made ? open_plan(object) : -1;
	struct stat status = {0};
	void *bytes = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED || tw_entry_plan_open(bytes, (size_t)status.st_size, &made->plan) ||
	    !is_plan_of(&made->plan, object)) {
		if (bytes != MAP_FAILED)
			munmap(bytes, (size_t)status.st_size);
		free(made);
		return NULL;
	}
	made->next = plans;
	plans = made;
	return &made->plan;
}

const struct tw_entry_plan *tw_agent_entry_plan(const struct tw_sym_object *object)
{
	const struct tw_entry_plan *plan = NULL;

	if (!object->elf.build_id_bytes || !tw_agent_ring_set.path[0] || tw_sym_left_alone(object->elf.soname))
		return NULL;
	tw_lock_seize(&lock);
	for (const struct read_plan *known = plans; known && !plan; known = known->next)
		if (is_plan_of(&known->plan, object))
			plan = &known->plan;
	if (!plan)
		plan = read_plan(object);
	tw_lock_drop(&lock);
	return plan;
}
