/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* Executes itself again and again, from the main thread and from another one, with calls in between. */
#include "edge.h"
#include <pthread.h>
#include <unistd.h>

static char next[16];
static char *own;

static void *go_on(void *arg)
{
	execl("/proc/self/exe", own, next, (char *)NULL);
	return arg;
}

int main(int argc, char **argv)
{
	int turn = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t thread;

	own = argv[0];
	edge_calls(200);
	if (turn == edge_rounds(8, 4))
		return edge_end(1);
	snprintf(next, sizeof next, "%d", turn + 1);
	if (turn % 2)
		go_on(NULL);
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_join(thread, NULL);
	return 1;
}
