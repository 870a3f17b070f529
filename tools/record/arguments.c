/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c - handles --args and --when before the program starts. */
#include "tools/record/arguments.h"
#include "base/grow.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a dlopen waits for the layouts of arguments: libraries with much debug information take half of it. */
#define ASK_MS "2000"

#define STRING_BYTES 64

static bool has_no_memory(void)
{
	return tw_complain("there is no memory.");
}

/* Those of the command line are read when the installed ones are, whose tables they may use. */
static bool open_prototypes(struct tw_arguments *arguments)
{
	if (!arguments->prototypes)
		arguments->prototypes = tw_prototypes_open();
	return arguments->prototypes || has_no_memory();
}

static bool give_prototype(struct tw_arguments *arguments, const struct tw_command *command, const char *text)
{
	char reason[TW_PROTOTYPE_REASON_BYTES];
	if (!open_prototypes(arguments))
		return false;
	arguments->has_given = true;
	if (!arguments->string_bytes)
		arguments->string_bytes = STRING_BYTES;
	if (tw_prototypes_give(arguments->prototypes, text, reason))
		return true;
	return tw_refuse(command, "--args='%s' is refused: %s (docs/prototypes.md).", text, reason);
}

bool tw_arguments_set_file(struct tw_arguments *arguments, const struct tw_command *command, const char *path)
{
	char reason[TW_PROTOTYPE_REASON_BYTES];
	arguments->is_wanted = true;
	arguments->has_given = true;
	if (!arguments->string_bytes)
		arguments->string_bytes = STRING_BYTES;
	if (!open_prototypes(arguments))
		return false;
	if (tw_prototypes_give_file(arguments->prototypes, path, reason))
		return true;
	return tw_refuse(command, "--prototypes: %s (docs/prototypes.md).", reason);
}

static bool add_syscall(const char *function, void *arg)
{
	char pattern[300];
	snprintf(pattern, sizeof pattern, "libc:%.200s", function);
	return tw_config_add(arg, "pattern", pattern);
}

bool tw_arguments_set_syscalls(struct tw_arguments *arguments, struct tw_config *config)
{
	arguments->is_wanted = true;
	if (!arguments->string_bytes)
		arguments->string_bytes = STRING_BYTES;
	return open_prototypes(arguments) &&
	       (tw_prototypes_take_file(arguments->prototypes, "syscalls", add_syscall, config) || has_no_memory());
}

bool tw_arguments_set(struct tw_arguments *arguments, const struct tw_command *command, const char *value)
{
	bool is_raw = value && strcmp(value, "raw") == 0;
	arguments->is_wanted = true;
	if (value && strchr(value, '('))
		return give_prototype(arguments, command, value);
	arguments->string_bytes = is_raw ? 0 : STRING_BYTES;
	if (!value || is_raw ||
	    (tw_parse_count(value, &arguments->string_bytes) && arguments->string_bytes >= 8 &&
	     arguments->string_bytes <= 256))
		return true;
	return tw_refuse(
		command,
		"--args is raw, the bytes to keep of a string, from 8 to 256, or a prototype, 'f(int, str)'; not '%s'.",
		value);
}

void tw_arguments_free(struct tw_arguments *arguments)
{
	free(arguments->guards);
	tw_layouts_free(&arguments->layouts);
	tw_prototypes_close(arguments->prototypes);
	arguments->prototypes = NULL;
}

/* For finding: nothing is given any more. */
static bool ready_prototypes(struct tw_arguments *arguments)
{
	if (!open_prototypes(arguments))
		return false;
	tw_prototypes_sort(arguments->prototypes);
	return true;
}

bool tw_arguments_find(struct tw_arguments *arguments, const char *program, struct tw_config *config, bool is_quiet)
{
	char bytes[32];
	if (!arguments->is_wanted)
		return true;
	if (!tw_config_add(config, "arguments", "6"))
		return false;
	if (!arguments->string_bytes)
		return true;
	if (!ready_prototypes(arguments))
		return false;
	arguments->layouts.prototypes = arguments->prototypes;
	snprintf(bytes, sizeof bytes, "%u", (unsigned)arguments->string_bytes);
	tw_layouts_find(program, config->text, is_quiet, &arguments->layouts);
	return tw_config_add(config, "typed", bytes);
}

