/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - the life of a capture, its limits, and the ids of functions and processes. */
#define _GNU_SOURCE
#include "capture.h"
#include "rate.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The largest lot of events that a thread is allowed at a time. */
#define LOT_MAX 256

/* The most atoms and functions that a capture remembers; events of further ones are counted as lost. */
#define ATOMS_MAX     1048576
#define FUNCTIONS_MAX 262144
#define PROCESSES_MAX 1048576

/* The longest that an event waits for another thread that defines something. */
#define DEFINE_WAIT_NS 300000

static void capture_destroy(void *object);
static void capture_abandon(void *object);

#ifdef TRACEWHEEL_MEASURE
#define ENABLED			  measure_enabled
#define TRACE			  measure_trace
#define MAY_DEFINE(capture, name) (measure_hold(capture, (name).text, (name).bytes), 1)
#else
#define ENABLED			  event_enabled
#define TRACE			  event_trace
#define MAY_DEFINE(capture, name) 1
#endif
const struct callbacks capture_callbacks = {CALLBACKS_VERSION, ENABLED,	   TRACE,	    capture_destroy,
					    serve_finish,      serve_info, serve_name,	    capture_abandon,
					    serve_note,	       serve_sum,  serve_newcomers, serve_describe};

int capture_init(ErlNifEnv *env, struct capture *capture, const char *ring_set_path, const char *name,
		 ERL_NIF_TERM node)
{
	capture->callbacks = &capture_callbacks;
	struct limits *limits = &capture->limits;

	capture->start_ns = enif_monotonic_time(ERL_NIF_NSEC);
	if (!limits->term_bytes || limits->term_bytes > TERMS_BYTES_MAX)
		limits->term_bytes = TERMS_BYTES_MAX;
	if (!limits->term_depth || limits->term_depth > ENCODE_DEPTH_MAX)
		limits->term_depth = ENCODE_DEPTH_MAX;
	if (limits->per_second > RATE_MAX)
		limits->per_second = RATE_MAX;
	/* No term that fits has more elements than bytes; names have bytes of their own. */
	if (!limits->term_elements || limits->term_elements > limits->term_bytes)
		limits->term_elements = limits->term_bytes > NAME_BYTES ? limits->term_bytes : NAME_BYTES;
	if (!encode_bounds_init(&capture->bounds, limits->term_bytes))
		return TW_ENOMEM;
	capture->atoms.count_max = ATOMS_MAX;
	capture->functions.count_max = FUNCTIONS_MAX;
	capture->processes.count_max = PROCESSES_MAX;
	capture->definitions = enif_alloc(sizeof *capture->definitions);
	if (!capture->definitions)
		return TW_ENOMEM;
	pthread_mutex_init(capture->definitions, NULL);
	capture->node = encode_find_atom(env, &capture->atoms, node);
	int error = tw_producer_open(ring_set_path, name, &capture->producer);
	if (error)
		return error;
	/* A node without a name is known by its process. */
	struct tw_producer_name text = {0};
	text.text = capture->node ? atom_text(capture->node, &text.bytes) : "";
	if (text.bytes && !(text.bytes == 13 && memcmp(text.text, "nonode@nohost", 13) == 0))
		tw_producer_name_node(capture->producer, text);
	return 0;
}

void capture_fini(struct capture *capture)
{
	if (capture->producer)
		capture_tell(capture);
	tw_producer_close(capture->producer);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		enif_free(atomic_load_explicit(&capture->threads[i], memory_order_relaxed));
	encode_bounds_fini(&capture->bounds);
	table_fini(&capture->atoms);
	table_fini(&capture->functions);
	table_fini(&capture->processes);
	if (capture->definitions)
		pthread_mutex_destroy(capture->definitions);
	enif_free(capture->definitions);
}

void capture_end(struct capture *capture, enum over why)
{
	int found = NOT_OVER;

	atomic_compare_exchange_strong(&capture->over, &found, why);
}

/* At once: its tracees could not be traced anew as long as this tracer says that it is enabled. */
static void capture_abandon(void *object)
{
	capture_end(object, OVER_RECORDER);
}

static void *end_capture(void *capture)
{
	capture_fini(capture);
	enif_free(capture);
	return NULL;
}

