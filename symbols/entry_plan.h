/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_plan.h - which functions of an object can be entered through a jump that is written over their first
 * instructions, and the code that runs in place of those.
 *
 *	function	| endbr64 | window: whole instructions, at least 5 bytes | rest
 *	copy		| the window's instructions, re-based | jmp rest | literal |
 *
 * plan/ makes the plan of a file, with a decoder; this file describes its form and checks one, so that the traced
 * program needs no decoder.  A plan belongs to one file: it was made from its code, call frame information, relocations and names, and is used for
 * a file only if that has the same build-id and the same identity (base/file.h), which any change of its bytes changes.  It is not trusted:
 * every offset is checked when it is opened, and the bytes of each window are compared with memory before anything is written.
 *
 *	header | rows, by value | names: offsets of strings | fixes | sites, by value | operands | code | strings
 *
 * A *site* is the NOP of a probe that the program brings itself (plan/notes.h), which lies anywhere in a function.  Its row has a window that
 * begins with the NOP.  No two windows of a plan overlap, but for a site and the entry of its function (TW_ENTRY_SHARES).
 *
 * Threads  any; a plan does not change while it is open.
 * Units    values are those of the object's file; offsets are from the start of the plan, in bytes; all numbers are
 *	    little-endian.
 */
#ifndef TW_SYMBOLS_ENTRY_PLAN_H
#define TW_SYMBOLS_ENTRY_PLAN_H

#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_ENTRY_PLAN_MAGIC   "tw-plan\n"
#define TW_ENTRY_PLAN_VERSION 16

/* Why the entry of a function cannot take a jump.  Numbers are part of the form. */
enum tw_entry_refusal {
	TW_ENTRY_OK,
	TW_ENTRY_NEVER,		  /* on the list of functions that no hook may see */
	TW_ENTRY_NO_CALLER,	  /* it begins without a return address */
	TW_ENTRY_SIGNAL,	  /* signal handlers return to it */
	TW_ENTRY_TARGET_INSIDE,	  /* a jump leads into the window */
	TW_ENTRY_LOOP_HEAD,	  /* a jump of the function leads back to its first instruction */
	TW_ENTRY_SHORT,		  /* less than five bytes, and no padding behind them */
	TW_ENTRY_UNDECODED,	  /* the decoder does not know an instruction of the window */
	TW_ENTRY_INDIRECT_CALL,	  /* the window contains a call through a register or memory */
	TW_ENTRY_LOOP_INSN,	  /* the window contains an instruction whose short distance cannot be re-based */
	TW_ENTRY_FRAME,		  /* the window's call frame information cannot be carried over to the copy */
	TW_ENTRY_TEXT_RELOCATION, /* ld.so writes into the window */
	TW_ENTRY_UNCERTAIN,	  /* no row has it: what TW_ENTRY_UNKNOWN_JUMP is to those who want to be careful */
	TW_ENTRY_STATUS_FLAGS,	  /* no row has it: what TW_ENTRY_READS_FLAGS is */
	TW_ENTRY_NO_NOP,	  /* a site: there is no NOP */
	TW_ENTRY_NO_FUNCTION,	  /* a site: no description of call frames has it */
	TW_ENTRY_UNKNOWN_TARGETS, /* a site: an indirect jump of its function might lead into the window */
	TW_ENTRY_SHARED,	  /* a site: the window is also that of another site */
	TW_ENTRY_REFUSALS
};

/* A sentence without a full stop; a constant. */
const char *tw_entry_refusal_text(enum tw_entry_refusal refusal);

struct tw_entry_plan_header {
	uint8_t magic[8];
	uint32_t version;
	uint32_t type;	   /* e_type of the file */
	uint64_t bytes;	   /* of the whole plan */
	uint64_t checksum; /* tw_checksum64() of the whole plan with this field 0 */
	uint8_t build_id[32];
	uint32_t build_id_bytes; /* not 0 */
	uint32_t row_count;
	uint32_t rows;	     /* offset of struct tw_entry_plan_row */
	uint32_t name_count; /* of all functions */
	uint32_t names;	     /* offset of uint32_t: an offset in strings */
	uint32_t fix_count;
	uint32_t fixes; /* offset of struct tw_entry_plan_fix */
	uint32_t code;	/* offset */
	uint32_t code_bytes;
	uint32_t strings;	 /* offset; the last byte is 0 */
	uint32_t string_bytes;	 /* not 0 */
	uint32_t part_count;	 /* parts of functions and stubs that have no row */
	uint32_t unframed_count; /* named functions without call frame information: no row, but for unwatched ones */
	uint32_t site_count;
	uint32_t sites; /* offset of struct tw_entry_plan_site */
	uint32_t operand_count;
	uint32_t operands; /* offset of struct tw_entry_plan_operand */
	uint32_t reserved;
	uint64_t image_bytes;		    /* from the first to the last byte of all segments */
	struct tw_file_identity file;	    /* from which it was made */
	struct tw_file_identity debug_file; /* the separate one that there was; zeros: none */
};

