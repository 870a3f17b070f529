/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - the call frame information of an object: the functions that its .eh_frame describes.
 *
 * The sorted table of PT_GNU_EH_FRAME leads to one description (FDE) a stretch of code.  Sections and symbols are not
 * needed, so stripped objects have it as well.  Nothing in the image is trusted: a description that is damaged is left out
 * and counted.
 *
 * Threads  any; the result belongs to one thread.
 * Units    values are those of the file (address - base).
 * Source   LSB 5.0 Core, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, 6.4.
 */
#ifndef TW_SYMBOLS_FRAMES_H
#define TW_SYMBOLS_FRAMES_H

#include "symbols/elf.h"

/* One description.  Pointers are into the image. */
struct tw_elf_frame {
	uint64_t value;
	uint64_t bytes;
	uint64_t exceptions;		    /* the value of its table of landing pads (LSDA); 0: none */
	const uint8_t *common, *common_end; /* the instructions of its CIE */
	const uint8_t *own, *own_end;	    /* its own instructions */
	uint64_t code_factor;
	int64_t data_factor;
	bool is_signal; /* the frame of a signal handler's caller: augmentation S */
};

struct tw_elf_frames {
	struct tw_elf_frame *entries; /* by value */
	size_t count;
	size_t damaged_count;
};

/*
 * tw_elf_frames_read - the descriptions of an object.
 *
 * @out		gives; tw_elf_frames_fini() takes, in any case.
 *
 * Errors: TW_ENOENT (the object has no sorted table), TW_EFORMAT (the table is damaged), TW_ENOMEM.
 */
int tw_elf_frames_read(const struct tw_elf *elf, struct tw_elf_frames *out);
void tw_elf_frames_fini(struct tw_elf_frames *frames);

/* The description of the code at a value; NULL: none. */
const struct tw_elf_frame *tw_elf_frame_at(const struct tw_elf_frames *frames, uint64_t value);

/* The state at the first byte of a description's code, as far as it tells functions from other code. */
struct tw_elf_frame_start {
	bool is_known;	    /* all instructions before the first byte were understood */
	bool is_called;	    /* the frame is %rsp + 8, as after a call, and no register was saved */
	bool has_no_caller; /* the return address is undefined: _start, clone */
};

struct tw_elf_frame_start tw_elf_frame_start(const struct tw_elf_frame *frame);

/* Numbers of registers, as DWARF has them; the last is the return address. */
enum { TW_ELF_RBP = 6, TW_ELF_RSP = 7, TW_ELF_RETURN = 16 };

/* How the canonical frame address (CFA) of a row is found. */
enum tw_elf_cfa {
	TW_ELF_CFA_UNKNOWN,  /* by an expression that is none of these */
	TW_ELF_CFA_REGISTER, /* register + offset */
	TW_ELF_CFA_MEMORY,   /* the word at register + offset, + add */
	TW_ELF_CFA_PLT /* register + offset, + 8 if the low four bits of the address are at least add: stubs of a PLT */
};

/* How the caller's value of a register is found. */
enum tw_elf_saved {
	TW_ELF_SAVED_UNKNOWN,
	TW_ELF_SAVED_SAME, /* the register still has it */
	TW_ELF_SAVED_CFA,  /* at CFA + offset */
	TW_ELF_SAVED_RBP,  /* at %rbp + offset */
	TW_ELF_SAVED_RSP,  /* at %rsp + offset */
	TW_ELF_SAVED_NONE  /* there is none: of the return address, the outermost frame */
};

struct tw_elf_frame_saved {
	enum tw_elf_saved how;
	int64_t offset;
};

/* One row of the table that a description stands for, as far as the frames of callers are found by it; registers have DWARF's numbers. */
struct tw_elf_frame_row {
	uint64_t cfa_register, cfa_offset;
	enum tw_elf_cfa cfa;
	int64_t cfa_add;
	struct tw_elf_frame_saved rbp, return_address;
	/* Of all integer registers, by number, distances from the CFA where they were saved there; 0: not. */
	int64_t saved[TW_ELF_RETURN];
};

/* Follows the rows along a description's code.  The return address mostly lies 8 bytes below the CFA. */
#define TW_ELF_FRAME_KEPT_MAX 8
struct tw_elf_frame_walk {
	const struct tw_elf_frame *frame;
	const uint8_t *at;
	uint64_t value; /* up to here `row` holds */
	struct tw_elf_frame_row row, first, kept[TW_ELF_FRAME_KEPT_MAX];
	unsigned kept_count;
	bool is_known; /* false: an instruction was not understood */
	bool is_plain; /* and no CFA was an expression */
};

void tw_elf_frame_walk_begin(struct tw_elf_frame_walk *walk, const struct tw_elf_frame *frame);
/* The row of a value, which is not below that of the last call; NULL: not known, or a CFA up to there is an expression. */
const struct tw_elf_frame_row *tw_elf_frame_walk_to(struct tw_elf_frame_walk *walk, uint64_t value);
/*
 * The row of a value, and *next: where another may begin.  NULL: not known, nor are those behind it.  In the place of
 * tw_elf_frame_walk_to(), from the description's value on, then from *next on.
 */
const struct tw_elf_frame_row *tw_elf_frame_walk_row(struct tw_elf_frame_walk *walk, uint64_t value, uint64_t *next);

/* The landing pads of a description's table: called for the value of each; false ends the walk. */
typedef bool (*tw_elf_landing_pad_fn)(uint64_t value, void *arg);

/* Returns TW_EFORMAT if the table is damaged: what was visited before is right. */
int tw_elf_frame_landing_pads(const struct tw_elf *elf, const struct tw_elf_frame *frame, tw_elf_landing_pad_fn visit,
			      void *arg);

#endif
