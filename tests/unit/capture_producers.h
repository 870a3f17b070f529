/* SPDX-License-Identifier: Apache-2.0 */
/* capture_producers.h - threads that write numbered calls, and a check of those read back. */
#ifndef CAPTURE_PRODUCERS_H
#define CAPTURE_PRODUCERS_H

#include "capture_help.h"

#include <errno.h>

enum { THREADS_MAX = 8 };

struct producer_task {
	struct program *program;
	uint32_t number;
	uint64_t count;
	uint64_t emitted;
	pthread_t thread;
};

/* The thread's number in the lowest byte, and bits that compress badly above it. */
static inline uint64_t with_noise(uint64_t thread, uint64_t i)
{
	return thread | i * UINT64_C(0x9e3779b97f4a7c15) << 8;
}

static inline void *produce(void *argument)
{
	struct producer_task *task = argument;
	struct tw_rb_producer producer;

	while (!begin_thread(task->program, &producer, task->number + 1))
		usleep(100);
	for (uint64_t i = 0; i < task->count; i++)
		task->emitted += emit_call(&producer, (uint32_t)(i % 10), i, with_noise(task->number, i));
	tw_rs_ring_end(task->program->rs, &producer);
	return NULL;
}

static inline void produce_with(struct tw_recorder *recorder, struct program *program, unsigned threads, uint64_t count,
				uint64_t *emitted)
{
	struct producer_task tasks[THREADS_MAX];

	*emitted = 0;
	for (unsigned i = 0; i < threads; i++) {
		tasks[i] = (struct producer_task){program, i, count, 0, 0};
		assert_int_equal(pthread_create(&tasks[i].thread, NULL, produce, &tasks[i]), 0);
	}
	for (unsigned i = 0; i < threads; i++) {
		while (pthread_tryjoin_np(tasks[i].thread, NULL) == EBUSY)
			tw_recorder_poll(recorder, 1000000);
		*emitted += tasks[i].emitted;
	}
}

static inline struct tw_recorder *begin_recording(struct tw_recorder_options *options)
{
	struct tw_recorder *recorder = NULL;

	remove_folder(capture_path);
	options->path = capture_path;
	assert_int_equal(tw_recorder_create(options, &recorder), 0);
	return recorder;
}

/* Every stream's calls count up from 0 without a gap, or with gaps that its loss records explain. */
struct account {
	uint64_t next[THREADS_MAX + 1];
	uint64_t calls;
	uint64_t lost;
	uint64_t last_ns;
	bool is_merged;
};

static inline void check_call(struct account *account, uint64_t counter, uint64_t thread)
{
	thread &= 0xff;
	assert_true(thread < THREADS_MAX);
	assert_int_equal(counter, account->next[thread]);
	account->next[thread] = counter + 1;
	account->calls++;
}

static inline int check_batch(void *context, const struct tw_capture_batch *batch)
{
	struct account *account = context;
	uint32_t records = 0;

	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record), records++) {
		if (tw_capture_record_kind(record) == TW_CAPTURE_CALL)
			check_call(account, record->payload[0], record->payload[1]);
		else if (tw_capture_record_kind(record) == TW_CAPTURE_LOSS)
			account->lost += record->payload[1];
	}
	assert_int_equal(records, batch->records);
	return 0;
}

#endif
