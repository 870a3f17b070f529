/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A signal at any instruction of a hit, or of a watched return, the thread's first or a later one, does no harm:
 *	registers and errno are preserved, recorded calls were made, once, and every call is recorded or counted; also
 *	if the handler leaves the hit by a jump.
 * Method	A parent single-steps a thread of a child from before its first call until after its third, and sends it
 *	a signal at one instruction, at several in one run, or also inside the handler.  The short form chooses
 *	instructions at random, and does not step the first call where later ones are tried; TW_STEP_ALL=1 takes every
 *	instruction (many minutes).
 *
 *	step_test [SEED]
 */
#include "step.h"
#include "tests/common/random.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NEVER (~0ul)

/* One run: the steps of the thread at which signals are sent. */
struct plan {
	enum step_place place;
	enum step_handler handler;
	unsigned long first;  /* the step before which the first signal is sent */
	unsigned long stride; /* and the distance of further ones; 0: none */
	unsigned long inside; /* after this many steps of the first handler another signal; NEVER: none */
	bool in_later;	      /* steps are those after the first call, which runs at once */
};

static unsigned long seed;

/* Steps of the last run that were made after the first call. */
static long later_steps;

static unsigned long next_random(unsigned long below)
{
	return random_below(&seed, below);
}

/* Waits for the thread to stop.  Returns the signal, with the kind of trap in *code; 0: the child has ended. */
static int wait_stop(pid_t tid, int *code)
{
	siginfo_t info;
	int status;

	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return 0;
	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) < 0)
		return 0;
	*code = info.si_code;
	return WSTOPSIG(status);
}

#define IS_MARK(signal, code) ((signal) == SIGTRAP && (code) == SI_KERNEL)

/*
 * Runs a handler that is about to be entered until its mark, and then until it returns.  Returns 0 when the thread is
 * back at `from` (or jumped), else -1.
 */
static int run_handler(pid_t child, pid_t tid, const struct plan *plan, bool is_first)
{
	struct user_regs_struct from, now;
	int code, got;

	ptrace(PTRACE_GETREGS, tid, 0, &from);
	if (is_first && plan->inside != NEVER) {
		ptrace(PTRACE_SINGLESTEP, tid, 0, SIGUSR1);
		for (unsigned long i = 0; i < plan->inside; i++) {
			got = wait_stop(tid, &code);
			if (got != SIGTRAP)
				return -1;
			if (code == SI_KERNEL)
				goto marked;
			ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
		}
		if (wait_stop(tid, &code) != SIGTRAP)
			return -1;
		if (code == SI_KERNEL)
			goto marked;
		syscall(SYS_tgkill, child, tid, SIGUSR1);
		for (;;) {
			ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
			got = wait_stop(tid, &code);
			if (got == SIGUSR1)
				break;
			if (got != SIGTRAP || code == SI_KERNEL)
				return -1;
		}
		if (run_handler(child, tid, plan, false) < 0)
			return -1;
		if (plan->handler == STEP_JUMPS)
			return 0;
		ptrace(PTRACE_CONT, tid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, tid, 0, SIGUSR1);
	}
	got = wait_stop(tid, &code);
	if (!IS_MARK(got, code))
		return -1;
marked:
	if (plan->handler == STEP_JUMPS)
		return 0;
	do {
		ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
		if (wait_stop(tid, &code) != SIGTRAP)
			return -1;
		ptrace(PTRACE_GETREGS, tid, 0, &now);
	} while (now.rip != from.rip || now.rsp != from.rsp);
	return 0;
}

/*
 * A repeated string instruction is one step per repetition: the rest of them is run at once, to a breakpoint behind it.
 * It is written into the code, as debug registers do nothing on some virtual machines.
 */
