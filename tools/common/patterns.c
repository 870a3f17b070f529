/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.c - selects functions by patterns. */
#include "tools/common/patterns.h"
#include "base/grow.h"
#include "views/names/names.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static bool append(struct tw_pattern ***list, size_t *count, struct tw_pattern *pattern)
{
	if (!tw_grow_one(*list, *count)) {
		tw_pattern_destroy(pattern);
		return false;
	}
	(*list)[(*count)++] = pattern;
	return true;
}

/* Takes the condition. */
static bool keep(struct tw_patterns *patterns, bool is_excluded, struct tw_pattern *pattern, char *condition)
{
	if (is_excluded)
		return append(&patterns->excluded, &patterns->excluded_count, pattern);
	if (!tw_grow_one(patterns->conditions, patterns->wanted_count)) {
		free(condition);
		tw_pattern_destroy(pattern);
		return false;
	}
	patterns->conditions[patterns->wanted_count] = condition;
	patterns->has_conditions |= condition != NULL;
	return append(&patterns->wanted, &patterns->wanted_count, pattern);
}

/* Cuts "PATTERN if CONDITION": NULL if there is no condition. */
static char *cut_condition(char *text)
{
	size_t bytes = strlen(text);
	char *at = strstr(text, " if "), *condition = at ? at + 4 : NULL;
	if (!at && bytes > 3 && strcmp(text + bytes - 3, " if") == 0)
		condition = (at = text + bytes - 3) + 3;
	while (at && at > text && at[-1] == ' ')
		at--;
	if (at)
		*at = 0;
	return condition ? condition + strspn(condition, " ") : NULL;
}

char *tw_patterns_absolute(const char *text)
{
	size_t bytes = strcspn(text, ":{");
	char *path, *real, *whole = NULL;
	if (*text == '/' || text[bytes] != ':' || text[bytes + 1] == ':' || !memchr(text, '/', bytes))
		return strdup(text);
	path = strndup(text, bytes);
	real = path ? realpath(path, NULL) : NULL;
	if (asprintf(&whole, "%s%s", real ? real : path, text + bytes) < 0)
		whole = NULL;
	free(real);
	free(path);
	return whole;
}

bool tw_patterns_take(struct tw_patterns *patterns, const struct tw_command *command, bool is_excluded,
		      const char *text)
{
	struct tw_pattern *pattern = NULL;
	const char *problem = "there is no memory";
	bool is_line = !strchr(text, '\n');
	char *copy = strdup(text), *condition = copy ? cut_condition(copy) : NULL;
	char *absolute = copy ? tw_patterns_absolute(copy) : NULL;
	bool is_right = is_line && absolute && tw_pattern_parse(absolute, &pattern, &problem) == 0;
	free(absolute);
	if (is_right && is_excluded && condition) {
		tw_usage(command, "-N '%s': functions are left out with all their calls; -t takes conditions.", text);
		tw_pattern_destroy(pattern);
		is_right = false;
	} else if (is_right) {
		is_right = keep(patterns, is_excluded, pattern, condition ? strdup(condition) : NULL);
	} else {
		tw_usage(command, "'%s' is not a pattern: %s.", copy && is_line ? copy : text,
			 is_line ? problem : "it has more than one line");
	}
	free(copy);
	return is_right;
}

/* The condition of the last pattern. */
static bool read_condition(struct tw_patterns *patterns, const char *number)
{
	char **condition = patterns->wanted_count ? &patterns->conditions[patterns->wanted_count - 1] : NULL;
	if (!condition || *condition)
		return true;
	patterns->has_conditions = true;
	return (*condition = strdup(number)) != NULL;
}

/* Lines that do not parse were refused before. */
bool tw_patterns_read(struct tw_patterns *patterns, const char *config)
{
	static const char *const keys[] = {"pattern ", "exclude "};
	char *copy = strdup(config), *rest = copy, *line;
	bool is_whole = copy != NULL;
	while (is_whole && (line = strsep(&rest, "\n"))) {
		if (strncmp(line, "if ", 3) == 0)
			is_whole = read_condition(patterns, line + 3);
		for (int i = 0; i < 2; i++) {
			struct tw_pattern *pattern;
			if (strncmp(line, keys[i], strlen(keys[i])) != 0)
				continue;
			int error = tw_pattern_parse(line + strlen(keys[i]), &pattern, NULL);
			is_whole = is_whole && (error ? error != TW_ENOMEM : keep(patterns, i == 1, pattern, NULL));
		}
	}
	free(copy);
	return is_whole;
}

