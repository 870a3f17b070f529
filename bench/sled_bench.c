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
#include "base/clock.h"
#include "bench/bed.h"
#include "bench/bench.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "pipeline/format/event.h"
#include "pipeline/hit/count.h"
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
#define FUNCTIONS_MAX  30000u
#define MANY_BYTES     (FUNCTIONS_MAX * FUNCTION_BYTES)

static __attribute__((noinline, patchable_function_entry(9, 0))) uint64_t leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static void stage(const struct bed *bed, const struct tw_bp_part *part)
{
	struct tw_permit *permit = begin_change();

	end_change(permit, tw_session_stage(bed->session, permit,
					    add_sled(permit, "sled_bench", sled_of((uintptr_t)leaf)), part));
}

/* ---- a call ---- */

static void run_armed(struct tw_bench *bench, bool is_traced, uint32_t actions, uint8_t words)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | actions, .slot_words = words};
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, is_traced);
	stage(&bed, &part);
	run_leaf(bench, leaf, bed.session, is_traced + (actions != 0));
	close_bed(&bed);
}

TW_BENCH(sled_off)
{
	tw_bench_pin(1);
	run_leaf(bench, leaf, NULL, 0);
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

/* The number of callers in the last record of the ring. */
static uint64_t callers_of_last(struct bed *bed)
{
	uint8_t *records = malloc(TW_RB_BYTES_DEFAULT);
	struct tw_rb_stretch copied;
	uint64_t callers = 0;
	int64_t bytes;

	tw_rs_scan(&bed->rs);
	TW_BENCH_MUST(records && tw_rs_ring_bytes(&bed->rs, 0) == TW_RB_BYTES_DEFAULT);
	bytes = tw_rb_snapshot(tw_rs_ring(&bed->rs, 0), TW_RB_BYTES_DEFAULT, records, &copied);
	for (int64_t at = 0; at < bytes;) {
		const struct tw_rb_record *record = (const struct tw_rb_record *)(const void *)(records + at);
		uint32_t length = TW_RB_HEAD_BYTES(record->head),
			 is_half = TW_RB_HEAD_FLAGS(record->head) & TW_EVENT_FLAG_HALF;

		callers =
			TW_RB_HEAD_KIND(record->head) == TW_EVENT_STACK ? (length - sizeof *record) / 8 - !!is_half : 0;
		at += length;
	}
	free(records);
	return callers;
}

/* With this many callers per call: the direct caller, and the others by frame pointers. */
TW_BENCH(sled_stack, .values = {1, 8, 32})
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .stack_depth = (uint8_t)bench->value};
	struct frame frames[TW_STACK_DEPTH_MAX];
	uint64_t sum = 0, before, n;
	struct bed bed;

	for (unsigned i = 0; i < TW_STACK_DEPTH_MAX; i++)
		frames[i] = (struct frame){i + 1 < TW_STACK_DEPTH_MAX ? &frames[i + 1] : NULL,
					   (char *)(uintptr_t)call_below + i};
	tw_bench_pin(1);
	open_bed(&bed, true);
	stage(&bed, &part);
	before = events_of(bed.session);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		sum += call_below(frames, i & 511, i);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	/* A call, and its callers. */
	tw_bench_happened(bench, "events", events_of(bed.session) - before, 2);
	tw_bench_happened_in_all(bench, "callers", callers_of_last(&bed), (uint64_t)bench->value);
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
	TW_BENCH_MUST(!tw_layout_parse(text, strlen(text), &layout));
	tw_arg_plan_make(&plan, layout, 64);
	tw_layout_destroy(layout);
	permit = begin_change();
	place = add_sled(permit, "sled_bench", sled_of((uintptr_t)leaf));
	tw_arg_plan_set(place->function, &plan);
	end_change(permit, tw_session_stage(bed.session, permit, place, &part));
	run_leaf(bench, leaf, bed.session, actions ? 2 : 1);
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
static void run_guarded(struct tw_bench *bench, const char *guard, const char *text, bool is_accepted)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	struct tw_match_program *program;
	struct tw_permit *permit;
	struct tw_place *place;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	tw_arg_init();
	TW_BENCH_MUST(!tw_match_compile_when(guard, strlen(guard), NULL, &program, NULL));
	permit = begin_change();
	place = add_sled(permit, "sled_bench", sled_of((uintptr_t)leaf));
	tw_session_use_program(&part, place, program);
	end_change(permit, tw_session_stage(bed.session, permit, place, &part));
	if (text) {
		uint64_t sum = 0, before = events_of(bed.session);

		for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
			sum += leaf((uintptr_t)text, i);
		tw_bench_stop(bench);
		tw_bench_keep(&sum);
		tw_bench_happened(bench, "events", events_of(bed.session) - before, is_accepted);
	} else {
		run_leaf(bench, leaf, bed.session, is_accepted);
	}
	close_bed(&bed);
	tw_match_destroy(program);
}

