/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed.h - a session with rings that overwrite, and places of functions, for benchmarks of sleds and entries.
 *
 * Threads  the benchmark's own.  Errors end the benchmark.
 */
#ifndef TW_BENCH_BED_H
#define TW_BENCH_BED_H

#include "breakpoints/breakpoints.h"
#include "pipeline/hit/native.h"
#include "ringbuf/ringset.h"
#include "session/session.h"
#include "tracewheel/tracewheel.h"

#include <stdlib.h>

struct bed {
	struct tw_rs rs;
	struct tw_session *session;
};

static inline void open_bed(struct bed *bed, bool is_traced)
{
	struct tw_rs_options options = {.policy = TW_RB_OVERWRITE, .has_fixed_rings = true};
	uint32_t image;

	*bed = (struct bed){0};
	if (tw_rs_create(&bed->rs, &options) || tw_rs_image_claim(&bed->rs, &image) ||
	    tw_session_make("bench", &bed->rs, &bed->session))
		abort();
	if (is_traced)
		tw_trace_process(bed->session, tw_process_self(), true, TW_FLAG_CALL);
	tw_native_init();
}

static inline void close_bed(struct bed *bed)
{
	tw_session_destroy(bed->session);
	tw_session_put(bed->session);
	tw_rs_destroy(&bed->rs);
}

static inline struct tw_place *add_place(struct tw_permit *permit, const struct tw_place_options *options)
{
	const struct tw_module_options module_options = {.name = "bench", .path = "bench"};
	struct tw_function *function;
	struct tw_module *module;
	struct tw_place *place;

	if (tw_bp_module_add(permit, &module_options, &module) ||
	    tw_bp_function_add(permit, module, "small", UINT32_MAX, 0, &function) ||
	    tw_bp_place_add(permit, function, options, &place))
		abort();
	return place;
}

#endif
