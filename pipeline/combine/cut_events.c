/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_events.c - the selected records of each stream, in new blocks.
 *
 * Positions and sequence numbers of a stream begin at 0, so that what was left out is not taken for missing. The tracee
 * that a record belongs to is that of the block, or of a switch record, which is made where the original one is not in the
 * selection.
 */
#include "base/error.h"
#include "base/search.h"
#include "pipeline/combine/cutting.h"
#include "pipeline/reader/scan.h"

/* A tracee, and its run. */
struct run {
	uint64_t run_seq;
	uint32_t tracee_id;
};

/* One stream that is written. */
struct lease {
	struct tw_cutting *cutting;
	uint32_t stream;
	struct tw_block_header next; /* of the next block: what precedes it */
	struct run written;	     /* after the records so far */
	uint32_t used;		     /* bytes of records that wait for a block */
	size_t before;		     /* index of the next event from before the selection */
	bool is_kept;		     /* the last call was */
};

static bool is_in_time(const struct tw_cutting *cutting, uint64_t first_ns, uint64_t last_ns)
{
	const struct tw_capture_filter *filter = &cutting->options->filter;

	return last_ns >= filter->from_ns && (!filter->to_ns || first_ns < filter->to_ns);
}

/* Is a record of it kept? */
static bool has_begun(const struct lease *lease)
{
	return lease->used || lease->next.first_pos;
}

/* ---- writing ---- */

static int flush(struct lease *lease)
{
	struct tw_copy *copy = &lease->cutting->copy;
	struct tw_block_header header = lease->next;
	const uint8_t *stored;
	int error;

	if (!lease->used)
		return 0;
	header.end_pos = header.first_pos + lease->used;
	error = tw_block_encode_events(copy->encoder, &header, lease->cutting->records, lease->used, &stored);
	if (!error)
		error = tw_segment_append(&copy->segment, &header, stored);
	if (error)
		return error;
	lease->cutting->result->events += header.event_count;
	lease->next.first_pos = header.end_pos;
	lease->next.first_sequence = header.end_sequence;
	memcpy(lease->next.lost, header.lost, sizeof header.lost);
	memcpy(lease->next.own, header.own, sizeof header.own);
	lease->used = 0;
	if (lease->cutting->options->progress)
		lease->cutting->options->progress(lease->cutting->options->context, lease->cutting->result->events);
	return 0;
}

static int append(struct lease *lease, const void *record, uint32_t bytes)
{
	int error = bytes > TW_BLOCK_RAW_BYTES_MAX - lease->used ? flush(lease) : 0;

	if (error)
		return error;
	if (!lease->used) {
		lease->next.tracee_id = lease->written.tracee_id;
		lease->next.run_seq = lease->written.run_seq;
	}
	memcpy(lease->cutting->records + lease->used, record, bytes);
	lease->used += bytes;
	return 0;
}

/* Writes a record that belongs to the run. */
static int keep(struct lease *lease, const uint8_t *record, const struct run *run)
{
	uint64_t head = tw_record_head(record), words[4] = {0};
	bool is_switch = TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH;
	int error = 0;

	if (!is_switch && (run->tracee_id != lease->written.tracee_id || run->run_seq != lease->written.run_seq)) {
		words[0] = tw_get64(record);
		words[1] = TW_RB_HEAD(TW_EVENT_SWITCH, TW_EVENT_FLAG_HALF, sizeof words, run->tracee_id);
		words[2] = run->run_seq;
		if (has_begun(lease))
			error = append(lease, words, sizeof words);
		lease->written = *run;
	}
	if (!error)
		error = append(lease, record, TW_RB_HEAD_BYTES(head));
	lease->written = *run;
	return error;
}

/* ---- what is kept ---- */

/* Is it one of the events from before the selection? */
static bool is_before(struct lease *lease, uint64_t sequence)
{
	const struct tw_cut_options *options = lease->cutting->options;
	const struct tw_cut_event *events = options->before;

	while (lease->before < options->before_count && events[lease->before].stream == lease->stream &&
	       events[lease->before].sequence < sequence)
		lease->before++;
	return lease->before < options->before_count && events[lease->before].stream == lease->stream &&
	       events[lease->before].sequence == sequence;
}

/* As events.c: kinds of calls by their places. */
static bool is_place_wanted(const struct lease *lease, unsigned kind, uint32_t place)
{
	const struct tw_cutting *cutting = lease->cutting;

	return !cutting->places || kind < TW_EVENT_CALL || kind > TW_EVENT_STACK ||
	       tw_map_get(&cutting->places[cutting->capture->streams[lease->stream].info.image], place) != TW_MAP_NONE;
}

