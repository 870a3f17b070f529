/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shorten.c - shortens names of functions to the width of a column.
 *
 * The least informative parts go first: template arguments that are the default, then all of them and parameters from
 * the innermost outwards, the result type, the module, the scopes from the left; at last the middle, so that both ends remain. Two
 * dots replace the parts left out.
 */
#include "views/output/shorten.h"

#include <ctype.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BRACKETS_MAX 4
#define SCOPE_MAX    1024

static bool is_part_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Skips the symbols of `operator<<` and others, which are no brackets; returns `at` itself if there are none. */
static const char *behind_operator(const char *start, const char *at)
{
	static const char word[] = "operator";
	const size_t bytes = sizeof word - 1;

	if ((size_t)(at - start) < bytes || strncmp(at - bytes, word, bytes) != 0 ||
	    (at - bytes > start && is_part_of_word(at[-(ptrdiff_t)bytes - 1])))
		return at;
	if (strncmp(at, "()", 2) == 0)
		return at + 2;
	while (*at == '<' || *at == '>' || *at == '-' || *at == '=')
		at++;
	return at;
}

struct shortening {
	char *out;
	size_t capacity, bytes;
	bool has_failed; /* no space, or unbalanced brackets */
};

static void put(struct shortening *s, const char *text, size_t bytes)
{
	if (s->bytes + bytes >= s->capacity) {
		s->has_failed = true;
		return;
	}
	memcpy(s->out + s->bytes, text, bytes);
	s->bytes += bytes;
	s->out[s->bytes] = '\0';
}

static bool opens(const char *name, const char *at)
{
	static const char anonymous[] = "(anonymous namespace)";

	if (*at == '(')
		return strncmp(at, anonymous, sizeof anonymous - 1) != 0;
	/* A type in place of a scope (Rust) is part of the name. */
	return *at == '<' && at > name && is_part_of_word(at[-1]);
}

/* Leaves out the contents of brackets nested deeper than `most`. */
static bool without_brackets(const char *name, unsigned most, char *out, size_t capacity)
{
	struct shortening s = {.out = out, .capacity = capacity};
	char open[64];
	unsigned depth = 0;

	for (const char *at = name; *at; at++) {
		const char *behind = behind_operator(name, at);

		if (behind != at) {
			if (depth < most)
				put(&s, at, (size_t)(behind - at));
			at = behind - 1;
			continue;
		}
		if (opens(name, at)) {
			if (depth == sizeof open)
				return false;
			open[depth++] = *at;
			if (depth <= most)
				put(&s, at, 1);
			if (depth == most)
				put(&s, "..", at[1] == (*at == '(' ? ')' : '>') ? 0 : 2);
			continue;
		}
		if (depth && ((*at == ')' && open[depth - 1] == '(') ||
			      (*at == '>' && open[depth - 1] == '<' && at[-1] != '-'))) {
			if (depth <= most)
				put(&s, at, 1);
			depth--;
			continue;
		}
		if (depth < most)
			put(&s, at, 1);
	}
	return !s.has_failed && depth == 0;
}

/*
 * The start of the function's name, after its result type: after a space outside of brackets that is not part of
 * `operator new`.
 */
static const char *behind_result(const char *name)
{
	const char *begin = name;
	unsigned depth = 0;

	for (const char *at = name; *at; at++) {
		const char *behind = behind_operator(name, at);

		if (behind != at || strncmp(at, "operator ", 9) == 0)
			break;
		if (*at == '(' && !depth && opens(name, at))
			break;
		depth += *at == '<' || *at == '(' || *at == '{';
		depth -= depth && (*at == '>' || *at == ')' || *at == '}');
		if (*at == ' ' && !depth)
			begin = at + 1;
	}
	return begin;
}

/* The text after the next scope from the left; NULL: there is none. */
static const char *behind_scope(const char *name)
{
	unsigned depth = 0;

	if (*name == '<')
		return NULL;
	for (const char *at = name; *at; at++) {
		if (!depth && strncmp(at, "::", 2) == 0 && at > name)
			return at + 2;
		if (!depth && *at == '(' && opens(name, at))
			return NULL;
		depth += *at == '<' || *at == '(' || *at == '{';
		depth -= depth && (*at == '>' || *at == ')' || *at == '}');
	}
	return NULL;
}

static void cut_middle(const char *dots, const char *name, size_t bytes, size_t width, char *out, size_t capacity)
{
	int left = (int)width / 2 - 1, right = (int)width - (int)width / 2 - 1;

	if (bytes <= width) {
		snprintf(out, capacity, "%s%.*s", dots, (int)bytes, name);
	} else {
		/* Not inside a character. */
		while (left > 0 && ((unsigned char)name[left] & 0xc0) == 0x80)
			left--;
		while (right > 0 && ((unsigned char)name[bytes - (size_t)right] & 0xc0) == 0x80)
			right--;
		snprintf(out, capacity, "%s%.*s..%.*s", dots, left, name, right, name + bytes - (size_t)right);
	}
}

