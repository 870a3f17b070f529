/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a ring's records come back out of a block bit by bit (except padding), by the best codec; damage is detected.
 *
 * Method: blocks of made-up programs and of random records, encoded, decoded and compared; all widths
 * of columns; each byte of a block changed in turn.  The seed is printed; an argument sets it.
 */
#include "pipeline/block/block.h"
#include "tracewheel/error.h"
#include "tests/common/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t seed = 88172645463325252u;
static struct tw_block_encoder *encoder;
static struct tw_block_decoder *decoder;
static uint8_t raw[TW_BLOCK_RAW_BYTES_MAX], back[TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
static uint32_t raw_bytes;

static uint64_t number(void)
{
	return random_word(&seed);
}

/* Numbers of all widths, small ones more often. */
static uint64_t number_of_any_width(void)
{
	return number() >> (number() % 64);
}

static uint64_t *put_record(uint64_t ticks, unsigned kind, unsigned flags, uint32_t words, uint32_t id)
{
	uint32_t bytes = 16 + (words + 1) / 2 * 16;
	uint64_t *record = (uint64_t *)(raw + raw_bytes);

	assert_true(raw_bytes + bytes <= sizeof raw);
	record[0] = ticks;
	record[1] = TW_RB_HEAD(kind, flags | (words % 2 ? TW_EVENT_FLAG_HALF : 0), bytes, id);
	memset(record + 2, 0, bytes - 16);
	raw_bytes += bytes;
	return record + 2;
}

static void store(struct tw_block_header *header)
{
	const uint8_t *stored;

	memset(header, 0, sizeof *header);
	assert_int_equal(tw_block_encode_events(encoder, header, raw, raw_bytes, &stored), 0);
	assert_int_equal(tw_block_header_check(header), 0);
	memcpy(tw_block_decoder_input(decoder), stored, header->stored_bytes);
}

static void comes_back(struct tw_block_header *header)
{
	store(header);
	memset(back, 0xa5, sizeof back);
	assert_int_equal(tw_block_decode_events(decoder, header, back), 0);
	assert_int_equal(header->raw_bytes, raw_bytes);
	assert_memory_equal(back, raw, raw_bytes);
}

static void columns_hold_every_width_in_both_modes(void **state)
{
	uint64_t values[TW_COLUMN_MAX], got[TW_COLUMN_MAX];
	uint8_t bytes[TW_COLUMN_BYTES_MAX + TW_COLUMN_SLACK_BYTES];

	for (unsigned round = 0; round < 2000; round++) {
		size_t count = round % (TW_COLUMN_MAX + 1);
		unsigned width = (unsigned)(number() % 65);
		uint64_t base = round % 2 ? number() : 0;
		const uint8_t *end;

		for (size_t i = 0; i < count; i++)
			values[i] = base + (width ? number() >> (64 - width) : 0);
		end = tw_column_put(bytes, values, count);
		assert_true((size_t)(end - bytes) <= TW_COLUMN_BYTES_MAX);
		assert_ptr_equal(tw_column_get(bytes, end, got, count), end);
		assert_memory_equal(got, values, count * sizeof got[0]);
		if (end > bytes)
			assert_null(tw_column_get(bytes, end - 1, got, count));
	}
}

static void values_come_back_small(void **state)
{
	struct tw_block_header header;
	uint64_t ticks = number();

	raw_bytes = 0;
	for (uint32_t i = 0; i < 8192; i++) {
		uint64_t *payload = put_record(ticks += 20 + number() % 8, TW_EVENT_CALL, 1, 2, 77);

		payload[0] = i;
		payload[1] = (uint32_t)number();
	}
	comes_back(&header);
	assert_int_equal(header.codec, TW_CODEC_VALUES);
	assert_int_equal(header.record_count, 8192);
	assert_int_equal(header.event_count, 8192);
	assert_int_equal(header.end_sequence, 8192);
	assert_true(header.stored_bytes < 8192 * 7);
	assert_int_equal(header.last_ticks, ticks);
}

/* A program: functions that call each other in a fixed way, with irregular calls now and then. */
static void run_program(uint32_t function, unsigned depth, uint64_t *ticks, bool is_odd)
{
	uint64_t *payload =
		put_record(*ticks += 5 + number() % 30, TW_EVENT_CALL, 1, is_odd ? function % 3 : 0, function);

	for (uint32_t i = 0; is_odd && i < function % 3; i++)
		payload[i] = number_of_any_width();
	for (uint32_t i = 0; i < function % 4 && depth < 6; i++)
		run_program(function * 5 % 97 + i, depth + 1, ticks, is_odd);
	if (is_odd && number() % 50 == 0) {
		put_record(*ticks += number_of_any_width() >> 20, TW_EVENT_SWITCH, 0, 1, 9)[0] = number();
	}
	if (is_odd && number() % 20 == 0)
		put_record(*ticks += 3, TW_EVENT_EXCEPTION_FROM, 1, 1, function)[0] = number();
	else
		put_record(*ticks += 5 + number() % 30, TW_EVENT_RETURN_FROM, 1, is_odd, function)[0] =
			is_odd ? function : 0;
}

static void calls_come_back_small(void **state)
{
	struct tw_block_header header;
	uint64_t ticks = number() >> 8;

	for (int round = 0; round < 20; round++) {
		raw_bytes = 0;
		while (raw_bytes < sizeof raw - 100000)
			run_program(number() % 3, 0, &ticks, round % 2);
		comes_back(&header);
		assert_int_equal(header.codec, TW_CODEC_CALLS);
		if (round % 2 == 0)
			assert_true(header.stored_bytes < header.record_count * 2);
	}
}

/* Return values: mostly equal or close to the previous one; a word for each return, none for calls. */
static void returns_come_back_small(void **state)
{
	struct tw_block_header header;
	uint64_t ticks = number() >> 8;

	for (int round = 0; round < 20; round++) {
		raw_bytes = 0;
		while (raw_bytes < sizeof raw - 1000) {
			uint32_t function = (uint32_t)(number() % 40), same = round % 4;
			uint64_t value = same == 0   ? function
					 : same == 1 ? UINT64_C(0x7f5500000000) + function * 4096 + number() % 8 * 16
						     : number_of_any_width();

			put_record(ticks += 5 + number() % 30, TW_EVENT_CALL, 1, 0, function);
			put_record(ticks += 5 + number() % 30, TW_EVENT_RETURN_FROM, 1, 1, function)[0] = value;
		}
		comes_back(&header);
		assert_int_equal(header.codec, TW_CODEC_PLACES);
		if (round % 4 < 2)
			assert_true(header.stored_bytes < header.record_count * 3);
	}
}

/* An argument and a return value of one function are told apart: neither spoils the other's prediction. */
static void arguments_and_results_come_back_small(void **state)
{
	struct tw_block_header header;
	uint64_t ticks = number() >> 8;

	raw_bytes = 0;
	while (raw_bytes < sizeof raw - 1000) {
		put_record(ticks += 7, TW_EVENT_CALL, 1, 1, 5)[0] = 64;
		put_record(ticks += 9, TW_EVENT_RETURN_FROM, 1, 1, 5)[0] = UINT64_C(0x7f5500000000);
	}
	comes_back(&header);
	assert_int_equal(header.codec, TW_CODEC_PLACES);
	assert_true(header.encoded_bytes < header.record_count * 3 / 2);
}

/* A few thousand stacks of callers, with common outer ones, each again and again, at up to 60 functions. */
static void stacks_come_back_small(void **state)
{
	struct tw_block_header header;
	uint64_t ticks = number() >> 8;

	for (unsigned round = 0; round < 40; round++) {
		uint32_t depth = round % 5 * 8, stacks = round % 8 < 4 ? 1 + (uint32_t)number() % 60 : 3000;

		raw_bytes = 0;
		while (raw_bytes < sizeof raw - 3000) {
			uint32_t which = (uint32_t)(number() % stacks), words = depth - (depth ? which % 3 : 0);
			uint64_t *payload;

			put_record(ticks += 5, TW_EVENT_CALL, 1, 1, which % 60)[0] = which % 7 * 16;
			payload = put_record(ticks, TW_EVENT_STACK, 0, words, which % 60);
			for (uint32_t i = 0; i < words; i++)
				payload[i] = UINT64_C(0x7f5500000000) + (words - i) * 4096 + (i < 2 ? which * 16 : 0);
			put_record(ticks += 5, TW_EVENT_RETURN_FROM, 1, 1, which % 60)[0] =
				UINT64_C(0x7f5500000000) + which * 64;
		}
		comes_back(&header);
		assert_int_equal(header.codec, TW_CODEC_PLACES);
		if (stacks < 100)
			assert_true(header.stored_bytes < header.record_count * 4);
	}
}

/* What does not pack is stored as it is, and so are the next blocks; of a few records nothing follows for them. */
static void small_blocks_do_not_stop_packing(void **state)
{
	struct tw_block_header header;

	for (unsigned round = 0; round < 2; round++) {
		tw_block_encoder_destroy(encoder);
		encoder = tw_block_encoder_create();
		assert_non_null(encoder);
		raw_bytes = 0;
		for (uint32_t i = 0; i < (round ? 4096 : 4); i++)
			put_record(number(), TW_EVENT_CALL, 1, 2, (uint32_t)number())[0] = number();
		comes_back(&header);
		assert_int_equal(header.packing, TW_PACKING_NONE);
		raw_bytes = 0;
		for (uint32_t i = 0; i < 8192; i++)
			put_record(i, TW_EVENT_CALL, 1, 2, 77)[0] = i % 16;
		comes_back(&header);
		assert_int_equal(header.packing, round ? TW_PACKING_NONE : TW_PACKING_LZ4);
	}
}

static void random_records_come_back(void **state)
{
	struct tw_block_header header;
	unsigned seen[8] = {0};

	for (int round = 0; round < 600; round++) {
		uint32_t words_limit = round % 3 == 0 ? 3 : round % 3 == 1 ? 16 : 1000;
		unsigned kinds = 1 + (unsigned)(number() % 200);
		uint32_t records = 1 + (uint32_t)(number() % 900);

		raw_bytes = 0;
		for (uint32_t i = 0; i < records; i++) {
			unsigned kind = 3 + (unsigned)(number() % kinds);
			uint32_t words = (uint32_t)(number() % words_limit);
			uint64_t *payload;

			/* CPU time beside a kind that has none, or without a word, is invalid. */
			if (kind >= TW_EVENT_CPU_TIME)
				kind |= TW_EVENT_CALL, words += !words;
			if (raw_bytes + 16 + words * 8 + 8 > sizeof raw)
				break;
			payload = put_record(number_of_any_width(), kind, (unsigned)number() & 0xfb, words,
					     (uint32_t)number_of_any_width());
			for (uint32_t j = 0; j < words; j++)
				payload[j] = number_of_any_width();
		}
		comes_back(&header);
		seen[header.codec]++;
	}
	assert_true(seen[TW_CODEC_GENERIC] && seen[TW_CODEC_CALLS]);
}

static void losses_and_switches_are_counted(void **state)
{
	struct tw_block_header header = {0};
	const uint8_t *stored;
	uint64_t *payload;

	raw_bytes = 0;
	put_record(10, TW_EVENT_CALL, 0, 0, 1);
	put_record(11, TW_EVENT_SWITCH, 0, 1, 5)[0] = 33;
	payload = put_record(30, TW_EVENT_LOSS, 0, 6, 0);
	payload[0] = 12;
	payload[1] = 100;
	payload[3] = 7;
	put_record(31, TW_EVENT_CALL, 0, 0, 1);
	header.first_sequence = 1000;
	header.lost[0] = 50;
	assert_int_equal(tw_block_encode_events(encoder, &header, raw, raw_bytes, &stored), 0);
	assert_int_equal(header.record_count, 4);
	assert_int_equal(header.event_count, 2);
	assert_int_equal(header.switch_count, 1);
	assert_int_equal(header.end_sequence, 1000 + 3 + 107);
	assert_int_equal(header.lost[0], 150);
	assert_int_equal(header.lost[2], 7);
	assert_int_equal(tw_block_encoder_tracee(encoder).tracee_id, 5);
	assert_int_equal(tw_block_encoder_tracee(encoder).run_seq, 33);
}

static void filling_reads_as_zero(void **state)
{
	struct tw_block_header header;
	uint64_t *payload;

	raw_bytes = 0;
	for (int i = 0; i < 300; i++) {
		payload = put_record((uint64_t)i, TW_EVENT_CALL, 0, 1, 1);
		payload[0] = 1;
		payload[1] = number();
	}
	store(&header);
	assert_int_equal(tw_block_decode_events(decoder, &header, back), 0);
	for (uint32_t at = 0; at < raw_bytes; at += 32)
		assert_int_equal(tw_get64(back + at + 24), 0);
}

static void unsound_records_are_refused(void **state)
{
	struct tw_block_header header;
	const uint8_t *stored;
	const uint64_t heads[] = {0,
				  3,
				  TW_RB_HEAD(3, 0, 8, 0),
				  TW_RB_HEAD(3, 0, 24, 0),
				  TW_RB_HEAD(3, 0, 32, 0),
				  TW_RB_HEAD(3, 0, 65520, 0),
				  TW_RB_HEAD(TW_EVENT_SWITCH, 0, 16, 0),
				  TW_RB_HEAD(TW_EVENT_LOSS, 0, 16, 0),
				  TW_RB_HEAD(TW_EVENT_CPU_TIME, 0, 32, 0),
				  TW_RB_HEAD(TW_EVENT_CPU_TIME | TW_EVENT_LOSS, 0, 64, 0),
				  TW_RB_HEAD(TW_EVENT_CPU_TIME | TW_EVENT_SWITCH, 0, 32, 0),
				  TW_RB_HEAD(TW_EVENT_CPU_TIME | TW_EVENT_CALL, 0, 16, 0)};

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		raw_bytes = 0;
		put_record(1, TW_EVENT_CALL, 0, 0, 1);
		put_record(2, TW_EVENT_CALL, 0, 6, 1);
		tw_put64(raw + 24, heads[i]);
		memset(&header, 0, sizeof header);
		assert_int_equal(tw_block_encode_events(encoder, &header, raw, raw_bytes, &stored), TW_EFORMAT);
	}
}

