/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - reading and writing single characters of UTF-8, as strict as Erlang. */
#ifndef TW_TERM_UTF8_H
#define TW_TERM_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for valid Unicode characters of a text: no surrogates, nothing beyond 0x10ffff. */
static inline bool tw_is_unicode(uint64_t character)
{
	return character < 0xd800 || (character > 0xdfff && character <= 0x10ffff);
}

/*
 * Reads the character at @at, which is before @end.  Returns its length, 1 to 4 bytes; 0 if the bytes are not UTF-8
 * (overlong forms and surrogates included), and *character is then untouched.
 */
static inline size_t tw_utf8_next(const char *at, const char *end, uint32_t *character)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)at;
	size_t count, i;
	uint32_t c;

	if (p[0] < 0x80) {
		*character = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	count = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if ((size_t)(end - at) < count)
		return 0;
	c = p[0] & (0x7fu >> count);
	for (i = 1; i < count; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < smallest[count] || !tw_is_unicode(c))
		return 0;
	*character = c;
	return count;
}

/* Writes a character, at most 4 bytes; returns their number. */
static inline size_t tw_utf8_put(char *at, uint32_t c)
{
	if (c < 0x80) {
		at[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		at[0] = (char)(0xc0 | c >> 6);
		at[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		at[0] = (char)(0xe0 | c >> 12);
		at[1] = (char)(0x80 | (c >> 6 & 0x3f));
		at[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	at[0] = (char)(0xf0 | c >> 18);
	at[1] = (char)(0x80 | (c >> 12 & 0x3f));
	at[2] = (char)(0x80 | (c >> 6 & 0x3f));
	at[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static inline bool tw_utf8_is_valid(const char *text, size_t bytes)
{
	const char *at = text, *end = text + bytes;
	uint32_t character;
	size_t count;

	for (; at < end; at += count) {
		count = tw_utf8_next(at, end, &character);
		if (!count)
			return false;
	}
	return true;
}

#endif
