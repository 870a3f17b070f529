/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracewheel_tracer.c - the tracer module: enabled/3 and trace/5, and nothing else.
 *
 * The optional callbacks of erl_tracer are left out on purpose: for meta traces the VM takes the answer of trace_call/5 as that of
 * enabled/3, and then makes no events.
 *
 * The tracer's state is a capture, a resource of tracewheel_nif, and begins with the callbacks of the library that made it: so a
 * capture begun by one version of that library is served by that version, whatever is loaded later.
 */
#include "capture.h"

static ErlNifResourceType *captures;
static ERL_NIF_TERM atom_remove, atom_discard, atom_trace, atom_trace_status, atom_call, atom_ok;

static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;

	(void)argc;
	/* The VM has asked for trace_status before each call: the capture is not over, or trace() ignores the event. */
	if (argv[0] == atom_call)
		return atom_trace;
	if (!enif_get_resource(env, argv[1], captures, &object))
		return argv[0] == atom_trace_status ? atom_remove : atom_discard;
	return ((struct capture *)object)->callbacks->enabled(env, object, argv);
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	void *object;

	(void)argc;
	if (!enif_get_resource(env, argv[1], captures, &object))
		return atom_ok;
	return ((struct capture *)object)->callbacks->trace(env, object, argv);
}

/* The argument is {Version, Type}, as tracewheel_nif:captures() gives it. */
static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
	const ERL_NIF_TERM *parts;
	ErlNifUInt64 version, type;
	int count;

	(void)priv_data;
	if (!enif_get_tuple(env, info, &count, &parts) || count != 2 || !enif_get_uint64(env, parts[0], &version) ||
	    !enif_get_uint64(env, parts[1], &type) || version != CALLBACKS_VERSION)
		return 1;
	captures = (ErlNifResourceType *)(uintptr_t)type;
	atom_remove = enif_make_atom(env, "remove");
	atom_discard = enif_make_atom(env, "discard");
	atom_trace_status = enif_make_atom(env, "trace_status");
	atom_trace = enif_make_atom(env, "trace");
	atom_call = enif_make_atom(env, "call");
	atom_ok = enif_make_atom(env, "ok");
	return 0;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM info)
{
	(void)old_priv_data;
	return load(env, priv_data, info);
}

static ErlNifFunc functions[] = {{"enabled", 3, enabled, 0}, {"trace", 5, trace, 0}};

ERL_NIF_INIT(tracewheel_tracer, functions, load, NULL, upgrade, NULL)
