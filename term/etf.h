/* SPDX-License-Identifier: Apache-2.0 */
/* etf.h - the tags of the external term format, as in the ERTS User's Guide, and encoding into buffers. */
#ifndef TW_TERM_ETF_H
#define TW_TERM_ETF_H

#include "tracewheel/term.h"

#include <string.h>

#define TW_ETF_VERSION 131

/*
 * tw_etf_try_encode - tw_etf_encode() into a buffer, for hits: it never allocates.
 *
 * Returns the bytes written; 0 if the term does not fit, or is nested deeper than 64 levels.  Signal handlers: yes.
 */
size_t tw_etf_try_encode(struct tw_term term, void *buffer, size_t bytes);
/* The general path of tw_etf_try_encode(). */
size_t tw_etf_encode_fixed(struct tw_term term, void *buffer, size_t bytes);

/*
 * tw_etf_encode_cut - encode as much of a term as fits, cut as tw_term_copy() does: '...' marks the cuts.
 *
 * Returns the bytes written: the whole term if it fits; 0 if there is no space for '...' (6 bytes).  Never allocates.
 * Signal handlers: yes.
 */
size_t tw_etf_encode_cut(struct tw_term term, void *buffer, size_t bytes);

enum tw_etf_tag {
	TW_ETF_NEW_FLOAT = 'F',
	TW_ETF_BIT_BINARY = 'M',
	TW_ETF_COMPRESSED = 'P',
	TW_ETF_NEW_PID = 'X',
	TW_ETF_NEW_PORT = 'Y',
	TW_ETF_NEWER_REFERENCE = 'Z',
	TW_ETF_SMALL_INTEGER = 'a',
	TW_ETF_INTEGER = 'b',
	TW_ETF_FLOAT = 'c',
	TW_ETF_ATOM = 'd',
	TW_ETF_REFERENCE = 'e',
	TW_ETF_PORT = 'f',
	TW_ETF_PID = 'g',
	TW_ETF_SMALL_TUPLE = 'h',
	TW_ETF_LARGE_TUPLE = 'i',
	TW_ETF_NIL = 'j',
	TW_ETF_STRING = 'k',
	TW_ETF_LIST = 'l',
	TW_ETF_BINARY = 'm',
	TW_ETF_SMALL_BIG = 'n',
	TW_ETF_LARGE_BIG = 'o',
	TW_ETF_NEW_FUN = 'p',
	TW_ETF_EXPORT = 'q',
	TW_ETF_NEW_REFERENCE = 'r',
	TW_ETF_SMALL_ATOM = 's',
	TW_ETF_MAP = 't',
	TW_ETF_ATOM_UTF8 = 'v',
	TW_ETF_SMALL_ATOM_UTF8 = 'w',
	TW_ETF_V4_PORT = 'x',
	TW_ETF_LOCAL = 'y',
};

/* Big-endian, as all numbers of the format.  Returns the byte after it. */
static inline uint8_t *tw_etf_put32(uint8_t *at, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(at, &value, 4);
	return at + 4;
}

/* A pid of this node, without the version byte.  Returns the byte after it. */
static inline uint8_t *tw_etf_put_local_pid(uint8_t *at, uint32_t number, uint32_t serial, uint32_t creation)
{
	static const char head[] = {TW_ETF_NEW_PID,
				    TW_ETF_SMALL_ATOM_UTF8,
				    13,
				    'n',
				    'o',
				    'n',
				    'o',
				    'd',
				    'e',
				    '@',
				    'n',
				    'o',
				    'h',
				    'o',
				    's',
				    't'};

	memcpy(at, head, sizeof head);
	return tw_etf_put32(tw_etf_put32(tw_etf_put32(at + sizeof head, number), serial), creation);
}

#endif
