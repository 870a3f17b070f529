/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: report --locks is correct: how often and how long each lock was waited for, which thread held it meanwhile, and
 * how long it was held; after a gap no unseen holder is blamed.
 *
 * Method: random plays of threads that take, try, read, give up and wait on conditions, by the rules of pthreads; the
 * player notes the holders of each lock at each moment, and sums up over every moment of every wait. A moment is longer than clocks
 * may differ, but in plays of that difference.
 */
#include "views_help.h"

#include "views/folds/locks.h"
#include "tools/report/report.h"
#include "tests/common/random.h"

#define THREADS 4
#define LOCKS	3 /* two mutexes, a rwlock */
#define MOMENTS 60000

static const char *const names[] = {"pthread_mutex_lock",    "pthread_mutex_trylock", "pthread_mutex_unlock",
				    "pthread_rwlock_wrlock", "pthread_rwlock_rdlock", "pthread_rwlock_unlock",
				    "pthread_cond_wait",     "pthread_cond_signal"};
enum { LOCK, TRY, UNLOCK, WRITE, READ, GIVE, WAIT, SIGNAL };

struct truth {
	uint64_t waits, wait_ns, taken, held_ns, busy;
	uint64_t pair_ns[THREADS][THREADS], pair_times[THREADS][THREADS]; /* waiter, holder */
};

static struct {
	struct maker *maker;
	uint64_t now; /* a moment */
	uint64_t moment_ns;
	struct {
		int lock; /* the wanted lock; -1: none */
		bool is_read, is_wanting, waits_for_signal, is_signalled;
		uint64_t since;
		unsigned holds[LOCKS]; /* 1: alone, 2: reads */
	} at[THREADS];
	/* The holders of each lock at each moment: a bit for each thread. */
	uint8_t held[LOCKS][MOMENTS];
	bool is_alone[LOCKS][MOMENTS]; /* one holder, which does not share it with readers */
	struct truth truth[LOCKS];
} play;

static uint64_t address_of(int lock)
{
	return 0x5000 + (uint64_t)lock * 64;
}

static void begin_play(void)
{
	const struct tw_def_image image = {.process_id = 1001, .program_bytes = 8, .command_bytes = 6, .host_bytes = 4};
	const struct tw_def_module module = {.module_id = 1,
					     .base_address = 0x1000,
					     .end_address = 0x2000,
					     .name_bytes = 4};
	static uint8_t bytes[1 << 16];
	uint32_t at = 0;

	memset(&play, 0, sizeof play);
	play.moment_ns = 1;
	play.maker = begin_maker();
	memset(bytes, 0, sizeof bytes);
	view_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof image, "/bin/appapp -xhost");
	view_definition(bytes, &at, TW_DEF_MODULE, &module, sizeof module, "libc");
	for (uint32_t i = 0; i < TW_COUNT_OF(names); i++) {
		const struct tw_def_function function = {.function_id = i,
							 .module_id = 1,
							 .arity = TW_DEF_ARITY_UNKNOWN,
							 .name_bytes = (uint16_t)strlen(names[i])};
		const struct tw_def_place place = {.place_id = i,
						   .function_id = i,
						   .kind = TW_PLACE_SLOT,
						   .caller_module_id = 1};

		view_definition(bytes, &at, TW_DEF_FUNCTION, &function, sizeof function, names[i]);
		view_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof place, "");
	}
	maker_definitions(play.maker, bytes, at, 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		view_switch(play.maker, i, 4000, i + 1, 1);
		play.at[i].lock = -1;
	}
}

static void call(uint32_t thread, uint32_t place, uint64_t a, uint64_t b)
{
	const uint64_t words[2] = {a, b};

	view_put(play.maker, &(struct view_event){thread, 5000 + play.now * play.moment_ns, TW_EVENT_CALL, 0, place},
		 words, 2);
}

static void returns(uint32_t thread, uint32_t place, uint64_t value)
{
	view_put(play.maker,
		 &(struct view_event){thread, 5000 + play.now * play.moment_ns, TW_EVENT_RETURN_FROM, 0, place}, &value,
		 1);
}

static bool is_free(int lock, bool is_read)
{
	for (uint32_t i = 0; i < THREADS; i++)
		if (play.at[i].holds[lock] == 1 || (play.at[i].holds[lock] && !is_read))
			return false;
	return true;
}

/*
 * Sums over each moment of a wait: the holder at that time, or the longest holder if several read. Readers do not wait for
 * readers.
 */
