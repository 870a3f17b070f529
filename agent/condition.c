/* SPDX-License-Identifier: Apache-2.0 */
/* condition.c - conditions on calls in the form that hits read: of a flight recorder's snapshots, and of calls that are recorded by how they end. */
#include "agent/agent.h"
#include "agent/condition.h"

#include "base/clock.h"
#include "base/limits.h"
#include "pipeline/hit/condition.h"
#include "tracewheel/error.h"
#include "tracewheel/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those made so far, which hits may use at any time: conditions are few, also where many functions have the same one. */
static struct made {
	struct tw_call_condition condition;
	struct made *next;
	char text[];
} * made;

/* The argument registers that a condition names, $1 to $6. */
static void keep_registers(struct tw_call_condition *condition, const char *text)
{
	uint32_t seen = 0;

	for (const char *at = text; (at = strchr(at, '$')); at++) {
		unsigned long number = strtoul(at + 1, NULL, 10);

		if (number < 1 || number > TW_ARGS_MAX || seen & 1u << number)
			continue;
		seen |= 1u << number;
		condition->kept[condition->kept_count++] = (uint8_t)(number - 1);
	}
}

/* ---- clauses ---- */

static bool is_atom(struct tw_term term, const char *name)
{
	size_t bytes;
	const char *own = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;

	return own && strlen(name) == bytes && !memcmp(own, name, bytes);
}

/* Bit N for each $N in a guard. */
static uint32_t words_of(struct tw_term term)
{
	size_t bytes;
	const char *name = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;
	size_t count = tw_term_type(term) == TW_TYPE_TUPLE ? tw_term_tuple_count(term) : 0;
	unsigned long number = name && bytes > 1 && bytes < 4 && *name == '$' ? strtoul(name + 1, NULL, 10) : 0;
	uint32_t words = number && number <= TW_CONDITION_WORDS ? 1u << number : 0;

	for (size_t i = 1; i < count && !is_atom(tw_term_element(term, 0), "const"); i++)
		words |= words_of(tw_term_element(term, i));
	return words;
}

#define BIT(word) (1u << ((word) + 1))
/* Words of calls that have returned. */
#define OF_RETURNS                                                                             \
	(BIT(TW_CONDITION_RESULT) | BIT(TW_CONDITION_ERRNO) | BIT(TW_CONDITION_ERRNO_OF_INT) | \
	 BIT(TW_CONDITION_ERRNO_OF_LONG) | BIT(TW_CONDITION_ERRNO_OF_POINTER))

/* [{['$1', ..., '$N'], [Guard], []} | Rest]; a guard that needs a word of returns is false of other ends. */
static struct tw_term clause_of(struct tw_arena *arena, struct tw_term guard, struct tw_term rest)
{
	struct tw_term head[TW_CONDITION_WORDS], parts[3], clause, guards[2], test[3];
	bool is_of_return = words_of(guard) & OF_RETURNS;
	char name[8];

	for (unsigned i = 0; i < TW_CONDITION_WORDS; i++) {
		snprintf(name, sizeof name, "$%u", i + 1);
		head[i] = tw_term_atom_z(name);
	}
	test[0] = tw_term_atom_z("==");
	test[1] = head[TW_CONDITION_EXCEPTION];
	test[2] = tw_term_integer(arena, 0);
	guards[0] = tw_term_tuple(arena, test, 3);
	guards[is_of_return] = guard;
	parts[0] = tw_term_list(arena, head, TW_CONDITION_WORDS, tw_term_nil());
	parts[1] = tw_term_list(arena, guards, 1 + is_of_return, tw_term_nil());
	parts[2] = tw_term_nil();
	clause = tw_term_tuple(arena, parts, 3);
	return tw_term_list(arena, &clause, 1, rest);
}

/* The sides of `or`, in an order of no matter; those inside of `and` are multiplied out. */
#define SIDES_MAX 64
struct sides {
	struct tw_term guards[SIDES_MAX];
	unsigned count;
};

static bool is_operator(struct tw_term guard, const char *name, const char *other_name)
{
	return tw_term_type(guard) == TW_TYPE_TUPLE && tw_term_tuple_count(guard) == 3 &&
	       (is_atom(tw_term_element(guard, 0), name) || is_atom(tw_term_element(guard, 0), other_name));
}

