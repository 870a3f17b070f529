/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c - see lengths.h. */
#include "views/folds/lengths.h"
#include "base/grow.h"
#include "base/search.h"

#include <stdlib.h>

static uint32_t column_of(const struct tw_lengths *lengths, uint64_t ns)
{
	uint64_t all = lengths->to_ns > lengths->from_ns ? lengths->to_ns - lengths->from_ns : 1;
	uint64_t at = ns > lengths->from_ns ? ns - lengths->from_ns : 0;
	uint64_t column = (uint64_t)((double)at / (double)all * TW_LENGTHS_COLUMNS);
	return column < TW_LENGTHS_COLUMNS ? (uint32_t)column : TW_LENGTHS_COLUMNS - 1;
}

/* Adds the time with the present length. */
static void charge(const struct tw_lengths *lengths, struct tw_length *row, uint64_t now_ns)
{
	if (row->since_ns && row->now) {
		row->area += (double)row->now * (double)(now_ns > row->since_ns ? now_ns - row->since_ns : 0);
		for (uint32_t i = column_of(lengths, row->since_ns), end = column_of(lengths, now_ns); i <= end; i++)
			row->columns[i] = row->columns[i] > row->now ? row->columns[i] : row->now;
	}
	row->since_ns = now_ns;
}

/* The user data of a process is its row + 1. */
static void on_length(void *context, struct tw_mailbox_process *process, uint64_t now_ns)
{
	struct tw_lengths *lengths = context;
	if (!process->user) {
		if (lengths->count >= TW_LENGTHS_MAX || !tw_grow(lengths->rows, lengths->count, lengths->capacity)) {
			lengths->left_out++;
			return;
		}
		lengths->rows[lengths->count] = (struct tw_length){.process = process->number};
		process->user = (void *)(uintptr_t)++lengths->count;
	}
	struct tw_length *row = &lengths->rows[(uintptr_t)process->user - 1];
	charge(lengths, row, now_ns);
	row->now = process->count;
	if (row->now > row->max) {
		row->max = row->now;
		row->max_at_ns = now_ns;
	}
	uint32_t *column = &row->columns[column_of(lengths, now_ns)];
	*column = *column > row->now ? *column : row->now;
}

bool tw_lengths_init(struct tw_lengths *lengths, const struct tw_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	*lengths = (struct tw_lengths){.from_ns = from_ns, .to_ns = to_ns};
	int error = tw_mailboxes_init(&lengths->mailboxes, capture, 0);
	lengths->mailboxes.calls = (struct tw_mailbox_calls){.length = on_length, .context = lengths};
	return !error;
}

bool tw_lengths_event(struct tw_lengths *lengths, const struct tw_capture_event *event)
{
	return !lengths->mailboxes.has_takes || tw_mailboxes_event(&lengths->mailboxes, event);
}

static int by_length(const void *a, const void *b)
{
	const struct tw_length *x = a, *y = b;
	return TW_ORDER(y->max, x->max) ?: TW_ORDER(y->area, x->area);
}

void tw_lengths_finish(struct tw_lengths *lengths)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < lengths->count; i++) {
		/* A process that never took a message does not report its mailbox. */
		const struct tw_mailbox_process *process = lengths->mailboxes.processes[lengths->rows[i].process];
		if (!process->taken && !process->has_waited)
			continue;
		charge(lengths, &lengths->rows[i], lengths->mailboxes.last_ns);
		lengths->rows[kept++] = lengths->rows[i];
	}
	lengths->count = kept;
	if (kept)
		qsort(lengths->rows, kept, sizeof *lengths->rows, by_length);
}

void tw_lengths_free(struct tw_lengths *lengths)
{
	tw_mailboxes_free(&lengths->mailboxes);
	free(lengths->rows);
	*lengths = (struct tw_lengths){0};
}