static void note_wait(uint32_t thread, int lock, const uint32_t *first)
{
	struct truth *truth = &play.truth[lock];
	bool was_blocked = false, had[THREADS] = {false};

	for (uint64_t t = play.at[thread].since; t < play.now; t++) {
		if (!play.held[lock][t] || (play.at[thread].is_read && !play.is_alone[lock][t]))
			continue;
		uint32_t holder = first[t];

		was_blocked = true;
		truth->pair_ns[thread][holder]++;
		truth->pair_times[thread][holder] += !had[holder];
		had[holder] = true;
	}
	truth->waits += was_blocked;
	truth->wait_ns += was_blocked ? play.now - play.at[thread].since : 0;
}

static uint32_t firsts[LOCKS][MOMENTS];

/* One moment passes. */
static void pass(void)
{
	for (int lock = 0; lock < LOCKS; lock++) {
		uint8_t held = 0;
		uint32_t first = play.now ? firsts[lock][play.now - 1] : 0;

		for (uint32_t i = 0; i < THREADS; i++) {
			held |= (uint8_t)((play.at[i].holds[lock] != 0) << i);
			play.is_alone[lock][play.now] |= play.at[i].holds[lock] == 1;
		}
		/* The oldest of its holders. */
		if (!(held >> first & 1) && held)
			first = (uint32_t)__builtin_ctz(held);
		play.held[lock][play.now] = held;
		firsts[lock][play.now] = first;
		play.truth[lock].held_ns += held != 0;
	}
	play.now++;
}

static void take(uint32_t thread, uint32_t place)
{
	int lock = play.at[thread].lock;

	returns(thread, place, 0);
	play.at[thread].is_wanting = false;
	play.at[thread].lock = -1;
	play.at[thread].holds[lock] = play.at[thread].is_read ? 2 : 1;
	play.truth[lock].taken++;
}

/* Holding no other lock, and while another thread can signal. */
static bool may_wait(uint32_t thread)
{
	bool is_signaller_there = false;

	for (uint32_t i = 0; i < THREADS; i++)
		is_signaller_there |= i != thread && !play.at[i].waits_for_signal;
	return is_signaller_there && !play.at[thread].holds[1] && !play.at[thread].holds[2];
}

/* A thread's next step; each takes at least a moment. */
static void step(uint32_t thread, uint64_t draw)
{
	int lock = (int)(draw % LOCKS);

	if (play.at[thread].waits_for_signal) {
		/* It returns with the mutex, when it was signalled and the mutex is free. */
		if (play.at[thread].is_signalled && is_free(0, false)) {
			play.at[thread].waits_for_signal = play.at[thread].is_signalled = false;
			returns(thread, WAIT, 0);
			play.at[thread].holds[0] = 1;
			play.truth[0].taken++;
		}
		return;
	}
	if (play.at[thread].is_wanting) {
		lock = play.at[thread].lock;
		if (is_free(lock, play.at[thread].is_read)) {
			note_wait(thread, lock, firsts[lock]);
			take(thread, lock < 2 ? LOCK : play.at[thread].is_read ? READ : WRITE);
		}
		return;
	}
	if (play.at[thread].holds[lock]) {
		if (lock == 0 && draw / 8 % 4 == 0 && may_wait(thread)) {
			call(thread, WAIT, 0x7000, address_of(0));
			play.at[thread].waits_for_signal = true;
		} else {
			call(thread, lock < 2 ? UNLOCK : GIVE, address_of(lock), 0);
			returns(thread, lock < 2 ? UNLOCK : GIVE, 0);
		}
		play.at[thread].holds[lock] = 0;
		return;
	}
	if (draw / 8 % 8 == 0) {
		call(thread, SIGNAL, 0x7000, 0);
		returns(thread, SIGNAL, 0);
		for (uint32_t i = 0; i < THREADS; i++)
			play.at[i].is_signalled |= play.at[i].waits_for_signal;
		return;
	}
	if (lock == 1 && draw / 8 % 8 == 1) {
		bool is = is_free(lock, false);

		call(thread, TRY, address_of(lock), 0);
		returns(thread, TRY, is ? 0 : 16);
		play.at[thread].holds[lock] = is;
		play.truth[lock].taken += is;
		play.truth[lock].busy += !is;
		return;
	}
	/* Always in this order: no thread waits forever. */
	for (int other = lock; other < LOCKS; other++)
		if (play.at[thread].holds[other])
			return;
	play.at[thread].lock = lock;
	play.at[thread].is_read = lock == 2 && draw / 64 % 2;
	play.at[thread].is_wanting = true;
	play.at[thread].since = play.now;
	call(thread, lock < 2 ? LOCK : play.at[thread].is_read ? READ : WRITE, address_of(lock), 0);
}

