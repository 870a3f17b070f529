/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - the values of native calls, for the general way in which they end.
 *
 * Threads: where calls end, in no hit; as native.h.
 */
#ifndef TW_PIPELINE_RESULT_H
#define TW_PIPELINE_RESULT_H

#include "pipeline/hit/frame.h"

#include <stdint.h>

/* tw_frame_return() with what the call returns, and with what it has made or filled.  @value: rax. */
void tw_result_return(const struct tw_frame_wants *wants, const uint64_t *slot, uint64_t value,
		      struct tw_frame_back *back);

#endif
