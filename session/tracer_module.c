/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer_module.c - tracer modules: found once, when the session is made, and asked from outside of hits.
 *
 * The structure of callbacks is copied. An object that contains one of them is never unloaded again: a callback may
 * be running on any thread, and a module that destroys its own session would return into unmapped memory.
 */
#include "session/tracer_module.h"
#include "session/tracee.h"
#include "pipeline/hit/frame.h"
#include "pipeline/thread/thread.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- look-up ---- */

/* The shortest version of the structure ends after the mandatory callbacks. */
#define BYTES_LEAST offsetof(struct tw_tracer_module, enabled_call)

/* For another version of the structure, copies the members that both have. */
static int read_module(const struct tw_tracer_module *from, struct tw_tracer_module *out)
{
	size_t bytes = from->bytes;

	if (bytes < BYTES_LEAST || from->reserved)
		return TW_EBADARG;
	*out = (struct tw_tracer_module){0};
	memcpy(out, from, bytes < sizeof *out ? bytes : sizeof *out);
	if (!out->name || !out->enabled || !out->trace)
		return TW_EBADARG;
	return 0;
}

static int load_module(const char *path, const struct tw_tracer_module **out)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!object)
		return TW_ENOENT;
	*out = dlsym(object, TW_TRACER_MODULE_SYMBOL);
	return *out ? 0 : TW_EBADARG;
}

/* Keeps the object loaded; the program itself stays loaded anyway, and has no name that the loader finds. */
static void keep_loaded(void *address)
{
	Dl_info info;
	void *object;

	if (!dladdr(address, &info) || !info.dli_fname)
		return;
	object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (object)
		dlclose(object);
}

static void set_pair(struct tw_hit_module *to, enum tw_module_pair pair, tw_tracer_enabled_fn *enabled,
		     tw_tracer_trace_fn *trace)
{
	to->pairs[pair].enabled = enabled ? enabled : to->pairs[TW_MODULE_GENERAL].enabled;
	to->pairs[pair].trace = trace ? trace : to->pairs[TW_MODULE_GENERAL].trace;
	if (enabled)
		keep_loaded((void *)enabled);
	if (trace)
		keep_loaded((void *)trace);
}

static void set_pairs(struct tw_hit_module *to, const struct tw_tracer_module *m)
{
	set_pair(to, TW_MODULE_GENERAL, m->enabled, m->trace);
	set_pair(to, TW_MODULE_CALL, m->enabled_call, m->trace_call);
	set_pair(to, TW_MODULE_GARBAGE_COLLECTION, m->enabled_garbage_collection, m->trace_garbage_collection);
	set_pair(to, TW_MODULE_PORTS, m->enabled_ports, m->trace_ports);
	set_pair(to, TW_MODULE_PROCS, m->enabled_procs, m->trace_procs);
	set_pair(to, TW_MODULE_RECEIVE, m->enabled_receive, m->trace_receive);
	set_pair(to, TW_MODULE_RUNNING_PORTS, m->enabled_running_ports, m->trace_running_ports);
	set_pair(to, TW_MODULE_RUNNING, m->enabled_running_procs, m->trace_running_procs);
	set_pair(to, TW_MODULE_SEND, m->enabled_send, m->trace_send);
}

int tw_tracer_module_start(const struct tw_tracer *tracer, struct tw_session *session)
{
	struct tw_term state = tw_term_is_none(tracer->state) ? tw_term_nil() : tracer->state;
	const struct tw_tracer_module *from = tracer->module;
	struct tw_session_module *module;
	struct tw_tracer_module read;
	size_t bytes;
	int error = from ? 0 : load_module(tracer->module_path, &from);

	if (!error)
		error = read_module(from, &read);
	if (error)
		return error;
	bytes = strlen(read.name);
	if (bytes >= sizeof module->name || tw_term_is_none(tw_term_atom(read.name, bytes)))
		return TW_EBADARG;
	module = calloc(1, sizeof *module);
	if (!module)
		return TW_ENOMEM;
	memcpy(module->name, read.name, bytes);
	tw_arena_init(&module->arena, SIZE_MAX);
	error = tw_term_copy(&module->arena, state, SIZE_MAX, &module->hit.state);
	if (error) {
		tw_tracer_module_destroy(module);
		return error;
	}
	set_pairs(&module->hit, &read);
	session->module = module;
	return 0;
}

