/* SPDX-License-Identifier: Apache-2.0 */
/* calls_lttng.h - the tracepoints of calls.c: one without fields, one with two words. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER calls
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "calls_lttng.h"

#if !defined(CALLS_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define CALLS_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(calls, none, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(calls, two, LTTNG_UST_TP_ARGS(int, a, int, b),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(int, b, b)))

#endif

#include <lttng/tracepoint-event.h>
