/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee.c - the list of processes and ports.
 *
 * The list of tracees and the flags of new ones are under the registry's lock; the words that hits
 * read are changed by read-modify-write only, because match programs change them too.
 */
#include "base/filter.h"
#include "session/definitions.h"
#include "session/port_table.h"
#include "session/session.h"
#include "session/tracee.h"
#include "session/monitor_words.h"
#include "session/seq/seq.h"
#include "base/sys.h"

#include <string.h>
#include <sys/mman.h>

static struct tw_tracee *tracees;
static struct tw_tracee *free_tracees;
static uint32_t next_tracee_id = 1;
static uint64_t id_rounds; /* number of times the ids have wrapped */

/* ---- memory: separate pages, because a thread may join where malloc must not be called ---- */

#define FRESH_TRACEES 64
/* Zeroed and unused; pages are not touched before use, because most programs have few threads. */
static struct tw_tracee *fresh_tracees;
static size_t fresh_count;

static struct tw_tracee *take_fresh(void)
{
	void *more;

	if (!fresh_count) {
		more = mmap(NULL, FRESH_TRACEES * sizeof *fresh_tracees, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (more == MAP_FAILED)
			return NULL;
		fresh_tracees = more;
		fresh_count = FRESH_TRACEES;
	}
	fresh_count--;
	return fresh_tracees++;
}

/*
 * Each id is given once until 2^32 are spent; then ids that no living process has are reused.  The runs of the second
 * process of an id follow those of the first, so that readers order both as one.
 */
#define RUNS_A_ROUND (UINT64_C(1) << 40)

static struct tw_tracee *find_any(uint64_t number)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->pid_number == number)
			return tracee;
	return NULL;
}

static uint32_t take_id(void)
{
	uint32_t id;

	do {
		id = next_tracee_id++;
		id_rounds += !next_tracee_id;
	} while (!id || (id_rounds && find_any(id)));
	return id;
}

void tw_tracee_ids_go_on_at(uint32_t id)
{
	tw_registry_lock();
	next_tracee_id = id;
	tw_registry_unlock();
}

static struct tw_tracee *take(void)
{
	struct tw_tracee *tracee;

	tracee = free_tracees;
	if (tracee) {
		free_tracees = tracee->next;
		memset(tracee, 0, sizeof *tracee);
	} else {
		tracee = take_fresh();
	}
	if (!tracee)
		return NULL;
	tracee->tracee_id = take_id();
	tracee->pid_number = tracee->tracee_id;
	/* RELAXED tracee.run_seq: no thread runs it yet. */
	tw_store_relaxed(&tracee->run_seq, id_rounds * RUNS_A_ROUND);
	tracee->next = tracees;
	tracee->link = &tracees;
	if (tracees)
		tracees->link = &tracee->next;
	tracees = tracee;
	return tracee;
}

/* ---- adding and removing ---- */

static struct tw_tracee *make(int thread_id, uint32_t port_slot, const char *name)
{
	struct tw_tracee *tracee = take();

	if (tracee) {
		tracee->thread_id = thread_id;
		tracee->port_slot = port_slot;
		if (name)
			strncpy(tracee->name, name, sizeof tracee->name - 1);
		tw_flags_apply_new(tracee);
	}
	return tracee;
}

struct tw_tracee *tw_tracee_make(int thread_id, const char *name)
{
	return make(thread_id, 0, name);
}

struct tw_tracee *tw_tracee_make_port(uint32_t port_slot, const char *name)
{
	return make(0, port_slot, name);
}

void tw_tracee_forget(struct tw_tracee *tracee)
{
	tw_flags_forget(tracee);
	if (tracee->port_slot)
		tw_port_table_free(tracee->port_slot);
	tw_process_memory_fini(&tracee->memory);
	*tracee->link = tracee->next;
	if (tracee->next)
		tracee->next->link = tracee->link;
	tracee->next = free_tracees;
	free_tracees = tracee;
}

void tw_tracees_forget_all(void)
{
	while (tracees)
		tw_tracee_forget(tracees);
}

