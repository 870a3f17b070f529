/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags.c - derives the words that hits and runtime events read from the flags of processes.
 *
 * Under the registry's lock.  The words are changed by read-modify-write only, and read without a lock.
 */
#include "session/session.h"
#include "session/tracee.h"
#include "pipeline/hit/record.h"
#include "pipeline/thread/monitor.h"
#include "tracewheel/runtime.h"

#include <string.h>

TW_API uint32_t tw_runtime_wanted;

/* For each bit of tw_runtime_wanted, the number of processes and ports that need it. */
static uint32_t wanted_counts[16];

static const char *const names[] = {"call",
				    "arity",
				    "timestamp",
				    "strict_monotonic_timestamp",
				    "monotonic_timestamp",
				    "silent",
				    "send",
				    "receive",
				    "procs",
				    "running",
				    "running_procs",
				    "exiting",
				    "garbage_collection",
				    "return_to",
				    "set_on_spawn",
				    "set_on_first_spawn",
				    "set_on_link",
				    "set_on_first_link",
				    "scheduler_id",
				    "ports",
				    "running_ports",
				    "cpu_timestamp"};
_Static_assert(TW_FLAG_CPU_TIMESTAMP == 1 << (TW_COUNT_OF(names) - 1), "a name for each flag");

/* For each kind of event, the flags of which one is required. */
static const uint32_t flags_of_want[TW_WANT_KINDS] = {
	[TW_WANT_SEND] = TW_FLAG_SEND,	     [TW_WANT_RECEIVE] = TW_FLAG_RECEIVE,
	[TW_WANT_PROCS] = TW_FLAG_PROCS,     [TW_WANT_RUNNING] = TW_FLAG_RUNNING | TW_FLAG_RUNNING_PROCS,
	[TW_WANT_EXITING] = TW_FLAG_EXITING, [TW_WANT_GARBAGE_COLLECTION] = TW_FLAG_GARBAGE_COLLECTION,
};
/* The same of ports, and the bits of tw_runtime_wanted. */
static const uint32_t flags_of_port_want[TW_WANT_KINDS] = {
	[TW_WANT_SEND] = TW_FLAG_SEND,
	[TW_WANT_RECEIVE] = TW_FLAG_RECEIVE,
	[TW_WANT_PORTS] = TW_FLAG_PORTS,
	[TW_WANT_RUNNING_PORTS] = TW_FLAG_RUNNING_PORTS,
};
static const uint32_t wanted_of_port_want[TW_WANT_KINDS] = {
	[TW_WANT_SEND] = TW_WANTS_SEND,
	[TW_WANT_RECEIVE] = TW_WANTS_RECEIVE,
	[TW_WANT_PORTS] = TW_WANTS_PORTS,
	[TW_WANT_RUNNING_PORTS] = TW_WANTS_RUNNING_PORTS,
};
_Static_assert(TW_WANTS_SEND == 1 << TW_WANT_SEND && TW_WANTS_RECEIVE == 1 << TW_WANT_RECEIVE &&
		       TW_WANTS_PROCS == 1 << TW_WANT_PROCS && TW_WANTS_RUNNING == 1 << TW_WANT_RUNNING &&
		       TW_WANTS_EXITING == 1 << TW_WANT_EXITING &&
		       TW_WANTS_GARBAGE_COLLECTION == 1 << TW_WANT_GARBAGE_COLLECTION,
	       "the program's words and ours");

TW_API const char *tw_process_flag_name(uint32_t bit)
{
	for (size_t i = 0; i < TW_COUNT_OF(names); i++)
		if (bit == UINT32_C(1) << i)
			return names[i];
	return NULL;
}

TW_API uint32_t tw_process_flag_named(const char *name)
{
	if (!strcmp(name, "all"))
		return TW_FLAG_ALL;
	for (size_t i = 0; i < TW_COUNT_OF(names); i++)
		if (!strcmp(name, names[i]))
			return UINT32_C(1) << i;
	return 0;
}

static enum tw_stamp stamp_of(uint32_t flags)
{
	if (flags & TW_FLAG_TIMESTAMP)
		return TW_STAMP_TIMESTAMP;
	if (flags & TW_FLAG_STRICT_MONOTONIC_TIMESTAMP)
		return TW_STAMP_STRICT_MONOTONIC;
	return flags & TW_FLAG_MONOTONIC_TIMESTAMP ? TW_STAMP_MONOTONIC : TW_STAMP_NONE;
}

static void set_bit(_Atomic uint64_t *word, uint64_t bit, bool is_on)
{
	/* RELAXED tracee.words: written under the registry's lock, except by match programs. */
	if (!!(tw_load_relaxed(word) & bit) == is_on)
		return;
	/* PROGRESS hit.wants: the thread that clears a bit waits for thread progress before it returns. */
	/* PAIR runtime_event.wants: release; acquire in sessions_of(): runtime events do not see the session by a generation. */
	if (is_on)
		tw_fetch_or_seq_cst(word, bit);
	else
		tw_fetch_and_seq_cst(word, ~bit);
}

