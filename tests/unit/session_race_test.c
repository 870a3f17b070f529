/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Sessions that come, change and go at random under traced calls: no leak, no use after free, no event once
 *	destroy has returned; weak ids are harmless; the permit is fair; threads that end, are cancelled, fork or
 *	receive many signals leave streams in which every call is an event or counted.
 * Method	Random operations over rings of this process, whose owner is the test: it drains, recycles, and unmaps
 *	the rings of a destroyed session at once, so that a late access is a crash.  TW_RACE_SECONDS is the time for
 *	each test (0.6 by default); the seed is printed, and taken from TW_RACE_SEED.
 */
#include "check_help.h"
#include "sanitized_help.h"
#include "session_bed.h"
#include "tests/common/random.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS 8

static struct tw_declared_function f[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("race", "f0", 2), TW_DECLARED_FUNCTION("race", "f1", 2),
	TW_DECLARED_FUNCTION("race", "f2", 2), TW_DECLARED_FUNCTION("race", "f3", 2),
	TW_DECLARED_FUNCTION("race", "f4", 2), TW_DECLARED_FUNCTION("race", "f5", 2),
	TW_DECLARED_FUNCTION("race", "f6", 2), TW_DECLARED_FUNCTION("race", "f7", 2),
};

/* Sanitizers change how threads end and fork, and when they receive signals. */
#define SKIP_IF(is_sanitized)     \
	do {                      \
		if (is_sanitized) \
			skip();   \
	} while (0)

static uint64_t seed;
static _Atomic bool stop;
static uint64_t end_ns;

static double seconds(void)
{
	const char *text = getenv("TW_RACE_SECONDS");

	return text ? strtod(text, NULL) : 0.6;
}

static void start_clock(void)
{
	stop = false;
	end_ns = tw_clock_monotonic_ns() + (uint64_t)(seconds() * 1e9);
}

static bool is_time(void)
{
	return tw_clock_monotonic_ns() >= end_ns;
}

static void call_one(unsigned i, uint64_t word)
{
	tw_call2(&f[i % FUNCTIONS], word, ~word);
}

/* ---- an owner that drains and keeps the account ---- */

struct account {
	struct bed bed;
	uint64_t events, told_lost;
	uint64_t told[TW_RS_RINGS_MAX][TW_RB_CAUSES];
	uint64_t forbidden; /* a bit in the first word that no event may have */
};

static void take_record(struct account *a, uint32_t ring, const struct tw_rb_record *record)
{
	const uint64_t *words = tw_event_payload(record);

	if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_LOSS) {
		const struct tw_rb_loss_record *loss = (const struct tw_rb_loss_record *)record;

		for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
			a->told[ring][cause] += loss->lost[cause];
			a->told_lost += loss->lost[cause];
		}
	} else if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_CALL) {
		CHECK(tw_event_payload_words(record->head) == 2 && words[1] == ~words[0]);
		CHECK(!(words[0] & a->forbidden));
		a->events++;
	} else {
		CHECK(TW_RB_HEAD_KIND(record->head) == TW_EVENT_SWITCH ||
		      TW_RB_HEAD_KIND(record->head) == TW_EVENT_OWN_TIME);
	}
}

static void drain_ring(struct account *a, uint32_t i)
{
	struct tw_rb_shared *ring = tw_rs_ring(&a->bed.rs, i);
	uint64_t pos = tw_load_relaxed(&ring->tail_pos), end;
	const uint8_t *at;
	int64_t bytes;

	do {
		bytes = tw_rb_peek(ring, pos, TW_BLOCK_RAW_BYTES_MAX, &at, &end);
		CHECK(bytes >= 0);
		for (int64_t b = 0; b < bytes; b += TW_RB_HEAD_BYTES(((const struct tw_rb_record *)(at + b))->head))
			take_record(a, i, (const struct tw_rb_record *)(at + b));
		if (end != pos)
			tw_rb_consume(ring, end);
		bytes = end != pos;
		pos = end;
	} while (bytes);
}

