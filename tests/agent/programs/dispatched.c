/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatched.c - a program whose system calls become SIGSYS while a byte says so (system call user dispatch, as Wine uses it);
 * prints how many traced calls it made, and how many of them while its thread could make no system call.
 *
 *	dispatched HOW		HOW: `prctl` or `syscall`
 *
 * A system call that is not the program's own ends it with 9.  Calls are made under a ring of 64 KiB that they fill many
 * times: dispatched and not, in the handler of SIGSYS, in a thread and in a child, which begin without dispatch, and after
 * dispatch was switched off.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CALLS	 20000
#define DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define EMULATED 4242

static const char *volatile seven = "7";
static volatile char is_dispatched;
static volatile long blocked;
static _Atomic long *calls;
static _Atomic int is_over;

/* The system call is no part of what a jump over the first instructions displaces. */
extern const char own_call[];
long own(long number);
__asm__(".text\n.globl own\n.type own,@function\nown:\n.cfi_startproc\n.fill 16,1,0x90\nmov %edi,%eax\nsyscall\n"
	".globl own_call\nown_call:\nret\n.cfi_endproc\n.size own,.-own");

static void call(long times)
{
	for (long i = 0; i < times; i++)
		if (strtol(seven, NULL, 10) != 7)
			abort();
	*calls += times;
}

static void on_dispatched(int number, siginfo_t *info, void *context)
{
	call(1);
	blocked++;
	is_dispatched = 0;
	if (info->si_call_addr != own_call)
		_exit(9);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = EMULATED;
	call(1);
}

static int set_dispatch(const char *how, long is_on)
{
	const volatile char *selector = is_on ? &is_dispatched : NULL;

	return strcmp(how, "prctl") ? (int)syscall(SYS_prctl, DISPATCH, is_on, 0, 0, selector)
				    : prctl(DISPATCH, is_on, 0, 0, selector);
}

/* No system call is needed until is_dispatched is 0 again. */
static void call_dispatched(long times)
{
	is_dispatched = 1;
	call(times);
	blocked += times;
}

static void *call_meanwhile(void *unused)
{
	call(CALLS);
	is_over = 1;
	return unused;
}

static void call_in_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		is_dispatched = 1;
		call(CALLS);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_dispatched, .sa_flags = SA_SIGINFO};
	pthread_t thread;

	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc != 2 || calls == MAP_FAILED)
		return 2;
	sigaction(SIGSYS, &action, NULL);
	call(20);
	if (set_dispatch(argv[1], 1))
		return 77;
	for (int i = 0; i < 500; i++) {
		call_dispatched(3);
		if (own(SYS_getpid) != EMULATED || is_dispatched)
			return 3;
		call(50);
	}
	call_dispatched(CALLS);
	is_dispatched = 0;
	pthread_create(&thread, NULL, call_meanwhile, NULL);
	is_dispatched = 1;
	while (!is_over)
		__builtin_ia32_pause();
	is_dispatched = 0;
	pthread_join(thread, NULL);
	call_in_child();
	if (set_dispatch(argv[1], 0))
		return 4;
	is_dispatched = 1;
	call(CALLS);
	printf("calls %ld\nblocked %ld\n", *calls, blocked);
	return 21;
}
