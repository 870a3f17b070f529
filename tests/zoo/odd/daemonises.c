/* SPDX-License-Identifier: Apache-2.0 */
/* The first process ends at once; its grandchild continues, and reports it. */
#include "odd.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int done[2];
	char byte;

	odd_calls(100);
	if (pipe(done))
		return 1;
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			odd_calls(500);
			usleep(300000);
			odd_calls(500);
			_exit(odd_end(1));
		}
		_exit(0);
	}
	wait(NULL);
	if (getenv("ODD_WAITS")) {
		close(done[1]);
		if (read(done[0], &byte, 1) < 0)
			return 1;
	}
	_exit(0);
}
