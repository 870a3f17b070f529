/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    An armed sled reports the hit and changes nothing else: registers, stack, results, bytes outside the sled,
 *         page protections; wherever a thread may be in it.  If that cannot be guaranteed, it is refused and nothing is
 *         changed.
 * Method  Small functions are written into pages of the test: every alignment, every form of NOPs that compilers emit.
 *         They are entered at each instruction of the sled, in each state.  Wrong orders of writing are tried the same
 *         way in child processes, and must crash.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "breakpoints/sled.h"
#include "breakpoints/unwind.h"
#include "tracewheel/error.h"
#include "sanitized_help.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "hit_help.h"
#include "protection_help.h"

#define ANSWER	    0x1234567
#define TEXT_BYTES  (1u << 20)
#define ROOM_BYTES  64u /* a function with everything around it */
#define JUMP_OPCODE 0xe9
#define SESSION	    3

/* ---- functions made here ---- */

struct form {
	const char *nops;
	unsigned bytes;
	bool is_clang; /* few long instructions: can be armed while threads run */
};
static const struct form forms[] = {
	{"\x90\x90\x90\x90\x90\x90\x90\x90\x90", 9, false},
	{"\x90\x90\x90\x90\x90", 5, false},
	{"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 16, false},
	{"\x0f\x1f\x44\x00\x08", 5, true},
	{"\x66\x0f\x1f\x84\x00\x00\x02\x00\x00", 9, true},
	{"\x66\x2e\x0f\x1f\x84\x00\x00\x02\x00\x00\x66\x90", 12, true},
	{"\x66\x66\x2e\x0f\x1f\x84\x00\x00\x02\x00\x00\x0f\x1f\x44\x00\x08", 16, true},
};

static uint8_t *text, *text_end;

/* mov $ANSWER, %eax; ret, after a sled, surrounded by bytes that are no valid instructions. */
static uint8_t *make_function(const struct form *form, unsigned alignment)
{
	uint8_t *at;

	if (!text) {
		text = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(text, MAP_FAILED);
		memset(text, 0xcc, TEXT_BYTES);
		text_end = text;
	}
	assert_true(text_end + 2 * ROOM_BYTES < text + TEXT_BYTES);
	mprotect(text, TEXT_BYTES, PROT_READ | PROT_WRITE);
	at = text_end + 16 + alignment;
	text_end += ROOM_BYTES;
	memcpy(at, form->nops, form->bytes);
	memcpy(at + form->bytes, "\xb8\x67\x45\x23\x01\xc3", 6);
	mprotect(text, TEXT_BYTES, PROT_READ | PROT_EXEC);
	return at;
}

static int call(const uint8_t *at)
{
	int (*function)(long, long, long, long, long, long);

	memcpy(&function, &at, sizeof function);
	return function(1, 2, 3, 4, 5, 6);
}

/* ---- arming ---- */

static struct tw_place *add_sled(struct tw_permit *permit, void *where, unsigned bytes)
{
	const struct tw_module_options options = {.name = "libsled", .is_declared = true};
	const struct tw_place_options place_options = {.kind = TW_BP_SLED,
						       .where = where,
						       .sled_bytes = (uint8_t)bytes};
	struct tw_module *module;
	struct tw_function *function;
	struct tw_place *place;

	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, "small", UINT32_MAX, 0, &function), 0);
	assert_int_equal(tw_bp_place_add(permit, function, &place_options, &place), 0);
	assert_ptr_equal(tw_bp_place_at(permit, where), place);
	return place;
}

static int try_arm(void *where, unsigned bytes, struct tw_place **out)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_permit *permit;
	int error;

	tw_bp_trampoline_hit = counting_hit;
	assert_int_equal(tw_permit_seize(&permit), 0);
	*out = add_sled(permit, where, bytes);
	error = tw_bp_stage_set(permit, *out, &part);
	if (error)
		tw_bp_abort(permit);
	else
		tw_bp_commit(permit);
	tw_permit_drop(permit);
	return error;
}

