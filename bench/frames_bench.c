/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_bench.c - what does each caller of a recorded call cost, in code that keeps no frame pointers?
 *
 * Unit	nanoseconds for all callers of one call, without the record of them.
 * Method	Below 64 calls of a function that is compiled as Debian compiles it; with the table of frames of this program, as the
 *	command makes it.
 */
#include "bench/bed.h"
#include "bench/bench.h"
#include "pipeline/hit/callers.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/walk.h"
#include "plan/plan.h"
#include "symbols/file.h"
#include "symbols/frame_rows.h"

#include <stdlib.h>

#define DEPTH 64

/* Of the program's own file, at its address. */
struct own_code {
	struct tw_frame_rows rows;
	struct tw_module *module;
	void *bytes;
};

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static void know(struct own_code *own)
{
	struct tw_permit *permit = begin_change();
	struct tw_elf_file *file;
	size_t count;

	TW_BENCH_MUST(!tw_elf_file_open("/proc/self/exe", &file));
	TW_BENCH_MUST(!tw_frame_rows_make(file, &own->bytes, &count));
	TW_BENCH_MUST(!tw_frame_rows_open(own->bytes, count, &own->rows));
	const struct tw_module_options options = {.name = "own_code",
						  .path = "own_code",
						  .base_address = (uintptr_t)__ehdr_start,
						  .end_address = (uintptr_t)__ehdr_start + file->elf.image.high -
								 file->elf.image.low};

	TW_BENCH_MUST(!tw_bp_module_add(permit, &options, &own->module));
	own->module->frames = &own->rows;
	tw_callers_update(permit, false);
	end_change(permit, 0);
	tw_elf_file_close(file);
}

static void forget(struct own_code *own)
{
	struct tw_permit *permit = begin_change();

	tw_bp_module_gone(permit, own->module, false);
	tw_callers_update(permit, false);
	end_change(permit, 0);
	free(own->bytes);
}

struct walked {
	struct tw_thread thread;
	uint64_t found[TW_STACK_DEPTH_MAX];
	uint64_t n, callers;
	unsigned depth;
};

/* The innermost function: the walk itself, so often as the benchmark asks. */
static __attribute__((noinline)) uint64_t walk(struct walked *walked)
{
	const uint64_t *slot = (const uint64_t *)__builtin_frame_address(0) + 1;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < walked->n; i++)
		sum += tw_walk_callers(&walked->thread, slot, ((const uint64_t *)slot)[-1], walked->found,
				       walked->depth);
	walked->callers = walked->n ? sum / walked->n : 0;
	return sum;
}

static __attribute__((noinline)) uint64_t below(struct walked *walked, unsigned more)
{
	uint64_t sum = more ? below(walked, more - 1) : walk(walked);

	__asm__ volatile("" : "+r"(sum));
	return sum + more;
}

/* So many callers of one call, without the record. */
TW_BENCH(frames_walk, .values = {1, 8, 32})
{
	static struct walked walked;
	struct own_code own;
	uint64_t sum;

	tw_bench_pin(1);
	know(&own);
	walked.depth = (unsigned)bench->value;
	walked.thread.stack_low = (uintptr_t)__builtin_frame_address(0) - (1 << 20);
	walked.thread.stack_high = (uintptr_t)__builtin_frame_address(0);
	walked.n = tw_bench_start(bench);
	sum = below(&walked, DEPTH);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	for (int i = 1; i < bench->value; i++)
		TW_BENCH_MUST(walked.found[i] - (uintptr_t)below < 64);
	tw_bench_happened_in_all(bench, "callers", walked.callers, (uint64_t)bench->value);
	forget(&own);
}
