/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Question: how fast do events go from a ring to disk and back, and how small are they?  Unit: nanoseconds an event;
 * bytes an event on disk; CPU nanoseconds an event over all threads.  Peers, to disk: NanoLog 56.9 M/s at 10 B,
 * uncompressed; LTTng-UST 9.4 M/s at 22 B.  CPU: NanoLog 33 ns, LTTng 94 to 107 ns.  Back: NanoLog 0.4 M/s, babeltrace2
 * 4.0 M/s.
 *
 * Events are those of a declared function with two values, a counter and one uniform over 32 bits; or
 * calls and returns of a program with a hundred functions.
 */
#include "base/clock.h"
#include "bench.h"
#include "pipeline/block/block.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/writer.h"
#include "tracewheel/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES (256u << 10)

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

static uint32_t make_values(uint8_t *raw)
{
	uint64_t seed = 88172645463325252u, ticks = UINT64_C(1) << 50;
	uint32_t records = BLOCK_BYTES / 32;

	for (uint32_t i = 0; i < records; i++) {
		uint64_t *record = (uint64_t *)(raw + 32 * i), x = next_random(&seed);

		/* A tight loop with jitter and a heavy tail. */
		record[0] = ticks += 25 + (x >> 40 & 7) + ((x >> 45 & 127) == 0 ? x >> 52 & 1023 : 0);
		record[1] = TW_RB_HEAD(TW_EVENT_CALL, 1, 32, 7);
		record[2] = 1000000 + i;
		record[3] = (uint32_t)x;
	}
	return BLOCK_BYTES;
}

struct call_maker {
	uint8_t *raw;
	uint32_t bytes;
	uint64_t ticks;
	uint64_t seed;
};

static void make_record(struct call_maker *maker, unsigned kind, uint32_t id)
{
	uint64_t *record = (uint64_t *)(maker->raw + maker->bytes);

	if (maker->bytes + 16 > BLOCK_BYTES)
		return;
	record[0] = maker->ticks += 18 + (next_random(&maker->seed) & 15);
	record[1] = TW_RB_HEAD(kind, 1, 16, id);
	maker->bytes += 16;
}

/* Functions call each other in mostly repeating patterns. */
static void make_call(struct call_maker *maker, uint32_t function, unsigned depth)
{
	uint32_t calls = function % 4 + (next_random(&maker->seed) % 16 == 0);

	make_record(maker, TW_EVENT_CALL, function);
	for (uint32_t i = 0; i < calls && depth < 7; i++)
		make_call(maker, (function * 7 + i * 13) % 101, depth + 1);
	make_record(maker, TW_EVENT_RETURN_FROM, function);
}

static uint32_t make_calls(uint8_t *raw)
{
	struct call_maker maker = {raw, 0, UINT64_C(1) << 50, 99};

	while (maker.bytes < BLOCK_BYTES)
		make_call(&maker, 3, 0);
	return maker.bytes;
}

static void encode(struct tw_bench *bench, uint32_t (*make)(uint8_t *raw), uint64_t records)
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	uint8_t *raw = malloc(BLOCK_BYTES);
	uint32_t bytes = make(raw);
	struct tw_block_header header;
	const uint8_t *stored = NULL;
	uint64_t n = tw_bench_start(bench), events = 0;

	for (uint64_t i = 0; i < n; i++) {
		memset(&header, 0, sizeof header);
		TW_BENCH_MUST(!tw_block_encode_events(encoder, &header, raw, bytes, &stored));
		events += header.record_count;
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "records", events, records);
	tw_bench_keep(stored);
	tw_bench_counter(bench, "B/event", (double)tw_block_file_bytes(&header) / header.record_count);
	tw_bench_rate(bench, "events/s", (double)events);
	tw_block_encoder_destroy(encoder);
	free(raw);
}

