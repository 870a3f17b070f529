/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - copies segments: definitions as they are, event blocks as they are or with other times. */
#include "pipeline/combine/copy.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define NODE_BYTES_MAX 64
#define NOTE_BYTES_MAX 1000

int tw_copy_init(struct tw_copy *copy)
{
	copy->encoder = tw_block_encoder_create();
	copy->index_decoder = tw_block_decoder_create();
	copy->decoder = tw_block_decoder_create();
	copy->raw = malloc(TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES);
	if (!copy->encoder || !copy->index_decoder || !copy->decoder || !copy->raw)
		return TW_ENOMEM;
	return getrandom(&copy->capture_id, sizeof copy->capture_id, 0) == sizeof copy->capture_id ? 0 : TW_EIO;
}

void tw_copy_fini(struct tw_copy *copy)
{
	tw_block_encoder_destroy(copy->encoder);
	tw_block_decoder_destroy(copy->index_decoder);
	tw_block_decoder_destroy(copy->decoder);
	free(copy->raw);
	free(copy->numbers);
}

/* ---- blocks ---- */

struct source {
	struct tw_copy *copy;
	struct tw_segment_file *file;
};

/* Seals a header whose stored bytes do not change. */
static void seal_header(struct tw_block_header *header)
{
	header->version = TW_FORMAT_VERSION;
	header->header_bytes = sizeof *header;
	header->header_checksum = tw_block_header_checksum(header);
}

/* A block that cannot be read: the totals of its segment still count its events, so that readers miss them. */
static int leave_out(struct tw_copy *copy, const struct tw_block_header *header)
{
	copy->result->damaged_blocks++;
	copy->result->damaged_events += header->event_count;
	copy->segment.totals.events += header->event_count;
	return 0;
}

static int write_events(struct tw_copy *copy, struct tw_block_header *header)
{
	const uint8_t *stored = tw_block_decoder_input(copy->decoder);
	struct tw_block_header as_read = *header;

	if (tw_checksum64(stored, header->stored_bytes) != header->payload_checksum)
		return leave_out(copy, header);
	if (header->ring_lease)
		header->ring_lease += copy->ring_lease_base;
	if (!copy->retime) {
		seal_header(header);
		copy->result->events += header->event_count;
		return tw_segment_append(&copy->segment, header, stored);
	}
	if (tw_block_decode_events(copy->decoder, header, copy->raw))
		return leave_out(copy, &as_read);
	tw_retime_records(copy->retime, header, copy->raw);
	header->clock = tw_retime_clock(copy->retime, &header->clock);
	if (tw_block_encode_events(copy->encoder, header, copy->raw, header->raw_bytes, &stored))
		return leave_out(copy, &as_read);
	copy->result->events += header->event_count;
	return tw_segment_append(&copy->segment, header, stored);
}

bool tw_copy_move_definition(const struct tw_copy *copy, const struct tw_definition_head *head, uint8_t *payload)
{
	struct tw_def_trigger trigger;
	uint64_t begin;
	struct tw_def_counted counted;
	struct tw_def_end end;

	if (head->type == TW_DEF_END && head->payload_bytes >= sizeof end) {
		memcpy(&end, payload, sizeof end);
		end.lease += end.lease ? copy->ring_lease_base : 0;
		end.ticks = copy->retime ? tw_retime_ticks(copy->retime, end.ticks) : end.ticks;
		memcpy(payload, &end, sizeof end);
		return true;
	}
	if (head->type == TW_DEF_TRIGGER && head->payload_bytes >= sizeof trigger && copy->retime) {
		memcpy(&trigger, payload, sizeof trigger);
		begin = tw_retime_ticks(copy->retime, trigger.ticks - tw_def_trigger_call_ticks(&trigger));
		trigger.ticks = tw_retime_ticks(copy->retime, trigger.ticks);
		tw_def_trigger_set_call_ticks(&trigger, trigger.ticks - begin);
		memcpy(payload, &trigger, sizeof trigger);
		return true;
	}
	if (head->type == TW_DEF_COUNTED && head->payload_bytes >= sizeof counted && copy->retime) {
		memcpy(&counted, payload, sizeof counted);
		counted.since_ticks = tw_retime_ticks(copy->retime, counted.since_ticks);
		memcpy(payload, &counted, sizeof counted);
		return true;
	}
	return false;
}

