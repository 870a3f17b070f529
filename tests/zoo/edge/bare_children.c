/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children by fork, _Fork, clone without handlers, and clone with shared memory: all make calls beside their parent.
 * Children of _Fork and of a bare clone are not traced (no handler of the library runs in them), and not counted here.
 */
#include "edge.h"
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_shared_memory(void *arg)
{
	edge_calls(30);
	return 0;
}

int main(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	const long all = edge_rounds(60, 20);
	int bad = 0;

	edge_calls(10);
	for (int i = 0; i < all; i++) {
		int status = 1;
		pid_t child = i % 4 == 0   ? fork()
			      : i % 4 == 1 ? _Fork()
			      : i % 4 == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
					   : clone(in_shared_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);

		if (child == 0) {
			for (int j = 0; j < 30; j++)
				i % 4 ? (void)edge_touch(j) : edge_call(j);
			_exit(0);
		}
		if (i % 4 != 3)
			edge_calls(100);
		bad += waitpid(child, &status, 0) != child || status;
	}
	return edge_end(!bad);
}
