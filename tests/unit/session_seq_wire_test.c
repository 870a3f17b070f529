/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A token survives the way to bytes and back whole; a cut, damaged or foreign encoding is refused and leaves the
 *		output untouched; Erlang's tuple likewise.
 * Method	Labels of every type and serials at their limits go there and back; each cut and each changed bit of an encoding
 *		is refused; tuples that are no token are refused.
 */
#include "seq_help.h"

#include <stdlib.h>

static struct tw_arena arena;
static struct tw_term own;

static int begin(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	own = tw_term_atom_z("tw-1-2@00000000");
	return 0;
}

static int end(void **state)
{
	tw_arena_fini(&arena);
	return 0;
}

static int decode(const unsigned char *data, size_t bytes, size_t *used, struct tw_seq_parts *out)
{
	/* Exactly as many bytes as there are, so that a sanitizer sees a read beyond. */
	unsigned char *copy = malloc(bytes + !bytes);
	struct tw_etf_options options = {.node = own};
	int error;

	memcpy(copy, data, bytes);
	error = tw_seq_parts_decode(&arena, copy, bytes, &options, used, out);
	free(copy);
	return error;
}

static size_t encode(const struct tw_seq_parts *parts, unsigned char *data)
{
	size_t bytes = 0;

	assert_int_equal(tw_seq_parts_encode(parts, own, data, TW_SEQ_ENCODED_BYTES_MAX, &bytes), 0);
	return bytes;
}

static void there_and_back(const struct tw_seq_parts *parts)
{
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX + 1];
	struct tw_seq_parts read;
	size_t bytes = encode(parts, data), used = 0;

	assert_int_equal(decode(data, bytes, NULL, &read), 0);
	seq_assert_same(parts, &read);
	data[bytes] = 1;
	assert_int_equal(decode(data, bytes + 1, &used, &read), 0);
	assert_int_equal(used, bytes);
	assert_int_equal(decode(data, bytes + 1, NULL, &read), TW_EFORMAT);
}

static void every_label_and_serial_survives(void **state)
{
	static const int64_t serials[] =
		{0, 1, 63, 64, -1, -64, -65, INT32_MAX, (int64_t)1 << 27, TW_SMALL_MAX, TW_SMALL_MIN};

	for (size_t i = 0; i < TW_COUNT_OF(seq_labels); i++) {
		struct tw_seq_parts parts = seq_parts(&arena, seq_labels[i], 1, 2);

		there_and_back(&parts);
	}
	for (size_t i = 0; i < TW_COUNT_OF(serials); i++) {
		struct tw_seq_parts parts = seq_parts(&arena, "x", serials[i], serials[TW_COUNT_OF(serials) - 1 - i]);

		parts.number = parts.serial = parts.creation = UINT32_MAX - (uint32_t)i;
		parts.flags = (uint8_t)(i * 6);
		there_and_back(&parts);
	}
	there_and_back(&(struct tw_seq_parts){0});
}

/* A pid of this node inside a label is that node's elsewhere. */
static void a_local_pid_in_a_label_gets_its_node(void **state)
{
	struct tw_seq_parts parts = seq_parts(&arena, "{<0.83.0>}", 0, 1), read;
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_etf_options elsewhere = {.node = tw_term_atom_z("other@host")};
	struct tw_identifier pid;
	size_t bytes = encode(&parts, data);

	assert_int_equal(tw_seq_parts_decode(&arena, data, bytes, &elsewhere, NULL, &read), 0);
	assert_int_equal(tw_term_get_identifier(tw_term_element(read.label, 0), &pid), 0);
	assert_true(tw_term_is_same(pid.node, own));
}

