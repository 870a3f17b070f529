/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A function sees the same registers and stack through a planted entry as without, and its caller gets the same ones back,
 *         whether the entry is armed or not: all general registers, vector registers, the red zone, the status flags that the
 *         function sets; entered beside the stub, also the flags that the function finds. If its return is watched, the same but the
 *         flags, which no caller reads after a call, with an aligned stack and, as compilers call local functions, with another.
 * Method  Functions in assembly, one a class of displaced instruction, some of which read the flags, the stack pointer or the red zone
 *         that they find at their entry. Each is called with random registers and flags, before it is planted, armed and switched
 *         off; what it leaves is compared. The hit and the watched return change every register that they may. The control: a
 *         function that is called with another flag leaves something else.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "plan/plan.h"
#include "sanitized_help.h"
#include "tracewheel/error.h"
#include "tests/common/random.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* rax rcx rdx rbx rbp rsi rdi r8..r15, flags, and eight vector registers; the stack pointer is compared by the call itself. */
struct state {
	uint64_t general[15];
	uint64_t flags;
	uint64_t vectors[16];
	uint64_t moved; /* the stack pointer after the call, less that before */
};

/* CF PF AF ZF SF OF */
#define FLAGS 0x8d5u

void call_with_state(struct state *state, void *function);
/* %rdi: the state, %rsi: the function; both are kept on the stack. */
__asm__(".pushsection .text\n.p2align 4\n.globl call_with_state\n.type call_with_state, @function\ncall_with_state:\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rsi\npush %rdi\nsub $8, %rsp\n"
	"mov %rsp, state_stack(%rip)\n"
	"movups 128(%rdi), %xmm0\nmovups 144(%rdi), %xmm1\nmovups 160(%rdi), %xmm2\nmovups 176(%rdi), %xmm3\n"
	"movups 192(%rdi), %xmm4\nmovups 208(%rdi), %xmm5\nmovups 224(%rdi), %xmm14\nmovups 240(%rdi), %xmm15\n"
	"pushq 120(%rdi)\npopfq\n"
	"mov 0(%rdi), %rax\nmov 8(%rdi), %rcx\nmov 16(%rdi), %rdx\nmov 24(%rdi), %rbx\nmov 32(%rdi), %rbp\nmov 40(%rdi), %rsi\n"
	"mov 56(%rdi), %r8\nmov 64(%rdi), %r9\nmov 72(%rdi), %r10\nmov 80(%rdi), %r11\nmov 88(%rdi), %r12\n"
	"mov 96(%rdi), %r13\nmov 104(%rdi), %r14\nmov 112(%rdi), %r15\nmov 48(%rdi), %rdi\n"
	"call *state_function(%rip)\n"
	"push %rdi\nmov 16(%rsp), %rdi\nmov %rax, 0(%rdi)\nmov %rcx, 8(%rdi)\nmov %rdx, 16(%rdi)\nmov %rbx, 24(%rdi)\n"
	"mov %rbp, 32(%rdi)\nmov %rsi, 40(%rdi)\npop %rax\nmov %rax, 48(%rdi)\nmov %r8, 56(%rdi)\nmov %r9, 64(%rdi)\n"
	"mov %r10, 72(%rdi)\nmov %r11, 80(%rdi)\nmov %r12, 88(%rdi)\nmov %r13, 96(%rdi)\nmov %r14, 104(%rdi)\n"
	"mov %r15, 112(%rdi)\npushfq\npopq 120(%rdi)\n"
	"movups %xmm0, 128(%rdi)\nmovups %xmm1, 144(%rdi)\nmovups %xmm2, 160(%rdi)\nmovups %xmm3, 176(%rdi)\n"
	"movups %xmm4, 192(%rdi)\nmovups %xmm5, 208(%rdi)\nmovups %xmm14, 224(%rdi)\nmovups %xmm15, 240(%rdi)\n"
	"mov %rsp, %rax\nsub state_stack(%rip), %rax\nmov %rax, 256(%rdi)\n"
	"add $24, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
	".size call_with_state, .-call_with_state\n.popsection\n"
	".pushsection .bss\n.globl state_function\n.p2align 3\nstate_function: .skip 8\nstate_stack: .skip 8\n.popsection");
extern void *state_function;

