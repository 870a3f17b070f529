/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_bench.c - what does a call of a function with an entry sled cost, and a change of many of them?
 *
 * Unit	nanoseconds a call, loop and callee included; sled_off is the call with NOPs.  For changes: nanoseconds
 *	for all functions of the row.
 * Peers	uftrace 87.5 ns and XRay 168 ns for entry and exit; uftrace arms 2,868 functions in 1.04 ms at
 *	start, XRay 2,325 in 0.73, and neither while threads run.  OTP sets 30,000 functions in 2.9 ms.
 * Method	Calls: a leaf function of two words.  Changes: functions made at run time, 64 bytes apart, which three threads
 *	call all the time; sled_store is the writing alone, with the text made writable and restored, sled_set all that
 *	a user waits for: staging, the recipe, its waits.  Each row sets or clears once an iteration. sled_first is the
 *	first time, with stubs and private pages made, before threads run.
 */
#include "base/atomic.h"
#include "bench/bed.h"
#include "bench/bench.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/native.h"
#include "ringbuf/ringset.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CALLERS	       3
#define FUNCTION_BYTES 64u
#define SLED_BYTES     9u
#define FUNCTIONS_MAX  30000u
#define MANY_BYTES     (FUNCTIONS_MAX * FUNCTION_BYTES)

static __attribute__((noinline, patchable_function_entry(9, 0))) uint64_t leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static void *sled_of_leaf(void)
{
	uint8_t *at = (uint8_t *)(uintptr_t)leaf;

	return memcmp(at, "\xf3\x0f\x1e\xfa", 4) ? at : at + 4;
}

static struct tw_place *add_sled(struct tw_permit *permit, void *where)
{
	const struct tw_place_options options = {.kind = TW_BP_SLED, .where = where, .sled_bytes = SLED_BYTES};

	return add_place(permit, &options);
}

/* ---- a call ---- */

static void run_calls(struct tw_bench *bench)
{
	uint64_t sum = 0;

	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
}

static void run_armed(struct tw_bench *bench, bool is_traced, uint32_t actions, uint8_t words)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | actions, .slot_words = words};
	struct tw_permit *permit;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, is_traced);
	if (tw_change_begin(&permit) ||
	    tw_change_end(permit, tw_session_stage(bed.session, permit, add_sled(permit, sled_of_leaf()), &part)))
		abort();
	run_calls(bench);
	close_bed(&bed);
}

TW_BENCH(sled_off)
{
	tw_bench_pin(1);
	run_calls(bench);
}

TW_BENCH(sled_not_traced)
{
	run_armed(bench, false, 0, 0);
}

TW_BENCH(sled_recorded)
{
	run_armed(bench, true, 0, 0);
}

TW_BENCH(sled_recorded_two_words)
{
	run_armed(bench, true, 0, 2);
}

/* A function's frame with a frame pointer. */
struct frame {
	const struct frame *above;
	void *return_address;
};

/* Calls as from the innermost of these frames. */
static uint64_t call_below(const struct frame *frame, uint64_t a, uint64_t b)
{
	__asm__ volatile("pushq %%rbp\n\tmovq %2, %%rbp\n\tcall *%3\n\tpopq %%rbp"
			 : "+D"(a), "+S"(b)
			 : "r"(frame), "r"(leaf)
			 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");
	return a;
}

/* With this many callers per call: the direct caller, and the others by frame pointers. */
TW_BENCH(sled_stack, .values = {1, 8, 32})
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .stack_depth = (uint8_t)bench->value};
	struct frame frames[TW_STACK_DEPTH_MAX];
	struct tw_permit *permit;
	uint64_t sum = 0;
	struct bed bed;

	for (unsigned i = 0; i < TW_STACK_DEPTH_MAX; i++)
		frames[i] = (struct frame){i + 1 < TW_STACK_DEPTH_MAX ? &frames[i + 1] : NULL,
					   (char *)(uintptr_t)call_below + i};
	tw_bench_pin(1);
	open_bed(&bed, true);
	if (tw_change_begin(&permit) ||
	    tw_change_end(permit, tw_session_stage(bed.session, permit, add_sled(permit, sled_of_leaf()), &part)))
		abort();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += call_below(frames, i & 511, i);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	close_bed(&bed);
}

/* Arguments as debug information has them: two integers; an integer and a floating-point number; a string. */
static void run_typed(struct tw_bench *bench, const char *text, uint32_t actions)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | actions, .slot_words = TW_SLOT_WORDS_TYPED};
	static struct tw_arg_plan plan;
	struct tw_layout *layout;
	struct tw_permit *permit;
	struct tw_place *place;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	tw_arg_init();
	if (tw_layout_parse(text, strlen(text), &layout) || tw_change_begin(&permit))
		abort();
	tw_arg_plan_make(&plan, layout, 64);
	tw_layout_destroy(layout);
	place = add_sled(permit, sled_of_leaf());
	place->function->arguments = &plan;
	if (tw_change_end(permit, tw_session_stage(bed.session, permit, place, &part)))
		abort();
	run_calls(bench);
	close_bed(&bed);
}

