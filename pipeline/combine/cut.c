/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c - cut.h: a part of a capture as a capture of its own.
 *
 * Each image with events in the part gets one segment: its definitions from all segments that are here, then its events.
 * Times become nanoseconds of CLOCK_MONOTONIC, as in a merged capture: they stay exactly what they were, although the new
 * capture has fewer readings of the clocks.
 */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/combine/cutting.h"
#include "pipeline/combine/target.h"
#include "pipeline/format/definitions.h"
#include "pipeline/reader/scan.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- definitions ---- */

struct source {
	struct tw_cutting *cutting;
	uint32_t image;
	struct tw_segment_file *file;
	uint32_t file_number;
	bool is_first; /* the image's first segment that is here: what it repeats stands nowhere else */
};

static bool is_place_wanted(const struct tw_cutting *cutting, uint32_t image, uint64_t place)
{
	return !cutting->places || tw_map_get(&cutting->places[image], place) != TW_MAP_NONE;
}

/* Counts of places that are not selected become none. */
static void select_counts(const struct tw_cutting *cutting, uint32_t image, uint8_t *payload, uint32_t bytes)
{
	struct tw_def_counts def;
	struct tw_def_count pair;

	if (bytes < sizeof def)
		return;
	memcpy(&def, payload, sizeof def);
	for (size_t at = sizeof def; bytes - at >= sizeof pair && def.pair_count--; at += sizeof pair) {
		memcpy(&pair, payload + at, sizeof pair);
		if (is_place_wanted(cutting, image, pair.place_id))
			continue;
		pair.count = 0;
		memcpy(payload + at, &pair, sizeof pair);
	}
}

/* Moves the definition to its new time. False: it is not for the part. */
static bool take_definition(const struct source *source, struct tw_definition_head *head, uint8_t *payload)
{
	const struct tw_cutting *cutting = source->cutting;
	struct tw_def_aggregate row;

	tw_copy_move_definition(&cutting->copy, head, payload);
	if (cutting->redact)
		tw_redact_definition(cutting->redact, head->type, payload, head->payload_bytes);
	if (cutting->options->is_stripped && !tw_strip_definition(head, payload))
		return false;
	if (head->type == TW_DEF_COUNTS || head->type == TW_DEF_RECORDED_COUNTS)
		select_counts(cutting, source->image, payload, head->payload_bytes);
	/* The rows of one record are of one place. */
	if (head->type == TW_DEF_AGGREGATES && head->payload_bytes >= sizeof(struct tw_def_aggregates) + sizeof row) {
		memcpy(&row, payload + sizeof(struct tw_def_aggregates), sizeof row);
		return is_place_wanted(cutting, source->image, row.place_id);
	}
	return head->type != TW_DEF_PART && head->type != TW_DEF_WHOLE_PLACE && head->type != TW_DEF_LINE;
}

/* Keeps the definitions at `bytes` that are for the part. Returns their bytes. */
static uint32_t take_definitions(const struct source *source, uint8_t *bytes, uint32_t count)
{
	struct tw_definition_head head;
	uint32_t kept = 0;

	for (size_t at = 0; count - at >= sizeof head;) {
		memcpy(&head, bytes + at, sizeof head);
		size_t whole = sizeof head + (((size_t)head.payload_bytes + 7) & ~(size_t)7);

		if (whole > count - at)
			break;
		if (take_definition(source, &head, bytes + at + sizeof head)) {
			size_t now = sizeof head + (((size_t)head.payload_bytes + 7) & ~(size_t)7);

			memset(bytes + at + sizeof head + head.payload_bytes, 0,
			       now - sizeof head - head.payload_bytes);
			memcpy(bytes + at, &head, sizeof head);
			memmove(bytes + kept, bytes + at, now);
			kept += (uint32_t)now;
		}
		at += whole;
	}
	return kept;
}