_Static_assert(offsetof(struct state, flags) == 120 && offsetof(struct state, vectors) == 128 &&
		       offsetof(struct state, moved) == 256,
	       "as above");

#define FUNCTION(name, body)                                                                                         \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name               \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", .-" #name "\n.p2align 4\n.popsection"); \
	extern void name(void)

__asm__(".pushsection .data\n.globl state_word\n.p2align 3\nstate_word: .quad 77\nstate_other: .quad state_add\n.popsection");

/* Calls another function with a stack that is not aligned. */
__asm__(".pushsection .text\n.p2align 4\ncall_shifted:\ncall *state_shifted(%rip)\nret\n.popsection\n"
	".pushsection .bss\n.globl state_shifted\n.p2align 3\nstate_shifted: .skip 8\n.popsection");
extern void call_shifted(void);
extern void *state_shifted;

FUNCTION(state_add, "add $5, %rax\nret");
/* What the function finds at its entry. */
FUNCTION(flags_at_entry, "pushfq\npop %rax\nand $0x8d5, %eax\nret\nnop\nnop");
FUNCTION(adds_carry, "adc %rdi, %rax\nsbb $3, %rcx\nret");
FUNCTION(branches_on_carry, "jc 1f\nsetz %al\nlahf\nret\n1: mov $9, %eax\nret");
FUNCTION(branches_far_on_sign, "js 1f\nlea 1(%rax), %rax\nret\n.skip 200, 0x90\n1: mov $44, %eax\nret");
FUNCTION(stack_at_entry, "lea 8(%rsp), %rax\nsub state_stack(%rip), %rax\nret");
FUNCTION(red_zone, "mov %rdi, -8(%rsp)\nmov %rsi, -128(%rsp)\nmov -8(%rsp), %rax\nadd -128(%rsp), %rax\nret");
FUNCTION(pushes, "push %rbx\n.cfi_adjust_cfa_offset 8\npush %rbp\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\n"
		 "lea 3(%rbx), %rax\npop %rbp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret");
/* Classes of instructions. */
FUNCTION(wide_immediate, "movabs $0x1122334455667788, %rcx\nadd %rcx, %rax\nret");
FUNCTION(relative_load, "mov state_word(%rip), %rax\nadd %rdi, %rax\nret");
FUNCTION(relative_with_immediate, "cmpl $77, state_word(%rip)\nsete %al\nret");
FUNCTION(relative_address, "lea state_word(%rip), %rcx\nmov (%rcx), %rax\nmov $0, %ecx\nret");
FUNCTION(relative_vector, "movq state_word(%rip), %xmm14\npaddq %xmm14, %xmm0\nret");
FUNCTION(vector, "pxor %xmm1, %xmm0\nmovaps %xmm0, %xmm15\nret");
FUNCTION(string, "cld\nlea -64(%rsp), %rdi\nmov $4, %ecx\nrep stosb\nmov -64(%rsp), %eax\nmov $0, %edi\nret");
FUNCTION(thread_word, "mov %fs:0, %rax\nxor %fs:0, %rax\nret");
FUNCTION(exchanges, "xchg %rax, %rdx\nmov %rdi, -8(%rsp)\nlock xadd %rcx, -8(%rsp)\nret");
/* The flags are set in the window, and read behind it. */
FUNCTION(compares, "cmp %rdi, %rsi\nmov %rdi, %rcx\nsetb %al\nadc $0, %rcx\nret");
FUNCTION(with_endbr, "endbr64\nadc $9, %rax\nsetc %cl\nret");
FUNCTION(calls, "call state_add\nadc $0, %rax\nret");
FUNCTION(calls_through_slot, "call *state_other(%rip)\nadc $0, %rax\nret");
FUNCTION(jumps, "jmp state_add");
FUNCTION(jumps_short, "jmp 1f\n.skip 20, 0x90\n1: rcl $1, %rax\nret");
FUNCTION(returns, "rcr $1, %rax\nret");
FUNCTION(nothing, "ret\nnop\nnop\nnop\nnop");

/* What a function does with the status flags: no caller passes any, so the stub may change those that a function finds. */
enum flags { KEEPS, SETS, READS, READS_AFTER_CALL };