static bool pass_repeated(pid_t tid, unsigned long at)
{
	const unsigned long word = (unsigned long)ptrace(PTRACE_PEEKTEXT, tid, at, 0);
	const unsigned long next = at + ((word >> 8 & 0xf8) == 0x48 ? 3 : 2);
	const unsigned long behind = (unsigned long)ptrace(PTRACE_PEEKTEXT, tid, next, 0);
	struct user_regs_struct regs;
	int code, got;

	if ((word & 0xff) != 0xf3 || ptrace(PTRACE_POKETEXT, tid, next, (behind & ~0xfful) | 0xcc) < 0)
		return false;
	ptrace(PTRACE_CONT, tid, 0, 0);
	got = wait_stop(tid, &code);
	ptrace(PTRACE_POKETEXT, tid, next, behind);
	ptrace(PTRACE_GETREGS, tid, 0, &regs);
	if (got != SIGTRAP || regs.rip != next + 1)
		return false;
	regs.rip = next;
	return ptrace(PTRACE_SETREGS, tid, 0, &regs) == 0;
}

static bool is_between(pid_t tid)
{
	return (unsigned long)ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user_regs_struct, rip), 0) ==
	       (unsigned long)step_between + 1;
}

/* Runs a thread from the first mark to the one after the first call. */
static bool pass_first(pid_t tid)
{
	int code, got;

	ptrace(PTRACE_CONT, tid, 0, 0);
	got = wait_stop(tid, &code);
	return IS_MARK(got, code) && is_between(tid);
}

/* Steps from the first mark, or the one after the first call, to the last.  Returns the number of steps, or -1. */
static long step_thread(pid_t child, pid_t tid, const struct plan *plan)
{
	unsigned long next = plan->first, at = 0;
	bool is_first = true;
	unsigned sent = 0;
	bool is_sent = false; /* all of them are: nothing is left to be stepped */
	long steps = 0, later = 0;
	int code, got;

	if (plan->in_later && !pass_first(tid))
		return -1;
	for (;; steps++) {
		unsigned long before = at;

		at = (unsigned long)ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user_regs_struct, rip), 0);
		if (at == before && (unsigned long)steps != next && pass_repeated(tid, at))
			continue;
		if ((unsigned long)steps == next) {
			syscall(SYS_tgkill, child, tid, SIGUSR1);
			/* A handler that jumps every time would never let the thread finish. */
			next = plan->stride && sent++ < (plan->handler == STEP_JUMPS ? 5 : 10000) ? next + plan->stride
												  : NEVER;
			is_sent = next == NEVER;
		}
		ptrace(is_sent ? PTRACE_CONT : PTRACE_SINGLESTEP, tid, 0, 0);
		got = wait_stop(tid, &code);
		while (got == SIGUSR1) {
			if (run_handler(child, tid, plan, is_first) < 0)
				return -1;
			is_first = false;
			ptrace(is_sent ? PTRACE_CONT : PTRACE_SINGLESTEP, tid, 0, 0);
			got = wait_stop(tid, &code);
		}
		if (got != SIGTRAP)
			return -1;
		/* A handler that jumps may have the mark between passed again. */
		if (IS_MARK(got, code) && !is_between(tid)) {
			later_steps = steps - later;
			return steps;
		}
		if (IS_MARK(got, code) && !later)
			later = steps;
	}
}

/* Returns the number of steps, or -1 with the failure in *result (a status of waitpid). */
static long run(const struct plan *plan, int *result)
{
	pid_t child = fork(), tid;
	long steps = -1;
	int status, code;

	if (child == 0) {
		alarm(300);
		step_child(plan->place, plan->handler);
	}
	/* The traced thread stops at its first mark. */
	do
		tid = waitpid(-1, &status, __WALL);
	while (tid < 0 && errno == EINTR);
	if (tid != child && WIFSTOPPED(status)) {
		steps = step_thread(child, tid, plan);
		if (steps < 0 || ptrace(PTRACE_DETACH, tid, 0, 0) < 0) {
			kill(child, SIGKILL);
			while (waitpid(tid, &code, __WALL) == tid && WIFSTOPPED(code))
				;
		}
		status = -1;
	}
	if (tid != child && waitpid(child, &status, 0) != child)
		status = -1;
	*result = status;
	return status == 0 ? steps : -1;
}

