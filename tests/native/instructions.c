/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A recorded call takes no more instructions than it is known to: they are the same on every machine, where times are not.
 * Method	A parent single-steps a child from one breakpoint instruction before a call through a slot to another one behind
 *	it: the call, the hit, the function, and the return.  The child has made such calls before.  Bounds are those measured plus
 *	four; the empty call's are the test's own.
 */
#include "base/clock.h"
#include "pipeline/hit/record.h"
#include "session/places.h"
#include "session/setting.h"
#include "tests/unit/session_bed.h"
#include "tests/unit/slot_help.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t target_fn(uint64_t a, uint64_t b);
static struct tw_place *place;
static void **slot;

__attribute__((noinline)) static uint64_t target(uint64_t a, uint64_t b)
{
	return a ^ b;
}

struct way {
	const char *name;
	struct tw_bp_part part;
	const char *spec;   /* a match specification; NULL: none */
	const char *layout; /* of typed arguments; NULL: none */
	unsigned most;	    /* instructions */
	unsigned calls;	    /* before; 0: some */
};

#define CALL(...)                                      \
	{                                              \
		.actions = TW_ACTION_CALL, __VA_ARGS__ \
	}

static const struct way ways[] = {
	{"not traced", {0}, .most = 6},
	{"recorded", CALL(), .most = 96},
	{"two words", CALL(.slot_words = 2), .most = 183},
	{"six words", CALL(.slot_words = 6), .most = 197},
	{"two typed integers", CALL(.slot_words = TW_SLOT_WORDS_TYPED), .layout = ":u8@6- a:u8@0- b:u8@1-",
	 .most = 183},
	{"accepted by a range test", CALL(), "[{['$1'|'_'],[{'>','$1',5}],[]}]", .most = 195},
	{"refused by a range test", CALL(), "[{['$1'|'_'],[{'<','$1',5}],[]}]", .most = 145},
	{"call and return", {.actions = TW_ACTION_CALL | TW_ACTION_RETURN}, .most = 425},
	{"lost in a full ring", CALL(), .most = 80, .calls = 70000},
};

/* In the child: a call, between two breakpoints if it is the marked one.  Those before use the same stack. */
static __attribute__((noinline)) void call(uint64_t is_marked)
{
	target_fn *function = (target_fn *)(uintptr_t)__atomic_load_n(slot, __ATOMIC_RELAXED);

	__asm__ volatile("testq %1, %1\n\tjz 1f\n\tint3\n1:\tcall *%0\n\ttestq %1, %1\n\tjz 2f\n\tint3\n2:"
			 : "+r"(function)
			 : "r"(is_marked), "D"(0x1111), "S"(0x2222)
			 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");
}

static void set(const struct way *way, struct bed *bed)
{
	static struct tw_match_program *program;
	static struct tw_arg_plan plan;
	struct tw_bp_part part = way->part;
	struct tw_match_error error;
	struct tw_permit *permit;
	struct tw_layout *layout;

	if (way->layout) {
		assert_int_equal(tw_layout_parse(way->layout, strlen(way->layout), &layout), 0);
		tw_arg_plan_make(&plan, layout, 64);
		tw_arg_plan_set(place->function, &plan);
	}
	if (way->spec) {
		assert_int_equal(tw_match_compile_text(way->spec, strlen(way->spec), NULL, &program, &error), 0);
		tw_session_use_program(&part, place, program);
	}
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_session_stage(bed->session, permit, place, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static void run_child(const struct way *way)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	struct bed bed;

	place = add_slot_place("instructions_slot", (void *)target, &slot);
	open_bed_with(&bed, "instructions", &options);
	assert_true(tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL) >= 0);
	if (way->part.actions)
		set(way, &bed);
	for (unsigned i = 0; i < (way->calls ? way->calls : 9); i++)
		call(false);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	call(true);
	_exit(way->calls ? !count_lost(&bed) : 0);
}

static bool is_mark(pid_t child)
{
	siginfo_t info;

	assert_int_equal(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
	return info.si_signo == SIGTRAP && info.si_code == SI_KERNEL;
}

/* The instructions between the two breakpoints. */
static unsigned count_instructions(const struct way *way)
{
	pid_t child = fork();
	unsigned count = 0;
	int status;

	assert_true(child >= 0);
	if (child == 0)
		run_child(way);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	ptrace(PTRACE_CONT, child, 0, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status) && is_mark(child));
	for (;; count++) {
		ptrace(PTRACE_SINGLESTEP, child, 0, 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSTOPPED(status));
		if (is_mark(child))
			break;
	}
	ptrace(PTRACE_CONT, child, 0, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return count;
}

static void each_way_takes_no_more_than_before(void **state)
{
	bool is_well = true;

	tw_clock_init();
	/* The slow clock is a call of libc. */
	if (!tw_clock_is_counter())
		skip();
	for (unsigned i = 0; i < TW_COUNT_OF(ways); i++) {
		unsigned count = count_instructions(&ways[i]);

		print_message("%-28s %4u instructions, at most %u\n", ways[i].name, count, ways[i].most);
		is_well &= count <= ways[i].most;
	}
	assert_true(is_well);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_takes_no_more_than_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
