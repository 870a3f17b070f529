/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - the first record of a definitions log: the process image itself. */
#ifndef TW_PIPELINE_IMAGE_H
#define TW_PIPELINE_IMAGE_H

#include "ringbuf/ringset.h"

/*
 * tw_image_define - define the image that this process has claimed: its numbers, program, command line and host.
 *
 * Errors: TW_ENOSPC.  Threads: as tw_rs_defs_append().
 */
int tw_image_define(struct tw_rs *rs);

#endif
