/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A planted function reports the hit and changes nothing else: answers, stack, bytes outside its window, page
 *         protections, unwinding at each instruction; also while threads call it during changes.  If the bytes in memory
 *         are not the plan's, or other threads run, nothing is written.
 * Method  Functions in assembly, one a kind of window, are planned from this executable's file and planted, with the rest
 *         of each window filled with int3, so that a jump into one is noticed.  A debugger's step goes through stub
 *         and copy.  The control jumps into a window.
 */
#include "base/export.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "breakpoints/sled.h"
#include "plan/plan.h"
#include "entry_kinds_help.h"
#include "protection_help.h"
#include "sanitized_help.h"
#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SESSION 3

/* The window crosses a boundary of words, and its first bytes one of pages. */
FUNCTION(across_words, ".skip 6, 0x90\nmov %rdi, %rax\nadd $17, %rax\nret");
__asm__(".pushsection .text\n.p2align 12\n.skip 4093, 0xcc\n.globl across_pages\n.type across_pages, @function\nacross_pages:\n"
	".cfi_startproc\nmov %rdi, %rax\nadd $19, %rax\nret\n.cfi_endproc\n.size across_pages, .-across_pages\n.p2align 4\n"
	".popsection");
extern uint64_t across_pages(uint64_t x);
/* These are planted by no other test. */
FUNCTION(changed_in_memory, "mov %rdi, %rax\nadd $21, %rax\nret");
FUNCTION(wanted_late, "mov %rdi, %rax\nadd $23, %rax\nret");
FUNCTION(entered_inside, "mov %rdi, %rax\nadd $25, %rax\nret");

typedef uint64_t (*function_fn)(uint64_t);

static const struct {
	const char *name;
	function_fn function;
} kinds[] = {
	{"plain_window", plain_window},
	{"one_instruction", one_instruction},
	{"relative_memory", relative_memory},
	{"relative_memory_and_immediate", relative_memory_and_immediate},
	{"short_condition", short_condition},
	{"near_condition", near_condition},
	{"tail_jump", tail_jump},
	{"tail_jump_through_slot", tail_jump_through_slot},
	{"calls_first", calls_first},
	{"calls_through_slot_first", calls_through_slot_first},
	{"calls_after_push", calls_after_push},
	{"returns_at_once", returns_at_once},
	{"with_endbr", with_endbr},
	{"with_frame", with_frame},
	{"across_words", across_words},
	{"across_pages", across_pages},
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define TRIES 8

static struct tw_entry_plan plan;
static uintptr_t base;
static uint64_t answers[KINDS][TRIES];
static struct tw_place *places[KINDS];
static _Atomic unsigned hits;
static struct tw_place *_Atomic last_place;
static _Atomic uint64_t last_word;

__attribute__((target("general-regs-only"))) static const char *counting_hit(struct tw_place *place,
									     const uint64_t *words, uint64_t *slot)
{
	/* RELAXED test.hits: read after the calls. */
	tw_fetch_add_relaxed(&hits, 1);
	/* RELAXED test.hits: as above. */
	tw_store_relaxed(&last_place, place);
	/* RELAXED test.hits: as above. */
	tw_store_relaxed(&last_word, words[0]);
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
			 "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
	return NULL;
}

static unsigned take_hits(void)
{
	/* RELAXED test.hits: as above. */
	return tw_fetch_and_relaxed(&hits, 0);
}

static int set_up(void **state)
{
	struct tw_elf_file *file;
	void *bytes;
	size_t count;
	Dl_info info;

	assert_int_not_equal(dladdr((void *)(uintptr_t)doubled, &info), 0);
	assert_int_equal(tw_elf_file_open("/proc/self/exe", &file), 0);
	base = file->header.e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_entry_plan_make(file, &bytes, &count), 0);
	assert_int_equal(tw_entry_plan_open(bytes, count, &plan), 0);
	tw_elf_file_close(file);
	for (size_t i = 0; i < KINDS; i++)
		for (uint64_t x = 0; x < TRIES; x++)
			answers[i][x] = kinds[i].function(x);
	tw_bp_trampoline_hit = counting_hit;
	tw_entry_fills_windows = true;
	return 0;
}

