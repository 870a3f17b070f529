/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Processes that move to another thread at every message, while others send to them, have their events in the
 *	capture in the order of their own logs: those they make and those that are made for them, in each session.
 * Method	Actors with mailboxes on three schedulers pass messages at random.  Every event of an actor carries the
 *	next number of its log, taken under the lock that orders them.  The time stamps in the rings are then shifted by
 *	a different skew for each thread.  Negative control: by the shifted times alone the order is wrong.
 */
#include "pipeline/recorder/writer.h"
#include "session_bed.h"
#include "skew_help.h"
#include "tracewheel/consumer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACTORS	   8
#define SCHEDULERS 3
#define TOKENS	   12
#ifdef __SANITIZE_THREAD__
#define MESSAGES 3000
#else
#define MESSAGES 20000
#endif

#include "run_queue_help.h"

static struct tw_declared_function step = TW_DECLARED_FUNCTION("actor", "step", 2);

struct actor {
	struct tw_process *process;
	tw_pid pid;
	pthread_mutex_t lock; /* orders its log; holds the mailbox */
	uint64_t log;	      /* number of its events */
	unsigned mailbox;
	bool is_scheduled;
};
static struct actor actors[ACTORS];

static struct tw_term number(uint64_t n)
{
	return tw_term_integer(NULL, (int64_t)n);
}

/* A message enters the mailbox: an event of the receiver, made by the sender's thread. */
static void deliver(struct actor *to, int scheduler)
{
	bool is_idle;

	pthread_mutex_lock(&to->lock);
	tw_process_receive(to->process, number(to->log++), (struct tw_term){0});
	to->mailbox++;
	is_idle = !to->is_scheduled;
	to->is_scheduled = true;
	pthread_mutex_unlock(&to->lock);
	if (is_idle)
		schedule_on((int)(to - actors), scheduler);
}

static void log_call(struct actor *actor)
{
	pthread_mutex_lock(&actor->lock);
	tw_call2(&step, actor->pid, actor->log);
	actor->log++;
	pthread_mutex_unlock(&actor->lock);
}

static void log_send(struct actor *actor)
{
	pthread_mutex_lock(&actor->lock);
	tw_process_send(actor->process, number(actor->log), tw_term_nil());
	actor->log++;
	pthread_mutex_unlock(&actor->lock);
}

/* One turn: takes one message, passes one on. */
static void turn(struct actor *actor, int self, unsigned *seed)
{
	struct actor *to = &actors[rand_r(seed) % ACTORS];
	bool is_more;

	tw_process_in(actor->process);
	log_call(actor);
	log_send(actor);
	deliver(to, (self + 1 + rand_r(seed) % 2) % SCHEDULERS);
	log_call(actor);
	tw_process_out();
	count_message();
	pthread_mutex_lock(&actor->lock);
	is_more = --actor->mailbox;
	actor->is_scheduled = is_more;
	pthread_mutex_unlock(&actor->lock);
	if (is_more)
		schedule_on((int)(actor - actors), (self + 1) % SCHEDULERS);
}

static void *schedule(void *arg)
{
	int self = (int)(intptr_t)arg, actor;
	unsigned seed = (unsigned)self + 1;

	assert_int_equal(tw_scheduler_declare(), 0);
	while ((actor = next_actor(self)) >= 0)
		turn(&actors[actor], self, &seed);
	return NULL;
}

static void run_actors(void)
{
	pthread_t threads[SCHEDULERS];

	for (int i = 0; i < ACTORS; i++) {
		actors[i] = (struct actor){.lock = PTHREAD_MUTEX_INITIALIZER};
		assert_int_equal(tw_process_create("actor", &actors[i].process), 0);
		actors[i].pid = tw_process_pid(actors[i].process);
	}
	for (int i = 0; i < TOKENS; i++)
		deliver(&actors[i % ACTORS], i % SCHEDULERS);
	for (intptr_t i = 0; i < SCHEDULERS; i++)
		pthread_create(&threads[i], NULL, schedule, (void *)i);
	for (int i = 0; i < SCHEDULERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ACTORS; i++)
		tw_process_exit(actors[i].process);
}

