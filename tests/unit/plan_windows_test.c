/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A function continues to do what it does when its first instructions run as the copy of a plan, elsewhere; and a
 *         function whose first bytes cannot be moved, or whose caller passes it status flags, is refused with the right reason.
 * Method  Functions in assembly, one a kind of window, are planned from this executable's file.  Each copy is laid out
 *         in memory near the program and called: the answer must be the function's.  Each planned function is entered
 *         nowhere but at its first byte, so nothing is written over it.
 */
#include "plan/plan.h"

#include "entry_kinds_help.h"

#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refused. */
FUNCTION(target_inside, "xor %eax, %eax\n1: dec %rdi\njns 1b\nret");
FUNCTION(loop_head, "lea 1(%rdi), %rdi\ncmp $100, %rdi\njb loop_head\nmov %rdi, %rax\nret");
FUNCTION(calls_a_register, "mov %rdi, %rax\ncall *%rdi\nret");
FUNCTION(short_loop, "mov %edi, %ecx\njrcxz 1f\nnop\n1: mov $5, %eax\nret");
FUNCTION(unknown_instruction, ".byte 0x06, 0x06, 0x06, 0x06, 0x06\nret");

/* Shorter than a jump, with other functions directly around it. */
__asm__(".pushsection .text\n.p2align 4\n.globl too_short\n.type too_short, @function\ntoo_short:\n.cfi_startproc\n"
	"mov %edi, %eax\nret\n.cfi_endproc\n.size too_short, .-too_short\n"
	".globl behind_too_short\n.type behind_too_short, @function\nbehind_too_short:\n.cfi_startproc\n"
	"lea 4(%rdi), %rax\nret\n.cfi_endproc\n.size behind_too_short, .-behind_too_short\n.popsection");
extern uint64_t too_short(uint64_t x), behind_too_short(uint64_t x);

/* The caller passes them a flag, which they read behind jumps, on one way of two, or in a function that they call or go on in. */
FUNCTION(flag_in_line, "mov $5, %eax\nmov $7, %edx\nadc $0, %eax\nret");
FUNCTION(flag_behind_jump, "mov $5, %eax\nlea 1(%rax), %edx\njmp 1f\nnop\n1: mov %edx, %ecx\ncmovc %edx, %eax\nret");
FUNCTION(flag_on_one_way, "inc %edi\njz 1f\nxor %eax, %eax\nret\n1: setc %al\nret");
FUNCTION(flag_behind_condition, "inc %edi\njz 1f\nsetc %al\nret\n1: xor %eax, %eax\nret");
FUNCTION(flag_in_tail, "mov $3, %edi\njmp flag_in_line");
FUNCTION(flag_in_called, "push %rbx\ncall flag_in_line\npop %rbx\nret");
FUNCTION(flag_in_circle, "mov $3, %edi\n2: nop\njmp 1f\n1: lea 1(%rdi), %edi\njmp 2b");
/* These read their own. */
FUNCTION(own_flag_behind_jump, "add $5, %edi\nmov $1, %eax\njmp 1f\nnop\n1: cmovc %edi, %eax\nret");
FUNCTION(own_flag_of_called, "call flag_in_circle_not\nsetc %al\nret\nflag_in_circle_not: ret");
FUNCTION(own_flag_of_comparison, "mov $5, %ecx\nlea own_flag_of_called(%rip), %rsi\nrepz cmpsb\nseta %al\nret");

/* Without call frame information; the first two keep their return address. */
#define UNFRAMED(name, body)                                                                                           \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body "\n" \
		".size " #name ", .-" #name "\n.p2align 4\n.popsection");                                              \
	extern uint64_t name(uint64_t x)
UNFRAMED(unframed_keeping, "push %rbx\nsub $32, %rsp\nmov 40(%rsp), %rax\nadd $32, %rsp\npop %rbx\nret");
UNFRAMED(unframed_with_frame,
	 "push %rbp\nmov %rsp, %rbp\nand $-16, %rsp\nmov %rdi, (%rsp)\nmov 8(%rbp), %rax\nleave\nret");
