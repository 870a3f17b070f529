/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A token survives the way through W3C trace context whole; headers are read by the rules of the specification,
 *		level 2; the members of others in tracestate are handed on.
 * Method	Tokens go there and back; tables of valid and invalid headers, with the examples of the specification restated;
 *		tracestate at its limits.
 */
#include "seq_help.h"

#include <stdio.h>
#include <stdlib.h>

#define ID     "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define VALID  "00-" ID "-" PARENT "-01"

static struct tw_arena arena;
static struct tw_term own;
static struct tw_etf_options options;

static int begin(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	own = tw_term_atom_z("tw-1-2@00000000");
	options = (struct tw_etf_options){.node = own};
	return 0;
}

static int end(void **state)
{
	tw_arena_fini(&arena);
	return 0;
}

static int from(const char *traceparent, const char *tracestate, struct tw_seq_parts *out)
{
	return tw_seq_parts_from_w3c(&arena, traceparent, tracestate, &options, out);
}

static struct tw_seq_headers to(const struct tw_seq_parts *parts, const char *traceparent, const char *tracestate)
{
	struct tw_seq_headers headers;

	assert_int_equal(tw_seq_parts_to_w3c(parts, own, traceparent, tracestate, &headers), 0);
	assert_int_equal(strlen(headers.traceparent), 55);
	return headers;
}

static uint64_t refused(void)
{
	struct tw_seq_stats stats;

	tw_seq_stats(&stats);
	return stats.refused_damaged + stats.refused_version + stats.refused_limit;
}

