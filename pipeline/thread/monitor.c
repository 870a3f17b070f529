/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - monitor.h: compares the reports of run-times with the limits of sessions.
 *
 * A report below all limits ends after a few loads. Otherwise the limits are compared again inside the read section
 * in which the event is made (tw_monitor_sessions()): a session changes its limits only between two such sections.
 */
#include "pipeline/thread/monitor.h"
#include "base/clock.h"
#include "term/atom.h"

/* A tuple of two for each of seven sizes, and two of functions. */
#define INFO_BYTES 1024
#define INFO_MAX   7

static const enum tw_atom_index names[TW_MONITOR_KINDS] = {
	[TW_MONITOR_LONG_GC] = TW_ATOM_LONG_GC,	      [TW_MONITOR_LONG_SCHEDULE] = TW_ATOM_LONG_SCHEDULE,
	[TW_MONITOR_LARGE_HEAP] = TW_ATOM_LARGE_HEAP, [TW_MONITOR_LONG_MESSAGE_QUEUE] = TW_ATOM_LONG_MESSAGE_QUEUE,
	[TW_MONITOR_BUSY_PORT] = TW_ATOM_BUSY_PORT,   [TW_MONITOR_BUSY_DIST_PORT] = TW_ATOM_BUSY_DIST_PORT,
};

static bool is_set(enum tw_monitor monitor)
{
	/* RELAXED monitor.wants: an early test; the decisive one is in the read section. */
	return tw_load_relaxed(&tw_monitors.wants[monitor]) != 0;
}

/* ---- events ---- */

static void tell(struct tw_tracee *tracee, enum tw_monitor monitor, uint64_t value, bool is_short, struct tw_term info)
{
	struct tw_runtime_event event = {.kind = TW_EVENT_MONITOR,
					 .want = TW_WANT_MONITOR,
					 .monitor = (uint8_t)monitor,
					 .is_short = is_short,
					 .value = value,
					 .term_count = 2,
					 .terms = {tw_atom(names[monitor]), info}};

	if (!tw_term_is_none(info))
		tw_runtime_event(tracee, &event);
}

static struct tw_term pair(struct tw_arena *arena, enum tw_atom_index key, struct tw_term value)
{
	return tw_term_tuple(arena, (struct tw_term[]){tw_atom(key), value}, 2);
}

/* 0: the thread may not read the clock, and measures nothing. */
static uint64_t ticks_now(void)
{
	return tw_hit_tls.state == TW_THREAD_NO_CLOCK ? 0 : tw_clock_ticks();
}

/* Milliseconds since @since; 0: it began before anything was measured. */
static uint64_t elapsed_ms(enum tw_monitor monitor, uint64_t since)
{
	uint64_t now = ticks_now(), ticks_per_ms = tw_clock_ticks_per_second() / 1000;

	/* RELAXED monitor.since: a monitor set meanwhile may miss what began before. */
	if (!since || now < since || since < tw_load_relaxed(&tw_monitors.since[monitor]))
		return 0;
	return (now - since) / ticks_per_ms;
}

/* Words of a process or port that several threads may report at once. */
static uint64_t ticks_at(const _Atomic uint64_t *word)
{
	/* RELAXED tracee.reported: the program orders reports that belong together. */
	return tw_load_relaxed(word);
}

static void set_ticks(_Atomic uint64_t *word, uint64_t ticks)
{
	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(word, ticks);
}

/* ---- long schedules ---- */

struct tw_term tw_monitor_function(struct tw_arena *arena, const struct tw_declared_function *function)
{
	struct tw_term parts[3];

	if (!function)
		return (struct tw_term){0};
	parts[0] = tw_term_atom_existing(function->module, strlen(function->module));
	parts[1] = tw_term_atom_existing(function->name, strlen(function->name));
	parts[2] = tw_small(function->arity);
	if (tw_term_is_none(parts[0]) || tw_term_is_none(parts[1]))
		return (struct tw_term){0};
	return tw_term_tuple(arena, parts, 3);
}

static struct tw_term location(struct tw_arena *arena, const struct tw_declared_function *function)
{
	struct tw_term mfa = tw_monitor_function(arena, function);

	return tw_term_is_none(mfa) ? tw_atom(TW_ATOM_UNDEFINED) : mfa;
}

void tw_monitor_in(struct tw_tracee *tracee, const struct tw_declared_function *function)
{
	if (!is_set(TW_MONITOR_LONG_SCHEDULE))
		return;
	set_ticks(&tracee->in_since, ticks_now());
	/* Of a port there is none: several threads may be here at once. */
	if (tracee->in_function != function)
		tracee->in_function = function;
}

/* 0: less than a millisecond, or not known. */
static uint64_t ran_for_ms(struct tw_tracee *tracee)
{
	uint64_t in_since = ticks_at(&tracee->in_since);

	set_ticks(&tracee->in_since, 0);
	return in_since && is_set(TW_MONITOR_LONG_SCHEDULE) ? elapsed_ms(TW_MONITOR_LONG_SCHEDULE, in_since) : 0;
}