bool tw_arguments_find_arities(struct tw_arguments *arguments, const char *program, const struct tw_config *config)
{
	struct tw_layouts found = {.is_for_arities = true};
	struct tw_patterns patterns = {0};
	bool is_right = tw_patterns_read(&patterns, config->text);
	arguments->has_arities = is_right && tw_patterns_have_arity(&patterns);
	tw_patterns_free(&patterns);
	/* With types the arities are known as well. */
	if (!arguments->has_arities || (arguments->is_wanted && arguments->string_bytes))
		return is_right;
	tw_layouts_find(program, config->text, true, &found);
	is_right = !found.text || tw_layouts_append(&arguments->layouts, found.text, found.bytes);
	tw_layouts_free(&found);
	return is_right;
}

/* Nothing at the start satisfies the names. May something opened later do, because a pattern names its module? */
static bool may_come_later(const struct tw_guard *guard, const struct tw_layouts *layouts, bool is_quiet,
			   struct tw_when_left *left)
{
	if (left->count)
		return false;
	snprintf(left->reason, sizeof left->reason,
		 "names of parameters need debug information or a prototype (docs/prototypes.md): %.360s",
		 layouts->problem[0] ? layouts->problem
				     : "no function of the program or its libraries that is named has any");
	if (!layouts->has_others || !tw_when_check(guard->text, left->reason))
		return false;
	if (!is_quiet)
		tw_say("nothing loaded at the start matches the patterns; the condition '%s' is looked up in libraries that are opened later.",
		       guard->text);
	return true;
}

bool tw_arguments_add_guard(struct tw_arguments *arguments, const struct tw_guard *guard)
{
	if (!tw_grow_one(arguments->guards, arguments->guard_count))
		return has_no_memory();
	arguments->guards[arguments->guard_count++] = *guard;
	return true;
}

/* The layouts in which guards are searched, and the purpose. */
struct search {
	struct tw_arguments *arguments;
	const struct tw_command *command;
	const struct tw_layouts *found;
	const char *consequence; /* for functions without the guard: "not traced" */
	bool may_come_later, is_quiet;
};

static bool find_guard(const struct search *search, const struct tw_guard *guard)
{
	struct tw_when_left left = {0};
	char figure[TW_FIGURE_BYTES];
	bool is_right = tw_when_translate(search->found, guard, &search->arguments->layouts, &left) > 0;
	if (!is_right && search->may_come_later)
		is_right = may_come_later(guard, search->found, search->is_quiet, &left);
	else if (!is_right && !left.count)
		snprintf(
			left.reason, sizeof left.reason,
			"it needs debug information, or a prototype (docs/prototypes.md), of a function that the program has at its start");
	if (!is_right)
		tw_usage(search->command, "the condition '%s' is refused: %s.", guard->text, left.reason);
	else if (left.count && !search->is_quiet)
		tw_say("%s %s: for the condition '%s', %s.",
		       tw_figure_of(figure, left.count, "function that patterns name is",
				    "functions that patterns name are"),
		       search->consequence, guard->text, left.reason);
	return is_right;
}

static bool find_guards(struct search *search, const struct tw_guard *guards, size_t count, const char *program,
			const char *config)
{
	struct tw_layouts layouts = {0};
	bool is_right = true;
	if (!ready_prototypes(search->arguments))
		return false;
	layouts.prototypes = search->arguments->prototypes;
	tw_layouts_find(program, config, true, &layouts);
	search->found = &layouts;
	for (size_t i = 0; i < count && is_right; i++)
		is_right = find_guard(search, &guards[i]);
	tw_layouts_free(&layouts);
	return is_right;
}

bool tw_arguments_find_guards(struct tw_arguments *arguments, const struct tw_command *command, const char *program,
			      const struct tw_config *config, bool is_quiet)
{
	struct search search = {.arguments = arguments,
				.command = command,
				.consequence = "not traced",
				.may_come_later = true,
				.is_quiet = is_quiet};
	return !arguments->guard_count ||
	       find_guards(&search, arguments->guards, arguments->guard_count, program, config->text);
}

bool tw_arguments_find_triggers(struct tw_arguments *arguments, const struct tw_triggers_search *triggers)
{
	struct search search = {.arguments = arguments,
				.command = triggers->command,
				.consequence = "without snapshots",
				.is_quiet = triggers->is_quiet};
	return find_guards(&search, triggers->guards, triggers->count, triggers->program, triggers->config);
}

bool tw_arguments_config_late(const struct tw_arguments *arguments, struct tw_config *config)
{
	return (!arguments->string_bytes && !arguments->guard_count && !arguments->has_arities) ||
	       tw_config_add(config, "ask", ASK_MS);
}
