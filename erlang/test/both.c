/* SPDX-License-Identifier: Apache-2.0 */
/*
 * both.c - a tracer module that gives each event to a capture and, as a message, to a process: so both see the very same.
 *
 * State: {Capture, Pid}.  Messages: {event, Tag, Tracee, TraceTerm, Opts}.
 */
#include "capture.h"

static ErlNifResourceType *captures;

static struct capture *parts_of(ErlNifEnv *env, ERL_NIF_TERM state, ErlNifPid *pid)
{
	const ERL_NIF_TERM *parts;
	void *object;
	int count;

	if (!enif_get_tuple(env, state, &count, &parts) || count != 2 || !enif_get_local_pid(env, parts[1], pid) ||
	    !enif_get_resource(env, parts[0], captures, &object))
		return NULL;
	return object;
}

static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	struct capture *capture;
	ErlNifPid pid;

	(void)argc;
	capture = parts_of(env, argv[1], &pid);
	if (!capture)
		return enif_make_atom(env, "remove");
	if (enif_is_identical(argv[2], enif_make_pid(env, &pid)))
		return enif_make_atom(env, "discard");
	return capture->callbacks->enabled(env, capture, argv);
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	struct capture *capture;
	ErlNifPid pid;

	(void)argc;
	capture = parts_of(env, argv[1], &pid);
	if (!capture)
		return enif_make_atom(env, "ok");
	enif_send(env, &pid, NULL,
		  enif_make_tuple5(env, enif_make_atom(env, "event"), argv[0], argv[2], argv[3], argv[4]));
	return capture->callbacks->trace(env, capture, argv);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
	const ERL_NIF_TERM *parts;
	ErlNifUInt64 type;
	int count;

	(void)priv_data;
	if (!enif_get_tuple(env, info, &count, &parts) || count != 2 || !enif_get_uint64(env, parts[1], &type))
		return 1;
	captures = (ErlNifResourceType *)(uintptr_t)type;
	return 0;
}

static ErlNifFunc functions[] = {{"enabled", 3, enabled, 0}, {"trace", 5, trace, 0}};

ERL_NIF_INIT(both, functions, load, NULL, NULL, NULL)