static struct tw_place *arm(void *where, unsigned bytes)
{
	struct tw_place *place;

	assert_int_equal(try_arm(where, bytes, &place), 0);
	return place;
}

static void disarm(struct tw_place *place)
{
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_stage_clear(permit, place, SESSION), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

/* ---- every layout ---- */

static void calls_pass(const uint8_t *at, bool is_armed, struct tw_place *place)
{
	hits = 0;
	last_place = NULL;
	assert_int_equal(call(at), ANSWER);
	assert_int_equal(hits, is_armed);
	if (!is_armed)
		return;
	assert_ptr_equal(last_place, place);
	for (int i = 0; i < 6; i++)
		assert_int_equal(last_words[i], i + 1);
}

static void every_layout_is_armed_and_disarmed(void **state)
{
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		for (unsigned alignment = 0; alignment < 16; alignment++) {
			uint8_t *at = make_function(&forms[f], alignment), before[ROOM_BYTES];
			unsigned bytes = forms[f].bytes;
			struct tw_place *place;

			memcpy(before, at - 16, ROOM_BYTES);
			calls_pass(at, false, NULL);
			place = arm(at, bytes);
			/* Nine bytes always hold an aligned window of five. */
			if (bytes >= 9)
				assert_false(place->is_parked);
			for (int round = 0; round < 3; round++) {
				calls_pass(at, true, place);
				assert_int_equal(at[place->sled_offset], JUMP_OPCODE);
				disarm(place);
				calls_pass(at, false, place);
				assert_int_not_equal(at[place->sled_offset], JUMP_OPCODE);
				assert_ptr_equal(arm(at, bytes), place);
			}
			calls_pass(at, true, place);
			assert_memory_equal(at - 16, before, 16);
			assert_memory_equal(at + bytes, before + 16 + bytes, ROOM_BYTES - 16 - bytes);
			assert_int_equal(protection_of(at), 'x');
			assert_int_equal(protection_of(place->stub), 'x');
			disarm(place);
		}
	}
}

/* Bytes after the sled may be NOPs of the body: a jump may lead to the first of them. */
static void nops_of_the_body_are_left_alone(void **state)
{
	for (unsigned alignment = 0; alignment < 16; alignment++) {
		uint8_t *at = make_function(&forms[2], alignment), before[16];
		struct tw_place *place;

		memcpy(before, at, sizeof before);
		place = arm(at, 5);
		calls_pass(at, true, place);
		assert_memory_equal(at + 5, before + 5, sizeof before - 5);
		calls_pass(at + 5, false, NULL);
		disarm(place);
		assert_memory_equal(at + 5, before + 5, sizeof before - 5);
	}
}

/* ---- threads at any instruction ---- */

