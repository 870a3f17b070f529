/* SPDX-License-Identifier: Apache-2.0 */
/* actor.c - the run-time, its slots, and the life of an actor in one. */
#include "run.h"

#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)
#define REDUCTIONS  2000

/* ---- the run-time ---- */

static struct runtime_options with_defaults(const struct runtime_options *wanted)
{
	struct runtime_options options = wanted ? *wanted : (struct runtime_options){0};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	if (options.schedulers == 0)
		options.schedulers = processors > 0 ? (unsigned)processors : 1;
	if (options.schedulers > SCHEDULERS_MAX)
		options.schedulers = SCHEDULERS_MAX;
	if (options.reductions == 0)
		options.reductions = REDUCTIONS;
	if (options.stack_bytes == 0)
		options.stack_bytes = STACK_BYTES;
	options.stack_bytes = (options.stack_bytes + 4095) / 4096 * 4096;
	return options;
}

static void free_runtime(struct runtime *runtime)
{
	for (uint32_t slot = 0; slot < runtime->slot_count; slot++) {
		struct actor *actor = &runtime->chunks[slot / CHUNK_SLOTS][slot % CHUNK_SLOTS];
		mailbox_fini(&actor->mailbox);
		heap_fini(&actor->heap);
		fiber_fini(&actor->fiber);
		pthread_cond_destroy(&actor->called);
		pthread_mutex_destroy(&actor->outside_lock);
	}
	for (uint32_t chunk = 0; chunk * CHUNK_SLOTS < runtime->slot_count; chunk++)
		free(runtime->chunks[chunk]);
	free(runtime->names);
	pthread_mutex_destroy(&runtime->idle_lock);
	pthread_mutex_destroy(&runtime->slots_lock);
	pthread_mutex_destroy(&runtime->names_lock);
	pthread_cond_destroy(&runtime->idle);
	pthread_cond_destroy(&runtime->all_ended);
	free(runtime);
}

struct runtime *runtime_start(const struct runtime_options *options)
{
	struct runtime *runtime = calloc(1, sizeof *runtime);
	if (!runtime)
		return NULL;
	runtime->options = with_defaults(options);
	pthread_mutex_init(&runtime->idle_lock, NULL);
	pthread_mutex_init(&runtime->slots_lock, NULL);
	pthread_mutex_init(&runtime->names_lock, NULL);
	pthread_cond_init(&runtime->idle, NULL);
	pthread_cond_init(&runtime->all_ended, NULL);
	module_load((struct function *const[]){&run_loop}, 1);
	trace_mailboxes();
	if (!poller_start(runtime))
		goto free;
	if (schedulers_start(runtime))
		return runtime;
	schedulers_stop(runtime);
	poller_stop(runtime);
free:
	free_runtime(runtime);
	return NULL;
}

static void kill_all(struct runtime *runtime)
{
	pthread_mutex_lock(&runtime->slots_lock);
	runtime->is_closed = true;
	for (uint32_t slot = 0; slot < runtime->slot_count; slot++) {
		struct value pid = pid_of(&runtime->chunks[slot / CHUNK_SLOTS][slot % CHUNK_SLOTS]);
		if (!is_none(pid))
			signal_push(runtime, NULL, pid, signal_make(NULL, SIGNAL_EXIT, NONE, ATOM(KILL)));
	}
	while (runtime->alive)
		pthread_cond_wait(&runtime->all_ended, &runtime->slots_lock);
	pthread_mutex_unlock(&runtime->slots_lock);
}

void runtime_stop(struct runtime *runtime)
{
	kill_all(runtime);
	poller_stop(runtime);
	schedulers_stop(runtime);
	free_runtime(runtime);
}

