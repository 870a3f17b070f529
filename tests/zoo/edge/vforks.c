/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* Threads whose first call is made by a vfork() child, which then ends or executes another program. */
#include "edge.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;

static void *run(void *arg)
{
	const long all = edge_rounds(8, 4);

	for (int i = 0; i < all; i++) {
		volatile int turn = i;
		int status;
		pid_t child = vfork();

		if (child == 0) {
			edge_call(turn);
			if (turn % 2)
				execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
		waitpid(child, &status, 0);
		if (status)
			__atomic_add_fetch(&bad, 1, __ATOMIC_SEQ_CST);
		edge_calls(500);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[6];

	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	return edge_end(!bad);
}
