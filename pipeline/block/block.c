/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - surveys records, chooses the codec, packs, and computes checksums.
 *
 * A stretch of records is copied out of the ring first: the traced program could change it at any time, and every
 * length in it is used more than once. The copy costs no more than the first touch of the producer's cache lines,
 * which is needed anyway.
 */
#include "pipeline/block/block.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "pipeline/codec/definitions.h"
#include "tracewheel/error.h"

#include <stdlib.h>

/* Packing is worth it if it saves at least one part in this many. */
#define GAIN_PART 10
/* Blocks that are stored unpacked before packing is tried again. */
#define PACKING_PAUSE 7
/* A smaller block tells nothing of the next ones, and costs little to try. */
#define PACKING_PROBE_BYTES 4096
/* Below this mean size a record is mostly head, and predictions beat columns of ids. */
#define CALLS_MEAN_BYTES 24

struct tw_block_encoder {
	uint8_t copy[TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
	uint8_t encoded[TW_CODEC_ENCODED_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
	uint8_t packed[TW_LZ4_BOUND(TW_BLOCK_STORED_BYTES_MAX)];
	struct tw_calls_tables *calls;
	void *lz4_state;
	struct tw_block_tracee tracee;
	unsigned packing_pause;
};

struct tw_block_decoder {
	uint8_t input[TW_BLOCK_STORED_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
	uint8_t unpacked[TW_BLOCK_STORED_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
	uint8_t definitions[TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
	struct tw_calls_tables *calls;
};

/* The result of one pass over the records. */
struct survey {
	struct tw_codec_input input;
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint32_t losses;
	uint32_t switches;
	uint32_t own;
	uint32_t states;
	uint32_t calls; /* kinds that come in pairs or nest */
	uint32_t kinds; /* tw_block_kind_bit() of all */
	bool has_ends;	/* there are ends of something that lasts */
};

struct tw_block_encoder *tw_block_encoder_create(void)
{
	struct tw_block_encoder *encoder = malloc(sizeof *encoder);

	if (!encoder)
		return NULL;
	encoder->tracee = (struct tw_block_tracee){0};
	encoder->packing_pause = 0;
	encoder->calls = tw_calls_tables_create();
	encoder->lz4_state = malloc(tw_lz4_state_bytes());
	if (!encoder->calls || !encoder->lz4_state) {
		tw_block_encoder_destroy(encoder);
		return NULL;
	}
	return encoder;
}

void tw_block_encoder_destroy(struct tw_block_encoder *encoder)
{
	if (!encoder)
		return;
	tw_calls_tables_destroy(encoder->calls);
	free(encoder->lz4_state);
	free(encoder);
}

struct tw_block_tracee tw_block_encoder_tracee(const struct tw_block_encoder *encoder)
{
	return encoder->tracee;
}

/* ---- survey ---- */

/* Records that are no events of the program. */
static bool is_own_kind(uint64_t head)
{
	unsigned kind = TW_RB_HEAD_KIND(head);

	return kind <= TW_EVENT_SWITCH || kind == TW_EVENT_OWN_TIME || kind == TW_EVENT_THREAD_STATE;
}

static bool is_end(uint32_t shape)
{
	unsigned kind = TW_RB_HEAD_KIND(shape) & ~(unsigned)TW_EVENT_CPU_TIME;

	return kind == TW_EVENT_RETURN_FROM || kind == TW_EVENT_EXCEPTION_FROM ||
	       (kind >= TW_EVENT_GC_MINOR_START && kind <= TW_EVENT_GC_MAJOR_END);
}

static uint32_t kind_bit(uint32_t shape)
{
	return tw_block_kind_bit(TW_RB_HEAD_KIND(shape) & ~(unsigned)TW_EVENT_CPU_TIME);
}

static void note_words(struct tw_codec_input *in, uint32_t shape)
{
	if (TW_RB_HEAD_KIND(shape) == TW_EVENT_STACK)
		in->has_stacks = true;
	else if (tw_shape_words(shape) > in->words_max)
		in->words_max = tw_shape_words(shape);
}

/* Are all records of the first one's shape?  The common case, found without a branch in the loop. */
static bool survey_uniform(struct survey *survey)
{
	struct tw_codec_input *in = &survey->input;
	uint32_t shape = (uint32_t)tw_record_head(in->raw), stride = tw_shape_bytes(shape);
	uint64_t before = tw_get64(in->raw);
	uint32_t other = 0, backwards = 0;

	if (!tw_shape_is_sound(shape) || in->raw_bytes % stride)
		return false;
	if (is_own_kind(shape))
		return false;
	for (const uint8_t *record = in->raw; record < in->raw + in->raw_bytes; record += stride) {
		uint64_t ticks = tw_get64(record);

		other |= tw_get32(record + 8) ^ shape;
		backwards |= ticks < before;
		before = ticks;
	}
	if (other || backwards)
		return false;
	in->records = in->raw_bytes / stride;
	in->shape_count = 1;
	in->shapes[0] = shape;
	note_words(in, shape);
	survey->has_ends = is_end(shape);
	survey->kinds = kind_bit(shape);
	survey->first_ticks = tw_get64(in->raw);
	survey->last_ticks = before;
	survey->calls = TW_RB_HEAD_KIND(shape) >= TW_EVENT_RETURN_FROM && TW_RB_HEAD_KIND(shape) < TW_EVENT_TERM_FIRST
				? in->records
				: 0;
	return true;
}

static void note_shape(struct tw_codec_input *in, uint32_t shape)
{
	note_words(in, shape);
	for (uint32_t i = 0; i < in->shape_count && i < TW_CODEC_SHAPES_MAX; i++) {
		if (in->shapes[i] == shape)
			return;
	}
	if (in->shape_count < TW_CODEC_SHAPES_MAX)
		in->shapes[in->shape_count] = shape;
	if (in->shape_count <= TW_CODEC_SHAPES_MAX)
		in->shape_count++;
}

/* Takes in records that describe the block itself. */
static int note_own_kind(struct survey *survey, const uint8_t *record, uint64_t head, struct tw_block_header *header,
			 struct tw_block_tracee *tracee)
{
	if (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH) {
		survey->switches++;
		tracee->tracee_id = TW_RB_HEAD_ID(head);
		tracee->run_seq = tw_get64(record + TW_CODEC_HEAD_BYTES);
		return 0;
	}
	if (TW_RB_HEAD_KIND(head) == TW_EVENT_OWN_TIME) {
		uint32_t kind = TW_RB_HEAD_ID(head) - TW_OWN_TIME_WAIT;

		survey->own++;
		if (kind < TW_FORMAT_OWN_KINDS && tw_event_payload_words(head)) {
			header->own[kind].count++;
			header->own[kind].ticks += tw_get64(record + TW_CODEC_HEAD_BYTES);
		}
		return 0;
	}
	if (TW_RB_HEAD_KIND(head) == TW_EVENT_THREAD_STATE) {
		survey->own++;
		survey->states++;
		return 0;
	}
	survey->losses++;
	/* A query for the time of the loss must find the block. */
	if (tw_get64(record + TW_CODEC_HEAD_BYTES) < survey->first_ticks)
		survey->first_ticks = tw_get64(record + TW_CODEC_HEAD_BYTES);
	for (unsigned cause = 0; cause < TW_FORMAT_CAUSES; cause++) {
		uint64_t lost = tw_get64(record + TW_CODEC_HEAD_BYTES + 8 + 8 * cause);

		if (lost > TW_RB_LOST_MAX)
			return TW_EFORMAT;
		header->lost[cause] += lost;
		header->end_sequence += lost;
	}
	return 0;
}

/* Checks a shape that is not one of the last two; it replaces the older one. */
static int survey_shape(struct survey *survey, uint32_t shape, uint64_t recent[2])
{
	if (!tw_shape_is_sound(shape))
		return TW_EFORMAT;
	note_shape(&survey->input, shape);
	survey->has_ends |= is_end(shape);
	survey->kinds |= kind_bit(shape);
	recent[1] = recent[0];
	recent[0] = shape;
	return 0;
}

static int survey_any(struct survey *survey, struct tw_block_header *header, struct tw_block_tracee *tracee)
{
	struct tw_codec_input *in = &survey->input;
	uint64_t recent[2] = {UINT64_MAX, UINT64_MAX}; /* larger than any shape */
	uint32_t bytes;
	uint64_t first_ticks = UINT64_MAX, last_ticks = 0;

	survey->first_ticks = UINT64_MAX;
	for (uint32_t at = 0; at < in->raw_bytes; at += bytes) {
		const uint8_t *record = in->raw + at;
		uint64_t ticks, head;
		uint32_t shape;

		if (in->raw_bytes - at < TW_CODEC_HEAD_BYTES)
			return TW_EFORMAT;
		ticks = tw_get64(record);
		head = tw_record_head(record);
		shape = (uint32_t)head;
		bytes = tw_shape_bytes(shape);
		if (shape != recent[0] && shape != recent[1] && survey_shape(survey, shape, recent))
			return TW_EFORMAT;
		if (bytes > in->raw_bytes - at)
			return TW_EFORMAT;
		in->records++;
		first_ticks = ticks < first_ticks ? ticks : first_ticks;
		last_ticks = ticks > last_ticks ? ticks : last_ticks;
		if (tw_unlikely(is_own_kind(head)) && note_own_kind(survey, record, head, header, tracee))
			return TW_EFORMAT;
		survey->calls +=
			TW_RB_HEAD_KIND(head) >= TW_EVENT_RETURN_FROM && TW_RB_HEAD_KIND(head) < TW_EVENT_TERM_FIRST;
	}
	survey->first_ticks = first_ticks < survey->first_ticks ? first_ticks : survey->first_ticks;
	survey->last_ticks = last_ticks;
	return 0;
}

static int survey_records(struct survey *survey, struct tw_block_header *header, struct tw_block_tracee *tracee)
{
	int error;

	if (survey->input.raw_bytes < TW_CODEC_HEAD_BYTES)
		return TW_EFORMAT;
	tracee->tracee_id = header->tracee_id;
	tracee->run_seq = header->run_seq;
	header->end_sequence = header->first_sequence;
	if (!survey_uniform(survey)) {
		error = survey_any(survey, header, tracee);
		if (error)
			return error;
	}
	if (!survey->has_ends)
		header->flags |= TW_BLOCK_FLAG_MOMENTS;
	if (survey->states == survey->input.records)
		header->flags |= TW_BLOCK_FLAG_STATES;
	header->kinds = survey->kinds;
	header->record_count = survey->input.records;
	header->switch_count = survey->switches;
	header->own_count = survey->own;
	header->event_count = survey->input.records - survey->losses - survey->switches - survey->own;
	header->end_sequence += survey->input.records - survey->losses;
	header->first_ticks = survey->first_ticks;
	header->last_ticks = survey->last_ticks;
	return 0;
}

/* ---- encoding ---- */

static enum tw_block_codec choose_codec(const struct survey *survey)
{
	const struct tw_codec_input *in = &survey->input;

	if (in->words_max > TW_CODEC_WORDS_MAX)
		return TW_CODEC_GENERIC;
	if (in->has_stacks)
		return TW_CODEC_PLACES;
	if (survey->calls || in->shape_count > TW_CODEC_SHAPES_MAX ||
	    in->raw_bytes < (uint64_t)in->records * CALLS_MEAN_BYTES)
		return in->words_max == 1 ? TW_CODEC_PLACES : TW_CODEC_CALLS;
	return TW_CODEC_VALUES;
}

static size_t encode(struct tw_block_encoder *encoder, const struct survey *survey, struct tw_block_header *header)
{
	const struct tw_codec_input *in = &survey->input;
	enum tw_block_codec codec = choose_codec(survey);
	size_t bytes;

	header->codec = (uint8_t)codec;
	if (codec == TW_CODEC_GENERIC)
		bytes = tw_codec_generic_encode(in, encoder->encoded);
	else if (codec == TW_CODEC_VALUES)
		bytes = tw_codec_values_encode(in, encoder->encoded);
	else
		bytes = tw_codec_calls_encode(encoder->calls, in, codec, encoder->encoded);
	TW_ASSERT(bytes <= TW_CODEC_ENCODED_BYTES_MAX);
	if (bytes > in->raw_bytes) {
		header->codec = TW_CODEC_VERBATIM;
		memcpy(encoder->encoded, in->raw, in->raw_bytes);
		bytes = in->raw_bytes;
	}
	return bytes;
}

static void seal(struct tw_block_header *header, const uint8_t *stored)
{
	header->magic = TW_BLOCK_MAGIC;
	header->version = TW_FORMAT_VERSION;
	header->header_bytes = sizeof *header;
	header->payload_checksum = tw_checksum64(stored, header->stored_bytes);
	header->header_checksum = tw_block_header_checksum(header);
}

static const uint8_t *pack(struct tw_block_encoder *encoder, struct tw_block_header *header, const uint8_t *bytes,
			   uint32_t count)
{
	uint32_t packed;

	packed = tw_lz4_pack(encoder->lz4_state, bytes, count, encoder->packed, count - count / GAIN_PART);
	header->packing = packed ? TW_PACKING_LZ4 : TW_PACKING_NONE;
	header->encoded_bytes = count;
	header->stored_bytes = packed ? packed : count;
	return packed ? encoder->packed : bytes;
}

int tw_block_encode_events(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *raw,
			   uint32_t raw_bytes, const uint8_t **stored)
{
	TW_ASSERT(raw_bytes <= TW_BLOCK_RAW_BYTES_MAX);
	memcpy(encoder->copy, raw, raw_bytes);
	return tw_block_encode_copied(encoder, header, encoder->copy, raw_bytes, stored);
}

int tw_block_encode_copied(struct tw_block_encoder *encoder, struct tw_block_header *header, const uint8_t *raw,
			   uint32_t raw_bytes, const uint8_t **stored)
{
	struct survey survey = {.input = {.raw = raw, .raw_bytes = raw_bytes}};
	uint32_t bytes;
	int error;

	TW_ASSERT(raw_bytes <= TW_BLOCK_RAW_BYTES_MAX);
	error = survey_records(&survey, header, &encoder->tracee);
	if (error)
		return error;
	header->type = TW_BLOCK_EVENTS;
	header->raw_bytes = raw_bytes;
	bytes = (uint32_t)encode(encoder, &survey, header);
	if (encoder->packing_pause) {
		encoder->packing_pause--;
		header->packing = TW_PACKING_NONE;
		header->encoded_bytes = header->stored_bytes = bytes;
		*stored = encoder->encoded;
	} else {
		*stored = pack(encoder, header, encoder->encoded, bytes);
		if (header->packing == TW_PACKING_NONE && bytes >= PACKING_PROBE_BYTES)
			encoder->packing_pause = PACKING_PAUSE;
	}
	seal(header, *stored);
	return 0;
}

void tw_block_encode_bytes(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *bytes,
			   uint32_t count, const uint8_t **stored)
{
	TW_ASSERT(count <= TW_BLOCK_STORED_BYTES_MAX);
	header->codec = TW_CODEC_NONE;
	header->raw_bytes = 0;
	*stored = pack(encoder, header, bytes, count);
	seal(header, *stored);
}

void tw_block_encode_definitions(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *bytes,
				 uint32_t count, const uint8_t **stored)
{
	size_t encoded =
		count <= TW_BLOCK_RAW_BYTES_MAX ? tw_codec_definitions_encode(bytes, count, encoder->encoded) : 0;

	TW_ASSERT(encoded <= TW_CODEC_ENCODED_BYTES_MAX);
	if (!encoded || encoded >= count) {
		tw_block_encode_bytes(encoder, header, bytes, count, stored);
		return;
	}
	header->codec = TW_CODEC_DEFINITIONS;
	header->raw_bytes = 0;
	*stored = pack(encoder, header, encoder->encoded, (uint32_t)encoded);
	seal(header, *stored);
}

/* ---- decoding ---- */

uint64_t tw_block_header_checksum(const struct tw_block_header *header)
{
	const size_t behind = offsetof(struct tw_block_header, payload_checksum);

	return tw_checksum64((const uint8_t *)header + behind, tw_block_header_bytes(header->version) - behind);
}

/* Of events. */
static bool is_codec_known(const struct tw_block_header *header)
{
	if (header->codec == TW_CODEC_PLACES)
		return header->version >= TW_FORMAT_VERSION_PLACES;
	return header->codec >= TW_CODEC_VERBATIM && header->codec <= TW_CODEC_RETURNS;
}

static bool are_sizes_sound(const struct tw_block_header *header)
{
	if (header->stored_bytes > TW_BLOCK_STORED_BYTES_MAX || header->encoded_bytes > TW_BLOCK_STORED_BYTES_MAX)
		return false;
	if (header->packing == TW_PACKING_NONE && header->stored_bytes != header->encoded_bytes)
		return false;
	if (header->packing > TW_PACKING_LZ4 || header->first_pos > header->end_pos ||
	    header->first_sequence > header->end_sequence)
		return false;
	if (header->type != TW_BLOCK_EVENTS)
		return (header->codec == TW_CODEC_NONE ||
			(header->codec == TW_CODEC_DEFINITIONS && header->type == TW_BLOCK_DEFINITIONS &&
			 header->version >= TW_FORMAT_VERSION_COLUMNS)) &&
		       !header->raw_bytes;
	return is_codec_known(header) && header->record_count && header->raw_bytes <= TW_BLOCK_RAW_BYTES_MAX &&
	       header->raw_bytes % TW_RB_ALIGN_BYTES == 0 &&
	       (uint64_t)header->record_count * TW_CODEC_HEAD_BYTES <= header->raw_bytes &&
	       (uint64_t)header->event_count + header->switch_count + header->own_count <= header->record_count;
}

int tw_block_header_check(const struct tw_block_header *header)
{
	if (header->magic != TW_BLOCK_MAGIC)
		return TW_EFORMAT;
	if (header->version > TW_FORMAT_VERSION && header->header_bytes >= sizeof *header)
		return TW_EVERSION;
	if (header->version < TW_FORMAT_VERSION_FIRST || header->version > TW_FORMAT_VERSION ||
	    header->header_bytes != tw_block_header_bytes(header->version) ||
	    header->header_checksum != tw_block_header_checksum(header))
		return TW_EFORMAT;
	return are_sizes_sound(header) ? 0 : TW_EFORMAT;
}

struct tw_block_decoder *tw_block_decoder_create(void)
{
	/* Some megabytes, which are not cleared: most captures need a part of them. */
	struct tw_block_decoder *decoder = malloc(sizeof *decoder);

	if (!decoder)
		return NULL;
	decoder->calls = tw_calls_tables_create();
	if (!decoder->calls) {
		free(decoder);
		return NULL;
	}
	return decoder;
}

void tw_block_decoder_destroy(struct tw_block_decoder *decoder)
{
	if (!decoder)
		return;
	tw_calls_tables_destroy(decoder->calls);
	free(decoder);
}

uint8_t *tw_block_decoder_input(struct tw_block_decoder *decoder)
{
	return decoder->input;
}

int tw_block_decode_check(const struct tw_block_decoder *decoder, const struct tw_block_header *header)
{
	return header->payload_checksum == tw_checksum64(decoder->input, header->stored_bytes) ? 0 : TW_EFORMAT;
}

int tw_block_decode_bytes(struct tw_block_decoder *decoder, const struct tw_block_header *header, const uint8_t **bytes)
{
	int error = tw_block_decode_check(decoder, header);

	if (error)
		return error;
	if (header->packing == TW_PACKING_NONE) {
		*bytes = decoder->input;
		return 0;
	}
	if (!tw_lz4_unpack(decoder->input, header->stored_bytes, decoder->unpacked, header->encoded_bytes))
		return TW_EFORMAT;
	*bytes = decoder->unpacked;
	return 0;
}

int tw_block_decode_definitions(struct tw_block_decoder *decoder, const struct tw_block_header *header,
				const uint8_t **bytes, uint32_t *count)
{
	int error = tw_block_decode_bytes(decoder, header, bytes);

	*count = header->encoded_bytes;
	if (error || header->codec != TW_CODEC_DEFINITIONS)
		return error;
	*count = (uint32_t)tw_codec_definitions_decode(*bytes, header->encoded_bytes, decoder->definitions);
	*bytes = decoder->definitions;
	return *count ? 0 : TW_EFORMAT;
}

static bool decode_verbatim(const uint8_t *in, size_t bytes, const struct tw_codec_output *out)
{
	uint32_t at = 0, records = 0;

	if (bytes != out->raw_bytes)
		return false;
	memcpy(out->raw, in, bytes);
	for (; at < bytes; records++) {
		uint32_t shape = (uint32_t)tw_record_head(out->raw + at);

		if (!tw_shape_is_sound(shape) || tw_shape_bytes(shape) > bytes - at)
			return false;
		tw_record_clear_filling(out->raw + at, shape);
		at += tw_shape_bytes(shape);
	}
	return records == out->records;
}

int tw_block_decode_events(struct tw_block_decoder *decoder, const struct tw_block_header *header, uint8_t *raw)
{
	struct tw_codec_output out = {raw, header->raw_bytes, header->record_count};
	const uint8_t *in;
	size_t bytes = header->encoded_bytes;
	int error = tw_block_decode_bytes(decoder, header, &in);
	bool is_sound = false;

	if (error)
		return error;
	switch (header->codec) {
	case TW_CODEC_VERBATIM: is_sound = decode_verbatim(in, bytes, &out); break;
	case TW_CODEC_GENERIC: is_sound = tw_codec_generic_decode(in, bytes, &out); break;
	case TW_CODEC_VALUES: is_sound = tw_codec_values_decode(in, bytes, &out); break;
	case TW_CODEC_CALLS:
	case TW_CODEC_RETURNS:
	case TW_CODEC_PLACES: is_sound = tw_codec_calls_decode(decoder->calls, in, bytes, header->codec, &out); break;
	default: break;
	}
	return is_sound ? 0 : TW_EFORMAT;
}