/*
 * The record has its new times. Time of the tracer's own that reaches into the selection, or lies within a call that is open
 * at its beginning, belongs to times that are shown.
 */
static bool is_kept(struct lease *lease, const uint8_t *record, uint64_t sequence)
{
	uint64_t head = tw_record_head(record), ns = tw_get64(record);
	unsigned kind = TW_RB_HEAD_KIND(head) & (TW_EVENT_CPU_TIME - 1);
	bool is_earlier = ns < lease->cutting->options->filter.from_ns;
	bool is_stack = kind == TW_EVENT_STACK && is_earlier;

	if (kind == TW_EVENT_OWN_TIME)
		return (is_earlier && has_begun(lease)) ||
		       is_in_time(lease->cutting, ns,
				  ns + (tw_event_payload_words(head) ? tw_get64(record + TW_CODEC_HEAD_BYTES) : 0));

	/* The callers of a call follow it. */
	lease->is_kept = is_stack ? lease->is_kept : is_earlier && is_before(lease, sequence);
	if (lease->is_kept) {
		lease->cutting->result->before += kind != TW_EVENT_THREAD_STATE;
		return true;
	}
	if (kind == TW_EVENT_LOSS)
		return is_in_time(lease->cutting, tw_get64(record + TW_CODEC_HEAD_BYTES), ns);
	return is_in_time(lease->cutting, ns, ns) && is_place_wanted(lease, kind, TW_RB_HEAD_ID(head));
}

/* Replaces text of a record whose place is that of a function with a layout of arguments. */
static void redact(const struct tw_cutting *cutting, uint32_t image, uint8_t *record)
{
	uint64_t head = tw_record_head(record);
	const struct tw_capture_place *place =
		tw_event_names_place(head) ? tw_capture_place(cutting->capture, image, TW_RB_HEAD_ID(head)) : NULL;

	tw_redact_record(cutting->redact,
			 place && place->function
				 ? tw_capture_layout(cutting->capture, image, place->function->function_id)
				 : NULL,
			 record);
}

/* The record as it is written. */
static const uint8_t *stripped(struct tw_cutting *cutting, uint32_t stream, uint8_t *record)
{
	if (cutting->redact)
		redact(cutting, cutting->capture->streams[stream].info.image, record);
	if (!cutting->options->is_stripped)
		return record;
	tw_strip_record(&cutting->arena, record, cutting->stripped);
	return cutting->stripped;
}

/* A block with its records is in copy->raw, its times not yet new. */
static int cut_block(struct lease *lease, const struct tw_source_block *block)
{
	struct tw_copy *copy = &lease->cutting->copy;
	struct tw_block_header header = block->header;
	struct tw_scan_start start = tw_scan_start(block, copy->raw);
	struct run run = {start.run_seq, start.tracee_id};
	uint64_t sequence = start.sequence;
	int error = 0;

	tw_retime_records(copy->retime, &header, copy->raw);
	lease->next.clock = tw_retime_clock(copy->retime, &header.clock);
	memcpy(lease->next.thread_name, header.thread_name, sizeof header.thread_name);
	for (uint8_t *record = copy->raw + (start.first - copy->raw);
	     record < copy->raw + header.raw_bytes && !error;) {
		uint64_t head = tw_record_head(record), step = tw_scan_sequence_step(record);

		if (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH)
			run = (struct run){tw_get64(record + TW_CODEC_HEAD_BYTES), TW_RB_HEAD_ID(head)};
		if (is_kept(lease, record, sequence))
			error = keep(lease, stripped(lease->cutting, lease->stream, record), &run);
		sequence += step;
		record += TW_RB_HEAD_BYTES(head);
	}
	return error;
}

/* ---- blocks and streams ---- */

/* Does the block hold anything of the selection? */
static bool has_any(const struct tw_cutting *cutting, const struct tw_source_block *block)
{
	const struct tw_block_header *header = &block->header;
	const struct tw_cut_options *options = cutting->options;

	if (!cutting->streams[block->stream])
		return false;
	if (tw_scan_wants_block(cutting->capture, &options->filter, header))
		return true;
	size_t at = tw_search(i, options->before_count,
			      options->before[i].stream < block->stream ||
				      (options->before[i].stream == block->stream &&
				       options->before[i].sequence < header->first_sequence));

	return at < options->before_count && options->before[at].stream == block->stream &&
	       options->before[at].sequence < header->end_sequence;
}