static int visit_block(void *context, uint64_t offset, const struct tw_block_header *header)
{
	struct source *source = context;
	struct tw_copy *copy = &source->cutting->copy;
	struct tw_block_header written = *header;
	const uint8_t *bytes, *stored;
	uint8_t *mine;
	uint32_t count;
	int error;

	if (header->type != TW_BLOCK_DEFINITIONS ||
	    (header->first_pos == header->end_pos && !source->is_first && header->first_pos != TW_FORMAT_OUTSIDE_LOG))
		return 0;
	error = tw_segment_read(source->file, offset, header, copy->decoder);
	if (!error)
		error = tw_block_decode_definitions(copy->decoder, header, &bytes, &count);
	/* Its damage was named when the capture was opened. */
	if (error)
		return error == TW_EFORMAT ? 0 : error;
	mine = malloc(count + (size_t)1);
	if (!mine)
		return TW_ENOMEM;
	memcpy(mine, bytes, count);
	written.clock = tw_retime_clock(copy->retime, &header->clock);
	tw_block_encode_definitions(copy->encoder, &written, mine, take_definitions(source, mine, count), &stored);
	error = tw_segment_append(&copy->segment, &written, stored);
	free(mine);
	return error;
}

/* It was named when the capture was opened. */
static void ignore_damage(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason)
{
	(void)context, (void)offset, (void)bytes, (void)error, (void)reason;
}

static int copy_definitions(struct tw_cutting *cutting, uint32_t image)
{
	struct source source = {.cutting = cutting, .image = image, .is_first = true};
	const struct tw_segment_visitor visitor = {visit_block, ignore_damage, &source};
	struct tw_capture *capture = cutting->capture;
	struct tw_segment_found found;
	int error = 0;

	for (uint32_t i = 0; i < capture->file_count && !error; i++) {
		if (!capture->files[i].is_listed || capture->files[i].image != image)
			continue;
		source.file = tw_source_use_file(capture, i);
		if (!source.file)
			return TW_EIO;
		error = tw_segment_list(source.file, cutting->copy.index_decoder, &visitor, &found);
		tw_source_unuse_file(capture, i);
		source.is_first = false;
	}
	return error;
}

/* ---- what cutting adds ---- */

/* Definitions that wait for a block, in cutting->records. */
struct added {
	struct tw_cutting *cutting;
	const struct tw_format_clock *clock;
	uint32_t used;
};

static int write_added(struct added *added)
{
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					 .first_pos = TW_FORMAT_OUTSIDE_LOG,
					 .end_pos = TW_FORMAT_OUTSIDE_LOG,
					 .clock = *added->clock};
	struct tw_copy *copy = &added->cutting->copy;
	const uint8_t *stored;

	tw_block_encode_definitions(copy->encoder, &header, added->cutting->records, added->used, &stored);
	added->used = 0;
	return tw_segment_append(&copy->segment, &header, stored);
}

static int add(struct added *added, uint32_t type, const void *fixed, size_t fixed_bytes, const char *text)
{
	size_t bytes = text ? strlen(text) : 0,
	       whole = (sizeof(struct tw_definition_head) + fixed_bytes + bytes + 7) / 8 * 8;
	int error = whole > TW_BLOCK_RAW_BYTES_MAX - added->used ? write_added(added) : 0;

	memset(added->cutting->records + added->used, 0, whole);
	tw_copy_put_definition(added->cutting->records, &added->used, type, fixed, fixed_bytes, text ? text : "",
			       bytes);
	return error;
}

static int add_line(struct added *added, const struct tw_capture_line *line)
{
	struct tw_def_line def = {.address = line->address, .line = line->line, .is_return = line->is_return};
	const char *function = line->function ? line->function : "", *file = line->file ? line->file : "";
	char text[2 * TW_PATH_BYTES_MAX];

	def.function_bytes = (uint16_t)snprintf(text, TW_PATH_BYTES_MAX, "%s", function);
	if (def.function_bytes >= TW_PATH_BYTES_MAX)
		def.function_bytes = TW_PATH_BYTES_MAX - 1;
	size_t file_bytes = strnlen(file, TW_PATH_BYTES_MAX - 1);

	if (added->cutting->options->is_stripped)
		file = tw_strip_folders(file, &file_bytes);
	def.file_bytes = (uint16_t)file_bytes;
	memcpy(text + def.function_bytes, file, def.file_bytes);
	text[def.function_bytes + def.file_bytes] = 0;
	return add(added, TW_DEF_LINE, &def, sizeof def, text);
}