/* ---- planting ---- */

static struct tw_place *add_entry(struct tw_permit *permit, function_fn function, const char *name)
{
	const struct tw_module_options options = {.name = "entries", .is_declared = true};
	const struct tw_entry_plan_row *row = tw_entry_plan_find(&plan, (uintptr_t)function - base);
	struct tw_place_options place_options = {.kind = TW_BP_ENTRY};
	const struct tw_bp_entry entry = {&plan, row, base};
	struct tw_module *module;
	struct tw_function *added;
	struct tw_place *place;

	assert_non_null(row);
	assert_int_equal(row->refusal, 0);
	place_options.entry = &entry;
	place_options.where = (uint8_t *)(uintptr_t)function + row->window_offset;
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, name, UINT32_MAX, 0, &added), 0);
	assert_int_equal(tw_bp_place_add(permit, added, &place_options, &place), 0);
	assert_ptr_equal(place->where, place_options.where);
	return place;
}

static int try_arm(function_fn function, const char *name, struct tw_place **out)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_permit *permit;
	int error;

	assert_int_equal(tw_permit_seize(&permit), 0);
	*out = add_entry(permit, function, name);
	error = tw_bp_stage_set(permit, *out, &part);
	if (error)
		tw_bp_abort(permit);
	else
		tw_bp_commit(permit);
	tw_permit_drop(permit);
	return error;
}

/* Arms or disarms all kinds in one run. */
static void change_all(bool is_armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_patch_begin(permit);
	for (size_t i = 0; i < KINDS; i++) {
		if (!places[i])
			places[i] = add_entry(permit, kinds[i].function, kinds[i].name);
		if (is_armed)
			assert_int_equal(tw_bp_stage_set(permit, places[i], &part), 0);
		else
			assert_int_equal(tw_bp_stage_clear(permit, places[i], SESSION), 0);
	}
	tw_patch_end(permit);
	assert_int_equal(tw_patch_take_unplanted(permit), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static void calls_pass(bool is_armed)
{
	for (size_t i = 0; i < KINDS; i++) {
		for (uint64_t x = 0; x < TRIES; x++) {
			uint64_t answer;

			take_hits();
			answer = kinds[i].function(x);
			if (answer != answers[i][x])
				fail_msg("%s(%llu) answers %llu, not %llu", kinds[i].name, (unsigned long long)x,
					 (unsigned long long)answer, (unsigned long long)answers[i][x]);
			assert_int_equal(take_hits(), is_armed);
			if (is_armed) {
				/* RELAXED test.hits: this thread stored them. */
				assert_ptr_equal(tw_load_relaxed(&last_place), places[i]);
				/* RELAXED test.hits: as above. */
				assert_int_equal(tw_load_relaxed(&last_word), x);
			}
		}
	}
}

static void every_kind_is_armed_and_disarmed(void **state)
{
	uint8_t before[KINDS][64];

	for (size_t i = 0; i < KINDS; i++)
		memcpy(before[i], (uint8_t *)(uintptr_t)kinds[i].function, sizeof before[i]);
	for (int round = 0; round < 3; round++) {
		change_all(true);
		calls_pass(true);
		change_all(false);
		calls_pass(false);
	}
	for (size_t i = 0; i < KINDS; i++) {
		const struct tw_entry_plan_row *row = places[i]->entry->row;
		const uint8_t *function = (uint8_t *)(uintptr_t)kinds[i].function;
		unsigned end = (unsigned)row->window_offset + row->window_bytes;
		uint8_t written[8];
		uintptr_t at;

		assert_memory_equal(function, before[i], row->window_offset);
		/* Other windows begin 16 bytes behind at the earliest. */
		if (end < 16)
			assert_memory_equal(function + end, before[i] + end, 16 - end);
		assert_int_equal(function[row->window_offset], 0xe9);
		for (unsigned n = row->window_offset + 5u; n < end; n++)
			assert_int_equal(function[n], 0xcc);
		assert_int_equal(tw_patch_written(places[i], written, &at), 0);
		assert_int_equal(protection_of(function), 'x');
		assert_int_equal(protection_of(places[i]->stub), 'x');
	}
}

static void an_installed_entry_is_recognised(void **state)
{
	uint8_t written[8];
	uintptr_t at;

	change_all(true);
	for (size_t i = 0; i < KINDS; i++) {
		assert_int_equal(tw_patch_written(places[i], written, &at), 5);
		assert_memory_equal((void *)at, written, 5);
	}
	change_all(false);
}

/* ---- refusals ---- */

TW_WRITES_CODE static void flip(uint8_t *at)
{
	*at ^= 1;
}

static void other_bytes_are_left_alone(void **state)
{
	uint8_t *at = (uint8_t *)(uintptr_t)changed_in_memory, *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)4095),
		before[16];
	struct tw_place *place;

	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	/* A breakpoint behind the jump's five bytes, in the window. */
	flip(at + 6);
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_EXEC), 0);
	memcpy(before, at, sizeof before);
	assert_int_equal(try_arm(changed_in_memory, "changed_in_memory", &place), TW_EFORMAT);
	assert_null(place->stub);
	assert_memory_equal(at, before, sizeof before);
	assert_int_equal(protection_of(at), 'x');
}

