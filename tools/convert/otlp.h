/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp.h - requests with tokens of sequential tracing as spans of OpenTelemetry: one ExportTraceServiceRequest, which a collector takes as
 * the body of a POST to /v1/traces.
 *
 *	request		a trace; its trace id is that of W3C trace context (tw_seq_trace_id())
 *	message		a span: from its send until its receiver has sent what this message caused; its parent is the message that caused it, or
 *			the span of another tracer that the request came from.  Its span id is the parent-id that goes out with it
 *	print		an event of the span of the message that caused it; a span of its own without one
 *	program		a resource: service.name is its name, or that of its Erlang node
 *
 * Source	opentelemetry-proto, opentelemetry/proto/trace/v1/trace.proto, collector/trace/v1/trace_service.proto; semantic conventions.
 * Threads	one.
 */
#ifndef TW_TOOLS_CONVERT_OTLP_H
#define TW_TOOLS_CONVERT_OTLP_H

#include "views/output/output.h"

#include "tracewheel/capture.h"

struct tw_otlp_counts {
	uint64_t requests, spans;
	uint64_t left_out; /* events of requests beyond the limit of views */
};

/* Writes the requests of a whole capture.  Returns 0 or an error. */
int tw_otlp_write(struct tw_capture *capture, struct tw_out *out, struct tw_otlp_counts *counts);

#endif
