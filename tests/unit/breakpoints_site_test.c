/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The code around a probe's NOP sees the same registers, flags, vectors and stack with a jump there as without, armed or not:
 *         all sixteen general registers, the status flags and the direction flag, the vector registers, 128 bytes below the stack
 *         pointer; the hit finds the registers as they are at the NOP. Every instruction of stub and copy can be unwound. Where a jump
 *         leads into the five bytes, or an indirect one might, the site is refused.
 * Method  Functions in assembly with notes as <sys/sdt.h> makes them, planned from this executable's file, and called with random
 *         registers and flags before planting, armed and switched off. The hit changes every register that it may. A debugger's step
 *         goes through stub, hit and copy. The controls: with the stub of a function's entry in the same place, registers below the
 *         stack pointer, flags or the red zone differ.
 */
#include "base/export.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "breakpoints/sled.h"
#include "plan/plan.h"
#include "sanitized_help.h"
#include "tracewheel/error.h"
#include "tests/common/random.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* rax rcx rdx rbx rbp rsi rdi r8..r15, flags, and all sixteen vector registers with 32 bytes each. */
struct state {
	uint64_t general[15];
	uint64_t flags;
	uint64_t vectors[16][4];
	uint64_t moved; /* the stack pointer after the call, less that before */
};

/* CF PF AF ZF SF DF OF */
#define FLAGS 0xcd5u

_Static_assert(offsetof(struct state, flags) == 120 && offsetof(struct state, vectors) == 128 &&
		       offsetof(struct state, moved) == 640,
	       "as below");

#define EACH_VECTOR(use)                                                                                              \
	use(0) use(1) use(2) use(3) use(4) use(5) use(6) use(7) use(8) use(9) use(10) use(11) use(12) use(13) use(14) \
		use(15)
#define LOAD_WIDE(n)  "vmovups 128+32*" #n "(%rdi), %ymm" #n "\n"
#define STORE_WIDE(n) "vmovups %ymm" #n ", 128+32*" #n "(%rdi)\n"
#define LOAD(n)	      "movups 128+32*" #n "(%rdi), %xmm" #n "\n"
#define STORE(n)      "movups %xmm" #n ", 128+32*" #n "(%rdi)\n"

void call_site(struct state *state, void *function);
/* %rdi: the state, kept on the stack. */
__asm__(".pushsection .text\n.p2align 4\n.globl call_site\n.type call_site, @function\ncall_site:\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rsi\npush %rdi\nsub $8, %rsp\n"
	"mov %rsp, site_stack(%rip)\ncmpl $0, site_is_wide(%rip)\nje 1f\n" EACH_VECTOR(LOAD_WIDE) "jmp 2f\n1:\n" EACH_VECTOR(
		LOAD) "2: pushq 120(%rdi)\npopfq\n"
		      "mov 0(%rdi), %rax\nmov 8(%rdi), %rcx\nmov 16(%rdi), %rdx\nmov 24(%rdi), %rbx\nmov 32(%rdi), %rbp\nmov 40(%rdi), %rsi\n"
		      "mov 56(%rdi), %r8\nmov 64(%rdi), %r9\nmov 72(%rdi), %r10\nmov 80(%rdi), %r11\nmov 88(%rdi), %r12\n"
		      "mov 96(%rdi), %r13\nmov 104(%rdi), %r14\nmov 112(%rdi), %r15\nmov 48(%rdi), %rdi\n"
		      "call *site_function(%rip)\n"
		      "push %rdi\nmov 16(%rsp), %rdi\nmov %rax, 0(%rdi)\nmov %rcx, 8(%rdi)\nmov %rdx, 16(%rdi)\nmov %rbx, 24(%rdi)\n"
		      "mov %rbp, 32(%rdi)\nmov %rsi, 40(%rdi)\npop %rax\nmov %rax, 48(%rdi)\nmov %r8, 56(%rdi)\nmov %r9, 64(%rdi)\n"
		      "mov %r10, 72(%rdi)\nmov %r11, 80(%rdi)\nmov %r12, 88(%rdi)\nmov %r13, 96(%rdi)\nmov %r14, 104(%rdi)\n"
		      "mov %r15, 112(%rdi)\npushfq\npopq 120(%rdi)\ncld\ncmpl $0, site_is_wide(%rip)\nje 1f\n" EACH_VECTOR(
			      STORE_WIDE) "vzeroupper\njmp 2f\n1:\n" EACH_VECTOR(STORE) "2: mov %rsp, %rax\nsub site_stack(%rip), %rax\n"
											"mov %rax, 640(%rdi)\n"
											"add $24, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
											".size call_site, .-call_site\n.popsection\n"
											".pushsection .bss\n.globl site_function\n.globl site_is_wide\n.p2align 3\nsite_function: .skip 8\nsite_stack: .skip 8\n"
											"site_is_wide: .skip 8\n.popsection");