TW_BENCH(sled_guard_integer_false)
{
	run_guarded(bench, "($1 band 4294967295) > 4096", NULL, false);
}

TW_BENCH(sled_guard_integer_true)
{
	run_guarded(bench, "($1 band 4294967295) < 4096", NULL, true);
}

TW_BENCH(sled_guard_two_false)
{
	run_guarded(bench, "((($1 band 65535) bxor 32768) - 32768) >= 0 and ($2 band 4294967295) > 4294967294", NULL,
		    false);
}

TW_BENCH(sled_guard_string_not)
{
	run_guarded(bench, "string_at($1) == <<117,115,101>>", "users", false);
}

TW_BENCH(sled_guard_string)
{
	run_guarded(bench, "string_at($1) == <<117,115,101,114,115>>", "users", true);
}

TW_BENCH(sled_guard_interpreted)
{
	run_guarded(bench, "($1 band 4294967295) + 1 > 4096", NULL, false);
}

static void sum_counts(void *sum, uint64_t pid, uint64_t count, uint64_t value)
{
	*(uint64_t *)sum += count;
}

static uint64_t counted(const struct tw_session_place *set, uint32_t action)
{
	uint64_t sum = 0;

	if (action == TW_ACTION_COUNT)
		return tw_counter_value(set->counter);
	tw_counts_each(action == TW_ACTION_TIME ? set->times.now : set->memories.now, action == TW_ACTION_TIME,
		       sum_counts, &sum);
	return sum;
}

/* Counters alone, without events. */
static void run_counted(struct tw_bench *bench, uint32_t action)
{
	const struct tw_bp_part part = {.actions = action};
	uint64_t before, sum = 0, n;
	struct tw_permit *permit;
	struct tw_session_place *set;
	struct tw_place *place;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	permit = begin_change();
	place = add_sled(permit, "sled_bench", sled_of((uintptr_t)leaf));
	set = tw_session_remember(bed.session, place);
	TW_BENCH_MUST(set);
	set->times.now = tw_counts_create();
	set->memories.now = tw_counts_create();
	TW_BENCH_MUST(set->times.now && set->memories.now);
	end_change(permit, tw_session_stage(bed.session, permit, place, &part));
	before = counted(set, action);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	TW_BENCH_MUST(sum == sum_of_calls(n));
	tw_bench_happened(bench, "counts", counted(set, action) - before, 1);
	tw_bench_happened(bench, "events", events_of(bed.session), 0);
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

/* No call is recorded: it is counted, and its return is watched. */
static void run_by_end(struct tw_bench *bench, const struct tw_session_longer *longer)
{
	struct tw_permit *permit;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	permit = begin_change();
	end_change(permit,
		   tw_session_stage_longer(bed.session, permit,
					   add_sled(permit, "sled_bench", sled_of((uintptr_t)leaf)), longer, 0));
	/* Not before: its counters stay in this process. */
	tw_hit_host.pinned_rs = bed.session->rs;
	tw_hit_host.pinned_session = bed.session->slot;
	run_leaf(bench, leaf, bed.session, 0);
	tw_hit_host.pinned_rs = NULL;
	close_bed(&bed);
}

/* The same if only calls of a second are recorded (record --longer); or those that return less than -1000; and one comparison more. */
TW_BENCH(sled_longer)
{
	run_by_end(bench, &(struct tw_session_longer){.least_ns = UINT64_C(1000000000)});
}

TW_BENCH(sled_by_result)
{
	run_by_end(bench, made_by_end("((($7 band 4294967295) bxor 2147483648) - 2147483648) < -1000"));
}

TW_BENCH(sled_by_end)
{
	run_by_end(bench, made_by_end("((($7 band 4294967295) bxor 2147483648) - 2147483648) < -1000 and $8 > 1000"));
}

TW_BENCH(sled_call_and_end)
{
	run_armed(bench, true, TW_ACTION_RETURN | TW_ACTION_EXCEPTION, 0);
}

/* The part of a watched return in both of the above: nothing is reported. One addition each counts them. */
static uint64_t hits_of_nothing, returns_of_nothing;

static const char *hit_nothing(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	const tw_return_word kept[TW_RETURNS_WORDS] = {(uintptr_t)place};
	const char *way = NULL;

	hits_of_nothing++;
	tw_returns_open(slot, kept, false, false, &way);
	return way;
}

static uintptr_t return_nothing(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	returns_of_nothing++;
	tw_returns_close(entry);
	return entry->return_address;
}

TW_BENCH(sled_return_watched)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	tw_bp_return_fn old_return;
	tw_bp_hit_fn old_hit;
	uint64_t sum = 0, n;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	old_hit = tw_bp_trampoline_hit;
	old_return = tw_bp_trampoline_return;
	tw_bp_trampoline_hit = hit_nothing;
	tw_bp_trampoline_return = return_nothing;
	hits_of_nothing = returns_of_nothing = 0;
	stage(&bed, &part);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	tw_bp_trampoline_hit = old_hit;
	tw_bp_trampoline_return = old_return;
	TW_BENCH_MUST(sum == sum_of_calls(n));
	tw_bench_happened(bench, "hits", hits_of_nothing, 1);
	tw_bench_happened(bench, "returns", returns_of_nothing, 1);
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
	TW_BENCH_MUST(many->text != MAP_FAILED);
	for (unsigned i = 0; i < count; i++) {
		memset(many->text + (size_t)i * FUNCTION_BYTES, 0x90, SLED_BYTES);
		many->text[(size_t)i * FUNCTION_BYTES + SLED_BYTES] = 0xc3; /* ret */
	}
	TW_BENCH_MUST(!mprotect(many->text, MANY_BYTES, PROT_READ | PROT_EXEC));
}