void tw_name_shorten(const char *name, size_t width, char *out, size_t capacity)
{
	char whole[TW_NAME_SHORT_BYTES], within[SCOPE_MAX];
	size_t bytes = strlen(name);

	if (bytes > width && bytes < sizeof whole && strchr(name, '<')) {
		memcpy(whole, name, bytes + 1);
		tw_name_drop_defaults(whole);
		bytes = strlen(name = whole);
	}
	const char *colon = strchr(name, ':'), *dots = "", *next;
	/* "<0.45.0> clerk" and "(any object)" are no functions. */
	bool has_module = colon && *name != '<' && *name != '(', is_shorter = false;

	for (unsigned most = BRACKETS_MAX; has_module && bytes > width && most; most--) {
		if (!strpbrk(colon, "<(") || !without_brackets(name, most, within, sizeof within) ||
		    (!is_shorter && strlen(within) >= bytes))
			continue;
		is_shorter = true;
		bytes = strlen(within);
	}
	if (is_shorter)
		colon = strchr(name = within, ':');
	if (bytes > width && has_module && colon < name + bytes - 2) {
		const char *end = name + bytes;

		name = colon + 1;
		if (strpbrk(name, "<("))
			name = behind_result(name);
		dots = "..";
		width -= 2;
		while ((size_t)(end - name) > width && (next = behind_scope(name)))
			name = next;
		bytes = (size_t)(end - name);
	}
	cut_middle(dots, name, bytes, width, out, capacity);
}

/* ---- several names ---- */

struct entry {
	const char *name;
	char *text;
	size_t differs_at; /* for names that were shortened alike: the position where it differs from its
			    * neighbours */
};

static int by_text(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int order = strcmp(x->text, y->text);
	return order ? order : strcmp(x->name, y->name);
}

static size_t common_bytes(const char *a, const char *b)
{
	size_t bytes = 0;
	while (a[bytes] && a[bytes] == b[bytes])
		bytes++;
	return bytes;
}

/* Finds the word around a position of a name: returns its end, and moves *at to its start. */
static size_t word_around(const char *name, size_t *at)
{
	size_t end = *at;
	while (*at && is_part_of_word(name[*at - 1]))
		--*at;
	while (name[end] && (is_part_of_word(name[end]) || end == *at))
		end++;
	return end;
}

/* A part of the name with the difference: begins at the outermost scope from which that fits. */
static void keep_word(const char *name, size_t differs_at, size_t width, char *out, size_t capacity)
{
	size_t at = differs_at, end = word_around(name, &at), bytes = strlen(name);
	const char *colon = strchr(name, ':'), *from = name,
		   *next = colon && *name != '<' ? behind_result(colon + 1) : NULL;
	while (next && next <= name + at && (size_t)(name + end - from) > width - (from == name ? 2 : 4)) {
		from = next;
		next = behind_scope(from);
	}
	if ((size_t)(name + end - from) > width - 4)
		from = name + at;
	/* Only the part of a long word that differs. */
	if (from == name + at && differs_at - at + 8 > width)
		from = name + differs_at - width / 2;
	while (from > name && ((unsigned char)*from & 0xc0) == 0x80)
		from--;
	size_t dots = from == name ? 0 : 2, rest = bytes > (size_t)(from - name) ? bytes - (size_t)(from - name) : 0;
	bool is_cut = rest > width - dots;
	size_t shown = is_cut ? width - dots - 2 : rest;
	while (is_cut && shown && ((unsigned char)from[shown] & 0xc0) == 0x80)
		shown--;
	snprintf(out, capacity, "%s%.*s%s", dots ? ".." : "", (int)shown, from, is_cut ? ".." : "");
}

/* Entries that were shortened alike, sorted by name: different names get different texts. */
static void tell_apart(struct entry **entries, size_t count, size_t width)
{
	for (size_t i = 0; i < count; i++)
		entries[i]->differs_at = 0;
	for (size_t i = 1; i < count; i++) {
		size_t bytes = common_bytes(entries[i - 1]->name, entries[i]->name);
		if (!entries[i]->name[bytes] && !entries[i - 1]->name[bytes]) {
			entries[i]->differs_at = entries[i - 1]->differs_at;
			continue;
		}
		entries[i]->differs_at = bytes;
		if (bytes > entries[i - 1]->differs_at)
			entries[i - 1]->differs_at = bytes;
	}
	/* Equal names are one name. */
	for (size_t i = count; i-- > 1;)
		if (strcmp(entries[i - 1]->name, entries[i]->name) == 0)
			entries[i - 1]->differs_at = entries[i]->differs_at;
	for (size_t i = 0; i < count; i++) {
		char text[TW_NAME_SHORT_BYTES];
		if (!entries[i]->differs_at)
			continue;
		keep_word(entries[i]->name, entries[i]->differs_at, width, text, sizeof text);
		char *copy = strdup(text);
		if (!copy)
			return;
		free(entries[i]->text);
		entries[i]->text = copy;
	}
}

char **tw_names_shorten(const char *const *names, size_t count, size_t width)
{
	char **texts = calloc(count + 1, sizeof *texts), text[TW_NAME_SHORT_BYTES];
	struct entry *entries = calloc(count + 1, sizeof *entries), **sorted = calloc(count + 1, sizeof *sorted);
	bool is_made = texts && entries && sorted;
	for (size_t i = 0; is_made && i < count; i++) {
		tw_name_shorten(names[i], width, text, sizeof text);
		entries[i] = (struct entry){.name = names[i], .text = strdup(text)};
		sorted[i] = &entries[i];
		is_made = entries[i].text != NULL;
	}
	if (is_made)
		qsort(sorted, count, sizeof *sorted, by_text);
	for (size_t i = 0, end; is_made && i < count; i = end) {
		for (end = i + 1; end < count && strcmp(sorted[i]->text, sorted[end]->text) == 0;)
			end++;
		if (end - i > 1)
			tell_apart(sorted + i, end - i, width);
	}
	for (size_t i = 0; entries && texts && i < count; i++)
		texts[i] = entries[i].text;
	free(entries);
	free(sorted);
	if (is_made)
		return texts;
	tw_names_shorten_free(texts, count);
	return NULL;
}

void tw_names_shorten_free(char **texts, size_t count)
{
	for (size_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
}