struct tw_tracee *tw_tracees(void)
{
	return tracees;
}

/* ---- sessions begin and end ---- */

/* A session may set the same flags on new processes anyway: then there is nothing to pass on. */
static bool passes_on(const struct tw_tracee *tracee)
{
	const uint32_t on_spawn = TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN;

	for (struct tw_session *session = tw_sessions(); session; session = session->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t flags = tw_load_relaxed(&tracee->flags[session->slot]);

		if ((flags & on_spawn) && (flags & ~session->new_flags))
			return true;
	}
	return false;
}

bool tw_tracees_pass_on(void)
{
	for (const struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->thread_id && passes_on(tracee))
			return true;
	return false;
}

void tw_tracee_describe(struct tw_tracee *tracee, unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;
	struct tw_session *session;

	/* RELAXED tracee.described: a tracee runs on one thread at a time, which describes it. */
	if ((tw_load_relaxed(&tracee->described) & bit) || !tw_thread_may_call_system())
		return;
	tw_registry_lock();
	session = tw_session_at(slot);
	if (session && session->rs && tw_define_tracee(session, tracee) == 0) {
		/* RELAXED tracee.described: as above. */
		tw_fetch_or_relaxed(&tracee->described, bit);
	}
	tw_registry_unlock();
}

void tw_tracees_clear_flags(unsigned slot)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		if (tw_load_relaxed(&tracee->flags[slot]))
			tw_flags_apply(tracee, slot, 0);
	}
}

void tw_tracees_begin(const struct tw_session *session)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		tw_flags_begin(tracee, session);
}

void tw_tracees_forget(unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	tw_registry_lock();
	if (tw_session_at(slot))
		tw_session_at(slot)->new_flags = tw_session_at(slot)->new_port_flags = 0;
	tw_flags_new_changed();
	tw_monitors_forget_locked(tracees, slot);
	tw_seq_forget_locked(slot);
	tw_tracees_clear_flags(slot);
	tw_flags_stamp_cpu_time(tracees, slot, false);
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.described: no hit has the session any more when the bit is reused. */
		tw_fetch_and_relaxed(&tracee->described, ~bit);
	}
	tw_registry_unlock();
}

/* ---- look-up ---- */

struct tw_tracee *tw_tracee_find(tw_pid pid)
{
	struct tw_tracee *tracee = find_any(pid);

	return tracee && !tracee->port_slot ? tracee : NULL;
}

struct tw_tracee *tw_tracee_find_port(uint64_t number)
{
	struct tw_tracee *tracee = find_any(number);

	return tracee && tracee->port_slot ? tracee : NULL;
}

struct tw_tracee *tw_tracee_named(struct tw_term name)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->registered_name.word == name.word)
			return tracee;
	return NULL;
}

bool tw_tracee_has_been(uint64_t pid)
{
	bool has_been;

	tw_registry_lock();
	/* A port takes its number from the same sequence. */
	has_been = pid && !tw_tracee_find_port(pid) && (pid < next_tracee_id || (id_rounds && pid <= UINT32_MAX));
	tw_registry_unlock();
	return has_been;
}

bool tw_tracee_is_there(uint64_t pid)
{
	bool is_there;

	tw_registry_lock();
	is_there = tw_tracee_find(pid) != NULL;
	tw_registry_unlock();
	return is_there;
}

int tw_tracee_change(uint64_t number, unsigned slot, uint32_t removed, uint32_t added)
{
	struct tw_tracee *tracee;
	int changed = -1;

	tw_registry_lock();
	tracee = find_any(number);
	if (tracee) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t old = tw_load_relaxed(&tracee->flags[slot]);
		uint32_t now = (old & ~removed) | added;

		changed = now != old;
		/* A session that is being cleared removes all flags and sets none. */
		if (changed && tw_session_at(slot) && tw_session_takes_flags(tw_session_at(slot)))
			tw_flags_apply(tracee, slot, now);
	}
	tw_registry_unlock();
	return changed;
}
