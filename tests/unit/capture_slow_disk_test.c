/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    While a slow disk writes a block, the rings are still drained, and the gathered blocks become one write.
 *	   Memory returns to the producers only when its events are in the file; a write that fails, anywhere in the
 *	   queue, loses nothing and stores nothing twice; a disk that does not respond is no progress.
 * Method  A recorder whose first write takes a few milliseconds, and threads (pthread_create) that fill its rings; the
 *	   writes of its queue's thread wait at a gate until the test opens it, or fail.  Only the slow first write
 *	   depends on the clock.
 */
#include "capture_producers.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t gate;
static pthread_t recorder_thread;
static bool was_slow;
static unsigned arrived, queue_writes, queue_pieces, failing_write;
static int failing_errno;

static ssize_t slow_write(int fd, const struct iovec *pieces, int count, off_t offset)
{
	struct timespec end;
	bool fails;

	if (pthread_equal(pthread_self(), recorder_thread)) {
		if (!was_slow)
			usleep(4000);
		was_slow = true;
		return pwritev(fd, pieces, count, offset);
	}
	pthread_mutex_lock(&mutex);
	arrived++;
	pthread_mutex_unlock(&mutex);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	while (sem_timedwait(&gate, &end) && errno == EINTR)
		;
	pthread_mutex_lock(&mutex);
	queue_writes++;
	queue_pieces += (unsigned)count;
	fails = queue_writes == failing_write;
	pthread_mutex_unlock(&mutex);
	if (!fails)
		return pwritev(fd, pieces, count, offset);
	/* A part of it is written. */
	if (pwrite(fd, pieces[0].iov_base, pieces[0].iov_len / 2, offset) < 0)
		return -1;
	errno = failing_errno;
	return -1;
}

static const struct tw_segment_io slow_disk = {slow_write, fdatasync};

static struct tw_recorder *begin(struct tw_recorder_options *options, struct program *program)
{
	struct tw_recorder *recorder = begin_recording(options);

	recorder_thread = pthread_self();
	was_slow = false;
	arrived = queue_writes = queue_pieces = failing_write = 0;
	sem_init(&gate, 0, 0);
	tw_recorder_set_io(recorder, &slow_disk);
	begin_program(program, tw_recorder_ring_set(recorder), 10);
	return recorder;
}

/* The queue's thread has come to the gate so often, and waits there: further blocks gather behind it. */
static void await_writes(unsigned count)
{
	bool has_come = false;

	while (!has_come) {
		usleep(100);
		pthread_mutex_lock(&mutex);
		has_come = arrived >= count;
		pthread_mutex_unlock(&mutex);
	}
}

static void open_gate(void)
{
	for (int i = 0; i < 1000; i++)
		sem_post(&gate);
}

/* Enough that a round takes them out of a ring of any size, or of the smallest: 32 bytes each. */
enum { ROUND_EVENTS = 4200, SMALL_ROUND_EVENTS = 1100 };

static void check_capture(uint64_t calls, uint64_t lost)
{
	struct account account = {0};
	struct tw_capture *capture = open_capture();
	struct tw_capture_info info;

	tw_capture_info(capture, &info);
	assert_true(info.is_complete);
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, calls);
	assert_int_equal(account.lost, lost);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* Tries `count` events; gives how many were stored in the ring. */
static uint64_t emit_some(struct tw_rb_producer *producer, unsigned count, uint64_t *emitted)
{
	uint64_t before = *emitted;

	for (unsigned i = 0; i < count; i++)
		*emitted += emit_call(producer, 1, *emitted, with_noise(0, *emitted));
	return *emitted - before;
}

static void gathered_blocks_are_one_write(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 4 << 20};
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder = begin(&options, &program);
	struct tw_rs *rs = tw_recorder_ring_set(recorder);
	uint64_t emitted = 0, beat_ns;

	assert_true(begin_thread(&program, &producer, 1));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(emit_some(&producer, ROUND_EVENTS, &emitted), ROUND_EVENTS);
		tw_recorder_poll(recorder, 0);
	}
	tw_recorder_stats(recorder, &stats);
	assert_int_equal(stats.events, 0);
	/*
	 * A round while the disk does not respond is no progress: a thread that waits for space gives up after a
	 * second.
	 */
	beat_ns = tw_rs_beat(rs);
	emit_some(&producer, ROUND_EVENTS, &emitted);
	tw_recorder_poll(recorder, 0);
	assert_int_equal(tw_rs_beat(rs), beat_ns);
	/* Nothing was freed: the ring takes its capacity, and not one event more. */
	emit_some(&producer, 200000, &emitted);
	assert_true(emitted <= (4 << 20) / 32);
	open_gate();
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, emitted);
	assert_int_equal(stats.lost[TW_LOST_FULL], 21 * ROUND_EVENTS + 200000 - emitted);
	assert_in_range(queue_writes, 2, 9);
	assert_true(queue_pieces >= 20);
	check_capture(stats.events, stats.lost[TW_LOST_FULL]);
}