struct runtime_figures runtime_figures(struct runtime *runtime)
{
	struct runtime_figures figures = {0};
	pthread_mutex_lock(&runtime->slots_lock);
	figures.spawned = runtime->spawned;
	figures.ended = runtime->ended;
	figures.collections = runtime->collections;
	pthread_mutex_unlock(&runtime->slots_lock);
	for (unsigned i = 0; i < runtime->options.schedulers; i++) {
		struct scheduler *scheduler = runtime->schedulers[i];
		/* RELAXED actors.figures: momentary figures. */
		figures.switches += load_relaxed(&scheduler->switches);
		figures.stolen += load_relaxed(&scheduler->stolen);
		figures.sleeps += load_relaxed(&scheduler->sleeps);
	}
	return figures;
}

/* ---- slots ---- */

struct actor *slot_of(struct runtime *runtime, struct value pid)
{
	uint64_t slot = (uint64_t)number_of(pid) & ((1 << SLOTS_BITS) - 1);
	/* PAIR actors.chunk: acquire; release in new_slots(). */
	struct actor *chunk = is_pid(pid) ? load_acquire(&runtime->chunks[slot / CHUNK_SLOTS]) : NULL;
	return chunk ? &chunk[slot % CHUNK_SLOTS] : NULL;
}

/* Under the slots' lock. */
static bool new_slots(struct runtime *runtime)
{
	uint32_t first = runtime->slot_count;
	if (first / CHUNK_SLOTS >= CHUNKS_MAX)
		return false;
	struct actor *chunk = aligned_alloc(64, sizeof *chunk * CHUNK_SLOTS);
	if (!chunk)
		return false;
	memset((void *)chunk, 0, sizeof *chunk * CHUNK_SLOTS);
	for (uint32_t i = CHUNK_SLOTS; i-- > 0;) {
		struct actor *actor = &chunk[i];
		mailbox_init(&actor->mailbox);
		/* RELAXED actors.closed: no other thread knows the slot yet. */
		store_relaxed(&actor->mailbox.is_closed, true);
		actor->slot = first + i;
		actor->runtime = runtime;
		pthread_mutex_init(&actor->outside_lock, NULL);
		pthread_cond_init(&actor->called, NULL);
		actor->next = runtime->free_slots;
		runtime->free_slots = actor;
	}
	/* PAIR actors.chunk: release; acquire in slot_of().  Without it a sender finds an uninitialised mailbox. */
	store_release(&runtime->chunks[first / CHUNK_SLOTS], chunk);
	runtime->slot_count = first + CHUNK_SLOTS;
	return true;
}

static struct actor *take_slot(struct runtime *runtime, bool is_outside)
{
	struct actor *actor = NULL;
	pthread_mutex_lock(&runtime->slots_lock);
	if (!runtime->is_closed && (runtime->free_slots || new_slots(runtime))) {
		actor = runtime->free_slots;
		runtime->free_slots = actor->next;
		runtime->alive += !is_outside;
		runtime->spawned += !is_outside;
	}
	pthread_mutex_unlock(&runtime->slots_lock);
	return actor;
}

static void give_slot(struct actor *actor)
{
	struct runtime *runtime = actor->runtime;
	pthread_mutex_lock(&runtime->slots_lock);
	runtime->collections += actor->heap.collections;
	heap_fini(&actor->heap);
	actor->next = runtime->free_slots;
	runtime->free_slots = actor;
	if (!actor->is_outside) {
		runtime->ended++;
		if (--runtime->alive == 0)
			pthread_cond_signal(&runtime->all_ended);
	}
	pthread_mutex_unlock(&runtime->slots_lock);
}

/* ---- birth ---- */

/* Initialises a slot for a new actor. */
static void clean(struct actor *actor)
{
	heap_init(&actor->heap);
	actor->scheduler = NULL;
	actor->process = NULL;
	actor->is_trapping = actor->is_sensitive = actor->is_outside = actor->is_ending = false;
	actor->entry = actor->tail_function = NULL;
	actor->frame = NULL;
	actor->catcher = NULL;
	actor->kept = NULL;
	actor->relations = NULL;
	actor->unheard = NULL;
	actor->name = NONE;
	actor->timeout = 0;
	actor->has_timed_out = false;
}