UNFRAMED(unframed_plain, "sub $24, %rsp\nmov %rdi, (%rsp)\nmov (%rsp), %rax\nadd $24, %rsp\nret");

struct planned {
	struct tw_elf_file *file;
	void *bytes;
	size_t count;
	struct tw_entry_plan plan;
	uintptr_t base;
	uint8_t *memory; /* for copies, within reach */
	size_t used;
};

#define MEMORY_BYTES 65536

static uint8_t *map_near(uintptr_t base)
{
	for (uintptr_t step = 1 << 20; step < (UINT64_C(1) << 30); step += 1 << 20) {
		void *at = mmap((void *)((base - step) & ~(uintptr_t)4095), MEMORY_BYTES,
				PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				-1, 0);

		if (at != MAP_FAILED)
			return at;
	}
	return NULL;
}

static int set_up(void **state)
{
	static struct planned planned;
	Dl_info info;

	assert_int_not_equal(dladdr((void *)(uintptr_t)doubled, &info), 0);
	planned.base = (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_elf_file_open("/proc/self/exe", &planned.file), 0);
	if (planned.file->header.e_type == ET_EXEC)
		planned.base = 0;
	assert_int_equal(tw_entry_plan_make(planned.file, &planned.bytes, &planned.count), 0);
	assert_int_equal(tw_entry_plan_open(planned.bytes, planned.count, &planned.plan), 0);
	planned.memory = map_near((uintptr_t)info.dli_fbase);
	assert_non_null(planned.memory);
	*state = &planned;
	return 0;
}

static int tear_down(void **state)
{
	struct planned *planned = *state;

	munmap(planned->memory, MEMORY_BYTES);
	free(planned->bytes);
	tw_elf_file_close(planned->file);
	return 0;
}

static const struct tw_entry_plan_row *row_of(const struct planned *planned, uint64_t (*function)(uint64_t))
{
	return tw_entry_plan_find(&planned->plan, (uintptr_t)function - planned->base);
}

typedef uint64_t (*function_fn)(uint64_t);

static function_fn lay_out(struct planned *planned, uint64_t (*function)(uint64_t))
{
	const struct tw_entry_plan_row *row = row_of(planned, function);
	uint8_t *at = planned->memory + planned->used;
	union {
		uint8_t *bytes;
		function_fn function;
	} copy = {at};
	unsigned bytes;

	assert_non_null(row);
	if (row->refusal)
		fail_msg("refused: %s", tw_entry_refusal_text(row->refusal));
	assert_memory_equal(tw_entry_plan_window(&planned->plan, row),
			    (uint8_t *)(uintptr_t)function + row->window_offset, row->window_bytes);
	bytes = tw_entry_plan_lay_out(&planned->plan, row, planned->base, (uintptr_t)at, at);
	assert_in_range(bytes, 1, TW_ENTRY_SPACE_BYTES);
	planned->used += (bytes + 15) & ~15u;
	assert_true(planned->used < MEMORY_BYTES);
	return copy.function;
}

