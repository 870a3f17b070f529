/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A program that copies pieces of its stacks away and back, as greenlets do, behaves as if its returns were not
 *         watched: each call returns to its own caller although another call used its slot meanwhile; calls that cannot
 *         be watched are counted, and no end is reported twice.
 * Method  Coroutines share the addresses of one stack, which is copied at each switch, at random; the result of each
 *         depends on its path through the calls.  A child without the precaution must fail.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "returns_help.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "traced_help.h"
#include "tests/common/random.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT	    8
#define STACK_BYTES 65536
#define DEPTH	    12
#define ROUNDS	    300

/* ---- hits and returns ---- */

static volatile uint64_t hits, opened, told;

REGULAR static const char *hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	tw_return_word kept[TW_RETURNS_WORDS] = {(uintptr_t)place, 1, 2, 3, 4, 5};
	const char *way = NULL;

	hits++;
	opened += tw_returns_open(slot, kept, false, false, &way);
	return way;
}

REGULAR static uintptr_t returned(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);
	uintptr_t back;

	if (!entry)
		return tw_returns_lost_address(slot);
	back = entry->return_address;
	told += tw_returns_count(entry);
	tw_returns_close(entry);
	return back;
}

/* ---- coroutines on one stack ---- */

static struct {
	ucontext_t context;
	bool was_started, has_ended;
	uint64_t result;
	char *copy;
} coroutines[COUNT];
static ucontext_t scheduler;
static char *stack;

static void yield(unsigned which)
{
	swapcontext(&coroutines[which].context, &scheduler);
}

/* Calls from different lines with the same slot; nothing yields if `which` is no coroutine. */
TRACED static uint64_t step(unsigned which, unsigned depth, uint64_t seed)
{
	uint64_t value;

	random_word(&seed);
	if (which < COUNT && (!depth || (seed >> 40 & 15) == 0))
		yield(which);
	if (!depth)
		return seed;
	switch (seed >> 60 & 3) {
	case 0: value = step(which, depth - 1, seed) * 3 + 1; break;
	case 1: value = step(which, depth - 1, seed ^ 5) + step(which, depth - 1 - (depth > 1), seed) * 7; break;
	case 2: value = step(which, depth - 1, seed + 9) ^ 0x55; break;
	default: value = step(which, depth - 1 - (depth > 1), seed) - 11; break;
	}
	__asm__ volatile("" : "+r"(value));
	return value;
}

static void run(int which)
{
	coroutines[which].result = step((unsigned)which, DEPTH, (uint64_t)which);
	coroutines[which].has_ended = true;
	setcontext(&scheduler);
}

/* The coroutine on the stack saves it, and another one restores its own. */
static void switch_to(int from, int to)
{
	if (from >= 0 && from != to)
		memcpy(coroutines[from].copy, stack, STACK_BYTES);
	if (!coroutines[to].was_started) {
		getcontext(&coroutines[to].context);
		coroutines[to].context.uc_stack.ss_sp = stack;
		coroutines[to].context.uc_stack.ss_size = STACK_BYTES;
		makecontext(&coroutines[to].context, (void (*)(void))run, 1, to);
		coroutines[to].was_started = true;
	} else if (from != to) {
		memcpy(stack, coroutines[to].copy, STACK_BYTES);
	}
	swapcontext(&scheduler, &coroutines[to].context);
}

static void run_all(uint64_t seed)
{
	int left = COUNT, last = -1;

	for (int i = 0; i < COUNT; i++)
		coroutines[i].was_started = coroutines[i].has_ended = false;
	while (left) {
		int to;

		random_word(&seed);
		to = (int)(seed >> 33) % COUNT;
		if (coroutines[to].has_ended)
			continue;
		switch_to(last, to);
		last = coroutines[to].has_ended ? -1 : to;
		left -= coroutines[to].has_ended;
	}
}

static int set_up(void **state)
{
	const char *reason;

	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || tw_returns_init(&reason))
		return -1;
	for (int i = 0; i < COUNT; i++)
		coroutines[i].copy = malloc(STACK_BYTES);
	tw_bp_trampoline_hit = hit;
	tw_bp_trampoline_return = returned;
	arm((uintptr_t)step);
	return 0;
}

static int tear_down(void **state)
{
	for (int i = 0; i < COUNT; i++)
		free(coroutines[i].copy);
	return munmap(stack, STACK_BYTES);
}

/* ---- cases ---- */

static void an_unknown_copying_program_goes_wrong(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		alarm(20);
		for (int i = 0; i < ROUNDS; i++) {
			run_all((uint64_t)i);
			for (int which = 0; which < COUNT; which++)
				if (coroutines[which].result != step(COUNT, DEPTH, (uint64_t)which))
					_exit(1);
		}
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
}

static void every_call_comes_back_to_its_caller(void **state)
{
	uint64_t right[COUNT];

	for (int i = 0; i < COUNT; i++)
		right[i] = step(COUNT, DEPTH, (uint64_t)i);
	assert_int_equal(told, opened);
	assert_int_equal(opened, hits);
	tw_returns_stacks_are_copied();
	for (int i = 0; i < ROUNDS; i++) {
		run_all((uint64_t)i);
		for (int which = 0; which < COUNT; which++)
			assert_int_equal(coroutines[which].result, right[which]);
	}
	/* Most ends are seen, none twice, and the rest are counted: as not watched, or as not reported. */
	print_message("%llu calls, %llu watched, %llu told\n", (unsigned long long)hits, (unsigned long long)opened,
		      (unsigned long long)told);
	assert_true(told < hits && told > hits / 8);
	assert_int_equal(tw_load_relaxed(&tw_returns_lost.copied), hits - told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_copying_program_goes_wrong),
		cmocka_unit_test(every_call_comes_back_to_its_caller),
	};

	return IS_SANITIZED ? 0 : cmocka_run_group_tests(tests, set_up, tear_down);
}