static void cut_and_damaged_bytes_are_refused(void **state)
{
	struct tw_seq_parts parts = seq_parts(&arena, "{order,[1,2,3]}", 4, 5), read = parts;
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	size_t bytes = encode(&parts, data), used = 99;

	for (size_t cut = 0; cut < bytes; cut++)
		assert_int_equal(decode(data, cut, &used, &read), TW_EFORMAT);
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		int error;

		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		error = decode(data, bytes, &used, &read);
		assert_int_equal(error, bit / 8 == 2 ? TW_EVERSION : TW_EFORMAT);
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	/* Untouched. */
	assert_int_equal(used, 99);
	seq_assert_same(&parts, &read);
}

static void what_does_not_fit_is_an_error(void **state)
{
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX], label[TW_SEQ_LABEL_BYTES_MAX] = {0};
	struct tw_seq_parts parts = seq_parts(&arena, "x", 0, 1), read;
	size_t bytes = encode(&parts, data), used = 7;
	struct tw_etf_options safe = {.is_safe = 1};

	for (size_t capacity = 0; capacity < bytes; capacity++)
		assert_int_equal(tw_seq_parts_encode(&parts, own, data, capacity, &used), TW_ENOSPC);
	/* A binary has six bytes around it. */
	parts.label = tw_term_binary(&arena, label, sizeof label - 6);
	there_and_back(&parts);
	parts.label = tw_term_binary(&arena, label, sizeof label - 5);
	assert_int_equal(tw_seq_parts_encode(&parts, own, data, sizeof data, &used), TW_ELIMIT);
	assert_int_equal(used, 7);
	/* Without space in the atom table, as decoding with is_safe. */
	parts.label = seq_term(&arena, "atom_of_the_wire_test");
	bytes = encode(&parts, data);
	tw_atom_table_fini();
	assert_int_equal(tw_seq_parts_decode(&arena, data, bytes, &safe, NULL, &read), TW_ENOENT);
}

static void erlang_tuples_there_and_back(void **state)
{
	static const char *const wrong[] = {"foo",
					    "{1,2}",
					    "{1,2,3,4,5}",
					    "{64,l,1,<0.1.0>,0}",
					    "{-1,l,1,<0.1.0>,0}",
					    "{1,l,x,<0.1.0>,0}",
					    "{1,l,1,<0.1.0>,x}",
					    "{a,l,1,<0.1.0>,0}",
					    "{1,l,1,#Port<0.1>,0}",
					    "{1,l,576460752303423488,<0.1.0>,0}",
					    "{}",
					    "[1]"};
	struct tw_seq_parts parts, read = {0};

	for (size_t i = 0; i < TW_COUNT_OF(seq_labels); i++) {
		parts = seq_parts(&arena, seq_labels[i], -3, 5);
		assert_int_equal(tw_seq_parts_from_erlang(tw_seq_parts_to_erlang(&arena, &parts), own, &read), 0);
		seq_assert_same(&parts, &read);
	}
	assert_int_equal(tw_seq_parts_from_erlang(seq_term(&arena, "{3,{l},2,<0.9.1>,1}"), own, &read), 0);
	assert_true(tw_term_is_same(read.node, own));
	assert_int_equal(read.number, 9);
	assert_int_equal(read.current, 2);
	assert_int_equal(read.previous, 1);
	parts = read;
	for (size_t i = 0; i < TW_COUNT_OF(wrong); i++)
		assert_int_equal(tw_seq_parts_from_erlang(seq_term(&arena, wrong[i]), own, &read), TW_EBADARG);
	seq_assert_same(&parts, &read);
	assert_int_equal(tw_seq_parts_from_erlang(tw_term_nil(), own, &read), 0);
	assert_true(tw_term_is_none(read.label));
	assert_true(tw_term_is_same(tw_seq_parts_to_erlang(&arena, &read), tw_term_nil()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_label_and_serial_survives, begin, end),
		cmocka_unit_test_setup_teardown(a_local_pid_in_a_label_gets_its_node, begin, end),
		cmocka_unit_test_setup_teardown(cut_and_damaged_bytes_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(erlang_tuples_there_and_back, begin, end),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_an_error, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