/* Runs in a child: may crash.  Returns the signal, or 0. */
static int signal_of_child(void (*run)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		run(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void call_there(void *at)
{
	if (call(at) != ANSWER)
		_exit(99);
}

static bool passes(uint8_t *at)
{
	return signal_of_child(call_there, at) == 0;
}

/* A thread before, at or after the window continues correctly, whatever was written since. */
static void threads_go_on_from_every_instruction(void **state)
{
	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		for (unsigned alignment = 0; alignment < 16; alignment += 3) {
			uint8_t *at = make_function(&forms[f], alignment);
			struct tw_place *place = arm(at, forms[f].bytes);

			disarm(place);
			assert_true(passes(at));
			assert_true(passes(at + place->sled_offset));
			assert_true(passes(at + place->sled_offset + 5));
			assert_ptr_equal(arm(at, forms[f].bytes), place);
			assert_true(passes(at));
			assert_true(passes(at + place->sled_offset));
			assert_true(passes(at + place->sled_offset + 5));
			disarm(place);
		}
	}
}

/* Controls: the effect of leaving out each precaution. */
static void wrong_orders_crash(void **state)
{
	const struct form *gcc = &forms[1];
	uint8_t *at = make_function(gcc, 0);
	struct tw_place *place = arm(at, gcc->bytes);
	unsigned crashes = 0;

	/* A thread between two one-byte NOPs when the jump is written over them: it continues inside the jump. */
	for (unsigned i = 1; i < 5; i++)
		crashes += !passes(at + i);
	assert_true(crashes >= 3);
	/* The opcode first, the displacement later: a thread that arrives in between jumps to a wrong address. */
	disarm(place);
	mprotect(text, TEXT_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	at[0] = JUMP_OPCODE;
	assert_false(passes(at));
	memcpy(at, gcc->nops, 5);
	assert_true(passes(at));
	mprotect(text, TEXT_BYTES, PROT_READ | PROT_EXEC);
}

/* ---- refusals ---- */

static void not_to_be_armed(uint8_t *at, unsigned bytes, int error)
{
	uint8_t before[ROOM_BYTES];
	struct tw_place *place;

	memcpy(before, at - 16, ROOM_BYTES);
	assert_int_equal(try_arm(at, bytes, &place), error);
	assert_memory_equal(at - 16, before, ROOM_BYTES);
	assert_int_equal(protection_of(at), 'x');
}

static void other_code_is_no_sled(void **state)
{
	const struct form too_short = {"\x90\x90\x90\x90", 4, false};
	const struct form other = {"\x90\x90\x55\x90\x90\x90\x90\x90\x90", 9, false};
	const struct form pause = {"\xf3\x90\x0f\x1f\x44\x00\x00\x66\x90", 9, true};

	not_to_be_armed(make_function(&too_short, 0), 4, TW_ENOTSUP);
	not_to_be_armed(make_function(&other, 0), 9, TW_ENOTSUP);
	not_to_be_armed(make_function(&pause, 0), 9, TW_ENOTSUP);
}

static _Atomic bool must_end;

static void *idle(void *arg)
{
	/* RELAXED test.end: a flag that ends the loop. */
	while (!tw_load_relaxed(&must_end))
		usleep(1000);
	return NULL;
}

/* A thread may be between two of them, or a handler return there, so not a byte is written. */
static void left_alone_while_threads_run(const struct form *form, unsigned alignment)
{
	uint8_t *at = make_function(form, alignment), before[ROOM_BYTES];
	struct tw_place *place;

	memcpy(before, at - 16, ROOM_BYTES);
	for (unsigned tries = 0; tries < 2; tries++)
		assert_int_equal(try_arm(at, form->bytes, &place), TW_ENOTSUP);
	assert_memory_equal(at - 16, before, ROOM_BYTES);
	assert_int_equal(protection_of(at), 'x');
	calls_pass(at, false, NULL);
}

static void one_byte_nops_are_left_alone_while_threads_run(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, idle, NULL), 0);
	for (unsigned alignment = 0; alignment < 8; alignment++) {
		struct tw_place *place;
		uint8_t *at;

		left_alone_while_threads_run(&forms[0], alignment);
		left_alone_while_threads_run(&forms[1], alignment);
		/* One instruction in one aligned word: no thread can be inside it. */
		at = make_function(&forms[3], alignment);
		assert_int_equal(try_arm(at, 5, &place), alignment <= 3 ? 0 : TW_ENOTSUP);
		calls_pass(at, alignment <= 3, place);
	}
	/* Long NOPs at the alignment that compilers give functions: one store makes the window. */
	for (size_t f = 4; f < sizeof forms / sizeof *forms; f++) {
		uint8_t *at = make_function(&forms[f], 0);
		struct tw_place *place = arm(at, forms[f].bytes);

		calls_pass(at, true, place);
		disarm(place);
		calls_pass(at, false, place);
	}
	/* RELAXED test.end: as above. */
	tw_store_relaxed(&must_end, true);
	pthread_join(thread, NULL);
}