extern void *site_function;
extern uint32_t site_is_wide;

/* Calls another function with a stack that is not aligned. */
__asm__(".pushsection .text\n.p2align 4\ncall_site_shifted:\ncall *site_shifted(%rip)\nret\n.popsection\n"
	".pushsection .bss\n.globl site_shifted\n.p2align 3\nsite_shifted: .skip 8\n.popsection");
extern void call_site_shifted(void);
extern void *site_shifted;

/* A note of this name for the next instruction; inside of a function. */
#define NOTE(name, arguments)                                                                           \
	"990:\n.pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n.asciz \"tests\"\n"           \
	".asciz \"" name "\"\n.asciz \"" arguments "\"\n994: .balign 4\n.popsection\n"
#define SITE(name) NOTE(name, "8@%rdi 8@%rsp") "nop\n"

#define FUNCTION(name, body)                                                                                         \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name               \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", .-" #name "\n.p2align 4\n.popsection"); \
	extern void name(void)

/* Each is longer than a window before its NOP, so that it can be planted. */
#define START "lea 0(%rdi), %rdi\nlea 0(%rsi), %rsi\n"

FUNCTION(added, "add $5, %rax\nret\nnop\nnop\nnop");
FUNCTION(nothing, START SITE("nothing") "ret\nnop\nnop\nnop\nnop");
FUNCTION(at_entry, SITE("at_entry") "mov %rax, %rax\nmov %rcx, %rcx\nret");
FUNCTION(red_zone,
	 "mov %rdi, -8(%rsp)\nmov %rsi, -128(%rsp)\n" SITE("red_zone") "mov -8(%rsp), %rax\nadd -128(%rsp), %rax\nret");
FUNCTION(flags_across, "cmp %rdi, %rsi\nlea 0(%rdi), %rdi\n" SITE("flags_across") "setb %al\nadc $0, %rcx\nret");
FUNCTION(
	pushes,
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\npush %r12\n.cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %r12, 0\nmov %rdi, %rbx\nlea 3(%rbx), %rax\n" SITE(
		"pushes") "mov %rsi, %r12\npop %r12\n"
			  ".cfi_adjust_cfa_offset -8\n.cfi_restore %r12\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret");
FUNCTION(framed,
	 "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp, 0\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
	 "lea -40(%rsp), %rsp\nmov %rdi, -8(%rbp)\n" SITE(
		 "framed") "mov -8(%rbp), %rax\nleave\n.cfi_def_cfa %rsp, 8\nret");
FUNCTION(calls, "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rax\n" SITE(
			"calls") "call added\nadc $0, %rax\nlea 8(%rsp), %rsp\n"
				 ".cfi_adjust_cfa_offset -8\nret");
FUNCTION(loops, START "mov $3, %ecx\n1:\n" SITE("loops") "dec %ecx\njnz 1b\nret");
FUNCTION(backwards, START "std\n" SITE("backwards") "mov %rdi, %rax\nadd $1, %rax\nret");
FUNCTION(branches, START "add %rsi, %rdi\n" SITE("branches") "jc 1f\nlea 1(%rax), %rax\nret\n1: mov $9, %eax\nret");
FUNCTION(long_nop, START NOTE("long_nop", "-4@%esi") "nopl 8(%rax,%rax,1)\nmov %rdi, %rax\nret");
/* As __cxa_begin_catch() of libstdc++: the frame ends within the window. */
FUNCTION(ends, "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\nlea 1(%rsi), %rdx\nmov %rdx, %rbx\n" SITE(
		       "ends") "mov %rdx, %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret");

