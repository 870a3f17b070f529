/* SPDX-License-Identifier: Apache-2.0 */
/* play_answers.c - the form of answers: what differs from run to run, and from system to system, is left out. */
#include "play.h"

#include <string.h>

static bool is_runner(struct tw_term term)
{
	return tw_term_tuple_count(term) >= 3 && lit_is(tw_term_element(term, 0), "runner");
}

static bool is_gc(struct tw_term tag)
{
	return !strncmp(name_of(tag), "gc_", 3);
}

static struct tw_term plain(struct tw_arena *arena, struct tw_term term, void *context)
{
	struct bed *b = context;
	size_t count = tw_term_tuple_count(term);
	struct tw_term first = tw_term_element(term, 0), third = tw_term_element(term, 2);

	if (count == 4 && lit_is(first, "spawn_request"))
		return first;
	if (is_runner(term))
		return tw_term_atom_z("outside");
	if (count == 4 && lit_is(first, "trace") && is_gc(third))
		return lit(b, "{trace,%t,%t,%t}", tw_term_element(term, 1), third,
			   sorted(b, elements(b, 1, tw_term_element(term, 3))));
	if (count == 3 && (lit_is(first, "pl") || lit_is(first, "pm")) && tw_term_type(third) == TW_TYPE_CONS)
		return lit(b, "{%t,%t,[%t]}", first, tw_term_element(term, 1), tw_term_head(third));
	if (count == 4 && lit_is(first, "pl") && tw_term_type(third) == TW_TYPE_INTEGER)
		return lit(b, "{pl,%t,%t}", tw_term_element(term, 1), third);
	(void)arena;
	return (struct tw_term){0};
}

struct tw_term made_plain(struct bed *b, struct tw_term term)
{
	return lit_map(&b->arena, term, plain, b);
}

static bool is_run(struct tw_term event)
{
	struct tw_term tag = tw_term_element(event, 2), message = tw_term_element(event, 3),
		       first = tw_term_element(message, 0);

	return tw_term_tuple_count(message) == 3 && (lit_is(tag, "receive") || lit_is(tag, "send")) &&
	       (lit_is(first, "run") || lit_is(first, "ran"));
}

struct tw_term events_of(struct bed *b, struct sess *s)
{
	struct tw_term own[512], rest;
	size_t count = 0;

	for (rest = ev_now(b, s); tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest)) {
		struct tw_term event = tw_term_head(rest);
		size_t at = count;

		if (is_run(event) || count == 512)
			continue;
		for (; at > 0 && tw_term_compare(tw_term_element(own[at - 1], 1), tw_term_element(event, 1)) > 0; at--)
			own[at] = own[at - 1];
		own[at] = made_plain(b, event);
		count++;
	}
	return list_of(b, own, count);
}

static struct tw_term rows_by_process(struct bed *b, struct tw_term rows)
{
	struct tw_term out[64];
	size_t count = 0;

	for (; tw_term_type(rows) == TW_TYPE_CONS && count < 64; rows = tw_term_tail(rows)) {
		struct tw_term row = tw_term_head(rows);

		if (tw_term_tuple_count(row) != 4 || tw_term_type(tw_term_element(row, 2)) != TW_TYPE_INTEGER ||
		    tw_term_type(tw_term_element(row, 3)) != TW_TYPE_INTEGER)
			wrong("no row of times", row);
		out[count++] = lit(b, "{%t,%t}", tw_term_element(row, 0), tw_term_element(row, 1));
	}
	return sorted(b, list_of(b, out, count));
}

struct tw_term info_of(struct bed *b, struct sess *s, struct tw_term what, const char *item)
{
	struct tw_term answer = info(b, s, what, item), value = tw_term_element(answer, 1);

	if (tw_term_tuple_count(answer) != 2)
		return made_plain(b, answer);
	if (!strcmp(item, "flags") && tw_term_type(value) == TW_TYPE_CONS)
		value = sorted(b, value);
	if (!strcmp(item, "call_time") && tw_term_type(value) == TW_TYPE_CONS)
		value = rows_by_process(b, value);
	return lit(b, "{%a,%t}", item, made_plain(b, value));
}

struct tw_term all_info(struct bed *b, struct sess *s)
{
	static const char *const items[] = {"traced", "match_spec", "meta", "meta_match_spec", "call_count"};
	static const char *const names[] = {"a", "b", "c"};
	struct tw_term rows[3], row[5];

	for (unsigned f = 0; f < 3; f++) {
		for (unsigned i = 0; i < 5; i++)
			row[i] = info_of(b, s, lit(b, "{pl,%a,2}", names[f]), items[i]);
		rows[f] = list_of(b, row, 5);
	}
	return list_of(b, rows, 3);
}