/* Forbids making memory executable from now on. */
static void forbid_executable_memory(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(0);
}

static void try_forbidden(void *at)
{
	struct tw_place *place;
	uint8_t before[ROOM_BYTES];

	memcpy(before, (uint8_t *)at - 16, ROOM_BYTES);
	forbid_executable_memory();
	if (try_arm(at, 9, &place) != TW_EPERM || place->is_installed)
		_exit(1);
	if (memcmp(before, (uint8_t *)at - 16, ROOM_BYTES) || call(at) != ANSWER)
		_exit(2);
}

static void a_system_that_forbids_it_is_obeyed(void **state)
{
	uint8_t *at = make_function(&forms[0], 0);

	assert_int_equal(signal_of_child(try_forbidden, at), 0);
	assert_int_equal(protection_of(at), 'x');
}

/* The library is unloaded: its stub is given to the next sled, and its memory is not touched. */
static void stubs_are_used_again(void **state)
{
	uint8_t *at = make_function(&forms[0], 0);
	struct tw_place *place = arm(at, 9), *next;
	void *stub = place->stub;
	struct tw_permit *permit;

	disarm(place);
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_bp_module_gone(permit, place->function->module, true);
	assert_null(tw_bp_place_at(permit, at));
	tw_permit_drop(permit);
	assert_true(place->is_gone);
	at = make_function(&forms[3], 0);
	next = arm(at, 5);
	/* All places of the library have returned their stubs, and this stub was the last one made. */
	assert_true((uintptr_t)next->stub <= (uintptr_t)stub);
	calls_pass(at, true, next);
	disarm(next);
}

/* Nothing is written while objects are being unloaded; it is written afterwards. */
static void suspended_writes_are_made_up_for(void **state)
{
	uint8_t *at = make_function(&forms[0], 0);
	struct tw_place *place = arm(at, 9);
	struct tw_permit *permit;

	disarm(place);
	tw_patch_suspend();
	assert_ptr_equal(arm(at, 9), place);
	calls_pass(at, false, place);
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_patch_resume(permit);
	tw_permit_drop(permit);
	calls_pass(at, true, place);
	assert_int_equal(protection_of(at), 'x');
	disarm(place);
	calls_pass(at, false, place);
}

/* ---- registers ---- */

struct registers {
	uint64_t general[15]; /* rax rbx rcx rdx rsi rdi r8 .. r15, rbp */
	uint8_t xmm[16][16];
};
struct registers sled_seen, sled_given;
uint64_t sled_stack, sled_called_with;

extern uint8_t sled_probe[];
void sled_call_probe(uint64_t misalign);
/* The probe saves all registers into sled_seen. */
__asm__(".text\n"
	".p2align 4\n"
	"sled_probe:\n"
	"	.fill 9, 1, 0x90\n"
	"	movq %rax, sled_seen(%rip)\n"
	"	leaq sled_seen(%rip), %rax\n"
	"	movq %rbx, 8(%rax); movq %rcx, 16(%rax); movq %rdx, 24(%rax); movq %rsi, 32(%rax)\n"
	"	movq %rdi, 40(%rax); movq %r8, 48(%rax); movq %r9, 56(%rax); movq %r10, 64(%rax)\n"
	"	movq %r11, 72(%rax); movq %r12, 80(%rax); movq %r13, 88(%rax); movq %r14, 96(%rax)\n"
	"	movq %r15, 104(%rax); movq %rbp, 112(%rax)\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 120+16*\\n(%rax)\n"
	"	.endr\n"
	"	movq %rsp, sled_stack(%rip)\n"
	"	ret\n"
	/* Loads all registers from sled_given and calls the probe, with the stack shifted by `misalign`. */
	"sled_call_probe:\n"
	"	pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"	movq %rsp, %rax\n"
	"	subq $64, %rsp\n"
	"	andq $-16, %rsp\n"
	"	subq %rdi, %rsp\n"
	"	movq %rax, sled_saved_stack(%rip)\n"
	"	leaq -8(%rsp), %rax\n"
	"	movq %rax, sled_called_with(%rip)\n"
	"	leaq sled_given(%rip), %rax\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 120+16*\\n(%rax), %xmm\\n\n"
	"	.endr\n"
	"	movq 8(%rax), %rbx; movq 16(%rax), %rcx; movq 24(%rax), %rdx; movq 32(%rax), %rsi\n"
	"	movq 40(%rax), %rdi; movq 48(%rax), %r8; movq 56(%rax), %r9; movq 64(%rax), %r10\n"
	"	movq 72(%rax), %r11; movq 80(%rax), %r12; movq 88(%rax), %r13; movq 96(%rax), %r14\n"
	"	movq 104(%rax), %r15; movq 112(%rax), %rbp; movq (%rax), %rax\n"
	"	call sled_probe\n"
	"	movq sled_saved_stack(%rip), %rsp\n"
	"	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n"
	"	ret\n"
	".bss\n"
	"sled_saved_stack: .zero 8\n"
	".text\n");