/* Those that are refused. */
FUNCTION(entered, START "test %rdi, %rdi\nje 1f\n" SITE("entered") "xor %eax, %eax\n1: mov %rdi, %rax\nret");
FUNCTION(twice, START SITE("twice_first") SITE("twice_second") "mov %rdi, %rax\nadd $1, %rax\nret");
FUNCTION(no_nop, START NOTE("no_nop", "") "mov %rdi, %rax\nadd $1, %rax\nret");
FUNCTION(in_its_entry, "nop\nnop\n" SITE("in_its_entry") "mov %rdi, %rax\nadd $1, %rax\nret");
/* The table's form is not known, and the frame is not that of a tail call. */
FUNCTION(dispatches,
	 "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\nand $3, %ebx\nmov site_table_at(%rip), %rax\n"
	 "add %rbx, %rax\njmp *%rax\n" SITE("dispatches") "mov %rdi, %rax\nadd $1, %rax\npop %rbx\n"
							  ".cfi_adjust_cfa_offset -8\nret");
__asm__(".pushsection .bss\nsite_table_at: .skip 8\n.popsection");
/* A table that leads to the NOP itself, and behind the window. */
FUNCTION(
	switches,
	"push %rbx\n.cfi_adjust_cfa_offset 8\nlea site_good_table(%rip), %rdx\nand $1, %edi\n"
	"movslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n1:\n" SITE(
		"switches") "mov %rdi, %rax\nadd $1, %rax\n2: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
			    ".pushsection .rodata\n.p2align 2\nsite_good_table: .long 1b - site_good_table, 2b - site_good_table\n.popsection");
/* And one that leads into the window. */
FUNCTION(
	switched_into,
	"push %rbx\n.cfi_adjust_cfa_offset 8\nlea site_bad_table(%rip), %rdx\nand $1, %edi\n"
	"movslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n1:\n" SITE(
		"switched_into") "2: mov %rdi, %rax\nadd $1, %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
				 ".pushsection .rodata\n.p2align 2\nsite_bad_table: .long 1b - site_bad_table, 2b - site_bad_table\n"
				 ".popsection");

/* The controls, which are planted as if they were entries. */
FUNCTION(control_red_zone, "mov %rdi, -8(%rsp)\nmov %rsi, -128(%rsp)\n" SITE(
				   "control_red_zone") "mov -8(%rsp), %rax\nadd -128(%rsp), %rax\nret");
FUNCTION(control_flags, "cmp %rdi, %rsi\nlea 0(%rdi), %rdi\n" SITE("control_flags") "setb %al\nadc $0, %rcx\nret");

static const struct {
	const char *name;
	void (*function)(void);
	unsigned hits;
} kinds[] = {{"nothing", nothing, 1},
	     {"at_entry", at_entry, 1},
	     {"in_its_entry", in_its_entry, 1},
	     {"red_zone", red_zone, 1},
	     {"flags_across", flags_across, 1},
	     {"pushes", pushes, 1},
	     {"framed", framed, 1},
	     {"calls", calls, 1},
	     {"loops", loops, 3},
	     {"backwards", backwards, 1},
	     {"branches", branches, 1},
	     {"long_nop", long_nop, 1},
	     {"ends", ends, 1},
	     {"control_red_zone", control_red_zone, 1},
	     {"control_flags", control_flags, 1}};
#define KINDS	 (sizeof kinds / sizeof *kinds)
#define CONTROLS (KINDS - 2) /* the first of them */
#define TRIES	 64

static struct tw_entry_plan plan;
static uintptr_t base;
static struct tw_place *places[KINDS];
static struct state before[KINDS][TRIES], after[2][KINDS][TRIES]; /* with an aligned stack, and another */
static unsigned hits, wrong_registers;
static const struct state *expected_at_site;

