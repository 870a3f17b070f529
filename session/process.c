/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - the run-time's interface: declared processes and the events that the run-time reports.
 *
 * Control (the list, names, inheritance) takes the registry's lock briefly; the events are runtime events
 * (pipeline/thread/runtime_event.c), made without it.
 */
#include "session/session.h"
#include "session/tracee.h"
#include "session/tracer_module.h"
#include "base/clock.h"
#include "pipeline/thread/monitor.h"
#include "pipeline/thread/thread.h"
#include "tracewheel/runtime.h"

#include <stdio.h>
#include <unistd.h>

/* ---- runtime events ---- */

void tw_process_tell(struct tw_tracee *tracee, enum tw_event_kind kind, enum tw_want want, struct tw_term a,
		     struct tw_term b)
{
	struct tw_runtime_event runtime_event = {.kind = (uint8_t)kind, .want = (uint8_t)want, .terms = {a, b}};

	runtime_event.term_count = tw_term_is_none(b) ? 1 : 2;
	tw_runtime_event(tracee, &runtime_event);
}

/* Makes an event with a pid, and optionally another term. */
void tw_process_tell_pid(struct tw_tracee *tracee, enum tw_event_kind kind, uint64_t pid, struct tw_term more)
{
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;

	/* RELAXED hit.wants: a first check, before the pid is built. */
	if (!tw_load_relaxed(&tracee->wants[TW_WANT_PROCS]))
		return;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	tw_process_tell(tracee, kind, TW_WANT_PROCS, tw_term_pid(&arena, (uint32_t)pid, 0), more);
}

/* The default for a process whose initial call is not known. */
struct tw_term tw_process_entry(struct tw_arena *arena, struct tw_term entry)
{
	struct tw_term undefined = tw_atom(TW_ATOM_UNDEFINED);

	if (!tw_term_is_none(entry))
		return entry;
	return tw_term_tuple(arena, (struct tw_term[]){undefined, undefined, tw_term_nil()}, 3);
}

static bool is_exiting(const struct tw_tracee *tracee)
{
	/* RELAXED tracee.reported: the program orders reports of one process; of several at once, each is made before or after. */
	return tw_load_relaxed(&tracee->is_exiting);
}

/* ---- threads that are processes ---- */

void tw_process_thread_began(struct tw_tracee *tracee)
{
	struct tw_term undefined = tw_atom(TW_ATOM_UNDEFINED);
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;

	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	tw_process_tell(tracee, TW_EVENT_SPAWNED, TW_WANT_PROCS, undefined,
			tw_process_entry(&arena, (struct tw_term){0}));
}

void tw_process_thread_ends(struct tw_tracee *tracee)
{
	if (tracee != &tw_hit_nobody)
		tw_process_exiting((struct tw_process *)tracee, (struct tw_term){0});
}

/* {M,F,A} of a declared function, or 0.  Its atoms were created when it was declared. */
static struct tw_term mfa(struct tw_arena *arena, const struct tw_declared_function *function)
{
	struct tw_term term = tw_monitor_function(arena, function);

	return tw_term_is_none(term) ? tw_small(0) : term;
}

/* The sessions with running_procs, of those that want a process' schedules. */
static uint64_t running_procs_of(const struct tw_tracee *tracee)
{
	/* RELAXED hit.wants: a change takes effect at this event or the next. */
	uint64_t sessions = 0, left = tw_load_relaxed(&tracee->wants[TW_WANT_RUNNING]);

	for (; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);

		/* RELAXED tracee.flags: as above. */
		if (tw_load_relaxed(&tracee->flags[slot]) & TW_FLAG_RUNNING_PROCS)
			sessions |= UINT64_C(1) << slot;
	}
	return sessions;
}

static void tell_schedule_of(struct tw_tracee *tracee, enum tw_event_kind kind, struct tw_term where, uint64_t except)
{
	struct tw_runtime_event runtime_event = {.kind = (uint8_t)kind,
						 .want = TW_WANT_RUNNING,
						 .term_count = 1,
						 .except = except,
						 .terms = {where}};

	tw_runtime_event(tracee, &runtime_event);
}

