/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The ends of a function's calls are watched but where its return address may not be another: it reads it, or code that
 *         V8 has made may call it.
 * Method  This program has a name of V8's, and functions in assembly whose addresses are used in each way; its plan is made and looked at.
 */
#include "plan/plan.h"
#include "symbols/entry_plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>

#define FUNCTION(name, body)                                                                           \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", .-" #name "\n.p2align 4\n.popsection")

#define BODY "lea 3(%rdi), %rax\nlea 5(%rax), %rax\nret"
FUNCTION(_ZN2v84usedEv, BODY);
FUNCTION(_ZN2v86loadedEv, BODY);
FUNCTION(_ZN2v87virtualEv, BODY);
FUNCTION(_ZN2v86unusedEv, BODY);
FUNCTION(_ZN2v86calledEv, BODY);
FUNCTION(used_of_c, BODY);
FUNCTION(reads_return, "mov (%rsp), %rax\nlea 5(%rax), %rax\nret");
FUNCTION(barrier, "lock orq $0, (%rsp)\nlea 5(%rax), %rax\nret");
FUNCTION(barrier_that_is_none, "lock orq $1, (%rsp)\nlea 5(%rax), %rax\nret");
FUNCTION(uses_them, "lea _ZN2v86loadedEv(%rip), %rax\ncall _ZN2v86calledEv\nret");
__asm__(".pushsection .data.rel, \"aw\"\n.p2align 3\n.quad _ZN2v84usedEv, used_of_c, _ZN2v86calledEv\n"
	".type _ZTV4some, @object\n.globl _ZTV4some\n_ZTV4some: .quad 0, 0, _ZN2v87virtualEv\n.size _ZTV4some, .-_ZTV4some\n"
	".popsection");

/* Distances: an address here would be a use. */
__asm__(".pushsection .rodata\n.p2align 2\n.globl ends_distances\nends_distances:\n"
	".long _ZN2v84usedEv - ends_distances, _ZN2v86loadedEv - ends_distances, _ZN2v87virtualEv - ends_distances\n"
	".long _ZN2v86unusedEv - ends_distances, _ZN2v86calledEv - ends_distances, used_of_c - ends_distances\n"
	".long reads_return - ends_distances, barrier - ends_distances, barrier_that_is_none - ends_distances\n"
	".popsection");
extern const int32_t ends_distances[];

static const struct {
	const char *name;
	bool is_watched;
} kinds[] = {
	{"in a table of data", false},
	{"loaded by code", false},
	{"in a table of virtual functions only", true},
	{"not used as a value", true},
	{"called directly", true},
	{"of C", true},
	{"reads its return address", false},
	{"a barrier of memory", true},
	{"changes its return address", false},
};

static void ends_are_watched_where_they_may_be(void **state)
{
	const uint8_t *here = (const uint8_t *)ends_distances;
	struct tw_entry_plan plan;
	struct tw_elf_file *file;
	uintptr_t base;
	void *bytes;
	size_t count;
	Dl_info info;

	assert_int_not_equal(dladdr(here, &info), 0);
	assert_int_equal(tw_elf_file_open("/proc/self/exe", &file), 0);
	base = file->header.e_type == ET_EXEC ? 0 : (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_entry_plan_make(file, &bytes, &count), 0);
	assert_int_equal(tw_entry_plan_open(bytes, count, &plan), 0);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct tw_entry_plan_row *row =
			tw_entry_plan_find(&plan, (uintptr_t)here + (uintptr_t)(intptr_t)ends_distances[i] - base);

		if (!row || !(row->flags & TW_ENTRY_UNWATCHED) != kinds[i].is_watched)
			fail_msg("a function that is %s: %s", kinds[i].name, row ? "flags" : "no row");
	}
	tw_elf_file_close(file);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_watched_where_they_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