/*
 * The first block of several is in the file, the others are not: the ring's tail moves to the end of that block and no
 * further, whether the ring was read to its end meanwhile or not.
 */
static void memory_of_queued_blocks_is_kept(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 4 << 20};
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder = begin(&options, &program);
	uint64_t emitted = 0, stored = 0, tail_pos, first_pos;

	assert_true(begin_thread(&program, &producer, 1));
	/* begin_thread() writes nothing, so each record of the ring has 32 bytes. */
	first_pos = producer.pos;
	emit_some(&producer, ROUND_EVENTS, &emitted);
	tw_recorder_poll(recorder, 0);
	await_writes(1);
	for (int i = 0; i < 3; i++) {
		emit_some(&producer, ROUND_EVENTS, &emitted);
		tw_recorder_poll(recorder, 0);
	}
	/* RELAXED test.tail: the recorder is this thread. */
	assert_int_equal(tw_load_relaxed(&producer.shared->tail_pos), first_pos);
	sem_post(&gate);
	await_writes(2);
	while (!stored) {
		tw_recorder_poll(recorder, 1000000);
		tw_recorder_stats(recorder, &stats);
		stored = stats.events;
	}
	assert_true(stored < emitted);
	/* RELAXED test.tail: as above. */
	tail_pos = tw_load_relaxed(&producer.shared->tail_pos);
	assert_int_equal(tail_pos - first_pos, stored * 32);
	open_gate();
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, emitted);
	check_capture(emitted, 0);
}

/* A queue of several blocks, from rings that one thread grew through; then the disk refuses one. */
static void fail_with(int error, unsigned write)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 20};
	struct tw_rs_claim who = {.scheduler_id = 1, .tracee_id = 1};
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder = begin(&options, &program);
	uint64_t emitted = 0;

	failing_write = write;
	failing_errno = error;
	assert_true(tw_rs_ring_claim(program.rs, &who, &producer));
	do {
		/* Up to its capacity: beyond it the producer would wait. */
		while (tw_rs_ring_populate(program.rs, &producer, true))
			;
		while (producer.pos <= producer.shared->first_pos + producer.mask)
			emit_some(&producer, 1, &emitted);
		tw_recorder_poll(recorder, 0);
		tw_recorder_poll(recorder, 0);
		await_writes(1);
	} while (tw_rs_ring_grow(program.rs, &producer));
	tw_recorder_stats(recorder, &stats);
	assert_int_equal(stats.events, 0);
	open_gate();
	while (stats.events < emitted) {
		tw_recorder_poll(recorder, 1000000);
		tw_recorder_stats(recorder, &stats);
	}
	assert_true(stats.write_errors > 0);
	emit_some(&producer, ROUND_EVENTS, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, emitted);
	assert_int_equal(stats.unstored, 0);
	assert_true(stats.segments == (error == EIO ? 2 : 1));
	check_capture(emitted, stats.lost[TW_LOST_FULL]);
}

static void a_failed_write_is_repeated(void **state)
{
	fail_with(ENOSPC, 1);
	fail_with(ENOSPC, 2);
	fail_with(EIO, 1);
	fail_with(EIO, 2);
}

/* The thread has ended, and its ring is not reused yet. */
static void an_ended_ring_is_kept_until_it_is_written(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16};
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder = begin(&options, &program);
	uint64_t emitted = 0;

	assert_true(begin_thread(&program, &producer, 1));
	emit_some(&producer, SMALL_ROUND_EVENTS, &emitted);
	tw_recorder_poll(recorder, 0);
	tw_rs_ring_end(program.rs, &producer);
	for (int i = 0; i < 5; i++)
		tw_recorder_poll(recorder, 0);
	assert_int_equal(tw_rs_ring_state(program.rs, 0), TW_RB_ENDED);
	open_gate();
	while (tw_rs_ring_state(program.rs, 0) == TW_RB_ENDED)
		tw_recorder_poll(recorder, 1000000);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, emitted);
	check_capture(emitted, 0);
}

/* Small segments, and threads that end while their blocks are in the queue. */
static void many_threads_and_segments(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18,
					      .policy = TW_RECORDER_BLOCK,
					      .segment_bytes = 1 << 17};
	struct tw_recorder_stats stats;
	struct program program;
	struct tw_recorder *recorder = begin(&options, &program);
	uint64_t emitted;

	open_gate();
	produce_with(recorder, &program, 4, 30000, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(emitted, 120000);
	assert_int_equal(stats.events, 120000);
	assert_true(stats.segments > 3);
	assert_true(queue_writes > 0);
	check_capture(120000, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gathered_blocks_are_one_write),
		cmocka_unit_test(memory_of_queued_blocks_is_kept),
		cmocka_unit_test(a_failed_write_is_repeated),
		cmocka_unit_test(an_ended_ring_is_kept_until_it_is_written),
		cmocka_unit_test(many_threads_and_segments),
	};

	return RUN_IN_DIRECTORY(tests);
}
