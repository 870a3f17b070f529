/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_callers.c - resolves callers of native calls that a match specification recorded.
 *
 *	{M,<<"+0x1f2a">>,'_'}		{M,F,'_'}			{caller}, by the object's symbols;
 *									{M,'+0x1f2a','_'} if there is none
 *	{M,F,'_',<<"+0x1f2a">>}		{M,F,'_',{"file.c",12}}		{caller_line}, or undefined
 *
 * A hit knows only the offset in the object. Callers are resolved anywhere in a term, as {message,X} may contain
 * them.
 */
#include "views/names/lines.h"
#include "tools/print/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Deeper or longer terms are not searched. */
#define DEPTH_MAX 16
#define ITEMS_MAX 64

struct naming {
	const struct tw_printer *printer;
	uint32_t image;
	struct tw_arena *arena;
	bool is_for_people; /* C++ names are demangled */
};

/* "+0x1f2a" */
static bool read_offset(struct tw_term term, uint64_t *offset)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *data;
	size_t bits;
	if (tw_term_type(term) != TW_TYPE_BITSTRING || tw_term_get_bits(term, &data, &bits) || bits < 4 * 8 ||
	    bits > 19 * 8 || memcmp(data, "+0x", 3) != 0)
		return false;
	*offset = 0;
	for (size_t i = 3; i < bits / 8; i++) {
		const char *digit = memchr(digits, data[i], 16);
		if (!digit)
			return false;
		*offset = *offset << 4 | (uint64_t)(digit - digits);
	}
	return true;
}

static bool is_any(struct tw_term term)
{
	const char *name = tw_term_atom_name(term, NULL);
	return name && !strcmp(name, "_");
}

static void resolve(const struct naming *naming, struct tw_term module, uint64_t offset, struct tw_line *out)
{
	const char *name = tw_term_atom_name(module, NULL);
	const struct tw_capture_module *at, *found = NULL;
	uint32_t next = 0;
	*out = (struct tw_line){0};
	while (name && (at = tw_capture_module_next(naming->printer->capture, naming->image, &next)))
		if (!at->is_declared && !strcmp(at->name, name) && offset < at->end_address - at->base_address)
			found = at;
	if (found)
		tw_line_of_return(naming->printer->capture, naming->image, found->base_address + offset, out);
}

static struct tw_term name_term(const struct naming *naming, const char *name)
{
	char *demangled = naming->is_for_people ? tw_name_demangled(name) : NULL;
	const char *text = demangled ? demangled : name;
	struct tw_term term = tw_term_atom(text, strlen(text));
	if (tw_term_is_none(term))
		term = tw_term_binary(naming->arena, text, strlen(text));
	free(demangled);
	return term;
}

static struct tw_term place_term(const struct naming *naming, const struct tw_line *line)
{
	struct tw_term parts[2];
	if (!line->file)
		return tw_term_atom_z("undefined");
	parts[0] = tw_term_string(naming->arena, line->file, strlen(line->file));
	parts[1] = tw_term_unsigned(naming->arena, line->line);
	return tw_term_tuple(naming->arena, parts, 2);
}

/* Resolves a caller. False: the tuple is something else. */
static bool name_caller(const struct naming *naming, struct tw_term *parts, size_t count)
{
	struct tw_line line;
	uint64_t offset;
	if (count < 3 || count > 4 || !is_any(parts[2]) || tw_term_type(parts[0]) != TW_TYPE_ATOM)
		return false;
	bool is_known = tw_term_type(parts[1]) == TW_TYPE_ATOM;
	if (count == 3 && is_known) {
		parts[1] = name_term(naming, tw_term_atom_name(parts[1], NULL));
		return true;
	}
	if (!read_offset(parts[count == 4 ? 3 : 1], &offset))
		return false;
	resolve(naming, parts[0], offset, &line);
	if (is_known || line.function) {
		parts[1] = name_term(naming, is_known ? tw_term_atom_name(parts[1], NULL) : line.function);
	} else {
		char text[24];
		snprintf(text, sizeof text, "+0x%llx", (unsigned long long)offset);
		parts[1] = tw_term_atom_z(text);
	}
	if (count == 4)
		parts[3] = place_term(naming, &line);
	return true;
}

static struct tw_term name_all(const struct naming *naming, struct tw_term term, unsigned depth)
{
	struct tw_term items[ITEMS_MAX], rest = term;
	size_t count = tw_term_tuple_count(term);
	if (depth == DEPTH_MAX || count > ITEMS_MAX)
		return term;
	if (count) {
		for (size_t i = 0; i < count; i++)
			items[i] = tw_term_element(term, i);
		if (!name_caller(naming, items, count))
			for (size_t i = 0; i < count; i++)
				items[i] = name_all(naming, items[i], depth + 1);
		return tw_term_tuple(naming->arena, items, count);
	}
	for (; tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest)) {
		if (count == ITEMS_MAX)
			return term;
		items[count++] = tw_term_head(rest);
	}
	while (count--)
		rest = tw_term_cons(naming->arena, name_all(naming, items[count], depth + 1), rest);
	return tw_term_is_none(rest) ? term : rest;
}

struct tw_term tw_print_name_callers(const struct tw_printer *printer, const struct tw_capture_event *event,
				     struct tw_arena *arena, struct tw_term term, bool is_for_people)
{
	const struct naming naming = {printer, event->image, arena, is_for_people};
	const struct tw_capture_place *place =
		event->kind == TW_CAPTURE_CALL ? tw_capture_place(printer->capture, event->image, event->id) : NULL;
	struct tw_term named;
	if (!place || !place->function || place->kind == TW_CAPTURE_DECLARED)
		return term;
	named = name_all(&naming, term, 0);
	return tw_term_is_none(named) ? term : named;
}
