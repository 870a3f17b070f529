/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: figures, sizes, durations, JSON strings, Erlang atoms and lines of /proc/PID/maps are written and read
 * correctly.  Method: tables of values at the limits; output is compared as text.
 */
#include "tools/record/mapped.h"
#include "views/names/names.h"
#include "tools/tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

static void test_figures(void **state)
{
	char text[TW_FIGURE_BYTES];
	assert_string_equal(tw_figure_count(text, 0), "0");
	assert_string_equal(tw_figure_count(text, 999), "999");
	assert_string_equal(tw_figure_count(text, 1000), "1,000");
	assert_string_equal(tw_figure_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(tw_figure_of(text, 0, "event was", "events were"), "0 events were");
	assert_string_equal(tw_figure_of(text, 1, "event was", "events were"), "1 event was");
	assert_string_equal(tw_figure_of(text, UINT64_MAX, "x", "terms are not trace messages"),
			    "18,446,744,073,709,551,615 terms are not trace messages");
	assert_string_equal(tw_figure_bytes(text, 999), "999 B");
	assert_string_equal(tw_figure_bytes(text, 1536), "1.50 KiB");
	assert_string_equal(tw_figure_bytes(text, UINT64_C(300) << 20), "300 MiB");
	assert_string_equal(tw_figure_short(text, 12345678), "12.3 M");
	assert_string_equal(tw_figure_short(text, 0), "0");
	assert_string_equal(tw_figure_seconds(text, 0.0000012), "1.2 us");
	assert_string_equal(tw_figure_seconds(text, 1.234), "1.23 s");
	assert_string_equal(tw_figure_seconds(text, 125), "2 min 05 s");
	assert_string_equal(tw_figure_short(text, 4187), "4,187");
	assert_string_equal(tw_figure_short(text, 99.9), "99.9");
}

/* No figure has an exponent, four digits where three are meant, or 60 seconds. */
static void test_figures_at_limits(void **state)
{
	char text[TW_FIGURE_BYTES];
	assert_string_equal(tw_figure_short(text, 99.96), "100");
	assert_string_equal(tw_figure_short(text, 9999.6), "10 k");
	assert_string_equal(tw_figure_short(text, 999960), "1 M");
	assert_string_equal(tw_figure_short(text, 999.6e6), "1 G");
	assert_string_equal(tw_figure_short(text, 5e12), "5 T");
	assert_string_equal(tw_figure_bytes(text, 10239), "10.0 KiB");
	assert_string_equal(tw_figure_bytes(text, 102399), "100 KiB");
	assert_string_equal(tw_figure_bytes(text, 1023999), "0.98 MiB");
	assert_string_equal(tw_figure_seconds(text, 0.9996), "1 s");
	assert_string_equal(tw_figure_seconds(text, 0.0009997), "1 ms");
	assert_string_equal(tw_figure_seconds(text, 9.996e-7), "1 us");
	assert_string_equal(tw_figure_seconds(text, 0), "0 ns");
	assert_string_equal(tw_figure_seconds(text, 119.4), "119 s");
	assert_string_equal(tw_figure_seconds(text, 179.7), "3 min 00 s");
	assert_string_equal(tw_figure_seconds(text, 3599.6), "60 min 00 s");
}

static void test_sizes(void **state)
{
	uint64_t bytes;
	assert_true(tw_parse_bytes("65536", &bytes) && bytes == 65536);
	assert_true(tw_parse_bytes("64K", &bytes) && bytes == 65536);
	assert_true(tw_parse_bytes("1.5MiB", &bytes) && bytes == 1572864);
	assert_true(tw_parse_bytes("2gb", &bytes) && bytes == UINT64_C(2) << 30);
	static const char *const wrong[] = {"", "-1", "M", "4X", "4MM", "0x10", "1e40", "nan", " 4"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(tw_parse_bytes(wrong[i], &bytes));
}

static void test_durations(void **state)
{
	uint64_t ns;
	assert_true(tw_parse_duration("1.5", &ns) && ns == 1500000000);
	assert_true(tw_parse_duration("200ms", &ns) && ns == 200000000);
	assert_true(tw_parse_duration("3us", &ns) && ns == 3000);
	assert_true(tw_parse_duration(".25", &ns) && ns == 250000000);
	assert_false(tw_parse_duration("1.5 s", &ns));
	assert_false(tw_parse_duration("-1", &ns));
	assert_false(tw_parse_duration("", &ns));
}

static struct tw_out out;

static const char *written(void)
{
	out.data[out.used] = 0;
	out.used = 0;
	return out.data;
}

static void test_digits(void **state)
{
	tw_out_init(&out, STDOUT_FILENO);
	static const uint64_t values[] = {0, 9, 10, 99, 100, 12345, 1000000, UINT64_MAX};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		char expected[32];
		snprintf(expected, sizeof expected, "%llu", (unsigned long long)values[i]);
		tw_put_u64(&out, values[i]);
		assert_string_equal(written(), expected);
		snprintf(expected, sizeof expected, "%llx", (unsigned long long)values[i]);
		tw_put_hex(&out, values[i]);
		assert_string_equal(written(), expected);
	}
	tw_put_digits(&out, 1234, 9);
	assert_string_equal(written(), "000001234");
}

/* At every distance from a full buffer: cancelled text is not in the file, and the rest is, once. */
static void test_cancel(void **state)
{
	for (size_t left = 0; left < 40; left += 3) {
		FILE *file = tmpfile();
		size_t all = TW_OUT_BYTES + TW_OUT_SLACK - left, bytes = 0;
		assert_non_null(file);
		tw_out_init(&out, fileno(file));
		for (; out.used + 8 < all - TW_OUT_SLACK; bytes += 8)
			tw_out_text(&out, "01234567");
		for (int i = 0; i < 20; i++) {
			uint64_t mark = tw_out_mark(&out);
			tw_out_text(&out, "cancelled ");
			tw_out_format(&out, "%d", i);
			assert_true(tw_out_cancel(&out, mark));
			tw_out_text(&out, "kept");
			bytes += 4;
		}
		assert_int_equal(tw_out_flush(&out), 0);
		assert_int_equal(fseek(file, 0, SEEK_END), 0);
		assert_int_equal(ftell(file), bytes);
		fclose(file);
	}
	/* Text that can no longer be taken back stays. */
	tw_out_init(&out, -1);
	uint64_t mark = tw_out_mark(&out);
	for (size_t i = 0; i < 2 * TW_OUT_BYTES; i += 8)
		tw_out_text(&out, "01234567");
	assert_false(tw_out_cancel(&out, mark));
	out.used = 0;
}

static void test_json(void **state)
{
	tw_out_init(&out, STDOUT_FILENO);
	tw_json_quote(&out, "a\"b\\c\n\x7f", 7);
	assert_string_equal(written(), "\"a\\\"b\\\\c\\u000a\\u007f\"");
	tw_json_quote(&out, "gr\xc3\xbc\xc3\x9f \xff\xc0\x80\xed\xa0\x80", 13);
	assert_string_equal(written(), "\"gr\xc3\xbc\xc3\x9f \\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
	struct tw_json json = {.out = &out};
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "a", 1);
	tw_json_open(&json, "b", '[');
	tw_json_bool(&json, NULL, true);
	tw_json_double(&json, NULL, 0.5);
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
	assert_string_equal(written(), "{\"a\":1,\"b\":[true,0.5]}\n");
}

static void test_atoms(void **state)
{
	static const struct {
		const char *name, *atom;
	} rows[] = {{"libsqlite3", "libsqlite3"}, {"a@b_C1", "a@b_C1"},
		    {"libstdc++", "'libstdc++'"}, {"_ZN1aEv", "'_ZN1aEv'"},
		    {"receive", "'receive'"},	  {"it's", "'it\\'s'"},
		    {"a\tb", "'a\\x{9}b'"},	  {"", "''"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[64] = "";
		text[tw_name_atom(rows[i].name, text, sizeof text)] = 0;
		assert_string_equal(text, rows[i].atom);
	}
	char small[4];
	assert_int_equal(tw_name_atom("libstdc++", small, sizeof small), sizeof small);
}

static void test_maps(void **state)
{
	static const struct {
		const char *line, *file;
	} cases[] = {
		{"7f00-7f10 r-xp 00001000 fe:01 4711                       /usr/lib/lib a.so\n", "/usr/lib/lib a.so"},
		{"7f00-7f10 r-xp 00001000 fe:01 4711 /x", "/x"},
		{"7f00-7f10 r--p 00001000 fe:01 4711 /x\n", NULL},
		{"7f00-7f10 r-xp 00001000 fe:01 4711 /x (deleted)\n", NULL},
		{"7f00-7f10 r-xp 00000000 00:00 0 [vdso]\n", NULL},
		{"7f00-7f10 rwxp 00000000 00:00 0\n", NULL},
		{"7f00-7f10 rwxp 00000000 00:00 0 \n", NULL},
		{"7f00-7f10 x 00001000 fe:01 4711 /x\n", NULL},
		{"7f00-7f10  r-xp 00001000 fe:01 /x\n", NULL},
		{"     /x\n", NULL},
		{"\n", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char line[128];
		strcpy(line, cases[i].line);
		struct tw_mapped mapped;
		bool is_file = tw_mapped_read(line, &mapped);
		assert_int_equal(is_file, cases[i].file != NULL);
		if (!is_file)
			continue;
		assert_string_equal(mapped.path, cases[i].file);
		assert_string_equal(mapped.range, "7f00-7f10");
		assert_true(mapped.device_major == 0xfe && mapped.device_minor == 1 && mapped.inode == 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures), cmocka_unit_test(test_figures_at_limits),
		cmocka_unit_test(test_sizes),	cmocka_unit_test(test_durations),
		cmocka_unit_test(test_digits),	cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_json),	cmocka_unit_test(test_atoms),
		cmocka_unit_test(test_maps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