static void copies_do_what_functions_do(void **state)
{
	static const struct {
		const char *name;
		function_fn function;
		unsigned window_bytes; /* 0: not asserted */
	} rows[] = {
		{"plain_window", plain_window, 8},
		{"one_instruction", one_instruction, 10},
		{"relative_memory", relative_memory, 7},
		{"relative_memory_and_immediate", relative_memory_and_immediate, 7},
		{"short_condition", short_condition, 5},
		{"near_condition", near_condition, 10},
		{"tail_jump", tail_jump, 5},
		{"tail_jump_through_slot", tail_jump_through_slot, 10},
		{"calls_first", calls_first, 5},
		{"calls_through_slot_first", calls_through_slot_first, 6},
		{"calls_after_push", calls_after_push, 6},
		{"returns_at_once", returns_at_once, 5},
		{"with_endbr", with_endbr, 7},
		{"with_frame", with_frame, 7},
	};
	struct planned *planned = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		function_fn copy = lay_out(planned, rows[i].function);

		if (rows[i].window_bytes)
			assert_int_equal(row_of(planned, rows[i].function)->window_bytes, rows[i].window_bytes);
		for (uint64_t x = 0; x < 10; x++)
			if (copy(x) != rows[i].function(x))
				fail_msg("%s(%llu) answers %llu, its copy %llu", rows[i].name, (unsigned long long)x,
					 (unsigned long long)rows[i].function(x), (unsigned long long)copy(x));
	}
	assert_true(row_of(planned, with_endbr)->window_offset == 4);
	assert_true(row_of(planned, calls_first)->flags & TW_ENTRY_CALL);
	assert_true(row_of(planned, relative_memory)->flags & TW_ENTRY_ACCESSES);
	assert_false(row_of(planned, plain_window)->flags & TW_ENTRY_ACCESSES);
	assert_true(row_of(planned, tail_jump)->flags & TW_ENTRY_ENDS);
}

static void what_cannot_be_moved_is_refused(void **state)
{
	static const struct {
		function_fn function;
		enum tw_entry_refusal refusal;
	} rows[] = {
		{target_inside, TW_ENTRY_TARGET_INSIDE},
		{loop_head, TW_ENTRY_LOOP_HEAD},
		{calls_a_register, TW_ENTRY_INDIRECT_CALL},
		{short_loop, TW_ENTRY_LOOP_INSN},
		{unknown_instruction, TW_ENTRY_UNDECODED},
		{too_short, TW_ENTRY_SHORT},
		{behind_too_short, TW_ENTRY_OK},
	};
	const struct planned *planned = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tw_entry_plan_row *row = row_of(planned, rows[i].function);

		assert_non_null(row);
		assert_string_equal(tw_entry_refusal_text(row->refusal), tw_entry_refusal_text(rows[i].refusal));
	}
}

static void readers_of_their_callers_flags_are_refused(void **state)
{
	static const function_fn readers[] = {flag_in_line,	     flag_behind_jump, flag_on_one_way,
					      flag_behind_condition, flag_in_tail,     flag_in_called},
				 others[] = {flag_in_circle,	     own_flag_behind_jump, own_flag_of_called,
					     own_flag_of_comparison, short_condition,	   calls_first};
	const struct planned *planned = *state;

	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
		if (tw_entry_plan_refusal(row_of(planned, readers[i]), false) != TW_ENTRY_STATUS_FLAGS)
			fail_msg("reader %zu", i);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (tw_entry_plan_refusal(row_of(planned, others[i]), false) == TW_ENTRY_STATUS_FLAGS)
			fail_msg("other %zu", i);
}

static void functions_without_frames_have_rows_if_they_keep_their_return_address(void **state)
{
	static const function_fn keeping[] = {unframed_keeping, unframed_with_frame};
	const struct planned *planned = *state;

	for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++) {
		const struct tw_entry_plan_row *row = row_of(planned, keeping[i]);

		assert_non_null(row);
		assert_int_equal(row->refusal, TW_ENTRY_FRAME);
		assert_true(row->flags & TW_ENTRY_UNWATCHED);
		assert_int_equal(row->name_count, 1);
	}
	assert_null(row_of(planned, unframed_plain));
	assert_true(planned->plan.header->unframed_count >= 1);
}

static void rows_have_names(void **state)
{
	const struct planned *planned = *state;
	const struct tw_entry_plan_row *row = row_of(planned, plain_window);

	assert_int_equal(row->name_count, 1);
	assert_string_equal(tw_entry_plan_name(&planned->plan, row, 0), "plain_window");
	assert_null(tw_entry_plan_name(&planned->plan, row, 1));
}