static void tell_schedule(struct tw_tracee *tracee, bool is_in, const struct tw_declared_function *function)
{
	enum tw_want want = is_exiting(tracee) ? TW_WANT_EXITING : TW_WANT_RUNNING;
	enum tw_event_kind kind = is_in ? TW_EVENT_IN : TW_EVENT_OUT;
	bool was_inside_port = tracee->is_inside_port;
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;

	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(&tracee->is_in, is_in);
	tracee->is_inside_port = false;
	if (is_in)
		tw_monitor_in(tracee, function);
	else
		tw_monitor_out(tracee, function);
	/* RELAXED hit.wants: a first check, before the term is built. */
	if (tw_likely(!tw_load_relaxed(&tracee->wants[want])))
		return;
	if (is_exiting(tracee))
		kind = is_in ? TW_EVENT_IN_EXITING : TW_EVENT_OUT_EXITING;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	if (tw_unlikely(was_inside_port) && !is_exiting(tracee)) {
		/* Sessions with running_procs have had its out. */
		tell_schedule_of(tracee, kind, mfa(&arena, function), running_procs_of(tracee));
		return;
	}
	tw_process_tell(tracee, kind, want, mfa(&arena, function), (struct tw_term){0});
}

/* The declared process that this thread runs, not the thread's own; NULL: none. */
static struct tw_tracee *declared_here(const struct tw_hit_tls *t)
{
	/* RELAXED tracee.reported: as above. */
	return t->tracee && tw_load_relaxed(&t->tracee->is_in) ? t->tracee : NULL;
}

void tw_process_inside_port(bool is_inside)
{
	struct tw_tracee *tracee = declared_here(&tw_hit_tls);

	/* A port that is left in another turn of the process, or was entered unseen. */
	if (!tracee || is_exiting(tracee) || !(is_inside || tracee->is_inside_port))
		return;
	tracee->is_inside_port = is_inside;
	tell_schedule_of(tracee, is_inside ? TW_EVENT_OUT : TW_EVENT_IN, tw_small(0), ~running_procs_of(tracee));
}

TW_API void tw_process_in_at(struct tw_process *process, const struct tw_declared_function *function)
{
	struct tw_tracee *tracee = tw_tracee_of(process), *before = declared_here(&tw_hit_tls);

	if (before && before != tracee)
		tell_schedule(before, false, NULL);
	tw_thread_run(tracee);
	/* RELAXED hit.wants: an early test; the decisive one is inside the read section. */
	if (tracee && tw_unlikely(tw_load_relaxed(&tracee->has_modules)))
		tw_tracer_modules_scheduled_in(tracee);
	/* RELAXED tracee.reported: as above. */
	if (tracee && !tw_load_relaxed(&tracee->is_in) && tw_hit_tls.thread && tracee != tw_hit_tls.thread->own_tracee)
		tell_schedule(tracee, true, function);
}

TW_API void tw_process_out_at(const struct tw_declared_function *function)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_tracee *before = declared_here(t);

	if (before)
		tell_schedule(before, false, function);
	if (tw_thread_join())
		tw_thread_run(t->thread->own_tracee);
}

TW_API void tw_process_in(struct tw_process *process)
{
	tw_process_in_at(process, NULL);
}

TW_API void tw_process_out(void)
{
	tw_process_out_at(NULL);
}

/* ---- life ---- */

TW_API void tw_process_exiting(struct tw_process *process, struct tw_term reason)
{
	struct tw_tracee *tracee = tw_tracee_of(process);

	if (is_exiting(tracee))
		return;
	tw_process_tell(tracee, TW_EVENT_EXIT, TW_WANT_PROCS,
			tw_term_is_none(reason) ? tw_atom(TW_ATOM_NORMAL) : reason, (struct tw_term){0});
	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(&tracee->is_exiting, true);
	/* RELAXED monitor.long_queue: no message tells that the queue of an exiting process is short again. */
	tw_store_relaxed(&tracee->long_queue, 0);
	tw_process_unregister(process);
}

