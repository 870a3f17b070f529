/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_taken.c - does code read a data slot as a value?
 *
 * Code without a PLT calls by `call *slot(%rip)` (ff 15 disp32) or `jmp *slot(%rip)` (ff 25 disp32).
 * Anything else that refers to the slot (mov, cmp, push) uses the function's address as a value:
 * after arming it would see a stub and no longer compare equal to the same function elsewhere.
 *
 * One pass over all bytes, each taken as the start of a 32-bit displacement.  Few displacements point between the
 * first and the last slot, and only those are examined.  A displacement followed by an immediate (cmpq $0,
 * slot(%rip)) is ignored: it only tests whether the function exists.  Bytes that are not an instruction can only add
 * a wrong "taken", which costs a trace point but does not break a program.
 */
#include "symbols/symbols.h"

#include "base/assert.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

struct search {
	uintptr_t low;	      /* the first slot */
	uint32_t bytes;	      /* length up to the end of the last one */
	const int32_t *index; /* by (address - low) / 8: number of the slot, or -1 */
	bool *taken;
};

static bool is_call_or_jump(const unsigned char *displacement)
{
	return displacement[-2] == 0xff && (displacement[-1] == 0x15 || displacement[-1] == 0x25);
}

static void check_reference(const struct search *search, const unsigned char *at, uint32_t offset)
{
	int32_t index;

	if (offset % sizeof(void *))
		return;
	index = search->index[offset / sizeof(void *)];
	if (index >= 0 && !is_call_or_jump(at))
		search->taken[index] = true;
}

/* Modulo 2^32 is enough: objects and displacements are smaller than 2 GiB. */
static void scan_bytes(const struct search *search, const unsigned char *at, const unsigned char *end)
{
	uint32_t lead = (uint32_t)((uintptr_t)at + 4 - search->low);

	for (; at < end; at++, lead++) {
		uint32_t displacement;

		memcpy(&displacement, at, sizeof displacement);
		if (displacement + lead < search->bytes)
			check_reference(search, at, displacement + lead);
	}
}

/* Four displacements at a time, at four offsets: sixteen places for a dozen instructions. */
typedef uint32_t words __attribute__((vector_size(16)));

static bool has_any(words mask)
{
	uint64_t halves[2];

	memcpy(halves, &mask, sizeof halves);
	return halves[0] | halves[1];
}

static void scan(const struct search *search, uintptr_t low, uintptr_t high)
{
	const unsigned char *at = (const unsigned char *)low, *end = (const unsigned char *)high - 3;
	uint32_t lead = (uint32_t)(low + 4 - search->low);
	words leads = {lead, lead + 4, lead + 8, lead + 12};
	const words limit = {search->bytes, search->bytes, search->bytes, search->bytes};

	for (; end - at >= 19; at += 16, leads += 16) {
		words found = {0};

		for (uint32_t offset = 0; offset < 4; offset++) {
			words displacements;

			memcpy(&displacements, at + offset, sizeof displacements);
			found |= (words)(displacements + leads + offset < limit);
		}
		if (has_any(found))
			scan_bytes(search, at, at + 16);
	}
	scan_bytes(search, at, end);
}

int tw_sym_address_taken(const struct tw_elf *elf, const uintptr_t *wheres, size_t count, bool *taken)
{
	struct search search = {.taken = taken};
	size_t words;
	int32_t *index;

	if (!count)
		return 0;
	memset(taken, 0, count * sizeof *taken);
	search.low = wheres[0];
	words = (wheres[count - 1] - wheres[0]) / sizeof(void *) + 1;
	if (words > UINT32_MAX / sizeof(void *) || count > INT32_MAX)
		return TW_ENOMEM;
	search.bytes = (uint32_t)(words * sizeof(void *));
	index = malloc(words * sizeof *index);
	if (!index)
		return TW_ENOMEM;
	memset(index, 0xff, words * sizeof *index);
	for (size_t i = 0; i < count; i++) {
		/* They ascend, so that the table has room for all. */
		TW_ASSERT(wheres[i] >= search.low && wheres[i] <= wheres[count - 1]);
		index[(wheres[i] - search.low) / sizeof(void *)] = (int32_t)i;
	}
	search.index = index;
	for (unsigned i = 0; i < elf->code_count; i++) {
		struct tw_elf_range code = tw_elf_filled_code(elf, i);

		if (code.high - code.low > 8)
			scan(&search, code.low + 2, code.high);
	}
	free(index);
	return 0;
}