/* One round of a recorder: drains all, ends rings of dead threads, recycles drained ones. */
static void drain(struct account *a, bool recycles)
{
	struct tw_rs *rs = &a->bed.rs;

	tw_rs_heartbeat(rs);
	for (uint32_t i = 0; i < tw_rs_scan(rs); i++) {
		struct tw_rb_loss_record untold;
		enum tw_rb_state state = tw_rs_ring_state(rs, i);

		if (state == TW_RB_LIVE)
			tw_rs_ring_reap(rs, i);
		drain_ring(a, i);
		if (state != TW_RB_ENDED)
			continue;
		if (tw_rb_unreported_loss(tw_rs_ring(rs, i), a->told[i], &untold))
			for (int cause = 0; cause < TW_RB_CAUSES; cause++)
				a->told_lost += untold.lost[cause];
		memset(a->told[i], 0, sizeof a->told[i]);
		if (recycles)
			tw_rs_ring_recycle(rs, i);
	}
}

static struct account *open_account(enum tw_rb_policy policy, uint64_t ring_bytes)
{
	const struct tw_rs_options options = {.ring_bytes = ring_bytes,
					      .cap_bytes = 1 << 24,
					      .has_fixed_rings = true,
					      .policy = policy};
	struct account *a = calloc(1, sizeof *a);

	open_bed_with(&a->bed, "race", &options);
	CHECK(tw_trace_process(a->bed.session, TW_PID_ALL, true, TW_FLAG_CALL) >= 0);
	CHECK(tw_trace_function(a->bed.session, "race", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) ==
	      FUNCTIONS);
	return a;
}

/* Ends the session; then the account must balance. */
static void close_account(struct account *a, uint64_t calls)
{
	tw_session_destroy(a->bed.session);
	drain(a, false);
	CHECK(a->events + a->told_lost + a->bed.rs.own.head->no_ring_lost == calls);
	tw_session_put(a->bed.session);
	tw_rs_destroy(&a->bed.rs);
	free(a);
}

/* ---- sessions at random ---- */

#define WEAK_IDS 32
static _Atomic uint64_t weak_ids[WEAK_IDS];

static void *call_all_the_time(void *arg)
{
	uint64_t *calls = arg;

	while (!stop)
		for (unsigned i = 0; i < 64; i++, (*calls)++)
			call_one(i, *calls);
	return NULL;
}

static void touch_another(uint64_t *random)
{
	tw_session_weak weak = weak_ids[random_below(random, WEAK_IDS)];
	struct tw_session *session;
	uint64_t count;
	uint32_t flags;

	switch (random_below(random, 4)) {
	case 0: tw_session_destroy_weak(weak); return;
	case 1: tw_progress(); return;
	default:
		if (tw_session_lock(weak, &session) < 0)
			return;
		tw_trace_function(session, "race", "_", TW_ARITY_ANY,
				  random_below(random, 2) ? TW_MATCH_TRUE : TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT);
		tw_trace_call_count(session, "race", "f0", 2, &count);
		tw_trace_process_flags(session, TW_PID_NEW, &flags);
		CHECK(tw_session_name(session)[0]);
		tw_session_put(session);
	}
}

static void change_at_random(struct tw_session *session, uint64_t *random)
{
	static const char *const names[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
	bool is_transaction = random_below(random, 3) == 0 && tw_trace_begin() == 0;

	for (unsigned i = random_below(random, 4); i < 4; i++) {
		int result = tw_trace_function(session, "race", names[random_below(random, FUNCTIONS)], 2,
					       (enum tw_match)(random_below(random, 4)),
					       1 + (uint32_t)(random_below(random, 3)));

		CHECK(result == 1 || result == TW_EDEAD);
	}
	if (is_transaction)
		CHECK((random_below(random, 2) ? tw_trace_commit() : tw_trace_abort()) >= 0);
	if (random_below(random, 2))
		tw_trace_process(session, TW_PID_ALL, random_below(random, 3) != 0,
				 TW_FLAG_CALL |
					 (random_below(random, 4) == 0 ? TW_FLAG_STRICT_MONOTONIC_TIMESTAMP : 0));
}

/* No thread writes to it any more: nothing is committed, no thread holds a ring. */
static void check_silence(struct bed *bed)
{
	uint64_t before = 0, after = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
			CHECK(tw_rs_ring_state(&bed->rs, i) != TW_RB_LIVE &&
			      tw_rs_ring_state(&bed->rs, i) != TW_RB_CLAIMED);
			*(pass ? &after : &before) += tw_rb_committed(tw_rs_ring(&bed->rs, i));
		}
		sched_yield();
	}
	CHECK(before == after);
}