/* A plan with any change is refused, or stays within its limits. */
static void a_damaged_plan_is_refused(void **state)
{
	const struct planned *planned = *state;
	uint64_t *copy = malloc(planned->count + 8);
	struct tw_entry_plan_header *header = (struct tw_entry_plan_header *)copy;
	struct tw_entry_plan plan;
	uint32_t seed = 7;

	assert_non_null(copy);
	memcpy(copy, planned->bytes, planned->count);
	for (size_t count = 0; count < planned->count; count += count < 256 ? 1 : planned->count / 50)
		assert_int_not_equal(tw_entry_plan_open(copy, count, &plan), 0);
	((uint8_t *)copy)[planned->count - 1] ^= 1;
	assert_int_equal(tw_entry_plan_open(copy, planned->count, &plan), TW_EFORMAT);
	((uint8_t *)copy)[planned->count - 1] ^= 1;
	header->version++;
	assert_int_equal(tw_entry_plan_open(copy, planned->count, &plan), TW_ENOTSUP);
	header->version--;
	/* With a right checksum, so that every other check is reached. */
	for (unsigned i = 0; i < 3000; i++) {
		uint8_t out[TW_ENTRY_SPACE_BYTES], *at, old;

		seed = seed * 1664525u + 1013904223u;
		at = (uint8_t *)copy + (seed >> 8) % (i % 2 ? planned->count : sizeof *header + 4096);
		old = *at;
		*at = (uint8_t)(i % 3 ? *at ^ (1u << (seed >> 5) % 8) : 0xff);
		if (header->bytes == planned->count)
			header->checksum = tw_entry_plan_checksum(header);
		if (tw_entry_plan_open(copy, planned->count, &plan) == 0)
			for (uint32_t k = 0; k < plan.header->row_count; k++) {
				const struct tw_entry_plan_row *row = &plan.rows[k];

				for (unsigned n = 0; tw_entry_plan_name(&plan, row, n); n++)
					assert_true(strlen(tw_entry_plan_name(&plan, row, n)) < planned->count);
				if (!row->refusal)
					assert_true(tw_entry_plan_lay_out(&plan, row, 0x500000, 0x400000, out) <=
						    sizeof out);
			}
		*at = old;
	}
	free(copy);
}

static void a_target_out_of_reach_is_refused(void **state)
{
	struct planned *planned = *state;
	uint8_t out[TW_ENTRY_SPACE_BYTES];
	const struct tw_entry_plan_row *row = row_of(planned, relative_memory);

	assert_int_equal(tw_entry_plan_lay_out(&planned->plan, row, planned->base, planned->base + (UINT64_C(3) << 30),
					       out),
			 0);
}

/* The cache's folder is this one, which is empty. */
static void make_cache(char folder[static sizeof "/tmp/tw-plan-XXXXXX"])
{
	strcpy(folder, "/tmp/tw-plan-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static void remove_cache(const char *folder)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static bool is_cached(const struct tw_elf_file *file)
{
	bool was_cached;
	size_t count;
	void *bytes;

	assert_int_equal(tw_entry_plan_get(file, &bytes, &count, &was_cached), 0);
	free(bytes);
	return was_cached;
}

static void a_plan_is_kept_for_its_file(void **state)
{
	const struct planned *planned = *state;
	char folder[32], path[256], name[TW_ENTRY_PLAN_NAME_BYTES];
	void *bytes;
	size_t count;
	bool was_cached;
	int fd;

	make_cache(folder);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(tw_entry_plan_get(planned->file, &bytes, &count, &was_cached), 0);
		assert_int_equal(was_cached, turn);
		assert_int_equal(count, planned->count);
		assert_memory_equal(bytes, planned->bytes, count);
		free(bytes);
	}
	/* A damaged one is made anew. */
	tw_entry_plan_name_file("", &planned->file->elf, &planned->file->identity, name);
	snprintf(path, sizeof path, "%s/tracewheel/plans/%s.plan", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 300), 1);
	close(fd);
	assert_false(is_cached(planned->file));
	assert_true(is_cached(planned->file));
	/* Nor is one used that others may write, or in a folder where others may put one. */
	assert_int_equal(chmod(path, 0620), 0);
	assert_false(is_cached(planned->file));
	assert_true(is_cached(planned->file));
	snprintf(path, sizeof path, "%s/tracewheel/plans", folder);
	assert_int_equal(chmod(path, 0777), 0);
	assert_false(is_cached(planned->file));
	remove_cache(folder);
}

