/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A token that went through bytes, headers or Erlang's tuple is the token that was sent, in this OS process and in
 *		another, which continues its serials; one that is refused is counted by cause and changes nothing.
 * Method	The calling thread's token goes out and in again; a child of fork() is the other OS process.
 */
#include "seq_help.h"
#include "pipeline/hit/seq.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tw_arena arena;
static const struct tw_term no_term;

static int begin(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	return tw_seq_reset_trace();
}

static int end(void **state)
{
	tw_arena_fini(&arena);
	return tw_seq_reset_trace();
}

/* The token of the next message. */
static struct tw_seq_token pass(void)
{
	struct tw_seq_token token;

	tw_seq_pass(&token, no_term, no_term);
	return token;
}

static struct tw_seq_token token_with(const char *label)
{
	assert_int_equal(tw_seq_set_label(seq_term(&arena, label)), 0);
	assert_int_equal(tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_PRINT, true), 0);
	return pass();
}

static const struct tw_seq_words *words_of(const struct tw_seq_token *token)
{
	return (const struct tw_seq_words *)token;
}

static void the_same_token_comes_back(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(seq_labels); i++) {
		struct tw_seq_token token = token_with(seq_labels[i]), again;
		unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
		struct tw_seq_headers headers;
		size_t bytes, used;

		assert_int_equal(tw_seq_encode(&token, data, sizeof data, &bytes), 0);
		assert_int_equal(tw_seq_decode(data, bytes, &used, &again), 0);
		assert_int_equal(used, bytes);
		assert_memory_equal(&token, &again, sizeof token);
		memset(&again, 0, sizeof again);
		assert_int_equal(tw_seq_to_traceparent(&token, NULL, NULL, &headers), 0);
		assert_int_equal(tw_seq_from_traceparent(headers.traceparent, headers.tracestate, &again), 0);
		assert_memory_equal(&token, &again, sizeof token);
		memset(&again, 0, sizeof again);
		assert_int_equal(tw_seq_to_erlang(&token, data, sizeof data, &bytes), 0);
		assert_int_equal(tw_seq_from_erlang(data, bytes, &again), 0);
		assert_memory_equal(&token, &again, sizeof token);
		/* As in a control message, without the version byte. */
		memset(&again, 0, sizeof again);
		assert_int_equal(tw_seq_from_erlang(data + 1, bytes - 1, &again), 0);
		assert_memory_equal(&token, &again, sizeof token);
	}
}

static void an_empty_token_stays_empty(void **state)
{
	struct tw_seq_token empty = {{0}}, old = token_with("{a,b}"), read;
	const struct tw_seq_token *const tokens[] = {NULL, &empty, &old};
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_seq_headers headers;
	size_t bytes;

	/* A reset empties the last one. */
	tw_seq_reset_trace();
	for (size_t i = 0; i < TW_COUNT_OF(tokens); i++) {
		read = old;
		assert_int_equal(tw_seq_encode(tokens[i], data, sizeof data, &bytes), 0);
		assert_int_equal(tw_seq_decode(data, bytes, NULL, &read), 0);
		assert_true(tw_seq_token_is_empty(&read));
		read = old;
		assert_int_equal(tw_seq_to_erlang(tokens[i], data, sizeof data, &bytes), 0);
		assert_memory_equal(data, "\x83j", 2);
		assert_int_equal(tw_seq_from_erlang(data, bytes, &read), 0);
		assert_true(tw_seq_token_is_empty(&read));
		assert_int_equal(tw_seq_to_traceparent(tokens[i], NULL, NULL, &headers), TW_EBADARG);
	}
	/* Reading an empty token opens nothing. */
	assert_false(tw_seq_is_active());
}