/* The label is the header's trace-id. */
static void assert_began_elsewhere(const struct tw_seq_parts *parts, const char *traceparent)
{
	char id[33];
	size_t bits;
	const unsigned char *label;

	assert_int_equal(tw_term_get_bits(parts->label, &label, &bits), 0);
	assert_int_equal(bits, 128);
	for (size_t i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", label[i]);
	assert_memory_equal(id, traceparent + 3, 32);
	assert_true(tw_term_is_same(parts->node, tw_term_atom_z(TW_SEQ_FOREIGN_NODE)));
}

static void our_tokens_survive(void **state)
{
	struct tw_seq_headers none;

	for (size_t i = 0; i < TW_COUNT_OF(seq_labels); i++) {
		struct tw_seq_parts parts = seq_parts(&arena, seq_labels[i], 1, 2), read;
		struct tw_seq_headers headers = to(&parts, NULL, NULL), again;
		char with_others[2000];

		assert_int_equal(from(headers.traceparent, headers.tracestate, &read), 0);
		seq_assert_same(&parts, &read);
		snprintf(with_others, sizeof with_others, "rojo=1 , ,%s,congo=2", headers.tracestate);
		assert_int_equal(from(headers.traceparent, with_others, &read), 0);
		seq_assert_same(&parts, &read);
		/* One trace-id for a label; another parent-id for each send. */
		parts.current++;
		again = to(&parts, NULL, NULL);
		assert_memory_equal(headers.traceparent, again.traceparent, 36);
		assert_memory_not_equal(headers.traceparent + 36, again.traceparent + 36, 16);
		assert_string_equal(headers.traceparent + 52, "-01");
		parts.flags = TW_SEQ_TIMESTAMP;
		again = to(&parts, NULL, NULL);
		assert_string_equal(again.traceparent + 52, "-00");
	}
	assert_int_equal(tw_seq_parts_to_w3c(&(struct tw_seq_parts){0}, own, NULL, NULL, &none), TW_EBADARG);
}

static void a_foreign_traceparent_becomes_the_label(void **state)
{
	struct tw_seq_parts parts;
	struct tw_seq_headers headers;
	char text[200];

	assert_int_equal(from(VALID, "rojo=" PARENT ",congo=t61rcWkgMzE", &parts), 0);
	tw_term_format(parts.label, TW_PRINT_WRITE, text, sizeof text);
	assert_string_equal(text, "<<75,249,47,53,119,179,77,166,163,206,146,157,14,14,71,54>>");
	assert_int_equal(parts.flags, TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT);
	assert_int_equal(parts.previous, 0);
	assert_int_equal(parts.current, 0);
	assert_int_equal(parts.number, 0x00f067aa);
	assert_int_equal(parts.serial, 0x0ba902b7);
	/* Handed on by a program that sends nothing of its own: the same header. */
	headers = to(&parts, VALID, "rojo=" PARENT ",congo=t61rcWkgMzE");
	assert_string_equal(headers.traceparent, VALID);
	assert_memory_equal(headers.tracestate, "tw=", 3);
	assert_string_equal(strchr(headers.tracestate, ','), ",rojo=" PARENT ",congo=t61rcWkgMzE");
	/* Sent on by a process: the trace-id stays, and the next reader has the whole token. */
	parts.node = own;
	parts.current = 1;
	headers = to(&parts, VALID, NULL);
	assert_memory_equal(headers.traceparent, VALID, 36);
	assert_memory_not_equal(&headers.traceparent[36], &VALID[36], 16);
	/* Not sampled: the token is carried on, but makes no events. */
	assert_int_equal(from("00-" ID "-" PARENT "-00", "", &parts), 0);
	assert_int_equal(parts.flags, 0);
}

static void flags_are_bits(void **state)
{
	struct tw_seq_parts parts;

	assert_int_equal(from("00-" ID "-" PARENT "-03", NULL, &parts), 0);
	assert_string_equal(to(&parts, "00-" ID "-" PARENT "-03", NULL).traceparent + 52, "-03");
	/* Unknown flags are not handed on; the random flag of another trace or a later version is not ours. */
	assert_int_equal(from("00-" ID "-" PARENT "-fe", NULL, &parts), 0);
	assert_int_equal(parts.flags, 0);
	assert_string_equal(to(&parts, "00-" ID "-" PARENT "-fe", NULL).traceparent + 52, "-02");
	assert_string_equal(to(&parts, "cc-" ID "-" PARENT "-fe", NULL).traceparent + 52, "-00");
	assert_string_equal(to(&parts, "00-" PARENT PARENT "-" PARENT "-02", "a=b").traceparent + 52, "-00");
	assert_null(strchr(to(&parts, "00-" PARENT PARENT "-" PARENT "-02", "a=b").tracestate, ','));
}

static void invalid_traceparents_are_refused(void **state)
{
	static const char *const invalid[] = {
		NULL,
		"",
		"0",
		"00",
		"00-",
		VALID "-",
		VALID "-00",
		VALID "x",
		VALID " ",
		"ff-" ID "-" PARENT "-01",
		"0-" ID "-" PARENT "-01",
		"000-" ID "-" PARENT "-01",
		".0-" ID "-" PARENT "-01",
		"0X-" ID "-" PARENT "-01",
		"00-00000000000000000000000000000000-" PARENT "-01",
		"00-" ID "-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
		"00-.bf92f3577b34da6a3ce929d0e0e4736-" PARENT "-01",
		"00-" ID "0-" PARENT "-01",
		"00-bf92f3577b34da6a3ce929d0e0e4736-" PARENT "-01",
		"00-" ID "-00F067AA0BA902B7-01",
		"00-" ID "-" PARENT "0-01",
		"00-" ID "-0f067aa0ba902b7-01",
		"00-" ID "-" PARENT "-0",
		"00-" ID "-" PARENT "-.1",
		"00-" ID "-" PARENT "-001",
		"00-" ID "_" PARENT "-01",
		"cc-" ID "-" PARENT "-01.what",
		"cc-" ID "-" PARENT "-0",
		"cc-" ID "-" PARENT "-01what",
	};
	static const char *const valid[] = {"cc-" ID "-" PARENT "-01",
					    "cc-" ID "-" PARENT "-01-what-the-future-will-be-like",
					    "01-" ID "-" PARENT "-01-"};
	struct tw_seq_parts parts = {0};

	for (size_t i = 0; i < TW_COUNT_OF(invalid); i++)
		assert_int_equal(from(invalid[i], NULL, &parts), TW_EFORMAT);
	assert_true(tw_term_is_none(parts.label));
	for (size_t i = 0; i < TW_COUNT_OF(valid); i++) {
		assert_int_equal(from(valid[i], NULL, &parts), 0);
		/* Answered in the version that we know. */
		assert_string_equal(to(&parts, valid[i], NULL).traceparent, VALID);
	}
}

/* The rest of a tracestate after our member. */
static const char *others_of(const char *tracestate)
{
	static struct tw_seq_headers headers;
	struct tw_seq_parts parts;
	char *comma;

	assert_int_equal(from(VALID, NULL, &parts), 0);
	headers = to(&parts, VALID, tracestate);
	comma = strchr(headers.tracestate, ',');
	return comma ? comma + 1 : "";
}

static void members_are_checked(void **state)
{
	static const char *const kept[] = {
		"a=1", "1=2", "foo@=1", "1a-_*/@b@c=x", "foo= !\"#$%&'()*+-./0;<>?@[]^_`{|}~", "a=1,b=2,c=3",
	};
	static const char *const discarded[] = {"foo",	  "=1",		"foo=",	 "@a=1",  "A=1",
						"a.b=1",  "fooB=1",	"a b=1", "a=b=c", "a=\t1",
						"a=\x7f", "a=\xc3\xa4", "a=1,b", "_a=1",  "a =1"};

	for (size_t i = 0; i < TW_COUNT_OF(kept); i++)
		assert_string_equal(others_of(kept[i]), kept[i]);
	for (size_t i = 0; i < TW_COUNT_OF(discarded); i++)
		assert_string_equal(others_of(discarded[i]), "");
	assert_string_equal(others_of("a=1,b=2,a=3"), "a=1,b=2");
	assert_string_equal(others_of(" \ta=1 ,\t b= 2 \t, ,,"), "a=1,b= 2");
	assert_string_equal(others_of(""), "");
	assert_string_equal(others_of(NULL), "");
}

static void lists_keep_their_limits(void **state)
{
	char text[4096], key[300], *at = text;
	size_t count = 1;

	for (int i = 0; i < 32; i++)
		at += sprintf(at, "%sk%d=v", i ? "," : "", i);
	/* 31 remain beside ours. */
	for (const char *c = others_of(text); *c; c++)
		count += *c == ',';
	assert_int_equal(count, 31);
	strcpy(at, ",one=more");
	assert_string_equal(others_of(text), "");
	/* Keys and values of 256 characters, and no longer. */
	for (int length = 256; length <= 257; length++) {
		memset(key, 'k', (size_t)length);
		key[length] = 0;
		sprintf(text, "%s=v", key);
		assert_string_equal(others_of(text), length == 256 ? text : "");
		sprintf(text, "k=%s", key);
		assert_string_equal(others_of(text), length == 256 ? text : "");
	}
	/* Too long as a whole: members above 128 characters go first, the last of them first; then the end. */
	key[250] = 0;
	at = text + sprintf(text, "s1=1,a=%s,s2=2,b=%s,s3=3,c=%s", key, key, key);
	for (int i = 0; i < 3; i++)
		at += sprintf(at, ",m%d=%.100s", i, key);
	assert_memory_equal(others_of(text), "s1=1,a=k", 8);
	assert_non_null(strstr(others_of(text), "k,s2=2,b=k"));
	assert_non_null(strstr(others_of(text), "k,s3=3,m0=k"));
	assert_in_range(strlen(others_of(text)), 512, TW_SEQ_TRACESTATE_BYTES);
	for (at = text, count = 0; count < 20; count++)
		at += sprintf(at, "%sk%zu=%.100s", count ? "," : "", count, key);
	assert_memory_equal(others_of(text), text, 512);
	assert_in_range(strlen(others_of(text)), 512, TW_SEQ_TRACESTATE_BYTES);
}

static void a_member_that_is_not_ours_to_use(void **state)
{
	struct tw_seq_parts parts = seq_parts(&arena, "{order,1}", 1, 2), read = parts;
	struct tw_seq_headers headers = to(&parts, NULL, NULL);
	char text[TW_SEQ_TRACESTATE_BYTES];
	unsigned char label[200] = {0};
	size_t bytes = strlen(headers.tracestate);

	/* The trace was begun anew on the way. */
	assert_int_equal(from(VALID, headers.tracestate, &read), 0);
	assert_true(tw_is_binary(read.label));
	/* Cut, damaged, of another version. */
	read = parts;
	for (size_t cut = 4; cut < bytes; cut++) {
		sprintf(text, "%.*s", (int)cut, headers.tracestate);
		assert_int_equal(from(headers.traceparent, text, &read), 0);
		assert_began_elsewhere(&read, headers.traceparent);
	}
	/* A member of ours that cannot be read is counted, another tracer's is not: traceparent is enough to go on. */
	for (size_t i = 3; i < bytes; i++) {
		uint64_t before = refused();

		strcpy(text, headers.tracestate);
		text[i] = text[i] == 'A' ? 'B' : 'A';
		assert_int_equal(from(headers.traceparent, text, &read), 0);
		assert_began_elsewhere(&read, headers.traceparent);
		assert_int_equal(refused() - before, i >= 6);
	}
	static const char *const others[] = {"tw=no token!", "tw=1", "tw=Zm9v", "tw=t61rcWkgMzE",
					     "rojo=1,tw=t61rcWkgMzE,congo=2"};
	uint64_t before = refused();
	for (size_t i = 0; i < TW_COUNT_OF(others); i++) {
		assert_int_equal(from(headers.traceparent, others[i], &read), 0);
		assert_began_elsewhere(&read, headers.traceparent);
	}
	assert_int_equal(refused(), before);
	/* A later version's. */
	strcpy(text, headers.tracestate);
	text[6] = 'C';
	assert_int_equal(from(headers.traceparent, text, &read), 0);
	assert_int_equal(refused() - before, 1);
	assert_int_equal(from(headers.traceparent, headers.tracestate, &read), 0);
	seq_assert_same(&parts, &read);
	/* A label that does not fit. */
	parts.label = tw_term_binary(&arena, label, sizeof label);
	assert_int_equal(tw_seq_parts_to_w3c(&parts, own, NULL, NULL, &headers), TW_ELIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(our_tokens_survive, begin, end),
		cmocka_unit_test_setup_teardown(a_foreign_traceparent_becomes_the_label, begin, end),
		cmocka_unit_test_setup_teardown(flags_are_bits, begin, end),
		cmocka_unit_test_setup_teardown(invalid_traceparents_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(members_are_checked, begin, end),
		cmocka_unit_test_setup_teardown(lists_keep_their_limits, begin, end),
		cmocka_unit_test_setup_teardown(a_member_that_is_not_ours_to_use, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
