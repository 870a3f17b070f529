/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A stream is read while it is written, in order, each event without another one after it; the tracer ends with its
 *		reader; a reader that stops blocks no thread; whatever the bytes are, a reader survives them.
 * Method	A thread that calls, a session that writes to pipes, sockets and files, and readers in the same program. A thread
 *		that waits gives up its processor, which the kernel counts; no time decides.
 */
#include "sanitized_help.h"
#include "tracewheel/capture.h"
#include "tracewheel/consumer.h"
#include "tracewheel/tracewheel.h"
#include "tests/common/random.h"
#include "tests/common/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
/* Longer than any operation takes on the slowest machine. */
#define HANG_NS (120 * SECOND)

static struct tw_declared_function step = TW_DECLARED_FUNCTION("stream", "step", 1);
static struct tw_session *session;

static void open_stream(int fd, enum tw_on_full on_full)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_STREAM,
				   .stream_fd = fd,
				   .on_full = on_full,
				   .ring_bytes = 64 << 10};

	/* Linked in, and so found by the session. */
	assert_int_not_equal((uintptr_t)tw_recorder_create, 0);
	tw_function_declare(&step);
	assert_int_equal(tw_session_create("stream", &tracer, &session), 0);
	assert_int_equal(tw_trace_function(session, "stream", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_true(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP) > 0);
}

static void close_stream(void)
{
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
}

/* ---- reading ---- */

struct reader {
	int fd;
	_Atomic uint64_t count;
	_Atomic uint64_t lost;
	uint64_t last;
	bool is_out_of_order;
	pthread_t thread;
};

static void read_capture(struct reader *reader, struct tw_capture *capture)
{
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	int64_t count;

	if (tw_capture_events_create(capture, NULL, &events) == 0) {
		while ((count = tw_capture_events_next(events, &batch)) > 0) {
			for (int64_t i = 0; i < count; i++) {
				if (batch[i].kind == TW_CAPTURE_LOSS) {
					reader->lost += tw_capture_event_loss(&batch[i])->lost[TW_LOST_FULL];
					continue;
				}
				reader->is_out_of_order |= batch[i].payload[0] <= reader->last;
				reader->last = batch[i].payload[0];
				reader->count++;
			}
		}
		tw_capture_events_destroy(events);
	}
}

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	struct tw_capture *capture;

	if (tw_capture_open_stream(reader->fd, &capture) == 0) {
		read_capture(reader, capture);
		tw_capture_close(capture);
	}
	return NULL;
}

static int count_records(void *context, const struct tw_capture_batch *batch)
{
	*(uint64_t *)context += batch->records;
	return 0;
}

/* The same for a stream in a file: twice by events, and by blocks. */
static bool read_file(int fd, struct reader *reader)
{
	struct reader again = {0};
	struct tw_capture_info info;
	struct tw_capture *capture;
	uint64_t scanned = 0;
	bool is_complete;

	if (tw_capture_open_stream_file(fd, NULL, &capture))
		return false;
	read_capture(reader, capture);
	read_capture(&again, capture);
	assert_int_equal(again.count, reader->count);
	assert_int_equal(tw_capture_scan(capture, NULL, count_records, &scanned), 0);
	assert_true(scanned >= reader->count);
	tw_capture_info(capture, &info);
	is_complete = info.is_complete;
	assert_true(is_complete == !tw_capture_damage(capture, 0));
	tw_capture_close(capture);
	return is_complete;
}

static void wait_for(const struct reader *reader, uint64_t count)
{
	uint64_t until = now_ns() + HANG_NS;

	while (atomic_load(&reader->count) + atomic_load(&reader->lost) < count && now_ns() < until)
		usleep(1000);
	assert_int_equal(atomic_load(&reader->count) + atomic_load(&reader->lost), count);
}