static void decode(struct tw_bench *bench, uint32_t (*make)(uint8_t *raw))
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	struct tw_block_decoder *decoder = tw_block_decoder_create();
	uint8_t *raw = malloc(BLOCK_BYTES + TW_COLUMN_SLACK_BYTES), *made = malloc(BLOCK_BYTES);
	uint32_t bytes = make(made);
	struct tw_block_header header = {0};
	const uint8_t *stored;
	uint64_t n, events = 0;

	TW_BENCH_MUST(!tw_block_encode_events(encoder, &header, made, bytes, &stored));
	memcpy(tw_block_decoder_input(decoder), stored, header.stored_bytes);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++) {
		TW_BENCH_MUST(!tw_block_decode_events(decoder, &header, raw));
		events += header.record_count;
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "records", events, header.record_count);
	TW_BENCH_MUST(!memcmp(raw, made, bytes));
	free(made);
	tw_bench_rate(bench, "events/s", (double)events);
	tw_block_decoder_destroy(decoder);
	tw_block_encoder_destroy(encoder);
	free(raw);
}

TW_BENCH(capture_encode_values, .per_iteration = BLOCK_BYTES / 32)
{
	encode(bench, make_values, BLOCK_BYTES / 32);
}

TW_BENCH(capture_encode_calls, .per_iteration = BLOCK_BYTES / 16)
{
	encode(bench, make_calls, BLOCK_BYTES / 16);
}

TW_BENCH(capture_decode_values, .per_iteration = BLOCK_BYTES / 32)
{
	decode(bench, make_values);
}

TW_BENCH(capture_decode_calls, .per_iteration = BLOCK_BYTES / 16)
{
	decode(bench, make_calls);
}

/* ---- from ring to disk ---- */

static char capture_path[300];
static struct tw_recorder *recorder;
static _Atomic uint32_t is_produced;

static const char *directory(void)
{
	return getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
}