/* The resource's memory ends with this call: what it holds moves to a copy. */
static void capture_destroy(void *object)
{
	struct capture *copy = enif_alloc(sizeof *copy);
	sigset_t all, before;
	pthread_t thread;
	int error = 1;

	if (copy) {
		memcpy(copy, object, sizeof *copy);
		/* The VM's signal handlers are for its own threads. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&thread, NULL, end_capture, copy);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!error) {
		pthread_detach(thread);
		return;
	}
	enif_free(copy);
	capture_fini(object);
}

/* ---- limits ---- */

static uint64_t lot(uint64_t left, uint64_t threads)
{
	uint64_t share = left / (8 * threads);

	return share > LOT_MAX ? LOT_MAX : share ? share : 1;
}

/* Takes a lot from a counter that must not pass @limit; 0: nothing is left.  Lots are small beside what @per_second allows. */
static uint64_t take(_Atomic uint64_t *counter, uint64_t limit, uint64_t per_second)
{
	uint64_t used = atomic_load(counter), left, wanted;

	do {
		if (used >= limit)
			return 0;
		left = limit - used;
		wanted = lot(per_second && per_second < left ? per_second : left, 64);
	} while (!atomic_compare_exchange_weak(counter, &used, used + wanted));
	return wanted;
}

static int is_too_fast(struct capture *capture, ErlNifTime now_ns, uint64_t events)
{
	uint32_t second = (uint32_t)((now_ns - capture->start_ns) / 1000000000);

	return capture->limits.per_second &&
	       rate_count(&capture->granted_in_second, second, (uint32_t)events) > capture->limits.per_second;
}

int capture_allow(struct capture *capture, struct thread *thread)
{
	ErlNifTime now_ns = enif_monotonic_time(ERL_NIF_NSEC);
	const struct limits *limits = &capture->limits;
	uint64_t events = take(&capture->granted, limits->events ? limits->events : UINT64_MAX / 2, limits->per_second);

	if (!events)
		capture_end(capture, OVER_EVENTS);
	else if (limits->time_ns && (uint64_t)(now_ns - capture->start_ns) >= limits->time_ns)
		capture_end(capture, OVER_TIME);
	else if (is_too_fast(capture, now_ns, events))
		capture_end(capture, OVER_RATE);
	else if (tw_producer_is_closed(capture->producer))
		capture_end(capture, OVER_RECORDER);
	if (atomic_load_explicit(&capture->over, memory_order_relaxed))
		return 0;
	thread->allowed = events;
	return 1;
}

/* ---- threads ---- */

/* Threads of the VM are numbered as they make their first event. */
static _Atomic uint32_t last_thread;
static __thread uint32_t own_thread __attribute__((tls_model("initial-exec")));

/* "1_scheduler", "erts_sched_1": 1; other threads: 0. */
static uint32_t scheduler_id(void)
{
	char name[32] = "";
	unsigned id = 0;

	if (enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER || pthread_getname_np(pthread_self(), name, sizeof name))
		return 0;
	if (sscanf(name, "erts_sched_%u", &id) != 1)
		sscanf(name, "%u_scheduler", &id);
	return id;
}

static struct thread *join(struct capture *capture, uint32_t number)
{
	struct thread *thread = enif_alloc(sizeof *thread);

	if (!thread)
		return NULL;
	memset(thread, 0, sizeof *thread);
	thread->producer = tw_producer_join(capture->producer, scheduler_id());
	if (!thread->producer) {
		enif_free(thread);
		return NULL;
	}
	atomic_store_explicit(&capture->threads[number], thread, memory_order_release);
	return thread;
}

struct thread *capture_thread(struct capture *capture)
{
	struct thread *thread;

	if (!own_thread)
		own_thread = atomic_fetch_add(&last_thread, 1) + 1;
	if (own_thread >= THREADS_MAX)
		return NULL;
	thread = atomic_load_explicit(&capture->threads[own_thread], memory_order_relaxed);
	return thread ? thread : join(capture, own_thread);
}

/* ---- definitions ---- */

void capture_lock(struct capture *capture)
{
	pthread_mutex_lock(capture->definitions);
}

/* False: not in time. */
static int lock_for_event(struct capture *capture)
{
	struct timespec until;

	if (pthread_mutex_trylock(capture->definitions) == 0)
		return 1;
	if (capture->limits.is_blocking) {
		capture_lock(capture);
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += DEFINE_WAIT_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return pthread_mutex_clocklock(capture->definitions, CLOCK_MONOTONIC, &until) == 0;
}

void capture_unlock(struct capture *capture)
{
	pthread_mutex_unlock(capture->definitions);
}

/* The VM encodes names and identities before the lock is taken: under it, a thread only defines. */
struct function_request {
	struct capture *capture;
	struct tw_producer_name module, function;
	uint32_t module_id;
	unsigned arity;
};

static int name_of(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM atom, struct tw_producer_name *out)
{
	const struct atom_entry *entry = encode_find_atom(env, &capture->atoms, atom);

	if (entry)
		out->text = atom_text(entry, &out->bytes);
	return entry != NULL;
}

static struct entry *make_module(const ERL_NIF_TERM key[3], void *arg)
{
	struct function_entry *module = enif_alloc(sizeof *module);
	struct function_request *request = arg;

	(void)key;
	if (module && tw_producer_define_module(request->capture->producer, request->module, &module->id) == 0)
		return &module->entry;
	enif_free(module);
	return NULL;
}

static struct entry *make_function(const ERL_NIF_TERM key[3], void *arg)
{
	struct function_entry *function = enif_alloc(sizeof *function);
	struct function_request *request = arg;

	(void)key;
	if (function && MAY_DEFINE(request->capture, request->function) &&
	    tw_producer_define_function(request->capture->producer, request->module_id, request->function,
					request->arity, &function->id) == 0)
		return &function->entry;
	enif_free(function);
	return NULL;
}

/* Once for each function, under the lock.  Modules are in the same table, with a name and an arity that no function has. */
static struct entry *add_function(struct function_request *request, const ERL_NIF_TERM key[3])
{
	const ERL_NIF_TERM module_key[3] = {key[0], 0, ~(ERL_NIF_TERM)0};
	struct entry *module = table_add(&request->capture->functions, module_key, make_module, request);

	if (!module)
		return NULL;
	request->module_id = ((struct function_entry *)module)->id;
	return table_add(&request->capture->functions, key, make_function, request);
}

uint32_t capture_function(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM module, ERL_NIF_TERM function,
			  unsigned arity)
{
	const ERL_NIF_TERM key[3] = {module, function, arity};
	struct function_request request = {.capture = capture, .arity = arity};
	struct entry *entry = table_find(&capture->functions, module, function, arity);

	if (!entry && name_of(env, capture, module, &request.module) &&
	    name_of(env, capture, function, &request.function) && lock_for_event(capture)) {
		entry = add_function(&request, key);
		capture_unlock(capture);
	}
	return entry ? ((struct function_entry *)entry)->id : 0;
}

/* ---- processes ---- */

struct process_request {
	struct capture *capture;
	struct identity identity;
	int is_port;
};

/* Of this node only: other pids and ports are not immediate terms, whose words could be keys. */
static int is_local(ErlNifEnv *env, ERL_NIF_TERM term)
{
	ErlNifPid pid;
	ErlNifPort port;

	return enif_get_local_pid(env, term, &pid) || enif_get_local_port(env, term, &port);
}

static struct entry *make_process(const ERL_NIF_TERM key[3], void *arg)
{
	struct process_entry *process = enif_alloc(sizeof *process);
	struct process_request *request = arg;

	(void)key;
	if (!process)
		return NULL;
	process->identity = request->identity;
	process->is_port = request->is_port;
	if (tw_producer_define_process(request->capture->producer, process->is_port, process->identity.number,
				       process->identity.serial, (struct tw_producer_name){"", 0},
				       &process->process) == 0)
		return &process->entry;
	enif_free(process);
	return NULL;
}

/* Under the lock.  One that another thread has just added is no newcomer again. */
static struct entry *add_process(struct process_request *request, const ERL_NIF_TERM key[3])
{
	struct capture *capture = request->capture;
	struct entry *known = table_find(&capture->processes, key[0], key[1], key[2]);
	struct process_entry *process;

	if (known)
		return known;
	process = (struct process_entry *)table_add(&capture->processes, key, make_process, request);
	if (process && !process->is_port) {
		process->next = capture->newcomers;
		capture->newcomers = process;
	}
	return (struct entry *)process;
}

struct process_entry *capture_process(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM tracee)
{
	const ERL_NIF_TERM key[3] = {tracee, 0, 0};
	struct process_request request = {.capture = capture};
	struct entry *entry = table_find(&capture->processes, tracee, 0, 0);

	if (!entry && is_local(env, tracee) && encode_identify(env, tracee, &request.identity)) {
		request.is_port = enif_is_port(env, tracee);
		if (lock_for_event(capture)) {
			entry = add_process(&request, key);
			capture_unlock(capture);
		}
	}
	return (struct process_entry *)entry;
}

int capture_describe(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM process,
		     const struct tw_producer_origin *origin)
{
	struct process_entry *entry = capture_process(env, capture, process);
	int error;

	if (!entry)
		return 0;
	capture_lock(capture);
	error = tw_producer_describe_process(capture->producer, &entry->process, entry->is_port, entry->identity.number,
					     entry->identity.serial, origin);
	capture_unlock(capture);
	return error == 0;
}

int capture_name(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM process, ERL_NIF_TERM name)
{
	struct process_entry *entry = capture_process(env, capture, process);
	const struct atom_entry *atom = entry ? encode_find_atom(env, &capture->atoms, name) : NULL;
	struct tw_producer_name text;

	if (!atom || !lock_for_event(capture))
		return 0;
	text.text = atom_text(atom, &text.bytes);
	/* The producer counts what it refuses. */
	tw_producer_name_process(capture->producer, &entry->process, entry->is_port, entry->identity.number,
				 entry->identity.serial, text);
	capture_unlock(capture);
	return 1;
}
