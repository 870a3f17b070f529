/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taken.c - does code read a data slot as a value?
 *
 * Code without a PLT calls by `call *slot(%rip)` (ff 15 disp32) or `jmp *slot(%rip)` (ff 25 disp32).
 * Anything else that refers to the slot (mov, cmp, push) uses the function's address as a value:
 * after arming it would see a stub and no longer compare equal to the same function elsewhere.
 *
 * One pass: at every byte, taken as a 32-bit displacement, where would it lead?  Few of them lead
 * between the first and the last slot, and only those are looked at.  A displacement with an
 * immediate behind it (cmpq $0, slot(%rip)) does not count: it can only ask whether the function is there.
 * Bytes that are no instruction can only add a wrong "taken", which costs a trace point and not a program.
 */
#include "symbols/symbols.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

struct search {
	uintptr_t low;        /* the first slot */
	uint32_t bytes;       /* to behind the last one */
	const int32_t *index; /* by (address - low) / 8: which slot, or -1 */
	bool *taken;
};

static bool is_call_or_jump(const unsigned char *displacement)
{
	return displacement[-2] == 0xff && (displacement[-1] == 0x15 || displacement[-1] == 0x25);
}

static void look(const struct search *search, const unsigned char *at, uint32_t offset)
{
	int32_t index;

	if (offset % sizeof(void *))
		return;
	index = search->index[offset / sizeof(void *)];
	if (index >= 0 && !is_call_or_jump(at))
		search->taken[index] = true;
}

static void scan(const struct search *search, uintptr_t low, uintptr_t high)
{
	/* Modulo 2^32 is enough: an object is smaller than 2 GiB, as its displacements are. */
	uint32_t lead = (uint32_t)(low + 4 - search->low);

	for (const unsigned char *at = (const unsigned char *)low; at + 4 <= (const unsigned char *)high;
	     at++) {
		uint32_t displacement;

		memcpy(&displacement, at, sizeof displacement);
		if (displacement + lead < search->bytes)
			look(search, at, displacement + lead);
		lead++;
	}
}

int tw_sym_taken(const struct tw_elf *elf, const uintptr_t *wheres, size_t count, bool *taken)
{
	struct search search = {.taken = taken};
	size_t words;
	int32_t *index;

	memset(taken, 0, count * sizeof *taken);
	if (!count)
		return 0;
	search.low = wheres[0];
	words = (wheres[count - 1] - wheres[0]) / sizeof(void *) + 1;
	if (words > UINT32_MAX / sizeof(void *) || count > INT32_MAX)
		return TW_ENOMEM;
	search.bytes = (uint32_t)(words * sizeof(void *));
	index = malloc(words * sizeof *index);
	if (!index)
		return TW_ENOMEM;
	memset(index, 0xff, words * sizeof *index);
	for (size_t i = 0; i < count; i++)
		index[(wheres[i] - search.low) / sizeof(void *)] = (int32_t)i;
	search.index = index;
	for (unsigned i = 0; i < elf->code_count; i++)
		if (elf->code[i].high - elf->code[i].low > 8)
			scan(&search, elf->code[i].low + 2, elf->code[i].high);
	free(index);
	return 0;
}
