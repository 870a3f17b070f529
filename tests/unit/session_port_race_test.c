/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Ports that threads open, use and close at once: each is closed once, each call makes its event or is refused, and no
 *	event belongs to another port, also where descriptors are reused at once.
 * Method	Threads without locks between them; the numbers of answers and of events in the rings are compared.
 */
#include "session_events.h"
#include "session/tracee.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS 3000

static struct bed one, two;
static tw_port a;

static int begin(void **state)
{
	struct tw_port_options options = {.driver = "echo"};

	open_bed(&one, "one");
	open_bed(&two, "two");
	tw_scheduler_declare();
	return tw_port_open(&options, &a);
}

static int end(void **state)
{
	tw_port_close(a, (struct tw_term){0});
	close_bed(&two);
	close_bed(&one);
	return 0;
}

/* The records of that kind in all rings. @is_port: by number, which tracees such records may belong to; NULL: any. */
static unsigned count_kind(struct bed *bed, unsigned kind, const uint8_t *is_port)
{
	unsigned seen = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(&bed->rs, i);
		uint32_t tracee = ring->tracee_id;
		uint64_t pos = ring->first_pos, stop;
		const uint8_t *at;
		int64_t bytes;

		for (; (bytes = tw_rb_peek(ring, pos, TW_BLOCK_RAW_BYTES_MAX, &at, &stop)) > 0; pos = stop) {
			for (int64_t b = 0; b < bytes;) {
				uint64_t head = ((const struct tw_rb_record *)(at + b))->head;

				if (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH)
					tracee = TW_RB_HEAD_ID(head);
				if (TW_RB_HEAD_KIND(head) == kind) {
					assert_true(!is_port || is_port[tracee % (1 << 16)]);
					seen++;
				}
				b += TW_RB_HEAD_BYTES(head);
			}
		}
	}
	return seen;
}

/* ---- closed beside calls ---- */

static tw_port shared[16];
static _Atomic unsigned made, refused;

static void *use(void *arg)
{
	for (unsigned i = 0; i < ROUNDS * 4; i++) {
		tw_port port = __atomic_load_n(&shared[i % 16], __ATOMIC_RELAXED);
		int error = tw_port_request(port, 1, TW_PORT_CLOSE, (struct tw_term){0});

		if (error)
			refused++;
		else
			made++;
	}
	return arg;
}

/*
 * Ports closed beside calls of other threads: each call makes its event or is refused, and no event belongs to another
 * port.
 */
static void ports_closed_beside_calls(void **state)
{
	struct tw_port_options options = {.driver = "x"};
	static uint8_t was_port[1 << 16];
	pthread_t threads[2];
	unsigned seen;

	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_RECEIVE);
	assert_int_equal(tw_trace_port(two.session, a, true, TW_FLAG_RECEIVE), 1);
	made = refused = 0;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		tw_port next = 0, before = shared[i % 16];
		struct tw_process *other;

		assert_int_equal(tw_port_open(&options, &next), 0);
		was_port[tw_port_number(next) % (1 << 16)] = 1;
		__atomic_store_n(&shared[i % 16], next, __ATOMIC_RELAXED);
		if (before)
			assert_int_equal(tw_port_close(before, (struct tw_term){0}), 0);
		/* The port's memory may belong to a process now. */
		assert_int_equal(tw_process_create("other", &other), 0);
		tw_process_exit(other);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(tw_port_close(shared[i], (struct tw_term){0}), 0);
	seen = count_kind(&one, TW_EVENT_RECEIVE, was_port);
	assert_int_equal(seen + count_lost(&one), made);
	assert_int_equal(made + refused, 2 * 4 * ROUNDS);
	memset(shared, 0, sizeof shared);
}

/* ---- descriptors reused at once ---- */

static _Atomic unsigned opened_by_fd, closed_by_owner, closed_before;

