/* SPDX-License-Identifier: Apache-2.0 */
/* got.h - GOT slots: patch.h's contracts for TW_BP_SLOT.  Under the permit, whose run it is. */
#ifndef TW_BREAKPOINTS_GOT_H
#define TW_BREAKPOINTS_GOT_H

#include "breakpoints/breakpoints.h"
#include "breakpoints/run.h"

int tw_got_prepare(struct tw_patch_run *run, struct tw_place *place);
void tw_got_install(struct tw_patch_run *run, struct tw_place *place);
void tw_got_uninstall(struct tw_patch_run *run, struct tw_place *place);
size_t tw_got_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at);
/* Inside a run: writes the slots that could not be written during unloading. */
void tw_got_make_up(struct tw_patch_run *run);

#endif
