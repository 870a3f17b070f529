/* SPDX-License-Identifier: Apache-2.0 */
/* parse_identifier.c - pids, ports, references and fun M:F/A. */
#include "term/parse.h"

/* Reads two to six numbers separated by full stops up to '>'; the first is the channel. */
static bool read_numbers(struct tw_reader *r, uint64_t numbers[6], size_t *count, uint64_t max)
{
	static const char message[] = "expected numbers with a '.' between them, and '>'";
	size_t n = 0;

	do {
		if (n == 6) {
			tw_reader_fail(r, r->at, message);
			return false;
		}
		if (!tw_read_uint(r, n ? max : UINT32_MAX, &numbers[n], message))
			return false;
		n++;
	} while (tw_reader_take(r, "."));
	if (n < 2 || !tw_reader_take(r, ">")) {
		tw_reader_fail(r, r->at, message);
		return false;
	}
	*count = n;
	return true;
}

struct tw_term tw_read_pid(struct tw_reader *r)
{
	const char *start = r->at;
	struct tw_identifier parts = {.word_count = 2};
	uint64_t numbers[6];
	size_t count;

	r->at++;
	if (!read_numbers(r, numbers, &count, UINT32_MAX))
		return tw_word(0);
	if (count != 3)
		return tw_reader_fail(r, start, "a pid has three numbers: <0.1.0>");
	parts.channel = (uint32_t)numbers[0];
	parts.words[0] = (uint32_t)numbers[1];
	parts.words[1] = (uint32_t)numbers[2];
	return tw_reader_built(r, tw_term_identifier(r->arena, TW_TYPE_PID, &parts));
}

static struct tw_term read_port(struct tw_reader *r, const char *start)
{
	struct tw_identifier parts = {.word_count = 2};
	uint64_t numbers[6];
	size_t count;

	if (!read_numbers(r, numbers, &count, UINT64_MAX))
		return tw_word(0);
	if (count != 2)
		return tw_reader_fail(r, start, "a port has two numbers: #Port<0.1>");
	parts.channel = (uint32_t)numbers[0];
	parts.words[0] = (uint32_t)numbers[1];
	parts.words[1] = (uint32_t)(numbers[1] >> 32);
	return tw_reader_built(r, tw_term_identifier(r->arena, TW_TYPE_PORT, &parts));
}

static struct tw_term read_reference(struct tw_reader *r)
{
	struct tw_identifier parts = {0};
	uint64_t numbers[6];
	size_t count, i;

	if (!read_numbers(r, numbers, &count, UINT32_MAX))
		return tw_word(0);
	parts.channel = (uint32_t)numbers[0];
	parts.word_count = (uint32_t)count - 1;
	for (i = 1; i < count; i++)
		parts.words[count - 1 - i] = (uint32_t)numbers[i];
	return tw_reader_built(r, tw_term_identifier(r->arena, TW_TYPE_REFERENCE, &parts));
}

struct tw_term tw_read_identifier(struct tw_reader *r)
{
	const char *start = r->at;

	if (tw_reader_take(r, "Port<"))
		return read_port(r, start);
	if (tw_reader_take(r, "Ref<"))
		return read_reference(r);
	if (tw_reader_take(r, "Fun<"))
		return tw_reader_fail(r, start, "an opaque fun cannot be read; write fun Module:Function/Arity");
	return tw_reader_fail(r, start, "expected a map, #{, or #Port<, #Ref< behind '#'");
}

static bool read_name(struct tw_reader *r, struct tw_term *atom)
{
	tw_reader_skip(r);
	if (tw_reader_is_at(r, '\''))
		*atom = tw_read_quoted_atom(r);
	else if (r->at < r->end && tw_char_is(*r->at, TW_CHAR_LOWER | TW_CHAR_WIDE))
		*atom = tw_read_plain_atom(r);
	else
		*atom = tw_reader_fail(r, r->at, "expected an atom in fun Module:Function/Arity");
	return !tw_term_is_none(*atom);
}

static bool read_sign(struct tw_reader *r, const char *sign)
{
	tw_reader_skip(r);
	if (tw_reader_take(r, sign))
		return true;
	tw_reader_fail(r, r->at, "expected fun Module:Function/Arity");
	return false;
}

struct tw_term tw_read_fun(struct tw_reader *r)
{
	struct tw_term module, function;
	uint64_t arity;

	if (!read_name(r, &module) || !read_sign(r, ":") || !read_name(r, &function) || !read_sign(r, "/"))
		return tw_word(0);
	tw_reader_skip(r);
	if (!tw_read_uint(r, 255, &arity, "expected an arity of 0 to 255"))
		return tw_word(0);
	return tw_reader_built(r, tw_term_export(r->arena, module, function, (uint32_t)arity));
}
