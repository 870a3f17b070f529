/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* Only the compiler's options are unusual: threads, memory, strings, a child; built with sanitizers as well. */
#include "edge.h"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *run(void *arg)
{
	const long all = edge_rounds(500, 100);

	for (int i = 0; i < all; i++) {
		char *text = malloc(64 + (size_t)i);

		snprintf(text, 64, "%d", i);
		pthread_mutex_lock(&lock);
		total += (long)strlen(text);
		pthread_mutex_unlock(&lock);
		edge_call(i);
		free(text);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[4];
	int status;
	pid_t child;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	child = fork();
	if (child == 0) {
		edge_calls(100);
		_exit(9);
	}
	waitpid(child, &status, 0);
	return edge_end(total == 4 * (10 + 90 * 2 + 400 * 3) && WIFEXITED(status) && WEXITSTATUS(status) == 9);
}
