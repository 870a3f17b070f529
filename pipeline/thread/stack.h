/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - where a process came from, as the run-time tells it: host functions of match programs. */
#ifndef TW_PIPELINE_STACK_H
#define TW_PIPELINE_STACK_H

#include "match/match.h"
#include "pipeline/hit/frame.h"

/* {caller}, {caller_line} and {current_stacktrace}: `undefined` or [] where nobody knows. */
struct tw_term tw_stack_caller(struct tw_match_run *run);
struct tw_term tw_stack_caller_line(struct tw_match_run *run);
struct tw_term tw_stack_trace(struct tw_match_run *run, uint32_t depth);

/* Where the process goes on when the function that is being left returns. */
struct tw_frame_where tw_stack_where(void);

#endif