void tw_patterns_free(struct tw_patterns *patterns)
{
	for (size_t i = 0; i < patterns->wanted_count; i++)
		tw_pattern_destroy(patterns->wanted[i]);
	for (size_t i = 0; i < patterns->excluded_count; i++)
		tw_pattern_destroy(patterns->excluded[i]);
	for (size_t i = 0; i < patterns->wanted_count; i++)
		free(patterns->conditions[i]);
	free(patterns->conditions);
	free(patterns->wanted);
	free(patterns->excluded);
	*patterns = (struct tw_patterns){0};
}

bool tw_pattern_is_module(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject)
{
	return tw_pattern_match_module(pattern, subject->module, subject->path) ||
	       (subject->soname && *subject->soname &&
		tw_pattern_match_module(pattern, subject->module, subject->soname)) ||
	       (subject->alias && tw_pattern_match_module(pattern, subject->alias, NULL));
}

bool tw_pattern_is(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject, const char *demangled)
{
	struct tw_pattern_subject one = {.module = subject->module,
					 .file = subject->path,
					 .function = subject->function,
					 .demangled = demangled,
					 .arity = subject->arity};
	if (tw_pattern_match(pattern, &one))
		return true;
	one.file = subject->soname;
	if (one.file && *one.file && tw_pattern_match(pattern, &one))
		return true;
	one.module = subject->alias;
	one.file = NULL;
	return one.module && tw_pattern_match(pattern, &one);
}

static size_t first_of(struct tw_pattern *const *list, size_t count, const struct tw_patterns_subject *subject,
		       char **demangled)
{
	for (size_t i = 0; i < count; i++) {
		if (!*demangled && tw_pattern_wants_demangled_of(list[i], subject->function))
			*demangled = tw_name_demangled(subject->function);
		if (tw_pattern_is(list[i], subject, *demangled))
			return i;
	}
	return count;
}

size_t tw_patterns_first(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject)
{
	char *demangled = NULL;
	size_t first = first_of(patterns->wanted, patterns->wanted_count, subject, &demangled);
	free(demangled);
	return first;
}

size_t tw_patterns_first_linkage(const struct tw_patterns *patterns, const char *linkage)
{
	char *module = strdup(linkage), *end = module ? strrchr(module, ':') : NULL;
	size_t first = patterns->wanted_count;
	if (end) {
		*end = '\0';
		first = tw_patterns_first(patterns, &(struct tw_patterns_subject){.module = module,
										  .function = end + 1,
										  .arity = TW_PATTERN_ARITY_ANY});
	}
	free(module);
	return first;
}

static bool is_any(struct tw_pattern *const *list, size_t count, const struct tw_patterns_subject *subject,
		   char **demangled)
{
	return first_of(list, count, subject, demangled) < count;
}

bool tw_patterns_select(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject)
{
	char *demangled = NULL;
	bool found = !patterns->wanted_count || is_any(patterns->wanted, patterns->wanted_count, subject, &demangled);
	free(demangled);
	return found;
}

bool tw_patterns_match(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject)
{
	struct tw_patterns_subject excluded = *subject;
	char *demangled = NULL;
	bool found = !patterns->wanted_count || is_any(patterns->wanted, patterns->wanted_count, subject, &demangled);
	/* Before the arity is looked up, only a pattern that excludes any arity is certain. */
	if (excluded.arity == TW_PATTERN_ARITY_ANY)
		excluded.arity = TW_PATTERN_ARITY_UNKNOWN;
	found = found && !is_any(patterns->excluded, patterns->excluded_count, &excluded, &demangled);
	free(demangled);
	return found;
}

static bool has_arity(struct tw_pattern *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (tw_pattern_arity(list[i]) != TW_PATTERN_ARITY_UNKNOWN)
			return true;
	return false;
}

bool tw_patterns_have_arity(const struct tw_patterns *patterns)
{
	return has_arity(patterns->wanted, patterns->wanted_count) ||
	       has_arity(patterns->excluded, patterns->excluded_count);
}

const char *tw_patterns_alias(const char *typed, const char *file)
{
	const char *slash = strrchr(typed, '/'), *own = strrchr(file, '/');
	typed = slash ? slash + 1 : typed;
	own = own ? own + 1 : file;
	return *typed && strcmp(typed, own) != 0 ? typed : NULL;
}
