/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_counts.c - writes the counts and aggregates of calls that are counted and not recorded (ringbuf/counts.h) into segments.
 *
 * The numbers of a row only grow, and a reader takes the largest: they may be written any number of times, also by a recovery of what a
 * recorder has written before.
 */
#include "base/error.h"
#include "pipeline/format/definitions.h"
#include "pipeline/recorder/writer.h"

#include <stdlib.h>
#include <string.h>

/* Records are collected up to this size. */
#define RECORDS_BYTES (UINT64_C(128) << 10)

struct telling {
	struct tw_writer *writer;
	uint32_t image;
	uint8_t *records;
	uint32_t bytes;
	uint64_t thread_lease; /* of the row whose thread was defined last */
	uint64_t calls, recorded;
};

struct counts_record {
	struct tw_def_counts head;
	struct tw_def_count pairs[TW_RS_COUNT_GROUP];
};

struct aggregates_record {
	struct tw_def_aggregates head;
	struct tw_def_aggregate rows[TW_RS_AGGREGATES];
};

/* The most that one block of counters adds. */
#define BLOCK_BYTES_MAX (sizeof(struct counts_record) + TW_DEF_THREAD_BYTES_MAX + 64)
_Static_assert(sizeof(struct aggregates_record) <= sizeof(struct counts_record), "nor does one of aggregates add more");

static void put(struct telling *telling, uint32_t type, const void *payload, size_t bytes)
{
	telling->bytes += (uint32_t)tw_writer_put_record(telling->records + telling->bytes, type, payload, bytes);
}

static int flush(struct telling *telling)
{
	struct tw_writer *writer = telling->writer;
	int error = telling->bytes ? tw_writer_define_outside(writer, &writer->images[telling->image], telling->records,
							      telling->bytes)
				   : 0;

	telling->bytes = 0;
	return error;
}

/* A ring defines its thread too, with the newest name; the name of a row is that of its beginning while the thread lives. */
static bool has_ring(const struct telling *telling, uint32_t tracee_id)
{
	const struct tw_writer *writer = telling->writer;
	uint32_t at = tw_rs_image(&writer->rs, telling->image)->first_ring;

	while (at != UINT32_MAX && writer->rings[at].own_tracee_id != tracee_id)
		at = writer->rs.rings[at].next;
	return at != UINT32_MAX;
}

static void put_thread(struct telling *telling, const struct tw_rs_seen_counts *counts)
{
	uint8_t payload[TW_DEF_THREAD_BYTES_MAX];

	if (counts->lease == telling->thread_lease || !counts->is_own_tracee || !counts->tracee_id)
		return;
	telling->thread_lease = counts->lease;
	if (!has_ring(telling, counts->tracee_id))
		put(telling, TW_DEF_TRACEE, payload,
		    tw_def_thread(payload, counts->tracee_id, counts->thread_id, counts->thread_name));
}

/* Defines these places and the thread, and makes room for a record. */
static int prepare(struct telling *telling, const struct tw_rs_seen_counts *row, const uint32_t *places, uint32_t count)
{
	int error = tw_writer_define_places(telling->writer, telling->image, places, count);

	if (!error && telling->bytes + BLOCK_BYTES_MAX > RECORDS_BYTES)
		error = flush(telling);
	if (!error)
		put_thread(telling, row);
	return error;
}

/* A count that no program reaches was forged. */
static bool is_forged(uint64_t count)
{
	return count > TW_RB_LOST_MAX;
}

