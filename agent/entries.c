/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.c - plans of function entries, which the command leaves in the ring set: one file a build-id.
 *
 * The command makes those of the program that it starts beforehand.  For objects that are opened later, and for programs that
 * are executed by the first, it is asked here.  The time of waiting is limited: a command that is stopped or dead delays one
 * dlopen() of a process, and no program's start.
 *
 * A plan that was read once stays mapped: places refer to it until the process ends.  It is not trusted: it is checked as a
 * whole here, and the bytes of each function before they are changed.
 */
#include "agent/agent.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/lock.h"
#include "ringbuf/answers.h"
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

/* Could the command make a plan of it? */
static bool may_have_plan(const struct tw_sym_object *object)
{
	return object->elf.build_id_bytes && tw_agent_ring_set.path[0] && !tw_sym_left_alone(object->elf.soname);
}

const struct tw_entry_plan *tw_agent_entry_plan(const struct tw_sym_object *object)
{
	const struct tw_entry_plan *plan = NULL;

	if (!may_have_plan(object))
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

/* ---- asking ---- */

/* The number of the last question that was not answered in time, + 1 << 32; 0: each was. */
static _Atomic uint64_t given_up;

/* Has a thread waited in vain for an answer that has not come since? */
static bool is_given_up(const struct tw_rs *rs)
{
	/* RELAXED agent.given_up: a hint: a thread that sees an old number waits once more, for a bounded time. */
	uint64_t number = tw_load_relaxed(&given_up);

	return number && !tw_rs_answers_have(rs, TW_RS_ASK_PLANS, (uint32_t)number);
}

/* No sign of life for so long that a program's start need not wait for it. */
static bool is_silent(const struct tw_rs *rs)
{
	uint64_t beat = tw_rs_beat(rs), now = tw_clock_monotonic_ns();

	return now > beat && now - beat > 2 * TW_RS_STALLED_NS;
}

bool tw_agent_entries_lack(const struct tw_sym_object *object)
{
	return may_have_plan(object) && !tw_agent_entry_plan(object);
}

void tw_agent_entries_ask(const struct tw_agent_config *config, struct tw_rs *rs, unsigned count)
{
	uint64_t limit_ns = tw_agent_is_active() ? config->plan_ns : config->plan_start_ns;
	uint32_t number;

	if (!config->plan_ns)
		return;
	if (is_silent(rs) || is_given_up(rs))
		limit_ns = 0;
	number = tw_rs_answers_want(rs, TW_RS_ASK_PLANS);
	if (tw_rs_answers_wait(rs, TW_RS_ASK_PLANS, number, limit_ns))
		return;
	/* RELAXED agent.given_up: see above. */
	tw_store_relaxed(&given_up, UINT64_C(1) << 32 | number);
	tw_rs_count_late(rs, count);
}

const char *tw_agent_entries_why_none(const struct tw_sym_object *object, const struct tw_rs *rs)
{
	if (!object->elf.build_id_bytes)
		return "it has no build-id, by which a plan of its file would be known";
	if (is_given_up(rs))
		return "its plan was not ready in time when it was opened or executed";
	return "no plan can be made of its file";
}
