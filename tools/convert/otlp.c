/* SPDX-License-Identifier: Apache-2.0 */
/* otlp.c - see otlp.h. */
#include "tools/convert/otlp.h"
#include "views/folds/seq_trace.h"
#include "views/output/protobuf.h"

#include "tracewheel/error.h"
#include "tracewheel/seq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields by message. */
enum { RESOURCE_SPANS = 1 };
enum { RESOURCE = 1, SCOPE_SPANS = 2 };
enum { SCOPE = 1, SPANS = 2, SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { ATTRIBUTES_OF_RESOURCE = 1 };
enum span {
	TRACE_ID = 1,
	SPAN_ID = 2,
	PARENT_SPAN_ID = 4,
	NAME = 5,
	KIND = 6,
	START = 7,
	END = 8,
	ATTRIBUTES = 9,
	EVENTS = 11
};
enum event { EVENT_TIME = 1, EVENT_NAME = 2 };
enum key_value { KEY = 1, VALUE = 2, VALUE_TEXT = 1, VALUE_INTEGER = 3 };
enum kind { KIND_INTERNAL = 1, KIND_CONSUMER = 5 };

#define SPAN_ID_BYTES 8
#define MESSAGE_BYTES 400
#define NAME_BYTES    120

struct request {
	const struct tw_seq_trace *trace;
	struct tw_proto *proto;
	const unsigned char *trace_id;
	uint64_t wall_ns; /* to be added to times */
	uint64_t spans;
	struct handed *handed; /* by hop */
};

/* A process of an Erlang node took the context of OpenTelemetry over, or gave its token to it: tracewheel_otel.erl. */
struct handed {
	bool is_print;	    /* a span of its own, to which spans of OpenTelemetry may be children */
	uint64_t parent_id; /* the span from which the process took the request over; 0: none */
};

/* ---- attributes ---- */

static void put_attribute(struct tw_proto *proto, uint32_t field, const char *key, const char *text)
{
	size_t pair = tw_proto_open(proto, field);
	tw_proto_text(proto, KEY, key);
	size_t value = tw_proto_open(proto, VALUE);
	tw_proto_text(proto, VALUE_TEXT, text);
	tw_proto_close(proto, value);
	tw_proto_close(proto, pair);
}

static void put_number(struct tw_proto *proto, uint32_t field, const char *key, uint64_t number)
{
	size_t pair = tw_proto_open(proto, field);
	tw_proto_text(proto, KEY, key);
	size_t value = tw_proto_open(proto, VALUE);
	tw_proto_u64(proto, VALUE_INTEGER, number);
	tw_proto_close(proto, value);
	tw_proto_close(proto, pair);
}

static void put_resource(const struct request *request, uint32_t node)
{
	const struct tw_seq_nodes *nodes = &request->trace->nodes;
	uint32_t image_number = node < nodes->count ? nodes->nodes[node].image : TW_CAPTURE_NONE;
	const struct tw_capture_image *image = tw_capture_image(request->trace->capture, image_number);
	char text[TW_SEQ_NODE_BYTES];
	const char *name = tw_seq_node_text(nodes, node, text), *slash;
	bool is_program = image && !*image->node && !*image->node_name && !nodes->nodes[node].is_learnt;
	if (is_program)
		name = (slash = strrchr(image->program, '/')) ? slash + 1 : image->program;
	size_t resource = tw_proto_open(request->proto, RESOURCE);
	put_attribute(request->proto, ATTRIBUTES_OF_RESOURCE, "service.name", name);
	if (is_program)
		put_attribute(request->proto, ATTRIBUTES_OF_RESOURCE, "process.executable.path", image->program);
	if (image)
		put_number(request->proto, ATTRIBUTES_OF_RESOURCE, "process.pid", (uint64_t)image->process_id);
	tw_proto_close(request->proto, resource);
}

/* ---- spans ---- */

static struct tw_seq_sender sender_of(const struct request *request, const struct tw_hop *hop)
{
	const struct tw_seq_trace *trace = request->trace;
	const struct tw_seq_trace_event *event =
		&trace->events[hop->send != TW_SEQ_TRACE_NONE ? hop->send : hop->receive];
	const struct tw_seq_process *from = &trace->processes[hop->from].is;
	const char *node = from->node < trace->nodes.count ? trace->nodes.nodes[from->node].name : "";
	return (struct tw_seq_sender){.number = from->number,
				      .serial = from->serial,
				      .creation = from->creation,
				      .current = event->current,
				      .node = node,
				      .node_bytes = strlen(node)};
}

static void put_span_id(struct tw_proto *proto, uint32_t field, uint64_t id)
{
	unsigned char bytes[SPAN_ID_BYTES];
	for (int i = 0; i < SPAN_ID_BYTES; i++)
		bytes[i] = (unsigned char)(id >> (56 - 8 * i));
	tw_proto_bytes(proto, field, bytes, sizeof bytes);
}

/* A foreign span cannot be its own child: the message that came from it has another id, which is the same each time. */
static uint64_t span_id_of(const struct request *request, const struct tw_hop *hop)
{
	struct tw_seq_sender sender = sender_of(request, hop);
	if (tw_seq_is_foreign(&sender)) {
		const struct tw_seq_process *to = &request->trace->processes[hop->to].is;
		sender = (struct tw_seq_sender){.number = to->number,
						.serial = to->serial,
						.creation = sender.number,
						.current = sender.serial,
						.node = "",
						.node_bytes = 0};
	}
	return tw_seq_parent_id(&sender);
}

static void put_parent(const struct request *request, const struct tw_hop *hop)
{
	struct tw_seq_sender sender = sender_of(request, hop);
	if (hop->parent != TW_SEQ_TRACE_NONE)
		put_span_id(request->proto, PARENT_SPAN_ID, span_id_of(request, &request->trace->hops[hop->parent]));
	else if (tw_seq_is_foreign(&sender))
		put_span_id(request->proto, PARENT_SPAN_ID, tw_seq_parent_id(&sender));
	else if (request->handed[hop - request->trace->hops].parent_id)
		put_span_id(request->proto, PARENT_SPAN_ID, request->handed[hop - request->trace->hops].parent_id);
}

/* Until the receiver has sent the last message that this one caused. */
static uint64_t end_of(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	uint64_t end_ns = tw_hop_start(trace, hop);
	if (hop->receive != TW_SEQ_TRACE_NONE && trace->events[hop->receive].time_ns > end_ns)
		end_ns = trace->events[hop->receive].time_ns;
	for (uint32_t child = hop->first_child; child != TW_SEQ_TRACE_NONE; child = trace->hops[child].next)
		if (tw_hop_start(trace, &trace->hops[child]) > end_ns)
			end_ns = tw_hop_start(trace, &trace->hops[child]);
	return end_ns;
}

static void put_event(const struct request *request, uint64_t time_ns, const char *name)
{
	size_t event = tw_proto_open(request->proto, EVENTS);
	tw_proto_fixed64(request->proto, EVENT_TIME, time_ns + request->wall_ns);
	tw_proto_text(request->proto, EVENT_NAME, name);
	tw_proto_close(request->proto, event);
}

/* When it was received, and what its receiver printed for it. */
static void put_events(const struct request *request, const struct tw_hop *hop)
{
	const struct tw_seq_trace *trace = request->trace;
	char text[MESSAGE_BYTES];
	if (hop->receive != TW_SEQ_TRACE_NONE)
		put_event(request, trace->events[hop->receive].time_ns, "received");
	for (uint32_t child = hop->first_child; child != TW_SEQ_TRACE_NONE; child = trace->hops[child].next) {
		const struct tw_hop *print = &trace->hops[child];
		if (!print->is_print || request->handed[child].is_print)
			continue;
		tw_seq_trace_message(trace, print, text, sizeof text);
		put_event(request, tw_hop_start(trace, print), text);
	}
}

static void put_attributes(const struct request *request, const struct tw_hop *hop, const char *message)
{
	const struct tw_seq_trace *trace = request->trace;
	struct tw_proto *proto = request->proto;
	bool has_send = hop->send != TW_SEQ_TRACE_NONE, has_receive = hop->receive != TW_SEQ_TRACE_NONE;
	const struct tw_seq_trace_event *event = &trace->events[has_send ? hop->send : hop->receive];
	char text[TW_SEQ_TRACE_TEXT_BYTES];
	put_attribute(proto, ATTRIBUTES, "tracewheel.label", trace->shown ? trace->shown : trace->label);
	put_attribute(proto, ATTRIBUTES, "tracewheel.from", tw_seq_trace_process(trace, hop->from, text));
	if (!hop->is_print)
		put_attribute(proto, ATTRIBUTES, "tracewheel.to", tw_seq_trace_process(trace, hop->to, text));
	put_attribute(proto, ATTRIBUTES, "tracewheel.message", message);
	snprintf(text, sizeof text, "%lld,%lld", (long long)event->previous, (long long)event->current);
	put_attribute(proto, ATTRIBUTES, "tracewheel.serial", text);
	if (has_send && tw_seq_trace_thread(trace, hop->send))
		put_number(proto, ATTRIBUTES, "tracewheel.sent_thread", tw_seq_trace_thread(trace, hop->send));
	if (has_receive && tw_seq_trace_thread(trace, hop->receive))
		put_number(proto, ATTRIBUTES, "thread.id", tw_seq_trace_thread(trace, hop->receive));
	if (hop->gap)
		put_attribute(proto, ATTRIBUTES, "tracewheel.missing", tw_seq_trace_gap(trace, hop));
}

static void put_span(struct request *request, const struct tw_hop *hop)
{
	const struct tw_seq_trace *trace = request->trace;
	struct tw_proto *proto = request->proto;
	char message[MESSAGE_BYTES], process[TW_SEQ_TRACE_TEXT_BYTES], name[NAME_BYTES + TW_SEQ_TRACE_TEXT_BYTES];
	tw_seq_trace_message(trace, hop, message, sizeof message);
	tw_seq_trace_process(trace, hop->is_print ? hop->from : hop->to, process);
	snprintf(name, sizeof name, hop->is_print ? "%s prints %.*s" : "%s: %.*s", process, NAME_BYTES - 16, message);
	size_t span = tw_proto_open(proto, SPANS);
	tw_proto_bytes(proto, TRACE_ID, request->trace_id, TW_SEQ_TRACE_ID_BYTES);
	put_span_id(proto, SPAN_ID, span_id_of(request, hop));
	put_parent(request, hop);
	tw_proto_text(proto, NAME, name);
	tw_proto_u64(proto, KIND, hop->is_print ? KIND_INTERNAL : KIND_CONSUMER);
	tw_proto_fixed64(proto, START, tw_hop_start(trace, hop) + request->wall_ns);
	tw_proto_fixed64(proto, END, end_of(trace, hop) + request->wall_ns);
	put_attributes(request, hop, message);
	put_events(request, hop);
	tw_proto_close(proto, span);
	request->spans++;
}

/* ---- requests ---- */

/* The parent-id of {traceparent,<<"00-TRACE-PARENT-FLAGS">>}; 0: it is another term. */
static uint64_t parent_id_in(const char *message)
{
	unsigned long long id;
	return sscanf(message, "{traceparent,<<\"00-%*32[0-9a-f]-%16llx-", &id) == 1 ? id : 0;
}

/* Finds prints with which requests come from OpenTelemetry or go there; what a process sends after the first continues its span. */
static bool find_handed(struct request *request)
{
	const struct tw_seq_trace *trace = request->trace;
	uint64_t *parents = calloc(trace->process_count + (size_t)1, sizeof *parents);
	char message[MESSAGE_BYTES];
	request->handed = calloc(trace->hop_count + (size_t)1, sizeof *request->handed);
	for (uint32_t i = 0; parents && request->handed && i < trace->hop_count; i++) {
		const struct tw_hop *hop = &trace->hops[i];
		uint64_t id = 0;
		if (hop->is_print) {
			tw_seq_trace_message(trace, hop, message, sizeof message);
			id = parent_id_in(message);
			request->handed[i].is_print = id || strcmp(message, "traceparent") == 0;
		}
		if (id)
			parents[hop->from] = id;
		request->handed[i].parent_id = parents[hop->from];
	}
	free(parents);
	return parents && request->handed;
}

/* A print that a message has caused is an event of its span. */
static bool is_span(const struct request *request, const struct tw_hop *hop)
{
	return !hop->is_print || hop->parent == TW_SEQ_TRACE_NONE ||
	       request->handed[hop - request->trace->hops].is_print;
}

/* The program that does what the span is about: the receiver, if it is in the capture. */
static uint32_t node_of(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	return trace->processes[hop->receive != TW_SEQ_TRACE_NONE ? hop->to : hop->from].is.node;
}

static void put_spans_of(struct request *request, uint32_t node)
{
	struct tw_proto *proto = request->proto;
	size_t part = tw_proto_open(proto, RESOURCE_SPANS);
	put_resource(request, node);
	size_t spans = tw_proto_open(proto, SCOPE_SPANS), scope = tw_proto_open(proto, SCOPE);
	tw_proto_text(proto, SCOPE_NAME, "tracewheel");
	tw_proto_text(proto, SCOPE_VERSION, TW_VERSION);
	tw_proto_close(proto, scope);
	for (uint32_t i = 0; i < request->trace->hop_count; i++) {
		const struct tw_hop *hop = &request->trace->hops[i];
		if (is_span(request, hop) && node_of(request->trace, hop) == node)
			put_span(request, hop);
	}
	tw_proto_close(proto, spans);
	tw_proto_close(proto, part);
}

/* Nodes one after the other, in the order of their first span. */
static int put_request(struct request *request)
{
	const struct tw_seq_trace *trace = request->trace;
	bool *is_done = calloc(trace->nodes.count + 1, sizeof *is_done);
	int error = is_done ? 0 : TW_ENOMEM;
	for (uint32_t i = 0; !error && i < trace->hop_count; i++) {
		uint32_t node = node_of(trace, &trace->hops[i]),
			 index = node < trace->nodes.count ? node : trace->nodes.count;
		if (!is_span(request, &trace->hops[i]) || is_done[index])
			continue;
		is_done[index] = true;
		put_spans_of(request, node);
		error = request->proto->has_no_memory ? TW_ENOMEM : 0;
	}
	free(is_done);
	return error;
}

static int write_request(struct tw_capture *capture, const struct tw_request *row, struct tw_proto *proto,
			 uint64_t wall_ns, struct tw_otlp_counts *counts)
{
	struct tw_seq_trace trace = {0};
	struct request request = {.trace = &trace, .proto = proto, .trace_id = row->trace_id, .wall_ns = wall_ns};
	/* Only blocks of that time are read. */
	int error = tw_seq_trace_make(&trace, capture, row->label, row->first_ns, row->last_ns + 1);
	if (!error)
		error = find_handed(&request) ? put_request(&request) : TW_ENOMEM;
	free(request.handed);
	counts->requests += !error;
	counts->spans += request.spans;
	counts->left_out += trace.left_out;
	tw_seq_trace_free(&trace);
	return error;
}

int tw_otlp_write(struct tw_capture *capture, struct tw_out *out, struct tw_otlp_counts *counts)
{
	struct tw_requests requests = {0};
	struct tw_capture_info info;
	struct tw_proto proto = {0};
	int error = tw_requests_make(&requests, capture, 0, 0);
	*counts = (struct tw_otlp_counts){.left_out = requests.left_out};
	tw_capture_info(capture, &info);
	for (uint32_t i = 0; !error && i < requests.count && !out->error; i++) {
		error = write_request(capture, &requests.rows[i], &proto, info.start_wall_ns - info.start_ns, counts);
		tw_out_bytes(out, proto.data, proto.used);
		proto.used = 0;
	}
	tw_proto_free(&proto);
	tw_requests_free(&requests);
	return error;
}
