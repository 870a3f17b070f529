/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - the requests of a capture: its labels, each with sums. */
#include "tools/seq/trace.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

#define ROWS_MAX (UINT32_C(1) << 20)
#define SLOTS	 (UINT32_C(1) << 16)
#define NONE	 UINT32_MAX
#define SEEN_MAX ((size_t)1 << 24)

struct reading {
	struct tw_requests *requests;
	struct tw_seq_nodes nodes;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t hash = (a ^ b * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
	return hash ^ hash >> 32;
}

/* Is it the first time? A pair of hashes is taken for the same process. */
static bool is_first(struct tw_requests *requests, uint64_t key)
{
	key |= 1;
	if (requests->seen_count * 2 >= requests->seen_capacity) {
		size_t capacity = requests->seen_capacity ? requests->seen_capacity * 2 : 1024;
		uint64_t *grown = capacity <= SEEN_MAX ? calloc(capacity, sizeof *grown) : NULL;
		if (!grown) {
			requests->is_unsure = true;
			return false;
		}
		for (size_t i = 0; i < requests->seen_capacity; i++) {
			size_t at = requests->seen[i] >> 1 & (capacity - 1);
			while (requests->seen[i] && grown[at])
				at = (at + 1) & (capacity - 1);
			if (requests->seen[i])
				grown[at] = requests->seen[i];
		}
		free(requests->seen);
		requests->seen = grown;
		requests->seen_capacity = capacity;
	}
	size_t at = key >> 1 & (requests->seen_capacity - 1);
	for (; requests->seen[at]; at = (at + 1) & (requests->seen_capacity - 1)) {
		if (requests->seen[at] == key)
			return false;
	}
	requests->seen[at] = key;
	requests->seen_count++;
	return true;
}

static struct tw_request *find_row(struct tw_requests *requests, struct tw_term label)
{
	char text[TW_LABEL_BYTES];
	uint32_t slot = (uint32_t)tw_term_hash(label) & (SLOTS - 1);
	tw_term_format(label, TW_PRINT_WRITE, text, sizeof text);
	for (uint32_t at = requests->slots[slot]; at != NONE; at = requests->rows[at].next) {
		if (strcmp(requests->rows[at].label, text) == 0)
			return &requests->rows[at];
	}
	if (requests->count == ROWS_MAX)
		return NULL;
	if (!tw_grow(requests->rows, requests->count, requests->capacity))
		return NULL;
	struct tw_request *row = &requests->rows[requests->count];
	*row = (struct tw_request){.label = strdup(text), .first_ns = UINT64_MAX, .next = requests->slots[slot]};
	tw_term_format(label, TW_PRINT_PRETTY, text, sizeof text);
	row->shown = strdup(text);
	if (!row->label || !row->shown) {
		free(row->label);
		free(row->shown);
		return NULL;
	}
	requests->slots[slot] = requests->count++;
	return row;
}

static void count_process(struct tw_requests *requests, struct tw_request *row, const struct tw_seq_process *process)
{
	uint64_t number = (uint64_t)(row - requests->rows) << 1;
	if (process->node == TW_SEQ_NO_NODE)
		return;
	uint64_t node = mix(number, process->node);
	row->nodes += is_first(requests, node);
	row->processes += is_first(requests, mix(node + 1, (uint64_t)process->serial << 32 | process->number) ^
						     mix(process->creation, 7));
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
	count_process(reading->requests, row, &event->from);
	if (event->kind != TW_CAPTURE_SEQ_PRINT)
		count_process(reading->requests, row, &event->to);
	return true;
}

static int by_first(const void *a, const void *b)
{
	const struct tw_request *left = a, *right = b;
	if (left->first_ns != right->first_ns)
		return left->first_ns < right->first_ns ? -1 : 1;
	return strcmp(left->label, right->label);
}

int tw_requests_make(struct tw_requests *requests, struct tw_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	struct reading reading = {.requests = requests};
	struct tw_seq_reader reader = {.nodes = &reading.nodes,
				       .from_ns = from_ns,
				       .to_ns = to_ns,
				       .event = on_event,
				       .context = &reading};
	*requests = (struct tw_requests){.slots = malloc(SLOTS * sizeof *requests->slots)};
	int error = requests->slots ? tw_seq_nodes_make(&reading.nodes, capture) : TW_ENOMEM;
	if (error == 0) {
		memset(requests->slots, 0xff, SLOTS * sizeof *requests->slots);
		error = tw_seq_read(&reader, capture);
	}
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
	free(requests->slots);
	free(requests->seen);
}
