/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred and fifty processes at once, or 36 in the short form, each with its own calls. */
#include "edge.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	const int processes = (int)edge_rounds(150, 36);
	int gate[2], is_right = pipe(gate) == 0, status;
	char byte;

	for (int i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child == 0) {
			edge_calls(50);
			close(gate[1]);
			/* Waits until all have started. */
			if (read(gate[0], &byte, 1) != 0)
				_exit(1);
			edge_calls(50);
			_exit(0);
		}
		is_right &= child > 0;
	}
	close(gate[1]);
	while (wait(&status) > 0)
		is_right &= status == 0;
	return edge_end(is_right);
}
