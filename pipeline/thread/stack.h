/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - the callers of a process, as its run-time reports them: host functions of match programs. */
#ifndef TW_PIPELINE_STACK_H
#define TW_PIPELINE_STACK_H

#include "match/match.h"
#include "pipeline/hit/frame.h"

/* {caller}, {caller_line} and {current_stacktrace}: `undefined` or [] where they are not known. */
struct tw_term tw_stack_caller(struct tw_match_run *run);
struct tw_term tw_stack_caller_line(struct tw_match_run *run);
struct tw_term tw_stack_trace(struct tw_match_run *run, uint32_t depth);

/* The function in which the process continues when the current function returns. */
struct tw_frame_where tw_stack_where(void);

#endif
