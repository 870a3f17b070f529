/* SPDX-License-Identifier: Apache-2.0 */
#include "lit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 32
#define TEXT_BYTES 16384

struct values {
	struct tw_term terms[VALUES_MAX];
	size_t count;
};

/* The atom '%7' stands for value 7. */
static struct tw_term value_of(struct tw_arena *arena, struct tw_term term, void *context)
{
	const struct values *values = context;
	const char *name = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, NULL) : NULL;

	(void)arena;
	if (name && name[0] == '%')
		return values->terms[atoi(name + 1)];
	return (struct tw_term){0};
}

struct tw_term lit_map(struct tw_arena *arena, struct tw_term term, lit_change_fn change, void *context)
{
	struct tw_term changed = change(arena, term, context), *parts, tail = term;
	size_t count = 0;

	if (!tw_term_is_none(changed))
		return changed;
	if (tw_term_type(term) == TW_TYPE_TUPLE) {
		count = tw_term_tuple_count(term);
		parts = tw_arena_alloc(arena, (count + 1) * sizeof *parts);
		for (size_t i = 0; i < count; i++)
			parts[i] = lit_map(arena, tw_term_element(term, i), change, context);
		return tw_term_tuple(arena, parts, count);
	}
	if (tw_term_type(term) != TW_TYPE_CONS)
		return term;
	for (; tw_term_type(tail) == TW_TYPE_CONS; tail = tw_term_tail(tail))
		count++;
	parts = tw_arena_alloc(arena, count * sizeof *parts);
	tail = term;
	for (size_t i = 0; i < count; i++, tail = tw_term_tail(tail))
		parts[i] = lit_map(arena, tw_term_head(tail), change, context);
	return tw_term_list(arena, parts, count, lit_map(arena, tail, change, context));
}

struct tw_term lit_in(struct tw_arena *arena, const char *format, ...)
{
	char text[TEXT_BYTES];
	size_t at = 0;
	struct values values = {.count = 0};
	struct tw_parse_error error;
	struct tw_term term;
	va_list list;

	va_start(list, format);
	for (const char *c = format; *c && at < sizeof text - 16; c++) {
		if (*c != '%') {
			text[at++] = *c;
			continue;
		}
		c++;
		values.terms[values.count] = *c == 't'	 ? va_arg(list, struct tw_term)
					     : *c == 'd' ? tw_term_integer(arena, va_arg(list, int))
							 : tw_term_atom_z(va_arg(list, const char *));
		at += (size_t)snprintf(text + at, 8, "'%%%zu'", values.count++);
	}
	va_end(list);
	if (tw_term_parse(arena, text, at, &term, &error)) {
		fprintf(stderr, "lit: \"%.*s\": %s at column %u\n", (int)at, text, error.message, error.column);
		abort();
	}
	return values.count ? lit_map(arena, term, value_of, &values) : term;
}

size_t lit_count(struct tw_term list)
{
	size_t count;

	if (tw_term_list_count(list, &count)) {
		fprintf(stderr, "lit: %s is no list\n", lit_text(list));
		abort();
	}
	return count;
}

struct tw_term lit_nth(struct tw_term list, size_t i)
{
	while (i--)
		list = tw_term_tail(list);
	return tw_term_head(list);
}

bool lit_is(struct tw_term term, const char *name)
{
	return tw_term_is_same(term, tw_term_atom_z(name));
}

const char *lit_text(struct tw_term term)
{
	static _Thread_local char texts[4][TEXT_BYTES];
	static _Thread_local unsigned next;
	char *text = texts[next++ % 4];

	if (tw_term_is_none(term))
		return "(none)";
	tw_term_format(term, TW_PRINT_PRETTY, text, TEXT_BYTES);
	return text;
}

char *lit_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	char *text;
	long end = 0;

	if (!file || fseek(file, 0, SEEK_END) || (end = ftell(file)) <= 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	text = malloc((size_t)end);
	*bytes = text ? fread(text, 1, (size_t)end, file) : 0;
	fclose(file);
	return text;
}
