/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Definitions in columns come back byte by byte and take a fraction of their size; anything else in their place
 *	   is refused or gives whole records; a reader accepts such blocks from version 3 on only.
 * Method  Records of all kinds, by a generator with a fixed seed: in order, in disorder, cut, with long names and none;
 *	   every byte of an encoding is changed, and every length of it is tried.
 */
#include "capture_help.h"
#include "pipeline/codec/definitions.h"
#include "tests/common/random.h"

static uint8_t records[TW_BLOCK_STORED_BYTES_MAX];
static uint8_t expected[TW_BLOCK_STORED_BYTES_MAX];
static uint64_t random_state = 12345;

static uint32_t draw(uint32_t limit)
{
	return (uint32_t)random_below(&random_state, limit);
}

static uint32_t put(uint32_t at, uint32_t type, const void *fixed, uint32_t bytes, const char *text,
		    uint32_t text_bytes)
{
	struct tw_definition_head head = {type, bytes + text_bytes};
	uint32_t whole = ((uint32_t)sizeof(head) + bytes + text_bytes + 7) & ~7u;

	memset(records + at, 0, whole);
	memcpy(records + at, &head, sizeof(head));
	memcpy(records + at + sizeof(head), fixed, bytes);
	memcpy(records + at + sizeof(head) + bytes, text, text_bytes);
	return at + whole;
}

static uint32_t put_function(uint32_t at, uint32_t i, bool is_wild)
{
	static char name[3000];
	struct tw_def_function function = {.function_id = i, .module_id = 2, .arity = 3, .address = 0x400000 + i * 64};
	struct tw_def_place place = {.place_id = i + 7,
				     .function_id = i,
				     .kind = TW_PLACE_SLED,
				     .address = 0x400000 + i * 64};
	uint32_t length = (uint32_t)snprintf(name, sizeof(name), "a_function_of_a_program_%06u", i);

	if (is_wild) {
		length = draw(4) ? draw(60) : draw(sizeof(name));
		for (uint32_t j = 0; j < length; j++)
			name[j] = (char)('a' + draw(2));
		function.address = (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
		function.function_id = draw(UINT32_MAX);
		function.module_id = draw(3) ? 1 : UINT32_MAX;
		function.arity = draw(2) ? TW_DEF_ARITY_UNKNOWN : draw(9);
		/* A value that no present writer sets: such a record has no columns. */
		function.reserved = draw(20) == 0;
		place.caller_module_id = draw(UINT32_MAX);
		place.address = UINT64_MAX - draw(1000);
	}
	function.name_bytes = (uint16_t)length;
	if (!is_wild || draw(3))
		at = put(at, TW_DEF_PLACE, &place, sizeof(place), "", 0);
	at = put(at, TW_DEF_FUNCTION, &function, sizeof(function), name, length);
	if (is_wild && draw(8) == 0)
		at = put(at, draw(2) ? TW_DEF_NOTE : 99, "12345678", 8, name, length);
	return at;
}

/* @codec the block's codec; -1: any. */
static uint32_t round_trip(uint32_t bytes, int codec)
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	struct tw_block_decoder *decoder = tw_block_decoder_create();
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS};
	const uint8_t *stored, *again;
	uint32_t count;

	memcpy(expected, records, bytes);
	tw_block_encode_definitions(encoder, &header, records, bytes, &stored);
	if (codec >= 0)
		assert_int_equal(header.codec, codec);
	assert_int_equal(tw_block_header_check(&header), 0);
	memcpy(tw_block_decoder_input(decoder), stored, header.stored_bytes);
	assert_int_equal(tw_block_decode_definitions(decoder, &header, &again, &count), 0);
	assert_int_equal(count, bytes);
	assert_memory_equal(again, expected, bytes);
	tw_block_encoder_destroy(encoder);
	tw_block_decoder_destroy(decoder);
	return header.stored_bytes;
}

static void functions_take_little(void **state)
{
	uint32_t bytes = 0, count = 0;

	(void)state;
	while (bytes < (128 << 10)) {
		bytes = put_function(bytes, count++, false);
		if (count < 3 || count == 255 || count == 256 || count == 257 || count == 513)
			round_trip(bytes, count < 10 ? -1 : TW_CODEC_DEFINITIONS);
	}
	/* 96 bytes each in the log, 25 to 50 when LZ4 alone packs them. */
	assert_true(round_trip(bytes, TW_CODEC_DEFINITIONS) < count * 4);
}