enum {
	/* The copy ends in a jump of its own: nothing leads back to the function. */
	TW_ENTRY_ENDS = 1,
	/* An instruction of the window reads or writes memory that is not the stack: it may fault. */
	TW_ENTRY_ACCESSES = 2,
	/* The function contains an indirect jump whose targets are not known: one might lead into the window. */
	TW_ENTRY_UNKNOWN_JUMP = 4,
	/* The window ends in a call; its return address is pushed by hand, which a shadow stack would notice. */
	TW_ENTRY_CALL = 8,
	/* Its returns are not watched: it returns twice or never, or looks at the frame to which it returns. */
	TW_ENTRY_UNWATCHED = 16,
	/* It reads status flags that it has not set: its caller passes them.  The copy is right, but a recorded call changes them. */
	TW_ENTRY_READS_FLAGS = 32,
	/* The row is that of a site: all registers, flags and 128 bytes below the stack pointer are in use there. */
	TW_ENTRY_SITE = 64,
	/* A site's window has bytes of a function's: one of them can be planted at a time. */
	TW_ENTRY_SHARES = 128
};

/*
 * One function.  Its code: `window_bytes` of the window as they are in the file; `copy_bytes` of the copy; `map_count` pairs
 * {offset in the window, offset in the copy}, one for each instruction; `frame_bytes` of DWARF call frame instructions
 * that follow DW_CFA_def_cfa %rsp+8 and DW_CFA_offset of the return address, with factors 1 and -8, for the copy.
 */
struct tw_entry_plan_row {
	uint32_t value;
	uint32_t function_bytes;
	uint32_t first_name; /* index; names of one function are adjacent */
	uint32_t first_fix;  /* index */
	uint32_t code;	     /* offset from the code's start */
	uint16_t name_count; /* 0: nameless */
	uint8_t refusal;     /* enum tw_entry_refusal; without a copy if it is not TW_ENTRY_OK */
	uint8_t flags;
	uint8_t window_offset; /* from value: 4 behind an endbr64, or 0 */
	uint8_t window_bytes;
	uint8_t copy_bytes;
	uint8_t fix_count;
	uint8_t map_count;
	uint8_t frame_bytes;
	uint8_t reserved[2];
};

/* Four bytes of the copy that depend on its location. */
struct tw_entry_plan_fix {
	uint32_t target;  /* a value */
	uint8_t position; /* in the copy */
	uint8_t tail;	  /* bytes from the position to the end of its instruction */
	/* 1: the displacement of a literal, 8 bytes at the end of the copy that hold the target's address. */
	uint8_t is_literal;
	uint8_t reserved;
};

/* The place of a probe's argument while its NOP runs. */
enum tw_entry_operand_kind {
	TW_ENTRY_OPERAND_UNKNOWN,  /* not understood, or in a vector register */
	TW_ENTRY_OPERAND_REGISTER, /* `base` */
	TW_ENTRY_OPERAND_CONSTANT, /* `number` */
	TW_ENTRY_OPERAND_MEMORY,   /* at base + (index << shift) + number */
	TW_ENTRY_OPERAND_GLOBAL,   /* at the value `number` of the object */
	TW_ENTRY_OPERAND_KINDS
};

/* Flags of an operand. */
enum {
	TW_ENTRY_OPERAND_SIGNED = 1,
	TW_ENTRY_OPERAND_HIGH = 2,  /* %ah, %ch, %dh, %bh */
	TW_ENTRY_OPERAND_DIRECT = 4 /* memory of the function's own frame, or data that the object has: it is there */
};

#define TW_ENTRY_NO_REGISTER 16

struct tw_entry_plan_operand {
	int64_t number;
	uint8_t kind;
	uint8_t bytes; /* 1, 2, 4, 8; 0 if it is unknown */
	uint8_t flags;
	/* Numbers of registers as in instructions: rax 0, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...; TW_ENTRY_NO_REGISTER. */
	uint8_t base, index;
	uint8_t shift; /* 0 to 3 */
	uint8_t reserved[2];
};

/* A probe; the row's one name is PROVIDER:NAME. */
struct tw_entry_plan_site {
	struct tw_entry_plan_row row;
	uint64_t semaphore;	/* a value; 0: none */
	uint32_t arguments;	/* the note's text: an offset in strings */
	uint32_t first_operand; /* index */
	uint8_t operand_count;	/* at most TW_ENTRY_OPERANDS_MAX */
	uint8_t argument_count; /* of the note */
	uint8_t reserved[6];
};

