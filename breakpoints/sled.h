/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled.h - what the files about entry sleds share.  Under the permit.
 *
 *	sled.c		which bytes of a sled become a jump, and how they are written
 *	sled_area.c	the stubs that such jumps lead to, within reach of a 32-bit displacement
 *	sled_frames.c	what unwinders are told of those stubs
 *	sled_x86_64.S	from a stub to the hit and back
 */
#ifndef TW_BREAKPOINTS_SLED_H
#define TW_BREAKPOINTS_SLED_H

#include "breakpoints/breakpoints.h"

/* What writes code: thread sanitizers keep no account of it, and trap where somebody writes their entry. */
#ifdef __clang__
#define TW_WRITES_CODE __attribute__((noinline, disable_sanitizer_instrumentation))
#else
#define TW_WRITES_CODE __attribute__((noinline, no_sanitize("thread")))
#endif

/*
 * tw_sled_take_stub - a stub for this place that a jump in front of `resume`, where it goes back to, can reach.
 *
 * @out		lends: for ever, or until the place is gone.
 *
 * Errors: TW_ENOMEM (also: no address space in reach), TW_EPERM (the system refuses executable memory).
 */
int tw_sled_take_stub(struct tw_place *place, uintptr_t resume, void **out);

/* The place is gone: its object was unloaded, so nobody is on the way through the stub any more. */
void tw_sled_give_stub(struct tw_place *place);

/* Calls `visit` for each place that has a stub, or had one. */
void tw_sled_each(void (*visit)(struct tw_place *place));

#define TW_SLED_STUB_BYTES   32
#define TW_SLED_FRAMES_BYTES 160
/*
 * tw_sled_write_frames - what unwinders are told of all stubs of an area: an .eh_frame_hdr, and what it leads to.
 *
 * @at		in reach of 2 GiB of the stubs, on a multiple of 8: TW_SLED_FRAMES_BYTES.
 * @table	16 bytes a stub, the first word of them the address behind the sled.
 */
void tw_sled_write_frames(uint8_t *at, const uint8_t *stubs, uint32_t bytes, const void *table);

/* Where all stubs lead. */
extern const char tw_sled_entry[];

#endif
