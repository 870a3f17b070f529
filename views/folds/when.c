/* SPDX-License-Identifier: Apache-2.0 */
/* when.c - compiles conditions into comparisons, and decides on calls. */
#include "views/folds/when.h"
#include "views/folds/marks.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_NUMBERS 200

/* A condition that is being compiled. */
struct compiling {
	struct tw_when *when;
	struct tw_when_comparison *comparison;
	char *sentence;
	bool has_failed;
};

static const struct tw_term none;

static struct tw_term fail(struct compiling *c, const char *format, const char *what)
{
	if (!c->has_failed)
		snprintf(c->sentence, TW_WHEN_SENTENCE_BYTES, format, what);
	c->has_failed = true;
	return none;
}

/* NULL: it is no atom. */
static const char *atom_of(struct tw_term term, char text[256])
{
	size_t bytes;
	const char *name = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;
	if (!name || bytes > 255)
		return NULL;
	memcpy(text, name, bytes);
	text[bytes] = 0;
	return text;
}

/* The name of an operator or a function. */
static const char *operator_of(struct tw_term term, char text[256])
{
	return tw_term_type(term) == TW_TYPE_TUPLE && tw_term_tuple_count(term)
		       ? atom_of(tw_term_element(term, 0), text)
		       : NULL;
}

static bool is_any_of(const char *name, const char *a, const char *b)
{
	return name && (strcmp(name, a) == 0 || strcmp(name, b) == 0);
}

/* ---- operands ---- */

static const struct {
	const char *name;
	enum tw_when_operand_kind kind;
} words[] = {{"duration", TW_WHEN_DURATION},   {"result", TW_WHEN_RESULT}, {"errno", TW_WHEN_ERRNO},
	     {"exception", TW_WHEN_EXCEPTION}, {"thread", TW_WHEN_THREAD}, {"thread_name", TW_WHEN_THREAD_NAME}};

/* ENOENT: 0 if it is no error. */
static int error_named(const char *name)
{
	for (int error = 1; *name == 'E' && error < ERROR_NUMBERS; error++)
		if (strerrorname_np(error) && strcmp(strerrorname_np(error), name) == 0)
			return error;
	return 0;
}

static uint32_t add_operand(struct compiling *c, const struct tw_when_operand *wanted)
{
	struct tw_when *when = c->when;
	uint32_t i = 0;
	while (i < when->operand_count &&
	       (when->operands[i].kind != wanted->kind || when->operands[i].number != wanted->number ||
		(wanted->name && strcmp(when->operands[i].name, wanted->name) != 0)))
		i++;
	if (i == TW_WHEN_OPERANDS_MAX)
		fail(c, "it has more than %s different names", "32");
	else if (i == when->operand_count)
		when->operands[when->operand_count++] = *wanted;
	return i;
}

/* The variable of a comparison that stands for the operand. */
static struct tw_term variable_of(struct compiling *c, const struct tw_when_operand *wanted)
{
	uint32_t operand = add_operand(c, wanted), at = 0;
	char variable[12];
	if (c->has_failed)
		return none;
	while (at < c->comparison->count && c->comparison->operands[at] != operand)
		at++;
	if (at == c->comparison->count)
		c->comparison->operands[c->comparison->count++] = (uint8_t)operand;
	c->comparison->is_late |= wanted->kind >= TW_WHEN_RESULT;
	snprintf(variable, sizeof variable, "$%u", at + 1);
	return tw_term_atom_z(variable);
}

static struct tw_term name_of(struct compiling *c, const char *name)
{
	struct tw_when_operand operand = {.kind = TW_WHEN_NAME};
	int error = error_named(name);
	if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
		return tw_term_integer(&c->when->arena, *name == 't');
	if (error)
		return tw_term_integer(&c->when->arena, error);
	if (*name == '$') {
		operand.kind = TW_WHEN_ARGUMENT;
		operand.number = (uint32_t)strtoul(name + 1, NULL, 10);
		return operand.number ? variable_of(c, &operand)
				      : fail(c, "%s is all arguments: name one, $1 or by its name", name);
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		operand.kind = words[i].kind;
		if (strcmp(words[i].name, name) == 0)
			return variable_of(c, &operand);
	}
	operand.kind = TW_WHEN_NAME;
	char *kept = tw_arena_alloc(&c->when->arena, strlen(name) + 1);
	if (!kept)
		return fail(c, "%s", "there is no memory");
	operand.name = strcpy(kept, name);
	c->has_failed |= !tw_when_has_name(c->when, name, c->sentence);
	return c->has_failed ? none : variable_of(c, &operand);
}

