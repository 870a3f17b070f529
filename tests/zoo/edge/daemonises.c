/* SPDX-License-Identifier: Apache-2.0 */
/* The first process ends at once; its grandchild continues, and reports it. */
#include "edge.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int done[2];
	char byte;

	edge_calls(100);
	if (pipe(done))
		return 1;
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			edge_calls(500);
			usleep(300000);
			edge_calls(500);
			_exit(edge_end(1));
		}
		_exit(0);
	}
	wait(NULL);
	if (getenv("EDGE_WAITS")) {
		close(done[1]);
		if (read(done[0], &byte, 1) < 0)
			return 1;
	}
	_exit(0);
}