/* The bounds, and what else the image has of the whole. */
static int write_part(struct tw_cutting *cutting, uint32_t image, const struct tw_format_clock *clock)
{
	const struct tw_cut_options *options = cutting->options;
	const struct tw_capture_info *info = &cutting->capture->info;
	struct tw_def_part part = {.from_ns = options->filter.from_ns,
				   .to_ns = options->filter.to_ns,
				   .start_ns = info->start_ns,
				   .zero_ns = info->zero_ns,
				   .end_ns = info->end_ns};
	struct added added = {.cutting = cutting, .clock = clock};
	int error;

	if (options->kinds)
		memcpy(part.kinds, options->kinds, sizeof part.kinds);
	const struct tw_def_note note = {.text_bytes = sizeof TW_REDACT_NOTE - 1};

	error = add(&added, TW_DEF_PART, &part, sizeof part, NULL);
	if (!error && cutting->redact)
		error = add(&added, TW_DEF_NOTE, &note, sizeof note, TW_REDACT_NOTE);
	for (size_t i = 0; i < options->place_count && !error; i++) {
		const struct tw_capture_whole_place *place = &options->places[i];
		const struct tw_def_whole_place def = {place->place_id, place->is_moment, place->calls};

		if (place->image == image)
			error = add(&added, TW_DEF_WHOLE_PLACE, &def, sizeof def, NULL);
	}
	for (size_t i = 0; i < options->line_count && !error; i++) {
		if (options->lines[i].image == image)
			error = add_line(&added, &options->lines[i]);
	}
	return error ? error : write_added(&added);
}

/* Of a part of the time it is not known which losses these were: they are counted with the others. */
static void take_account(struct tw_cutting *cutting)
{
	const struct tw_capture_filter *filter = &cutting->options->filter;

	memcpy(cutting->copy.account, cutting->capture->reported, sizeof cutting->copy.account);
	if (filter->from_ns || filter->to_ns)
		cutting->copy.account[TW_ACCOUNT_THREADS_ENDED] = cutting->copy.account[TW_ACCOUNT_VFORK] =
			cutting->copy.account[TW_ACCOUNT_LEFT_OUT] = 0;
}

/* ---- segments ---- */

static int cut_image(struct tw_cutting *cutting, uint32_t image, uint32_t number)
{
	struct tw_copy *copy = &cutting->copy;
	const struct tw_source_image *from = cutting->capture->images[image];
	struct tw_segment_header header = tw_copy_header(copy, &from->header);
	int error;

	header.image_segment = 1;
	header.segments_kept = 0;
	header.events_before = 0;
	memset(header.lost_before, 0, sizeof header.lost_before);
	header.first_event_ns = cutting->capture->info.zero_ns;
	copy->segment = (struct tw_segment){.fd = -1,
					    .directory_fd = copy->directory_fd,
					    .number = number,
					    .io = &tw_segment_system_io};
	error = tw_segment_create(&copy->segment, &header);
	if (error)
		return error;
	if (number == 1)
		error = tw_copy_account(copy, &header.clock);
	if (!error)
		error = write_part(cutting, image, &header.clock);
	if (!error)
		error = copy_definitions(cutting, image);
	if (!error)
		error = tw_cutting_events(cutting, image);
	if (error) {
		tw_segment_abandon(&copy->segment);
		return error;
	}
	copy->segment.totals.ending = TW_SEGMENT_LAST | (from->is_final ? TW_SEGMENT_FINAL : 0);
	return tw_copy_seal(copy);
}