static void random_play(uint64_t seed, uint64_t moments)
{
	begin_play();
	play.moment_ns = TW_LOCK_SKEW_NS + 1;
	while (play.now < moments) {
		for (uint64_t i = 1 + random_below(&seed, 40); i && play.now < moments; i--)
			pass();
		step((uint32_t)(random_below(&seed, THREADS)), random_word(&seed));
	}
	end_maker(play.maker, true);
}

static const struct tw_lock_row *lock_at(const struct tw_locks *locks, uint64_t address)
{
	for (uint32_t i = 0; i < locks->count; i++)
		if (locks->locks[i].address == address)
			return &locks->locks[i];
	return NULL;
}

static uint32_t player_of(const struct tw_locks *locks, uint32_t thread)
{
	const struct tw_capture_stream *stream;

	for (uint32_t i = 0; (stream = tw_capture_stream(locks->capture, i)); i++)
		if (stream->thread == thread)
			return (uint32_t)stream->thread_id - 100;
	return THREADS;
}

static void compare(int number, const struct tw_locks *locks)
{
	const struct truth *truth = &play.truth[number];
	const struct tw_lock_row *lock = lock_at(locks, address_of(number));
	uint64_t held_ns = lock->held_ns, ns = 0, expected_ns = 0, each_ns = play.moment_ns;

	/* One that is held at the end is not counted yet. */
	if (lock->writer.thread != TW_LOCK_NONE || lock->reader_count)
		held_ns = truth->held_ns * each_ns;
	assert_int_equal(lock->taken, truth->taken);
	assert_int_equal(lock->busy, truth->busy);
	assert_int_equal(lock->waits, truth->waits);
	assert_int_equal(lock->wait_ns, truth->wait_ns * each_ns);
	assert_int_equal(held_ns, truth->held_ns * each_ns);
	for (uint32_t at = lock->pairs; at; at = locks->pairs[at - 1].next) {
		const struct tw_lock_pair *pair = &locks->pairs[at - 1];
		uint32_t waiter = player_of(locks, pair->waiter), holder = player_of(locks, pair->holder);

		ns += pair->ns;
		assert_true(waiter < THREADS && holder < THREADS);
		/* Several read at a time: only the sum is certain. */
		if (number < 2) {
			assert_int_equal(pair->ns, truth->pair_ns[waiter][holder] * each_ns);
			assert_int_equal(pair->times, truth->pair_times[waiter][holder]);
		}
	}
	for (uint32_t i = 0; i < THREADS; i++)
		for (uint32_t k = 0; k < THREADS; k++)
			expected_ns += truth->pair_ns[i][k] * each_ns;
	/* Threads that wait at the end have their pairs, but no finished waits yet. */
	assert_true(ns >= expected_ns);
	bool is_waiting = false;
	for (uint32_t i = 0; i < THREADS; i++)
		is_waiting |= play.at[i].is_wanting && play.at[i].lock == number;
	if (!is_waiting)
		assert_int_equal(ns, expected_ns);
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct tw_capture *capture;
		struct tw_locks locks = {0};
		const struct tw_capture_filter all = {0};

		random_play(seed * 104729, MOMENTS - 1);
		assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
		assert_int_equal(tw_locks_make(&locks, capture, &all), 0);
		for (int lock = 0; lock < LOCKS; lock++) {
			bool is_waiting = false;

			for (uint32_t i = 0; i < THREADS; i++)
				is_waiting |= play.at[i].is_wanting && play.at[i].lock == lock;
			if (!is_waiting)
				compare(lock, &locks);
		}
		assert_true(play.truth[0].waits > 5);
		tw_locks_free(&locks);
		tw_capture_close(capture);
	}
}

/* Thread 0 takes a lock, a loss of a thread stands behind the call of thread 2, and thread 2 takes the lock at 90,000. */
static void play_gap(uint32_t lossy, bool is_released)
{
	const uint64_t lost[6] = {5150, 3, 0, 0, 0, 0};

	begin_play();
	call(0, LOCK, address_of(0), 0);
	play.now = 10;
	returns(0, LOCK, 0);
	play.now = 160;
	call(2, LOCK, address_of(0), 0);
	play.now = 200;
	view_put(play.maker, &(struct view_event){lossy, 5000 + play.now, TW_EVENT_LOSS, 0, 0}, lost, 6);
	play.now = 80000;
	if (is_released)
		call(0, UNLOCK, address_of(0), 0);
	play.now = 90000;
	returns(2, LOCK, 0);
	end_maker(play.maker, true);
}

