/* SPDX-License-Identifier: Apache-2.0 */
/* condition.c - the conditions of -t, --when and --match. */
#include "tools/record/condition.h"
#include "base/grow.h"
#include "tools/record/arguments.h"
#include "tools/record/when.h"
#include "tools/tool.h"

#include "tracewheel/match.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_atom(struct tw_term term, const char *name)
{
	size_t bytes;
	const char *own = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;
	return own && strlen(name) == bytes && memcmp(own, name, bytes) == 0;
}

/* Is any value of a call's end named in it? */
static bool is_of_end(struct tw_term term)
{
	static const char *const words[] = {"duration", "result", "errno", "exception"};
	size_t count = tw_term_type(term) == TW_TYPE_TUPLE ? tw_term_tuple_count(term) : 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_atom(term, words[i]))
			return true;
	for (size_t i = 1; i < count && !is_atom(tw_term_element(term, 0), "const"); i++)
		if (is_of_end(tw_term_element(term, i)))
			return true;
	return false;
}

/* duration > N, duration >= N, and the same from right to left. */
static bool is_length(struct tw_term guard, uint64_t *least_ns)
{
	if (tw_term_type(guard) != TW_TYPE_TUPLE || tw_term_tuple_count(guard) != 3)
		return false;
	struct tw_term a = tw_term_element(guard, 1),
		       b = tw_term_element(guard, 2), operator= tw_term_element(guard, 0);
	bool is_first = is_atom(a, "duration");
	bool is_above = is_atom(operator, is_first ? ">" : "<"), is_from = is_atom(operator, is_first ? ">=" : "=<");
	if ((!is_first && !is_atom(b, "duration")) || (!is_above && !is_from) ||
	    tw_term_get_uint64(is_first ? b : a, least_ns) || *least_ns > INT64_MAX)
		return false;
	*least_ns += is_above;
	return *least_ns > 0;
}

/* The most that readers are shown of a condition. */
#define SHOWN_BYTES 400

enum kind {
	OF_BEGIN,  /* by arguments, as a call begins; also if it is malformed */
	OF_LENGTH, /* by its duration alone, as --longer */
	OF_END	   /* by how it ends */
};

/* @least_ns: of OF_LENGTH: the shortest duration that fulfils it, 1 or more. */
static enum kind kind_of(const char *text, uint64_t *least_ns)
{
	struct tw_arena arena;
	struct tw_term guard;
	enum kind kind = OF_BEGIN;
	tw_arena_init(&arena, SIZE_MAX);
	if (tw_match_guard_parse(&arena, text, strlen(text), &guard, NULL) == 0 && is_of_end(guard))
		kind = is_length(guard, least_ns) ? OF_LENGTH : OF_END;
	tw_arena_fini(&arena);
	return kind;
}

bool tw_condition_is_of_end(const char *text)
{
	uint64_t least_ns;
	return kind_of(text, &least_ns) != OF_BEGIN;
}

/* ---- options ---- */