TW_API void tw_process_exit(struct tw_process *process)
{
	struct tw_tracee *tracee = tw_tracee_of(process);
	struct tw_hit_tls *t = &tw_hit_tls;

	if (!tracee)
		return;
	tw_process_exiting(process, (struct tw_term){0});
	tw_process_tell(tracee, TW_EVENT_OUT_EXITED, TW_WANT_EXITING, tw_small(0), (struct tw_term){0});
	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(&tracee->is_in, false);
	if (t->tracee == tracee)
		tw_process_out();
	tw_tracee_exit(tracee);
}

/* ---- names ---- */

TW_API int tw_process_register(struct tw_process *process, struct tw_term name)
{
	struct tw_tracee *tracee = tw_tracee_of(process);
	int error = tw_hit_is_under_way() ? TW_EDEADLK : 0;

	if (!tw_is_atom(name) || name.word == tw_atom(TW_ATOM_UNDEFINED).word)
		return TW_EBADARG;
	if (error)
		return error;
	tw_registry_lock();
	if (tw_tracee_named(name) || !tw_term_is_none(tracee->registered_name))
		error = TW_EBADARG;
	else
		tracee->registered_name = name;
	tw_registry_unlock();
	if (!error)
		tw_process_tell(tracee, TW_EVENT_REGISTER, TW_WANT_PROCS, name, (struct tw_term){0});
	return error;
}

TW_API int tw_process_unregister(struct tw_process *process)
{
	struct tw_tracee *tracee = tw_tracee_of(process);
	struct tw_term name;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_registry_lock();
	name = tracee->registered_name;
	tracee->registered_name = (struct tw_term){0};
	tw_registry_unlock();
	if (tw_term_is_none(name))
		return TW_EBADARG;
	tw_process_tell(tracee, TW_EVENT_UNREGISTER, TW_WANT_PROCS, name, (struct tw_term){0});
	return 0;
}

TW_API int tw_process_sensitive(struct tw_process *process, bool is_sensitive)
{
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_registry_lock();
	tw_flags_set_sensitive(tw_tracee_of(process), is_sensitive);
	tw_registry_unlock();
	return 0;
}

/* ---- links ---- */

TW_API void tw_runtime_link(struct tw_process *process, struct tw_process *other)
{
	struct tw_tracee *tracee = tw_tracee_of(process);

	/* RELAXED tracee.flags: a change takes effect at this link or the next; the lock decides. */
	if (tw_load_relaxed(&tracee->all_flags) & (TW_FLAG_SET_ON_LINK | TW_FLAG_SET_ON_FIRST_LINK)) {
		tw_registry_lock();
		tw_inherit_by_link(tracee, tw_tracee_of(other));
		tw_registry_unlock();
	}
	tw_process_tell_pid(tracee, TW_EVENT_LINK, tw_tracee_of(other)->pid_number, (struct tw_term){0});
}

TW_API void tw_runtime_linked(struct tw_process *process, tw_pid other, unsigned what)
{
	if (what >= TW_LINK && what <= TW_GETTING_UNLINKED)
		tw_process_tell_pid(tw_tracee_of(process), (enum tw_event_kind)what, other, (struct tw_term){0});
}

/* ---- messages ---- */

TW_API void tw_runtime_send(struct tw_process *sender, struct tw_term message, struct tw_term to, bool is_to_nobody)
{
	struct tw_runtime_event runtime_event = {.kind = is_to_nobody ? TW_EVENT_SEND_TO_NON_EXISTING_PROCESS
								      : TW_EVENT_SEND,
						 .want = TW_WANT_SEND,
						 .term_count = 2,
						 .terms = {message, to},
						 .peer = to};

	if (sender)
		tw_runtime_event(tw_tracee_of(sender), &runtime_event);
}