/* ---- comparisons ---- */

/* A part of a comparison, with variables in place of names. */
static struct tw_term rewrite(struct compiling *c, struct tw_term term)
{
	char text[256];
	const char *name = atom_of(term, text);
	size_t count = tw_term_type(term) == TW_TYPE_TUPLE ? tw_term_tuple_count(term) : 0;
	struct tw_term elements[8];
	if (name)
		return name_of(c, name);
	if (!count || is_any_of(operator_of(term, text), "const", "const"))
		return term;
	if (count > sizeof elements / sizeof *elements)
		return fail(c, "%s", "a function or tuple in it has more than 7 elements");
	name = operator_of(term, text);
	if (name && (strcmp(name, "string_at") == 0 || strncmp(name, "vector_", 7) == 0))
		return fail(c, "%s reads the running program: in a capture arguments of `record --args` are compared",
			    name);
	elements[0] = name ? tw_term_element(term, 0) : rewrite(c, tw_term_element(term, 0));
	for (size_t i = 1; i < count && !c->has_failed; i++)
		elements[i] = rewrite(c, tw_term_element(term, i));
	return c->has_failed ? none : tw_term_tuple(&c->when->arena, elements, count);
}

/* [{['$1', ..., '$N'], [Guard], []}] */
static struct tw_term spec_of(struct compiling *c, struct tw_term guard)
{
	struct tw_arena *arena = &c->when->arena;
	struct tw_term clause[3] = {tw_term_nil(), tw_term_cons(arena, guard, tw_term_nil()), tw_term_nil()};
	char variable[12];
	for (uint32_t i = c->comparison->count; i > 0; i--) {
		snprintf(variable, sizeof variable, "$%u", i);
		clause[0] = tw_term_cons(arena, tw_term_atom_z(variable), clause[0]);
	}
	return tw_term_cons(arena, tw_term_tuple(arena, clause, 3), tw_term_nil());
}

/* A node; the first is never one. */
static uint32_t add_node(struct compiling *c, enum tw_when_node_kind kind, uint32_t a, uint32_t b)
{
	struct tw_when *when = c->when;
	if (!tw_grow(when->nodes, when->node_count, when->node_capacity)) {
		fail(c, "%s", "there is no memory");
		return 0;
	}
	when->nodes[when->node_count] = (struct tw_when_node){kind, a, b};
	return when->node_count++;
}

static uint32_t add_comparison(struct compiling *c, struct tw_term term, bool is_negated)
{
	struct tw_when *when = c->when;
	struct tw_match_error error = {.text = "there is no memory"};
	char text[256];
	if (when->comparison_count == TW_WHEN_COMPARISONS_MAX) {
		fail(c, "%s", "conditions have more than 64 comparisons");
		return 0;
	}
	c->comparison = &when->comparisons[when->comparison_count];
	*c->comparison = (struct tw_when_comparison){0};
	struct tw_term guard = rewrite(c, term), pair[3] = {tw_term_atom_z("not"), guard, none};
	if (c->has_failed)
		return 0;
	if (!operator_of(term, text)) {
		/* A value alone: true, or a number other than 0, as in C. */
		pair[0] = tw_term_atom_z(is_negated ? "==" : "/=");
		pair[2] = tw_term_integer(&when->arena, 0);
		guard = tw_term_tuple(&when->arena, pair, 3);
	} else if (is_negated) {
		guard = tw_term_tuple(&when->arena, pair, 2);
	}
	if (tw_match_compile(spec_of(c, guard), NULL, &c->comparison->program, &error)) {
		fail(c, "%s", error.text);
		return 0;
	}
	when->is_late |= c->comparison->is_late;
	return add_node(c, TW_WHEN_COMPARISON, when->comparison_count++, 0);
}

/* Negations move to the comparisons: one that raises is as false as in Erlang. */
static uint32_t build(struct compiling *c, struct tw_term term, bool is_negated)
{
	char text[256];
	const char *name = operator_of(term, text), *atom;
	size_t count = name ? tw_term_tuple_count(term) : 0;
	if (c->has_failed)
		return 0;
	if (count == 2 && strcmp(name, "not") == 0)
		return build(c, tw_term_element(term, 1), !is_negated);
	bool is_and = count == 3 && is_any_of(name, "and", "andalso"),
	     is_or = count == 3 && is_any_of(name, "or", "orelse");
	if (is_and || is_or || (count == 3 && strcmp(name, "xor") == 0)) {
		bool is_xor = !is_and && !is_or;
		uint32_t a = build(c, tw_term_element(term, 1), is_negated);
		uint32_t b = build(c, tw_term_element(term, 2), is_negated && !is_xor);
		return add_node(c, is_xor ? TW_WHEN_XOR : is_and != is_negated ? TW_WHEN_AND : TW_WHEN_OR, a, b);
	}
	atom = atom_of(term, text);
	if (is_any_of(atom, "true", "false"))
		return add_node(c, TW_WHEN_CONSTANT, (*atom == 't') != is_negated, 0);
	return add_comparison(c, term, is_negated);
}

