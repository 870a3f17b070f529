/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	One call leaves the same record on every path through the hit path; docs/hit-path.md has the table of paths.
 * Method	A slot, a sled and a declared function, called with the same words once for each setting.  The functions
 *	that distinguish the paths are wrapped and note that they were called: each call takes the path of the
 *	document's table, and no other.  The records are compared with the call's words and with each other.
 */
#include "session/places.h"
#include "session/setting.h"
#include "tests/unit/session_bed.h"
#include "tests/unit/slot_help.h"

#include "pipeline/hit/counted.h"
#include "pipeline/hit/one.h"
#include "pipeline/hit/record.h"
#include "pipeline/hit/special.h"
#include "pipeline/thread/thread.h"

#include <pthread.h>
#include <sys/mman.h>

/* The functions that a call passed. */
enum {
	GENERAL = 1, /* hit.c, of a native call */
	UNREADY = 2, /* the thread joined */
	STAMPED = 4,
	PROGRAM = 8,  /* a match program was run */
	DECIDED = 16, /* and requested more than a plain event */
	SPECIAL = 32,
	COUNTER = 64,
	ACCOUNT = 128,
	ONE = 256, /* one.c, of the command's session */
	ACTED = 512,
	WHOLE = 1024 /* C, of a native call */
};
static unsigned passed;

/* Trampolines keep the integer registers only. */
#define IN_HIT __attribute__((target("general-regs-only")))
/* The linker redirects the hit path's calls of NAME here; NAME's own body is __real_NAME. */
#define WRAP(bit, type, name, parameters, arguments) \
	type __real_##name parameters;               \
	type __wrap_##name parameters;               \
	IN_HIT type __wrap_##name parameters         \
	{                                            \
		passed |= bit;                       \
		return __real_##name arguments;      \
	}

WRAP(GENERAL, bool, tw_hit_native_inside,
     (struct tw_place * place, const uint64_t *words, uint64_t *at, struct tw_frame_wants *out),
     (place, words, at, out))
WRAP(UNREADY, bool, tw_hit_join, (void), ())
WRAP(STAMPED, uint64_t, tw_record_stamped,
     (struct tw_hit_tls * t, const struct tw_place *place, uint64_t todo, const uint64_t *words, unsigned count),
     (t, place, todo, words, count))
WRAP(PROGRAM, enum tw_match_verdict, tw_match_run_raw,
     (const struct tw_match_program *program, const uint64_t *words, unsigned count, struct tw_match_run *run),
     (program, words, count, run))
WRAP(DECIDED, uint64_t, tw_hit_decided,
     (struct tw_hit_tls * t, struct tw_place *place, const struct tw_bp_part *part, const struct tw_hit_call *call),
     (t, place, part, call))
WRAP(SPECIAL, uint64_t, tw_hit_special,
     (struct tw_hit_tls * t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call),
     (t, place, todo, call))
WRAP(ONE, const char *, tw_one_call, (struct tw_place * place, const uint64_t *words, uint64_t *at), (place, words, at))
WRAP(ACTED, void, tw_hit_act, (struct tw_hit_tls * t), (t))
WRAP(COUNTER, const char *, tw_counted_call, (struct tw_place * place, const uint64_t *words, uint64_t *at),
     (place, words, at))
WRAP(ACCOUNT, const char *, tw_counted_enter, (struct tw_place * place, const uint64_t *words, uint64_t *at),
     (place, words, at))

static tw_bp_hit_fn whole_hit;

IN_HIT static const char *pass_whole(struct tw_place *place, const uint64_t *words, uint64_t *at)
{
	passed |= WHOLE;
	return whole_hit(place, words, at);
}

/* ---- the two places ---- */

#define A UINT64_C(0x1111)
#define B UINT64_C(0x2222)

typedef uint64_t target_fn(uint64_t a, uint64_t b);
static struct tw_declared_function declared = TW_DECLARED_FUNCTION("hit_path", "declared", 2);
static struct tw_place *native;
static void **slot;

__attribute__((noinline)) static uint64_t target(uint64_t a, uint64_t b)
{
	return a ^ b;
}

static void call_native(void)
{
	target_fn *call = (target_fn *)(uintptr_t)__atomic_load_n(slot, __ATOMIC_RELAXED);

	assert_int_equal(call(A, B), A ^ B);
}

static void call_declared(void)
{
	tw_call2(&declared, A, B);
}

static void *call_native_on_thread(void *unused)
{
	call_native();
	return NULL;
}

static void call_on_new_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_native_on_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* In a library with entry sleds. */
int work_alone(int a);

