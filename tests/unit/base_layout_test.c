/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a layout's text determines the words that a call records, and wrong or hostile text is refused.  Method: good
 * and bad texts; payloads that are whole, too short, or inconsistent.
 */
#include "tracewheel/error.h"
#include "tracewheel/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

static const char text[] =
	":i8@6- db:p8/point*@0- name:s8@1- mode:e4/mode{READ=1,WRITE=2}@2- d:f8@8- p:S16@34 x:_16@-- ...";

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
	static const char *const texts[] = {"",
					    "x",
					    ":i8",
					    ":i8@",
					    ":i8@6",
					    ":i8@6g",
					    ":q8@6-",
					    ":i8x@6-",
					    ":i8@-1",
					    ":e4{A}@6-",
					    ":e4{A=}@6-",
					    ":e4{A=1@6-",
					    ":e4{A=1}x@6-",
					    ":e4{A=x}@6-",
					    ":v0@-- a:s8@01",
					    ":v0@-- a:i8@6-",
					    ":v0@-- ... a:i8@0-",
					    ":v0@--  ",
					    ":d0@6-",
					    ":d9@6-",
					    ":d256@6-",
					    ":i99999999999@6-",
					    "@:i8"};
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
	/* Too few words; a string longer than the payload. */
	reader = (struct tw_layout_reader){.layout = layout, .words = words, .word_count = 5};
	assert_false(tw_layout_next(&reader, &item));
	words[6] = UINT32_MAX;
	reader = (struct tw_layout_reader){.layout = layout, .words = words, .word_count = 8};
	assert_true(tw_layout_next(&reader, &item));
	assert_false(tw_layout_next(&reader, &item));
	tw_layout_destroy(layout);
}

/* A return: -1 and errno; what was filled, in order, behind it. */
static void filled_values_are_read(void **state)
{
	static const char memory[] =
		":i4{errno=1}@6- a:M8{r=1,a1=1}@0- n:x8@1- s:s8@2- v:V8{i4=2}@3- z:Z8@4- o:o4{1=6}@5-";
	uint64_t words[] = {5,
			    2,
			    3 | (uint64_t)TW_LAYOUT_CUT << 32,
			    0,
			    8,
			    1 | (uint64_t)UINT32_MAX << 32,
			    (uint64_t)TW_LAYOUT_NOTHING << 32};
	struct tw_layout_reader reader = {.words = words, .word_count = 7};
	struct tw_layout_value element;
	struct tw_layout_factor factor;
	struct tw_layout_item item;
	struct tw_layout *layout;
	uint32_t count;

	memcpy(&words[3], "abc", 3);
	assert_int_equal(tw_layout_parse(memory, strlen(memory), &layout), 0);
	assert_true(layout->has_errno);
	assert_int_equal(layout->string_count, 1);
	assert_int_equal(layout->filled_count, 3);
	assert_true(tw_layout_factor(&layout->values[0], 1, &factor));
	assert_int_equal(factor.kind, 'a');
	assert_int_equal(factor.number, 1);
	assert_false(tw_layout_factor(&layout->values[0], 2, &factor));
	assert_true(tw_layout_numbers(&layout->values[3], &element, &count));
	assert_int_equal(count, 2);
	assert_int_equal(tw_layout_error(layout, words, 7), 2);
	reader.layout = layout;
	assert_true(tw_layout_next_filled(&reader, &item));
	assert_memory_equal(item.text, "abc", 3);
	assert_true(item.is_cut);
	assert_true(tw_layout_next_filled(&reader, &item));
	assert_string_equal(item.value->name, "v");
	assert_true(tw_layout_next_filled(&reader, &item));
	assert_true(item.is_nothing);
	assert_null(item.text);
	assert_false(tw_layout_next_filled(&reader, &item));
	/* The sixth argument counts if the second has one of its bits. */
	assert_true(tw_layout_is_given(layout, &layout->values[5], (uint64_t[6]){0, 4}));
	assert_false(tw_layout_is_given(layout, &layout->values[5], (uint64_t[6]){6, 1, 6, 6, 6, 6}));
	/* A payload that is too short, or whose bytes are more than it has. */
	reader = (struct tw_layout_reader){.layout = layout, .words = words, .word_count = 3};
	assert_false(tw_layout_next_filled(&reader, &item));
	assert_int_equal(tw_layout_error(layout, words, 1), 0);
	tw_layout_destroy(layout);
}