static void refused_tokens_are_counted(void **state)
{
	struct tw_seq_token token = token_with("{order,1}"), read = token;
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_term elements[] = {seq_term(&arena, "1"), no_term, seq_term(&arena, "1"), seq_term(&arena, "<0.9.0>"),
				     seq_term(&arena, "0")};
	struct tw_seq_stats before, after;
	struct tw_sink sink;
	size_t bytes;

	assert_int_equal(tw_seq_encode(&token, data, sizeof data, &bytes), 0);
	tw_seq_stats(&before);
	assert_int_equal(tw_seq_decode(data, bytes - 1, NULL, &read), TW_EFORMAT);
	assert_int_equal(tw_seq_decode(data, 0, NULL, &read), TW_EFORMAT);
	assert_int_equal(tw_seq_from_traceparent("00-", NULL, &read), TW_EFORMAT);
	assert_int_equal(tw_seq_from_erlang("\x83h", 2, &read), TW_EFORMAT);
	data[2]++;
	assert_int_equal(tw_seq_decode(data, bytes, NULL, &read), TW_EVERSION);
	tw_seq_stats(&after);
	assert_int_equal(after.refused_damaged - before.refused_damaged, 4);
	assert_int_equal(after.refused_version - before.refused_version, 1);
	/* Too long for a label here, though not for the other side. */
	sink = (struct tw_sink){.start = (char *)data, .at = (char *)data, .end = (char *)data + sizeof data};
	elements[1] = tw_term_binary(&arena, data, 2100);
	assert_int_equal(tw_etf_encode(tw_term_tuple(&arena, elements, 5), no_term, &sink), 0);
	assert_int_equal(tw_seq_from_erlang(data, (size_t)(sink.at - sink.start), &read), TW_ELIMIT);
	tw_seq_stats(&after);
	assert_int_equal(after.refused_limit - before.refused_limit, 1);
	assert_memory_equal(&read, &token, sizeof token);
}

/* The other OS process: 0 if the token that it reads is the parent's, and the answer was written. */
static int answer(const struct tw_seq_token *raw, int from, int to)
{
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_seq_token token;
	struct tw_seq_stats stats;
	ssize_t got = read(from, data, sizeof data);
	size_t bytes;

	if (got <= 0 || tw_seq_decode(data, (size_t)got, NULL, &token))
		return 1;
	/* The struct itself means nothing here. */
	tw_seq_accept(raw, no_term);
	tw_seq_stats(&stats);
	tw_seq_get_token(&token);
	if (stats.foreign != 1 || !tw_seq_token_is_empty(&token))
		return 2;
	if (tw_seq_decode(data, (size_t)got, NULL, &token))
		return 3;
	tw_seq_accept(&token, no_term);
	token = pass();
	if (tw_seq_encode(&token, data, sizeof data, &bytes))
		return 4;
	return write(to, data, bytes) == (ssize_t)bytes ? 0 : 5;
}

static void another_process_continues(void **state)
{
	struct tw_seq_token token = token_with("{request,7}"), read_token;
	unsigned char data[TW_SEQ_ENCODED_BYTES_MAX];
	char text[300], expected[64];
	int there[2], back[2], status;
	ssize_t got;
	size_t bytes;
	pid_t child;

	assert_int_equal(pipe(there) || pipe(back), 0);
	child = fork();
	if (child == 0)
		_exit(answer(&token, there[0], back[1]));
	assert_int_equal(tw_seq_encode(&token, data, sizeof data, &bytes), 0);
	assert_int_equal(write(there[1], data, bytes), bytes);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	got = read(back[0], data, sizeof data);
	assert_true(got > 0);
	assert_int_equal(tw_seq_decode(data, (size_t)got, NULL, &read_token), 0);
	assert_int_equal(words_of(&read_token)->previous, words_of(&token)->current);
	assert_int_equal(words_of(&read_token)->current, words_of(&token)->current + 1);
	assert_int_equal(words_of(&read_token)->label, words_of(&token)->label);
	assert_int_equal(words_of(&read_token)->flags, words_of(&token)->flags);
	/* The sender is a pid of the child's node. */
	snprintf(expected, sizeof expected, "'tw-%d-", (int)child);
	tw_term_format((struct tw_term){words_of(&read_token)->node}, TW_PRINT_WRITE, text, sizeof text);
	assert_memory_equal(text, expected, strlen(expected));
	/* And the trace goes on here. */
	tw_seq_accept(&read_token, no_term);
	token = pass();
	assert_int_equal(words_of(&token)->previous, words_of(&read_token)->current);
	assert_int_equal(words_of(&token)->current, words_of(&read_token)->current + 1);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_token_comes_back, begin, end),
		cmocka_unit_test_setup_teardown(an_empty_token_stays_empty, begin, end),
		cmocka_unit_test_setup_teardown(refused_tokens_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(another_process_continues, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