static void live(int writing, int reading)
{
	struct reader reader = {.fd = reading};
	uint64_t number = 0, reference;

	open_stream(writing, TW_ON_FULL_BLOCK);
	close(writing);
	pthread_create(&reader.thread, NULL, read_on, &reader);
	/* Each event is read before the next one happens: nothing but time can have written it. */
	for (unsigned round = 0; round < 5; round++) {
		tw_call1(&step, ++number);
		wait_for(&reader, number);
	}
	for (unsigned i = 0; i < test_rounds(50000, 5); i++)
		tw_call1(&step, ++number);
	assert_int_equal(tw_delivered(session, tw_process_self(), &reference), 0);
	assert_int_equal(tw_delivered_wait(session, reference, HANG_NS), 0);
	wait_for(&reader, number);
	tw_call1(&step, ++number);
	close_stream();
	pthread_join(reader.thread, NULL);
	close(reading);
	assert_int_equal(reader.count + reader.lost, number);
	assert_false(reader.is_out_of_order);
}

static void a_pipe_is_read_live(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	live(ends[1], ends[0]);
}

static void a_socket_is_read_live(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	live(ends[1], ends[0]);
}

/* ---- readers that go, and that stop ---- */

static void a_tracer_ends_with_its_reader(void **state)
{
	int ends[2];
	uint32_t flags = 1;
	uint64_t until = now_ns() + HANG_NS, reference;

	assert_int_equal(pipe(ends), 0);
	/* Otherwise it would end the program. */
	signal(SIGPIPE, SIG_DFL);
	open_stream(ends[1], TW_ON_FULL_BLOCK);
	close(ends[1]);
	close(ends[0]);
	while (flags && now_ns() < until) {
		tw_call1(&step, 1);
		assert_int_equal(tw_trace_process_flags(session, tw_process_self(), &flags), 0);
	}
	assert_int_equal(flags, 0);
	assert_int_equal(tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_process_flags(session, tw_process_self(), &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(tw_delivered(session, TW_PID_ALL, &reference), TW_EPIPE);
	for (unsigned i = 0; i < test_rounds(100000, 5); i++)
		tw_call1(&step, i);
	close_stream();
}

/* How often this thread has given up its processor by itself. */
static uint64_t pauses(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

/* block waits at most a second for a consumer without progress; destroying gives up on a reader soon. */
static void a_reader_that_stops_blocks_no_thread(void **state)
{
	enum { WAITS_MOST = 1000 };
	const uint64_t calls = test_rounds(300000, 5);
	uint64_t before, waits = 0;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	open_stream(ends[1], TW_ON_FULL_BLOCK);
	/* If each call waited, there would be as many waits as calls. */
	for (uint64_t i = 0; i < calls && waits < WAITS_MOST; i++) {
		before = pauses();
		tw_call1(&step, i * i * i);
		waits += pauses() > before;
	}
	printf("waits: %u\n", (unsigned)waits);
	assert_true(waits < WAITS_MOST);
	before = now_ns();
	close_stream();
	assert_true(now_ns() - before < HANG_NS);
	close(ends[0]);
	close(ends[1]);
}

/* Losses through a slow reader are reported in the stream: the sum is exact. */
static void losses_stand_in_the_stream(void **state)
{
	struct reader reader = {0};
	enum { CALLS = 200000 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	reader.fd = ends[0];
	open_stream(ends[1], TW_ON_FULL_DROP);
	close(ends[1]);
	for (uint64_t i = 1; i <= CALLS; i++)
		tw_call1(&step, i);
	pthread_create(&reader.thread, NULL, read_on, &reader);
	close_stream();
	pthread_join(reader.thread, NULL);
	close(ends[0]);
	assert_int_equal(reader.count + reader.lost, CALLS);
}

/* ---- hostile bytes ---- */

static uint64_t seed = 88172645463325252u;

static void a_reader_survives_any_bytes(void **state)
{
	int from = memfd_create("stream", 0), fd;
	static uint8_t bytes[1 << 20], broken[1 << 20];
	ssize_t length;
	struct reader reader, of_file;

	open_stream(from, TW_ON_FULL_BLOCK);
	for (uint64_t i = 1; i < 3000; i++) {
		tw_call1(&step, i);
		if (i % 1000 == 0)
			usleep(30000);
	}
	close_stream();
	length = pread(from, bytes, sizeof bytes, 0);
	assert_true(length > 1000 && length < (ssize_t)sizeof bytes);
	for (unsigned round = 0; round < test_rounds(400, 8); round++) {
		size_t used = (size_t)length;

		memcpy(broken, bytes, used);
		if (round % 4 == 1)
			used = random_below(&seed, used);
		for (unsigned i = 0; round % 4 > 1 && i < 1 + round % 8; i++)
			broken[random_below(&seed, used)] ^= (uint8_t)(1 << random_below(&seed, 8));
		fd = memfd_create("broken", 0);
		assert_int_equal(write(fd, broken, used), used);
		lseek(fd, 0, SEEK_SET);
		reader = (struct reader){.fd = fd};
		read_on(&reader);
		of_file = (struct reader){0};
		assert_true(read_file(fd, &of_file) == (round % 4 == 0) || round % 4 > 1);
		if (round % 4 == 0)
			assert_int_equal(reader.count, 2999);
		/* Both read the beginning of a stream; a file is also read after a damaged block. */
		assert_true(of_file.count >= reader.count);
		close(fd);
	}
	close(from);
}

/* A stream that lacks its last bytes is never taken for a whole one, also where it was cut between two blocks. */
static void every_cut_is_said(void **state)
{
	/* Blocks without data have 264 bytes, so that each of their ends is tried. */
	enum { TAIL_BYTES = 1200 };
	const off_t step_bytes = 8 * test_stride(11);
	int from = memfd_create("stream", 0);
	struct reader reader = {0};
	off_t length;

	open_stream(from, TW_ON_FULL_BLOCK);
	for (uint64_t i = 1; i < 100; i++)
		tw_call1(&step, i);
	close_stream();
	length = lseek(from, 0, SEEK_END);
	assert_true(length > TAIL_BYTES && read_file(from, &reader));
	for (off_t cut = length - step_bytes; cut > length - TAIL_BYTES; cut -= step_bytes) {
		struct tw_capture *capture;

		reader = (struct reader){0};
		assert_int_equal(ftruncate(from, cut), 0);
		if (read_file(from, &reader))
			fail_msg("a stream of %ld bytes is whole without the last %ld", (long)length,
				 (long)(length - cut));
		lseek(from, 0, SEEK_SET);
		assert_int_equal(tw_capture_open_stream(from, &capture), 0);
		read_capture(&reader, capture);
		assert_true(tw_capture_damage(capture, 0));
		tw_capture_close(capture);
	}
	close(from);
}

static void bad_descriptors_are_refused(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_STREAM, .stream_fd = -1};
	struct tw_capture *capture;
	struct tw_session *other;
	int ends[2];

	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
	assert_int_equal(pipe(ends), 0);
	tracer.stream_fd = ends[0];
	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
	tracer.stream_fd = ends[1];
	tracer.on_full = TW_ON_FULL_OVERWRITE;
	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
	assert_int_equal(tw_capture_open_stream_file(ends[0], NULL, &capture), TW_ENOTSUP);
	close(ends[0]);
	close(ends[1]);
	tracer.on_full = TW_ON_FULL_DROP;
	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_is_read_live),
		cmocka_unit_test(a_socket_is_read_live),
		cmocka_unit_test(a_tracer_ends_with_its_reader),
		cmocka_unit_test(a_reader_that_stops_blocks_no_thread),
		cmocka_unit_test(losses_stand_in_the_stream),
		cmocka_unit_test(a_reader_survives_any_bytes),
		cmocka_unit_test(every_cut_is_said),
		cmocka_unit_test(bad_descriptors_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