/* False: there are too many. */
static bool add_sides(struct tw_arena *arena, struct tw_term guard, struct sides *sides)
{
	struct sides left = {.count = 0}, right = {.count = 0};
	struct tw_term both[3];

	if (is_operator(guard, "or", "orelse"))
		return add_sides(arena, tw_term_element(guard, 1), sides) &&
		       add_sides(arena, tw_term_element(guard, 2), sides);
	if (is_operator(guard, "and", "andalso")) {
		if (!add_sides(arena, tw_term_element(guard, 1), &left) ||
		    !add_sides(arena, tw_term_element(guard, 2), &right) ||
		    sides->count + left.count * right.count > SIDES_MAX)
			return false;
		both[0] = tw_term_element(guard, 0);
		for (unsigned i = 0; i < left.count * right.count; i++) {
			both[1] = left.guards[i / right.count];
			both[2] = right.guards[i % right.count];
			sides->guards[sides->count++] = tw_term_tuple(arena, both, 3);
		}
		return true;
	}
	if (sides->count == SIDES_MAX)
		return false;
	sides->guards[sides->count++] = guard;
	return true;
}

/*
 * Each side of an `or` has a clause of its own, which fails alone: of a call that an exception has left, `result < 0 or exception`
 * is true.
 */
static struct tw_term clauses_of(struct tw_arena *arena, struct tw_term guard)
{
	struct tw_term spec = tw_term_nil();
	struct sides sides = {.count = 0};

	if (!add_sides(arena, guard, &sides))
		return clause_of(arena, guard, spec);
	while (sides.count)
		spec = clause_of(arena, sides.guards[--sides.count], spec);
	return spec;
}

static int compile(const char *text, struct tw_match_program **out)
{
	struct tw_arena arena;
	struct tw_term guard, spec;
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	error = tw_match_guard_parse(&arena, text, strlen(text), &guard, NULL);
	if (!error) {
		spec = clauses_of(&arena, guard);
		error = tw_term_is_none(spec) ? TW_ENOMEM : tw_match_compile(spec, NULL, out, NULL);
	}
	tw_arena_fini(&arena);
	return error;
}

/* ---- conditions ---- */

static int compile_for(struct made *new, const char *text, bool is_of_end)
{
	struct tw_match_program **program = (struct tw_match_program **)&new->condition.program;

	struct tw_match_program *whole;
	int error;

	if (!*text)
		return 0;
	error = tw_match_compile_when(text, strlen(text), NULL, is_of_end ? &whole : program, NULL);
	if (error || !is_of_end)
		return error;
	if (tw_match_quick_fits(&whole->quick, TW_CONDITION_WORDS))
		new->condition.quick = whole->quick;
	tw_match_destroy(whole);
	return compile(text, program);
}

const struct tw_call_condition *tw_agent_call_condition(const char *text, bool is_of_end)
{
	struct made *new = made;

	while (new && (strcmp(new->text, text) || new->condition.is_of_end != is_of_end))
		new = new->next;
	if (new)
		return &new->condition;
	new = calloc(1, sizeof *new + strlen(text) + 1);
	if (!new)
		return NULL;
	strcpy(new->text, text);
	if (compile_for(new, text, is_of_end)) {
		free(new);
		return NULL;
	}
	new->condition.is_of_end = is_of_end;
	new->condition.since_ticks = tw_clock_ticks();
	new->condition.ns_scale = (UINT64_C(1000000000) << 32) / tw_clock_ticks_per_second();
	if (is_of_end)
		keep_registers(&new->condition, text);
	new->next = made;
	made = new;
	return &new->condition;
}

/* As those above. */
static struct longer {
	struct tw_session_longer longer;
	struct longer *next;
	char shown[];
} * longers;

const struct tw_session_longer *tw_agent_longer(const struct tw_plan_condition *of, bool has_children)
{
	const char *text = of->least_ns ? NULL : of->text, *shown = of->shown ? of->shown : "";
	const struct tw_call_condition *condition = text ? tw_agent_call_condition(text, true) : NULL;
	const struct tw_session_longer wanted = {of->least_ns, condition, NULL, has_children,
						 has_children && !of->least_ns && !text};
	struct longer *new = longers;

	while (new && (new->longer.least_ns != wanted.least_ns || new->longer.condition != condition ||
		       new->longer.has_children != has_children || strcmp(new->shown, shown)))
		new = new->next;
	if (new)
		return &new->longer;
	new = text && !condition ? NULL : calloc(1, sizeof *new + strlen(shown) + 1);
	if (!new)
		return NULL;
	strcpy(new->shown, shown);
	new->longer = wanted;
	new->longer.text = new->shown;
	new->next = longers;
	longers = new;
	return &new->longer;
}

void tw_agent_tell_unended(const struct tw_place *place, const char *what)
{
	char text[400];

	snprintf(text, sizeof text,
		 "%s of %s:%s: it returns twice or never, or reads its return address, so its end is not seen", what,
		 place->function->module->name, place->function->name);
	tw_agent_tell_unarmed(1, text);
}