/* Gives definitions their new leases and times. Returns whether any has one; stops at damage. */
static bool move_definitions(struct tw_copy *copy, uint8_t *bytes, uint32_t count)
{
	struct tw_definition_head head;
	bool is_any = false;

	for (size_t at = 0; count - at >= sizeof head;) {
		memcpy(&head, bytes + at, sizeof head);
		at += sizeof head;
		if (head.payload_bytes > count - at)
			break;
		is_any |= tw_copy_move_definition(copy, &head, bytes + at);
		at += ((size_t)head.payload_bytes + 7) & ~(size_t)7;
		if (at > count)
			break;
	}
	return is_any;
}

/* Ends are outside the log, times are in it too. False: there are none, *stored is as it was. */
static bool rewrite_definitions(struct tw_copy *copy, struct tw_block_header *header, const uint8_t **stored)
{
	const uint8_t *bytes;
	uint32_t count;

	if (header->type != TW_BLOCK_DEFINITIONS || (header->first_pos != TW_FORMAT_OUTSIDE_LOG && !copy->retime) ||
	    tw_block_decode_definitions(copy->decoder, header, &bytes, &count) || count > TW_BLOCK_RAW_BYTES_MAX)
		return false;
	memcpy(copy->raw, bytes, count);
	if (!move_definitions(copy, copy->raw, count))
		return false;
	tw_block_encode_definitions(copy->encoder, header, copy->raw, count, stored);
	return true;
}

/* Definitions, losses and blocks of later versions. */
static int write_other(struct tw_copy *copy, struct tw_block_header *header)
{
	const uint8_t *stored = tw_block_decoder_input(copy->decoder);

	if (tw_checksum64(stored, header->stored_bytes) != header->payload_checksum)
		return leave_out(copy, header);
	if (header->ring_lease)
		header->ring_lease += copy->ring_lease_base;
	if (copy->retime) {
		header->clock = tw_retime_clock(copy->retime, &header->clock);
		if (header->type == TW_BLOCK_LOSS) {
			header->first_ticks = tw_retime_ticks(copy->retime, header->first_ticks);
			header->last_ticks = tw_retime_ticks(copy->retime, header->last_ticks);
		}
	}
	if (!rewrite_definitions(copy, header, &stored))
		seal_header(header);
	return tw_segment_append(&copy->segment, header, stored);
}

static int visit_block(void *context, uint64_t offset, const struct tw_block_header *header)
{
	struct source *source = context;
	struct tw_copy *copy = source->copy;
	struct tw_block_header copied = *header;
	int error = tw_segment_read(source->file, offset, header, copy->decoder);

	/* The index is made anew, and so is the account. */
	if (header->type == TW_BLOCK_INDEX || header->type == TW_BLOCK_ACCOUNT || header->type == TW_BLOCK_MARK)
		return 0;
	if (error == TW_EFORMAT)
		return leave_out(copy, header);
	if (!error)
		error = header->type == TW_BLOCK_EVENTS ? write_events(copy, &copied) : write_other(copy, &copied);
	if (!error && copy->options->progress)
		copy->options->progress(copy->options->context, copy->result->events);
	return error;
}

static void ignore_damage(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason)
{
	struct source *source = context;

	source->copy->result->damaged_blocks++;
}

/* ---- what merging adds ---- */

void tw_copy_put_definition(uint8_t *bytes, uint32_t *used, uint32_t type, const void *fixed, size_t fixed_bytes,
			    const char *text, size_t text_bytes)
{
	const struct tw_definition_head head = {type, (uint32_t)(fixed_bytes + text_bytes)};

	memcpy(bytes + *used, &head, sizeof head);
	memcpy(bytes + *used + sizeof head, fixed, fixed_bytes);
	memcpy(bytes + *used + sizeof head + fixed_bytes, text, text_bytes);
	*used += (uint32_t)((sizeof head + head.payload_bytes + 7) / 8 * 8);
}

/* The node, and in notes how its time was found. */
static int write_node(struct tw_copy *copy, const struct tw_format_clock *clock)
{
	const char *node = copy->input->node ? copy->input->node : "", *note = copy->input->note;
	struct tw_def_node def = {.shown_bytes = (uint16_t)strnlen(node, NODE_BYTES_MAX)};
	struct tw_def_note text = {.text_bytes = (uint16_t)(note ? strnlen(note, NOTE_BYTES_MAX) : 0)};
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					 .first_pos = TW_FORMAT_OUTSIDE_LOG,
					 .end_pos = TW_FORMAT_OUTSIDE_LOG,
					 .clock = *clock};
	uint8_t bytes[2048] = {0};
	const uint8_t *stored;
	uint32_t used = 0;

	tw_copy_put_definition(bytes, &used, TW_DEF_NODE, &def, sizeof def, node, def.shown_bytes);
	if (text.text_bytes)
		tw_copy_put_definition(bytes, &used, TW_DEF_NOTE, &text, sizeof text, note, text.text_bytes);
	tw_block_encode_definitions(copy->encoder, &header, bytes, used, &stored);
	return tw_segment_append(&copy->segment, &header, stored);
}

