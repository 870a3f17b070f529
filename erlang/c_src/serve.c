/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - what is asked of a capture while it lasts, and what is told in it at its end. */
#include "capture.h"

#include <stdarg.h>
#include <stdio.h>

/* The words for `enum over`, as tracewheel:info/0 has them. */
static const char *const states[OVER_REASONS] = {"tracing", "stopped",	"events", "rate",
						 "time",    "recorder", "owner",  "tracer"};

void capture_count_unmade(struct capture *capture, enum unmade cause)
{
	atomic_fetch_add_explicit(&capture->unmade[cause], 1, memory_order_relaxed);
	tw_producer_count_lost(capture->producer);
	capture_note(capture, cause);
}

uint64_t capture_cut_terms(struct capture *capture)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < THREADS_MAX; i++) {
		struct thread *thread = atomic_load_explicit(&capture->threads[i], memory_order_acquire);

		if (thread)
			count += atomic_load_explicit(&thread->cut_terms, memory_order_relaxed);
	}
	return count;
}

static const char *const causes[UNMADE_CAUSES] = {"no thread slot",
						  "their process or function could not be defined, or not in time",
						  "of a kind that is not known"};

/* The caller holds the lock of definitions. */
static __attribute__((format(printf, 2, 3))) void note(struct capture *capture, const char *format, ...)
{
	char text[256];
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	tw_producer_note(capture->producer, (struct tw_producer_name){text, (size_t)bytes});
}

/* Under the lock. */
static void note_first(struct capture *capture, unsigned what)
{
	const struct limits *limits = &capture->limits;

	if (atomic_exchange(&capture->is_noted[what], 1))
		return;
	if (what == NOTED_CUT)
		note(capture, "terms were cut: term_bytes %llu, term_elements %llu, term_depth %llu",
		     (unsigned long long)limits->term_bytes, (unsigned long long)limits->term_elements,
		     (unsigned long long)limits->term_depth);
	else
		note(capture, "events were lost before they came to a ring: %s", causes[what]);
}

void capture_note(struct capture *capture, unsigned what)
{
	if (atomic_load_explicit(&capture->is_noted[what], memory_order_relaxed) ||
	    pthread_mutex_trylock(capture->definitions) != 0)
		return;
	note_first(capture, what);
	capture_unlock(capture);
}

void capture_tell(struct capture *capture)
{
	static const char *const ends[OVER_REASONS] =
		{[OVER_EVENTS] = "the limit of events was reached",
		 [OVER_RATE] = "the limit of events in a second was reached",
		 [OVER_TIME] = "the limit of time was reached",
		 [OVER_OWNER] = "its owner ended",
		 [OVER_TRACER] = "its processes have no tracer any more, another removed it or "
				 "tracewheel_tracer was unloaded"};
	uint64_t cut = capture_cut_terms(capture);
	const char *end = ends[atomic_load(&capture->over)];

	if (atomic_exchange(&capture->is_told, 1))
		return;
	capture_lock(capture);
	if (end)
		note(capture, "the trace ended: %s", end);
	if (cut) {
		note_first(capture, NOTED_CUT);
		note(capture, "terms that were cut: %llu", (unsigned long long)cut);
	}
	for (unsigned i = 0; i < UNMADE_CAUSES; i++) {
		uint64_t lost = atomic_load(&capture->unmade[i]);

		if (!lost)
			continue;
		note_first(capture, i);
		note(capture, "events that were lost (%s): %llu", causes[i], (unsigned long long)lost);
	}
	capture_unlock(capture);
}

/* finish(Capture, Why) -> ok: no event is written from now on. */
ERL_NIF_TERM serve_finish(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	enum over why = OVER_STOPPED;

	for (int i = OVER_STOPPED; i < OVER_REASONS; i++)
		if (enif_is_identical(argv[1], enif_make_atom(env, states[i])))
			why = (enum over)i;
	capture_end(object, why);
	capture_tell(object);
	return enif_make_atom(env, "ok");
}

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key, uint64_t value)
{
	enif_make_map_put(env, *map, enif_make_atom(env, key), enif_make_uint64(env, value), map);
}

/* The most of any call of the tracer; in builds that measure. */
static ERL_NIF_TERM measured(ErlNifEnv *env, struct measures *measures)
{
	static const char *const names[MEASURED_FIGURES] = {"cpu_ns", "wall_ns", "unpreempted_ns", "faults", "waits"};
	ERL_NIF_TERM map = enif_make_new_map(env);

	put(env, &map, "calls", atomic_load(&measures->calls));
	for (unsigned i = 0; i < MEASURED_FIGURES; i++)
		put(env, &map, names[i], atomic_load(&measures->most[i]));
	return map;
}

