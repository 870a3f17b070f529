/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_bench.c - what does a call of an unmodified function cost whose entry is planted, and the planting of many?
 *
 * Unit	nanoseconds a call, loop and callee included; entry_call is the call of the same function without a jump,
 *	entry_sled_* that of the same function with an entry sled.  For
 *	entry_first: nanoseconds for all functions of the row.
 * Peers	entry_sled_*, in the same run.  Other tools: ./run bench native.
 * Method	Calls: a leaf function of two instructions, which become a copy; in *_many_*, many such functions in a random order.
 *	Planting: functions made at run time, 64 bytes apart, with a plan made by hand; stubs, copies, call frame information
 *	and private pages are made, by one thread.
 */
#include "bench/bed.h"
#include "bench/bench.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/native.h"
#include "ringbuf/ringset.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "symbols/entry_plan.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTION_BYTES 64u
#define FUNCTIONS_MAX  30000u
#define WINDOW_BYTES   6u
#define JUMP	       0xe9

/* mov %rdi, %rax; add %rsi, %rax; ret */
#define LEAF_TEXT "\x48\x89\xf8\x48\x01\xf0\xc3"
#define LEAF(name, nops)                                                                                    \
	__asm__(".pushsection .text\n.p2align 6\n.globl " #name "\n.type " #name ", @function\n" #name      \
		": .cfi_startproc\n" nops "mov %rdi, %rax\nadd %rsi, %rax\nret\n.cfi_endproc\n.size " #name \
		", .-" #name "\n.popsection");                                                              \
	extern uint64_t name(uint64_t a, uint64_t b)

LEAF(bench_leaf_alone, "");
LEAF(bench_leaf_planted, "");
/* The same function with an entry sled. */
LEAF(bench_leaf_sled, ".fill 9, 1, 0x90\n");

/* A plan of functions that all have the text above. */
struct made_plan {
	struct tw_entry_plan_header header;
	struct tw_entry_plan plan;
	/* The window, its copy, the offsets of both instructions in either. */
	uint8_t code[WINDOW_BYTES + WINDOW_BYTES + 4];
};

static void make_plan(struct made_plan *made, uint32_t count)
{
	static const uint8_t map[4] = {0, 0, 3, 3};

	made->header = (struct tw_entry_plan_header){.row_count = count};
	memcpy(made->code, LEAF_TEXT, WINDOW_BYTES);
	memcpy(made->code + WINDOW_BYTES, LEAF_TEXT, WINDOW_BYTES);
	memcpy(made->code + 2 * WINDOW_BYTES, map, sizeof map);
	made->plan = (struct tw_entry_plan){.header = &made->header, .code = made->code};
}

static struct tw_entry_plan_row row_of(uint32_t value)
{
	return (struct tw_entry_plan_row){.value = value,
					  .function_bytes = WINDOW_BYTES + 1,
					  .window_bytes = WINDOW_BYTES,
					  .copy_bytes = WINDOW_BYTES,
					  .map_count = 2};
}

static struct tw_place *add_entry(struct tw_permit *permit, const struct tw_bp_entry *entry)
{
	const struct tw_place_options options = {.kind = TW_BP_ENTRY,
						 .where = (void *)(entry->base + entry->row->value),
						 .entry = entry};

	return add_place(permit, "entry_bench", &options);
}

/* ---- a call ---- */

/* Its jump stays from the first of these rows on, and so do its plan and its place. */
static struct tw_place *place_of_leaf(struct tw_permit *permit)
{
	static struct made_plan made;
	static struct tw_entry_plan_row row;
	static struct tw_bp_entry entry;
	uintptr_t at = (uintptr_t)bench_leaf_planted;

	if (!entry.plan) {
		make_plan(&made, 1);
		row = row_of((uint32_t)(at % 65536));
		entry = (struct tw_bp_entry){&made.plan, &row, at - at % 65536};
	}
	return add_entry(permit, &entry);
}

static struct tw_place *place_of_sled(struct tw_permit *permit)
{
	const struct tw_place_options options = {.kind = TW_BP_SLED,
						 .where = (void *)(uintptr_t)bench_leaf_sled,
						 .sled_bytes = SLED_BYTES};

	return add_place(permit, "entry_bench", &options);
}

enum way { ENTRY, SLED };

static void stage_leaf(struct bed *bed, enum way way, const struct tw_bp_part *part)
{
	struct tw_permit *permit = begin_change();

	end_change(permit, tw_session_stage(bed->session, permit,
					    way == ENTRY ? place_of_leaf(permit) : place_of_sled(permit), part));
}

static void run_armed(struct tw_bench *bench, enum way way, uint32_t actions, uint8_t words)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | actions, .slot_words = words};
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	stage_leaf(&bed, way, &part);
	run_leaf(bench, way == ENTRY ? bench_leaf_planted : bench_leaf_sled, bed.session, 1 + (actions != 0));
	close_bed(&bed);
}