TW_BENCH(sled_typed_two)
{
	run_typed(bench, ":i8@6- a:i4@0- b:u8@1-", 0);
}

TW_BENCH(sled_typed_float)
{
	run_typed(bench, ":i8@6- a:i4@0- d:f8@8-", 0);
}

/* The address is small: the kernel reports that nothing is mapped there. */
TW_BENCH(sled_typed_no_string)
{
	run_typed(bench, ":i8@6- s:s8@0-", 0);
}

TW_BENCH(sled_typed_two_and_return)
{
	run_typed(bench, ":i8@6- a:i4@0- b:u8@1-", TW_ACTION_RETURN);
}

/*
 * Guards as --when makes them from names: an unsigned of four bytes, false and true; two of them, and one of a signed
 * byte, which take the small loop; a string in the program's data, equal and not; the interpreter.
 */
static void run_guarded(struct tw_bench *bench, const char *guard, const char *text)
{
	uint64_t sum = 0;
	struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	struct tw_match_program *program;
	struct tw_permit *permit;
	struct tw_place *place;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	tw_arg_init();
	if (tw_match_compile_when(guard, strlen(guard), NULL, &program, NULL) || tw_change_begin(&permit))
		abort();
	place = add_sled(permit, sled_of_leaf());
	tw_session_use_program(&part, place, program);
	if (tw_change_end(permit, tw_session_stage(bed.session, permit, place, &part)))
		abort();
	if (text) {
		for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
			sum += leaf((uintptr_t)text, i);
		tw_bench_stop(bench);
		tw_bench_keep(&sum);
	} else {
		run_calls(bench);
	}
	close_bed(&bed);
	tw_match_destroy(program);
}

TW_BENCH(sled_guard_integer_false)
{
	run_guarded(bench, "($1 band 4294967295) > 4096", NULL);
}

TW_BENCH(sled_guard_integer_true)
{
	run_guarded(bench, "($1 band 4294967295) < 4096", NULL);
}

TW_BENCH(sled_guard_two_false)
{
	run_guarded(bench, "((($1 band 65535) bxor 32768) - 32768) >= 0 and ($2 band 4294967295) > 4294967294", NULL);
}

TW_BENCH(sled_guard_string_not)
{
	run_guarded(bench, "string_at($1) == <<117,115,101>>", "users");
}

TW_BENCH(sled_guard_string)
{
	run_guarded(bench, "string_at($1) == <<117,115,101,114,115>>", "users");
}

TW_BENCH(sled_guard_interpreted)
{
	run_guarded(bench, "($1 band 4294967295) + 1 > 4096", NULL);
}

/* Counters alone, without events. */
static void run_counted(struct tw_bench *bench, uint32_t actions)
{
	const struct tw_bp_part part = {.actions = actions};
	struct tw_permit *permit;
	struct tw_session_place *set;
	struct tw_place *place;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	if (tw_change_begin(&permit))
		abort();
	place = add_sled(permit, sled_of_leaf());
	set = tw_session_remember(bed.session, place);
	set->times.now = tw_counts_create();
	set->memories.now = tw_counts_create();
	if (tw_change_end(permit, tw_session_stage(bed.session, permit, place, &part)))
		abort();
	run_calls(bench);
	close_bed(&bed);
}

TW_BENCH(sled_call_count)
{
	run_counted(bench, TW_ACTION_COUNT);
}

/* The call and its watched return. */
TW_BENCH(sled_call_time)
{
	run_counted(bench, TW_ACTION_TIME);
}

/* The same without a clock; the program's allocations are counted in one word. */
TW_BENCH(sled_call_memory)
{
	run_counted(bench, TW_ACTION_MEMORY);
}

TW_BENCH(sled_call_and_return)
{
	run_armed(bench, true, TW_ACTION_RETURN, 0);
}

TW_BENCH(sled_call_and_end)
{
	run_armed(bench, true, TW_ACTION_RETURN | TW_ACTION_EXCEPTION, 0);
}

/* The part of a watched return in both of the above: nothing is reported. */
static const char *hit_nothing(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	const tw_return_word kept[TW_RETURNS_WORDS] = {(uintptr_t)place};
	const char *way = NULL;

	tw_returns_open(slot, kept, false, false, &way);
	return way;
}

static uintptr_t return_nothing(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	tw_returns_close(entry);
	return entry->return_address;
}