static uint32_t wanted_of_port(const struct tw_tracee *port)
{
	uint32_t wanted = 0;

	for (unsigned want = 0; want < TW_WANT_KINDS; want++) {
		/* RELAXED tracee.words: under the registry's lock. */
		if (tw_load_relaxed(&port->wants[want]))
			wanted |= wanted_of_port_want[want];
	}
	return wanted;
}

/* The bits of tw_runtime_wanted that this process or port needs. */
static uint32_t wanted_of(const struct tw_tracee *tracee)
{
	uint32_t wanted = 0;

	if (tracee->port_slot)
		return wanted_of_port(tracee);
	/* RELAXED tracee.flags: under the registry's lock. */
	if (tw_load_relaxed(&tracee->all_flags) & (TW_FLAG_SET_ON_LINK | TW_FLAG_SET_ON_FIRST_LINK))
		wanted = TW_WANTS_LINKS;
	for (unsigned want = 0; want < TW_WANT_KINDS; want++) {
		/* RELAXED tracee.words: as above. */
		wanted |= (uint32_t)(tw_load_relaxed(&tracee->wants[want]) != 0) << want;
	}
	/* RELAXED tracee.flags: as above.  A sensitive process is silent, but its heirs are not. */
	if (tracee->is_sensitive && (tw_load_relaxed(&tracee->all_flags) & TW_FLAG_PROCS))
		wanted |= TW_WANTS_PROCS;
	return wanted;
}

/* Bits for monitors, which concern all processes. */
static uint32_t monitored;

/* TW_WANTS_SEQ, or 0: the gate of sequential tracing. */
static uint32_t seq_wanted;

static void publish_wanted(void)
{
	uint32_t all = monitored | seq_wanted;

	for (unsigned i = 0; i < TW_COUNT_OF(wanted_counts); i++)
		all |= (uint32_t)(wanted_counts[i] != 0) << i;
	/* RELAXED runtime.wanted: publishes nothing; a thread that sees it late makes its event as if before the change. */
	tw_store_plain_release(&tw_runtime_wanted, all);
}

void tw_flags_monitored(uint32_t wanted)
{
	monitored = wanted;
	publish_wanted();
}

void tw_flags_seq(bool is_open)
{
	seq_wanted = is_open ? TW_WANTS_SEQ : 0;
	publish_wanted();
}

/* @counted has the bits counted until now. */
static void count_wanted(uint16_t *counted, uint32_t now)
{
	uint32_t changed = *counted ^ now;

	if (!changed)
		return;
	for (unsigned i = 0; i < TW_COUNT_OF(wanted_counts); i++)
		if (changed >> i & 1)
			wanted_counts[i] += now >> i & 1 ? 1 : UINT32_MAX;
	*counted = (uint16_t)now;
	publish_wanted();
}

/* The tracer of a session may have flags, but makes no events. */
static bool is_tracer_of(const struct tw_tracee *tracee, const struct tw_session *session)
{
	return session && session->tracer_pid == tracee->pid_number;
}

/* Sets the words of one session of a port. */
static void set_port_words(struct tw_tracee *port, unsigned slot, uint32_t flags)
{
	uint64_t bit = UINT64_C(1) << slot;
	uint32_t heard = tw_hit_sessions[slot].rs || tw_hit_sessions[slot].module ? flags : 0;

	for (unsigned want = 0; want < TW_WANT_KINDS; want++)
		set_bit(&port->wants[want], bit, heard & flags_of_port_want[want]);
}