/* From here on other actors reach it by its pid. */
static void open_mailbox(struct actor *actor, uint64_t number)
{
	struct mailbox *mailbox = &actor->mailbox;
	lock_take(&mailbox->lock);
	mailbox_init(mailbox);
	/* RELAXED actors.pid: under the lock. */
	store_relaxed(&actor->pid, immediate(number << SLOTS_BITS | actor->slot, TAG_PID).word);
	lock_give(&mailbox->lock);
}

static void begin(void *context)
{
	struct actor *self = context;
	take_signals(self);
	call_with(self, self->entry, self->arguments, CALL_REMOTE);
	actor_end(self, ATOM(NORMAL));
}

struct value spawn_with(struct actor *self, struct function *function, const struct value *arguments, bool is_linked)
{
	struct actor *child = take_slot(self->runtime, false);
	if (!child)
		return NONE;
	clean(child);
	if (!child->fiber.stack && !fiber_init(&child->fiber, self->runtime->options.stack_bytes)) {
		give_slot(child);
		return NONE;
	}
	child->entry = function;
	for (unsigned i = 0; i < function->traced.arity; i++) {
		uint64_t *at = heap_take(&child->heap, value_words(arguments[i]));
		child->arguments[i] = value_copy(arguments[i], &at);
	}
	fiber_prepare(&child->fiber, begin, child);
	uint64_t number = trace_spawn(self, child, function, arguments, is_linked);
	open_mailbox(child, number);
	struct value pid = pid_of(child);
	if (is_linked) {
		add_relation(self, pid, 0, true);
		add_relation(child, pid_of(self), 0, true);
	}
	make_runnable(self->runtime, self->scheduler, child);
	return pid;
}

/* ---- death ---- */

_Noreturn void actor_end(struct actor *self, struct value reason)
{
	say_goodbye(self, reason);
	leave(self, LEAVE_END);
	abort();
}

void actor_bury(struct actor *actor)
{
	trace_ended(actor);
	fiber_ended(&actor->fiber);
	mailbox_fini(&actor->mailbox);
	lock_take(&actor->mailbox.lock);
	/* RELAXED actors.pid: under the lock. */
	store_relaxed(&actor->pid, 0);
	lock_give(&actor->mailbox.lock);
	give_slot(actor);
}

/* ---- outsides ---- */

struct actor *outside_create(struct runtime *runtime)
{
	struct actor *self = take_slot(runtime, true);
	if (!self)
		return NULL;
	clean(self);
	self->is_outside = self->is_trapping = true;
	open_mailbox(self, trace_spawn(NULL, self, NULL, NULL, false));
	return self;
}

void outside_destroy(struct actor *self)
{
	say_goodbye(self, ATOM(NORMAL));
	actor_bury(self);
}

/* ---- queries of an actor about itself ---- */

struct value self_pid(const struct actor *self)
{
	return pid_of(self);
}

struct heap *heap_of(struct actor *self)
{
	return &self->heap;
}

struct runtime *runtime_of(struct actor *self)
{
	return self->runtime;
}

unsigned scheduler_of(struct actor *self)
{
	return self->scheduler ? self->scheduler->index : 0;
}

bool is_alive(struct actor *self, struct value pid)
{
	struct actor *actor = slot_of(self->runtime, pid);
	/* RELAXED actors.closed: a momentary answer; a message finds out under the lock. */
	return actor && is_same(pid_of(actor), pid) && !load_relaxed(&actor->mailbox.is_closed);
}

size_t process_flag(struct actor *self, enum process_flag flag, size_t value)
{
	size_t old = 0;
	switch (flag) {
	case FLAG_TRAP_EXIT:
		old = self->is_trapping;
		self->is_trapping = value;
		break;
	case FLAG_SENSITIVE:
		old = self->is_sensitive;
		self->is_sensitive = value;
		trace_sensitive(self, value);
		break;
	case FLAG_MAX_HEAP_WORDS:
		old = self->heap.max_words;
		self->heap.max_words = value;
		break;
	}
	return old;
}