TW_API void tw_runtime_receive(struct tw_process *receiver, struct tw_term message, struct tw_term sender)
{
	struct tw_runtime_event runtime_event = {.kind = TW_EVENT_RECEIVE,
						 .want = TW_WANT_RECEIVE,
						 .term_count = 1,
						 .terms = {message},
						 .peer = sender};

	if (receiver)
		tw_runtime_event(tw_tracee_of(receiver), &runtime_event);
}

TW_API void tw_runtime_timeout(struct tw_process *receiver)
{
	struct tw_runtime_event runtime_event = {.kind = TW_EVENT_RECEIVE,
						 .want = TW_WANT_RECEIVE,
						 .term_count = 1,
						 .is_timeout = true,
						 .terms = {tw_atom(TW_ATOM_TIMEOUT)}};

	if (receiver)
		tw_runtime_event(tw_tracee_of(receiver), &runtime_event);
}

TW_API void tw_runtime_mailbox(struct tw_process *process, uint64_t length)
{
	struct tw_tracee *tracee = tw_tracee_of(process);

	if (tracee && tw_unlikely(tw_monitor_may_change_queue(tracee, length)))
		tw_monitor_queue(tracee, length);
}

TW_API void tw_runtime_busy(struct tw_process *process, struct tw_term port, bool is_dist)
{
	if (process)
		tw_monitor_busy(tw_tracee_of(process), is_dist ? TW_MONITOR_BUSY_DIST_PORT : TW_MONITOR_BUSY_PORT,
				port);
}

/* ---- collections ---- */

TW_API void tw_runtime_gc(struct tw_process *process, enum tw_gc_event event, const struct tw_gc_sizes *sizes)
{
	struct tw_runtime_event runtime_event = {.kind = (uint8_t)event,
						 .want = TW_WANT_GARBAGE_COLLECTION,
						 .word_count = sizeof *sizes / sizeof(uint64_t),
						 .words = (const uint64_t *)sizes};

	if (!process || event < TW_GC_MINOR_START || event > TW_GC_MAX_HEAP_SIZE)
		return;
	tw_runtime_event(tw_tracee_of(process), &runtime_event);
	tw_monitor_gc(tw_tracee_of(process), event, sizes);
}

/* ---- identity and time ---- */

TW_API bool tw_process_wants_any(const struct tw_process *process, uint32_t kinds)
{
	const struct tw_tracee *tracee = tw_tracee_of(process);

	if (!tracee)
		return false;
	if (tw_runtime_wants(kinds & TW_WANTS_OF_MONITORS))
		return true;
	for (unsigned want = 0; want < TW_WANT_KINDS; want++) {
		/* RELAXED hit.wants: a first check; the runtime event makes the final one. */
		if ((kinds >> want & 1) && tw_load_relaxed(&tracee->wants[want]))
			return true;
	}
	return false;
}

TW_API tw_pid tw_process_pid(const struct tw_process *process)
{
	return tw_tracee_of(process)->pid_number;
}

TW_API struct tw_term tw_process_term(struct tw_arena *arena, const struct tw_process *process)
{
	return process ? tw_term_pid(arena, tw_tracee_of(process)->pid_number, 0) : (struct tw_term){0};
}

TW_API int64_t tw_monotonic_time_ns(void)
{
	return (int64_t)tw_clock_monotonic_ns();
}

TW_API int64_t tw_unique_integer_monotonic(void)
{
	return (int64_t)tw_hit_unique_integer();
}

void tw_node_init(void)
{
	char host[256] = "", name[512];
	int bytes;

	gethostname(host, sizeof host - 1);
	bytes = snprintf(name, sizeof name, "%.120s.%d@%.100s", program_invocation_short_name, (int)getpid(), host);
	tw_hit_host.node = tw_term_atom(name, (size_t)bytes);
}