static int check(const struct plan *plan)
{
	int result;

	if (run(plan, &result) >= 0)
		return 0;
	printf("FAIL: place %d handler %d first %ld stride %ld inside %ld later %d: exit %d signal %d\n", plan->place,
	       plan->handler, (long)plan->first, (long)plan->stride, (long)plan->inside, plan->in_later,
	       WEXITSTATUS(result), WIFSIGNALED(result) ? WTERMSIG(result) : 0);
	return 1;
}

/*
 * All runs of one kind; in the short form `runs` random ones.  A thread without signals makes `steps` steps, and `later` of them after
 * its first call.
 */
static int check_kind(enum step_place place, enum step_handler handler, long steps, long later, unsigned runs)
{
	const bool all = getenv("TW_STEP_ALL") != NULL, is_long = all || getenv("TW_TEST_LONG");
	/* Where the signals of strides begin. */
	const long from = is_long ? steps : later;
	struct plan plan;
	int failures = 0;

	for (unsigned i = 0; i < (all ? (unsigned)steps : runs); i++) {
		plan = (struct plan){place, handler, all ? i : next_random((unsigned long)steps), 0, NEVER, false};
		failures += check(&plan);
	}
	/*
	 * Signals at each instruction of the later hits, and at every second, third ...: two in one hit at any
	 * distance.
	 */
	for (unsigned long stride = 1; stride <= 8; stride++) {
		plan = (struct plan){place,  handler, from > 700 ? (unsigned long)from - 700 : 0,
				     stride, NEVER,   !is_long};
		failures += check(&plan);
	}
	/* Later hits are short and the first is long: half of the others are taken from the end. */
	plan.in_later = false;
	for (unsigned i = 0; i < (all ? 2000 : runs); i++) {
		unsigned long tail = (unsigned long)steps < 400 ? (unsigned long)steps : 400;

		plan.first = i % 2 ? (unsigned long)steps - 1 - next_random(tail) : next_random((unsigned long)steps);
		plan.stride = i % 3 ? 1 + next_random(40) : 0;
		plan.inside = i % 3 ? NEVER : next_random(300);
		failures += check(&plan);
	}
	return failures;
}

static int check_place(enum step_place place, unsigned runs)
{
	struct plan plan = {place, STEP_RETURNS, NEVER, 0, NEVER, false};
	int result, failures = 0;
	long steps = run(&plan, &result), later = later_steps;

	if (steps < 0)
		return check(&plan);
	printf("place %d: %ld instructions, %ld of them after the first call\n", place, steps, later);
	fflush(stdout);
	for (int handler = STEP_RETURNS; handler <= STEP_JUMPS; handler++)
		failures += check_kind(place, (enum step_handler)handler, steps, later, runs);
	return failures;
}

/* Both sides take turns: on one processor, each step costs less. */
static void stay_here(void)
{
	int here = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	if (here >= 0 && here < CPU_SETSIZE) {
		CPU_SET(here, &set);
		sched_setaffinity(0, sizeof set, &set);
	}
}

/* Containers may refuse it. */
static bool may_trace(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0);
	waitpid(child, &status, 0);
	return status == 0;
}

int main(int argc, char **argv)
{
	unsigned runs = getenv("TW_TEST_LONG") ? 6 : 1;
	int failures = 0;

	seed = argc > 1 ? strtoul(argv[1], NULL, 0) : (unsigned long)time(NULL) ^ (unsigned long)getpid() << 20;
	if (!may_trace()) {
		printf("ptrace is refused here: not tested\n");
		return 77;
	}
	printf("seed %lu\n", seed);
	fflush(stdout);
	stay_here();
	for (int place = STEP_DECLARED; place <= STEP_RETURN; place++)
		failures += check_place((enum step_place)place, runs);
	printf("%s\n", failures ? "FAIL" : "PASS");
	return failures != 0;
}
