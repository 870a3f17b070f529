/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type_name.c - demangles the name of a C++ class from its type_info, without allocation.
 *
 * Supports the part of the mangling (Itanium C++ ABI, section 5.1) used by thrown classes: nested names, templates of
 * types and numbers, pointers, built-in types.  All other names stay mangled.
 */
#include "symbols/symbols.h"

#include "base/assert.h"

#include <string.h>

#define DEPTH_MAX 16

struct text {
	const char *at;
	char *out;
	size_t capacity; /* with the terminator */
	unsigned depth;
	bool is_cut;
};

static void put(struct text *t, const char *text, size_t bytes)
{
	if (bytes >= t->capacity) {
		t->is_cut = true;
		return;
	}
	memcpy(t->out, text, bytes);
	t->out += bytes;
	t->capacity -= bytes;
}

static bool say(struct text *t, const char *text)
{
	put(t, text, strlen(text));
	return true;
}

static bool take(struct text *t, const char *start)
{
	size_t bytes = strlen(start);

	if (strncmp(t->at, start, bytes))
		return false;
	t->at += bytes;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 13runtime_error */
static bool source_name(struct text *t)
{
	size_t bytes = 0;

	while (is_digit(*t->at) && bytes < 100000)
		bytes = bytes * 10 + (size_t)(*t->at++ - '0');
	if (!bytes || strnlen(t->at, bytes) < bytes)
		return false;
	if (bytes >= 10 && !strncmp(t->at, "_GLOBAL__N", 10))
		say(t, "(anonymous namespace)");
	else
		put(t, t->at, bytes);
	t->at += bytes;
	return true;
}

static bool type(struct text *t);

/* I type... E, also a number: Lj5E */
static bool arguments(struct text *t)
{
	bool is_first = true, is_right = true;

	say(t, "<");
	while (is_right && *t->at && *t->at != 'E') {
		if (!is_first)
			say(t, ", ");
		is_first = false;
		if (t->at[0] == 'L' && t->at[1] && (is_digit(t->at[2]) || t->at[2] == 'n')) {
			t->at += 2;
			if (take(t, "n"))
				say(t, "-");
			while (is_digit(*t->at))
				put(t, t->at++, 1);
			is_right = take(t, "E");
		} else {
			is_right = type(t);
		}
	}
	if (is_right && !t->is_cut && t->out[-1] == '>')
		say(t, " ");
	say(t, ">");
	return is_right && take(t, "E");
}

/* A name of one part, or N part... E. */
static bool name(struct text *t)
{
	static const struct {
		const char *code, *text;
	} known[] =
		{{"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"}, {"Si", "std::istream"},
		 {"So", "std::ostream"},   {"Sd", "std::iostream"},	{"St", "std"}};
	bool is_nested = take(t, "N"), is_first = true, is_std = false;

	do {
		const char *before = t->at;

		if (is_first)
			for (size_t i = 0; i < TW_COUNT_OF(known) && t->at == before; i++)
				if (take(t, known[i].code)) {
					say(t, known[i].text);
					is_std = known[i].code[1] == 't';
				}
		if (t->at == before) {
			if (!is_first)
				say(t, "::");
			if (!source_name(t))
				return false;
			is_std = false;
		}
		is_first = false;
		if (take(t, "I") && !arguments(t))
			return false;
	} while (is_std || (is_nested && *t->at != 'E'));
	return !is_nested || take(t, "E");
}

static bool type_inside(struct text *t)
{
	static const char codes[] = "vwbcahstijlmxynofdegz";
	static const char *const names[] = {"void",	   "wchar_t",
					    "bool",	   "char",
					    "signed char", "unsigned char",
					    "short",	   "unsigned short",
					    "int",	   "unsigned int",
					    "long",	   "unsigned long",
					    "long long",   "unsigned long long",
					    "__int128",	   "unsigned __int128",
					    "float",	   "double",
					    "long double", "__float128",
					    "..."};
	const char *code;

	if (take(t, "P"))
		return type(t) && say(t, "*");
	if (take(t, "R"))
		return type(t) && say(t, "&");
	if (take(t, "K"))
		return type(t) && say(t, " const");
	code = *t->at ? strchr(codes, *t->at) : NULL;
	if (code) {
		t->at++;
		return say(t, names[code - codes]);
	}
	return name(t);
}

static bool type(struct text *t)
{
	bool is_right;

	if (t->depth == DEPTH_MAX)
		return false;
	t->depth++;
	is_right = type_inside(t);
	t->depth--;
	return is_right;
}

void tw_sym_type_name(const char *mangled, char *out, size_t bytes)
{
	struct text t = {.out = out, .capacity = bytes};
	size_t length;

	/* A star: compare addresses, not names. */
	mangled += *mangled == '*';
	t.at = mangled;
	if (type(&t) && !*t.at && !t.is_cut) {
		*t.out = '\0';
		return;
	}
	length = strnlen(mangled, bytes - 1);
	memcpy(out, mangled, length);
	out[length] = '\0';
}