/* The number of a condition, from 1; 0: there is no memory. */
static uint32_t number_of(struct tw_conditions *conditions, const char *text)
{
	for (uint32_t i = 0; i < conditions->count; i++)
		if (strcmp(conditions->texts[i], text) == 0)
			return i + 1;
	if (!tw_grow_one(conditions->texts, conditions->count))
		return 0;
	conditions->texts[conditions->count++] = text;
	return conditions->count;
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The arguments of probes have no other names than arg1, arg2 ..., which are $1, $2 ... */
static void number_arguments(char *text)
{
	char *to = text;
	bool is_inside = false;
	for (const char *from = text; *from;) {
		is_inside ^= *from == '"';
		if (!is_inside && strncmp(from, "arg", 3) == 0 && isdigit((unsigned char)from[3]) &&
		    (from == text || !is_of_name(from[-1]))) {
			*to++ = '$';
			from += 3;
			continue;
		}
		*to++ = *from++;
	}
	*to = 0;
}

/* False: a condition on a probe names something else, which has been reported. */
static bool take_probe(const struct tw_command *command, const char *pattern, char *condition)
{
	if (!condition)
		return true;
	number_arguments(condition);
	if (!tw_when_has_names(condition))
		return true;
	return tw_refuse(command, "-t '%s': the arguments of probes are called arg1, arg2 ..., or $1, $2 ...", pattern);
}

static bool add_number(struct tw_config *config, uint32_t number)
{
	char text[16];
	snprintf(text, sizeof text, "%u", number);
	return !number || tw_config_add(config, "if", text);
}

bool tw_conditions_take(struct tw_conditions *conditions, const struct tw_command *command, const char *pattern,
			struct tw_config *config)
{
	if (!tw_patterns_take(&conditions->asked, command, false, pattern))
		return false;
	size_t last = conditions->asked.wanted_count - 1;
	const char *text = conditions->asked.conditions[last];
	if (tw_pattern_is_of_probes(conditions->asked.wanted[last]) &&
	    !take_probe(command, pattern, conditions->asked.conditions[last]))
		return false;
	uint32_t number = text ? number_of(conditions, text) : 0;
	if (!tw_config_add(config, "pattern", tw_pattern_text(conditions->asked.wanted[last])))
		return false;
	return !text || (number && add_number(config, number));
}

bool tw_conditions_take_linkage(const struct tw_conditions *conditions, const char *linkage, struct tw_config *config)
{
	size_t first = conditions->asked.has_conditions ? tw_patterns_first_linkage(&conditions->asked, linkage)
							: conditions->asked.wanted_count;
	const char *text = first < conditions->asked.wanted_count ? conditions->asked.conditions[first] : NULL;
	for (uint32_t i = 0; text && i < conditions->count; i++)
		if (strcmp(conditions->texts[i], text) == 0)
			return add_number(config, i + 1);
	return true;
}

static const char one_of_them[] = "--match and --when: one of them, once.";

bool tw_conditions_set_when(struct tw_conditions *conditions, const struct tw_command *command, const char *text)
{
	if (conditions->when || conditions->match)
		return tw_refuse(command, one_of_them);
	conditions->when = text;
	return true;
}

bool tw_conditions_set_match(struct tw_conditions *conditions, const struct tw_command *command, const char *text)
{
	struct tw_match_program *program = NULL;
	struct tw_match_error error = {.text = "there is no memory"};
	bool is_first = !conditions->when && !conditions->match;
	bool is_right = tw_match_compile_text(text, strlen(text), NULL, &program, &error) == 0;
	tw_match_destroy(program);
	if (!is_first)
		tw_usage(command, one_of_them);
	else if (!is_right)
		tw_usage(command, "--match '%s' is refused: %s.", text, error.text);
	conditions->match = text;
	return is_first && is_right;
}

/* ---- kinds ---- */

/* Have all patterns this condition, by themselves or by --when? */
static bool is_of_all(const struct tw_conditions *conditions, const char *text)
{
	if (conditions->count > 1 || conditions->match || (conditions->when && conditions->count))
		return false;
	for (size_t i = 0; i < conditions->asked.wanted_count && text != conditions->when; i++)
		if (!conditions->asked.conditions[i])
			return false;
	return true;
}

/* If the end decides, conditions have nothing but the registers of a call. */
static bool can_be_of_end(const struct tw_conditions *conditions, const struct tw_command *command)
{
	const char *probe = NULL,
		   *vectors = conditions->when && strstr(conditions->when, "vector_") ? conditions->when : NULL;
	for (uint32_t i = 0; i < conditions->count && !vectors; i++)
		vectors = strstr(conditions->texts[i], "vector_") ? conditions->texts[i] : NULL;
	for (size_t i = 0; i < conditions->asked.wanted_count && !probe; i++)
		if (tw_pattern_is_of_probes(conditions->asked.wanted[i]))
			probe = tw_pattern_text(conditions->asked.wanted[i]);
	if (conditions->match)
		tw_usage(
			command,
			"--match goes without conditions on how calls end, and --longer: a specification decides as a call begins.");
	else if (vectors)
		tw_usage(command, "'%s': arguments in vector registers are not kept until the call ends.", vectors);
	else if (probe)
		tw_usage(
			command,
			"-t '%s' goes without conditions on how calls end: a probe has no end, and is recorded as the program passes it.",
			probe);
	return !conditions->match && !vectors && !probe;
}

static void look_at(struct tw_conditions *conditions, const char *text)
{
	uint64_t least_ns = 0;
	enum kind kind = text ? kind_of(text, &least_ns) : OF_BEGIN;
	if (kind == OF_LENGTH && is_of_all(conditions, text))
		conditions->least_ns = least_ns;
	conditions->are_of_end |= kind != OF_BEGIN;
	conditions->name_exceptions |= kind == OF_END && tw_when_names(text, "exception");
}

bool tw_conditions_check(struct tw_conditions *conditions, const struct tw_command *command, uint64_t longer_ns)
{
	bool are_there = conditions->when || conditions->match || conditions->count;
	look_at(conditions, conditions->when);
	for (uint32_t i = 0; i < conditions->count; i++)
		look_at(conditions, conditions->texts[i]);
	conditions->longer_ns = longer_ns;
	if (longer_ns && (!are_there || conditions->least_ns))
		conditions->least_ns = longer_ns > conditions->least_ns ? longer_ns : conditions->least_ns;
	else
		conditions->are_of_end |= longer_ns != 0;
	if (conditions->least_ns)
		conditions->are_of_end = false;
	return !conditions->are_of_end || can_be_of_end(conditions, command);
}

bool tw_conditions_are_there(const struct tw_conditions *conditions)
{
	return !conditions->least_ns && (conditions->when || conditions->match || conditions->count);
}

/* ---- for agents ---- */

/* One line: outside of strings line ends are only white space. */
static bool add_line(struct tw_config *config, const char *key, const char *text)
{
	char *line = strdup(text);
	for (char *c = line; c && (c = strchr(c, '\n')) != NULL;)
		*c = ' ';
	bool is_right = line && tw_config_add(config, key, line);
	free(line);
	return is_right;
}

/* The user's text, for readers of the capture. */
static bool add_shown(const struct tw_conditions_target *target, const char *text, uint32_t number)
{
	char line[SHOWN_BYTES + 16];
	snprintf(line, sizeof line, "%u %.*s", number, SHOWN_BYTES - 1, text);
	return add_line(target->config, "shown", line);
}

/* @number: 0: the one of --when. */
static bool config_one(const struct tw_conditions *conditions, const struct tw_conditions_target *target,
		       const char *text, uint32_t number)
{
	char plain[TW_WHEN_TEXT_BYTES], line[TW_WHEN_TEXT_BYTES + 16], reason[512];
	const struct tw_guard guard = {.text = text,
				       .number = number,
				       .is_of_end = conditions->are_of_end,
				       .kept_max = TW_WHEN_KEPT_MAX,
				       .is_errno_typed = true};
	bool has_names = guard.is_of_end ? tw_when_needs_types(&guard) : tw_when_has_names(text);
	if (guard.is_of_end && !add_shown(target, text, number))
		return false;
	uint64_t least_ns;
	if (conditions->have_children && kind_of(text, &least_ns) == OF_LENGTH) {
		snprintf(line, sizeof line, "%u %" PRIu64, number, least_ns);
		return add_line(target->config, "length", line);
	}
	if (has_names && !tw_arguments_add_guard(target->arguments, &guard))
		return false;
	if (!has_names && !tw_when_plain(&guard, target->are_words || guard.is_of_end, plain, reason))
		return tw_refuse(target->command, "the condition '%s' is refused: %s.", text, reason);
	snprintf(line, sizeof line, "%u %s", number, has_names ? "-" : plain);
	if (number)
		return add_line(target->config, "condition", line);
	return has_names ? tw_config_add(target->config, "guards", "1") : add_line(target->config, "when", plain);
}

/* With --longer each condition has the length as well, and is what the user might have written.  @text: may be NULL.  False: no memory. */
static bool add_length(struct tw_conditions *conditions, const char **text)
{
	if (!conditions->longer_ns || !conditions->are_of_end)
		return true;
	if (!tw_grow_one(conditions->made, conditions->made_count) ||
	    asprintf(&conditions->made[conditions->made_count],
		     *text ? "(%s) and duration >= %lluns" : "%sduration >= %lluns", *text ? *text : "",
		     (unsigned long long)conditions->longer_ns) < 0)
		return tw_complain("no memory.");
	*text = conditions->made[conditions->made_count++];
	return true;
}

bool tw_conditions_config(struct tw_conditions *conditions, const struct tw_conditions_target *target)
{
	const char *when = conditions->when;
	if (conditions->least_ns)
		return true;
	if (!add_length(conditions, &when))
		return false;
	if ((conditions->are_of_end &&
	     (!tw_config_add(target->config, "ends", "1") || !tw_config_add(target->config, "returns", "1"))) ||
	    (conditions->name_exceptions && !tw_config_add(target->config, "exceptions", "1")))
		return false;
	if ((conditions->match && !add_line(target->config, "match", conditions->match)) ||
	    (when && !config_one(conditions, target, when, 0)))
		return false;
	for (uint32_t i = 0; i < conditions->count; i++) {
		const char *text = conditions->texts[i];
		if (!add_length(conditions, &text) || !config_one(conditions, target, text, i + 1))
			return false;
	}
	return true;
}

void tw_conditions_free(struct tw_conditions *conditions)
{
	tw_patterns_free(&conditions->asked);
	free(conditions->texts);
	for (size_t i = 0; i < conditions->made_count; i++)
		free(conditions->made[i]);
	free(conditions->made);
	*conditions = (struct tw_conditions){0};
}
