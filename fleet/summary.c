/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - the rows of one segment as lines of JSON: docs/fleet.md has their members. */
#include "fleet/fleet.h"
#include "views/folds/residues.h"
#include "views/folds/seq_trace.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Histograms have eight bins a power of two: the durations of one differ by an eighth at most. */
#define BINS_A_POWER 8
/* Requests of a segment that have a row each; of more it is only said that there are. */
#define LABELS_MAX 20000

/* The rows of a segment while they are written. */
struct rows {
	struct tw_out *out;
	const struct tw_segment_identity *identity;
	struct tw_capture *capture;
	const char *node;
	char key[TW_SEGMENT_KEY_BYTES];
};

static void begin_row(const struct rows *rows, struct tw_json *json, const char *kind)
{
	*json = (struct tw_json){.out = rows->out};
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "kind", kind);
	tw_json_string(json, "node", rows->node);
	tw_json_string(json, "seg", rows->key);
}

static void put_segment(const struct rows *rows, const char *kind, const char *program, uint64_t lost, uint64_t damaged)
{
	const struct tw_segment_identity *identity = rows->identity;
	struct tw_json json;
	begin_row(rows, &json, kind);
	tw_json_u64(&json, "version", TW_FLEET_VERSION);
	tw_json_u64(&json, "from", identity->start_wall_ns);
	tw_json_u64(&json, "to", identity->end_wall_ns);
	tw_json_u64(&json, "events", identity->events);
	tw_json_u64(&json, "lost", lost);
	tw_json_u64(&json, "damaged", damaged);
	tw_json_u64(&json, "bytes", identity->bytes);
	tw_json_u64(&json, "number", identity->number);
	tw_json_u64(&json, "process", (uint32_t)identity->process_id);
	tw_json_u64(&json, "start", identity->process_start);
	tw_json_u64(&json, "lease", identity->lease);
	tw_json_u64(&json, "image_segment", identity->image_segment);
	tw_json_u64(&json, "events_before", identity->events_before);
	tw_json_u64(&json, "kept", identity->segments_kept);
	tw_json_bool(&json, "last", identity->is_last);
	tw_json_string(&json, "program", program);
	tw_json_close(&json, '}');
}

static void put_losses(const struct rows *rows)
{
	const struct tw_capture_stream *stream;
	struct tw_json json;
	for (uint32_t i = 0; (stream = tw_capture_stream(rows->capture, i)); i++) {
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
			if (!stream->lost[cause])
				continue;
			begin_row(rows, &json, "lost");
			tw_json_string(&json, "cause", tw_lost_cause_name(cause));
			tw_json_u64(&json, "events", stream->lost[cause]);
			tw_json_u64(&json, "lease", stream->lease);
			tw_json_i64(&json, "thread", stream->thread_id);
			tw_json_close(&json, '}');
		}
	}
	const struct tw_capture_image *image;
	for (uint32_t i = 0; (image = tw_capture_image(rows->capture, i)); i++) {
		if (!image->no_ring_lost)
			continue;
		begin_row(rows, &json, "lost");
		tw_json_text(&json, "cause", "no_ring", 7);
		tw_json_u64(&json, "events", image->no_ring_lost);
		tw_json_close(&json, '}');
	}
}

/* ---- functions ---- */

/* Two arrays: the bins that have calls, and their numbers.  Bin b of durations below 8 ns is b; above, b = 8 * (p - 2) + e for 2^p * (1 + e / 8). */
static void put_bins(struct tw_json *json, const struct tw_histogram *took)
{
	const unsigned parts = sizeof took->parts / sizeof *took->parts;
	for (unsigned pass = 0; pass < 2; pass++) {
		tw_json_open(json, pass ? "counts" : "bins", '[');
		uint64_t bin = 0, count = 0;
		for (unsigned at = 0; at < parts * TW_HISTOGRAM_PARTS; at++) {
			unsigned power = at / TW_HISTOGRAM_PARTS, part = at % TW_HISTOGRAM_PARTS;
			uint64_t calls = took->parts[power] ? took->parts[power][part] : 0;
			if (!calls)
				continue;
			uint64_t value = power ? (uint64_t)(TW_HISTOGRAM_PARTS + part) << (power - 1) : part;
			unsigned top = value < BINS_A_POWER ? 2 : 63 - (unsigned)__builtin_clzll(value);
			uint64_t now = value < BINS_A_POWER
					       ? value
					       : BINS_A_POWER * (top - 2) + (value >> (top - 3)) % BINS_A_POWER;
			if (count && now != bin) {
				tw_json_u64(json, NULL, pass ? count : bin);
				count = 0;
			}
			bin = now;
			count += calls;
		}
		if (count)
			tw_json_u64(json, NULL, pass ? count : bin);
		tw_json_close(json, ']');
	}
}