TW_BENCH(entry_call)
{
	tw_bench_pin(1);
	run_leaf(bench, bench_leaf_alone, NULL, 0);
}

/* Armed once; no session wants it any more. */
static void run_off(struct tw_bench *bench, enum way way)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, false);
	stage_leaf(&bed, way, &part);
	close_bed(&bed);
	TW_BENCH_MUST(way == SLED || *(const uint8_t *)(uintptr_t)bench_leaf_planted == JUMP);
	run_leaf(bench, way == ENTRY ? bench_leaf_planted : bench_leaf_sled, NULL, 0);
}

TW_BENCH(entry_off)
{
	run_off(bench, ENTRY);
}

/* What a process has in memory when its recording has ended: the function's own bytes. */
TW_BENCH(entry_restored)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	uintptr_t at = (uintptr_t)bench_leaf_planted;
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint8_t planted[WINDOW_BYTES];
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, false);
	stage_leaf(&bed, ENTRY, &part);
	close_bed(&bed);
	memcpy(planted, (const void *)at, sizeof planted);
	TW_BENCH_MUST(*planted == JUMP && pwrite(memory, LEAF_TEXT, WINDOW_BYTES, (off_t)at) == WINDOW_BYTES);
	run_leaf(bench, bench_leaf_planted, NULL, 0);
	/* Other rows rely on the jump. */
	TW_BENCH_MUST(pwrite(memory, planted, sizeof planted, (off_t)at) == sizeof planted);
	close(memory);
}

TW_BENCH(entry_sled_off)
{
	run_off(bench, SLED);
}

TW_BENCH(entry_recorded)
{
	run_armed(bench, ENTRY, 0, 0);
}

TW_BENCH(entry_sled_recorded)
{
	run_armed(bench, SLED, 0, 0);
}

TW_BENCH(entry_recorded_two_words)
{
	run_armed(bench, ENTRY, 0, 2);
}

TW_BENCH(entry_sled_recorded_two_words)
{
	run_armed(bench, SLED, 0, 2);
}

TW_BENCH(entry_call_and_return)
{
	run_armed(bench, ENTRY, TW_ACTION_RETURN, 0);
}

TW_BENCH(entry_sled_call_and_return)
{
	run_armed(bench, SLED, TW_ACTION_RETURN, 0);
}

/* ---- many functions ---- */

struct many {
	uint8_t *text;
	unsigned count;
	struct tw_place **places;
};

static void fill_text(uint8_t *text, size_t bytes, enum way way)
{
	unsigned nops = way == SLED ? SLED_BYTES : 0;

	memset(text, 0xcc, bytes);
	for (size_t at = 0; at < bytes; at += FUNCTION_BYTES) {
		memset(text + at, 0x90, nops);
		memcpy(text + at + nops, LEAF_TEXT, WINDOW_BYTES + 1);
	}
	TW_BENCH_MUST(!mprotect(text, bytes, PROT_READ | PROT_EXEC));
}

