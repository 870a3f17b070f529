/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm.c - opens and closes libraries while its threads beat: storm FILE LIBRARY...
 *
 * FILE (struct storm_beats, mapped) says how often each thread has gone round, and the longest time between two rounds; the first
 * is the one that opens.  Ends when is_over is set: 0 if all answers were right.
 */
#include "base/atomic.h"
#include "tests/common/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define THREADS 21

/* Read by held.py. */
struct storm_beats {
	_Atomic uint64_t is_over, process_id;
	struct {
		_Atomic uint64_t rounds, longest_ns;
	} threads[THREADS];
};

static struct storm_beats *beats;
static _Atomic uint32_t wrong;

static void beat(unsigned number, uint64_t *last_ns)
{
	uint64_t ns = now_ns();

	/* RELAXED storm.beats: numbers for a reader that waits for them to grow, and may set the longest time back. */
	if (ns - *last_ns > tw_load_relaxed(&beats->threads[number].longest_ns))
		/* RELAXED storm.beats: as above. */
		tw_store_relaxed(&beats->threads[number].longest_ns, ns - *last_ns);
	*last_ns = ns;
	/* RELAXED storm.beats: as above. */
	tw_fetch_add_relaxed(&beats->threads[number].rounds, 1);
}

static bool is_over(void)
{
	/* RELAXED storm.beats: as above. */
	return tw_load_relaxed(&beats->is_over) != 0;
}

static void *run(void *number)
{
	const struct timespec nap = {0, 1000000};
	uint64_t last_ns = now_ns();

	while (!is_over()) {
		nanosleep(&nap, NULL);
		beat((unsigned)(uintptr_t)number, &last_ns);
	}
	return NULL;
}

static void open_and_close(const char *path, long x)
{
	void *library = dlopen(path, RTLD_NOW);
	long (*function)(long) = NULL;

	if (library)
		*(void **)&function = dlsym(library, "storm_first");
	/* RELAXED storm.wrong: read after the threads have been joined. */
	if (!function || function(x) != x + 40)
		tw_fetch_add_relaxed(&wrong, 1);
	if (library)
		dlclose(library);
}

int main(int argc, char **argv)
{
	int file = argc > 2 ? open(argv[1], O_RDWR) : -1;
	pthread_t threads[THREADS];
	uint64_t last_ns;

	beats = mmap(NULL, sizeof *beats, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (beats == MAP_FAILED)
		return 2;
	/* A signal for the recorder's group is none for us. */
	setpgid(0, 0);
	for (unsigned i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
			return 2;
	/* RELAXED storm.beats: as above. */
	tw_store_relaxed(&beats->process_id, (uint64_t)getpid());
	last_ns = now_ns();
	for (long x = 0; !is_over(); x++) {
		open_and_close(argv[2 + x % (argc - 2)], x);
		beat(0, &last_ns);
	}
	for (unsigned i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* RELAXED storm.wrong: as above. */
	return tw_load_relaxed(&wrong) != 0;
}