_Static_assert(sizeof(struct tw_entry_plan_header) == 240, "part of the form");
_Static_assert(sizeof(struct tw_entry_plan_row) == 32 && sizeof(struct tw_entry_plan_fix) == 8, "part of the form");
_Static_assert(sizeof(struct tw_entry_plan_operand) == 16 && sizeof(struct tw_entry_plan_site) == 56,
	       "part of the form");

/* Limits of what a plan may ask for. */
#define TW_ENTRY_WINDOW_BYTES_MIN 5u
#define TW_ENTRY_WINDOW_BYTES_MAX 20u
#define TW_ENTRY_COPY_BYTES_MAX	  64u
#define TW_ENTRY_FIXES_MAX	  8u
#define TW_ENTRY_FRAME_BYTES_MAX  64u
/* As many as an event has argument words. */
#define TW_ENTRY_OPERANDS_MAX 6u
/* The copy as laid out at run time: copy, jmp back, literal at the next multiple of 8. */
#define TW_ENTRY_SPACE_BYTES 80u

struct tw_elf;

struct tw_entry_plan {
	const struct tw_entry_plan_header *header;
	const struct tw_entry_plan_row *rows;
	const uint32_t *names;
	const struct tw_entry_plan_fix *fixes;
	const struct tw_entry_plan_site *sites;
	const struct tw_entry_plan_operand *operands;
	const uint8_t *code;
	const char *strings;
};

/*
 * tw_entry_plan_open - check a plan in memory.
 *
 * @bytes	borrows until the last use of @out; aligned to 8.
 *
 * Errors: TW_EFORMAT (damaged, or no plan), TW_ENOTSUP (of another version).
 */
int tw_entry_plan_open(const void *bytes, size_t count, struct tw_entry_plan *out);

/* The checksum that a plan's header must have. */
uint64_t tw_entry_plan_checksum(const struct tw_entry_plan_header *header);

/*
 * Is it the plan of this object, whose file has this identity (NULL: any)?
 *
 * @elf		in memory: loaded by ld.so, or laid out from a file.
 */
bool tw_entry_plan_is_of(const struct tw_entry_plan *plan, const struct tw_elf *elf,
			 const struct tw_file_identity *identity);

/* The name of a file that keeps the plan, without a folder: BEFORE, the build-id, and a number that depends on the identity.  Terminated. */
#define TW_ENTRY_PLAN_NAME_BYTES 96
void tw_entry_plan_name_file(const char *before, const struct tw_elf *elf, const struct tw_file_identity *identity,
			     char out[TW_ENTRY_PLAN_NAME_BYTES]);

/* The row of the function at a value; NULL: none. */
const struct tw_entry_plan_row *tw_entry_plan_find(const struct tw_entry_plan *plan, uint64_t value);

/* Do the windows of all functions leave these bytes free? */
bool tw_entry_plan_is_free(const struct tw_entry_plan *plan, uint64_t value, uint64_t end);

/* The site that a row with TW_ENTRY_SITE belongs to. */
static inline const struct tw_entry_plan_site *tw_entry_plan_site_of(const struct tw_entry_plan_row *row)
{
	return (const struct tw_entry_plan_site *)(const void *)row;
}

/* The row's refusal, also of functions that read flags of their caller; with @is_careful also of functions with an indirect jump whose targets are not known. */
enum tw_entry_refusal tw_entry_plan_refusal(const struct tw_entry_plan_row *row, bool is_careful);

/* The n-th name of a row; NULL past the last. */
const char *tw_entry_plan_name(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row, unsigned n);

static inline const uint8_t *tw_entry_plan_window(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	return plan->code + row->code;
}

static inline const uint8_t *tw_entry_plan_copy(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	return tw_entry_plan_window(plan, row) + row->window_bytes;
}

static inline const uint8_t *tw_entry_plan_map(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	return tw_entry_plan_copy(plan, row) + row->copy_bytes;
}

static inline const uint8_t *tw_entry_plan_frame(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	return tw_entry_plan_map(plan, row) + 2u * row->map_count;
}

/*
 * tw_entry_plan_lay_out - the bytes of a row's copy for one location.
 *
 * @base	of the object: address = base + value.
 * @at		the address where the copy will run.
 * @out		TW_ENTRY_SPACE_BYTES.
 *
 * Returns the number of bytes, or 0 if a target is out of reach of a 32-bit displacement.
 */
unsigned tw_entry_plan_lay_out(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row, uintptr_t base,
			       uintptr_t at, uint8_t *out);

#endif
