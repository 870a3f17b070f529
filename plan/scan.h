/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what the code and data of an object tell about its addresses: which are targets of jumps, which are called.
 *
 * Every description of call frames is decoded once.  Facts err towards "target": bytes that look like an entry of a jump
 * table count as one.
 *
 * Threads  one scan belongs to one thread.
 * Units    values are those of the file.
 */
#ifndef TW_PLAN_SCAN_H
#define TW_PLAN_SCAN_H

#include "symbols/entries.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

/* Facts about one byte of the image. */
enum {
	TW_SCAN_JUMPED = 1,	  /* a direct jump leads here */
	TW_SCAN_CALLED = 2,	  /* a direct call leads here */
	TW_SCAN_TAKEN = 4,	  /* its address is used as a value, or a symbol names it */
	TW_SCAN_LANDING = 8,	  /* exceptions continue here */
	TW_SCAN_TABLE = 16,	  /* an entry of a jump table leads here */
	TW_SCAN_INSTRUCTION = 32, /* an instruction begins here */
	TW_SCAN_LOOPED = 64,	  /* a direct jump of the same function leads here */
	TW_SCAN_RELOCATED = 128,  /* ld.so writes this byte of code */
	/* All by which code may be reached other than from the instruction before. */
	TW_SCAN_TARGET = TW_SCAN_JUMPED | TW_SCAN_CALLED | TW_SCAN_TAKEN | TW_SCAN_LANDING | TW_SCAN_TABLE
};

struct tw_scan {
	const struct tw_elf *elf;
	const struct tw_sym_entries *entries;
	ZydisDecoder decoder;
	uint8_t *facts; /* by value - low */
	uint64_t low, bytes;
	uint64_t filled_bytes; /* that the file has */
	uint64_t landing_count;
	bool is_fixed;	      /* ET_EXEC: immediate operands may be addresses */
	bool notes_values;    /* TW_SCAN_ENTRY_VALUE is set, and jumps between entries are kept */
	bool notes_groups;    /* groups are found */
	uint8_t *entry_facts; /* by entry: TW_SCAN_ENTRY_* */
	struct tw_scan_jump {
		uint32_t from, to; /* entries: a jump of one leads to the first byte of the other */
	} * jumps;
	size_t jump_count, jump_capacity;
	/*
	 * By entry: another one of its group, or itself.  Those of a group may be parts of one function: a jump of one leads into the other, or
	 * to one that has no name.  NULL without notes_groups.
	 */
	uint32_t *groups;
	bool has_no_memory;
};

enum {
	TW_SCAN_ENTRY_INDIRECT = 1,	 /* it contains an indirect jump that is not through a slot */
	TW_SCAN_ENTRY_UNKNOWN_TABLE = 2, /* and no jump table of it was found */
	TW_SCAN_ENTRY_FAR_CONDITION = 4, /* a conditional jump of another entry leads to its first byte */
	TW_SCAN_ENTRY_READS_RETURN = 8,	 /* it reads or writes its return address, other than by returning */
	TW_SCAN_ENTRY_READS_FLAGS = 16,	 /* it reads status flags that it has not set */
	TW_SCAN_ENTRY_VALUE = 32, /* its address is used as a value, other than in a table of virtual functions */
	TW_SCAN_ENTRY_MADE = 64	  /* for plan.c: code that the program makes calls it */
};

/* The caller's knowledge and needs: as in the structure. */
struct tw_scan_options {
	bool is_fixed, notes_values, notes_groups;
};

/* Errors: TW_ENOMEM.  tw_scan_fini() in any case. */
int tw_scan_init(struct tw_scan *scan, const struct tw_elf *elf, const struct tw_sym_entries *entries,
		 const struct tw_scan_options *options);
void tw_scan_fini(struct tw_scan *scan);

/* The facts about a byte; 0 outside the image. */
static inline uint8_t tw_scan_facts(const struct tw_scan *scan, uint64_t value)
{
	return value - scan->low < scan->bytes ? scan->facts[value - scan->low] : 0;
}

/* The bytes of the image at a value, and how many follow; NULL: outside. */
const uint8_t *tw_scan_bytes(const struct tw_scan *scan, uint64_t value, uint64_t *left);

/* The index of the entry whose code holds a value; the number of entries: none. */
size_t tw_scan_entry_at(const struct tw_scan *scan, uint64_t value);

/* The same number for all entries of a group.  With notes_groups. */
size_t tw_scan_group(const struct tw_scan *scan, size_t entry);

/* Decodes the instruction at a value of an entry that ends at @end; false: the decoder does not know it. */
bool tw_scan_decode(const struct tw_scan *scan, uint64_t value, uint64_t end, ZydisDecodedInstruction *out);

/* A jump through a register or memory, other than through a slot. */
bool tw_scan_is_indirect_jump(const ZydisDecodedInstruction *instruction);

/* The memory operand disp32(,%reg,8). */
bool tw_scan_is_scaled_absolute(const ZydisDecodedInstruction *instruction);

/* Bytes of padding (NOPs, int3, zeros) from a value on, less than `most` + one instruction. */
unsigned tw_scan_padding(const struct tw_scan *scan, uint64_t value, uint64_t end, unsigned most);

/*
 * Does an instruction use the return address other than by returning?  The caller's frame, which ends with it, is `above` bytes
 * above what the register holds: its canonical frame address.
 */
bool tw_scan_uses_return_address(uint64_t dwarf_register, uint64_t above, const ZydisDecodedInstruction *instruction);

/* Is the memory operand of an instruction relative to the next instruction's address? */
static inline bool tw_scan_is_relative_memory(const ZydisDecodedInstruction *instruction)
{
	return instruction->attributes & ZYDIS_ATTRIB_HAS_MODRM && !instruction->raw.modrm.mod &&
	       instruction->raw.modrm.rm == 5;
}

#endif