/* The holder's unlock was lost, before the call of thread 2: no thread is blamed, though the loss stands behind it. */
static void test_gap(void **state)
{
	play_gap(0, false);
	setenv("COLUMNS", "80", 1);
	char *text = view_answer(tw_tool_report, "--locks", 0);
	assert_non_null(strstr(text, "In 1 gap 3 events were lost"));
	assert_non_null(strstr(text, "locks: 1 was used, 0 waited for"));
	assert_non_null(strstr(text, "slow calls without a known holder"));
	assert_null(strstr(text, "held it\n"));
	free(text);
	text = view_answer(tw_tool_report, "--locks --json", 0);
	assert_non_null(strstr(text, "\"gaps\": 1"));
	assert_non_null(strstr(text, "\"slow_calls\": 1"));
	free(text);
}

/* A loss of a third thread: the holder is still known. */
static void test_gap_of_another(void **state)
{
	play_gap(1, true);
	setenv("COLUMNS", "80", 1);
	char *text = view_answer(tw_tool_report, "--locks", 0);
	assert_non_null(strstr(text, "locks: 1 was used, 1 waited for, 1 time, 89.8 us in all"));
	assert_non_null(strstr(text, "79.8 us          1  102 while 100 held it"));
	free(text);
}

/*
 * The lost events begin with the stack of the call of thread 2, at its own time: its return and its unlock are among them, and what
 * returns later is another call.
 */
static void test_gap_of_stack(void **state)
{
	const struct tw_capture_filter all = {0};
	const uint64_t lost[6] = {6000, 9, 0, 0, 0, 0};
	struct tw_capture *capture;
	struct tw_locks locks = {0};

	begin_play();
	play.now = 1000;
	call(2, LOCK, address_of(0), 0);
	play.now = 4000;
	call(0, LOCK, address_of(0), 0);
	play.now = 5000;
	returns(0, LOCK, 0);
	play.now = 50000;
	call(0, UNLOCK, address_of(0), 0);
	returns(0, UNLOCK, 0);
	play.now = 80000;
	view_put(play.maker, &(struct view_event){2, 5000 + play.now, TW_EVENT_LOSS, 0, 0}, lost, 6);
	play.now = 90000;
	returns(2, LOCK, 0);
	end_maker(play.maker, true);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	assert_int_equal(tw_locks_make(&locks, capture, &all), 0);
	const struct tw_lock_row *lock = lock_at(&locks, address_of(0));
	assert_int_equal(lock->waits, 0);
	assert_int_equal(lock->slow, 0);
	assert_int_equal(lock->pairs, 0);
	assert_int_equal(lock->taken, 1);
	tw_locks_free(&locks);
	tw_capture_close(capture);
}

/* Thread 0 releases the lock so long after the call of thread 2, and thread 2 has it later. */
static void check_release(uint64_t after_ns, unsigned waits, uint64_t pair_ns)
{
	const struct tw_capture_filter all = {0};
	struct tw_capture *capture;
	struct tw_locks locks = {0};

	begin_play();
	call(0, LOCK, address_of(0), 0);
	play.now = 10;
	returns(0, LOCK, 0);
	play.now = 1000;
	call(2, LOCK, address_of(0), 0);
	play.now = 1000 + after_ns;
	call(0, UNLOCK, address_of(0), 0);
	returns(0, UNLOCK, 0);
	play.now = 2000;
	returns(2, LOCK, 0);
	end_maker(play.maker, true);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	assert_int_equal(tw_locks_make(&locks, capture, &all), 0);
	const struct tw_lock_row *lock = lock_at(&locks, address_of(0));
	assert_int_equal(lock->waits, waits);
	assert_int_equal(lock->pairs ? locks.pairs[lock->pairs - 1].ns : 0, pair_ns);
	tw_locks_free(&locks);
	tw_capture_close(capture);
}

/* Clocks of two processors may differ by so much: the lock may have been free. */
static void test_skew(void **state)
{
	check_release(TW_LOCK_SKEW_NS, 0, 0);
	check_release(TW_LOCK_SKEW_NS + 1, 1, TW_LOCK_SKEW_NS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_gap),
					   cmocka_unit_test(test_gap_of_another), cmocka_unit_test(test_gap_of_stack),
					   cmocka_unit_test(test_skew)};

	return RUN_IN_DIRECTORY(tests);
}
