/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - a token of sequential tracing outside of its process: as bytes, as W3C trace context, as Erlang's tuple.
 *
 * A struct tw_seq_token holds interned ids, which mean something in one process only.  struct tw_seq_parts holds the same
 * with terms: a label, and a pid that names its node.
 *
 *	bytes	0	'T' 'w'
 *		2	version: 1
 *		3	flags; bit 7: the empty token, without body
 *		4	bytes of the body, 2 bytes
 *		6	checksum, 4 bytes: low half of the XXH3 of bytes 0 to 5 and the body
 *		10	body: previous, current (zigzag), number, serial and creation of From, bytes of the node's name,
 *			each in groups of 7 bits (LEB128); the name in UTF-8; the label in external term format
 *
 * All numbers are little-endian.  Bytes 0 to 5 are the same in every version, so that a receiver can skip a token that it
 * cannot read.
 *
 * Threads  any.  Ownership: parts lend terms of the caller's arena.
 * Limits   TW_SEQ_LABEL_BYTES_MAX.
 */
#ifndef TW_SESSION_SEQ_PARTS_H
#define TW_SESSION_SEQ_PARTS_H

#include "tracewheel/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_SEQ_WIRE_VERSION    1
#define TW_SEQ_WIRE_HEAD_BYTES 10

struct tw_seq_parts {
	struct tw_term label; /* none: the empty token; all other fields are 0 then */
	struct tw_term node;  /* the atom of From's node */
	uint32_t number, serial, creation;
	uint8_t flags;
	int64_t previous, current; /* TW_SMALL_MIN .. TW_SMALL_MAX */
};

/*
 * tw_seq_own_node - the atom that names this OS process as a node: 'tw-PID-START@BOOT'.
 *
 * START is its start in clock ticks since boot, field 22 of /proc/PID/stat, and BOOT the first 8 hexadecimal digits of the
 * boot id: a capture has the same three in the headers of its segments.  None where the table of atoms is full.
 */
struct tw_term tw_seq_own_node(void);

/*
 * tw_seq_parts_encode - parts to bytes.
 *
 * @own		the atom of this node, for pids inside the label.
 *
 * Returns 0; TW_ELIMIT for a label of more than TW_SEQ_LABEL_BYTES_MAX; TW_ENOSPC; TW_ENOMEM.
 */
int tw_seq_parts_encode(const struct tw_seq_parts *parts, struct tw_term own, void *buffer, size_t bytes,
			size_t *used_bytes);

/*
 * tw_seq_parts_decode - bytes to parts; no byte is trusted.
 *
 * @options	how the label is decoded.
 * @used_bytes	set to the bytes of the token; NULL: bytes after it are an error.
 *
 * Returns 0; TW_EFORMAT (cut, damaged, no token), TW_EVERSION, TW_ELIMIT (label or atom table), TW_ENOENT (a new atom
 * with is_safe), TW_ENOMEM.
 */
int tw_seq_parts_decode(struct tw_arena *arena, const void *data, size_t bytes, const struct tw_etf_options *options,
			size_t *used_bytes, struct tw_seq_parts *out);

/* ---- W3C Trace Context, https://www.w3.org/TR/trace-context-2/ ---- */

struct tw_seq_headers;

/*
 * tw_seq_parts_to_w3c - parts to the two headers.
 *
 * @received_*	headers that this one continues, or NULL.  If their trace-id is the same, their other members of tracestate
 *		and the random flag are kept.
 *
 * Returns 0; TW_EBADARG for the empty token; TW_ELIMIT for a label that does not fit a member; TW_ENOMEM.
 */
int tw_seq_parts_to_w3c(const struct tw_seq_parts *parts, struct tw_term own, const char *received_traceparent,
			const char *received_tracestate, struct tw_seq_headers *out);

/* Returns 0; TW_EFORMAT for an invalid traceparent; errors of tw_seq_parts_decode() for our member. */
int tw_seq_parts_from_w3c(struct tw_arena *arena, const char *traceparent, const char *tracestate,
			  const struct tw_etf_options *options, struct tw_seq_parts *out);

/* ---- Erlang: {Flags,Label,Serial,From,LastCount}, [] for the empty token ---- */

/* None where the arena is full. */
struct tw_term tw_seq_parts_to_erlang(struct tw_arena *arena, const struct tw_seq_parts *parts);
/* TW_EBADARG: no such tuple.  A From without node is a pid of @own. */
int tw_seq_parts_from_erlang(struct tw_term token, struct tw_term own, struct tw_seq_parts *out);

#endif