/* Sets the words of one session.  A session without tracer makes no events. */
static void set_words(struct tw_tracee *tracee, unsigned slot, uint32_t flags)
{
	uint64_t bit = UINT64_C(1) << slot;
	bool is_tracer = is_tracer_of(tracee, tw_session_at(slot));
	bool has_module = tw_hit_sessions[slot].module != NULL;
	bool has_tracer = has_module || tw_hit_sessions[slot].rs;
	uint32_t heard = tracee->is_sensitive || is_tracer || !has_tracer ? 0 : flags;
	bool has_stamp_word = tw_record_stamp_of(stamp_of(flags), slot) != TW_RECORD_NO_STAMP;
	bool is_special = has_stamp_word || (flags & TW_FLAG_SILENT) || has_module;
	/* RELAXED monitor.wants: under the registry's lock; set anew when a monitor of queues comes or goes. */
	bool has_queue_monitor = tw_load_relaxed(&tw_monitors.wants[TW_MONITOR_LONG_MESSAGE_QUEUE]) & bit;
	/* A module receives each event when it is made: there is no order to be restored. */
	bool others_make = !has_module && heard && ((heard & (TW_FLAG_RECEIVE | TW_FLAG_PROCS)) || has_queue_monitor);

	/* RELAXED hit.record_flags: one byte; calls in progress use the old or the new stamp. */
	tw_store_relaxed(&tracee->record_flags[slot],
			 (uint8_t)(stamp_of(flags) | (flags & TW_FLAG_ARITY ? TW_EVENT_FLAG_ARITY : 0) |
				   (flags & TW_FLAG_SCHEDULER_ID ? TW_EVENT_FLAG_SCHEDULER_ID : 0)));
	set_bit(&tracee->silent, bit, flags & TW_FLAG_SILENT);
	if (tracee->port_slot) {
		set_port_words(tracee, slot, flags);
		return;
	}
	set_bit(&tracee->others_make, bit, others_make);
	set_bit(&tracee->special_alone, bit, is_special);
	set_bit(&tracee->has_modules, bit, has_module && flags);
	set_bit(&tracee->special, bit, is_special || others_make);
	set_bit(&tracee->module_calls, bit, has_module && (heard & TW_FLAG_CALL) && !(flags & TW_FLAG_SILENT));
	set_bit(&tracee->wants_call, bit, heard & TW_FLAG_CALL);
	set_bit(&tracee->counts_call, bit, !tracee->is_sensitive && (flags & TW_FLAG_CALL));
	set_bit(&tracee->tracer_of, bit, tracee->is_sensitive || is_tracer);
	set_bit(&tracee->wants_return_to, bit, heard & TW_FLAG_RETURN_TO);
	for (unsigned want = 0; want < TW_WANT_KINDS; want++)
		set_bit(&tracee->wants[want], bit, heard & flags_of_want[want]);
}

void tw_flags_apply(struct tw_tracee *tracee, unsigned slot, uint32_t flags)
{
	uint32_t all = 0;

	/* RELAXED tracee.flags: hits read the words; this copy is for info and inheritance. */
	tw_store_relaxed(&tracee->flags[slot], flags);
	for (unsigned s = 0; s < TW_SESSIONS_MAX; s++) {
		/* RELAXED tracee.flags: as above. */
		all |= tw_load_relaxed(&tracee->flags[s]);
	}
	/* RELAXED tracee.flags: as above. */
	tw_store_relaxed(&tracee->all_flags, all);
	set_words(tracee, slot, flags);
	count_wanted(&tracee->counted, wanted_of(tracee));
}

void tw_flags_change(struct tw_tracee *tracee, unsigned slot, bool how, uint32_t flags)
{
	/* RELAXED tracee.flags: written under the registry's lock only. */
	uint32_t old = tw_load_relaxed(&tracee->flags[slot]);

	tw_flags_apply(tracee, slot, how ? old | flags : old & ~flags);
}

void tw_flags_stamp_cpu_time(struct tw_tracee *tracees, unsigned slot, bool how)
{
	uint64_t bit = UINT64_C(1) << slot;

	/* RELAXED hit.cpu_stamped: a change takes effect in this record or the next, and each record is marked. */
	if (!!(tw_load_relaxed(&tw_hit_cpu_stamped) & bit) == how)
		return;
	if (how) {
		/* RELAXED hit.cpu_stamped: as above. */
		tw_fetch_or_relaxed(&tw_hit_cpu_stamped, bit);
	} else {
		/* RELAXED hit.cpu_stamped: as above. */
		tw_fetch_and_relaxed(&tw_hit_cpu_stamped, ~bit);
	}
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: written under the registry's lock only. */
		uint32_t flags = tw_load_relaxed(&tracee->flags[slot]);

		if (flags)
			tw_flags_apply(tracee, slot, flags);
	}
}

void tw_flags_apply_new(struct tw_tracee *tracee)
{
	for (struct tw_session *session = tw_sessions(); session; session = session->next) {
		uint32_t flags = tracee->port_slot ? session->new_port_flags : session->new_flags;

		if (flags && tw_session_is_alive(session))
			tw_flags_apply(tracee, session->slot, flags);
	}
}

void tw_flags_begin(struct tw_tracee *tracee, const struct tw_session *session)
{
	set_bit(&tracee->tracer_of, UINT64_C(1) << session->slot,
		tracee->is_sensitive || is_tracer_of(tracee, session));
}

void tw_flags_new_changed(void)
{
	static uint16_t counted;
	uint32_t flags = 0;

	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		flags |= session->new_flags;
	count_wanted(&counted, flags & TW_FLAG_PROCS ? TW_WANTS_PROCS : 0);
}

void tw_flags_forget(struct tw_tracee *tracee)
{
	count_wanted(&tracee->counted, 0);
}

void tw_flags_set_sensitive(struct tw_tracee *tracee, bool is_sensitive)
{
	tracee->is_sensitive = is_sensitive;
	for (struct tw_session *session = tw_sessions(); session; session = session->next) {
		/* RELAXED tracee.flags: under the registry's lock.  Needed without flags as well, for meta events. */
		set_words(tracee, session->slot, tw_load_relaxed(&tracee->flags[session->slot]));
	}
	count_wanted(&tracee->counted, wanted_of(tracee));
}