bool tw_cutting_has_events(const struct tw_cutting *cutting, uint32_t image)
{
	const struct tw_capture *capture = cutting->capture;

	for (uint32_t i = 0; i < capture->block_count; i++) {
		if (capture->streams[capture->blocks[i].stream].info.image == image &&
		    has_any(cutting, &capture->blocks[i]))
			return true;
	}
	return tw_capture_no_ring_lost(capture, image, cutting->options->filter.from_ns,
				       cutting->options->filter.to_ns) != 0;
}

/* The first block's statements about its stream. */
static struct tw_block_header header_of(const struct tw_block_header *first)
{
	struct tw_block_header header = {.thread_id = first->thread_id,
					 .session_index = first->session_index,
					 .scheduler_id = first->scheduler_id,
					 .ring_lease = first->ring_lease,
					 .thread_start = first->thread_start};

	return header;
}

/* The last state is known to the end of the part, where that is before the end of the stream. */
static int end_states(struct lease *lease, const struct tw_capture_stream *stream)
{
	uint64_t to_ns = lease->cutting->options->filter.to_ns;
	const uint64_t words[2] = {to_ns < stream->end_ns ? to_ns : stream->end_ns,
				   TW_RB_HEAD(TW_EVENT_THREAD_STATE, 0, sizeof words, TW_CAPTURE_STATE_UNKNOWN)};

	return stream->is_of_states && to_ns && has_begun(lease) ? append(lease, words, sizeof words) : 0;
}

static int cut_stream(struct tw_cutting *cutting, uint32_t number)
{
	struct tw_capture *capture = cutting->capture;
	const struct tw_source_stream *stream = &capture->streams[number];
	const struct tw_source_block *blocks = capture->blocks + stream->first_block;
	struct lease lease = {.cutting = cutting, .stream = number};
	int error = 0;

	lease.next = header_of(&blocks->header);
	while (lease.before < cutting->options->before_count && cutting->options->before[lease.before].stream < number)
		lease.before++;
	for (uint32_t i = 0; i < stream->block_count && !error; i++) {
		if (!has_any(cutting, &blocks[i]) && !(blocks[i].header.own_count && has_begun(&lease)))
			continue;
		error = tw_source_load(capture, &blocks[i], cutting->copy.decoder, cutting->copy.raw);
		if (!error) {
			error = cut_block(&lease, &blocks[i]);
			continue;
		}
		tw_source_note_block(capture, &blocks[i], error);
		cutting->result->damaged_blocks++;
		cutting->result->damaged_events += blocks[i].header.event_count;
		cutting->copy.segment.totals.events += blocks[i].header.event_count;
		error = error == TW_EFORMAT || error == TW_EIO ? 0 : error;
	}
	if (!error)
		error = end_states(&lease, &stream->info);
	return error ? error : flush(&lease);
}

/* Losses without a ring: numbers in blocks grow. */
static int cut_losses(struct tw_cutting *cutting, const struct tw_source_image *image)
{
	struct tw_copy *copy = &cutting->copy;
	struct tw_block_header header = {.type = TW_BLOCK_LOSS};
	int error = 0;

	for (uint32_t i = 0; i < image->loss_count && !error; i++) {
		const struct tw_rb_loss_record *loss = &image->losses[i];
		const uint8_t *stored;

		header.last_ticks = tw_retime_ticks(copy->retime, loss->record.ticks);
		header.first_ticks = tw_retime_ticks(copy->retime, loss->first_ticks);
		if (!is_in_time(cutting, header.first_ticks, header.last_ticks))
			continue;
		header.lost[TW_RB_LOST_NO_RING] += loss->lost[TW_RB_LOST_NO_RING];
		header.clock = tw_retime_clock(copy->retime, &(struct tw_format_clock){.ticks = loss->record.ticks});
		tw_block_encode_bytes(copy->encoder, &header, NULL, 0, &stored);
		error = tw_segment_append(&copy->segment, &header, stored);
	}
	return error;
}

int tw_cutting_events(struct tw_cutting *cutting, uint32_t image)
{
	const struct tw_capture *capture = cutting->capture;
	int error = cut_losses(cutting, capture->images[image]);

	for (uint32_t i = 0; i < capture->stream_count && !error; i++) {
		if (capture->streams[i].info.image == image && capture->streams[i].block_count && cutting->streams[i])
			error = cut_stream(cutting, i);
	}
	return error;
}