/* Runs in a child: may crash.  Returns the signal, or 0. */
static int signal_of_child(uint64_t (*run)(uint64_t))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGTRAP, SIG_DFL);
		run(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Control: the int3 behind the jump is noticed. */
static void a_jump_into_a_window_is_noticed(void **state)
{
	union {
		uint8_t *bytes;
		function_fn function;
	} inside = {(uint8_t *)(uintptr_t)entered_inside + 5};
	struct tw_place *place;

	assert_int_equal(try_arm(entered_inside, "entered_inside", &place), 0);
	assert_int_equal(signal_of_child(entered_inside), 0);
	assert_int_equal(signal_of_child(inside.function), SIGTRAP);
}

/* ---- threads ---- */

static _Atomic bool must_end;
static _Atomic unsigned wrong_answers;
static _Atomic uint64_t calls;

static void *call_all(void *arg)
{
	/* RELAXED test.end: a flag that ends the loop. */
	while (!tw_load_relaxed(&must_end)) {
		for (size_t i = 0; i < KINDS; i++)
			for (uint64_t x = 0; x < TRIES; x++)
				if (kinds[i].function(x) != answers[i][x])
					/* RELAXED test.wrong: read after the threads. */
					tw_fetch_add_relaxed(&wrong_answers, 1);
		/* RELAXED test.calls: only progress. */
		tw_fetch_add_relaxed(&calls, KINDS * TRIES);
	}
	return NULL;
}

/* Planted entries are changed while they are called; what is not planted yet is refused, and nothing is written. */
static void threads_call_during_changes(void **state)
{
	uint8_t before[16];
	pthread_t threads[3];
	struct tw_place *place;
	uint64_t seen = 0;

	memcpy(before, (void *)(uintptr_t)wanted_late, sizeof before);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_all, NULL), 0);
	for (unsigned round = 0; round < 200; round++) {
		change_all(round % 2 == 0);
		/* RELAXED test.calls: as above. */
		while (round % 20 == 0 && tw_load_relaxed(&calls) == seen)
			usleep(100);
		/* RELAXED test.calls: as above. */
		seen = tw_load_relaxed(&calls);
	}
	assert_true(take_hits() > 0);
	assert_int_equal(try_arm(wanted_late, "wanted_late", &place), TW_ENOTSUP);
	assert_memory_equal((void *)(uintptr_t)wanted_late, before, sizeof before);
	/* RELAXED test.end: as above. */
	tw_store_relaxed(&must_end, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	/* RELAXED test.wrong: as above. */
	assert_int_equal(tw_load_relaxed(&wrong_answers), 0);
	calls_pass(false);
	/* A sanitizer may keep a thread of its own. */
	if (IS_SANITIZED)
		return;
	assert_int_equal(try_arm(wanted_late, "wanted_late", &place), 0);
	assert_int_equal(wanted_late(1), 24);
	assert_int_equal(take_hits(), 1);
}