static void *sessions_at_random(void *arg)
{
	uint64_t random = seed + (uintptr_t)arg * 7919;
	struct bed *bed = malloc(sizeof *bed);

	while (!is_time()) {
		const struct tw_rs_options options = {.ring_bytes = 1 << 16,
						      .cap_bytes = 1 << 20,
						      .has_fixed_rings = true};
		bool has_rings = random_below(&random, 3);
		uint32_t image;

		memset(bed, 0, sizeof *bed);
		if (has_rings) {
			CHECK(tw_rs_create(&bed->rs, &options) == 0 && tw_rs_image_claim(&bed->rs, &image) == 0);
			CHECK(tw_session_make("random", &bed->rs, &bed->session) == 0);
		} else {
			CHECK(tw_session_create("random", NULL, &bed->session) == 0);
		}
		weak_ids[random_below(&random, WEAK_IDS)] = tw_session_weak_of(bed->session);
		for (unsigned i = random_below(&random, 6); i < 6; i++) {
			change_at_random(bed->session, &random);
			touch_another(&random);
			if (has_rings)
				count_events(bed);
		}
		if (has_rings || random_below(&random, 2)) {
			CHECK(tw_session_destroy(bed->session) >= 0);
			if (has_rings)
				check_silence(bed);
		}
		tw_session_put(bed->session);
		if (has_rings)
			tw_rs_destroy(&bed->rs);
	}
	free(bed);
	return NULL;
}

static void sessions_come_change_and_go(void **state)
{
	pthread_t control[4], callers[2];
	struct tw_session *all[TW_SESSIONS_MAX];
	uint64_t calls[2] = {0};

	start_clock();
	for (int i = 0; i < 2; i++)
		pthread_create(&callers[i], NULL, call_all_the_time, &calls[i]);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&control[i], NULL, sessions_at_random, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(control[i], NULL);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(callers[i], NULL);
	tw_progress();
	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(f[i].armed, 0);
	/* Every session slot is free again. */
	for (int i = 0; i < TW_SESSIONS_MAX; i++)
		assert_int_equal(tw_session_create("free", NULL, &all[i]), 0);
	for (int i = 0; i < TW_SESSIONS_MAX; i++)
		tw_session_put(all[i]);
	assert_int_equal(tw_progress(), TW_SESSIONS_MAX);
}

/* ---- the permit ---- */

#define TAKERS	       4
#define TURNS	       200 /* of each thread in a round */
#define ROUNDS_AT_MOST 50

static pthread_barrier_t all_are_there;
static _Atomic unsigned had_enough;
static uint64_t all_turns; /* guarded by the permit */

/* Continues until all threads had their turns. */
static void *take_and_give(void *unused)
{
	pthread_barrier_wait(&all_are_there);
	for (unsigned turns = 1; had_enough < TAKERS; turns++) {
		CHECK(tw_trace_begin() == 0);
		sched_yield();
		all_turns++;
		CHECK(tw_trace_abort() == 0);
		had_enough += turns == TURNS;
	}
	return NULL;
}

/* The number of turns until each thread had its own. */
static uint64_t take_turns(void)
{
	pthread_t threads[TAKERS];

	all_turns = 0;
	had_enough = 0;
	pthread_barrier_init(&all_are_there, NULL, TAKERS);
	for (int i = 0; i < TAKERS; i++)
		pthread_create(&threads[i], NULL, take_and_give, NULL);
	for (int i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_are_there);
	return all_turns;
}

/*
 * The permit is granted in order of arrival: no thread has many turns before all had theirs.  But a thread that is not
 * scheduled does not wait for the permit, and misses thousands, on a busy machine in most rounds.  An unfair lock gives
 * one thread nearly all turns in every round.
 */
