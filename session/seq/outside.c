/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c - tokens of sequential tracing to other OS processes and from them: the public calls. */
#include "pipeline/thread/seq_label.h"
#include "pipeline/thread/thread.h"
#include "session/seq/seq.h"
#include "session/seq/parts.h"
#include "session/session.h"
#include "term/etf.h"

/* A label's term takes at most 40 times its bytes; most need no more than the buffer. */
#define BUFFER_BYTES 2048
#define ARENA_BYTES  (BUFFER_BYTES + 64 * TW_SEQ_LABEL_BYTES_MAX)

struct workspace {
	struct tw_arena arena;
	struct tw_term own;
	struct tw_etf_options options; /* of receiving */
	char buffer[BUFFER_BYTES];
};

static int begin(struct workspace *work)
{
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	work->own = tw_seq_own_node();
	tw_arena_init_buffer(&work->arena, work->buffer, sizeof work->buffer, ARENA_BYTES);
	return tw_term_is_none(work->own) ? TW_ELIMIT : 0;
}

/*
 * Atoms are never removed, and labels come from outside: when half of the table is used, only labels and nodes of known
 * atoms are accepted.
 */
static int begin_receiving(struct workspace *work)
{
	int error = begin(work);

	if (!error)
		work->options = (struct tw_etf_options){.node = work->own, .is_safe = tw_atom_table_is_half_full()};
	return error;
}

/* A token that is not good any more is the empty token, as for a receiver in this OS process. */
static struct tw_seq_parts parts_of(struct workspace *work, const struct tw_seq_token *token)
{
	const struct tw_seq_words *words = (const struct tw_seq_words *)token;
	struct tw_seq_parts parts = {0};
	struct tw_term label;

	if (!token || !tw_seq_is_good(words))
		return parts;
	label = tw_seq_label_term(&work->arena, words->label);
	if (tw_term_is_none(label)) {
		tw_seq_count(TW_SEQ_FORGOTTEN);
		return parts;
	}
	return (struct tw_seq_parts){.label = label,
				     .node = words->node ? tw_word(words->node) : work->own,
				     .number = words->from,
				     .serial = words->from_serial,
				     .creation = words->creation,
				     .flags = words->flags,
				     .previous = words->previous,
				     .current = words->current};
}

static int begin_sending(struct workspace *work, const struct tw_seq_token *token, struct tw_seq_parts *parts)
{
	int error = begin(work);

	if (!error)
		*parts = parts_of(work, token);
	return error;
}

static int token_of(const struct workspace *work, const struct tw_seq_parts *parts, struct tw_seq_token *out)
{
	bool is_own = tw_term_is_same(parts->node, work->own);
	struct tw_seq_words words = {.version = TW_SEQ_VERSION,
				     .flags = parts->flags,
				     .previous = parts->previous,
				     .current = parts->current,
				     .from = parts->number,
				     .from_serial = parts->serial,
				     .node = is_own ? 0 : parts->node.word,
				     .creation = parts->creation};
	int error;

	if (tw_term_is_none(parts->label)) {
		memset(out, 0, sizeof *out);
		return 0;
	}
	/* First the epoch: a reset from here on empties the token. */
	words.epoch = tw_seq_open();
	/* Not before: opening makes the key if nothing has. */
	words.process = tw_seq_process_key;
	error = tw_seq_label_of(parts->label, &words.label);
	if (error)
		return error == TW_EBADARG ? TW_ELIMIT : error;
	memcpy(out, &words, sizeof *out);
	return 0;
}

/* The end of each call that takes a token from outside: makes it, or counts why there is none. */
static int finish(struct workspace *work, int error, const struct tw_seq_parts *parts, struct tw_seq_token *out)
{
	if (!error)
		error = token_of(work, parts, out);
	tw_arena_fini(&work->arena);
	if (error == TW_ENOENT)
		error = TW_ELIMIT;
	if (error)
		tw_seq_count_refused(error);
	return error;
}