static void every_changed_byte_is_found(void **state)
{
	struct tw_block_header header, changed;
	uint8_t *input = tw_block_decoder_input(decoder);

	raw_bytes = 0;
	for (uint32_t i = 0; i < 300; i++)
		put_record(i * 30, TW_EVENT_CALL, 1, 2, 77)[1] = number();
	store(&header);
	for (size_t i = 0; i < sizeof header; i++) {
		changed = header;
		((uint8_t *)&changed)[i] ^= 1u << i % 8;
		assert_true(tw_block_header_check(&changed) < 0);
	}
	for (uint32_t i = 0; i < header.stored_bytes; i++) {
		input[i] ^= 1u << i % 8;
		assert_int_equal(tw_block_decode_events(decoder, &header, back), TW_EFORMAT);
		input[i] ^= 1u << i % 8;
	}
	assert_int_equal(tw_block_decode_events(decoder, &header, back), 0);
}

/* The checksum detects accidents; deliberate damage must be survived too. */
static void damage_behind_the_checksum_is_survived(void **state)
{
	struct tw_block_header header;
	struct tw_codec_output out;
	struct tw_calls_tables *tables = tw_calls_tables_create();
	static uint8_t bytes[TW_CODEC_ENCODED_BYTES_MAX + TW_COLUMN_SLACK_BYTES], whole[sizeof bytes];
	const uint8_t *encoded;
	static const enum tw_block_codec codecs[] = {TW_CODEC_CALLS, TW_CODEC_RETURNS, TW_CODEC_PLACES};
	uint64_t ticks = 1;
	uint32_t count;

	for (int round = 0; round < 3000; round++) {
		if (round % 100 == 0) {
			raw_bytes = 0;
			while (raw_bytes < 5000)
				run_program(1, 0, &ticks, round % 200 == 0);
			for (uint32_t i = 0; i < 100 && round % 300 == 0; i++)
				put_record(ticks, TW_EVENT_STACK, 0, 5, 1)[4] = number() % 20;
			store(&header);
			assert_int_equal(tw_block_decode_bytes(decoder, &header, &encoded), 0);
			memcpy(whole, encoded, header.encoded_bytes);
		}
		memcpy(bytes, whole, header.encoded_bytes);
		for (uint64_t flips = number() % 4; flips < 4; flips++)
			bytes[number() % header.encoded_bytes] = (uint8_t)number();
		count = round % 7 ? header.encoded_bytes : (uint32_t)(number() % header.encoded_bytes);
		out = (struct tw_codec_output){back, raw_bytes, header.record_count};
		tw_codec_calls_decode(tables, bytes, count, codecs[round % 3], &out);
		tw_codec_values_decode(bytes, count, &out);
		tw_codec_generic_decode(bytes, count, &out);
	}
	tw_calls_tables_destroy(tables);
}