/* info(Capture) -> #{state, written, lost, rings, ...} */
ERL_NIF_TERM serve_info(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	static const char *const keys[UNMADE_CAUSES] = {"lost_no_thread", "lost_no_definition", "lost_unknown"};
	struct capture *capture = object;
	struct tw_producer_counts counts;
	uint64_t cut = capture_cut_terms(capture);
	ERL_NIF_TERM map = enif_make_new_map(env);

	(void)argv;
	/* The thread that should have noted it, and waits for no lock, may have found it taken. */
	if (cut)
		capture_note(capture, NOTED_CUT);
	tw_producer_count(capture->producer, &counts);
	if (tw_producer_is_closed(capture->producer))
		capture_end(capture, OVER_RECORDER);
	enif_make_map_put(env, map, enif_make_atom(env, "state"),
			  enif_make_atom(env, states[atomic_load(&capture->over)]), &map);
	put(env, &map, "written", counts.written);
	put(env, &map, "lost", counts.lost);
	put(env, &map, "rings", counts.rings);
	put(env, &map, "definitions_refused", counts.definitions_refused);
	put(env, &map, "cut_terms", cut);
	for (unsigned i = 0; i < UNMADE_CAUSES; i++) {
		uint64_t lost = atomic_load(&capture->unmade[i]);

		put(env, &map, keys[i], lost);
		if (lost)
			capture_note(capture, i);
	}
	if (atomic_load(&capture->measures.calls))
		enif_make_map_put(env, map, enif_make_atom(env, "measured"), measured(env, &capture->measures), &map);
	return map;
}

/* name(Capture, PidOrPort, Atom) -> boolean() */
ERL_NIF_TERM serve_name(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	if (!enif_is_atom(env, argv[2]) || !(enif_is_pid(env, argv[1]) || enif_is_port(env, argv[1])))
		return enif_make_badarg(env);
	return enif_make_atom(env, capture_name(env, object, argv[1], argv[2]) ? "true" : "false");
}

/* newcomers(Capture, Max) -> [Pid]: processes that made their first event since the last time, the newest first. */
ERL_NIF_TERM serve_newcomers(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	ERL_NIF_TERM list = enif_make_list(env, 0);
	struct process_entry *process;
	struct capture *capture = object;
	unsigned most;

	if (!enif_get_uint(env, argv[1], &most))
		return enif_make_badarg(env);
	capture_lock(capture);
	for (process = capture->newcomers; process && most--; process = process->next)
		list = enif_make_list_cell(env, process->entry.key[0], list);
	capture->newcomers = process;
	capture_unlock(capture);
	return list;
}

/* describe(Capture, Pid, {InitialCall, Behaviour, Application, Label}) -> boolean(): text as binaries. */
ERL_NIF_TERM serve_describe(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	struct tw_producer_origin origin = {0};
	struct tw_producer_name *names[] = {&origin.initial_call, &origin.behaviour, &origin.application,
					    &origin.label};
	const ERL_NIF_TERM *parts;
	ErlNifBinary text;
	int count;

	if (!enif_is_pid(env, argv[1]) || !enif_get_tuple(env, argv[2], &count, &parts) || count != 4)
		return enif_make_badarg(env);
	for (int i = 0; i < count; i++) {
		if (!enif_inspect_binary(env, parts[i], &text))
			return enif_make_badarg(env);
		*names[i] = (struct tw_producer_name){(const char *)text.data, text.size};
	}
	return enif_make_atom(env, capture_describe(env, object, argv[1], &origin) ? "true" : "false");
}

/* note(Capture, Text) -> ok: a sentence of the server, for people. */
ERL_NIF_TERM serve_note(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	struct capture *capture = object;
	ErlNifBinary text;

	if (!enif_inspect_binary(env, argv[1], &text))
		return enif_make_badarg(env);
	capture_lock(capture);
	tw_producer_note(capture->producer, (struct tw_producer_name){(const char *)text.data, text.size});
	capture_unlock(capture);
	return enif_make_atom(env, "ok");
}

static uint64_t number(ErlNifEnv *env, ERL_NIF_TERM map, const char *key, uint64_t otherwise)
{
	ERL_NIF_TERM value;
	ErlNifUInt64 found;

	return enif_get_map_value(env, map, enif_make_atom(env, key), &value) && enif_get_uint64(env, value, &found)
		       ? found
		       : otherwise;
}

/* sum(Capture, #{function := {M,F,Arity}, calls := N, us => N}) -> boolean(): what the VM has counted; once for each function. */
ERL_NIF_TERM serve_sum(ErlNifEnv *env, void *object, const ERL_NIF_TERM argv[])
{
	struct capture *capture = object;
	uint64_t calls, us;
	const ERL_NIF_TERM *mfa;
	ERL_NIF_TERM function;
	unsigned arity;
	uint32_t id;
	int count, error = TW_ENOSPC;

	if (!enif_get_map_value(env, argv[1], enif_make_atom(env, "function"), &function) ||
	    !enif_get_tuple(env, function, &count, &mfa) || count != 3 || !enif_is_atom(env, mfa[0]) ||
	    !enif_is_atom(env, mfa[1]) || !enif_get_uint(env, mfa[2], &arity))
		return enif_make_badarg(env);
	calls = number(env, argv[1], "calls", 0);
	us = number(env, argv[1], "us", UINT64_MAX);
	id = calls ? capture_function(env, capture, mfa[0], mfa[1], arity) : 0;
	if (id) {
		capture_lock(capture);
		error = tw_producer_sum_calls(capture->producer, id, calls,
					      us == UINT64_MAX ? TW_PRODUCER_NO_TIME : us * 1000);
		capture_unlock(capture);
	}
	return enif_make_atom(env, error ? "false" : "true");
}