TW_API int tw_seq_encode(const struct tw_seq_token *token, void *buffer, size_t bytes, size_t *used_bytes)
{
	struct workspace work;
	struct tw_seq_parts parts;
	int error = begin_sending(&work, token, &parts);

	if (error)
		return error;
	error = tw_seq_parts_encode(&parts, work.own, buffer, bytes, used_bytes);
	tw_arena_fini(&work.arena);
	return error;
}

TW_API int tw_seq_decode(const void *data, size_t bytes, size_t *used_bytes, struct tw_seq_token *out)
{
	struct workspace work;
	struct tw_seq_parts parts;
	size_t used;
	int error = begin_receiving(&work);

	if (error)
		return error;
	error = tw_seq_parts_decode(&work.arena, data, bytes, &work.options, used_bytes ? &used : NULL, &parts);
	error = finish(&work, error, &parts, out);
	if (!error && used_bytes)
		*used_bytes = used;
	return error;
}

TW_API int tw_seq_to_traceparent(const struct tw_seq_token *token, const char *received_traceparent,
				 const char *received_tracestate, struct tw_seq_headers *out)
{
	struct workspace work;
	struct tw_seq_parts parts;
	int error = begin_sending(&work, token, &parts);

	if (error)
		return error;
	error = tw_seq_parts_to_w3c(&parts, work.own, received_traceparent, received_tracestate, out);
	tw_arena_fini(&work.arena);
	return error;
}

TW_API int tw_seq_from_traceparent(const char *traceparent, const char *tracestate, struct tw_seq_token *out)
{
	struct workspace work;
	struct tw_seq_parts parts;
	int error = begin_receiving(&work);

	if (error)
		return error;
	error = tw_seq_parts_from_w3c(&work.arena, traceparent, tracestate, &work.options, &parts);
	return finish(&work, error, &parts, out);
}

TW_API int tw_seq_to_erlang(const struct tw_seq_token *token, void *buffer, size_t bytes, size_t *used_bytes)
{
	struct tw_sink sink = {.start = buffer, .at = buffer, .end = (char *)buffer + bytes};
	struct workspace work;
	struct tw_seq_parts parts;
	struct tw_term term;
	int error = begin_sending(&work, token, &parts);

	if (error)
		return error;
	term = tw_seq_parts_to_erlang(&work.arena, &parts);
	error = tw_term_is_none(term) ? TW_ENOMEM : tw_etf_encode(term, work.own, &sink);
	tw_arena_fini(&work.arena);
	if (!error)
		*used_bytes = (size_t)(sink.at - sink.start);
	return error;
}

/* In a control message of the distribution no version byte precedes the token. */
static int decode_erlang(struct workspace *work, const void *data, size_t bytes, struct tw_seq_parts *parts)
{
	unsigned char etf[TW_SEQ_ENCODED_BYTES_MAX];
	const unsigned char *start = data;
	struct tw_term term;
	int error;

	if (bytes && start[0] == TW_ETF_VERSION) {
		start++;
		bytes--;
	}
	if (bytes >= sizeof etf)
		return TW_ELIMIT;
	etf[0] = TW_ETF_VERSION;
	memcpy(etf + 1, start, bytes);
	error = tw_etf_decode(&work->arena, etf, bytes + 1, &work->options, NULL, &term);
	if (!error)
		error = tw_seq_parts_from_erlang(term, work->own, parts);
	return error == TW_EBADARG || error == TW_ENOTSUP ? TW_EFORMAT : error;
}

TW_API int tw_seq_from_erlang(const void *data, size_t bytes, struct tw_seq_token *out)
{
	struct workspace work;
	struct tw_seq_parts parts;
	int error = begin_receiving(&work);

	if (error)
		return error;
	error = decode_erlang(&work, data, bytes, &parts);
	return finish(&work, error, &parts, out);
}
