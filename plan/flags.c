/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c - follows the first instructions of a function until each way has set all status flags. */
#include "plan/flags.h"

#define STATUS_FLAGS                                                                                    \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | \
	 ZYDIS_CPUFLAG_OF)

/* Compilers' functions set all flags, or end, within far fewer. */
#define INSTRUCTIONS_MAX 200
#define WAYS_MAX	 16

/* A place from which the code goes on, and the flags that were set before. */
struct way {
	uint64_t value;
	uint32_t set;
};

struct ways {
	const struct tw_scan *scan;
	struct way ways[WAYS_MAX];
	unsigned count;
	unsigned left; /* instructions */
};

static void add_way(struct ways *ways, uint64_t value, uint32_t set)
{
	if (ways->count < WAYS_MAX && set != STATUS_FLAGS)
		ways->ways[ways->count++] = (struct way){value, set};
}

/* The flags that decide when a repeated comparison ends are its own. */
static bool is_repeated_comparison(const ZydisDecodedInstruction *instruction)
{
	return instruction->meta.category == ZYDIS_CATEGORY_STRINGOP &&
	       instruction->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* The address at which the code goes on; false: not behind this instruction. */
static bool follow(struct ways *ways, const ZydisDecodedInstruction *instruction, uint64_t behind, uint32_t set)
{
	bool is_direct = instruction->raw.imm[0].is_relative;

	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
		if (is_direct)
			add_way(ways, behind + (uint64_t)instruction->raw.imm[0].value.s, set);
		/* A function that was called has used the flags for itself. */
		return instruction->meta.category == ZYDIS_CATEGORY_COND_BR;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL: return false;
	default: return true;
	}
}

/* Goes one way until all flags are set; true: one was read before. */
static bool reads(struct ways *ways, struct way way)
{
	const struct tw_scan *scan = ways->scan;
	ZydisDecodedInstruction instruction;
	uint64_t left;

	while (way.set != STATUS_FLAGS && ways->left) {
		const uint8_t *bytes = tw_scan_bytes(scan, way.value, &left);
		const ZydisAccessedFlags *flags;

		ways->left--;
		if (!bytes || !tw_elf_is_code(scan->elf, scan->elf->base + way.value) ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&scan->decoder, NULL, bytes, left, &instruction)))
			return false;
		flags = instruction.cpu_flags;
		if (flags && flags->tested & STATUS_FLAGS & ~way.set && !is_repeated_comparison(&instruction))
			return true;
		if (flags)
			way.set |= (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) & STATUS_FLAGS;
		way.value += instruction.length;
		if (!follow(ways, &instruction, way.value, way.set))
			return false;
	}
	return false;
}

bool tw_flags_are_passed(const struct tw_scan *scan, uint64_t value)
{
	struct ways ways = {.scan = scan, .ways = {{value, 0}}, .count = 1, .left = INSTRUCTIONS_MAX};

	while (ways.count)
		if (reads(&ways, ways.ways[--ways.count]))
			return true;
	return false;
}