static void remove_capture(void)
{
	struct tw_recorder *old;
	const struct tw_recorder_options options = {.path = capture_path, .force = true};

	TW_BENCH_MUST(!tw_recorder_create(&options, &old));
	tw_recorder_abort(old);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void emit(struct tw_rb_producer *producer, uint64_t a, uint64_t b)
{
	uint64_t ticks = tw_clock_ticks();
	uint64_t *record;
	void *space;

	while (tw_rb_reserve(producer, 32, ticks, &space) != TW_RB_OK)
		tw_rb_wait_space(producer, 32, 1000000000);
	record = space;
	record[0] = ticks;
	record[1] = TW_RB_HEAD(TW_EVENT_CALL, 1, 32, 7);
	record[2] = a;
	record[3] = b;
	tw_rb_commit(producer, 32);
}

/* Claims a ring as large as that of a busy thread. */
static void claim_ring(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	struct tw_rs_claim who = {0};
	uint32_t image;

	TW_BENCH_MUST(!tw_rs_image_claim(rs, &image) && tw_rs_ring_claim(rs, &who, producer));
	while (tw_rs_may_grow(producer) && tw_rs_ring_grow(rs, producer))
		;
	while (tw_rs_ring_populate(rs, producer, true))
		;
}

static void produce(struct tw_bench *bench)
{
	struct tw_rs *rs = tw_recorder_ring_set(recorder);
	struct tw_rb_producer producer;
	uint64_t seed = 88172645463325252u, n, made;

	tw_bench_pin(1);
	claim_ring(rs, &producer);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		emit(&producer, i, (uint32_t)next_random(&seed));
	made = producer.records;
	tw_rs_ring_end(rs, &producer);
	/* PAIR bench.produced: release; acquire in consume().  Everything is committed. */
	tw_store_release(&is_produced, 1);
	tw_bench_stop(bench);
	/* The other thread finds these in the files. */
	tw_bench_happened(bench, "events", made, 1);
}

static void consume(struct tw_bench *bench)
{
	struct tw_recorder_stats stats;
	uint64_t n, cpu;

	tw_bench_pin(0);
	cpu = cpu_ns();
	n = tw_bench_start(bench);
	/* PAIR bench.produced: acquire; release in produce(). */
	while (!tw_load_acquire(&is_produced))
		tw_recorder_poll(recorder, 1000000);
	tw_recorder_drain(recorder);
	tw_recorder_stats(recorder, &stats);
	tw_bench_stop(bench);
	cpu = cpu_ns() - cpu;
	TW_BENCH_MUST(!tw_recorder_finish(recorder, &stats));
	tw_bench_happened(bench, "events", stats.events, 1);
	tw_bench_counter(bench, "B/event", (double)stats.file_bytes / (double)n);
	tw_bench_counter(bench, "CPU ns", (double)cpu / (double)n);
	tw_bench_rate(bench, "events/s", (double)n);
}

static void make_recorder(void)
{
	const struct tw_recorder_options options = {.path = capture_path, .force = true, .policy = TW_RECORDER_BLOCK};

	snprintf(capture_path, sizeof capture_path, "%s/tracewheel-bench-%d.tw", directory(), (int)getpid());
	/* RELAXED bench.produced: no other thread runs yet. */
	tw_store_relaxed(&is_produced, 0);
	TW_BENCH_MUST(!tw_recorder_create(&options, &recorder));
}

TW_BENCH(capture_record_to_disk, .threads = 2, .is_cross_core = true, .iterations = 20000000, .repetitions = 5)
{
	static _Atomic uint32_t arrived;

	/* The first thread creates the recorder while the other waits; at the end the roles are reversed. */
	if (bench->thread_index == 0) {
		make_recorder();
		/* PAIR bench.arrived: release; acquire in capture_record_to_disk() by the other thread. The recorder exists. */
		tw_store_release(&arrived, 1);
		consume(bench);
		remove_capture();
	} else {
		/* PAIR bench.arrived: acquire; release in capture_record_to_disk() by the first thread. Reset for the next run. */
		while (!tw_exchange_acq_rel(&arrived, 0))
			tw_cpu_relax();
		produce(bench);
	}
}

static void record_events(uint64_t count)
{
	struct tw_rb_producer producer;
	uint64_t seed = 88172645463325252u;

	make_recorder();
	claim_ring(tw_recorder_ring_set(recorder), &producer);
	for (uint64_t i = 0; i < count; i++) {
		emit(&producer, i, (uint32_t)next_random(&seed));
		if (i % 50000 == 0)
			tw_recorder_drain(recorder);
	}
	TW_BENCH_MUST(!tw_recorder_finish(recorder, NULL));
}

static int count_batch(void *context, const struct tw_capture_batch *batch)
{
	*(uint64_t *)context += batch->records;
	return 0;
}

#define READ_EVENTS 2000000

static void read_back(struct tw_bench *bench, bool is_merged)
{
	const struct tw_capture_options options = {.no_workers = true};
	struct tw_capture *capture;
	uint64_t n, events = 0;

	record_events(READ_EVENTS);
	TW_BENCH_MUST(!tw_capture_open(capture_path, &options, &capture));
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++) {
		const struct tw_capture_event *batch;
		struct tw_capture_events *reader;
		int64_t count;

		if (!is_merged) {
			tw_capture_scan(capture, NULL, count_batch, &events);
			continue;
		}
		TW_BENCH_MUST(!tw_capture_events_create(capture, NULL, &reader));
		while ((count = tw_capture_events_next(reader, &batch)) > 0)
			events += (uint64_t)count;
		tw_capture_events_destroy(reader);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events, READ_EVENTS);
	tw_bench_rate(bench, "events/s", (double)events);
	tw_capture_close(capture);
	remove_capture();
}

TW_BENCH(capture_scan_one_core, .per_iteration = READ_EVENTS, .repetitions = 5)
{
	read_back(bench, false);
}

TW_BENCH(capture_events_one_core, .per_iteration = READ_EVENTS, .repetitions = 5)
{
	read_back(bench, true);
}