static void put_function(const struct rows *rows, const struct tw_calltree *tree, uint32_t number)
{
	const struct tw_call_function *function = &tree->functions[number];
	const struct tw_name *name = &tree->places.names[number];
	struct tw_json json;
	begin_row(rows, &json, "function");
	tw_json_u64(&json, "id", number);
	tw_json_name(&json, name->text, name->bytes, name->lacks_arity);
	tw_json_function(&json, tree->places.functions[number]);
	tw_json_u64(&json, "calls", function->calls);
	if (!tree->is_by_stack && tw_places_have_durations(&tree->places)) {
		tw_json_u64(&json, "returned", function->took.count);
		tw_json_u64(&json, "exceptions", function->exceptions);
		tw_json_u64(&json, "cut", function->cut);
		tw_json_u64(&json, "lossy", function->lossy);
		tw_json_u64(&json, "total", function->total_ns);
		tw_json_u64(&json, "self", function->self_ns);
	}
	if (function->took.count) {
		tw_json_u64(&json, "min", function->took.min);
		tw_json_u64(&json, "max", function->took.max);
		put_bins(&json, &function->took);
	}
	tw_json_close(&json, '}');
}

/* ---- tokens of sequential tracing ---- */

/* A row a label, by which `tracewheel fleet story` finds the segment. */
static int put_tokens(const struct rows *rows)
{
	struct tw_requests requests;
	struct tw_json json;
	char id[TW_SEQ_TRACE_ID_TEXT];
	int error = tw_requests_make(&requests, rows->capture, 0, 0);
	uint32_t shown = requests.count < LABELS_MAX ? requests.count : LABELS_MAX;
	for (uint32_t i = 0; i < shown && !error; i++) {
		const struct tw_request *row = &requests.rows[i];
		begin_row(rows, &json, "token");
		tw_json_string(&json, "label", row->label);
		tw_json_text(&json, "trace_id", tw_seq_trace_id_text(row->trace_id, id), TW_SEQ_TRACE_ID_TEXT - 1);
		tw_json_i64(&json, "first_serial", row->first_serial);
		tw_json_i64(&json, "last_serial", row->last_serial);
		tw_json_u64(&json, "sends", row->sends);
		tw_json_u64(&json, "receives", row->receives);
		tw_json_u64(&json, "prints", row->prints);
		tw_json_u64(&json, "first", row->first_ns);
		tw_json_u64(&json, "last", row->last_ns);
		tw_json_close(&json, '}');
	}
	if (!error && (shown < requests.count || requests.left_out)) {
		begin_row(rows, &json, "token");
		tw_json_u64(&json, "left_out", requests.count - shown + requests.left_out);
		tw_json_close(&json, '}');
	}
	tw_requests_free(&requests);
	return error;
}

/* ---- residues ---- */

/* The same in all segments of the process. */
static void put_thread(const struct rows *rows, struct tw_json *json, const struct tw_stack *stack)
{
	const struct tw_capture_stream *stream = tw_capture_stream(rows->capture, stack->tracee_id);
	char text[64];
	if (stack->has_tracee)
		snprintf(text, sizeof text, "%u-p%u", stack->session_index, stack->tracee_id);
	else
		snprintf(text, sizeof text, "%u-r%llx", stack->session_index,
			 (unsigned long long)(stream ? stream->lease : 0));
	tw_json_string(json, "thread", text);
}

static void put_returns(const struct rows *rows, const struct tw_residue_stack *of)
{
	struct tw_json json;
	for (uint32_t i = 0; i < of->count; i++) {
		const struct tw_residue_return *at = &of->returns[i];
		begin_row(rows, &json, "return");
		put_thread(rows, &json, of->stack);
		tw_json_u64(&json, "order", i);
		tw_json_u64(&json, "id", at->function);
		tw_json_bool(&json, "exception", at->is_exception);
		tw_json_u64(&json, "at", at->at_ns);
		tw_json_u64(&json, "own", at->own_ns);
		tw_json_u64(&json, "inner", at->inner_ns);
		tw_json_u64(&json, "within", at->within_ns);
		tw_json_close(&json, '}');
	}
}

static void put_frames(const struct rows *rows, const struct tw_stack *stack)
{
	struct tw_json json;
	for (uint32_t depth = 0; depth < stack->depth; depth++) {
		const struct tw_stack_frame *frame = &stack->frames[depth];
		if (depth == TW_RESIDUES_MAX)
			break;
		begin_row(rows, &json, "open");
		put_thread(rows, &json, stack);
		tw_json_u64(&json, "order", depth);
		tw_json_u64(&json, "id", frame->function);
		tw_json_u64(&json, "at", frame->start_ns);
		tw_json_u64(&json, "own", frame->own_before_ns);
		tw_json_u64(&json, "inner", frame->inner_ns + frame->out_ns);
		tw_json_bool(&json, "lossy", frame->losses_before != stack->losses);
		tw_json_close(&json, '}');
	}
}