/* ---- objects that come and go ---- */

/* The module of a mapping of its own: the object that is opened and closed. */
static struct tw_place *add_guest(struct tw_permit *permit, uint8_t *image, struct tw_module **module)
{
	const struct tw_module_options options = {.name = "guest",
						  .path = "/guest",
						  .base_address = (uintptr_t)image,
						  .end_address = (uintptr_t)image + 4096,
						  .build_id = (const uint8_t *)"guest",
						  .build_id_bytes = 5};
	const struct tw_entry_plan_row *row = tw_entry_plan_find(&plan, (uintptr_t)wanted_late - base);
	/* As if the file's code began at the image. */
	const struct tw_bp_entry entry = {&plan, row, (uintptr_t)image - row->value};
	const struct tw_place_options place_options = {.kind = TW_BP_ENTRY, .where = image, .entry = &entry};
	struct tw_function *function;
	struct tw_place *place;

	assert_int_equal(tw_bp_module_add(permit, &options, module), 0);
	(*module)->base_address = entry.base;
	assert_int_equal(tw_bp_function_add(permit, *module, "wanted", UINT32_MAX, (uintptr_t)image, &function), 0);
	assert_int_equal(tw_bp_place_add(permit, function, &place_options, &place), 0);
	return place;
}

/* Opens the object at an address, or anywhere, calls it, and closes it. */
static uint8_t *open_and_close(uint8_t *at, bool is_unloaded, void **stub)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	uint8_t *image = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct tw_entry_plan_row *row = tw_entry_plan_find(&plan, (uintptr_t)wanted_late - base);
	struct tw_unwind_code code;
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_place *place;
	union {
		uint8_t *bytes;
		function_fn function;
	} call = {image};

	assert_true(!at || image == at);
	memcpy(image, tw_entry_plan_window(&plan, row), row->window_bytes);
	image[row->window_bytes] = 0xc3;
	assert_int_equal(mprotect(image, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(tw_permit_seize(&permit), 0);
	place = add_guest(permit, image, &module);
	assert_int_equal(tw_bp_stage_set(permit, place, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	take_hits();
	assert_int_equal(call.function(1), 24);
	assert_int_equal(take_hits(), 1);
	assert_true(tw_unwind_find_code((uintptr_t)place->stub, &code));
	assert_ptr_equal(code.start, (uint8_t *)place->stub - TW_ENTRY_AWAY_BYTES);
	*stub = place->stub;
	if (is_unloaded)
		munmap(image, 4096);
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_bp_module_gone(permit, module, is_unloaded);
	tw_permit_drop(permit);
	/* Seemed to be gone: the jump still leads to its copy, and no stub is entered. */
	if (!is_unloaded)
		assert_int_equal(call.function(1), 24);
	if (!is_unloaded)
		munmap(image, 4096);
	assert_int_equal(take_hits(), 0);
	assert_int_equal(tw_unwind_find_code((uintptr_t)*stub, &code), !is_unloaded);
	return image;
}

static void copies_of_unloaded_objects_are_freed(void **state)
{
	void *first, *stub, *kept;
	uint8_t *image;

	/* A sanitizer keeps a thread, and places objects otherwise. */
	if (IS_SANITIZED)
		skip();
	image = open_and_close(NULL, true, &first);
	for (int round = 0; round < 200; round++) {
		image = open_and_close(round % 2 ? image : NULL, true, &stub);
		assert_ptr_equal(stub, first);
		assert_int_equal(protection_of(stub), 'w');
	}
	open_and_close(image, false, &kept);
	assert_int_equal(protection_of(kept), 'x');
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
	result = real(tw_unwind_find_code((uintptr_t)pc, &code) ? (void *)(uintptr_t)call_all : pc, out);
	if (!result && tw_unwind_find_code((uintptr_t)pc, &code)) {
		out->dlfo_map_start = (void *)(uintptr_t)code.start;
		out->dlfo_map_end = (void *)(uintptr_t)code.end;
		out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	}
	return result;
}

static bool are_listed;

/* Not with a sanitizer, which asks for objects before anything may run. */
#if !IS_SANITIZED
static int show(const struct tw_unwind_code *code, void *arg)
{
	int (*callback)(struct dl_phdr_info *, size_t, void *) = ((void **)arg)[0];
	const ElfW(Phdr) headers[] = {
		{.p_type = PT_LOAD,
		 .p_vaddr = (uintptr_t)code->start,
		 .p_memsz = (size_t)((const char *)code->end - (const char *)code->start)},
		{.p_type = PT_GNU_EH_FRAME, .p_vaddr = (uintptr_t)code->header, .p_memsz = code->header_bytes},
	};
	struct dl_phdr_info info = {.dlpi_name = "code", .dlpi_phdr = headers, .dlpi_phnum = 2};

	return callback(&info, sizeof info, ((void **)arg)[1]);
}

/* libunwind asks here. */
TW_API int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	void *list[] = {(void *)(uintptr_t)callback, data};
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	result = real(callback, data);
	return result || !are_listed ? result : tw_unwind_each_code(show, list);
}
#endif

static unsigned steps_seen, steps_in_stub, steps_in_the_dark, steps_without_name, steps_on_the_way;
static const struct tw_place *stepped;

__attribute__((noinline)) static uint64_t call_stepping(function_fn function, uint64_t x)
{
	uint64_t answer;

	__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc");
	answer = function(x);
	__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	return answer;
}

/* libunwind's: by its own context, and from the signal's. */
static int (*backtrace_by_list)(void **, int);
static int (*begin_by_list)(void *cursor, void *context, int flag);
static int (*step_by_list)(void *cursor);
static int (*register_by_list)(void *cursor, int number, uint64_t *out);
static unsigned steps_unlisted, steps_unlisted_from_signal;

static bool is_listed_from(void *context)
{
	uint64_t cursor[127], pc; /* unw_cursor_t */
	bool is_found = false;

	if (begin_by_list(cursor, context, 1))
		return false;
	do
		is_found |= !register_by_list(cursor, 16, &pc) && pc - (uintptr_t)call_stepping < 128;
	while (!is_found && step_by_list(cursor) > 0);
	return is_found;
}

static void step_by_libunwind(void *context)
{
	void *frames[32];
	int count = backtrace_by_list(frames, 32);
	bool is_found = false;

	for (int i = 0; i < count; i++)
		is_found |= (uintptr_t)frames[i] - (uintptr_t)call_stepping < 128;
	steps_unlisted += !is_found;
	steps_unlisted_from_signal += !is_listed_from(context);
}

/* As handlers of faults and of profilers see a copy: the function's own instruction in its place. */
static void step_shown(greg_t *pc, uintptr_t shown)
{
	greg_t at = *pc;
	void *frames[32];
	bool is_found = false;
	int count;

	*pc = (greg_t)shown;
	count = backtrace(frames, 32);
	for (int i = 0; i < count; i++)
		is_found |= (uintptr_t)frames[i] - (uintptr_t)call_stepping < 128;
	steps_in_the_dark += !is_found;
	*pc = at;
}

static void step(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	void *frames[32];
	bool is_found = false, is_named = false;
	int count;

	if (at - (uintptr_t)stepped->stub >= 128 && at - (uintptr_t)tw_sled_entry >= 128)
		return;
	steps_seen++;
	if (tw_entry_original(at) && !backtrace_by_list)
		step_shown(&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP], tw_entry_original(at));
	if (backtrace_by_list)
		step_by_libunwind(context);
	count = backtrace(frames, 32);
	for (int i = 0; i < count; i++)
		is_found |= (uintptr_t)frames[i] - (uintptr_t)call_stepping < 128;
	/* While the stub has words on the stack, there is the function below it, also before its endbr64. */
	for (int i = 0; i < count; i++)
		is_named |= (uintptr_t)frames[i] - (uintptr_t)stepped->where + 4 < 12;
	steps_in_the_dark += !is_found;
	steps_on_the_way += at - (uintptr_t)tw_sled_entry < 128 && is_named;
	steps_without_name +=
		at - (uintptr_t)stepped->stub < TW_ENTRY_STUB_BYTES && !tw_entry_original(at) && !is_named;
	steps_in_stub += at - (uintptr_t)stepped->stub < TW_ENTRY_STUB_BYTES && !tw_entry_original(at);
}

static void every_instruction_can_be_unwound(void **state)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, before;
	void *frames[2];

	/* A sanitizer's calls inside the handler are reported, and none of them is ours. */
	if (IS_SANITIZED)
		skip();
	change_all(true);
	backtrace(frames, 2); /* loads libgcc */
	sigaction(SIGTRAP, &action, &before);
	for (size_t i = 0; i < KINDS; i++) {
		stepped = places[i];
		steps_seen = steps_in_stub = steps_in_the_dark = steps_without_name = steps_on_the_way = 0;
		assert_int_equal(call_stepping(kinds[i].function, 1), answers[i][1]);
		/* Seven instructions of the stub, three of which find its words on the stack; the copy. */
		assert_true(steps_seen >= 8);
		assert_int_equal(steps_in_stub, 3);
		assert_int_equal(steps_without_name, 0);
		assert_true(steps_on_the_way > 10);
		if (steps_in_the_dark)
			fail_msg("%s: %u of %u steps cannot be unwound", kinds[i].name, steps_in_the_dark, steps_seen);
	}
	sigaction(SIGTRAP, &before, NULL);
	change_all(false);
}

