/* SPDX-License-Identifier: Apache-2.0 */
/* figure.h - numbers in messages: "2,653". */
#ifndef TW_BASE_FIGURE_H
#define TW_BASE_FIGURE_H

#include <stdint.h>

/* The longest number, and its NUL. */
#define TW_COUNT_TEXT_BYTES 32

/* Writes @count with separators; returns @text.  No call of libc. */
static inline char *tw_count_text(char *text, uint64_t count)
{
	char digits[TW_COUNT_TEXT_BYTES], *to = text;
	unsigned n = 0;

	do {
		digits[n++] = (char)('0' + count % 10);
		count /= 10;
	} while (count);
	while (n) {
		*to++ = digits[--n];
		if (n && n % 3 == 0)
			*to++ = ',';
	}
	*to = 0;
	return text;
}

#endif