void tw_monitor_port_out(struct tw_tracee *port, struct tw_term op)
{
	uint64_t ms = ran_for_ms(port);
	char buffer[INFO_BYTES];
	struct tw_arena arena;
	struct tw_term pairs[2];

	if (!ms)
		return;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	pairs[0] = pair(&arena, TW_ATOM_TIMEOUT, tw_term_unsigned(&arena, ms));
	pairs[1] = pair(&arena, TW_ATOM_PORT_OP, tw_term_is_none(op) ? tw_atom(TW_ATOM_UNDEFINED) : op);
	tell(port, TW_MONITOR_LONG_SCHEDULE, ms, false, tw_term_list(&arena, pairs, 2, tw_term_nil()));
}

void tw_monitor_out(struct tw_tracee *tracee, const struct tw_declared_function *function)
{
	uint64_t ms = ran_for_ms(tracee);
	char buffer[INFO_BYTES];
	struct tw_arena arena;
	struct tw_term pairs[3];

	if (!ms)
		return;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	pairs[0] = pair(&arena, TW_ATOM_TIMEOUT, tw_term_unsigned(&arena, ms));
	pairs[1] = pair(&arena, TW_ATOM_IN, location(&arena, tracee->in_function));
	pairs[2] = pair(&arena, TW_ATOM_OUT, location(&arena, function));
	tell(tracee, TW_MONITOR_LONG_SCHEDULE, ms, false, tw_term_list(&arena, pairs, 3, tw_term_nil()));
}

/* ---- collections ---- */

/* In OTP's order.  @timeout: 0 leaves it out. */
static struct tw_term heap_info(struct tw_arena *arena, uint64_t timeout, const struct tw_gc_sizes *sizes)
{
	const struct {
		enum tw_atom_index key;
		uint64_t value;
	} items[INFO_MAX] = {
		{TW_ATOM_TIMEOUT, timeout},
		{TW_ATOM_OLD_HEAP_BLOCK_SIZE, sizes->old_heap_block_size},
		{TW_ATOM_HEAP_BLOCK_SIZE, sizes->heap_block_size},
		{TW_ATOM_MBUF_SIZE, sizes->mbuf_size},
		{TW_ATOM_STACK_SIZE, sizes->stack_size},
		{TW_ATOM_OLD_HEAP_SIZE, sizes->old_heap_size},
		{TW_ATOM_HEAP_SIZE, sizes->heap_size},
	};
	struct tw_term pairs[INFO_MAX];
	unsigned first = timeout == 0;

	for (unsigned i = first; i < INFO_MAX; i++)
		pairs[i] = pair(arena, items[i].key, tw_term_unsigned(arena, items[i].value));
	return tw_term_list(arena, pairs + first, INFO_MAX - first, tw_term_nil());
}

static void collected(struct tw_tracee *tracee, const struct tw_gc_sizes *sizes)
{
	/* Saturates on overflow. */
	uint64_t words,
		ms = is_set(TW_MONITOR_LONG_GC) ? elapsed_ms(TW_MONITOR_LONG_GC, ticks_at(&tracee->gc_since)) : 0;
	char buffer[INFO_BYTES];
	struct tw_arena arena;

	if (__builtin_add_overflow(sizes->heap_block_size, sizes->old_heap_block_size, &words))
		words = UINT64_MAX;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	if (ms)
		tell(tracee, TW_MONITOR_LONG_GC, ms, false, heap_info(&arena, ms, sizes));
	tw_arena_reset(&arena);
	if (is_set(TW_MONITOR_LARGE_HEAP))
		tell(tracee, TW_MONITOR_LARGE_HEAP, words, false, heap_info(&arena, 0, sizes));
}

static void set_over_limit(struct tw_tracee *tracee, bool is_over)
{
	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(&tracee->is_over_heap_limit, is_over);
}

void tw_monitor_gc(struct tw_tracee *tracee, enum tw_gc_event event, const struct tw_gc_sizes *sizes)
{
	if (!is_set(TW_MONITOR_LONG_GC) && !is_set(TW_MONITOR_LARGE_HEAP))
		return;
	switch (event) {
	case TW_GC_MINOR_START:
	case TW_GC_MAJOR_START:
		set_over_limit(tracee, false);
		set_ticks(&tracee->gc_since, is_set(TW_MONITOR_LONG_GC) ? ticks_now() : 0);
		break;
	case TW_GC_MAX_HEAP_SIZE: set_over_limit(tracee, true); break;
	default:
		/* RELAXED tracee.reported: as above. */
		if (!tw_load_relaxed(&tracee->is_over_heap_limit))
			collected(tracee, sizes);
		set_ticks(&tracee->gc_since, 0);
	}
}

/* ---- ports ---- */

void tw_monitor_busy(struct tw_tracee *tracee, enum tw_monitor monitor, struct tw_term port)
{
	if (is_set(monitor))
		tell(tracee, monitor, 0, false, tw_term_is_none(port) ? tw_atom(TW_ATOM_UNDEFINED) : port);
}

/* ---- queues ---- */

void tw_monitor_queue(struct tw_tracee *tracee, uint64_t length)
{
	for (unsigned is_short = 0; is_short < 2; is_short++)
		if (tw_monitor_crosses(tracee, length, is_short))
			tell(tracee, TW_MONITOR_LONG_MESSAGE_QUEUE, length, is_short, tw_term_bool(!is_short));
}