static void every_register_comes_through(void **state)
{
	struct tw_place *place = arm(sled_probe, 9);

	hits = 0;
	srandom(7);
	for (unsigned round = 0; round < 64; round++) {
		uint8_t *bytes = (uint8_t *)&sled_given;

		for (size_t i = 0; i < sizeof sled_given; i++)
			bytes[i] = (uint8_t)random();
		sled_call_probe(round % 16);
		assert_int_equal(hits, round + 1);
		assert_memory_equal(&sled_seen, &sled_given, sizeof sled_given);
		assert_int_equal(sled_stack, sled_called_with);
	}
	disarm(place);
}

/* ---- unwinding ---- */

static void *frames[32];
static int frame_count;

static void take_frames(void *arg)
{
	frame_count = backtrace(frames, 32);
}

static const char *unwinding_hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	tw_patch_call_keeping_vectors(take_frames, NULL);
	return NULL;
}

__attribute__((noinline, patchable_function_entry(9, 0))) static int inner(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}

__attribute__((noinline)) static int outer(int a)
{
	return inner(a) + 1;
}

static bool has_frame(const void *from, size_t bytes)
{
	for (int i = 0; i < frame_count; i++)
		if ((uintptr_t)frames[i] >= (uintptr_t)from && (uintptr_t)frames[i] < (uintptr_t)from + bytes)
			return true;
	return false;
}

static void a_hit_can_be_unwound(void **state)
{
	struct tw_place *place;
	uint8_t *at = (uint8_t *)(uintptr_t)inner;

	if (memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0)
		at += 4;
	place = arm(at, 9);
	tw_bp_trampoline_hit = unwinding_hit;
	backtrace(frames, 1); /* loads libgcc */
	frame_count = 0;
	assert_int_equal(outer(1), 3);
	assert_true(frame_count > 5);
	assert_true(has_frame((void *)(uintptr_t)inner, 32));
	assert_true(has_frame((void *)(uintptr_t)outer, 64));
	assert_true(has_frame((void *)(uintptr_t)a_hit_can_be_unwound, 512));
	tw_bp_trampoline_hit = counting_hit;
	disarm(place);
}

