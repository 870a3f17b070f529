/* SPDX-License-Identifier: Apache-2.0 */
/* tracewheel_nif.c - captures for the application: open, end, count, name.  All run on dirty schedulers or for a moment only. */
#include "capture.h"

#include <tracewheel/error.h>
#include <tracewheel/seq.h>
#include <tracewheel/term.h>

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

static void down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
	(void)env;
	(void)pid;
	(void)monitor;
	((struct capture *)object)->callbacks->abandon(object);
}

static uint64_t option(ErlNifEnv *env, ERL_NIF_TERM map, const char *key)
{
	ERL_NIF_TERM value;
	ErlNifUInt64 number;

	return enif_get_map_value(env, map, enif_make_atom(env, key), &value) && enif_get_uint64(env, value, &number)
		       ? number
		       : 0;
}

/* open(RingSetPath, Name, #{node, pid, events, per_second, time_ns, term_bytes, term_depth, term_elements, is_blocking}) -> {ok, Capture} | {error, Reason} */
static ERL_NIF_TERM open_capture(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	char path[512], name[ATOM_TEXT_MAX + 1];
	ERL_NIF_TERM node = 0, pid = 0, capture_term;
	ErlNifPid server;
	struct capture *capture;
	int error;

	(void)argc;
	if (enif_get_string(env, argv[0], path, sizeof path, ERL_NIF_LATIN1) <= 0 ||
	    enif_get_string(env, argv[1], name, sizeof name, ERL_NIF_LATIN1) <= 0 ||
	    !enif_get_map_value(env, argv[2], enif_make_atom(env, "node"), &node) || !enif_is_atom(env, node) ||
	    !enif_get_map_value(env, argv[2], enif_make_atom(env, "pid"), &pid) ||
	    !enif_get_local_pid(env, pid, &server))
		return enif_make_badarg(env);
	capture = enif_alloc_resource(captures, sizeof *capture);
	if (!capture)
		return error_tuple(env, TW_ENOMEM);
	memset(capture, 0, sizeof *capture);
	capture->own_pid = pid;
	capture->limits = (struct limits){.events = option(env, argv[2], "events"),
					  .per_second = option(env, argv[2], "per_second"),
					  .time_ns = option(env, argv[2], "time_ns"),
					  .term_bytes = option(env, argv[2], "term_bytes"),
					  .term_depth = option(env, argv[2], "term_depth"),
					  .term_elements = option(env, argv[2], "term_elements"),
					  .is_blocking = option(env, argv[2], "is_blocking")};
	error = capture_init(env, capture, path, name, node);
	if (!error && enif_monitor_process(env, capture, &server, NULL))
		error = TW_EIO;
	if (error) {
		enif_release_resource(capture);
		return error_tuple(env, error);
	}
	capture_term = enif_make_resource(env, capture);
	enif_release_resource(capture);
	return enif_make_tuple2(env, enif_make_atom(env, "ok"), capture_term);
}

/* By the functions of the library that made the capture; NULL: it has none, or the term is none. */
static const struct callbacks *callbacks_of(ErlNifEnv *env, ERL_NIF_TERM term, void **object)
{
	const struct capture *capture;

	if (!enif_get_resource(env, term, captures, object))
		return NULL;
	capture = *object;
	return capture->callbacks && capture->callbacks->version == CALLBACKS_VERSION ? capture->callbacks : NULL;
}

static ERL_NIF_TERM finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->finish(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->info(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->name(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM note(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->note(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM sum(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->sum(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM newcomers(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->newcomers(env, object, argv) : enif_make_badarg(env);
}

static ERL_NIF_TERM describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;
	const struct callbacks *callbacks = callbacks_of(env, argv[0], &object);

	(void)argc;
	return callbacks ? callbacks->describe(env, object, argv) : enif_make_badarg(env);
}

/* captures() -> {Version, Type}, for the tracer module's library. */
static ERL_NIF_TERM captures_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	(void)argc;
	(void)argv;
	return enif_make_tuple2(env, enif_make_uint64(env, CALLBACKS_VERSION),
				enif_make_uint64(env, (uint64_t)(uintptr_t)captures));
}

/* w3c(Label, Node, {Number, Serial}, Current) -> {TraceId, ParentId}: what W3C's trace context calls a token, as tw_seq_to_traceparent() does. */
static ERL_NIF_TERM w3c(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	struct tw_seq_sender sender = {0};
	struct tw_etf_options options = {0};
	ErlNifBinary label, node;
	ErlNifSInt64 current;
	const ERL_NIF_TERM *pid;
	ERL_NIF_TERM id, parent;
	struct tw_arena arena;
	struct tw_term term;
	unsigned char *bytes;
	int count, error;

	(void)argc;
	if (!enif_inspect_binary(env, argv[0], &label) || !enif_inspect_binary(env, argv[1], &node) ||
	    !enif_get_tuple(env, argv[2], &count, &pid) || count != 2 || !enif_get_uint(env, pid[0], &sender.number) ||
	    !enif_get_uint(env, pid[1], &sender.serial) || !enif_get_int64(env, argv[3], &current))
		return enif_make_badarg(env);
	sender.current = current;
	sender.node = (const char *)node.data;
	sender.node_bytes = node.size;
	parent = enif_make_uint64(env, tw_seq_parent_id(&sender));
	tw_arena_init(&arena, 1 << 20);
	options.node = tw_term_atom(sender.node, sender.node_bytes);
	bytes = enif_make_new_binary(env, TW_SEQ_TRACE_ID_BYTES, &id);
	error = tw_etf_decode(&arena, label.data, label.size, &options, NULL, &term);
	if (!error)
		error = tw_seq_trace_id(term, (struct tw_term){0}, bytes);
	tw_arena_fini(&arena);
	return error ? error_tuple(env, error) : enif_make_tuple2(env, id, parent);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info_term)
{
	const ErlNifResourceTypeInit calls = {.dtor = destroy, .down = down};

	(void)priv_data;
	(void)info_term;
	captures = enif_open_resource_type_x(env, "tracewheel_capture", &calls, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER,
					     NULL);
	encode_init(env);
	event_init(env);
	return captures ? 0 : 1;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM info_term)
{
	(void)old_priv_data;
	return load(env, priv_data, info_term);
}

/* Those that may wait for the lock of definitions, whose holder may be preempted, wait on no scheduler that processes need. */
static ErlNifFunc functions[] = {{"open", 3, open_capture, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"finish", 2, finish, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"info", 1, info, 0},
				 {"name", 3, name, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"note", 2, note, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"sum", 2, sum, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"newcomers", 2, newcomers, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"describe", 3, describe, ERL_NIF_DIRTY_JOB_IO_BOUND},
				 {"captures", 0, captures_of, 0},
				 {"w3c", 4, w3c, 0}};

ERL_NIF_INIT(tracewheel_nif, functions, load, NULL, upgrade, NULL)