static const struct {
	const char *name;
	void (*function)(void);
	enum flags flags;
} kinds[] = {
#define KIND(name, flags)          \
	{                          \
#name, name, flags \
	}
	KIND(state_add, SETS),
	KIND(flags_at_entry, READS),
	KIND(adds_carry, READS),
	KIND(branches_on_carry, READS),
	KIND(branches_far_on_sign, READS),
	KIND(stack_at_entry, SETS),
	KIND(red_zone, SETS),
	KIND(pushes, KEEPS),
	KIND(wide_immediate, SETS),
	KIND(relative_load, SETS),
	KIND(relative_with_immediate, SETS),
	KIND(relative_address, KEEPS),
	KIND(relative_vector, KEEPS),
	KIND(vector, KEEPS),
	KIND(string, KEEPS),
	KIND(thread_word, SETS),
	KIND(exchanges, SETS),
	KIND(compares, SETS),
	KIND(with_endbr, READS),
	KIND(calls, READS_AFTER_CALL),
	KIND(calls_through_slot, READS_AFTER_CALL),
	KIND(jumps, SETS),
	KIND(jumps_short, READS),
	KIND(returns, READS),
	KIND(nothing, KEEPS),
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define TRIES 16

static struct tw_place *places[KINDS];
static struct state before[KINDS][TRIES], after[2][KINDS][TRIES]; /* with an aligned stack, and another */
static unsigned hits, ends;
static bool are_watched;

#define GENERAL __attribute__((target("general-regs-only")))

/* Changes every general register that a function may, and the flags. */
GENERAL static void change_registers(void)
{
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
			 "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11; add $1, %%r11" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

/* A function of its own: in a sanitized build an array is filled by its memset(), which changes vector registers. */
GENERAL __attribute__((noinline)) static void watch_return(struct tw_place *place, uint64_t *slot, const char **way)
{
	const tw_return_word kept[TW_RETURNS_WORDS] = {(uintptr_t)place};

	if (!tw_returns_open(slot, kept, false, false, way))
		abort();
}

GENERAL static const char *wild_hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	const char *way = NULL;

	hits++;
	if (are_watched)
		watch_return(place, slot, &way);
	change_registers();
	return way;
}

GENERAL static uintptr_t wild_return(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	ends += tw_returns_count(entry);
	tw_returns_close(entry);
	change_registers();
	return entry->return_address;
}

static void call(void (*function)(void), bool is_shifted, struct state *state)
{
	void (*first)(void) = is_shifted ? call_shifted : function;

	memcpy(&state_function, &first, sizeof first);
	memcpy(&state_shifted, &function, sizeof function);
	call_with_state(state, NULL);
	state->flags &= FLAGS;
}

static void add_places(struct tw_permit *permit)
{
	const struct tw_module_options options = {.name = "states", .is_declared = true};
	static struct tw_bp_entry entries[KINDS]; /* places refer to them and to the plan */
	static struct tw_entry_plan plan;
	struct tw_elf_file *file;
	struct tw_module *module;
	uintptr_t base;
	void *bytes;
	size_t count;
	Dl_info info;

	assert_int_not_equal(dladdr((void *)(uintptr_t)call_with_state, &info), 0);
	assert_int_equal(tw_elf_file_open("/proc/self/exe", &file), 0);
	base = file->header.e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_entry_plan_make(file, &bytes, &count), 0);
	assert_int_equal(tw_entry_plan_open(bytes, count, &plan), 0);
	tw_elf_file_close(file);
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	for (size_t i = 0; i < KINDS; i++) {
		const struct tw_entry_plan_row *row = tw_entry_plan_find(&plan, (uintptr_t)kinds[i].function - base);
		struct tw_place_options place = {.kind = TW_BP_ENTRY, .entry = &entries[i]};
		struct tw_function *function;

		if (!row || row->refusal)
			fail_msg("%s: %s", kinds[i].name, row ? tw_entry_refusal_text(row->refusal) : "no row");
		entries[i] = (struct tw_bp_entry){.plan = &plan, .row = row, .base = base};
		place.where = (uint8_t *)(uintptr_t)kinds[i].function + row->window_offset;
		assert_int_equal(tw_bp_function_add(permit, module, kinds[i].name, UINT32_MAX, 0, &function), 0);
		assert_int_equal(tw_bp_place_add(permit, function, &place, &places[i]), 0);
	}
}