/* Their code is made writable one object after another, and all protections are restored. */
static void sleds_of_several_objects_change_at_once(void **state)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	uint8_t *at[3] = {make_function(&forms[4], 0), (uint8_t *)(uintptr_t)inner, make_function(&forms[4], 0)};
	struct tw_place *places[3];
	struct tw_permit *permit;

	if (memcmp(at[1], "\xf3\x0f\x1e\xfa", 4) == 0)
		at[1] += 4;
	for (int is_armed = 1; is_armed >= 0; is_armed--) {
		assert_int_equal(tw_permit_seize(&permit), 0);
		for (int i = 0; i < 3; i++) {
			places[i] = tw_bp_place_at(permit, at[i]);
			if (!places[i])
				places[i] = add_sled(permit, at[i], 9);
			if (is_armed)
				assert_int_equal(tw_bp_stage_set(permit, places[i], &part), 0);
			else
				assert_int_equal(tw_bp_stage_clear(permit, places[i], SESSION), 0);
		}
		tw_bp_commit(permit);
		tw_permit_drop(permit);
		for (int i = 0; i < 3; i++)
			assert_int_equal(protection_of(at[i]), 'x');
		calls_pass(at[0], is_armed, places[0]);
		calls_pass(at[2], is_armed, places[2]);
		hits = 0;
		assert_int_equal(outer(1), 3);
		assert_int_equal(hits, is_armed);
	}
}

/* At any instruction of a stub, an unwinder that knows the stubs continues to the function and its callers. */
static const struct tw_place *stepped_place;
static unsigned steps_in_stub, steps_in_the_dark;

static void a_stub_can_be_unwound(void **state);

static void step(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (at - (uintptr_t)stepped_place->stub >= TW_SLED_STUB_BYTES)
		return;
	steps_in_stub++;
	frame_count = backtrace(frames, 32);
	steps_in_the_dark += !has_frame((void *)(uintptr_t)inner, 32) || !has_frame((void *)(uintptr_t)outer, 64) ||
			     !has_frame((void *)(uintptr_t)a_stub_can_be_unwound, 4096);
}

static void set_stepping(bool is_on)
{
	if (is_on)
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

/* libgcc's, for code generated at run time. */
void __register_frame(const void *frames);
void __deregister_frame(const void *frames);

static void a_stub_can_be_unwound(void **state)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
	struct tw_unwind_code code;
	const uint8_t *entries;
	uint8_t *at = (uint8_t *)(uintptr_t)inner;
	int32_t distance;

	/* A step inside ThreadSanitizer's own code, which the handler calls too, would wait for a lock that this thread holds. */
	if (UNDER_TSAN)
		skip();
	if (memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0)
		at += 4;
	stepped_place = arm(at, 9);
	assert_false(tw_unwind_find_code((uintptr_t)at, &code));
	assert_true(tw_unwind_find_code((uintptr_t)stepped_place->stub, &code));
	assert_true((uintptr_t)stepped_place->stub + TW_SLED_STUB_BYTES <= (uintptr_t)code.end);
	/* .eh_frame_hdr: four bytes of encodings, then the start of the entries. */
	memcpy(&distance, (const uint8_t *)code.header + 4, sizeof distance);
	entries = (const uint8_t *)code.header + 4 + distance;
	__register_frame(entries);
	backtrace(frames, 1);
	sigaction(SIGTRAP, &action, &before);
	set_stepping(true);
	outer(1);
	set_stepping(false);
	sigaction(SIGTRAP, &before, NULL);
	__deregister_frame(entries);
	assert_int_equal(steps_in_stub, 5);
	assert_int_equal(steps_in_the_dark, 0);
	disarm((struct tw_place *)(uintptr_t)stepped_place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_is_armed_and_disarmed),
		cmocka_unit_test(nops_of_the_body_are_left_alone),
		cmocka_unit_test(threads_go_on_from_every_instruction),
		cmocka_unit_test(wrong_orders_crash),
		cmocka_unit_test(other_code_is_no_sled),
		cmocka_unit_test(a_system_that_forbids_it_is_obeyed),
		cmocka_unit_test(stubs_are_used_again),
		cmocka_unit_test(suspended_writes_are_made_up_for),
		cmocka_unit_test(every_register_comes_through),
		cmocka_unit_test(a_hit_can_be_unwound),
		cmocka_unit_test(a_stub_can_be_unwound),
		cmocka_unit_test(sleds_of_several_objects_change_at_once),
		cmocka_unit_test(one_byte_nops_are_left_alone_while_threads_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
