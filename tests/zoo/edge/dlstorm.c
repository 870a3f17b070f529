/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -ldl */
/* Threads open and close libraries while others call, and while a timer's handler calls. */
#include "edge.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static volatile int running = 3;
static int bad;

static void on_alarm(int number)
{
	edge_call(number);
}

static void *open_and_close(void *arg)
{
	static const char *const names[] = {"libm.so.6", "libz.so.1", "libresolv.so.2"};

	const long rounds = edge_rounds(120, 14);

	for (int i = 0; i < rounds; i++) {
		void *library = dlopen(names[(i + (long)arg) % 3], RTLD_NOW);

		edge_call(i);
		if (library)
			dlclose(library);
		else if (i % 3 != 1)
			__atomic_add_fetch(&bad, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void *call(void *arg)
{
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) > 0)
		edge_calls(50);
	return arg;
}

int main(void)
{
	struct itimerval every = {{0, 900}, {0, 900}};
	pthread_t threads[4];

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, open_and_close, (void *)i);
	pthread_create(&threads[3], NULL, call, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	signal(SIGALRM, SIG_IGN);
	return edge_end(!bad);
}
