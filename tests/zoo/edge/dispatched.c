/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a thread whose system calls become signals (system call user dispatch, as Wine has it), and in its handler. */
#include "edge.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define EMULATED 4242

static volatile char is_dispatched;
static volatile long handled;

static void on_dispatched(int number, siginfo_t *info, void *context)
{
	edge_call(1);
	is_dispatched = 0;
	handled++;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = EMULATED;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_dispatched, .sa_flags = SA_SIGINFO};
	long right = 0;

	sigaction(SIGSYS, &action, NULL);
	edge_calls(100);
	/* PR_SET_SYSCALL_USER_DISPATCH; a kernel without it has nothing to show. */
	if (prctl(59, 1, 0, 0, &is_dispatched))
		return edge_end(1);
	for (int i = 0; i < 1000; i++) {
		long result = SYS_getpid;

		is_dispatched = 1;
		edge_calls(20);
		__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
		right += result == EMULATED;
		edge_calls(5);
	}
	prctl(59, 0, 0, 0, 0);
	edge_calls(1000);
	return edge_end(right == 1000 && handled == 1000);
}