static void call_sled(void)
{
	assert_int_equal(work_alone(3), 3);
}

/* ---- settings ---- */

/* A path: the place's setting, the call, and its expected result. */
struct way {
	const char *name;
	void (*call)(void);
	struct tw_bp_part part; /* the native place's setting */
	const char *spec;	/* a match specification, NULL: none */
	uint32_t flags;		/* of the process, in addition to call */
	uint32_t counts;	/* TW_FUNCTION_CALL_*, for the sled, and nothing else */
	unsigned sessions;	/* with the same setting; 0: one */
	unsigned passes;
	unsigned words;	    /* words of A and B in the record */
	bool is_silent;	    /* no record */
	bool is_bare;	    /* the call never gets to C */
	bool is_sled;	    /* of the sled, recorded */
	bool is_command;    /* the first session is the command's */
	const char *layout; /* of the native place's function; the record has typed words */
};

#define RECORDED                          \
	{                                 \
		.actions = TW_ACTION_CALL \
	}
#define GUARD "[{['$1','$2'|'_'],[{'<','$1','$2'}],[]}]"

static const struct way ways[] = {
	{"at once", call_native, RECORDED, .passes = 0, .is_bare = true},
	{"at once: a sled", call_sled, {0}, .passes = 0, .is_bare = true, .is_sled = true},
	{"at once, by a range test", call_native, RECORDED, "[{['$1'|'_'],[{'>','$1',5}],[]}]", .passes = 0},
	{"refused by a range test", call_native, RECORDED, "[{['$1'|'_'],[{'<','$1',5}],[]}]", .passes = 0,
	 .is_silent = true},
	{"plain: two sessions", call_native, RECORDED, .sessions = 2, .passes = ONE | GENERAL},
	{"plain: a new thread", call_on_new_thread, RECORDED, .passes = UNREADY | ONE | GENERAL},
	{"plain: declared", call_declared, {0}, .passes = 0, .words = 2},
	{"plain: declared, by a range test",
	 call_declared,
	 {0},
	 "[{['$1'|'_'],[{'>','$1',5}],[]}]",
	 .passes = 0,
	 .words = 2},
	{"stamped: declared",
	 call_declared,
	 {0},
	 .flags = TW_FLAG_STRICT_MONOTONIC_TIMESTAMP,
	 .passes = STAMPED,
	 .words = 2},
	{"at once: words", call_native, {.actions = TW_ACTION_CALL, .slot_words = 2}, .passes = 0, .words = 2},
	{"at once: a word", call_native, {.actions = TW_ACTION_CALL, .slot_words = 1}, .passes = 0, .words = 1},
	{"at once: words, by a range test",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 "[{['$1'|'_'],[{'>','$1',5}],[]}]",
	 .passes = 0,
	 .words = 2},
	{"refused by a range test: words",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 "[{['$1'|'_'],[{'<','$1',5}],[]}]",
	 .passes = 0,
	 .is_silent = true},
	{"at once: typed words",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = TW_SLOT_WORDS_TYPED},
	 .passes = 0,
	 .words = 2,
	 .layout = ":u8@6- a:u8@0- b:u8@1-"},
	{"general: words that are not only in registers",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = TW_SLOT_WORDS_TYPED},
	 .passes = ONE | GENERAL,
	 .words = 3,
	 .layout = ":u8@6- a:u8@0- b:u8@1- c:f8@8-"},
	{"arguments: a new thread",
	 call_on_new_thread,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 .passes = UNREADY | ONE | GENERAL,
	 .words = 2},
	{"program", call_native, RECORDED, GUARD, .passes = ONE | GENERAL | PROGRAM},
	{"program, that says no", call_native, RECORDED, "[{['$1','$2'|'_'],[{'>','$1','$2'}],[]}]",
	 .passes = ONE | GENERAL | PROGRAM, .is_silent = true},
	{"program: declared",
	 call_declared,
	 {0},
	 "[{['$1','$2'],[{'<','$1','$2'}],[]}]",
	 .passes = PROGRAM,
	 .words = 2},
	{"program and more", call_native, RECORDED, "[{'_',[],[{message,7}]}]",
	 .passes = ONE | GENERAL | PROGRAM | DECIDED},
	{"general: strict stamps", call_native, RECORDED, .flags = TW_FLAG_STRICT_MONOTONIC_TIMESTAMP,
	 .passes = ONE | GENERAL | SPECIAL},
	{"general: two programs", call_native, RECORDED, GUARD, .sessions = 2,
	 .passes = ONE | GENERAL | SPECIAL | PROGRAM},
	{"general: arguments and a program",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 GUARD,
	 .passes = ONE | GENERAL | SPECIAL | PROGRAM,
	 .words = 2},
	{"counted", call_sled, {0}, .counts = TW_FUNCTION_CALL_COUNT, .passes = COUNTER, .is_silent = true},
	{"counted with time",
	 call_sled,
	 {0},
	 .counts = TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME,
	 .passes = ACCOUNT,
	 .is_silent = true},
	{"one: a new thread", call_on_new_thread, RECORDED, .passes = UNREADY | ONE, .is_command = true},
	{"one: arguments",
	 call_on_new_thread,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 .passes = UNREADY | ONE,
	 .words = 2,
	 .is_command = true},
	{"one: a program", call_native, RECORDED, GUARD, .passes = ONE | PROGRAM, .is_command = true},
	{"one: a program, that says no", call_native, RECORDED, "[{['$1','$2'|'_'],[{'>','$1','$2'}],[]}]",
	 .passes = ONE | PROGRAM, .is_silent = true, .is_command = true},
	{"one: a program and more", call_native, RECORDED, "[{'_',[],[{message,7}]}]", .passes = ONE | PROGRAM | ACTED,
	 .is_command = true},
	{"one: a program and no event", call_native, RECORDED, "[{'_',[],[{message,false}]}]",
	 .passes = ONE | PROGRAM | ACTED, .is_silent = true, .is_command = true},
	{"one: arguments and a program",
	 call_native,
	 {.actions = TW_ACTION_CALL, .slot_words = 2},
	 GUARD,
	 .passes = ONE | PROGRAM,
	 .words = 2,
	 .is_command = true},
	{"one: a stack", call_native, {.actions = TW_ACTION_CALL, .stack_depth = 1}, .passes = ONE, .is_command = true},
	{"one: strict stamps", call_native, RECORDED, .flags = TW_FLAG_STRICT_MONOTONIC_TIMESTAMP,
	 .passes = ONE | GENERAL | SPECIAL, .is_command = true},
	{"general: a stack",
	 call_native,
	 {.actions = TW_ACTION_CALL, .stack_depth = 1},
	 .passes = ONE | GENERAL | SPECIAL},
};

