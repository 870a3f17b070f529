/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a layout's text says which words a call records, and nothing wrong or hostile passes for one.
 * Method: texts good and bad; payloads whole, short and lying.
 */
#include "tracewheel/error.h"
#include "tracewheel/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char text[] = ":i8@6- db:p8/point*@0- name:s8@1- mode:e4/mode{READ=1,WRITE=2}@2- d:f8@8- p:S16@34 x:_16@-- ...";

static void values_are_read(void **state)
{
	struct tw_layout *layout;

	assert_int_equal(tw_layout_parse(text, strlen(text), &layout), 0);
	assert_int_equal(layout->count, 6);
	assert_true(layout->is_variadic);
	assert_int_equal(layout->word_count, 6);
	assert_int_equal(layout->string_count, 1);
	assert_int_equal(layout->result.registers[0], 6);
	assert_string_equal(layout->values[0].type_name, "point*");
	assert_int_equal(layout->values[2].enumerator_count, 2);
	assert_string_equal(layout->values[2].enumerators[1].name, "WRITE");
	assert_int_equal(layout->values[3].registers[0], 8);
	assert_int_equal(layout->values[4].registers[1], 4);
	assert_int_equal(layout->values[5].registers[0], -1);
	tw_layout_destroy(layout);
}

static void nonsense_is_refused(void **state)
{
	static const char *const texts[] = {"",		   "x",		     ":i8",	    ":i8@",	      ":i8@6",
					    ":i8@6g",	   ":q8@6-",	     ":i8x@6-",	    ":i8@-1",	      ":e4{A}@6-",
					    ":e4{A=}@6-",  ":e4{A=1@6-",     ":e4{A=1}x@6-", ":e4{A=x}@6-",   ":v0@-- a:s8@01",
					    ":v0@-- a:i8@6-", ":v0@-- ... a:i8@0-", ":v0@--  ",	    ":i99999999999@6-", "@:i8"};
	struct tw_layout *layout;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (tw_layout_parse(texts[i], strlen(texts[i]), &layout) != TW_EBADARG)
			fail_msg("%s was taken", texts[i]);
	assert_int_equal(tw_layout_parse(":v0@--\0", 7, &layout), TW_EBADARG);
}

static void payloads_are_not_trusted(void **state)
{
	uint64_t words[8] = {1, 2, 3, 4, 5, 6, 5 | (uint64_t)TW_LAYOUT_CUT << 32, 0};
	struct tw_layout_reader reader = {.words = words, .word_count = 8};
	struct tw_layout_item item;
	struct tw_layout *layout;

	memcpy(&words[7], "users", 5);
	assert_int_equal(tw_layout_parse(text, strlen(text), &layout), 0);
	reader.layout = layout;
	assert_true(tw_layout_next(&reader, &item));
	assert_true(tw_layout_next(&reader, &item));
	assert_int_equal(item.words[0], 2);
	assert_int_equal(item.text_bytes, 5);
	assert_memory_equal(item.text, "users", 5);
	assert_true(item.is_cut);
	for (int i = 0; i < 4; i++)
		assert_true(tw_layout_next(&reader, &item));
	assert_int_equal(item.word_count, 0);
	assert_false(tw_layout_next(&reader, &item));
	/* Too few words; a string that is longer than what is there. */
	reader = (struct tw_layout_reader){.layout = layout, .words = words, .word_count = 5};
	assert_false(tw_layout_next(&reader, &item));
	words[6] = UINT32_MAX;
	reader = (struct tw_layout_reader){.layout = layout, .words = words, .word_count = 8};
	assert_true(tw_layout_next(&reader, &item));
	assert_false(tw_layout_next(&reader, &item));
	tw_layout_destroy(layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(payloads_are_not_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