static void wrong_memory_is_refused(void **state)
{
	static const char *const texts[] = {"a:m8@0-",
					    "a:m8{}@0-",
					    "a:m8{r=1}@0-",
					    "a:m8{a1=1}@0-",
					    "a:m8{a0=1}@8-",
					    "a:s8@8-",
					    "a:M8{x=1}@0-",
					    "a:M8{a9=1}@0-",
					    "a:M8{n=-1}@0-",
					    "a:M8{n=1,n=1,n=1}@0-",
					    "a:V8{i3=1}@0-",
					    "a:V8{i4=0}@0-",
					    "a:V8{i8=33}@0-",
					    "a:V8{f8=1}@0-",
					    "a:V8@0-",
					    "a:Z8@01",
					    "a:M8{a1=1}@0- b:i8@--",
					    "a:M8{n=1}@6-",
					    "a:M8{a1=1}@0- b:f8@8-"};
	char text[200];
	struct tw_layout *layout;

	assert_int_equal(tw_layout_parse(":Z8@--", 6, &layout), TW_EBADARG);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(text, sizeof text, ":v0@-- %s", texts[i]);
		if (tw_layout_parse(text, strlen(text), &layout) != TW_EBADARG)
			fail_msg("%s was taken", texts[i]);
	}
}

static void fields_are_bits_of_words(void **state)
{
	static const char fields[] =
		":S16/pair{a.i32=0,b.f64=64}@68 "
		"x:S8{in.x.u3=0,.i8=8,n=5,a.i65=0,b.i8=60,c.q8=0,d.f16=0,e.i8=-1,f.i128=0,g.p128=0,.u=1}@0- y:i4@1-";
	struct tw_layout_field field;
	struct tw_layout *layout;

	assert_int_equal(tw_layout_parse(fields, strlen(fields), &layout), 0);
	assert_true(tw_layout_field(&layout->result, 1, &field));
	assert_int_equal(field.name_bytes, 1);
	assert_int_equal(field.type, 'f');
	assert_int_equal(field.first_bit, 64);
	assert_int_equal(field.bits, 64);
	assert_false(tw_layout_field(&layout->result, 2, &field));
	assert_true(tw_layout_field(&layout->values[0], 0, &field));
	assert_int_equal(field.name_bytes, 4);
	assert_true(tw_layout_field(&layout->values[0], 1, &field));
	assert_int_equal(field.name_bytes, 0);
	for (uint32_t i = 2; i < 12; i++)
		assert_int_equal(tw_layout_field(&layout->values[0], i, &field), i == 8);
	assert_false(tw_layout_field(&layout->values[1], 0, &field));
	tw_layout_destroy(layout);
}

/* Older captures have one word of two; for a long double they have rax, which is no part of it. */
static void results_have_as_many_words_as_were_recorded(void **state)
{
	static const struct {
		const char *text;
		uint32_t words, known;
	} cases[] = {{":i8@6-", 1, 1},	{":i8@6-", 2, 1},  {":S16@68", 1, 1}, {":S16@68", 2, 2},
		     {":S16@89", 2, 2}, {":S16@68", 0, 0}, {":S24@--", 1, 0}, {":f16@--", 1, 0},
		     {":f16@--", 2, 2}, {":f8@8-", 1, 1},  {":_16@--", 2, 0}, {":p8@7-", 1, 0}};
	const uint64_t words[2] = {7, 8};
	struct tw_layout_item item;
	struct tw_layout *layout;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(tw_layout_parse(cases[i].text, strlen(cases[i].text), &layout), 0);
		assert_int_equal(tw_layout_result(layout, words, cases[i].words, &item), cases[i].known != 0);
		assert_int_equal(item.word_count, cases[i].known);
		assert_ptr_equal(item.value, &layout->result);
		for (uint32_t j = 0; j < item.word_count; j++)
			assert_int_equal(item.words[j], words[j]);
		tw_layout_destroy(layout);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(payloads_are_not_trusted),
		cmocka_unit_test(filled_values_are_read),
		cmocka_unit_test(wrong_memory_is_refused),
		cmocka_unit_test(fields_are_bits_of_words),
		cmocka_unit_test(results_have_as_many_words_as_were_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
