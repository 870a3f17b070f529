/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: expressions find text in payloads by layouts and in terms, wherever it stands, and change nothing else; records that fit no
 * layout, and terms that are none, are read within their bounds.  Method: records of each shape; then random bytes, under the sanitizers.
 */
#include "pipeline/block/redact.h"
#include "pipeline/codec/codec.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "term/etf.h"
#include "tracewheel/consumer.h"
#include "tracewheel/error.h"
#include "tracewheel/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_WORDS 256

struct record {
	uint64_t ticks, head;
	uint64_t words[PAYLOAD_WORDS];
};

static unsigned seed = 20;

static unsigned below(unsigned most)
{
	return (unsigned)rand_r(&seed) % most;
}

static struct tw_redact *redact_of(const char *config)
{
	struct tw_redact *redact;

	assert_int_equal(tw_redact_create_lines(config, &redact), 0);
	assert_non_null(redact);
	return redact;
}

static void begin(struct record *record, unsigned kind, unsigned flags, uint32_t words)
{
	record->ticks = 1;
	record->head = TW_RB_HEAD(kind, flags | (words % 2 ? TW_EVENT_FLAG_HALF : 0), 16 + (words + 1) / 2 * 16, 1);
}

static uint32_t put_string(uint64_t *words, const char *text)
{
	size_t bytes = strlen(text);

	words[0] = bytes;
	words[bytes / 8 + 1] = 0;
	memcpy(words + 1, text, bytes);
	return 1 + (uint32_t)(bytes + 7) / 8;
}

static void strings_of_calls_and_returns(void **state)
{
	static const char text[] = ":i4@6- name:s8@0- size:i4@1- key:s8@2- got:Z8@3-";
	struct tw_redact *redact = redact_of("pattern _\nredact secret\nredact k=([0-9]+)\nredactx y\n");
	struct tw_layout *layout;
	struct record record;
	/* The words of the four arguments. */
	uint32_t used = 4;

	(void)state;
	assert_int_equal(tw_layout_parse(text, sizeof text - 1, &layout), 0);
	/* The numbers have bytes that an expression would match. */
	memcpy(record.words, "secretssecretssecretsk=12   ....", 32);
	used += put_string(record.words + used, "a Secret and a SECRET");
	used += put_string(record.words + used, "k=123,k=4");
	begin(&record, TW_EVENT_CALL, TW_EVENT_FLAG_ARGS, used);
	tw_redact_record(redact, layout, (uint8_t *)&record);
	assert_memory_equal(record.words, "secretssecretssecretsk=12   ....", 32);
	assert_memory_equal(record.words + 5, "a ****** and a ******", 21);
	assert_memory_equal(record.words + 9, "k=***,k=*", 9);
	assert_int_equal(tw_redact_count(redact), 1);

	used = 1 + put_string(record.words + 1, "my secret");
	begin(&record, TW_EVENT_RETURN_FROM, 0, used);
	tw_redact_record(redact, layout, (uint8_t *)&record);
	assert_memory_equal(record.words + 2, "my ******", 9);
	assert_int_equal(tw_redact_count(redact), 2);
	tw_layout_destroy(layout);
	tw_redact_destroy(redact);
}

/* Puts a term as the payload of a message, and returns its text after redaction. */
static const char *message(struct tw_redact *redact, const char *text)
{
	static char shown[1000];
	struct tw_arena arena;
	struct record record = {0};
	struct tw_term term;
	size_t bytes, used;

	tw_arena_init(&arena, 1 << 20);
	assert_int_equal(tw_term_parse(&arena, text, strlen(text), &term, NULL), 0);
	bytes = tw_etf_try_encode(term, record.words + 1, sizeof record.words - 8);
	assert_true(bytes > 0);
	record.words[0] = 1 | (uint64_t)bytes << 32;
	begin(&record, TW_EVENT_SEND, TW_EVENT_FLAG_TERMS, 1 + (uint32_t)(bytes + 7) / 8);
	tw_redact_record(redact, NULL, (uint8_t *)&record);
	assert_int_equal(tw_etf_decode(&arena, (uint8_t *)(record.words + 1), bytes, NULL, &used, &term), 0);
	assert_int_equal(used, bytes);
	tw_term_format(term, TW_PRINT_PRETTY, shown, sizeof shown);
	tw_arena_fini(&arena);
	return shown;
}

static void text_of_terms(void **state)
{
	struct tw_redact *redact = redact_of("redact secret|[0-9]{4,}");

	(void)state;
	assert_string_equal(message(redact, "{login,<<\"secret\">>,\"my secret\",#{key => <<\"x 12345\">>}}"),
			    "{login,<<\"******\">>,\"my ******\",#{key => <<\"x *****\">>}}");
	/* Names, numbers and identifiers stay, and what follows them is found. */
	assert_string_equal(
		message(redact, "{secret,123456,-7,123456789012345678901234567890,1.5,<0.12.0>,[a|b],<<\"secret\">>}"),
		"{secret,123456,-7,123456789012345678901234567890,1.5,<0.12.0>,[a|b],<<\"******\">>}");
	assert_int_equal(tw_redact_count(redact), 2);
	tw_redact_destroy(redact);
}

