/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Processes that move to another thread at every message have their events in their own order in the capture,
 *	whatever the processors' clocks say; so do two processes connected by a message.
 * Method	Actors pass tokens over three scheduler threads; each keeps a number that its calls carry.  Before the
 *	rings are drained the time stamps in them are shifted by a different skew for each thread.  The reader's order
 *	must be each actor's own.  Negative control: by the shifted times alone it is not.
 */
#include "pipeline/recorder/writer.h"
#include "session_bed.h"
#include "skew_help.h"
#include "tracewheel/consumer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACTORS	   12
#define SCHEDULERS 3
#define MESSAGES   3000

#include "run_queue_help.h"

static struct tw_declared_function step = TW_DECLARED_FUNCTION("actor", "step", 2);

struct actor {
	struct tw_process *process;
	tw_pid pid;
	uint64_t steps; /* its own log: the number of its steps, in order */
};

static struct actor actors[ACTORS];

static void *schedule(void *arg)
{
	int self = (int)(intptr_t)arg, actor;

	assert_int_equal(tw_scheduler_declare(), 0);
	while ((actor = next_actor(self)) >= 0) {
		tw_process_in(actors[actor].process);
		for (int i = 0; i < 1 + actor % 3; i++, actors[actor].steps++)
			tw_call2(&step, (uint64_t)actor, actors[actor].steps);
		tw_process_out();
		/* Every message moves the process. */
		count_message();
		schedule_on(actor, (self + 1 + actor % 2) % SCHEDULERS);
	}
	return NULL;
}

static void run_actors(void)
{
	pthread_t threads[SCHEDULERS];

	for (int i = 0; i < ACTORS; i++) {
		assert_int_equal(tw_process_create("actor", &actors[i].process), 0);
		actors[i].pid = tw_process_pid(actors[i].process);
		schedule_on(i, i % SCHEDULERS);
	}
	for (intptr_t i = 0; i < SCHEDULERS; i++)
		pthread_create(&threads[i], NULL, schedule, (void *)i);
	for (int i = 0; i < SCHEDULERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ACTORS; i++)
		tw_process_exit(actors[i].process);
}

/* ---- reading ---- */

struct seen {
	uint64_t time_ns, order, actor, number;
};

static unsigned read_all(const char *path, struct seen *seen, unsigned capacity)
{
	struct tw_capture *capture;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	unsigned count = 0;
	int64_t got;

	assert_int_equal(tw_capture_open(path, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++) {
			if (batch[i].kind != TW_CAPTURE_CALL)
				continue;
			assert_true(count < capacity);
			assert_int_equal(batch[i].payload_words, 2);
			assert_int_equal(batch[i].tracee_id, actors[batch[i].payload[0]].pid);
			seen[count] = (struct seen){batch[i].ticks, count, batch[i].payload[0], batch[i].payload[1]};
			count++;
		}
	}
	assert_int_equal(got, 0);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return count;
}

/* The number of events that come before an earlier one of their actor. */
static unsigned count_wrong(const struct seen *seen, unsigned count)
{
	uint64_t next[ACTORS] = {0};
	unsigned wrong = 0;

	for (unsigned i = 0; i < count; i++) {
		wrong += seen[i].number != next[seen[i].actor];
		next[seen[i].actor] = seen[i].number + 1;
	}
	return wrong;
}

static int by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void remove_directory(const char *directory)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	assert_int_equal(system(command), 0);
}

static void each_actor_keeps_its_order_over_skewed_clocks(void **state)
{
	char directory[] = "/tmp/tw-migrate.XXXXXX", path[64];
	struct tw_recorder_options options = {.path = path, .ring_bytes = 1 << 20};
	struct seen *seen = calloc(MESSAGES * 4, sizeof *seen);
	struct tw_recorder *recorder;
	struct tw_session *session;
	struct tw_recorder_stats stats;
	struct tw_rs rs;
	uint64_t made = 0;
	uint32_t image;
	unsigned count;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/migrate.tw", directory);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_rs_attach(&rs, tw_recorder_ring_set_path(recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_int_equal(tw_session_make("migrate", &rs, &session), 0);
	assert_int_equal(tw_trace_process(session, TW_PID_NEW, true, TW_FLAG_CALL), 0);
	assert_int_equal(tw_trace_function(session, "actor", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	run_actors();
	skew_rings(tw_recorder_ring_set(recorder));
	tw_session_destroy(session);
	tw_session_put(session);
	tw_rs_image_end(&rs, image);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	tw_rs_detach(&rs);
	for (int i = 0; i < ACTORS; i++)
		made += actors[i].steps;
	count = read_all(path, seen, MESSAGES * 4);
	assert_int_equal(count, made);
	assert_int_equal(count_wrong(seen, count), 0);
	qsort(seen, count, sizeof *seen, by_time);
	assert_true(count_wrong(seen, count) > 10);
	remove_directory(directory);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_actor_keeps_its_order_over_skewed_clocks)};

	assert_int_equal(tw_function_declare(&step), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
