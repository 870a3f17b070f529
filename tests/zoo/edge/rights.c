/* SPDX-License-Identifier: Apache-2.0 */
/* Drops its privileges and changes its root directory, as servers do, if permitted. */
#include "edge.h"
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int is_right = 1, status;
	pid_t child;

	edge_calls(1000);
	if (getuid() == 0)
		is_right =
			!chroot("/proc/self") && !chdir("/") && !setgroups(0, NULL) && !setgid(65534) && !setuid(65534);
	edge_calls(1000);
	child = fork();
	if (child == 0) {
		edge_calls(1000);
		_exit(5);
	}
	waitpid(child, &status, 0);
	printf("%s\n", is_right && WIFEXITED(status) && WEXITSTATUS(status) == 5 ? "gave up" : "WRONG");
	return edge_end(is_right);
}
