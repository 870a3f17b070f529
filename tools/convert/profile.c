/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - writes files of profilers: profile.h. */
#include "tools/convert/profile.h"
#include "views/folds/calltree.h"
#include "views/folds/folded.h"
#include "views/names/missing.h"
#include "views/output/protobuf.h"

#include "tracewheel/error.h"

#include <stdlib.h>

struct tw_profile_form {
	const char *name;
	/* Returns 0 or an error. */
	int (*write)(const struct tw_calltree *tree, struct tw_out *out, bool has_times);
};

/* The name of a function; the last number is that of calls which the tree had no room for. */
static const char *name_of(const struct tw_calltree *tree, uint32_t function)
{
	return function < tree->places.function_count ? tree->places.names[function].text
						      : tw_calltree_name(tree, TW_CALLTREE_BEYOND);
}

static uint32_t function_of(const struct tw_calltree *tree, uint32_t node)
{
	return node == TW_CALLTREE_BEYOND ? tree->places.function_count : tree->nodes[node].function;
}

/* Of a command line that is shown. */
#define COMMAND_BYTES 400

/* ---- pprof ---- */

enum profile {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	TIME_NANOS = 9,
	DURATION_NANOS = 10,
	DEFAULT_TYPE = 14
};
enum value_type { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum sample { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2 };
enum location { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1 };
enum function { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3 };

/* Strings by number; behind them, those of functions. */
enum { EMPTY, CALLS, COUNT, TIME, NANOSECONDS, FIRST_NAME };
static const char *const words[] = {"", "calls", "count", "time", "nanoseconds"};

/* Writes what has been put together.  False: no memory. */
static bool flush_fields(struct tw_proto *proto, struct tw_out *out)
{
	if (proto->has_no_memory)
		return false;
	tw_out_bytes(out, proto->data, proto->used);
	proto->used = 0;
	return true;
}

static void put_type(struct tw_proto *proto, uint32_t name, uint32_t unit)
{
	size_t type = tw_proto_open(proto, SAMPLE_TYPE);
	tw_proto_u64(proto, TYPE_NAME, name);
	tw_proto_u64(proto, TYPE_UNIT, unit);
	tw_proto_close(proto, type);
}

/* A node's own part, with the functions from it to the outermost. */
static void put_sample(struct tw_proto *proto, const struct tw_calltree *tree, uint32_t number, bool has_times)
{
	const struct tw_call_node *node = &tree->nodes[number];
	size_t sample = tw_proto_open(proto, SAMPLE);
	for (uint32_t at = number; at != TW_CALLTREE_ROOT; at = tree->nodes[at].parent)
		if (!tree->nodes[at].is_process)
			tw_proto_u64(proto, SAMPLE_LOCATIONS, function_of(tree, at) + UINT64_C(1));
	tw_proto_u64(proto, SAMPLE_VALUES, has_times ? node->calls : node->self_ns ? node->self_ns : node->calls);
	if (has_times)
		tw_proto_u64(proto, SAMPLE_VALUES, node->self_ns);
	tw_proto_close(proto, sample);
}

static void put_function(struct tw_proto *proto, uint32_t function)
{
	size_t part = tw_proto_open(proto, LOCATION);
	tw_proto_u64(proto, LOCATION_ID, function + UINT64_C(1));
	size_t line = tw_proto_open(proto, LOCATION_LINE);
	tw_proto_u64(proto, LINE_FUNCTION, function + UINT64_C(1));
	tw_proto_close(proto, line);
	tw_proto_close(proto, part);
	part = tw_proto_open(proto, FUNCTION);
	tw_proto_u64(proto, FUNCTION_ID, function + UINT64_C(1));
	tw_proto_u64(proto, FUNCTION_NAME, FIRST_NAME + (uint64_t)function);
	tw_proto_u64(proto, FUNCTION_SYSTEM_NAME, FIRST_NAME + (uint64_t)function);
	tw_proto_close(proto, part);
}

static int write_pprof(const struct tw_calltree *tree, struct tw_out *out, bool has_times)
{
	uint32_t functions = tree->places.function_count + 1;
	struct tw_capture_info info;
	struct tw_proto proto = {0};
	bool is_done = true;
	tw_capture_info(tree->capture, &info);
	put_type(&proto, CALLS, COUNT);
	if (has_times)
		put_type(&proto, TIME, NANOSECONDS);
	for (uint32_t i = TW_CALLTREE_BEYOND; is_done && i < tree->node_count; i++) {
		const struct tw_call_node *node = &tree->nodes[i];
		if (!node->is_process && (node->calls || node->self_ns))
			put_sample(&proto, tree, i, has_times);
		is_done = flush_fields(&proto, out);
	}
	for (uint32_t i = 0; is_done && i < functions; i++) {
		put_function(&proto, i);
		is_done = flush_fields(&proto, out);
	}
	for (uint32_t i = 0; i < FIRST_NAME; i++)
		tw_proto_text(&proto, STRING, words[i]);
	for (uint32_t i = 0; is_done && i < functions; i++) {
		tw_proto_text(&proto, STRING, name_of(tree, i));
		is_done = flush_fields(&proto, out);
	}
	tw_proto_u64(&proto, TIME_NANOS, info.start_wall_ns);
	tw_proto_u64(&proto, DURATION_NANOS, info.end_ns - info.zero_ns);
	tw_proto_u64(&proto, DEFAULT_TYPE, has_times ? TIME : CALLS);
	is_done = flush_fields(&proto, out) && is_done;
	tw_proto_free(&proto);
	return is_done ? 0 : TW_ENOMEM;
}

/* ---- callgrind ---- */

/* A function: its number, and the first time its name. */
static void put_name(struct tw_out *out, const char *key, const struct tw_calltree *tree, uint32_t function,
		     bool *is_named)
{
	tw_out_format(out, "%s=(%u)", key, function + 1);
	if (!is_named[function]) {
		tw_out_text(out, " ");
		tw_out_text(out, name_of(tree, function));
	}
	tw_out_text(out, "\n");
	is_named[function] = true;
}

static int by_caller(const void *a, const void *b)
{
	const struct tw_call_edge *left = a, *right = b;
	return left->caller != right->caller ? (left->caller > right->caller) - (left->caller < right->caller)
					     : (left->callee > right->callee) - (left->callee < right->callee);
}

static void put_costs(struct tw_out *out, uint64_t ns, uint64_t calls, bool has_times)
{
	if (has_times)
		tw_out_format(out, "0 %llu %llu\n", (unsigned long long)ns, (unsigned long long)calls);
	else
		tw_out_format(out, "0 %llu\n", (unsigned long long)calls);
}

/* The first program, which readers name. */
static void put_target(struct tw_out *out, const struct tw_capture *capture)
{
	const struct tw_capture_image *image = tw_capture_image(capture, 0);
	if (!image)
		return;
	tw_out_format(out, "pid: %d\ncmd: ", image->process_id);
	if (image->command_bytes)
		tw_out_command(out, image->command, image->command_bytes, COMMAND_BYTES);
	else
		tw_out_name(out, image->program);
	tw_out_text(out, "\n");
}

static int write_callgrind(const struct tw_calltree *tree, struct tw_out *out, bool has_times)
{
	uint32_t functions = tree->places.function_count + 1;
	size_t count = 0;
	struct tw_call_edge *edges = tw_calltree_edges(tree, &count);
	uint64_t *self = calloc(functions, 2 * sizeof *self), *calls = self ? self + functions : NULL;
	bool *is_named = calloc(functions, sizeof *is_named);
	int error = edges && self && is_named ? 0 : TW_ENOMEM;
	for (size_t i = 0; !error && i < count; i++) {
		self[edges[i].callee] += edges[i].self_ns;
		calls[edges[i].callee] += edges[i].calls;
	}
	if (!error) {
		qsort(edges, count, sizeof *edges, by_caller);
		tw_out_text(out, "# callgrind format\nversion: 1\ncreator: tracewheel " TW_VERSION "\n");
		put_target(out, tree->capture);
		tw_out_text(out, "positions: line\nevents: ");
		/* No files are known. */
		tw_out_text(out, has_times ? "Nanoseconds Calls\nfl=???\n" : "Calls\nfl=???\n");
	}
	size_t at = 0;
	for (uint32_t i = 0; !error && i < functions; i++) {
		bool is_caller = at < count && edges[at].caller == i;
		if (!is_caller && !self[i] && !calls[i])
			continue;
		put_name(out, "\nfn", tree, i, is_named);
		put_costs(out, self[i], calls[i], has_times);
		for (; at < count && edges[at].caller == i; at++) {
			put_name(out, "cfn", tree, edges[at].callee, is_named);
			tw_out_format(out, "calls=%llu 0\n", (unsigned long long)edges[at].calls);
			put_costs(out, edges[at].total_ns, edges[at].calls, has_times);
		}
	}
	free(edges);
	free(self);
	free(is_named);
	return error;
}

/* ---- all ---- */

static int write_folded(const struct tw_calltree *tree, struct tw_out *out, bool has_times)
{
	return tw_folded_put(out, tree, NULL, has_times);
}

const struct tw_profile_form *tw_profile_form(const char *name)
{
	static const struct tw_profile_form forms[] = {{"pprof", write_pprof},
						       {"callgrind", write_callgrind},
						       {"folded", write_folded}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return NULL;
}

int tw_profile_write(const struct tw_profile_form *form, struct tw_capture *capture, struct tw_out *out,
		     uint64_t *events)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	struct tw_calltree tree = {0};
	int error = tw_calltree_make(&tree, capture, &all);
	*events = tree.events;
	if (!error)
		error = form->write(&tree, out, tw_places_have_returns(&tree.places));
	tw_calltree_free(&tree);
	return error;
}