#define GENERAL __attribute__((target("general-regs-only")))

/* Changes every general register that a function may, and the flags. */
GENERAL static void change_registers(void)
{
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
			 "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11; add $1, %%r11" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

/* Registers that no function here changes before its NOP: rsi, r8 to r11, r13 to r15. */
GENERAL static void wild_hit(struct tw_place *place, const uint64_t registers[16])
{
	static const uint8_t kept[][2] = {{6, 5}, {8, 7}, {9, 8}, {10, 9}, {11, 10}, {13, 12}, {14, 13}, {15, 14}};

	hits++;
	for (unsigned i = 0; expected_at_site && i < sizeof kept / sizeof *kept; i++)
		wrong_registers += registers[kept[i][0]] != expected_at_site->general[kept[i][1]];
	/* Its own stack pointer, with the red zone between. */
	wrong_registers += registers[4] < (uintptr_t)registers + 128;
	change_registers();
}

GENERAL static const char *wild_entry_hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	hits++;
	change_registers();
	return NULL;
}

static void call(void (*function)(void), bool is_shifted, struct state *state)
{
	void (*first)(void) = is_shifted ? call_site_shifted : function;

	memcpy(&site_function, &first, sizeof first);
	memcpy(&site_shifted, &function, sizeof function);
	call_site(state, NULL);
	state->flags &= FLAGS;
}

static const struct tw_entry_plan_site *site_of(const char *name)
{
	for (uint32_t i = 0; i < plan.header->site_count; i++) {
		const char *own = tw_entry_plan_name(&plan, &plan.sites[i].row, 0);

		if (!strncmp(own, "tests:", 6) && !strcmp(own + 6, name))
			return &plan.sites[i];
	}
	fail_msg("%s: no such site", name);
	return NULL;
}

static void add_place(struct tw_permit *permit, size_t kind)
{
	static struct tw_entry_plan_site as_entries[KINDS];
	const struct tw_module_options options = {.name = "sites", .is_declared = true};
	const struct tw_entry_plan_site *site = site_of(kinds[kind].name);
	struct tw_bp_entry entry = {.plan = &plan, .row = &site->row, .base = base};
	const struct tw_place_options place = {.kind = TW_BP_ENTRY,
					       .entry = &entry,
					       .where = (void *)(base + site->row.value)};
	struct tw_function *function;
	struct tw_module *module;

	if (site->row.refusal)
		fail_msg("%s: %s", kinds[kind].name, tw_entry_refusal_text(site->row.refusal));
	if (kind >= CONTROLS) {
		as_entries[kind] = *site;
		as_entries[kind].row.flags &= (uint8_t)~TW_ENTRY_SITE;
		entry.row = &as_entries[kind].row;
	}
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, kinds[kind].name, UINT32_MAX, 0, &function), 0);
	assert_int_equal(tw_bp_place_add(permit, function, &place, &places[kind]), 0);
}

static void switch_all(bool is_armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	for (size_t i = 0; i < KINDS && !places[i]; i++)
		add_place(permit, i);
	tw_patch_begin(permit);
	for (size_t i = 0; i < KINDS; i++)
		assert_int_equal(is_armed ? tw_bp_stage_set(permit, places[i], &part)
					  : tw_bp_stage_clear(permit, places[i], 3),
				 0);
	tw_patch_end(permit);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	for (size_t i = 0; i < KINDS; i++)
		assert_true(places[i]->is_planted);
}

/* Words that differ from those without a jump. */
static unsigned differences(size_t kind, bool is_armed, bool is_shifted, size_t try)
{
	struct state state = before[kind][try];
	const struct state *expected = &after[is_shifted][kind][try];
	unsigned count = 0;

	hits = 0;
	expected_at_site = kind < CONTROLS ? &before[kind][try] : NULL;
	call(kinds[kind].function, is_shifted, &state);
	assert_int_equal(hits, is_armed ? kinds[kind].hits : 0);
	for (size_t w = 0; w < sizeof state / 8; w++) {
		uint64_t got, wanted;

		memcpy(&got, (uint64_t *)&state + w, sizeof got);
		memcpy(&wanted, (const uint64_t *)expected + w, sizeof wanted);
		if (got != wanted && kind < CONTROLS)
			print_error("%s: word %zu is %#llx, not %#llx\n", kinds[kind].name, w, (unsigned long long)got,
				    (unsigned long long)wanted);
		count += got != wanted;
	}
	return count;
}