static void step_all(void)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, before;

	steps_seen = steps_unlisted = steps_unlisted_from_signal = 0;
	sigaction(SIGTRAP, &action, &before);
	for (size_t i = 0; i < KINDS; i++) {
		stepped = places[i];
		assert_int_equal(call_stepping(kinds[i].function, 1), answers[i][1]);
	}
	sigaction(SIGTRAP, &before, NULL);
	assert_true(steps_seen > 7 * KINDS);
}

/* In a child: libunwind remembers what it has not found. */
static bool is_cut_at_each_kind(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		step_all();
		_exit(steps_unlisted > 7 * KINDS && steps_unlisted_from_signal > 7 * KINDS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void libunwind_finds_the_callers(void **state)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW), *frames[2];

	if (IS_SANITIZED || !library)
		skip();
	*(void **)&backtrace_by_list = dlsym(library, "unw_backtrace");
	*(void **)&begin_by_list = dlsym(library, "_ULx86_64_init_local2");
	*(void **)&step_by_list = dlsym(library, "_ULx86_64_step");
	*(void **)&register_by_list = dlsym(library, "_ULx86_64_get_reg");
	backtrace_by_list(frames, 2);
	backtrace(frames, 2);
	change_all(true);
	assert_true(is_cut_at_each_kind());
	are_listed = true;
	step_all();
	assert_int_equal(steps_unlisted, 0);
	assert_int_equal(steps_unlisted_from_signal, 0);
	are_listed = false;
	backtrace_by_list = NULL;
	change_all(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_armed_and_disarmed),
		cmocka_unit_test(an_installed_entry_is_recognised),
		cmocka_unit_test(other_bytes_are_left_alone),
		cmocka_unit_test(a_jump_into_a_window_is_noticed),
		cmocka_unit_test(every_instruction_can_be_unwound),
		cmocka_unit_test(libunwind_finds_the_callers),
		cmocka_unit_test(threads_call_during_changes),
		cmocka_unit_test(copies_of_unloaded_objects_are_freed),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
