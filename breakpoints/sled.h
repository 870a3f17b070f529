/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled.h - declarations shared by the files about entry sleds.  Under the permit.
 *
 *	sled.c		which bytes of a sled become a jump, and how they are written
 *	sled_area.c	the stubs that such jumps lead to, within reach of a 32-bit displacement
 *	sled_frames.c	call frame information of those stubs
 *	sled_x86_64.S	from a stub to the hit and back
 */
#ifndef TW_BREAKPOINTS_SLED_H
#define TW_BREAKPOINTS_SLED_H

#include "breakpoints/breakpoints.h"
#include "breakpoints/run.h"

struct tw_entry_change;

/* patch.h's contracts for TW_BP_SLED. */
int tw_sled_prepare(struct tw_patch_run *run, struct tw_place *place);
void tw_sled_install(struct tw_patch_run *run, struct tw_place *place);
void tw_sled_uninstall(struct tw_patch_run *run, struct tw_place *place);
size_t tw_sled_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
/* Before a run ends: has the sleds written that threads may be inside of. */
void tw_sled_plant(struct tw_patch_run *run);
/* The bytes of such a sled, within a page. */
void tw_sled_change_of(const struct tw_place *place, struct tw_entry_change *out);
/* Inside a run: writes the sleds that could not be written during unloading. */
void tw_sled_make_up(struct tw_patch_run *run);

/* Functions that write code: thread sanitizers do not track that, and trap when their own entry is written. */
#ifdef __clang__
#define TW_WRITES_CODE __attribute__((noinline, disable_sanitizer_instrumentation))
#else
#define TW_WRITES_CODE __attribute__((noinline, no_sanitize("thread")))
#endif

/*
 * tw_sled_take_stub - take a stub for this place that a jump just before `resume` can reach; the stub continues at `resume`.
 *
 * @out		lends: forever, or until the place is gone.
 *
 * Errors: TW_ENOMEM (also: no address space in reach), TW_EPERM (the system refuses executable memory).
 */
int tw_sled_take_stub(struct tw_place *place, uintptr_t resume, void **out);

/* Gives back the stub of a place whose object was unloaded, so that no thread can be inside the stub. */
void tw_sled_give_stub(struct tw_place *place);

/* Calls `visit` for each place that has a stub, or had one. */
void tw_sled_each(void (*visit)(struct tw_patch_run *run, struct tw_place *place), struct tw_patch_run *run);

#define TW_SLED_STUB_BYTES   32
#define TW_SLED_FRAMES_BYTES 160
#define TW_SLED_HEADER_BYTES 24 /* of these: a table of one row, padded */
/*
 * tw_sled_write_frames - write the call frame information of all stubs of an area: an .eh_frame_hdr and its .eh_frame.
 *
 * @at		TW_SLED_FRAMES_BYTES within 2 GiB of the stubs, aligned to 8.
 * @table	16 bytes per stub; the first word is the address after the sled.
 */
void tw_sled_write_frames(uint8_t *at, const uint8_t *stubs, uint32_t bytes, const void *table);

/* The common entry of all stubs. */
extern const char tw_sled_entry[];
/* The same for sites (entry_stub.c): site_x86_64.S. */
extern const char tw_site_entry[];

#endif
