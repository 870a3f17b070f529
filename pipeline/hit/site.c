/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - reads the operands of a probe.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/site.h"

#include "base/limits.h"
#include "pipeline/hit/arguments.h"
#include "pipeline/hit/native.h"
#include "pipeline/hit/walk.h"
#include "symbols/entry_plan.h"

#include <string.h>

#define STACK_POINTER  4
#define RED_ZONE_BYTES 128

_Static_assert(TW_ENTRY_OPERANDS_MAX == TW_ARGS_MAX, "an operand for each word");

static uint64_t address_of(const struct tw_bp_entry *entry, const struct tw_entry_plan_operand *operand,
			   const uint64_t registers[16])
{
	uint64_t address = (uint64_t)operand->number;

	if (operand->kind == TW_ENTRY_OPERAND_GLOBAL)
		return entry->base + address;
	if (operand->base < TW_ENTRY_NO_REGISTER)
		address += registers[operand->base];
	if (operand->index < TW_ENTRY_NO_REGISTER)
		address += registers[operand->index] << operand->shift;
	return address;
}

/* Is it certain that the memory is there?  A plan cannot say how far down a frame reaches. */
static bool is_there(const struct tw_entry_plan_operand *operand, uint64_t address, const uint64_t registers[16])
{
	return operand->flags & TW_ENTRY_OPERAND_DIRECT &&
	       (operand->kind == TW_ENTRY_OPERAND_GLOBAL || address >= registers[STACK_POINTER] - RED_ZONE_BYTES);
}

/* At any address, of whatever type. */
typedef uint16_t any16 __attribute__((aligned(1), may_alias));
typedef uint32_t any32 __attribute__((aligned(1), may_alias));
typedef uint64_t any64 __attribute__((aligned(1), may_alias));

static __attribute__((no_sanitize("address"))) uint64_t read_there(uint64_t address, unsigned bytes)
{
	switch (bytes) {
	case 1: return *(const uint8_t *)(uintptr_t)address;
	case 2: return *(const any16 *)(uintptr_t)address;
	case 4: return *(const any32 *)(uintptr_t)address;
	default: return *(const any64 *)(uintptr_t)address;
	}
}

static uint64_t raw_value(const struct tw_bp_entry *entry, const struct tw_entry_plan_operand *operand,
			  const uint64_t registers[16])
{
	uint64_t address;

	switch ((enum tw_entry_operand_kind)operand->kind) {
	case TW_ENTRY_OPERAND_REGISTER:
		return registers[operand->base & 15] >> (operand->flags & TW_ENTRY_OPERAND_HIGH ? 8 : 0);
	case TW_ENTRY_OPERAND_CONSTANT: return (uint64_t)operand->number;
	case TW_ENTRY_OPERAND_MEMORY:
	case TW_ENTRY_OPERAND_GLOBAL:
		address = address_of(entry, operand, registers);
		return is_there(operand, address, registers) ? read_there(address, operand->bytes)
							     : tw_arg_read_number(address, operand->bytes);
	default: return 0;
	}
}

static uint64_t value_of(const struct tw_bp_entry *entry, const struct tw_entry_plan_operand *operand,
			 const uint64_t registers[16])
{
	unsigned shift = operand->bytes ? 64 - 8u * operand->bytes : 0;
	uint64_t raw = raw_value(entry, operand, registers) << shift;

	return operand->flags & TW_ENTRY_OPERAND_SIGNED ? (uint64_t)((int64_t)raw >> shift) : raw >> shift;
}

void tw_site_arguments(const struct tw_bp_entry *entry, const uint64_t registers[16], uint64_t *out)
{
	const struct tw_entry_plan_site *site = tw_entry_plan_site_of(entry->row);
	const struct tw_entry_plan_operand *operands = entry->plan->operands + site->first_operand;

	for (unsigned i = 0; i < TW_ARGS_MAX; i++)
		out[i] = i < site->operand_count ? value_of(entry, &operands[i], registers) : 0;
}

void tw_site_hit(struct tw_place *place, const uint64_t registers[16])
{
	/* As a trampoline passes them; the hit is identified by an address of its own. */
	uint64_t words[TW_WALK_FRAME_WORD + 1];

	tw_site_arguments(place->entry, registers, words);
	for (unsigned i = TW_ARGS_MAX; i < TW_WALK_FRAME_WORD; i++)
		words[i] = 0;
	words[TW_WALK_FRAME_WORD] = registers[5];
	tw_native_hit(place, words, (uint64_t *)(uintptr_t)registers);
}