static int put_counts(void *arg, const struct tw_rs_seen_counts *counts)
{
	struct telling *telling = arg;
	struct counts_record record = {.head = {.lease = counts->lease, .tracee_id = counts->tracee_id}};
	uint32_t ids[TW_RS_COUNT_GROUP], n = 0;
	uint64_t calls = 0;
	int error;

	for (uint32_t i = 0; i < TW_RS_COUNT_GROUP; i++) {
		if (!counts->words[i] || is_forged(counts->words[i]))
			continue;
		ids[n] = counts->first_place + i;
		record.pairs[n] = (struct tw_def_count){ids[n], counts->words[i]};
		calls += counts->words[i];
		n++;
	}
	if (!n)
		return 0;
	error = prepare(telling, counts, ids, n);
	if (error)
		return error;
	record.head.pair_count = n;
	put(telling, counts->is_recorded ? TW_DEF_RECORDED_COUNTS : TW_DEF_COUNTS, &record,
	    sizeof record.head + n * sizeof record.pairs[0]);
	telling->calls += counts->is_recorded ? 0 : calls;
	telling->recorded += counts->is_recorded ? calls : 0;
	return 0;
}

/* All of a program have one aggregation. */
static int put_aggregates(void *arg, const struct tw_rs_seen_counts *row, const struct tw_rs_aggregate *seen,
			  uint32_t count)
{
	struct telling *telling = arg;
	struct aggregates_record record = {.head = {.lease = row->lease, .tracee_id = row->tracee_id}};
	uint32_t ids[TW_RS_AGGREGATES], n = 0;
	int error;

	memcpy(record.head.aggregation, seen->aggregation, sizeof record.head.aggregation);
	for (uint32_t i = 0; i < count; i++) {
		/* RELAXED count.add: a copy. */
		uint64_t calls = tw_load_relaxed(&seen[i].count), sum = tw_load_relaxed(&seen[i].sum);

		if (is_forged(calls) ||
		    memcmp(seen[i].aggregation, record.head.aggregation, sizeof record.head.aggregation) != 0)
			continue;
		ids[n] = seen[i].place_id;
		record.rows[n++] = (struct tw_def_aggregate){.place_id = seen[i].place_id,
							     .is_rest = seen[i].is_rest != 0,
							     .key = seen[i].key,
							     .number = seen[i].number,
							     .count = calls,
							     .sum = sum};
	}
	error = n ? prepare(telling, row, ids, n) : 0;
	if (error || !n)
		return error;
	record.head.row_count = n;
	put(telling, TW_DEF_AGGREGATES, &record, sizeof record.head + n * sizeof record.rows[0]);
	return 0;
}

/* @is_last: of each row, but for a write that failed. */
static int tell(struct tw_writer *writer, uint32_t index, const struct tw_rs_count_choice *choice, bool is_last)
{
	struct telling telling = {.writer = writer, .image = index, .records = malloc(RECORDS_BYTES)};
	int error = telling.records ? tw_writer_definitions(writer, index) : TW_ENOMEM;

	if (!error)
		error = tw_rs_counts_each(&writer->rs, index, choice, put_counts, &telling);
	if (!error)
		error = tw_rs_aggregates_each(&writer->rs, index, choice, put_aggregates, &telling);
	if (!error)
		error = flush(&telling);
	if (is_last && telling.calls > telling.recorded)
		writer->store.stats.counted_calls += telling.calls - telling.recorded;
	free(telling.records);
	return error;
}

int tw_writer_tell_counts(struct tw_writer *writer, uint32_t index, bool is_last)
{
	struct tw_rs_count_choice choice;

	if (!tw_rs_counts_are_there(&writer->rs, index))
		return 0;
	tw_rs_counts_choose(&writer->rs, index, false, &choice);
	return tell(writer, index, &choice, is_last);
}

int tw_writer_tell_ended_counts(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];
	uint32_t ended = tw_rs_counts_ended(&writer->rs, index);
	struct tw_rs_count_choice choice;
	int error;

	if (ended == image->count_rows_reported || writer->store.segments_kept)
		return 0;
	tw_rs_counts_choose(&writer->rs, index, true, &choice);
	error = choice.count ? tell(writer, index, &choice, true) : 0;
	if (error)
		return error;
	image->count_rows_reported = ended;
	if (!writer->is_dead)
		tw_rs_counts_recycle(&writer->rs, index, &choice);
	return 0;
}