bool tw_when_add(struct tw_when *when, const char *text, char sentence[TW_WHEN_SENTENCE_BYTES])
{
	struct compiling c = {.when = when, .sentence = sentence};
	struct tw_match_error error = {.text = "there is no memory"};
	struct tw_term guard;
	if (when->condition_count == TW_WHEN_CONDITIONS_MAX) {
		fail(&c, "%s", "there are more than 63 conditions");
	} else if (tw_match_guard_parse(&when->arena, text, strlen(text), &guard, &error)) {
		snprintf(sentence, TW_WHEN_SENTENCE_BYTES, "%s%s", error.text,
			 error.line ? "" : ": there is no memory");
		if (error.line)
			snprintf(sentence, TW_WHEN_SENTENCE_BYTES, "column %u: %s", error.column, error.text);
		c.has_failed = true;
	} else {
		when->conditions[when->condition_count] = build(&c, guard, false);
		when->texts[when->condition_count] = text;
		when->condition_count += !c.has_failed;
	}
	return !c.has_failed;
}

void tw_when_init(struct tw_when *when, struct tw_capture *capture)
{
	when->capture = capture;
	tw_arena_init(&when->arena, SIZE_MAX);
	tw_arena_init(&when->values, SIZE_MAX);
}

void tw_when_free(struct tw_when *when)
{
	for (uint32_t i = 0; i < when->comparison_count; i++)
		tw_match_destroy(when->comparisons[i].program);
	for (uint32_t i = 0; i < when->image_count; i++) {
		free(when->places[i].conditions);
		free(when->places[i].is_asked);
	}
	free(when->places);
	free(when->nodes);
	if (when->capture) {
		tw_arena_fini(&when->arena);
		tw_arena_fini(&when->values);
	}
	*when = (struct tw_when){0};
}

/* ---- deciding ---- */

static bool test(struct tw_when *when, const struct tw_when_comparison *comparison, const struct tw_term *values)
{
	int64_t integers[TW_WHEN_OPERANDS_MAX];
	struct tw_match_answer answer;
	uint32_t i = 0;
	while (i < comparison->count && tw_term_get_int64(values[i], &integers[i]) == 0)
		i++;
	if (i == comparison->count)
		return tw_match_test_words(comparison->program, integers, comparison->count);
	struct tw_term target = tw_term_list(&when->values, values, comparison->count, tw_term_nil());
	if (tw_term_is_none(target) || tw_match_test(comparison->program, target, &when->values, &answer)) {
		when->has_no_memory = true;
		return false;
	}
	char text[256];
	return is_any_of(atom_of(answer.result, text), "true", "true");
}

/* The value of an operand: held since the call began, or of an event. */
static struct tw_term value_of(struct tw_when *when, uint32_t operand, const struct tw_when_call *call,
			       const struct tw_capture_event *event, const struct tw_when_end *end)
{
	if (!event && call->held >> operand & 1)
		return tw_term_integer(&when->values, call->words[operand]);
	return tw_when_value(when, &when->operands[operand], event, end);
}

/* Decides the comparisons that were not decided; of a call that begins, those that need no end. */
static void compare(struct tw_when *when, struct tw_when_call *call, const struct tw_capture_event *event,
		    const struct tw_when_end *end)
{
	for (uint32_t i = 0; i < when->comparison_count; i++) {
		const struct tw_when_comparison *comparison = &when->comparisons[i];
		struct tw_term values[TW_WHEN_OPERANDS_MAX];
		uint32_t k = 0;
		if (call->known >> i & 1 || comparison->is_late != (end != NULL))
			continue;
		for (; k < comparison->count; k++) {
			values[k] = value_of(when, comparison->operands[k], call, event, end);
			if (tw_term_is_none(values[k]))
				break;
		}
		if (k < comparison->count)
			continue;
		call->known |= UINT64_C(1) << i;
		call->truth |= (uint64_t)test(when, comparison, values) << i;
	}
}