int tw_copy_account(struct tw_copy *copy, const struct tw_format_clock *clock)
{
	struct tw_block_header header = {.type = TW_BLOCK_ACCOUNT, .clock = *clock};
	struct tw_format_account entries[TW_ACCOUNT_CAUSES];
	const uint8_t *stored;
	uint32_t count = 0;

	copy->has_account = true;
	for (uint32_t cause = 1; cause < TW_ACCOUNT_CAUSES; cause++) {
		if (copy->account[cause])
			entries[count++] = (struct tw_format_account){cause, 0, copy->account[cause]};
	}
	if (!count)
		return 0;
	tw_block_encode_bytes(copy->encoder, &header, entries, (uint32_t)(count * sizeof *entries), &stored);
	return tw_segment_append(&copy->segment, &header, stored);
}

/* ---- segments ---- */

struct tw_segment_header tw_copy_header(struct tw_copy *copy, const struct tw_segment_header *from)
{
	struct tw_segment_header header = *from;

	header.capture_id = copy->capture_id;
	if (header.image_lease)
		header.image_lease += copy->image_lease_base;
	if (!copy->retime)
		return header;
	header.clock_source = TW_CLOCK_MONOTONIC;
	header.ticks_per_second = 1000000000;
	header.image_start_ticks = tw_retime_ticks(copy->retime, header.image_start_ticks);
	header.clock = tw_retime_clock(copy->retime, &header.clock);
	if (header.first_event_ns)
		header.first_event_ns =
			tw_retime_ns(copy->retime,
				     header.first_event_ns + (uint64_t)copy->retime->capture->clock_shift_ns);
	return header;
}

int tw_copy_seal(struct tw_copy *copy)
{
	struct tw_segment_sealed sealed;
	int error;

	if (!tw_grow(copy->numbers, copy->number_count, copy->number_capacity)) {
		tw_segment_abandon(&copy->segment);
		return TW_ENOMEM;
	}
	error = tw_segment_seal(&copy->segment, copy->encoder, &sealed);
	if (error)
		return error;
	error = tw_segment_sync_file(sealed.io, sealed.fd);
	close(sealed.fd);
	copy->numbers[copy->number_count++] = sealed.number;
	return error;
}

static int copy_segment(struct tw_copy *copy, struct tw_source_file *from, struct tw_segment_file *file)
{
	struct source source = {copy, file};
	const struct tw_segment_visitor visitor = {visit_block, ignore_damage, &source};
	struct tw_segment_header header = tw_copy_header(copy, &file->header);
	struct tw_segment_found found = {0};
	int error;

	if (from->number > UINT32_MAX - copy->segment_base)
		return TW_ELIMIT;
	copy->segment = (struct tw_segment){.fd = -1,
					    .directory_fd = copy->directory_fd,
					    .number = copy->segment_base + from->number,
					    .io = &tw_segment_system_io};
	error = tw_segment_create(&copy->segment, &header);
	if (error)
		return error;
	error = write_node(copy, &header.clock);
	if (!error && !copy->has_account)
		error = tw_copy_account(copy, &header.clock);
	if (!error)
		error = tw_segment_list(file, copy->index_decoder, &visitor, &found);
	if (!error && !found.is_closed)
		error = TW_EFORMAT;
	if (error) {
		tw_segment_abandon(&copy->segment);
		return error;
	}
	copy->segment.totals.ending = found.totals.ending;
	error = tw_copy_seal(copy);
	copy->result->segments += error == 0;
	return error;
}

int tw_copy_input(struct tw_copy *copy)
{
	struct tw_capture *capture = copy->input->capture;
	int error = 0;

	for (uint32_t i = 0; i < capture->file_count && !error; i++) {
		struct tw_segment_file *file;

		if (!capture->files[i].is_listed)
			continue;
		file = tw_source_use_file(capture, i);
		if (!file)
			return TW_EIO;
		error = copy_segment(copy, &capture->files[i], file);
		tw_source_unuse_file(capture, i);
	}
	return error;
}