/* The sums of the thread by function, for calls that are open all the time. */
static void put_sums(const struct rows *rows, const struct tw_calltree *tree, const struct tw_residue_stack *of)
{
	struct tw_json json;
	begin_row(rows, &json, "thread");
	put_thread(rows, &json, of->stack);
	tw_json_u64(&json, "own", of->own_ns);
	tw_json_u64(&json, "inner", of->inner_ns);
	tw_json_u64(&json, "last", of->last_ns);
	tw_json_u64(&json, "dropped", of->dropped);
	for (unsigned pass = 0; pass < 2 && of->totals; pass++) {
		tw_json_open(&json, pass ? "totals" : "ids", '[');
		for (uint32_t i = 0; i < tree->function_count; i++) {
			if (of->totals[i])
				tw_json_u64(&json, NULL, pass ? of->totals[i] : i);
		}
		tw_json_close(&json, ']');
	}
	tw_json_close(&json, '}');
}

static void put_residues(const struct rows *rows, const struct tw_residues *residues)
{
	for (uint32_t i = 0; i < residues->count; i++) {
		const struct tw_residue_stack *of = &residues->stacks[i];
		if (!of->stack)
			continue;
		put_returns(rows, of);
		put_sums(rows, &residues->tree, of);
		put_frames(rows, of->stack);
	}
}

static bool is_used(const struct tw_residues *residues, uint32_t function)
{
	if (residues->tree.functions[function].calls)
		return true;
	for (uint32_t i = 0; i < residues->count; i++) {
		for (uint32_t j = 0; j < residues->stacks[i].count; j++) {
			if (residues->stacks[i].returns[j].function == function)
				return true;
		}
	}
	return false;
}

static int put_rows(struct rows *rows)
{
	const struct tw_capture_image *image = tw_capture_image(rows->capture, 0);
	const char *program = image ? strrchr(image->program, '/') : NULL;
	struct tw_residues residues;
	struct tw_capture_info info;
	uint64_t lost = 0;
	int error = tw_residues_make(&residues, rows->capture);
	if (error) {
		tw_residues_free(&residues);
		return error;
	}
	tw_capture_info(rows->capture, &info);
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += info.lost[cause];
	put_segment(rows, "segment", program ? program + 1 : image ? image->program : "", lost, info.damaged_records);
	put_losses(rows);
	for (uint32_t i = 0; i < residues.tree.function_count; i++) {
		if (is_used(&residues, i))
			put_function(rows, &residues.tree, i);
	}
	if (!residues.tree.is_by_stack && tw_places_have_durations(&residues.tree.places))
		put_residues(rows, &residues);
	tw_residues_free(&residues);
	return put_tokens(rows);
}

/* ---- into memory ---- */

/* Takes the bytes of a file in memory that was written. */
static int take(struct tw_out *out, struct tw_fleet_bytes *bytes)
{
	int error = tw_out_flush(out);
	off_t size = lseek(out->fd, 0, SEEK_END);
	uint8_t *data = error || size < 0 ? NULL : malloc((size_t)size + 1);
	if (!data)
		return TW_ENOMEM;
	if (pread(out->fd, data, (size_t)size, 0) != size) {
		free(data);
		return TW_EIO;
	}
	*bytes = (struct tw_fleet_bytes){data, (size_t)size};
	return 0;
}

static int write_rows(struct rows *rows, int (*put)(struct rows *rows), struct tw_fleet_bytes *bytes)
{
	static struct tw_out out;
	int fd = memfd_create("tracewheel-summary", MFD_CLOEXEC);
	if (fd < 0)
		return TW_ENOMEM;
	tw_out_init(&out, fd);
	rows->out = &out;
	tw_segment_key(rows->identity, rows->key);
	int error = put(rows);
	if (!error)
		error = take(&out, bytes);
	close(fd);
	return error;
}

int tw_fleet_summary(int fd, const struct tw_segment_identity *identity, const char *node, struct tw_fleet_bytes *out)
{
	const struct tw_capture_options options = {.no_workers = true};
	struct rows rows = {.identity = identity, .node = node};
	int error = tw_capture_open_stream_file(fd, &options, &rows.capture);
	if (error)
		return error;
	error = write_rows(&rows, put_rows, out);
	tw_names_use(NULL);
	tw_capture_close(rows.capture);
	return error;
}

static int put_dropped(struct rows *rows)
{
	put_segment(rows, "dropped", "", 0, 0);
	return 0;
}

int tw_fleet_dropped(const struct tw_segment_identity *identity, const char *node, struct tw_fleet_bytes *out)
{
	struct rows rows = {.identity = identity, .node = node};
	return write_rows(&rows, put_dropped, out);
}