static void switch_all(bool is_armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	if (!places[0])
		add_places(permit);
	tw_patch_begin(permit);
	for (size_t i = 0; i < KINDS; i++)
		assert_int_equal(is_armed ? tw_bp_stage_set(permit, places[i], &part)
					  : tw_bp_stage_clear(permit, places[i], 3),
				 0);
	tw_patch_end(permit);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

/* Where it is called: its copy, if what the stub does to the flags is not to count. */
static void (*address_of(size_t kind, bool is_beside))(void)
{
	const uint8_t *copy = (const uint8_t *)places[kind]->stub + TW_ENTRY_STUB_BYTES;
	void (*function)(void) = kinds[kind].function;

	if (is_beside)
		memcpy(&function, &copy, sizeof function);
	return function;
}

static void a_state_is_as_before(const char *when, size_t kind, bool is_armed, bool is_shifted, size_t try)
{
	struct state state = before[kind][try], *expected = &after[is_shifted][kind][try];

	hits = ends = 0;
	call(address_of(kind, !is_armed && kinds[kind].flags == READS), is_shifted, &state);
	assert_int_equal(hits > 0, is_armed); /* some call another one */
	assert_int_equal(ends, are_watched ? hits : 0);
	if (kinds[kind].flags == KEEPS || are_watched)
		state.flags = expected->flags;
	for (size_t w = 0; w < sizeof state / 8; w++) {
		uint64_t got, wanted;

		memcpy(&got, (uint64_t *)&state + w, sizeof got);
		memcpy(&wanted, (uint64_t *)expected + w, sizeof wanted);
		if (got != wanted)
			fail_msg("%s, %s%s: word %zu is %#llx, not %#llx", kinds[kind].name, when,
				 is_shifted ? ", stack not aligned" : "", w, (unsigned long long)got,
				 (unsigned long long)wanted);
	}
}

static void all_states_are_as_before(const char *when, bool is_armed)
{
	for (size_t i = 0; i < KINDS; i++)
		for (size_t n = 0; n < TRIES; n++) {
			if (is_armed &&
			    (kinds[i].flags == READS || (are_watched && kinds[i].flags == READS_AFTER_CALL)))
				continue;
			a_state_is_as_before(when, i, is_armed, false, n);
			a_state_is_as_before(when, i, is_armed, true, n);
		}
}

static int set_up(void **state)
{
	uint64_t seed = 9;

	for (size_t i = 0; i < KINDS; i++)
		for (size_t n = 0; n < TRIES; n++) {
			for (size_t w = 0; w < 32; w++)
				((uint64_t *)&before[i][n])[w] = random_word(&seed);
			before[i][n].flags = 0x202 | (before[i][n].flags & FLAGS);
			for (int is_shifted = 0; is_shifted < 2; is_shifted++) {
				after[is_shifted][i][n] = before[i][n];
				call(kinds[i].function, is_shifted, &after[is_shifted][i][n]);
			}
		}
	tw_bp_trampoline_hit = wild_hit;
	tw_bp_trampoline_return = wild_return;
	tw_entry_fills_windows = true;
	return 0;
}

static void everything_is_the_same_through_an_entry(void **state)
{
	for (unsigned round = 0; round < 2; round++) {
		switch_all(true);
		all_states_are_as_before("armed", true);
		switch_all(false);
		all_states_are_as_before("planted, not armed", false);
	}
}

static void everything_but_flags_is_the_same_after_a_watched_return(void **state)
{
	const char *reason;

	if (IS_SANITIZED || tw_returns_init(&reason) != 0)
		skip();
	switch_all(true);
	are_watched = true;
	all_states_are_as_before("watched", true);
	are_watched = false;
	switch_all(false);
}

/* Control: the functions notice what they are given. */
static void another_flag_leaves_another_state(void **state)
{
	static void (*const readers[])(void) = {flags_at_entry, adds_carry,  branches_on_carry,
						with_endbr,	jumps_short, returns};

	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
		struct state with = before[0][0], without = before[0][0];

		with.flags |= 1;
		without.flags &= ~UINT64_C(1);
		call(readers[i], false, &with);
		call(readers[i], false, &without);
		assert_memory_not_equal(&with, &without, sizeof with);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_flag_leaves_another_state),
		cmocka_unit_test(everything_is_the_same_through_an_entry),
		cmocka_unit_test(everything_but_flags_is_the_same_after_a_watched_return),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
