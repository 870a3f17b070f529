/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.c - translates size > 4096 to ($3 band 16#ffffffff) > 4096: if `size` is an unsigned of four bytes in rdx.
 *
 * Registers have undefined bits above a type's size, and words count as signed: so each name is replaced by an
 * expression with exactly the value of the parameter. A string is read when it is used: name == "ab" becomes
 * string_at($2) == <<97,98>>, as bytes.
 */
#include "tools/record/when.h"
#include "tools/record/layouts.h"
#include "tools/tool.h"

#include "tracewheel/layout.h"
#include "tracewheel/match.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES TW_WHEN_TEXT_BYTES
/* The bytes of a string that a hit reads: shorter ones are compared whole. */
#define STRING_BYTES 256

static bool is_word(const char *at, size_t bytes)
{
	static const char *const words[] = {"and",  "or",   "not", "xor", "andalso", "orelse", "band", "bor",
					    "bxor", "bnot", "bsl", "bsr", "div",     "rem",    "true", "false"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == bytes && memcmp(words[i], at, bytes) == 0)
			return true;
	return false;
}

static bool begins_name(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static size_t name_bytes(const char *at)
{
	size_t bytes = 0;
	while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_' || at[bytes] == '@')
		bytes++;
	return bytes;
}

/* <<"ab", 10>>: copied unchanged. */
static size_t binary_bytes(const char *at)
{
	size_t bytes = 2;
	bool is_quoted = false;
	for (; at[bytes] && (is_quoted || strncmp(at + bytes, ">>", 2) != 0); bytes++)
		is_quoted ^= at[bytes] == '"';
	return bytes + (at[bytes] ? 2 : 0);
}

/* Anything but a name: one quoted piece, number, argument or other character. */
static size_t other_bytes(const char *at)
{
	size_t bytes = 1;
	if (strncmp(at, "<<", 2) == 0)
		return binary_bytes(at);
	if (*at == '\'' || *at == '"') {
		while (at[bytes] && at[bytes] != *at)
			bytes += at[bytes] == '\\' && at[bytes + 1] ? 2 : 1;
		return bytes + (at[bytes] != 0);
	}
	if (isdigit((unsigned char)*at))
		while (isalnum((unsigned char)at[bytes]) || at[bytes] == '#')
			bytes++;
	else if (*at == '$' && at[1])
		bytes = isdigit((unsigned char)at[1]) ? 1 + name_bytes(at + 1) : 2;
	return bytes;
}

/* The next name that is neither a keyword nor a function: NULL after the last. */
static const char *next_name(const char *at, size_t *bytes)
{
	while (*at) {
		*bytes = name_bytes(at);
		if (!begins_name(*at)) {
			at += other_bytes(at);
			continue;
		}
		if (at[*bytes] != '(' && !is_word(at, *bytes))
			return at;
		at += *bytes;
	}
	return NULL;
}

static bool is_name(const char *name, const char *at, size_t bytes)
{
	return strlen(name) == bytes && memcmp(name, at, bytes) == 0;
}

/* ---- one name ---- */

static const char no_parameter[] = "has no parameter";

static void list_parameters(const struct tw_layout *layout, char *text, size_t capacity)
{
	size_t used = (size_t)snprintf(text, capacity, layout->count ? "its parameters are" : "it has none");
	for (uint32_t i = 0; i < layout->count && used < capacity; i++)
		used += (size_t)snprintf(text + used, capacity - used, "%s %s", i ? "," : "",
					 *layout->values[i].name ? layout->values[i].name : "_");
}

/* The value of a parameter as an expression. False: it cannot be compared. */
static bool put_parameter(const struct tw_layout_value *value, char *text, size_t capacity, char reason[512])
{
	unsigned number = (unsigned)value->registers[0] + 1, bits = value->bytes * 8;
	uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX, sign = mask / 2 + 1;
	const char *why = value->registers[0] < 0 ? "is optimized out or on the stack: it is in no known register"
			  : value->type == 'f' && value->registers[0] < 8 ? "is in no vector register"
			  : strchr("iubenpsf", value->type) == NULL	  ? "is not a number"
									  : NULL;
	if (why) {
		snprintf(reason, 512, "the parameter '%.100s' %s", value->name, why);
		return false;
	}
	if (value->type == 's')
		snprintf(text, capacity, "string_at($%u)", number);
	else if (value->type == 'f')
		snprintf(text, capacity, "%s(%u)", value->bytes == 4 ? "vector_float" : "vector_double", number - 9);
	else if (value->type == 'b')
		snprintf(text, capacity, "(($%u band 255) /= 0)", number);
	else if (strchr("in", value->type) && bits < 64)
		snprintf(text, capacity, "((($%u band %" PRIu64 ") bxor %" PRIu64 ") - %" PRIu64 ")", number, mask,
			 sign, sign);
	else if (strchr("in", value->type))
		snprintf(text, capacity, "$%u", number);
	else
		snprintf(text, capacity, "($%u band %" PRIu64 ")", number, mask);
	return true;
}

/* A descriptor or an error number is a number. */
static bool put_result(const struct tw_layout *layout, char *text, size_t capacity, char reason[512])
{
	struct tw_layout_value result = layout->result;
	result.name = "result";
	if (result.type == 'd' || result.type == 'E')
		result.bytes = result.type == 'd' ? 4 : result.bytes, result.type = 'i';
	else if (result.type && strchr("xog", result.type))
		result.type = 'u';
	if (result.type && result.type != 'v')
		return put_parameter(&result, text, capacity, reason);
	snprintf(
		reason, 512,
		result.type
			? "a function that is named has no result"
			: "the type of `result` has to be known, by debug information or a prototype, --args='int f()'");
	return false;
}

static bool is_of_end_name(const char *name, size_t bytes)
{
	return is_name("duration", name, bytes) || is_name("errno", name, bytes) || is_name("result", name, bytes) ||
	       is_name("exception", name, bytes);
}

/* The error of a call, 0 if it has not failed.  Of other functions errno is what an earlier call has left. */
static bool put_errno(const struct tw_layout *layout, bool is_typed, char *text, size_t capacity, char reason[512])
{
	const char *word = layout->result.bytes == 4 ? "$11" : "$12";
	if (layout->result.type == 'E')
		word = "((($7 band 4294967295) bxor 2147483648) - 2147483648)";
	else if (!layout->has_errno)
		word = "$9";
	else if (layout->result.type != 'i' && layout->result.type != 'u')
		word = "$13";
	snprintf(text, capacity, "%s", word);
	if (layout->has_errno || layout->result.type == 'E' || !is_typed)
		return true;
	snprintf(
		reason, 512,
		"a function that is named does not report errno, as far as is known; a prototype says so, --args='errno int f()'");
	return false;
}

/* ENOENT: 0 if it is no error. */
static int error_named(const char *name, size_t bytes)
{
	for (int error = 1; *name == 'E' && error < 200; error++)
		if (strerrorname_np(error) && is_name(strerrorname_np(error), name, bytes))
			return error;
	return 0;
}

static bool put_end(const struct tw_layout *layout, const struct tw_guard *of, const char *name, size_t bytes,
		    char *text, size_t capacity, char reason[512])
{
	if (is_name("result", name, bytes))
		return put_result(layout, text, capacity, reason);
	if (is_name("errno", name, bytes))
		return put_errno(layout, of->is_errno_typed, text, capacity, reason);
	snprintf(text, capacity, is_name("duration", name, bytes) ? "$8" : "($10 /= 0)");
	return true;
}

/* At a call's end vector registers hold its result, and no arguments. */
static bool is_in_vector(const struct tw_layout *layout, const char *name, size_t bytes, char reason[512])
{
	for (uint32_t i = 0; i < layout->count; i++)
		if (layout->values[i].type == 'f' && is_name(layout->values[i].name, name, bytes)) {
			snprintf(reason, 512,
				 "the parameter '%.*s' is in a vector register, which is not kept until the call ends",
				 (int)(bytes < 100 ? bytes : 100), name);
			return true;
		}
	return false;
}

static bool put_name(const struct tw_layout *layout, bool of_end, const char *name, size_t bytes, char *text,
		     size_t capacity, char reason[512])
{
	char list[300];
	for (uint32_t i = 0; i < layout->count; i++)
		if (is_name(layout->values[i].name, name, bytes))
			return put_parameter(&layout->values[i], text, capacity, reason);
	for (uint32_t i = 0; i < layout->count; i++)
		for (uint32_t j = 0; j < layout->values[i].enumerator_count; j++)
			if (is_name(layout->values[i].enumerators[j].name, name, bytes)) {
				snprintf(text, capacity, "(%" PRId64 ")", layout->values[i].enumerators[j].value);
				return true;
			}
	if (of_end && error_named(name, bytes)) {
		snprintf(text, capacity, "%d", error_named(name, bytes));
		return true;
	}
	list_parameters(layout, list, sizeof list);
	snprintf(reason, 512, "a function that is named %s '%.*s': %s", no_parameter, (int)(bytes < 100 ? bytes : 100),
		 name, list);
	return false;
}

/* ---- the guard, for one function ---- */

struct guard_text {
	char *text; /* TEXT_BYTES */
	size_t used;
	bool is_full;
};

static void put(struct guard_text *out, const char *text, size_t bytes)
{
	out->is_full |= bytes >= TEXT_BYTES - out->used;
	if (out->is_full)
		return;
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
	out->text[out->used] = 0;
}

/* Does the guard use a parameter that is a string? */
static bool has_strings(const struct tw_layout *layout, const char *guard)
{
	size_t bytes;
	for (const char *name; (name = next_name(guard, &bytes)); guard = name + bytes)
		for (uint32_t i = 0; i < layout->count; i++)
			if (layout->values[i].type == 's' && is_name(layout->values[i].name, name, bytes))
				return true;
	return false;
}

/* "a\n" as bytes: <<97,10>>. False: too long to be compared with. */
static bool put_string(struct guard_text *out, const char *at, size_t bytes)
{
	static const char escapes[] = "n\nt\tr\re\033s b\bf\fv\v0";
	const char *end = at + bytes - (bytes > 1 && at[bytes - 1] == '"');
	size_t count = 0;
	put(out, "<<", 2);
	for (at++; at < end; at++, count++) {
		unsigned char c = (unsigned char)*at;
		char number[8];
		if (c == '\\' && at + 1 < end) {
			c = (unsigned char)*++at;
			for (size_t i = 0; i + 1 < sizeof escapes; i += 2)
				if (escapes[i] == *at) {
					c = (unsigned char)escapes[i + 1];
					break;
				}
		}
		put(out, number, (size_t)snprintf(number, sizeof number, "%s%u", count ? "," : "", c));
	}
	put(out, ">>", 2);
	return count < STRING_BYTES;
}

/* One name. */
static bool put_any(const struct tw_layout *layout, const struct tw_guard *of, const char *name, size_t bytes,
		    char text[128], char reason[512])
{
	if (of->is_of_end && is_of_end_name(name, bytes))
		return put_end(layout, of, name, bytes, text, 128, reason);
	return !(of->is_of_end && is_in_vector(layout, name, bytes, reason)) &&
	       put_name(layout, of->is_of_end, name, bytes, text, 128, reason);
}

/*
 * @layout NULL: each name stands for any value.
 */
static bool translate(const struct tw_layout *layout, const struct tw_guard *of, char text[TEXT_BYTES],
		      char reason[512])
{
	const char *guard = of->text;
	struct guard_text out = {.text = text};
	bool has_any = !layout || has_strings(layout, guard) || strstr(guard, "string_at("), is_short = true;
	text[0] = 0;
	for (size_t bytes; *guard && is_short; guard += bytes) {
		char one[128];
		bytes = name_bytes(guard);
		if (!begins_name(*guard))
			bytes = other_bytes(guard);
		if (*guard == '"' && has_any) {
			is_short = put_string(&out, guard, bytes);
		} else if (!begins_name(*guard) || guard[bytes] == '(' || is_word(guard, bytes)) {
			put(&out, guard, bytes);
		} else if (!layout) {
			put(&out, "$1", 2);
		} else {
			if (!put_any(layout, of, guard, bytes, one, reason))
				return false;
			put(&out, one, strlen(one));
		}
	}
	if (!is_short)
		snprintf(reason, 512, "a string in it has more than %d bytes", STRING_BYTES - 1);
	else if (out.is_full)
		snprintf(reason, 512, "it is too long");
	return is_short && !out.is_full;
}

/* Can it be decided by what is kept of a call until it ends? */
static bool is_kept(const char *text, unsigned kept_max, char reason[512])
{
	unsigned seen = 0, count = 0;
	for (const char *at = text; (at = strchr(at, '$')); at++) {
		unsigned long number = strtoul(at + 1, NULL, 10);
		count += number >= 1 && number <= 6 && !(seen & 1u << number);
		seen |= number <= 6 ? 1u << number : 0;
	}
	if (count > kept_max)
		snprintf(reason, 512, "a condition on how a call ends uses at most three of its arguments");
	return count <= kept_max;
}

/* Does the translated guard compile, for arguments of this kind? */
static bool compiles(const char *text, enum tw_match_sense sense, char reason[512])
{
	const struct tw_match_options options = {.sense = sense};
	struct tw_match_program *program = NULL;
	struct tw_match_error error = {.text = "there is no memory"};
	if (tw_match_compile_when(text, strlen(text), &options, &program, &error))
		snprintf(reason, 512, "%s", error.text);
	bool is_right = program != NULL;
	tw_match_destroy(program);
	return is_right;
}

/* The same for the words of a native call. */
static bool compiles_for(const struct tw_guard *guard, const char *text, char reason[512])
{
	return compiles(text, guard->is_of_end ? TW_MATCH_SENSE_ANY : TW_MATCH_SENSE_WORDS, reason) &&
	       (!guard->is_of_end || is_kept(text, guard->kept_max, reason));
}

/* ---- all functions ---- */

/* w VALUE NUMBER GUARD: for the function of a line f VALUE LAYOUT, in which a space ends the value. */
static bool append_guard(struct tw_layouts *guards, const char *line, const char *space, uint32_t condition,
			 char *guard)
{
	char number[16];
	size_t bytes = (size_t)snprintf(number, sizeof number, "%" PRIu32 " ", condition);
	/* Outside of strings line ends are only white space. */
	for (char *c = guard; (c = strchr(c, '\n')) != NULL;)
		*c = ' ';
	return tw_layouts_append(guards, "w", 1) &&
	       tw_layouts_append(guards, line + 1, (size_t)(space + 1 - (line + 1))) &&
	       tw_layouts_append(guards, number, bytes) && tw_layouts_append(guards, guard, strlen(guard)) &&
	       tw_layouts_append(guards, "\n", 1);
}

/* The reason is that of the first function without a guard; preferably of one that has all the names. */
size_t tw_when_translate(const struct tw_layouts *layouts, const struct tw_guard *guard, struct tw_layouts *guards,
			 struct tw_when_left *left)
{
	char out[TEXT_BYTES], last[TEXT_BYTES] = "";
	size_t count = 0;
	uint64_t number = 0;
	for (const char *line = layouts->text, *end; line && *line; line = end + 1) {
		struct tw_layout *layout;
		char reason[512];
		end = strchr(line, '\n');
		if (!end)
			break;
		if (*line == 'm' && !tw_layouts_append(guards, line, (size_t)(end + 1 - line)))
			return 0;
		if (*line == 'm' || *line == 'c')
			number = *line == 'c' ? strtoul(line + 2, NULL, 10) : 0;
		const char *space = *line == 'f' && number == guard->number
					    ? memchr(line + 2, ' ', (size_t)(end - line - 2))
					    : NULL;
		if (!space || tw_layout_parse(space + 1, (size_t)(end - space - 1), &layout))
			continue;
		/* Functions with parameters of the same types, in the same registers, have the same guard. */
		bool is_right = translate(layout, guard, out, reason) &&
				(strcmp(out, last) == 0 || compiles_for(guard, out, reason));
		if (is_right) {
			strcpy(last, out);
			count += append_guard(guards, line, space, guard->number, out);
		} else if (left->count++ == 0 ||
			   (strstr(left->reason, no_parameter) && !strstr(reason, no_parameter))) {
			memcpy(left->reason, reason, sizeof reason);
		}
		tw_layout_destroy(layout);
	}
	return count;
}

bool tw_when_has_names(const char *guard)
{
	size_t bytes;
	return next_name(guard, &bytes) != NULL;
}

bool tw_when_names(const char *guard, const char *name)
{
	size_t bytes;
	for (const char *at; (at = next_name(guard, &bytes)); guard = at + bytes)
		if (is_name(name, at, bytes))
			return true;
	return false;
}

bool tw_when_needs_types(const struct tw_guard *guard)
{
	size_t bytes;
	const char *text = guard->text;
	for (const char *at; (at = next_name(text, &bytes)); text = at + bytes) {
		bool is_untyped = is_name("duration", at, bytes) || is_name("exception", at, bytes) ||
				  (is_name("errno", at, bytes) && !guard->is_errno_typed) || error_named(at, bytes);
		if (!guard->is_of_end || !is_untyped)
			return true;
	}
	return false;
}

bool tw_when_check(const char *guard, char reason[512])
{
	char text[TEXT_BYTES];
	return translate(NULL, &(struct tw_guard){.text = guard}, text, reason) &&
	       compiles(text, TW_MATCH_SENSE_ANY, reason);
}

bool tw_when_plain(const struct tw_guard *guard, bool are_words, char text[TW_WHEN_TEXT_BYTES], char reason[512])
{
	const struct tw_layout none = {0};
	return translate(&none, guard, text, reason) &&
	       (are_words ? compiles_for(guard, text, reason) : compiles(text, TW_MATCH_SENSE_TERMS, reason));
}