/* A copy of this executable, with a time of change that has passed for long enough. */
static void make_copy(const char *folder, char path[256])
{
	char command[600];

	snprintf(path, 256, "%s/copy", folder);
	snprintf(command, sizeof command, "cp /proc/%d/exe %s && chmod 755 %s", getpid(), path, path);
	assert_int_equal(system(command), 0);
	usleep(50000);
}

static struct tw_elf_file *open_copy(const char *path)
{
	struct tw_elf_file *file;

	assert_int_equal(tw_elf_file_open(path, &file), 0);
	return file;
}

/* Changes one byte of the file's call frame information, and gives the file the time of its content back. */
static void change_frames(const char *path, const struct tw_elf_file *file)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
					  {file->identity.modified_s, file->identity.modified_ns}};
	off_t at = (off_t)(file->elf.frame_table - file->elf.base) + 40;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	/* The segments before that of the code lie in the file as in memory. */
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	assert_int_equal(byte, ((const uint8_t *)file->elf.frame_table)[40]);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	usleep(50000);
}

static void a_file_that_has_changed_has_another_plan(void **state)
{
	char folder[32], path[256];
	struct tw_elf_file *file, *changed;
	void *bytes;
	size_t count;

	make_cache(folder);
	make_copy(folder, path);
	file = open_copy(path);
	assert_false(is_cached(file));
	assert_true(is_cached(file));
	change_frames(path, file);
	/* The file as it was is not there any more. */
	assert_int_equal(tw_entry_plan_make(file, &bytes, &count), TW_EIO);
	changed = open_copy(path);
	assert_int_equal(changed->identity.bytes, file->identity.bytes);
	assert_int_equal(changed->identity.modified_ns, file->identity.modified_ns);
	assert_false(is_cached(changed));
	assert_true(is_cached(changed));
	tw_elf_file_close(changed);
	tw_elf_file_close(file);
	remove_cache(folder);
}

/* A plan of a file that others may have written is made each time. */
static void a_plan_of_a_strangers_file_is_not_kept(void **state)
{
	static const mode_t modes[] = {0775, 0757, 0755};
	char folder[32], path[256];

	make_cache(folder);
	make_copy(folder, path);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct tw_elf_file *file;
		bool is_mine = !(modes[i] & 022);

		assert_int_equal(chmod(path, modes[i]), 0);
		usleep(50000);
		file = open_copy(path);
		assert_false(is_cached(file));
		assert_int_equal(is_cached(file), is_mine);
		tw_elf_file_close(file);
	}
	if (geteuid() == 0) {
		struct tw_elf_file *file;

		assert_int_equal(chown(path, 65534, 0), 0);
		usleep(50000);
		file = open_copy(path);
		assert_false(is_cached(file));
		assert_false(is_cached(file));
		tw_elf_file_close(file);
	}
	remove_cache(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_do_what_functions_do),
		cmocka_unit_test(what_cannot_be_moved_is_refused),
		cmocka_unit_test(readers_of_their_callers_flags_are_refused),
		cmocka_unit_test(functions_without_frames_have_rows_if_they_keep_their_return_address),
		cmocka_unit_test(rows_have_names),
		cmocka_unit_test(a_damaged_plan_is_refused),
		cmocka_unit_test(a_target_out_of_reach_is_refused),
		cmocka_unit_test(a_plan_is_kept_for_its_file),
		cmocka_unit_test(a_file_that_has_changed_has_another_plan),
		cmocka_unit_test(a_plan_of_a_strangers_file_is_not_kept),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
