/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean.c - makes untrusted names safe to print on a terminal.
 *
 * Names of functions, objects, files, threads and processes, command lines and notes come from the traced program or
 * from a file, and may contain anything: escape sequences that change a terminal, line feeds that forge lines, marks
 * that reverse the order of letters. Such characters are shown as \n, \x1b or \u202e.
 */
#include "views/output/output.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

size_t tw_utf8_next(const char *text, size_t left, uint32_t *code)
{
	const unsigned char *at = (const unsigned char *)text;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
	if (n == 0 || n > left)
		return 0;
	uint32_t value = n == 1 ? at[0] : at[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	/* RFC 3629: the shortest form only, no surrogates, nothing above U+10FFFF. */
	if (value < least[n] || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff)
		return 0;
	*code = value;
	return n;
}

const char *tw_utf8_text(const char *text)
{
	static char *kept;
	size_t bytes = strlen(text), used = 0, count;
	uint32_t code;
	for (count = 0; count < bytes && (unsigned char)text[count] < 0x80; count++)
		;
	if (count == bytes)
		return text;
	free(kept);
	kept = malloc(3 * bytes + 1);
	for (size_t i = 0; kept && i < bytes; i += count ? count : 1) {
		count = tw_utf8_next(text + i, bytes - i, &code);
		memcpy(kept + used, count ? text + i : "\xef\xbf\xbd", count ? count : 3);
		used += count ? count : 3;
	}
	if (!kept)
		return "?";
	kept[used] = 0;
	return kept;
}

size_t tw_clean_piece(const char *text, size_t left, char *out, size_t *out_bytes)
{
	uint32_t code;
	size_t n = tw_utf8_next(text, left, &code);
	if (n && !tw_is_unsafe(code)) {
		memcpy(out, text, n);
		*out_bytes = n;
		return n;
	}
	if (!n)
		code = (unsigned char)*text;
	const char *letters = "\nn\tt\rr", *letter = code && code < 0x20 ? strchr(letters, (int)code) : NULL;
	if (letter)
		*out_bytes = (size_t)snprintf(out, TW_CLEAN_PIECE_BYTES, "\\%c", letter[1]);
	else
		*out_bytes = (size_t)snprintf(out, TW_CLEAN_PIECE_BYTES, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
	return n ? n : 1;
}

size_t tw_clean(const char *text, size_t bytes, char *out, size_t capacity)
{
	size_t used = 0, piece_bytes;
	char piece[TW_CLEAN_PIECE_BYTES];
	for (size_t i = 0; i < bytes;) {
		i += tw_clean_piece(text + i, bytes - i, piece, &piece_bytes);
		if (piece_bytes > capacity - used)
			break;
		memcpy(out + used, piece, piece_bytes);
		used += piece_bytes;
	}
	return used;
}

static bool is_plain(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

void tw_out_clean(struct tw_out *out, const char *text, size_t bytes)
{
	if (is_plain(text, bytes)) {
		tw_out_bytes(out, text, bytes);
		return;
	}
	size_t piece_bytes;
	char piece[TW_CLEAN_PIECE_BYTES];
	for (size_t i = 0; i < bytes;) {
		i += tw_clean_piece(text + i, bytes - i, piece, &piece_bytes);
		tw_out_bytes(out, piece, piece_bytes);
	}
}

void tw_out_name(struct tw_out *out, const char *name)
{
	tw_out_clean(out, name, strlen(name));
}

/* Does a shell take this argument literally? */
static bool is_plain_argument(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] < 0x80 && !isalnum((unsigned char)text[i]) && !strchr("_@%+=:,./-", text[i]))
			return false;
	return bytes != 0;
}

struct command {
	struct tw_out *out;
	size_t left;
	bool is_cut;
};

static void put_piece(struct command *to, const char *piece, size_t bytes)
{
	to->is_cut |= bytes > to->left;
	if (to->is_cut)
		return;
	tw_out_bytes(to->out, piece, bytes);
	to->left -= bytes;
}

static void put_argument(struct command *to, const char *text, size_t bytes)
{
	bool is_quoted = !is_plain_argument(text, bytes);
	char piece[TW_CLEAN_PIECE_BYTES];
	size_t piece_bytes;
	if (is_quoted)
		put_piece(to, "'", 1);
	for (size_t i = 0; i < bytes;) {
		bool is_quote = text[i] == '\'';
		i += tw_clean_piece(text + i, bytes - i, piece, &piece_bytes);
		put_piece(to, is_quote ? "'\\''" : piece, is_quote ? 4 : piece_bytes);
	}
	if (is_quoted)
		put_piece(to, "'", 1);
}

void tw_out_command(struct tw_out *out, const char *command, size_t bytes, size_t capacity)
{
	struct command to = {.out = out, .left = capacity};
	for (size_t i = 0; i < bytes;) {
		size_t argument = strnlen(command + i, bytes - i);
		if (i)
			put_piece(&to, " ", 1);
		put_argument(&to, command + i, argument);
		i += argument + 1;
	}
}
