/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trampoline.h - constants and names shared by C and trampoline_x86_64.S.  Included by both.
 *
 * The stubs are part of our text, made by the assembler, not at run time: no page is ever writable and executable, no
 * system policy can refuse them, and unwinders find their call frame information like that of any function.  A stub
 * has its number built in; its place is in a data table:
 *
 *	slot of the program --> stub n:  endbr64
 *					 movq  tw_got_table[n], %r11	the place
 *					 jmp   slot_entry		to place->way: saves, tells the hit, restores,
 *									jumps to place->target
 *
 * 65,536 of them are 1 MiB of text, of which only the used pages are read from the file.
 */
#ifndef TW_BREAKPOINTS_TRAMPOLINE_H
#define TW_BREAKPOINTS_TRAMPOLINE_H

#define TW_GOT_STUBS	  65536
#define TW_GOT_STUB_BYTES 16

/* offsetof(struct tw_place, target) */
#define TW_PLACE_TARGET_OFFSET 272
/* offsetof(struct tw_place, way) */
#define TW_PLACE_WAY_OFFSET 312
/* offsetof(struct tw_place, shown): two bytes of LEB128 */
#define TW_PLACE_SHOWN_OFFSET 424
/* clang-format off */
/*
 * Ways, tw_place.way, begin with the place in %r11, and all else as slot_entry or tw_sled_entry found it.  A way of sleds has the word
 * of %r11 here: signal handlers do not write so close to %rsp (red zone).
 */
#define TW_WAY_R11 -8(%rsp)
/*
 * The frame where a way of sleds begins.  The traced function is the caller, at the address that the place shows:
 * *(*(CFA - 16) + offset).
 */
#define TW_CFI_OF_SLED \
	.cfi_def_cfa_offset 24; \
	.cfi_escape 0x16, 16, 7, 0x40, 0x1c, 0x06, 0x23, (TW_PLACE_SHOWN_OFFSET & 0x7f) | 0x80, \
		TW_PLACE_SHOWN_OFFSET >> 7, 0x06
/* clang-format on */
/*
 * The shadow of a stack address: ((address & MASK) << SHIFT) + ((address & HALF) << HALF_SHIFT) + BASE, twice 16 TiB of
 * addresses that Linux never maps unless requested.  Addresses that differ by a multiple of 4 TiB share a shadow; the
 * first chunk to need it owns it.
 */
#define TW_SHADOW_SLOT_BITS  42
#define TW_SHADOW_SLOT_MASK  0x3fffffffff0
#define TW_SHADOW_SHIFT	     2
#define TW_SHADOW_HALF	     8
#define TW_SHADOW_HALF_SHIFT 41
#define TW_SHADOW_BASE	     0x200000000000

#ifndef __ASSEMBLER__

#include "breakpoints/breakpoints.h"

#include <stddef.h>

_Static_assert(offsetof(struct tw_place, target) == TW_PLACE_TARGET_OFFSET, "the trampoline jumps through it");
_Static_assert(offsetof(struct tw_place, way) == TW_PLACE_WAY_OFFSET, "the trampoline jumps through it");
_Static_assert(offsetof(struct tw_place, shown) == TW_PLACE_SHOWN_OFFSET && TW_PLACE_SHOWN_OFFSET >= 128,
	       "call frame information refers to it");

extern const char tw_got_stubs[];
/* Written under the permit before the slot is set to the stub; read by stubs. */
extern struct tw_place *_Atomic tw_got_table[TW_GOT_STUBS];

/* Stack bytes that the vector registers need, and the mask of their parts; 0: fxsave. */
extern uint32_t tw_patch_vector_bytes, tw_patch_vector_mask;

#endif

#endif