static void the_permit_is_granted_in_order(void **state)
{
	uint64_t turns = UINT64_MAX;

	for (int round = 0; round < ROUNDS_AT_MOST && turns > TAKERS * TURNS * 3 / 2; round++)
		turns = take_turns();
	assert_true(turns <= TAKERS * TURNS * 3 / 2);
}

/* ---- waiting for space ---- */

static void *call_for_ever(void *arg)
{
	uint64_t *calls = arg;

	while (!stop)
		call_one(0, (*calls)++);
	return NULL;
}

static void a_sleeping_producer_lets_its_session_go(void **state)
{
	uint64_t calls = 0, random = seed;
	pthread_t caller;

	start_clock();
	pthread_create(&caller, NULL, call_for_ever, &calls);
	do {
		struct account *a = open_account(TW_RB_BLOCK, 1 << 16);
		uint64_t before, nap = random_below(&random, 8000);

		/* The ring holds 2,048 records: the thread sleeps most of the time. */
		usleep((unsigned)nap);
		tw_rs_heartbeat(&a->bed.rs);
		if (random_below(&random, 2))
			drain(a, false);
		before = tw_clock_monotonic_ns();
		CHECK(tw_session_destroy(a->bed.session) == 1);
		CHECK(tw_clock_monotonic_ns() - before < UINT64_C(60000000000));
		check_silence(&a->bed);
		tw_session_put(a->bed.session);
		tw_rs_destroy(&a->bed.rs);
		free(a);
	} while (!is_time());
	stop = true;
	pthread_join(caller, NULL);
}

/* ---- threads that end ---- */

/* Destructors make calls in every round of destructors; in the last ones the thread sanitizer has already shut down. */
#define ROUNDS (UNDER_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS)
static pthread_key_t key;

static void on_end(void *value)
{
	call_one(1, (uintptr_t)value);
	if ((uintptr_t)value < ROUNDS)
		pthread_setspecific(key, (void *)((uintptr_t)value + 1));
}

static void *live_shortly(void *arg)
{
	if (arg)
		pthread_setspecific(key, (void *)1);
	for (unsigned i = 0; i < 10; i++)
		call_one(i, i);
	return NULL;
}

static void short_threads_lose_nothing_unseen(void **state)
{
	struct account *a = open_account(TW_RB_DROP, 1 << 16);
	uint64_t calls = 0, threads = 0;

	tw_hit_host.pinned_rs = &a->bed.rs;
	tw_hit_host.pinned_session = a->bed.session->slot;
	pthread_key_create(&key, on_end);
	start_clock();
	do {
		pthread_t t[4];

		for (uintptr_t i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, live_shortly, (void *)(i % 2));
		drain(a, true);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		calls += 4 * 10 + 2 * ROUNDS;
		threads += 4;
	} while (!is_time() || threads < 400);
	pthread_key_delete(key);
	tw_session_destroy(a->bed.session);
	tw_hit_host.pinned_rs = NULL;
	close_account(a, calls);
}

/* Ended by bare system calls, inside or outside hits: no later thread gets anything of theirs. */
static void *end_barely(void *arg)
{
	*(_Atomic pid_t *)arg = (pid_t)syscall(SYS_gettid);
	for (unsigned i = 0; i < 5; i++)
		call_one(i, i);
	syscall(SYS_exit, 0);
	return NULL;
}

/* They cannot be joined. */
static void wait_until_gone(const _Atomic pid_t *id)
{
	while (!*id || syscall(SYS_tgkill, getpid(), *id, 0) == 0)
		usleep(100);
}

static void threads_without_a_farewell_are_found(void **state)
{
	static _Atomic pid_t ids[20];
	struct account *a;

	SKIP_IF(IS_SANITIZED);
	a = open_account(TW_RB_DROP, 1 << 16);
	for (int round = 0; round < 20; round++) {
		pthread_t t;

		pthread_create(&t, NULL, end_barely, &ids[round]);
		usleep(2000);
		drain(a, true);
		pthread_detach(t);
	}
	for (int round = 0; round < 20; round++)
		wait_until_gone(&ids[round]);
	drain(a, true);
	close_account(a, 100);
}

/* ---- cancellation ---- */

static void *call_until_cancelled(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (uint64_t i = 0;; i++)
		call_one((unsigned)i, i);
	return NULL;
}