static enum tw_when_truth truth_of(const struct tw_when *when, const struct tw_when_call *call, uint32_t number)
{
	const struct tw_when_node *node = &when->nodes[number];
	enum tw_when_truth a, b, least;
	if (node->kind == TW_WHEN_CONSTANT)
		return node->a ? TW_WHEN_TRUE : TW_WHEN_FALSE;
	if (node->kind == TW_WHEN_COMPARISON)
		return !(call->known >> node->a & 1) ? TW_WHEN_UNKNOWN
		       : call->truth >> node->a & 1  ? TW_WHEN_TRUE
						     : TW_WHEN_FALSE;
	a = truth_of(when, call, node->a);
	b = truth_of(when, call, node->b);
	if (node->kind == TW_WHEN_XOR)
		return a == TW_WHEN_UNKNOWN || b == TW_WHEN_UNKNOWN ? TW_WHEN_UNKNOWN
		       : a != b					    ? TW_WHEN_TRUE
								    : TW_WHEN_FALSE;
	/* One of these decides alone. */
	least = node->kind == TW_WHEN_AND ? TW_WHEN_FALSE : TW_WHEN_TRUE;
	if (a == least || b == least)
		return least;
	return a == TW_WHEN_UNKNOWN || b == TW_WHEN_UNKNOWN ? TW_WHEN_UNKNOWN : a;
}

/* Is any of its place's conditions true? */
static enum tw_when_truth decide(const struct tw_when *when, const struct tw_when_call *call)
{
	enum tw_when_truth all = TW_WHEN_FALSE;
	if (call->conditions & TW_WHEN_ALWAYS || !when->condition_count)
		return TW_WHEN_TRUE;
	for (uint32_t i = 0; i < when->condition_count && all != TW_WHEN_TRUE; i++) {
		enum tw_when_truth one =
			call->conditions >> i & 1 ? truth_of(when, call, when->conditions[i]) : TW_WHEN_FALSE;
		all = one == TW_WHEN_FALSE ? all : one;
	}
	return all;
}

/* False: no memory. */
static bool make_places(struct tw_when *when, uint32_t image)
{
	if (!tw_grow_to(when->places, when->image_count, image))
		return false;
	if (when->places[image].conditions)
		return true;
	uint32_t count = tw_marks_rows(when->capture, image);
	when->places[image].count = count;
	when->places[image].conditions = calloc(count, sizeof(uint64_t));
	when->places[image].is_asked = calloc(count, sizeof(bool));
	return when->places[image].conditions && when->places[image].is_asked;
}

static uint64_t conditions_of(struct tw_when *when, const struct tw_capture_event *event)
{
	if (!when->of_place)
		return 1;
	if (event->kind != TW_CAPTURE_CALL)
		return when->of_place(when->context, NULL);
	if (event->image >= when->image_count || !when->places[event->image].is_asked)
		when->has_no_memory |= !make_places(when, event->image);
	if (when->has_no_memory || event->id >= when->places[event->image].count)
		return 0;
	struct tw_when_places *places = &when->places[event->image];
	if (!places->is_asked[event->id]) {
		const struct tw_capture_place *place = tw_capture_place(when->capture, event->image, event->id);
		places->conditions[event->id] = place ? when->of_place(when->context, place) : 0;
		places->is_asked[event->id] = true;
	}
	return places->conditions[event->id];
}

/* Keeps what comparisons will need that can be decided when the call ends. */
static void hold(struct tw_when *when, struct tw_when_call *call, const struct tw_capture_event *event)
{
	for (uint32_t i = 0; i < when->operand_count; i++) {
		struct tw_term value = when->operands[i].kind < TW_WHEN_RESULT
					       ? tw_when_value(when, &when->operands[i], event, NULL)
					       : none;
		if (tw_term_get_int64(value, &call->words[i]) == 0)
			call->held |= UINT64_C(1) << i;
	}
}

enum tw_when_truth tw_when_begin(struct tw_when *when, const struct tw_capture_event *event, struct tw_when_call *call)
{
	call->known = call->truth = call->held = 0;
	call->conditions = conditions_of(when, event);
	tw_arena_reset(&when->values);
	if (!(call->conditions & TW_WHEN_ALWAYS))
		compare(when, call, event, NULL);
	enum tw_when_truth truth = decide(when, call);
	if (truth == TW_WHEN_UNKNOWN && when->is_late)
		hold(when, call, event);
	return truth;
}

enum tw_when_truth tw_when_end(struct tw_when *when, const struct tw_when_call *call, const struct tw_when_end *end)
{
	struct tw_when_call now = *call;
	tw_arena_reset(&when->values);
	if (!(call->conditions & TW_WHEN_ALWAYS))
		compare(when, &now, NULL, end);
	return decide(when, &now);
}
