/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A term that does not fit a buffer fills it: the output is a valid external term, shows where it was cut, and
 *		never exceeds the buffer; a long list keeps as many elements as fit.
 * Method	Terms of every type under every limit are decoded again and compared; long lists are counted; maps whose
 *		keys are deep keep all keys or none.
 */
#include "term/etf.h"
#include "term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* clang-format off */
static const char *const texts[] = {
	"1", "123456789012345678901234567890", "1.5", "a", "[]", "{}", "#{}", "<<>>", "<<1,2,3:4>>", "\"a longer string\"",
	"{trace,<0.83.0>,call,{lists,seq,[1,10]}}", "[1,2|3]", "#{a => [1,2,3],{b,\"key\"} => <<\"some bytes of a binary, 40 of them\">>}",
	"{#Port<0.1>,#Ref<0.1.2.3>,fun a:b/2,#{#{1 => 2} => #{3 => 4}}}", "[[[[[[1],2],3],4],5],6]", "[300,[400,500|x],{y,[600]}|z]",
	"<<\"a binary that is longer than its parts, so that it is cut in the middle somewhere\">>",
};
/* clang-format on */

static struct tw_arena arena;

static struct tw_term decode(const void *bytes, size_t count)
{
	struct tw_term term = {0};
	size_t used = 0;

	assert_int_equal(tw_etf_decode(&arena, bytes, count, NULL, &used, &term), 0);
	assert_int_equal(used, count);
	return term;
}

static void every_limit_is_kept(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(texts); i++) {
		bool was_whole = false;

		for (size_t limit = 0; limit < 300; limit++) {
			uint8_t *buffer = malloc(limit + 1);
			char text[2000];
			struct tw_term term = {0}, read;
			size_t bytes;

			tw_arena_init(&arena, SIZE_MAX);
			assert_int_equal(tw_term_parse(&arena, texts[i], strlen(texts[i]), &term, NULL), 0);
			buffer[limit] = 0x5a;
			bytes = tw_etf_encode_cut(term, buffer, limit);
			assert_in_range(bytes, 0, limit);
			assert_int_equal(buffer[limit], 0x5a);
			assert_int_equal(bytes != 0, limit >= 6);
			if (bytes) {
				read = decode(buffer, bytes);
				tw_term_format(read, TW_PRINT_PRETTY, text, sizeof text);
				assert_int_equal(tw_term_is_equal(read, term), strstr(text, "'...'") == NULL);
				/* More space never gives a worse result. */
				assert_true(!was_whole || tw_term_is_equal(read, term));
				was_whole = tw_term_is_equal(read, term);
			}
			tw_arena_fini(&arena);
			free(buffer);
		}
		assert_true(was_whole);
	}
}

static size_t elements_kept(int count, int64_t first, size_t limit)
{
	static uint8_t buffer[65536];
	struct tw_term list = tw_term_nil();
	size_t kept = 0;

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = count; i > 0; i--)
		list = tw_term_cons(&arena, tw_term_integer(&arena, first + i), list);
	list = decode(buffer, tw_etf_encode_cut(list, buffer, limit));
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list))
		kept++;
	tw_arena_fini(&arena);
	return kept;
}

static void lists_fill_their_room(void **state)
{
	/* Integers of two bytes, of five, and of both. */
	assert_int_equal(elements_kept(200, 0, 6000), 200);
	assert_in_range(elements_kept(20000, 1000, 6000), 1195, 1200);
	assert_int_equal(elements_kept(1100, 1000, 6000), 1100);
	assert_in_range(elements_kept(20000, -40, 6000), 1340, 1360);
}

/* Two keys that would be equal if their deep parts were cut. */
static void keys_stay_different(void **state)
{
	static uint8_t buffer[2000];

	for (unsigned levels = 1; levels < 100; levels++) {
		for (size_t limit = 20; limit < 700; limit += 17) {
			struct tw_term_pair pairs[2];

			tw_arena_init(&arena, SIZE_MAX);
			for (int key = 0; key < 2; key++) {
				struct tw_term deep = tw_term_integer(&arena, key);

				for (unsigned i = 0; i < levels; i++)
					deep = tw_term_tuple(&arena, &deep, 1);
				pairs[key] = (struct tw_term_pair){deep, tw_term_nil()};
			}
			struct tw_term map = tw_term_map(&arena, pairs, 2);
			decode(buffer, tw_etf_encode_cut(tw_term_tuple(&arena, &map, 1), buffer, limit));
			tw_arena_fini(&arena);
		}
	}
}

static void depth_is_no_danger(void **state)
{
	static uint8_t buffer[6000];
	struct tw_term deep = tw_term_nil();

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = 0; i < 100000; i++)
		deep = tw_term_cons(&arena, deep, tw_term_nil());
	assert_true(tw_etf_encode_cut(deep, buffer, sizeof buffer) > 64 * 6);
	tw_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_limit_is_kept),
		cmocka_unit_test(lists_fill_their_room),
		cmocka_unit_test(keys_stay_different),
		cmocka_unit_test(depth_is_no_danger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
