/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Waiting until no thread runs instructions that it fetched before takes one kernel barrier that synchronises
 *	instruction fetch; if the kernel refuses it, the interrupt that replaces it.
 * Method	x86 does not reveal a missing barrier, so the system calls are counted: a seccomp filter makes
 *	membarrier() and mprotect() trap in a child, and the trap's handler answers for the kernel.
 */
#include "progress/progress.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

enum { CANNOT_TEST = 77, WAITS = 3 };

static volatile int code_barriers, protects, is_refusing;

/* Plays the kernel: barriers are granted or refused, changes of protection are ignored. */
static void on_sigsys(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	registers[REG_RAX] = 0;
	if (info->si_syscall == SYS_mprotect)
		protects++;
	if (info->si_syscall == SYS_membarrier && registers[REG_RDI] == MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) {
		code_barriers++;
		if (is_refusing)
			registers[REG_RAX] = -EPERM;
	}
}

static bool filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The kernel's own answer; a tracer of system calls may hide it. */
static bool kernel_has_code_barrier(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
}

/* In a child: waits, and exits with the number of wrong counts. */
static int run(bool is_refused)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		tw_progress_init();
		if (tw_progress_has_code_barrier() != kernel_has_code_barrier())
			_exit(3);
		if (!tw_progress_has_code_barrier() || !filter())
			_exit(CANNOT_TEST);
		is_refusing = is_refused;
		for (int i = 0; i < WAITS; i++)
			tw_progress_wait_code();
		_exit(code_barriers != WAITS ? 1 : protects != (is_refused ? WAITS : 0) ? 2 : 0);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_TEST)
		skip();
	return status;
}

static void each_wait_takes_one_barrier(void **state)
{
	assert_int_equal(run(false), 0);
}

static void a_refused_barrier_is_replaced(void **state)
{
	assert_int_equal(run(true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wait_takes_one_barrier),
		cmocka_unit_test(a_refused_barrier_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
