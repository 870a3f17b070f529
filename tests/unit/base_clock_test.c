/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A clock is taken over from another process, or chosen, once; pauses are converted to ticks without waiting; the
 *	rate is measured.  Words of this process are read if readable, and are 0 if not.  The processor's description of
 *	its vector registers is accepted if sound, and nothing else.  A snapshot relates clocks of one moment, even if it is
 *	interrupted between two of its reads.
 * Method	Each choice in a child process that has not chosen yet.  Pages with holes between them.  Snapshots below a
 *	timer whose handler takes 20 us: none may be off by as much.
 */
#include "base/cacheline.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static bool in_a_child(bool (*body)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(!body());
	return waitpid(child, &status, 0) == child && status == 0;
}

static bool takes_over(void)
{
	tw_clock_init_as(7);
	if (tw_clock_source() != TW_CLOCK_UNKNOWN)
		return false;
	tw_clock_init_as(TW_CLOCK_MONOTONIC);
	tw_clock_init_as(TW_CLOCK_TSC);
	tw_clock_init();
	return tw_clock_source() == TW_CLOCK_MONOTONIC && tw_clock_ticks_per_second() == 1000000000 &&
	       tw_clock_ticks_of_us(3) == 3000;
}

static bool chooses(void)
{
	enum tw_clock_source chosen;

	tw_clock_init();
	chosen = tw_clock_source();
	tw_clock_init_as(TW_CLOCK_MONOTONIC);
	return chosen != TW_CLOCK_UNKNOWN && tw_clock_source() == chosen;
}

static void a_source_is_chosen_once(void **state)
{
	assert_true(in_a_child(takes_over));
	assert_true(in_a_child(chooses));
}

/* The rough rate is within a factor of two, however early; where ticks are no nanoseconds, after 10 us. */
static void pauses_are_told_roughly(void **state)
{
	uint64_t begun, rate, told;

	tw_clock_init();
	for (begun = tw_clock_monotonic_ns(); tw_clock_monotonic_ns() - begun < 20000;)
		;
	told = tw_clock_ticks_of_us(1000);
	rate = tw_clock_ticks_per_second();
	assert_true(told > rate / 2000 && told < rate / 500);
	assert_int_equal(tw_clock_ticks_per_second(), rate);
	assert_int_equal(tw_clock_ticks_of_us(1000), rate / 1000000 * 1000);
}

static void words_are_read_where_they_can_be(void **state)
{
	uintptr_t addresses[TW_SYS_WORDS_MAX];
	uint64_t values[TW_SYS_WORDS_MAX];
	uint64_t *pages = mmap(NULL, 4 * TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t page_words = TW_PAGE_BYTES / sizeof *pages;

	assert_ptr_not_equal(pages, MAP_FAILED);
	for (size_t i = 0; i < 4 * page_words; i++)
		pages[i] = i + 1;
	munmap(pages + page_words, TW_PAGE_BYTES);
	mprotect(pages + 3 * page_words, TW_PAGE_BYTES, PROT_NONE);
	/* Across page borders: readable, hole, readable, forbidden. */
	for (size_t i = 0; i < TW_SYS_WORDS_MAX; i++)
		addresses[i] = (uintptr_t)(pages + i % 4 * page_words + i);
	tw_sys_read_own_words(addresses, TW_SYS_WORDS_MAX, values);
	for (size_t i = 0; i < TW_SYS_WORDS_MAX; i++)
		assert_int_equal(values[i], i % 2 ? 0 : i % 4 * page_words + i + 1);
	/* A hole in front, and no other page. */
	tw_sys_read_own_words(addresses + 1, 2, values);
	assert_true(values[0] == 0 && values[1] == 2 * page_words + 3);
	tw_sys_read_own_words(addresses + 1, 1, values);
	assert_int_equal(values[0], 0);
	munmap(pages, TW_PAGE_BYTES);
	munmap(pages + 2 * page_words, 2 * TW_PAGE_BYTES);
}

static void sizes_of_vector_registers_are_sound(void **state)
{
	static const struct tw_vectors wrong[] = {{0, 0}, {575, 3}, {5000, 3}, {832, 0x203}, {832, 4}};
	struct tw_vectors measured;

	tw_vectors_measure(&measured);
	/* No vector registers without XSAVE. */
	assert_true(!measured.bytes || tw_vectors_are_sound(&measured));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(tw_vectors_are_sound(&wrong[i]));
}

static void interrupt_20_us(int number)
{
	uint64_t begin = tw_clock_monotonic_ns();

	(void)number;
	while (tw_clock_monotonic_ns() - begin < 20000)
		;
}

static void a_snapshot_is_of_one_moment(void **state)
{
	const struct sigaction action = {.sa_handler = interrupt_20_us, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct tw_clock_snapshot snapshot;
	int64_t before = 0, offset;
	unsigned jumps = 0;

	tw_clock_init();
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; i < 100000; i++) {
		tw_clock_snapshot(&snapshot);
		offset = (int64_t)(snapshot.realtime_ns - snapshot.monotonic_ns);
		jumps += i && llabs(offset - before) > 10000;
		before = offset;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	/* The system's clock may be set once; a bad snapshot jumps there and back. */
	assert_true(jumps <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_is_chosen_once),
		cmocka_unit_test(pauses_are_told_roughly),
		cmocka_unit_test(words_are_read_where_they_can_be),
		cmocka_unit_test(sizes_of_vector_registers_are_sound),
		cmocka_unit_test(a_snapshot_is_of_one_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