static void command_lines(void **state)
{
	struct tw_redact *redact = redact_of("redact -p([^-]+)");
	struct {
		struct tw_def_image def;
		char text[40];
	} image = {.def = {.program_bytes = 6, .command_bytes = 15}, .text = "/bin/amysql\0-pword\0-x"};

	(void)state;
	tw_redact_definition(redact, TW_DEF_IMAGE, (uint8_t *)&image, sizeof image);
	assert_memory_equal(image.text, "/bin/amysql\0-p*****-x", 21);
	image.def.command_bytes = 60000;
	tw_redact_definition(redact, TW_DEF_IMAGE, (uint8_t *)&image, sizeof image);
	tw_redact_destroy(redact);
}

/* Of what a process is, its label alone is text of the program's. */
static void labels_of_processes(void **state)
{
	struct tw_redact *redact = redact_of("redact [a-z]+");
	struct {
		struct tw_def_tracee def;
		char text[40];
	} tracee = {.def = {.name_bytes = 4, .origin_bytes = 15}, .text = "nameab:c/0\ngs\nk\nxyz"}, before;

	(void)state;
	/* No place for all of it, or no such line. */
	before = tracee;
	tw_redact_definition(redact, TW_DEF_TRACEE, (uint8_t *)&tracee, sizeof tracee.def + 18);
	tracee.def.origin_bytes = 12;
	tw_redact_definition(redact, TW_DEF_TRACEE, (uint8_t *)&tracee, sizeof tracee);
	assert_memory_equal(tracee.text, before.text, sizeof tracee.text);
	tracee.def.origin_bytes = 15;
	tw_redact_definition(redact, TW_DEF_TRACEE, (uint8_t *)&tracee, sizeof tracee.def + 19);
	assert_memory_equal(tracee.text, "nameab:c/0\ngs\nk\n***", 19);
	tw_redact_destroy(redact);
}

static void wrong_expressions(void **state)
{
	struct tw_redact *redact = NULL;
	char problem[100];

	(void)state;
	assert_int_equal(tw_redact_create_lines("pattern redact x\n", &redact), 0);
	assert_null(redact);
	assert_int_equal(tw_redact_create_lines("redact a\nredact (\n", &redact), TW_EBADARG);
	assert_int_equal(tw_redact_check("x*", problem, sizeof problem), TW_EBADARG);
	assert_int_equal(tw_redact_check("x\ny", problem, sizeof problem), TW_EBADARG);
	assert_int_equal(tw_redact_check("[", problem, sizeof problem), TW_EBADARG);
	assert_int_equal(tw_redact_check("x+", problem, sizeof problem), 0);
}

/* Records in memory of exactly their size. */
static void random_bytes(void **state)
{
	static const char text[] = ":Z8@6- a:s8@0- m:m8{a0=1}@1- b:M8{r=1}@2- v:V8{u4=4}@3- z:Z8@4-";
	static const uint8_t kinds[] = {TW_EVENT_CALL, TW_EVENT_RETURN_FROM, TW_EVENT_EXCEPTION_FROM, TW_EVENT_SEND};
	struct tw_redact *redact = redact_of("redact .\nredact [a-z]+(x)?");
	struct tw_layout *layout;

	(void)state;
	assert_int_equal(tw_layout_parse(text, sizeof text - 1, &layout), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t words = below(40);
		struct record made;

		begin(&made, kinds[below(4)] | (below(4) ? 0 : TW_EVENT_CPU_TIME),
		      below(256) & ~(unsigned)TW_EVENT_FLAG_HALF, words);
		uint32_t bytes = TW_RB_HEAD_BYTES(made.head);
		uint64_t *record = malloc(bytes);

		memcpy(record, &made, 16);
		for (uint32_t j = 2; j < bytes / 8; j++)
			record[j] = below(3) ? ((uint64_t)below(UINT_MAX) << 33 ^ below(UINT_MAX))
					     : below(64) | (uint64_t)below(80) << 32;
		tw_redact_record(redact, i % 2 ? layout : NULL, (uint8_t *)record);
		free(record);
	}
	tw_layout_destroy(layout);
	tw_redact_destroy(redact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_calls_and_returns),
		cmocka_unit_test(text_of_terms),
		cmocka_unit_test(command_lines),
		cmocka_unit_test(labels_of_processes),
		cmocka_unit_test(wrong_expressions),
		cmocka_unit_test(random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