/* Half of the time the descriptor is closed first, as a program does that does not know of the order. */
static void *open_and_close(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		int fd = eventfd(0, 0);
		bool is_first = rand_r(&seed) % 2;
		tw_port port;

		assert_true(fd >= 0);
		assert_int_equal(tw_port_declare_fd(fd, NULL, &port), 0);
		opened_by_fd++;
		if (is_first)
			close(fd);
		if (tw_port_close(port, (struct tw_term){0}) == 0)
			closed_by_owner++;
		else
			closed_before++;
		/* Another thread's port is not taken for this one. */
		assert_int_equal(tw_port_close(port, (struct tw_term){0}), TW_EBADARG);
		if (!is_first) {
			assert_int_not_equal(tw_port_of_fd(fd), port);
			close(fd);
		}
	}
	return arg;
}

/* Each port is closed once: by its thread, or by the one that got its descriptor's number. */
static void line_82_descriptors_reused_by_another_thread(void **state)
{
	pthread_t threads[3];

	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS);
	opened_by_fd = closed_by_owner = closed_before = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, (void *)(uintptr_t)(i + 1)), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(opened_by_fd, 3 * ROUNDS);
	assert_int_equal(closed_by_owner + closed_before, opened_by_fd);
	assert_int_equal(count_kind(&one, TW_EVENT_OPEN, NULL) + count_kind(&one, TW_EVENT_CLOSED, NULL) +
				 count_lost(&one),
			 2 * opened_by_fd);
	for (int fd = 3; fd < 64; fd++)
		assert_int_equal(tw_port_of_fd(fd), 0);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_NEW, false, TW_FLAG_PORTS), 0);
	/* All are gone: the session has no port but the test's own. */
	assert_int_equal(tw_trace_port(one.session, TW_PORT_EXISTING, false, TW_FLAG_PORTS), 1);
}

static tw_port doomed[ROUNDS];

static void *close_all(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		if (tw_port_close(doomed[i], (struct tw_term){0}) == 0)
			closed_by_owner++;
	return arg;
}

static void closed_by_two_threads(void **state)
{
	struct tw_port_options options = {.driver = "x"};
	pthread_t threads[2];

	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS);
	closed_by_owner = 0;
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_int_equal(tw_port_open(&options, &doomed[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, close_all, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(closed_by_owner, ROUNDS);
	assert_int_equal(count_kind(&one, TW_EVENT_OPEN, NULL) + count_kind(&one, TW_EVENT_CLOSED, NULL) +
				 count_lost(&one),
			 2 * ROUNDS);
}

/* ---- closed by a thread that got the number without any order ---- */

static _Atomic uint64_t handed_over;

static void *close_and_open(void *arg)
{
	struct tw_port_options options = {.driver = "x"};

	for (unsigned i = 0; i < ROUNDS; i++) {
		tw_port port, own;

		while (!(port = atomic_load_explicit(&handed_over, memory_order_relaxed)))
			sched_yield();
		assert_int_equal(tw_port_close(port, (struct tw_term){0}), 0);
		/* This port gets the memory of the other. */
		assert_int_equal(tw_port_open(&options, &own), 0);
		assert_int_equal(tw_port_close(own, (struct tw_term){0}), 0);
		atomic_store_explicit(&handed_over, 0, memory_order_relaxed);
	}
	return arg;
}

/* The events of opening a port are over before its memory is another's, whichever way its number went. */
static void number_handed_over_without_order(void **state)
{
	struct tw_port_options options = {.driver = "x"};
	pthread_t thread;

	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS);
	assert_int_equal(pthread_create(&thread, NULL, close_and_open, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		tw_port port;

		assert_int_equal(tw_port_open(&options, &port), 0);
		atomic_store_explicit(&handed_over, port, memory_order_relaxed);
		while (atomic_load_explicit(&handed_over, memory_order_relaxed))
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(count_kind(&one, TW_EVENT_OPEN, NULL) + count_kind(&one, TW_EVENT_CLOSED, NULL) +
				 count_lost(&one),
			 4 * ROUNDS);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(ports_closed_beside_calls),
		CASE(line_82_descriptors_reused_by_another_thread),
		CASE(closed_by_two_threads),
		CASE(number_handed_over_without_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
