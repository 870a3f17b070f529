/* SPDX-License-Identifier: Apache-2.0 */
/* Closes every file that it did not open, as daemons do, has few descriptors, and continues. */
#include "edge.h"
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	struct rlimit limit = {5, 5};
	int is_right = 1, status;

	edge_calls(100);
	syscall(SYS_close_range, 3, ~0u, 0);
	is_right &= setrlimit(RLIMIT_NOFILE, &limit) == 0;
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (child == 0) {
			edge_calls(100);
			syscall(SYS_close_range, 0, ~0u, 0);
			edge_calls(100);
			_exit(3);
		}
		edge_calls(100);
		is_right &= waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
	}
	return edge_end(is_right);
}