static struct tw_place *add_one(struct tw_permit *permit, const struct many *many, unsigned i, struct made_plan *made,
				struct tw_entry_plan_row *row, struct tw_bp_entry *entry)
{
	const struct tw_place_options sled = {.kind = TW_BP_SLED,
					      .where = many->text + (size_t)i * FUNCTION_BYTES,
					      .sled_bytes = SLED_BYTES};

	if (!made)
		return add_place(permit, "entry_bench", &sled);
	*row = row_of(i * FUNCTION_BYTES);
	*entry = (struct tw_bp_entry){&made->plan, row, (uintptr_t)many->text};
	return add_entry(permit, entry);
}

/* Text, places and what they refer to stay: a place lives forever. */
static void make_many(struct many *many, unsigned count, enum way way)
{
	size_t bytes = (size_t)count * FUNCTION_BYTES;
	uint8_t *text = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct made_plan *made = calloc(1, sizeof *made);
	struct tw_entry_plan_row *rows = calloc(count, sizeof *rows);
	struct tw_bp_entry *entries = calloc(count, sizeof *entries);
	struct tw_permit *permit;

	*many = (struct many){text, count, calloc(count, sizeof(void *))};
	TW_BENCH_MUST(text != MAP_FAILED && made && rows && entries && many->places);
	fill_text(text, bytes, way);
	make_plan(made, count);
	permit = begin_change();
	for (unsigned i = 0; i < count; i++)
		many->places[i] = add_one(permit, many, i, way == ENTRY ? made : NULL, &rows[i], &entries[i]);
	end_change(permit, 0);
}

/* Calls functions in an order that the processor cannot predict; so it mispredicts the call itself, in all rows. */
static void call_many(struct tw_bench *bench, const struct many *many, const struct tw_session *session)
{
	static uint64_t (*order[4096])(uint64_t, uint64_t);
	uint64_t sum = 0, seed = 1, before = events_of(session), n;

	for (unsigned i = 0; i < 4096; i++) {
		uint8_t *at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = many->text + (seed >> 33) % many->count * FUNCTION_BYTES;
		memcpy(&order[i], &at, sizeof at);
	}
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		sum += order[i & 4095](i & 511, i);
	tw_bench_stop(bench);
	TW_BENCH_MUST(sum == sum_of_calls(n));
	tw_bench_happened(bench, "events", events_of(session) - before, 1);
	TW_BENCH_MUST(!refused_of(session));
}

static void run_many(struct tw_bench *bench, enum way way)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	struct tw_permit *permit;
	struct many many;
	struct bed bed;
	int error = 0;

	tw_bench_pin(1);
	open_bed(&bed, true);
	make_many(&many, (unsigned)bench->value, way);
	permit = begin_change();
	for (unsigned i = 0; i < many.count && !error; i++)
		error = tw_session_stage(bed.session, permit, many.places[i], &part);
	end_change(permit, error);
	call_many(bench, &many, bed.session);
	close_bed(&bed);
}

TW_BENCH(entry_many_recorded, .values = {64, 1024})
{
	run_many(bench, ENTRY);
}

TW_BENCH(entry_sled_many_recorded, .values = {64, 1024})
{
	run_many(bench, SLED);
}

TW_BENCH(entry_first, .values = {3000, 30000}, .iterations = 1)
{
	struct tw_permit *permit;
	struct many many;
	struct bed bed;
	unsigned jumps = 0;
	int error = 0;

	open_bed(&bed, false);
	make_many(&many, (unsigned)bench->value, ENTRY);
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = (uint8_t)bed.session->slot};

	tw_bench_start(bench);
	permit = begin_change();
	tw_patch_begin(permit);
	for (unsigned i = 0; i < many.count && !error; i++)
		error = tw_bp_stage_set(permit, many.places[i], &part);
	tw_patch_end(permit);
	end_change(permit, error);
	tw_bench_stop(bench);
	for (unsigned i = 0; i < many.count; i++)
		jumps += many.text[(size_t)i * FUNCTION_BYTES] == JUMP;
	tw_bench_happened_in_all(bench, "jumps", jumps, many.count);
	close_bed(&bed);
	free(many.places);
}
