/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the traced program that the harness kills.
 *
 *	program WITNESS-FILE [CAPTURE]
 *
 * Its threads call two declared functions, or one of a library, and count the calls in the witness.  With CAPTURE it
 * records itself, by a writer thread of the library.
 */
#include "tests/crash/witness.h"
#include "tests/crash/work.h"

#include <tracewheel/tracewheel.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

TW_DEFINE_FUNCTION(two_words, "crash", "two", 2);
TW_DEFINE_FUNCTION(four_words, "crash", "four", 4);

static struct witness *witness;

static void call(uint64_t word, uint64_t mixed)
{
	const uint64_t words[4] = {word, mixed, ~word, ~mixed};

	if (witness->is_slots)
		crash_step(word, mixed);
	else if (word % 3 == 0)
		tw_call_words(&four_words, words, 4);
	else
		tw_call2(&two_words, word, mixed);
}

static void *work(void *arg)
{
	uint32_t index = (uint32_t)(uintptr_t)arg;
	struct witness_thread *own = &witness->thread[index];

	atomic_store_explicit(&own->thread_id, (int32_t)syscall(SYS_gettid), memory_order_relaxed);
	for (uint64_t number = 1; !atomic_load_explicit(&witness->program_stops, memory_order_relaxed); number++) {
		uint64_t word = witness_word(index, number);

		/* Released in order, and so seen in order by the process that reads them after our death. */
		atomic_store_explicit(&own->attempted, number, memory_order_release);
		call(word, witness_mix(word));
		atomic_store_explicit(&own->committed, number, memory_order_release);
		if (number == 1)
			atomic_fetch_add(&witness->running, 1);
		if (witness->calls_a_pause && number % witness->calls_a_pause == 0)
			usleep(witness->pause_us);
	}
	return NULL;
}

static int record_itself(const char *capture)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE,
					 .capture_path = capture,
					 .on_full = TW_ON_FULL_BLOCK,
					 .ring_bytes = 256 << 10};
	struct tw_session *session;
	int result = tw_session_create("crash", &tracer, &session);

	if (result >= 0)
		result = tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	if (result >= 0)
		result = tw_trace_function(session, "crash", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	return result;
}

int main(int argc, char **argv)
{
	pthread_t threads[WITNESS_THREADS];
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return 2;
	witness = mmap(NULL, sizeof *witness, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (witness == MAP_FAILED)
		return 2;
	if (argc > 2 && record_itself(argv[2]) < 0)
		return 2;
	atomic_store(&witness->process_id, getpid());
	for (uint32_t i = 1; i < witness->threads; i++) {
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			return 2;
	}
	work(NULL);
	for (uint32_t i = 1; i < witness->threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