static unsigned all_differences(size_t kind, bool is_armed)
{
	unsigned count = 0;

	for (size_t n = 0; n < TRIES; n++)
		count += differences(kind, is_armed, false, n) + differences(kind, is_armed, true, n);
	return count;
}

static int set_up(void **state)
{
	struct tw_elf_file *file;
	void *bytes;
	size_t count;
	Dl_info info;
	uint64_t seed = 11;

	site_is_wide = __builtin_cpu_supports("avx") != 0;
	assert_int_not_equal(dladdr((void *)(uintptr_t)call_site, &info), 0);
	assert_int_equal(tw_elf_file_open("/proc/self/exe", &file), 0);
	base = file->header.e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_entry_plan_make(file, &bytes, &count), 0);
	assert_int_equal(tw_entry_plan_open(bytes, count, &plan), 0);
	tw_elf_file_close(file);
	for (size_t i = 0; i < KINDS; i++)
		for (size_t n = 0; n < TRIES; n++) {
			for (size_t w = 0; w < sizeof before[i][n] / 8; w++)
				((uint64_t *)&before[i][n])[w] = random_word(&seed);
			before[i][n].flags = 0x202 | (before[i][n].flags & FLAGS & ~0x400u);
			for (int is_shifted = 0; is_shifted < 2; is_shifted++) {
				after[is_shifted][i][n] = before[i][n];
				call(kinds[i].function, is_shifted, &after[is_shifted][i][n]);
			}
		}
	tw_bp_site_hit = wild_hit;
	tw_bp_trampoline_hit = wild_entry_hit;
	tw_entry_fills_windows = true;
	return 0;
}

static void everything_is_the_same_around_a_site(void **state)
{
	for (unsigned round = 0; round < 2; round++) {
		switch_all(true);
		for (size_t i = 0; i < CONTROLS; i++)
			assert_int_equal(all_differences(i, true), 0);
		assert_int_equal(wrong_registers, 0);
		switch_all(false);
		for (size_t i = 0; i < CONTROLS; i++)
			assert_int_equal(all_differences(i, false), 0);
	}
}

/* Control: a stub that keeps less is noticed. */
static void an_entry_s_stub_changes_what_is_in_use_at_a_site(void **state)
{
	switch_all(true);
	assert_true(all_differences(CONTROLS, true) > 0);
	assert_true(all_differences(CONTROLS + 1, true) > 0);
	switch_all(false);
	/* Flags, also if no session wants the place. */
	assert_int_equal(all_differences(CONTROLS, false), 0);
	assert_true(all_differences(CONTROLS + 1, false) > 0);
}

/* ---- refused ---- */

static void sites_that_a_jump_may_enter_are_refused(void **state)
{
	static const struct {
		const char *name;
		enum tw_entry_refusal refusal;
	} cases[] = {{"entered", TW_ENTRY_TARGET_INSIDE},
		     {"twice_first", TW_ENTRY_OK},
		     {"twice_second", TW_ENTRY_SHARED},
		     {"no_nop", TW_ENTRY_NO_NOP},
		     {"at_entry", TW_ENTRY_OK},
		     {"in_its_entry", TW_ENTRY_OK},
		     {"dispatches", TW_ENTRY_UNKNOWN_TARGETS},
		     {"switches", TW_ENTRY_OK},
		     {"switched_into", TW_ENTRY_TARGET_INSIDE}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (site_of(cases[i].name)->row.refusal != cases[i].refusal)
			fail_msg("%s: %s", cases[i].name, tw_entry_refusal_text(site_of(cases[i].name)->row.refusal));
}

/* ---- unwinding ---- */

/* As the agent does: libgcc asks here for the call frame information of an address. */
TW_API int _dl_find_object(void *pc, struct dl_find_object *out)
{
	static int (*real)(void *, struct dl_find_object *);
	struct tw_unwind_code code;
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "_dl_find_object");
	result = real(tw_unwind_find_code((uintptr_t)pc, &code) ? (void *)(uintptr_t)call_site : pc, out);
	if (!result && tw_unwind_find_code((uintptr_t)pc, &code)) {
		out->dlfo_map_start = (void *)(uintptr_t)code.start;
		out->dlfo_map_end = (void *)(uintptr_t)code.end;
		out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	}
	return result;
}

