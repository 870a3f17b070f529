/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LISTENERS_MAX 256
#define MESSAGES_MAX  8192

struct listener {
	pthread_mutex_t lock;
	struct tw_arena arena;
	struct tw_term messages[MESSAGES_MAX];
	size_t count;
	tw_pid tracer;
	atomic_bool is_dead;
	bool is_open;
};

static struct listener listeners[LISTENERS_MAX];

static uint32_t number_of(struct tw_term pid)
{
	struct tw_identifier parts;

	return tw_term_get_identifier(pid, &parts) ? 0 : parts.words[0];
}

static struct listener *listener_of(struct tw_term state)
{
	uint64_t number = 0;

	tw_term_get_uint64(tw_term_element(state, 1), &number);
	return &listeners[number];
}

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	struct listener *listener = listener_of(state);

	if (atomic_load(&listener->is_dead))
		return tag == TW_TRACER_TAG_STATUS ? TW_TRACER_REMOVE : TW_TRACER_DISCARD;
	return number_of(tracee) == listener->tracer ? TW_TRACER_DISCARD : TW_TRACER_TRACE;
}

static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	struct listener *listener = listener_of(state);
	struct tw_term message, copy;
	struct tw_arena arena;
	char buffer[1024];

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	message = tw_tracer_message(&arena, tag, tracee, term, options);
	pthread_mutex_lock(&listener->lock);
	/* Scenarios that make more events than this check none, or the first only. */
	if (listener->count < MESSAGES_MAX) {
		if (tw_term_copy(&listener->arena, message, SIZE_MAX, &copy))
			abort();
		listener->messages[listener->count++] = copy;
	}
	pthread_mutex_unlock(&listener->lock);
}

static const struct tw_tracer_module module = {.bytes = sizeof module,
					       .name = "listener",
					       .enabled = enabled,
					       .trace = trace};

int listener_open(const char *name, tw_pid tracer, bool is_dead, struct tw_session **session, struct listener **out)
{
	struct tw_tracer options = {.kind = TW_TRACER_MODULE, .module = &module};
	struct tw_arena arena;
	char buffer[256];
	size_t number = 0;

	while (listeners[number].is_open)
		if (++number == LISTENERS_MAX)
			return TW_ELIMIT;
	*out = &listeners[number];
	**out = (struct listener){.tracer = tracer, .is_open = true, .is_dead = is_dead};
	pthread_mutex_init(&(*out)->lock, NULL);
	tw_arena_init(&(*out)->arena, SIZE_MAX);
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	options.state = tw_term_tuple(&arena,
				      (struct tw_term[]){tw_term_pid(&arena, (uint32_t)tracer, 0),
							 tw_term_unsigned(&arena, number)},
				      2);
	return tw_session_create(name, &options, session);
}

void listener_tracer_died(tw_pid tracer)
{
	for (size_t i = 0; i < LISTENERS_MAX; i++)
		if (listeners[i].is_open && listeners[i].tracer == tracer)
			atomic_store(&listeners[i].is_dead, true);
}

size_t listener_take(struct listener *listener, struct tw_arena *arena, struct tw_term *out, size_t capacity)
{
	size_t count;

	pthread_mutex_lock(&listener->lock);
	count = listener->count < capacity ? listener->count : capacity;
	for (size_t i = 0; i < count; i++)
		if (tw_term_copy(arena, listener->messages[i], SIZE_MAX, &out[i]))
			abort();
	listener->count = 0;
	tw_arena_reset(&listener->arena);
	pthread_mutex_unlock(&listener->lock);
	return count;
}

void listener_close(struct listener *listener)
{
	tw_arena_fini(&listener->arena);
	pthread_mutex_destroy(&listener->lock);
	listener->is_open = false;
}
