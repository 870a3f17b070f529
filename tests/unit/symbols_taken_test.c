/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A slot counts as taken if code refers to it other than by call and jmp, wherever that code lies.
 * Method  One page serves as code, the next as slots; one instruction at every offset in turn.
 */
#include "symbols/symbols.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_BYTES 173 /* no multiple of the bytes examined in one step */
#define SLOTS	   5

static void every_offset_is_seen(void **state)
{
	static const struct {
		unsigned char bytes[3];
		unsigned count;
		bool is_taken;
	} instructions[] = {
		{{0x48, 0x8b, 0x05}, 3, true},	/* mov slot(%rip), %rax */
		{{0x48, 0x3b, 0x0d}, 3, true},	/* cmp slot(%rip), %rcx */
		{{0xff, 0x35}, 2, true},	/* push slot(%rip) */
		{{0xff, 0x15}, 2, false},	/* call *slot(%rip) */
		{{0xff, 0x25}, 2, false},	/* jmp *slot(%rip) */
		{{0x3e, 0xff, 0x25}, 3, false}, /* notrack jmp *slot(%rip) */
	};
	unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t slots = (uintptr_t)code + 4096, wheres[SLOTS];
	struct tw_elf_range range = {(uintptr_t)code, (uintptr_t)code + CODE_BYTES};
	struct tw_elf elf = {.code_count = 1, .code = {range}, .filled_count = 1, .filled = {range}};
	bool taken[SLOTS];

	assert_ptr_not_equal(code, MAP_FAILED);
	for (unsigned i = 0; i < SLOTS; i++)
		wheres[i] = slots + 64 + i * 24;
	for (size_t kind = 0; kind < sizeof instructions / sizeof *instructions; kind++) {
		for (unsigned at = 0; at + instructions[kind].count + 4 <= CODE_BYTES; at++) {
			unsigned char *displacement = code + at + instructions[kind].count;
			int32_t value = (int32_t)(wheres[at % SLOTS] - ((uintptr_t)displacement + 4));

			memset(code, 0x90, CODE_BYTES);
			memcpy(code + at, instructions[kind].bytes, instructions[kind].count);
			memcpy(displacement, &value, sizeof value);
			assert_int_equal(tw_sym_address_taken(&elf, wheres, SLOTS, taken), 0);
			for (unsigned i = 0; i < SLOTS; i++)
				assert_int_equal(taken[i], instructions[kind].is_taken && i == at % SLOTS);
		}
	}
	assert_int_equal(tw_sym_address_taken(&elf, NULL, 0, NULL), 0);
	munmap(code, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_offset_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