static unsigned steps_in_stub, steps_in_entry, steps_in_copy, steps_in_the_dark, steps_without_function;
static const struct tw_place *stepped;

#define KEPT_WORD UINT64_C(0x1234567890)

/* Has a value in %rbx, which unwinders must find again. */
__attribute__((noinline)) static void call_stepping(void (*function)(void))
{
	register uint64_t kept __asm__("rbx") = KEPT_WORD;

	__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::"r"(kept) : "memory", "cc");
	function();
	__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::"r"(kept) : "memory", "cc");
}

static bool is_in(const void *address, void (*function)(void), uintptr_t bytes)
{
	return (uintptr_t)address - (uintptr_t)function < bytes;
}

static void (*stepped_function)(void);

static void step(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t offset = at - (uintptr_t)stepped->stub, in_entry = at - (uintptr_t)tw_site_entry;
	void *frames[32];
	bool is_found = false, is_named = false;
	int count;

	if (offset >= TW_SITE_STUB_BYTES + TW_ENTRY_SPACE_BYTES && in_entry >= 128)
		return;
	steps_in_stub += offset < TW_SITE_STUB_BYTES;
	steps_in_copy += offset - TW_SITE_STUB_BYTES < TW_ENTRY_SPACE_BYTES;
	steps_in_entry += in_entry < 128;
	count = backtrace(frames, 32);
	for (int i = 0; i < count; i++) {
		is_found |= is_in(frames[i], (void (*)(void))(uintptr_t)call_stepping, 128);
		is_named |= is_in(frames[i], stepped_function, 64);
	}
	steps_in_the_dark += !is_found;
	/* In the copy itself, the address in the function is shown by the agent's handlers only. */
	steps_without_function += !is_named && (offset < TW_SITE_STUB_BYTES || in_entry < 128);
}

static void every_instruction_can_be_unwound(void **state)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, old;
	void *frames[2];

	/* A sanitizer's calls inside the handler are reported, and none of them is ours. */
	if (IS_SANITIZED)
		skip();
	switch_all(true);
	expected_at_site = NULL;
	backtrace(frames, 2); /* loads libgcc */
	sigaction(SIGTRAP, &action, &old);
	for (size_t i = 0; i < CONTROLS; i++) {
		/* The handler itself needs the direction flag clear, which the kernel sees to. */
		stepped = places[i];
		stepped_function = kinds[i].function;
		steps_in_stub = steps_in_entry = steps_in_copy = steps_in_the_dark = steps_without_function = 0;
		call_stepping(kinds[i].function);
		__asm__ volatile("cld");
		assert_int_equal(steps_in_stub, 10 * kinds[i].hits);
		assert_true(steps_in_copy >= 2);
		assert_true(steps_in_entry > 30);
		if (steps_in_the_dark || steps_without_function)
			fail_msg("%s: %u steps cannot be unwound, %u do not show the function", kinds[i].name,
				 steps_in_the_dark, steps_without_function);
	}
	sigaction(SIGTRAP, &old, NULL);
	switch_all(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_that_a_jump_may_enter_are_refused),
		cmocka_unit_test(everything_is_the_same_around_a_site),
		cmocka_unit_test(an_entry_s_stub_changes_what_is_in_use_at_a_site),
		cmocka_unit_test(every_instruction_can_be_unwound),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