/* ---- reading ---- */

static uint64_t number_of(const struct tw_capture_event *event)
{
	struct tw_term term;
	struct tw_arena arena;
	char buffer[256];
	size_t used;
	uint64_t n;

	if (event->kind == TW_CAPTURE_CALL)
		return event->payload[1];
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	assert_int_equal(tw_etf_decode(&arena, event->payload + 1, event->payload[0] >> 32, NULL, &used, &term), 0);
	assert_int_equal(tw_term_get_uint64(term, &n), 0);
	return n;
}

struct answer {
	unsigned events, wrong, gaps;
};

/* The events that come before an earlier one of their actor's log, and missing numbers. */
static struct answer read_all(const char *path, bool by_time_only)
{
	struct tw_capture_filter filter = {.by_time_only = by_time_only};
	struct tw_capture *capture;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	uint64_t next[ACTORS] = {0};
	struct answer answer = {0};
	int64_t got;

	assert_int_equal(tw_capture_open(path, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, &filter, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++) {
			uint64_t actor = batch[i].tracee_id - actors[0].pid, n = number_of(&batch[i]);

			assert_int_not_equal(batch[i].kind, TW_CAPTURE_LOSS);
			assert_true(actor < ACTORS);
			answer.wrong += n < next[actor];
			answer.gaps += n > next[actor];
			next[actor] = n + 1;
			answer.events++;
		}
	}
	assert_int_equal(got, 0);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return answer;
}

struct recording {
	char path[64];
	struct tw_recorder *recorder;
	struct tw_rs rs;
	struct tw_session *session;
	uint32_t image;
};

static void begin(struct recording *r, const char *directory, const char *name, uint32_t flags)
{
	struct tw_recorder_options options = {.path = r->path, .ring_bytes = 1 << 23};

	snprintf(r->path, sizeof r->path, "%s/%s.tw", directory, name);
	assert_int_equal(tw_recorder_create(&options, &r->recorder), 0);
	assert_int_equal(tw_rs_attach(&r->rs, tw_recorder_ring_set_path(r->recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&r->rs, &r->image), 0);
	assert_int_equal(tw_session_make(name, &r->rs, &r->session), 0);
	assert_int_equal(tw_trace_process(r->session, TW_PID_NEW, true, flags), 0);
	assert_int_equal(tw_trace_function(r->session, "actor", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL),
			 1);
}

static void finish(struct recording *r)
{
	struct tw_recorder_stats stats;

	skew_rings(tw_recorder_ring_set(r->recorder));
	tw_session_destroy(r->session);
	tw_session_put(r->session);
	tw_rs_image_end(&r->rs, r->image);
	assert_int_equal(tw_recorder_finish(r->recorder, &stats), 0);
	tw_rs_detach(&r->rs);
}

static void each_actors_order_is_its_log(void **state)
{
	char directory[] = "/tmp/tw-mailbox.XXXXXX", command[64];
	struct recording all = {0}, receives = {0};
	struct answer answer;
	uint64_t made = 0;

	assert_non_null(mkdtemp(directory));
	begin(&all, directory, "all", TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_RECEIVE);
	begin(&receives, directory, "receives", TW_FLAG_CALL | TW_FLAG_RECEIVE);
	run_actors();
	finish(&all);
	finish(&receives);
	for (int i = 0; i < ACTORS; i++)
		made += actors[i].log;
	answer = read_all(all.path, false);
	assert_int_equal(answer.events, made);
	assert_int_equal(answer.wrong, 0);
	assert_int_equal(answer.gaps, 0);
	answer = read_all(receives.path, false);
	assert_int_equal(answer.wrong, 0);
	assert_in_range(answer.events, made / 2, made - MESSAGES);
	assert_true(read_all(all.path, true).wrong > 10);
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_actors_order_is_its_log)};

	assert_int_equal(tw_function_declare(&step), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