/* A reader that only needs to know whether a capture contains returns need not unpack blocks without any. */
static void ends_are_told_by_the_header(void **state)
{
	static const struct {
		unsigned kind;
		bool is_end;
	} kinds[] = {{TW_EVENT_CALL, false},
		     {TW_EVENT_RETURN_FROM, true},
		     {TW_EVENT_EXCEPTION_FROM, true},
		     {TW_EVENT_RETURN_TO, false},
		     {TW_EVENT_STACK, false},
		     {TW_EVENT_GC_MINOR_START, true},
		     {TW_EVENT_GC_MAJOR_END, true},
		     {TW_EVENT_CPU_TIME | TW_EVENT_CALL, false},
		     {TW_EVENT_CPU_TIME | TW_EVENT_RETURN_FROM, true}};
	struct tw_block_header header;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		/* All of one kind; and one of it at the end of calls of two shapes. */
		for (unsigned others = 0; others <= 20; others += 20) {
			raw_bytes = 0;
			for (unsigned j = 0; j < others; j++)
				put_record(1000 + j, TW_EVENT_CALL, 0, j % 3, 5);
			for (unsigned j = 0; j < 2; j++)
				put_record(2000 + j, kinds[i].kind, 0, kinds[i].kind == TW_EVENT_STACK ? 1 : 2, 5);
			comes_back(&header);
			assert_int_equal(header.flags, kinds[i].is_end ? 0 : TW_BLOCK_FLAG_MOMENTS);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_hold_every_width_in_both_modes),
		cmocka_unit_test(values_come_back_small),
		cmocka_unit_test(calls_come_back_small),
		cmocka_unit_test(returns_come_back_small),
		cmocka_unit_test(arguments_and_results_come_back_small),
		cmocka_unit_test(stacks_come_back_small),
		cmocka_unit_test(small_blocks_do_not_stop_packing),
		cmocka_unit_test(random_records_come_back),
		cmocka_unit_test(losses_and_switches_are_counted),
		cmocka_unit_test(filling_reads_as_zero),
		cmocka_unit_test(ends_are_told_by_the_header),
		cmocka_unit_test(unsound_records_are_refused),
		cmocka_unit_test(every_changed_byte_is_found),
		cmocka_unit_test(damage_behind_the_checksum_is_survived),
	};
	int failed;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	encoder = tw_block_encoder_create();
	decoder = tw_block_decoder_create();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tw_block_encoder_destroy(encoder);
	tw_block_decoder_destroy(decoder);
	return failed;
}
