/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   no bytes and no headers break what reads tokens of other processes, and an accepted token is written again as the
 *	   same token.
 * Method: the first byte chooses: an encoded token, of which the version and the checksum are put right so that its body
 *	   is reached; or a traceparent and a tracestate, with a NUL between.
 */
#include "session/seq/parts.h"
#include "tracewheel/seq.h"
#include "base/checksum.h"
#include "term/term.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_same(const struct tw_seq_parts *a, const struct tw_seq_parts *b)
{
	if (a->flags != b->flags || a->previous != b->previous || a->current != b->current || a->number != b->number ||
	    a->serial != b->serial || a->creation != b->creation || a->node.word != b->node.word)
		abort();
	if (!tw_term_is_none(a->label) && !tw_term_is_equal(a->label, b->label))
		abort();
}

static void write_again(struct tw_arena *arena, const struct tw_seq_parts *parts)
{
	unsigned char token[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_term none = {0};
	struct tw_seq_headers headers;
	struct tw_seq_parts read;
	size_t bytes;

	/* Labels of the limit's size in a longer form than ours are the only ones that no longer fit. */
	if (tw_seq_parts_encode(parts, none, token, sizeof token, &bytes) == 0) {
		if (tw_seq_parts_decode(arena, token, bytes, NULL, NULL, &read))
			abort();
		check_same(parts, &read);
	}
	if (tw_seq_parts_to_w3c(parts, none, NULL, NULL, &headers) == 0) {
		if (tw_seq_parts_from_w3c(arena, headers.traceparent, headers.tracestate, NULL, &read))
			abort();
		check_same(parts, &read);
	}
	if (tw_seq_parts_from_erlang(tw_seq_parts_to_erlang(arena, parts), none, &read))
		abort();
	check_same(parts, &read);
}

static void fuzz_token(struct tw_arena *arena, unsigned char *token, size_t bytes)
{
	struct tw_seq_parts parts;
	size_t used;

	if (bytes >= TW_SEQ_WIRE_HEAD_BYTES) {
		size_t body = bytes - TW_SEQ_WIRE_HEAD_BYTES;
		uint32_t check;

		token[0] = 'T';
		token[1] = 'w';
		token[2] = TW_SEQ_WIRE_VERSION;
		token[4] = (unsigned char)body;
		token[5] = (unsigned char)(body >> 8);
		check = (uint32_t)tw_checksum64_two(token, 6, token + TW_SEQ_WIRE_HEAD_BYTES, body & 0xffff);
		memcpy(token + 6, &check, 4);
	}
	if (tw_seq_parts_decode(arena, token, bytes, NULL, &used, &parts) == 0) {
		if (used > bytes)
			abort();
		write_again(arena, &parts);
	}
}

static void fuzz_headers(struct tw_arena *arena, char *text, size_t bytes)
{
	size_t first = strnlen(text, bytes);
	const char *tracestate = first < bytes ? text + first + 1 : NULL;
	struct tw_seq_headers headers;
	struct tw_seq_parts parts;

	if (tw_seq_parts_from_w3c(arena, text, tracestate, NULL, &parts))
		return;
	if (tw_seq_parts_to_w3c(&parts, (struct tw_term){0}, text, tracestate, &headers) == 0 &&
	    memchr(headers.tracestate, 0, sizeof headers.tracestate) == NULL)
		abort();
	write_again(arena, &parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_arena arena;
	char *copy;

	if (bytes < 1 || bytes > 60000)
		return 0;
	/* As long as the input and one NUL, so that a read beyond is seen. */
	copy = malloc(bytes);
	memcpy(copy, data + 1, bytes - 1);
	copy[bytes - 1] = 0;
	tw_arena_init(&arena, SIZE_MAX);
	if (data[0] & 1)
		fuzz_token(&arena, (unsigned char *)copy, bytes - 1);
	else
		fuzz_headers(&arena, copy, bytes - 1);
	tw_arena_fini(&arena);
	free(copy);
	if (tw_atom_count() > 10000)
		tw_atom_table_fini();
	return 0;
}