TW_BENCH(sled_return_watched)
{
	tw_bp_hit_fn hit = tw_native_hit;
	struct tw_permit *permit;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	tw_bp_trampoline_hit = hit_nothing;
	tw_bp_trampoline_return = return_nothing;
	if (tw_change_begin(&permit) ||
	    tw_change_end(permit, tw_session_stage(bed.session, permit, add_sled(permit, sled_of_leaf()),
						   &(struct tw_bp_part){.actions = TW_ACTION_CALL})))
		abort();
	run_calls(bench);
	tw_bp_trampoline_hit = hit;
	tw_bp_trampoline_return = tw_native_return;
	close_bed(&bed);
}

/* ---- many functions ---- */

struct many {
	uint8_t *text;
	unsigned count;
	struct tw_place *places[FUNCTIONS_MAX];
	pthread_t callers[CALLERS];
	_Atomic bool must_end;
};

static void make_text(struct many *many, unsigned count)
{
	many->count = count;
	many->text = mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (many->text == MAP_FAILED)
		abort();
	for (unsigned i = 0; i < count; i++) {
		memset(many->text + (size_t)i * FUNCTION_BYTES, 0x90, SLED_BYTES);
		many->text[(size_t)i * FUNCTION_BYTES + SLED_BYTES] = 0xc3; /* ret */
	}
	mprotect(many->text, MANY_BYTES, PROT_READ | PROT_EXEC);
}

static void *call_many(void *arg)
{
	struct many *many = arg;

	/* RELAXED bench.end: a flag that ends the loop. */
	while (!tw_load_relaxed(&many->must_end)) {
		for (unsigned i = 0; i < many->count; i++) {
			uint8_t *at = many->text + (size_t)i * FUNCTION_BYTES;
			void (*function)(void);

			memcpy(&function, &at, sizeof function);
			function();
		}
	}
	return NULL;
}

static void set_many(struct tw_session *session, struct many *many, bool is_armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = (uint8_t)session->slot};
	struct tw_permit *permit;
	int error = 0;

	if (tw_change_begin(&permit))
		abort();
	tw_patch_begin(permit);
	for (unsigned i = 0; i < many->count && !error; i++)
		error = is_armed ? tw_bp_stage_set(permit, many->places[i], &part)
				 : tw_bp_stage_clear(permit, many->places[i], session->slot);
	tw_patch_end(permit);
	if (tw_change_end(permit, error))
		abort();
}

static void add_many(struct many *many)
{
	struct tw_permit *permit;

	if (tw_change_begin(&permit))
		abort();
	for (unsigned i = 0; i < many->count; i++)
		many->places[i] = add_sled(permit, many->text + (size_t)i * FUNCTION_BYTES);
	if (tw_change_end(permit, 0))
		abort();
}

static struct many *open_many(struct bed *bed, unsigned count)
{
	struct many *many = calloc(1, sizeof *many);

	if (!many)
		abort();
	open_bed(bed, false);
	make_text(many, count);
	add_many(many);
	/* The first time, while there is one thread. */
	set_many(bed->session, many, true);
	set_many(bed->session, many, false);
	for (int i = 0; i < CALLERS; i++)
		if (pthread_create(&many->callers[i], NULL, call_many, many))
			abort();
	return many;
}

/* Text and places stay: a place lives forever. */
static void close_many(struct bed *bed, struct many *many)
{
	/* RELAXED bench.end: as above. */
	tw_store_relaxed(&many->must_end, true);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(many->callers[i], NULL);
	close_bed(bed);
	free(many);
}

TW_BENCH(sled_store, .values = {3000, 30000})
{
	struct bed bed;
	struct many *many = open_many(&bed, (unsigned)bench->value);
	struct tw_permit *permit;

	if (tw_change_begin(&permit))
		abort();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_patch_begin(permit);
		for (unsigned k = 0; k < many->count; k++)
			(i % 2 ? tw_patch_uninstall : tw_patch_install)(permit, many->places[k]);
		tw_patch_end(permit);
	}
	tw_bench_stop(bench);
	tw_patch_begin(permit);
	for (unsigned k = 0; k < many->count; k++)
		tw_patch_uninstall(permit, many->places[k]);
	tw_patch_end(permit);
	tw_change_end(permit, 0);
	close_many(&bed, many);
}

TW_BENCH(sled_set, .values = {3000, 30000})
{
	struct bed bed;
	struct many *many = open_many(&bed, (unsigned)bench->value);

	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		set_many(bed.session, many, i % 2 == 0);
	tw_bench_stop(bench);
	set_many(bed.session, many, false);
	close_many(&bed, many);
}

TW_BENCH(sled_first, .values = {3000, 30000}, .iterations = 1)
{
	struct many *many = calloc(1, sizeof *many);
	struct bed bed;

	if (!many)
		abort();
	open_bed(&bed, false);
	make_text(many, (unsigned)bench->value);
	add_many(many);
	tw_bench_start(bench);
	set_many(bed.session, many, true);
	tw_bench_stop(bench);
	set_many(bed.session, many, false);
	close_bed(&bed);
	free(many);
}
