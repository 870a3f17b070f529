/* SPDX-License-Identifier: Apache-2.0 */
/* tracewheel_nif.c - captures for the application: open, end, count, name.  All run on dirty schedulers or for a moment only. */
#include "capture.h"

#include <tracewheel/error.h>

#include <string.h>

static ErlNifResourceType *captures;

static ERL_NIF_TERM error_tuple(ErlNifEnv *env, int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {{TW_EBADARG, "badarg"}, {TW_ELIMIT, "system_limit"}, {TW_ENOMEM, "enomem"},
		     {TW_ENOSPC, "enospc"},  {TW_ENOENT, "enoent"},	  {TW_EEXIST, "eexist"},
		     {TW_EPERM, "eacces"},   {TW_EFORMAT, "format"},	  {TW_EVERSION, "version"},
		     {TW_EIO, "eio"},	     {TW_ENOTSUP, "enotsup"}};
	const char *name = "eio";

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].error == error)
			name = names[i].name;
	return enif_make_tuple2(env, enif_make_atom(env, "error"), enif_make_atom(env, name));
}

static void destroy(ErlNifEnv *env, void *object)
{
	(void)env;
	((struct capture *)object)->callbacks->destroy(object);
}

static uint64_t option(ErlNifEnv *env, ERL_NIF_TERM map, const char *key)
{
	ERL_NIF_TERM value;
	ErlNifUInt64 number;

	return enif_get_map_value(env, map, enif_make_atom(env, key), &value) && enif_get_uint64(env, value, &number)
		       ? number
		       : 0;
}

/* open(RingSetPath, Name, #{node, pid, events, per_second, time_ns, term_bytes}) -> {ok, Capture} | {error, Reason} */
static ERL_NIF_TERM open_capture(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	char path[512], name[256];
	ERL_NIF_TERM node = 0, pid = 0, capture_term;
	struct capture *capture;
	int error;

	(void)argc;
	if (enif_get_string(env, argv[0], path, sizeof path, ERL_NIF_LATIN1) <= 0 ||
	    enif_get_string(env, argv[1], name, sizeof name, ERL_NIF_LATIN1) <= 0 ||
	    !enif_get_map_value(env, argv[2], enif_make_atom(env, "node"), &node) || !enif_is_atom(env, node) ||
	    !enif_get_map_value(env, argv[2], enif_make_atom(env, "pid"), &pid))
		return enif_make_badarg(env);
	capture = enif_alloc_resource(captures, sizeof *capture);
	if (!capture)
		return error_tuple(env, TW_ENOMEM);
	memset(capture, 0, sizeof *capture);
	capture->own_pid = pid;
	capture->limits = (struct limits){.events = option(env, argv[2], "events"),
					  .per_second = option(env, argv[2], "per_second"),
					  .time_ns = option(env, argv[2], "time_ns"),
					  .term_bytes = option(env, argv[2], "term_bytes")};
	error = capture_init(env, capture, path, name, node);
	capture_term = enif_make_resource(env, capture);
	enif_release_resource(capture);
	return error ? error_tuple(env, error) : enif_make_tuple2(env, enif_make_atom(env, "ok"), capture_term);
}

static struct capture *get(ErlNifEnv *env, ERL_NIF_TERM term)
{
	void *object;

	return enif_get_resource(env, term, captures, &object) ? object : NULL;
}

/* finish(Capture) -> ok: no event is written from now on. */
static ERL_NIF_TERM finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	struct capture *capture = get(env, argv[0]);

	(void)argc;
	if (!capture)
		return enif_make_badarg(env);
	capture_end(capture, OVER_STOPPED);
	return enif_make_atom(env, "ok");
}

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key, ERL_NIF_TERM value)
{
	enif_make_map_put(env, *map, enif_make_atom(env, key), value, map);
}

/* info(Capture) -> #{state, written, lost, rings, ...} */
static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	static const char *const states[] =
		{[NOT_OVER] = "tracing", [OVER_STOPPED] = "stopped", [OVER_EVENTS] = "events",
		 [OVER_RATE] = "rate",	 [OVER_TIME] = "time",	     [OVER_RECORDER] = "recorder"};
	struct capture *capture = get(env, argv[0]);
	struct tw_producer_counts counts;
	ERL_NIF_TERM map = enif_make_new_map(env);

	(void)argc;
	if (!capture || !capture->producer)
		return enif_make_badarg(env);
	tw_producer_count(capture->producer, &counts);
	if (tw_producer_is_closed(capture->producer))
		capture_end(capture, OVER_RECORDER);
	put(env, &map, "state", enif_make_atom(env, states[atomic_load(&capture->over)]));
	put(env, &map, "written", enif_make_uint64(env, counts.written));
	put(env, &map, "lost", enif_make_uint64(env, counts.lost));
	put(env, &map, "rings", enif_make_uint64(env, counts.rings));
	put(env, &map, "definitions_refused", enif_make_uint64(env, counts.definitions_refused));
	return map;
}

/* name(Capture, PidOrPort, Atom) -> boolean() */
static ERL_NIF_TERM name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	struct capture *capture = get(env, argv[0]);

	(void)argc;
	if (!capture || !capture->producer || !enif_is_atom(env, argv[2]) ||
	    !(enif_is_pid(env, argv[1]) || enif_is_port(env, argv[1])))
		return enif_make_badarg(env);
	return enif_make_atom(env, capture_name(env, capture, argv[1], argv[2]) ? "true" : "false");
}

/* captures() -> {Version, Type}, for the tracer module's library. */
static ERL_NIF_TERM captures_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	(void)argc;
	(void)argv;
	return enif_make_tuple2(env, enif_make_uint64(env, CALLBACKS_VERSION),
				enif_make_uint64(env, (uint64_t)(uintptr_t)captures));
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info_term)
{
	(void)priv_data;
	(void)info_term;
	captures = enif_open_resource_type(env, NULL, "tracewheel_capture", destroy,
					   ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
	event_init(env);
	return captures ? 0 : 1;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM info_term)
{
	(void)old_priv_data;
	return load(env, priv_data, info_term);
}

static ErlNifFunc functions[] = {{"open", 3, open_capture, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"finish", 1, finish, 0},
				 {"info", 1, info, 0},
				 {"name", 3, name, 0},
				 {"captures", 0, captures_of, 0}};

ERL_NIF_INIT(tracewheel_nif, functions, load, NULL, upgrade, NULL)
