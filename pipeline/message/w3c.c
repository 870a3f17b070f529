/* SPDX-License-Identifier: Apache-2.0 */
/* w3c.c - the identifiers that W3C trace context has for a token: the traced program hands them on, and views name spans by them. */
#include "base/checksum.h"
#include "base/export.h"
#include "base/limits.h"
#include "term/term.h"

#include "tracewheel/error.h"
#include "tracewheel/seq.h"

#include <string.h>

static bool is_zero(const unsigned char *bytes, size_t count)
{
	while (count && !*bytes)
		bytes++, count--;
	return !count;
}

TW_API int tw_seq_trace_id(struct tw_term label, struct tw_term own, unsigned char out[TW_SEQ_TRACE_ID_BYTES])
{
	unsigned char etf[TW_SEQ_LABEL_BYTES_MAX];
	struct tw_sink sink = {.start = (char *)etf, .at = (char *)etf, .end = (char *)etf + sizeof etf};
	int error;

	if (tw_is_binary(label) && tw_block_size(label) == TW_SEQ_TRACE_ID_BYTES &&
	    !is_zero(tw_bits_data(label), TW_SEQ_TRACE_ID_BYTES)) {
		memcpy(out, tw_bits_data(label), TW_SEQ_TRACE_ID_BYTES);
		return 0;
	}
	error = tw_etf_encode(label, own, &sink);
	if (error)
		return error == TW_ENOSPC ? TW_ELIMIT : error;
	for (unsigned char half = 0; half < 2; half++) {
		uint64_t hash = tw_checksum64_two(&half, 1, etf, (size_t)(sink.at - sink.start));

		for (int i = 0; i < 8; i++)
			out[half * 8 + i] = (unsigned char)(hash >> (56 - 8 * i));
	}
	if (is_zero(out, TW_SEQ_TRACE_ID_BYTES))
		out[TW_SEQ_TRACE_ID_BYTES - 1] = 1;
	return 0;
}

/* A foreign parent that no process of ours has replaced yet is handed on. */
TW_API uint64_t tw_seq_parent_id(const struct tw_seq_sender *sender)
{
	uint64_t head[] = {(uint64_t)sender->number << 32 | sender->serial, sender->creation,
			   (uint64_t)sender->current},
		 id;

	id = tw_seq_is_foreign(sender) ? head[0]
				       : tw_checksum64_two(head, sizeof head, sender->node, sender->node_bytes);
	return id ? id : 1;
}

TW_API bool tw_seq_is_foreign(const struct tw_seq_sender *sender)
{
	return sender->node_bytes == sizeof TW_SEQ_FOREIGN_NODE - 1 &&
	       !memcmp(sender->node, TW_SEQ_FOREIGN_NODE, sender->node_bytes);
}
