/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confined.c - a program that is killed for any system call that it does not make itself; prints how many traced calls
 * it made.
 *
 *	confined HOW FILTER [late|few]
 *
 * HOW is `prctl`, `seccomp` (by syscall(), for this thread) or `all` (for all threads, one of which makes traced calls
 * all the time).  FILTER is `strict`: from then on, all calls but those of the program end it; `refused`: the kernel
 * refuses to set it, and nothing changes.  `late`: a thread created after the filter makes calls, and ends.  `few`: so
 * few calls come before the filter that the thread's ring is first used under it.
 *
 * `confined before PROGRAM ARGUMENT...` executes a program under a filter that ends it for membarrier(); `confined
 * allowed ...` under one that forbids nothing.
 *
 * Calls are made before, in a signal handler that interrupts the later ones, and until a ring of 64 KiB has been filled
 * many times.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define CALLS 200000

static const char *volatile seven = "7";
static volatile long handler_calls;
static _Atomic long calls;
static _Atomic int is_over, others;

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter code[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_write),
	ALLOW(SYS_exit_group),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_setitimer),
	/* The system calls that libc needs to start and end a thread; none of them is used otherwise. */
	ALLOW(SYS_clone),
	ALLOW(SYS_clone3),
	ALLOW(SYS_set_robust_list),
	ALLOW(SYS_rseq),
	ALLOW(SYS_exit),
	ALLOW(SYS_rt_sigprocmask),
	ALLOW(SYS_madvise),
	ALLOW(SYS_mprotect),
	ALLOW(SYS_mmap),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void call(long times)
{
	for (long i = 0; i < times; i++)
		if (strtol(seven, NULL, 10) != 7)
			abort();
	calls += times;
}

static void on_alarm(int number)
{
	for (int i = 0; i < 3; i++) {
		if (strtol(seven, NULL, 10) != 7)
			abort();
		handler_calls++;
	}
}

static void *call_on(void *unused)
{
	call(1);
	others++;
	while (!is_over)
		call(1000);
	others--;
	/* Ending it would take another system call. */
	for (;;)
		__builtin_ia32_pause();
	return NULL;
}

static void *call_late(void *unused)
{
	call(1000);
	others++;
	return NULL;
}

static void *do_nothing(void *unused)
{
	return unused;
}

static void spin_until(int count)
{
	while (others != count)
		__builtin_ia32_pause();
}

static long set_filter(const char *how, int is_refused)
{
	struct sock_fprog program = {is_refused ? 0 : sizeof code / sizeof *code, code};
	long flags = strcmp(how, "all") ? 0 : SECCOMP_FILTER_FLAG_TSYNC;

	if (!strcmp(how, "prctl"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int execute_confined(char **argv, unsigned action)
{
	struct sock_filter membarrier[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof membarrier / sizeof *membarrier, membarrier};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	execv(argv[0], argv);
	return 2;
}

int main(int argc, char **argv)
{
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	int is_refused, is_all, is_few;
	pthread_attr_t detached;
	pthread_t thread;
	char text[64];

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "before"))
		return execute_confined(argv + 2, SECCOMP_RET_KILL_PROCESS);
	if (!strcmp(argv[1], "allowed"))
		return execute_confined(argv + 2, SECCOMP_RET_ALLOW);
	is_all = !strcmp(argv[1], "all");
	is_refused = !strcmp(argv[2], "refused");
	is_few = argc > 3 && !strcmp(argv[3], "few");
	sigaction(SIGALRM, &action, NULL);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	/* The first thread makes system calls that later ones do not. */
	pthread_create(&thread, NULL, do_nothing, NULL);
	pthread_join(thread, NULL);
	if (is_all) {
		pthread_create(&thread, &detached, call_on, NULL);
		while (others != 1)
			sched_yield();
	}
	call(is_few ? 20 : CALLS);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* libseccomp's test for the system call: its invalid flags must be refused, not the whole mode set. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) != -1)
		return 76;
	if ((set_filter(argv[1], is_refused) != 0) != is_refused)
		return 77;
	setitimer(ITIMER_REAL, &often, NULL);
	call(CALLS);
	setitimer(ITIMER_REAL, &never, NULL);
	if (argc > 3 && !is_few) {
		pthread_create(&thread, &detached, call_late, NULL);
		spin_until(is_all + 1);
		others--;
	}
	is_over = 1;
	spin_until(0);
	write(1, text, (size_t)snprintf(text, sizeof text, "calls %ld\n", calls + handler_calls));
	_exit(is_refused ? 0 : 21);
}