static void cancelled_threads_leave_whole_streams(void **state)
{
	struct account *a;
	uint64_t random = seed;

	SKIP_IF(IS_SANITIZED);
	a = open_account(TW_RB_DROP, 1 << 16);
	start_clock();
	do {
		pthread_t t[3];

		for (int i = 0; i < 3; i++)
			pthread_create(&t[i], NULL, call_until_cancelled, NULL);
		/* Every second time while they join and claim their rings. */
		usleep((unsigned)(random_word(&random) % (random_below(&random, 2) ? 100 : 1500)));
		for (int i = 0; i < 3; i++)
			pthread_cancel(t[i]);
		drain(a, true);
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		drain(a, true);
	} while (!is_time());
	CHECK(tw_session_destroy(a->bed.session) == 1);
	check_silence(&a->bed);
	tw_session_put(a->bed.session);
	tw_rs_destroy(&a->bed.rs);
	free(a);
}

/* ---- fork ---- */

#define CHILD_BIT (UINT64_C(1) << 62)

static void fork_once(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		alarm(120);
		for (unsigned i = 0; i < 200; i++)
			call_one(i, CHILD_BIT | i);
		_exit(42);
	}
	if (child < 0)
		return;
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void *call_and_fork(void *arg)
{
	uint64_t *calls = arg;

	while (!stop) {
		for (unsigned i = 0; i < 500; i++, (*calls)++)
			call_one(i, *calls);
		fork_once();
	}
	return NULL;
}

static void *change_all_the_time(void *arg)
{
	while (!stop) {
		struct tw_session *session;

		CHECK(tw_session_create("beside", NULL, &session) == 0);
		tw_trace_function(session, "race", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
		tw_session_destroy(session);
		tw_session_put(session);
	}
	return NULL;
}

static void children_are_silent_under_load(void **state)
{
	struct account *a;
	pthread_t t[3], changer;
	uint64_t calls[3] = {0};

	SKIP_IF(IS_SANITIZED);
	a = open_account(TW_RB_DROP, 1 << 18);
	a->forbidden = CHILD_BIT;
	start_clock();
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, call_and_fork, &calls[i]);
	pthread_create(&changer, NULL, change_all_the_time, NULL);
	while (!is_time())
		drain(a, true);
	stop = true;
	pthread_join(changer, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	close_account(a, calls[0] + calls[1] + calls[2]);
}

/* ---- signals ---- */

static __thread uint64_t handled;

static void on_timer(int number)
{
	call_one((unsigned)handled, handled);
	handled++;
}

static void *call_in_a_storm(void *arg)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	const struct itimerspec every = {{0, 50000}, {0, 50000}};
	uint64_t *calls = arg;
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	while (!stop)
		for (unsigned i = 0; i < 64; i++, (*calls)++)
			call_one(i, *calls);
	timer_delete(timer);
	*calls += handled;
	return NULL;
}

static void many_signals_are_accounted_for(void **state)
{
	const struct sigaction action = {.sa_handler = on_timer};
	struct account *a;
	uint64_t calls[4] = {0};
	pthread_t t[4];

	SKIP_IF(UNDER_TSAN);
	a = open_account(TW_RB_DROP, 1 << 20);
	sigaction(SIGRTMIN, &action, NULL);
	start_clock();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, call_in_a_storm, &calls[i]);
	while (!is_time())
		drain(a, true);
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	close_account(a, calls[0] + calls[1] + calls[2] + calls[3]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_come_change_and_go),
		cmocka_unit_test(the_permit_is_granted_in_order),
		cmocka_unit_test(a_sleeping_producer_lets_its_session_go),
		cmocka_unit_test(short_threads_lose_nothing_unseen),
		cmocka_unit_test(threads_without_a_farewell_are_found),
		cmocka_unit_test(cancelled_threads_leave_whole_streams),
		cmocka_unit_test(children_are_silent_under_load),
		cmocka_unit_test(many_signals_are_accounted_for),
	};

	seed = getenv("TW_RACE_SEED") ? strtoull(getenv("TW_RACE_SEED"), NULL, 0) : tw_clock_monotonic_ns();
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&f[i]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
