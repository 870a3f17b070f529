/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_defaults.c - leaves out template arguments that the standard library has by default.
 *
 * A demangler writes all arguments: std::map<int, char, std::less<int>, std::allocator<std::pair<int const, char> > >
 * is std::map<int, char>. Only an argument that is exactly the default for the arguments before it goes, so different
 * types stay different.
 */
#include "views/output/shorten.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_MAX = 16, ARGUMENT_BYTES = 512 };

/* The arguments of one pair of brackets. */
struct arguments {
	size_t from[ARGUMENTS_MAX], bytes[ARGUMENTS_MAX];
	unsigned count;
	size_t close; /* of the closing bracket */
};

/* The position at which the list in these brackets ends, and its arguments; false: no list that is understood. */
static bool take_apart(const char *name, size_t open, struct arguments *list)
{
	unsigned depth = 0;

	list->count = 0;
	list->from[0] = open + 1;
	for (size_t at = open + 1; name[at]; at++) {
		bool closes = strchr(">)]}", name[at]) != NULL, is_arrow = name[at] == '>' && name[at - 1] == '-';

		if (is_arrow || strncmp(name + at, "operator", 8) == 0)
			return false;
		if (!depth && (name[at] == ',' || closes)) {
			size_t end = at;

			while (end > list->from[list->count] && name[end - 1] == ' ')
				end--;
			list->bytes[list->count] = end - list->from[list->count];
			list->count++;
			list->close = at;
			if (closes || list->count == ARGUMENTS_MAX)
				return name[at] == '>';
			at += name[at + 1] == ' ';
			list->from[list->count] = at + 1;
			continue;
		}
		depth += strchr("<([{", name[at]) != NULL;
		depth -= closes;
	}
	return false;
}

/* The default arguments; 0 and 1 stand for the first and the second argument of the list, # for a space behind a bracket. */
static const char *const defaults[] = {
	"std::allocator<0#>",	   "std::allocator<std::pair<0 const, 1#> >",
	"std::char_traits<0#>",	   "std::less<0#>",
	"std::hash<0#>",	   "std::equal_to<0#>",
	"std::default_delete<0#>",
};

static bool is_default(const char *name, const struct arguments *list)
{
	const char *last = name + list->from[list->count - 1];

	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
		char text[ARGUMENT_BYTES];
		size_t used = 0;

		for (const char *c = defaults[i]; *c && used < sizeof text; c++) {
			unsigned number = *c == '1';
			bool is_space = *c == '#' && used && text[used - 1] == '>';

			if (*c == '0' || *c == '1')
				used += (size_t)snprintf(text + used, sizeof text - used, "%.*s",
							 (int)list->bytes[number], name + list->from[number]);
			else if (*c != '#' || is_space)
				text[used++] = is_space ? ' ' : *c;
		}
		if (used < sizeof text && used == list->bytes[list->count - 1] && !memcmp(text, last, used))
			return true;
	}
	return false;
}

static void cut(char *name, size_t from, size_t to)
{
	memmove(name + from, name + to, strlen(name + to) + 1);
}

/* std::string is a word of its own. */
static void rename_string(char *name, size_t open)
{
	static const char whole[] = "std::__cxx11::basic_string", word[] = "std::string", rest[] = "<char>";
	const size_t bytes = sizeof whole - 1;

	size_t end = open + sizeof rest - 1;

	if (open < bytes || strncmp(name + open - bytes, whole, bytes) != 0 ||
	    strncmp(name + open, rest, sizeof rest - 1) != 0)
		return;
	memcpy(name + open - bytes, word, sizeof word - 1);
	/* libiberty's space between two closing brackets has no purpose any more. */
	end += strncmp(name + end, " >", 2) == 0;
	cut(name, open - bytes + sizeof word - 1, end);
}

void tw_name_drop_defaults(char *name)
{
	/* From the right: the lists in a list come before it. */
	for (size_t open = strlen(name); open-- > 1;) {
		struct arguments list;

		if (name[open] != '<' || !take_apart(name, open, &list))
			continue;
		while (list.count > 1 && is_default(name, &list)) {
			size_t end = list.from[list.count - 2] + list.bytes[list.count - 2];

			/* libiberty separates two closing brackets. */
			end += name[end - 1] == '>';
			if (name[end - 1] == ',')
				name[end - 1] = ' ';
			cut(name, end, list.close);
			list.close = end;
			list.count--;
		}
		rename_string(name, open);
	}
}