static void any_records_come_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		uint32_t bytes = 0, wanted = 1 + draw(i % 10 ? 3000 : TW_BLOCK_RAW_BYTES_MAX - 8192);

		while (bytes < wanted)
			bytes = put_function(bytes, i, true);
		round_trip(bytes, -1);
	}
}

/* More than a block of columns holds, none, and an invalid record. */
static void records_without_columns_are_stored_unchanged(void **state)
{
	struct tw_def_note note = {0};
	uint32_t bytes = 0;

	(void)state;
	round_trip(0, TW_CODEC_NONE);
	while (bytes <= TW_BLOCK_RAW_BYTES_MAX)
		bytes = put_function(bytes, bytes, false);
	round_trip(bytes, TW_CODEC_NONE);
	bytes = put(0, TW_DEF_NOTE, &note, sizeof(note), "", 0);
	round_trip(bytes - 8, TW_CODEC_NONE);
	memset(records, 0xff, 4096);
	round_trip(4096, TW_CODEC_NONE);
}

static void check_whole(const uint8_t *bytes, size_t count)
{
	for (size_t at = 0; at < count;) {
		struct tw_definition_head head;

		assert_true(count - at >= sizeof(head));
		memcpy(&head, bytes + at, sizeof(head));
		assert_true(head.payload_bytes <= count - at);
		at += (sizeof(head) + head.payload_bytes + 7) & ~(size_t)7;
		assert_true(at <= count);
	}
}

static void try_decode(const uint8_t *in, size_t bytes, uint8_t *out)
{
	/* Exactly the bytes that may be read: memory after them belongs to others. */
	uint8_t *copy = malloc(bytes + TW_COLUMN_SLACK_BYTES);
	size_t count;

	memcpy(copy, in, bytes);
	memset(copy + bytes, 0xee, TW_COLUMN_SLACK_BYTES);
	count = tw_codec_definitions_decode(copy, bytes, out);
	assert_true(count <= TW_BLOCK_RAW_BYTES_MAX);
	check_whole(out, count);
	free(copy);
}

static void damage_gives_whole_records_or_none(void **state)
{
	uint8_t *encoded = malloc(TW_CODEC_ENCODED_BYTES_MAX + TW_COLUMN_SLACK_BYTES);
	uint8_t *out = malloc(TW_BLOCK_RAW_BYTES_MAX);
	uint32_t bytes = 0;
	size_t count;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		bytes = put_function(bytes, i, i % 4 == 3);
	count = tw_codec_definitions_encode(records, bytes, encoded);
	assert_true(count > 0);
	for (size_t length = 0; length <= count; length++)
		try_decode(encoded, length, out);
	for (size_t at = 0; at < count; at++) {
		uint8_t saved = encoded[at];

		for (unsigned bit = 0; bit < 8; bit++) {
			encoded[at] = (uint8_t)(saved ^ 1u << bit);
			try_decode(encoded, count, out);
		}
		encoded[at] = 0xff;
		try_decode(encoded, count, out);
		encoded[at] = saved;
	}
	assert_int_equal(tw_codec_definitions_decode(encoded, count, out), bytes);
	free(encoded);
	free(out);
}

static void older_versions_have_no_columns(void **state)
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS};
	const uint8_t *stored;
	uint32_t bytes = 0;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		bytes = put_function(bytes, i, false);
	tw_block_encode_definitions(encoder, &header, records, bytes, &stored);
	assert_int_equal(tw_block_header_check(&header), 0);
	header.version = TW_FORMAT_VERSION_COLUMNS - 1;
	header.header_checksum = tw_block_header_checksum(&header);
	assert_int_equal(tw_block_header_check(&header), TW_EFORMAT);
	header.version = TW_FORMAT_VERSION;
	header.type = TW_BLOCK_INDEX;
	header.header_checksum = tw_block_header_checksum(&header);
	assert_int_equal(tw_block_header_check(&header), TW_EFORMAT);
	tw_block_encoder_destroy(encoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_take_little),
		cmocka_unit_test(any_records_come_back),
		cmocka_unit_test(records_without_columns_are_stored_unchanged),
		cmocka_unit_test(damage_gives_whole_records_or_none),
		cmocka_unit_test(older_versions_have_no_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
