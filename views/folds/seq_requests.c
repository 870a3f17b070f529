/* SPDX-License-Identifier: Apache-2.0 */
/* seq_requests.c - the requests of a capture: its labels, each with sums. */
#include "views/folds/seq_trace.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX (UINT32_C(1) << 20)
#define SEEN_MAX (UINT32_C(1) << 23)

struct reading {
	struct tw_requests *requests;
	struct tw_seq_nodes nodes;
};

/* Is it the first time? A pair of hashes is taken for the same process. */
static bool is_first(struct tw_requests *requests, uint64_t key)
{
	if (tw_map_get(&requests->seen, key) != TW_MAP_NONE)
		return false;
	if (requests->seen.count < SEEN_MAX && tw_map_add(&requests->seen, key, 0))
		return true;
	requests->is_unsure = true;
	return false;
}

const char *tw_seq_trace_id_text(const unsigned char id[TW_SEQ_TRACE_ID_BYTES], char text[TW_SEQ_TRACE_ID_TEXT])
{
	for (unsigned i = 0; i < TW_SEQ_TRACE_ID_BYTES; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", id[i]);
	return text;
}

bool tw_seq_trace_id_read(const char *text, unsigned char id[TW_SEQ_TRACE_ID_BYTES])
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	if (strlen(text) != TW_SEQ_TRACE_ID_TEXT - 1)
		return false;
	for (unsigned i = 0; i < 2 * TW_SEQ_TRACE_ID_BYTES; i++) {
		const char *digit = strchr(digits, text[i]);
		if (!digit)
			return false;
		id[i / 2] = (unsigned char)(id[i / 2] << 4 | (digit - digits) % 16);
	}
	return true;
}

void tw_seq_label_read(const char *given, char text[TW_LABEL_BYTES])
{
	struct tw_arena arena;
	struct tw_term term;
	tw_arena_init(&arena, SIZE_MAX);
	if (tw_term_parse(&arena, given, strlen(given), &term, NULL) == 0)
		tw_term_format(term, TW_PRINT_WRITE, text, TW_LABEL_BYTES);
	else
		text[tw_clean(given, strlen(given), text, TW_LABEL_BYTES - 1)] = 0;
	tw_arena_fini(&arena);
}

char *tw_seq_label_shown(struct tw_term label)
{
	char text[TW_LABEL_BYTES], digits[TW_SEQ_TRACE_ID_TEXT];
	const unsigned char *bytes;
	size_t bits;
	tw_term_format(label, TW_PRINT_PRETTY, text, sizeof text);
	if (!tw_term_get_bits(label, &bytes, &bits) && bits == 8 * TW_SEQ_TRACE_ID_BYTES && text[2] != '"')
		return strdup(tw_seq_trace_id_text(bytes, digits));
	return strdup(text);
}

static struct tw_request *find_row(struct tw_requests *requests, struct tw_term label)
{
	char text[TW_LABEL_BYTES];
	uint64_t key = tw_term_hash(label);
	tw_term_format(label, TW_PRINT_WRITE, text, sizeof text);
	uint32_t known = tw_map_find(&requests->by_label, key, i, strcmp(requests->rows[i].label, text) == 0);
	if (known != TW_MAP_NONE)
		return &requests->rows[known];
	if (requests->count == ROWS_MAX)
		return NULL;
	if (!tw_grow(requests->rows, requests->count, requests->capacity))
		return NULL;
	struct tw_request *row = &requests->rows[requests->count];
	*row = (struct tw_request){.label = strdup(text),
				   .first_ns = UINT64_MAX,
				   .first_serial = INT64_MAX,
				   .last_serial = INT64_MIN};
	row->shown = tw_seq_label_shown(label);
	if (tw_seq_trace_id(label, (struct tw_term){0}, row->trace_id) || !row->label || !row->shown ||
	    !tw_map_add(&requests->by_label, key, requests->count)) {
		free(row->label);
		free(row->shown);
		return NULL;
	}
	requests->count++;
	return row;
}

static void count_process(struct tw_requests *requests, struct tw_request *row, const struct tw_seq_process *process)
{
	uint64_t number = (uint64_t)(row - requests->rows) << 1;
	if (process->node == TW_SEQ_NO_NODE)
		return;
	uint64_t node = tw_hash_word(number, process->node);
	row->nodes += is_first(requests, node);
	row->processes +=
		is_first(requests,
			 tw_hash_word(tw_hash_word(node + 1, (uint64_t)process->serial << 32 | process->number),
				      process->creation));
}

static bool on_event(void *context, const struct tw_seq_event *event)
{
	struct reading *reading = context;
	struct tw_request *row = find_row(reading->requests, event->label);
	if (!row) {
		reading->requests->left_out++;
		return true;
	}
	row->events++;
	row->sends += event->kind == TW_CAPTURE_SEQ_SEND;
	row->receives += event->kind == TW_CAPTURE_SEQ_RECEIVE;
	row->prints += event->kind == TW_CAPTURE_SEQ_PRINT;
	row->first_ns = event->time_ns < row->first_ns ? event->time_ns : row->first_ns;
	row->last_ns = event->time_ns > row->last_ns ? event->time_ns : row->last_ns;
	row->first_serial = event->current < row->first_serial ? event->current : row->first_serial;
	row->last_serial = event->current > row->last_serial ? event->current : row->last_serial;
	count_process(reading->requests, row, &event->from);
	if (event->kind != TW_CAPTURE_SEQ_PRINT)
		count_process(reading->requests, row, &event->to);
	return true;
}

static int by_first(const void *a, const void *b)
{
	const struct tw_request *left = a, *right = b;
	return TW_ORDER(left->first_ns, right->first_ns) ?: strcmp(left->label, right->label);
}

int tw_requests_make(struct tw_requests *requests, struct tw_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	struct reading reading = {.requests = requests};
	struct tw_seq_reader reader = {.nodes = &reading.nodes,
				       .from_ns = from_ns,
				       .to_ns = to_ns,
				       .event = on_event,
				       .context = &reading};
	*requests = (struct tw_requests){0};
	int error = tw_seq_nodes_make(&reading.nodes, capture);
	if (error == 0)
		error = tw_seq_read(&reader, capture);
	if (requests->count)
		qsort(requests->rows, requests->count, sizeof *requests->rows, by_first);
	requests->damaged = reader.damaged;
	tw_seq_nodes_free(&reading.nodes);
	return error;
}

void tw_requests_free(struct tw_requests *requests)
{
	for (uint32_t i = 0; i < requests->count; i++) {
		free(requests->rows[i].label);
		free(requests->rows[i].shown);
	}
	free(requests->rows);
	tw_map_fini(&requests->by_label);
	tw_map_fini(&requests->seen);
}