/* How many of the functions lead elsewhere at their entry. */
static unsigned count_armed(const struct many *many)
{
	unsigned armed = 0;

	for (unsigned i = 0; i < many->count; i++)
		armed += many->text[(size_t)i * FUNCTION_BYTES] == 0xe9; /* jmp */
	return armed;
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
	struct tw_permit *permit = begin_change();
	int error = 0;

	tw_patch_begin(permit);
	for (unsigned i = 0; i < many->count && !error; i++)
		error = is_armed ? tw_bp_stage_set(permit, many->places[i], &part)
				 : tw_bp_stage_clear(permit, many->places[i], session->slot);
	tw_patch_end(permit);
	end_change(permit, error);
}

static void add_many(struct many *many)
{
	struct tw_permit *permit = begin_change();

	for (unsigned i = 0; i < many->count; i++)
		many->places[i] = add_sled(permit, "sled_bench", many->text + (size_t)i * FUNCTION_BYTES);
	end_change(permit, 0);
}

static struct many *open_many(struct bed *bed, unsigned count)
{
	struct many *many = calloc(1, sizeof *many);

	TW_BENCH_MUST(many);
	open_bed(bed, false);
	make_text(many, count);
	add_many(many);
	/* The first time, while there is one thread. */
	set_many(bed->session, many, true);
	set_many(bed->session, many, false);
	for (int i = 0; i < CALLERS; i++)
		TW_BENCH_MUST(!pthread_create(&many->callers[i], NULL, call_many, many));
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

static void store_many(struct tw_permit *permit, const struct many *many, bool is_armed)
{
	tw_patch_begin(permit);
	for (unsigned k = 0; k < many->count; k++)
		(is_armed ? tw_patch_install : tw_patch_uninstall)(permit, many->places[k]);
	tw_patch_end(permit);
}

TW_BENCH(sled_store, .values = {3000, 30000})
{
	struct bed bed;
	struct many *many = open_many(&bed, (unsigned)bench->value);
	struct tw_permit *permit = begin_change();
	uint64_t n = tw_bench_start(bench);

	for (uint64_t i = 0; i < n; i++)
		store_many(permit, many, i % 2 == 0);
	tw_bench_stop(bench);
	TW_BENCH_MUST(count_armed(many) == (n % 2 ? many->count : 0));
	store_many(permit, many, true);
	tw_bench_happened_in_all(bench, "jumps", count_armed(many), many->count);
	store_many(permit, many, false);
	TW_BENCH_MUST(!count_armed(many));
	end_change(permit, 0);
	close_many(&bed, many);
}

TW_BENCH(sled_set, .values = {3000, 30000})
{
	struct bed bed;
	struct many *many = open_many(&bed, (unsigned)bench->value);
	uint64_t n = tw_bench_start(bench);

	for (uint64_t i = 0; i < n; i++)
		set_many(bed.session, many, i % 2 == 0);
	tw_bench_stop(bench);
	TW_BENCH_MUST(count_armed(many) == (n % 2 ? many->count : 0));
	set_many(bed.session, many, true);
	tw_bench_happened_in_all(bench, "jumps", count_armed(many), many->count);
	set_many(bed.session, many, false);
	TW_BENCH_MUST(!count_armed(many));
	close_many(&bed, many);
}

TW_BENCH(sled_first, .values = {3000, 30000}, .iterations = 1)
{
	struct many *many = calloc(1, sizeof *many);
	struct bed bed;

	TW_BENCH_MUST(many);
	open_bed(&bed, false);
	make_text(many, (unsigned)bench->value);
	add_many(many);
	TW_BENCH_MUST(!count_armed(many));
	tw_bench_start(bench);
	set_many(bed.session, many, true);
	tw_bench_stop(bench);
	tw_bench_happened_in_all(bench, "jumps", count_armed(many), many->count);
	set_many(bed.session, many, false);
	close_bed(&bed);
	free(many);
}