static struct tw_match_program *compile(const char *spec)
{
	struct tw_match_error error;
	struct tw_match_program *program = NULL;

	if (spec)
		assert_int_equal(tw_match_compile_text(spec, strlen(spec), NULL, &program, &error), 0);
	return program;
}

/* The function of the native place gets this layout; NULL: none. */
static void lay_out(const char *text)
{
	static struct tw_arg_plan plan;
	struct tw_layout *layout;

	memset(&plan, 0, sizeof plan);
	if (text) {
		assert_int_equal(tw_layout_parse(text, strlen(text), &layout), 0);
		tw_arg_plan_make(&plan, layout, 64);
		tw_layout_destroy(layout);
	}
	tw_arg_plan_set(native->function, &plan);
}

static void set(const struct way *way, struct bed *bed, const struct tw_match_program *program)
{
	struct tw_bp_part part = way->part;
	struct tw_permit *permit;

	assert_true(tw_trace_process(bed->session, TW_PID_ALL, true, TW_FLAG_CALL | way->flags) >= 0);
	if (way->counts || way->is_sled) {
		assert_int_equal(tw_trace_function(bed->session, "libnativework", "work_alone", TW_ARITY_ANY,
						   TW_MATCH_TRUE, TW_FUNCTION_LOCAL | way->counts),
				 1);
		if (!way->counts)
			return;
		assert_int_equal(tw_trace_function(bed->session, "libnativework", "work_alone", TW_ARITY_ANY,
						   TW_MATCH_FALSE, TW_FUNCTION_LOCAL),
				 1);
		return;
	}
	if (!part.actions) {
		assert_int_equal(program ? tw_trace_function_match(bed->session, "hit_path", "declared", 2, program,
								   TW_FUNCTION_LOCAL)
					 : tw_trace_function(bed->session, "hit_path", "declared", 2, TW_MATCH_TRUE,
							     TW_FUNCTION_LOCAL),
				 1);
		return;
	}
	lay_out(way->layout);
	if (program)
		tw_session_use_program(&part, native, program);
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_session_stage(bed->session, permit, native, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

/* Checks the session's one call: kind, place, stamp and words. */
static void check(const struct way *way, struct bed *bed)
{
	const struct tw_place *place = way->part.actions ? native : declared.place;
	bool is_strict = way->flags & TW_FLAG_STRICT_MONOTONIC_TIMESTAMP;
	struct tw_rb_record *r[8], *record = NULL;
	const uint64_t *payload;

	for (unsigned n = take(bed, r, 8); n; n--)
		if (TW_RB_HEAD_KIND(r[n - 1]->head) == TW_EVENT_CALL) {
			assert_null(record);
			record = r[n - 1];
		}
	if (way->is_silent) {
		assert_null(record);
		return;
	}
	assert_non_null(record);
	if (!way->is_sled)
		assert_int_equal(TW_RB_HEAD_ID(record->head), place->place_id);
	assert_int_equal(TW_RB_HEAD_FLAGS(record->head) & TW_EVENT_FLAG_STAMP_MASK,
			 is_strict ? TW_STAMP_STRICT_MONOTONIC : TW_STAMP_NONE);
	payload = tw_event_payload(record) + is_strict;
	if (TW_RB_HEAD_FLAGS(record->head) & TW_EVENT_FLAG_EXTRA) {
		assert_int_equal((uint32_t)payload[0], way->words);
		return;
	}
	assert_int_equal(tw_event_payload_words(record->head), way->words + is_strict);
	assert_int_equal(!!(TW_RB_HEAD_FLAGS(record->head) & TW_EVENT_FLAG_ARGS), !!way->layout);
	for (unsigned word = 0; word < way->words && word < 2; word++)
		assert_int_equal(payload[word], word ? B : A);
}

/* Calls that get to C are seen from here on. */
static void see_whole(void)
{
	if (tw_bp_trampoline_hit == pass_whole)
		return;
	whole_hit = tw_bp_trampoline_hit;
	tw_bp_trampoline_hit = pass_whole;
}

static void take_way(const struct way *way)
{
	unsigned sessions = way->sessions ? way->sessions : 1, by_call;
	unsigned passes = way->passes | (way->is_bare || way->call == call_declared ? 0 : WHOLE);
	struct tw_match_program *program = compile(way->spec);
	struct bed beds[2];

	/* This thread joins, and each session's first record is preceded by its switch record. */
	for (unsigned i = 0; i < sessions; i++) {
		open_bed(&beds[i], i ? "second" : "first");
		set(way, &beds[i], program);
	}
	if (way->is_command) {
		tw_hit_host.pinned_session = beds[0].session->slot;
		tw_hit_host.pinned_rs = &beds[0].rs;
	}
	way->call();
	for (unsigned i = 0; i < sessions; i++) {
		struct tw_rb_record *r[8];

		take(&beds[i], r, 8);
	}
	see_whole();
	passed = 0;
	way->call();
	by_call = passed;
	if (by_call != passes)
		print_error("%s\n", way->name);
	assert_int_equal(by_call, passes);
	for (unsigned i = 0; i < sessions; i++)
		check(way, &beds[i]);
	tw_hit_host.pinned_rs = NULL;
	for (unsigned i = sessions; i-- > 0;)
		close_bed(&beds[i]);
	if (program)
		tw_match_destroy(program);
}

static void one_call_on_every_path(void **state)
{
	for (unsigned i = 0; i < TW_COUNT_OF(ways); i++)
		take_way(&ways[i]);
}

static uint64_t lost_in(const struct bed *bed)
{
	const struct tw_thread_ring *ring = &tw_hit_tls.thread->rings[bed->session->slot];

	/* RELAXED test: this thread's own count. */
	return tw_load_relaxed(&ring->producer.shared->lost[TW_RB_LOST_FULL]);
}

/* Calls that find a full ring are counted one by one, mostly without C, and once there is space they are told before the next record. */
static void lost_calls_are_counted(void **state)
{
	const struct way way = {"lost", call_native, RECORDED, .is_bare = true};
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	const unsigned calls = 100000;
	unsigned whole = 0;
	struct bed bed;

	open_bed_with(&bed, "lost", &options);
	set(&way, &bed, NULL);
	call_native();
	see_whole();
	while (!lost_in(&bed))
		call_native();
	for (unsigned i = 0; i < calls; i++) {
		passed = 0;
		call_native();
		assert_int_equal(passed & ~(unsigned)WHOLE, 0);
		whole += passed & WHOLE ? 1 : 0;
		assert_int_equal(lost_in(&bed), i + 2);
	}
	/* Now and then the clock is read. */
	assert_true(whole <= calls / TW_RB_REFUSALS_UNTIMED);
	assert_int_equal(count_lost(&bed), calls + 1);
	close_bed(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call_on_every_path),
		cmocka_unit_test(lost_calls_are_counted),
	};

	native = add_slot_place("hit_path_slot", (void *)target, &slot);
	assert_int_equal(tw_function_declare(&declared), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
