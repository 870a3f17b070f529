/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -ldl */
/*
 * The recorder, if there is one, is stopped and continued again and again, while libraries are opened beside threads: each of
 * them goes on while it is stopped.
 */
#include "edge.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define OPENER	THREADS

static long rounds[THREADS + 1];
static int is_over;

static void nap(void)
{
	const struct timespec time = {0, 1000000};

	nanosleep(&time, NULL);
}

static long get(const long *number)
{
	return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

static void *run(void *number)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
		if ((long)number == OPENER) {
			void *library = dlopen("libz.so.1", RTLD_NOW);

			if (library)
				dlclose(library);
		}
		nap();
		edge_call((long)number);
		__atomic_add_fetch(&rounds[(long)number], 1, __ATOMIC_SEQ_CST);
	}
	return number;
}

/* Our parent, if it is the recorder. */
static pid_t recorder(void)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
	file = fopen(path, "r");
	if (file && !fgets(name, sizeof name, file))
		name[0] = '\0';
	if (file)
		fclose(file);
	return strcmp(name, "tracewheel\n") ? 0 : getppid();
}

int main(void)
{
	pthread_t threads[THREADS + 1];
	pid_t parent = recorder();
	const long stops = edge_rounds(12, 4);

	for (long i = 0; i <= THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int stop = 0; stop < stops; stop++) {
		long before[THREADS + 1];

		for (long i = 0; i < stop * 12 / stops; i++)
			nap();
		if (parent)
			kill(parent, SIGSTOP);
		for (int i = 0; i <= THREADS; i++)
			before[i] = get(&rounds[i]);
		/* Without the recorder, nothing ends this but the threads; the driver gives up. */
		for (int i = 0; i <= THREADS; i++)
			while (get(&rounds[i]) < before[i] + 2)
				nap();
		if (parent)
			kill(parent, SIGCONT);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	return edge_end(1);
}
