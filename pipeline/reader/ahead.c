/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - two threads and a ring of places between them. */
#include "pipeline/reader/ahead.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/worker.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { WAITED_FOR = TW_AHEAD_BATCHES / 2 };

struct tw_ahead {
	tw_ahead_make_fn *make;
	void *context;
	struct tw_worker worker;
	/* Under its lock. */
	uint64_t made, used; /* batches: the user has the last of `used` */
	bool is_over, user_waits, maker_waits;
};

/* Batches that are made or in use, with the user's own. Called with the lock. */
static uint64_t kept(const struct tw_ahead *ahead)
{
	return ahead->made + 1 - ahead->used;
}

/* Waits for a place. False: the user wants no more. Called with the lock. */
static bool wait_for_place(struct tw_ahead *ahead)
{
	if (kept(ahead) < TW_AHEAD_BATCHES)
		return !ahead->worker.is_ending;
	ahead->maker_waits = true;
	while (kept(ahead) > WAITED_FOR && !ahead->worker.is_ending)
		pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
	ahead->maker_waits = false;
	return !ahead->worker.is_ending;
}

static void *run(void *argument)
{
	struct tw_ahead *ahead = argument;
	bool has_more = true;

	pthread_mutex_lock(&ahead->worker.lock);
	while (has_more && wait_for_place(ahead)) {
		unsigned number = ahead->made % TW_AHEAD_BATCHES;

		pthread_mutex_unlock(&ahead->worker.lock);
		has_more = ahead->make(ahead->context, number);
		pthread_mutex_lock(&ahead->worker.lock);
		ahead->made++;
		ahead->is_over = !has_more;
		if (ahead->user_waits && (ahead->is_over || kept(ahead) >= WAITED_FOR))
			pthread_cond_broadcast(&ahead->worker.changed);
	}
	pthread_mutex_unlock(&ahead->worker.lock);
	return NULL;
}

int tw_ahead_create(tw_ahead_make_fn *make, void *context, struct tw_ahead **out)
{
	struct tw_ahead *ahead = calloc(1, sizeof *ahead);

	if (!ahead)
		return TW_ENOMEM;
	ahead->make = make;
	ahead->context = context;
	if (!tw_worker_init(&ahead->worker, run, ahead)) {
		free(ahead);
		return TW_ENOMEM;
	}
	*out = ahead;
	return 0;
}

void tw_ahead_destroy(struct tw_ahead *ahead)
{
	if (!ahead)
		return;
	tw_worker_fini(&ahead->worker);
	free(ahead);
}

unsigned tw_ahead_next(struct tw_ahead *ahead)
{
	unsigned number;

	pthread_mutex_lock(&ahead->worker.lock);
	if (!ahead->is_over || ahead->used < ahead->made)
		ahead->used++;
	if (ahead->maker_waits && kept(ahead) <= WAITED_FOR)
		pthread_cond_broadcast(&ahead->worker.changed);
	if (ahead->made < ahead->used) {
		ahead->user_waits = true;
		while (!ahead->is_over && kept(ahead) < WAITED_FOR)
			pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
		ahead->user_waits = false;
	}
	TW_ASSERT(ahead->used <= ahead->made);
	number = (unsigned)((ahead->used - 1) % TW_AHEAD_BATCHES);
	pthread_mutex_unlock(&ahead->worker.lock);
	return number;
}