/* Without any event the first image says at least what the program was. */
static int cut_images(struct tw_cutting *cutting)
{
	uint32_t count = cutting->capture->image_count, number = 0;
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		if (tw_cutting_has_events(cutting, i) || (i + 1 == count && !number))
			error = cut_image(cutting, i, ++number);
	}
	cutting->result->segments = number;
	return error;
}

/* ---- all of it ---- */

static int ask_for_places(struct tw_cutting *cutting)
{
	const struct tw_capture_filter *filter = &cutting->options->filter;
	const struct tw_capture_place *place;

	if (!filter->wants_place)
		return 0;
	cutting->places = calloc(cutting->capture->image_count + (size_t)1, sizeof *cutting->places);
	if (!cutting->places)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < cutting->capture->image_count; i++) {
		uint32_t at = 0;

		while ((place = tw_capture_place_next(cutting->capture, i, &at))) {
			if (filter->wants_place(filter->context, i, place) &&
			    !tw_map_put(&cutting->places[i], place->place_id, 0))
				return TW_ENOMEM;
		}
	}
	return 0;
}

static int begin(struct tw_cutting *cutting, struct tw_retime *retime)
{
	static const struct tw_merge_knot knots[] = {{0, 0}, {UINT64_C(1) << 62, UINT64_C(1) << 62}};
	const struct tw_merge_input same = {.capture = cutting->capture, .knots = knots, .knot_count = 2};
	int error = tw_copy_init(&cutting->copy);

	cutting->copy.retime = retime;
	cutting->records = malloc(TW_BLOCK_RAW_BYTES_MAX);
	cutting->stripped = malloc(TW_STRIP_RECORD_BYTES);
	/* Terms take at most 40 times their bytes. */
	tw_arena_init(&cutting->arena, UINT64_C(40) * TW_STRIP_RECORD_BYTES);
	cutting->streams = tw_scan_wanted_streams(cutting->capture, &cutting->options->filter);
	if (!error && (!cutting->records || !cutting->stripped || !cutting->streams))
		error = TW_ENOMEM;
	if (!error && cutting->options->redact_count)
		error = tw_redact_create(cutting->options->redact, cutting->options->redact_count, &cutting->redact);
	if (!error)
		error = tw_retime_init(retime, &same, &same);
	if (!error)
		error = ask_for_places(cutting);
	take_account(cutting);
	return error;
}

static void end(struct tw_cutting *cutting, struct tw_retime *retime)
{
	for (uint32_t i = 0; cutting->places && i < cutting->capture->image_count; i++)
		tw_map_fini(&cutting->places[i]);
	free(cutting->places);
	free(cutting->streams);
	free(cutting->records);
	free(cutting->stripped);
	tw_arena_fini(&cutting->arena);
	tw_redact_destroy(cutting->redact);
	tw_retime_fini(retime);
	tw_copy_fini(&cutting->copy);
}

TW_API int tw_capture_cut(struct tw_capture *capture, const struct tw_cut_options *options,
			  struct tw_cut_result *result)
{
	struct tw_target target = {.path = options->path, .is_forced = options->is_forced, .fd = -1};
	struct tw_cutting cutting = {.capture = capture, .options = options, .result = result};
	struct tw_retime retime = {0};
	int error;

	*result = (struct tw_cut_result){0};
	if (capture->stream_in)
		return TW_ENOTSUP;
	if (!options->path || !*options->path || !capture->image_count)
		return TW_EBADARG;
	error = tw_target_check(&target);
	if (error)
		return error;
	error = begin(&cutting, &retime);
	if (!error)
		error = tw_target_open(&target);
	cutting.copy.directory_fd = target.fd;
	if (!error)
		error = cut_images(&cutting);
	if (!error)
		error = tw_target_publish(&target, cutting.copy.numbers, cutting.copy.number_count);
	if (error)
		tw_target_drop(&target);
	result->redacted = cutting.redact ? tw_redact_count(cutting.redact) : 0;
	result->events -= result->before < result->events ? result->before : result->events;
	end(&cutting, &retime);
	return error;
}