int tw_session_use_module(struct tw_session *session, const struct tw_tracer *tracer)
{
	int error = tw_tracer_module_start(tracer, session);

	if (error)
		return error;
	tw_registry_lock();
	tw_hit_sessions[session->slot].module = &session->module->hit;
	/* RELAXED hit.modules: set before any tracee has the session's bit. */
	tw_fetch_or_relaxed(&tw_hit_modules, UINT64_C(1) << session->slot);
	tw_registry_unlock();
	return 0;
}

void tw_tracer_module_destroy(struct tw_session_module *module)
{
	if (!module)
		return;
	tw_arena_fini(&module->arena);
	free(module);
}

/* ---- the status ---- */

bool tw_tracer_module_is_active(const struct tw_session *session, uint32_t number, bool is_port)
{
	bool is_active;

	if (!session->module)
		return true;
	tw_thread_join();
	if (!tw_frame_begin(__builtin_frame_address(0), 0))
		return true;
	is_active = tw_module_is_active(&session->module->hit, number, is_port);
	tw_frame_end();
	return is_active;
}

static void remove_locked(unsigned slot, uint64_t number)
{
	struct tw_tracee *tracee = tw_tracee_find(number);

	if (!tracee)
		tracee = tw_tracee_find_port(number);
	/* RELAXED tracee.flags: under the registry's lock. */
	if (tracee && tw_load_relaxed(&tracee->flags[slot])) {
		tw_flags_apply(tracee, slot, 0);
		/* RELAXED hit.module_counts: numbers for people; nothing depends on them. */
		tw_fetch_add_relaxed(&tw_hit_sessions[slot].module_counts[TW_MODULE_REMOVED], 1);
	}
}

void tw_tracer_module_remove(unsigned slot, uint64_t number)
{
	tw_registry_lock();
	remove_locked(slot, number);
	tw_registry_unlock();
}

void tw_tracer_module_remove_from(const struct tw_session *session, uint64_t number)
{
	tw_registry_lock();
	if (tw_session_has_slot(session))
		remove_locked(session->slot, number);
	tw_registry_unlock();
}

void tw_tracer_modules_scheduled_in(struct tw_tracee *tracee)
{
	uint64_t todo;

	if (!tw_frame_begin(__builtin_frame_address(0), 0))
		return;
	/*
	 * PAIR runtime_event.wants: acquire; release in set_bit() of flags.c.  The session of each bit is seen with its callbacks.
	 * The thread that clears a bit waits for this read section to end.
	 */
	todo = tw_load_acquire(&tracee->has_modules);
	for (; todo; todo &= todo - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(todo);

		if (!tw_module_is_active(tw_hit_sessions[slot].module, tracee->pid_number, false))
			tw_tracer_module_remove(slot, tracee->pid_number);
	}
	tw_frame_end();
}

/* ---- counts ---- */

TW_API int tw_tracer_module_stats(struct tw_session *session, struct tw_tracer_stats *out)
{
	uint64_t counts[TW_MODULE_COUNTS];

	if (!session || !session->module || !out)
		return TW_EBADARG;
	tw_registry_lock();
	for (unsigned i = 0; i < TW_MODULE_COUNTS; i++) {
		bool has_slot = tw_session_has_slot(session);

		/* RELAXED hit.module_counts: numbers for people. */
		counts[i] = has_slot ? tw_load_relaxed(&tw_hit_sessions[session->slot].module_counts[i])
				     : session->module->counts[i];
	}
	tw_registry_unlock();
	*out = (struct tw_tracer_stats){.nested = counts[TW_MODULE_NESTED],
					.no_thread = counts[TW_MODULE_NO_THREAD],
					.wrong_answer = counts[TW_MODULE_WRONG_ANSWER],
					.removed = counts[TW_MODULE_REMOVED]};
	return 0;
}
