/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - MODULE:FUNCTION/ARITY, read and matched; pure text, nothing of ELF. */
#include "tracewheel/pattern.h"

#include "base/export.h"
#include "base/limits.h"
#include "tracewheel/error.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* One text: the module, a zero byte, the function, a zero byte. */
struct tw_pattern {
	const char *module;   /* NULL: any */
	const char *function; /* NULL: any */
	uint32_t arity;       /* TW_PATTERN_ARITY_UNKNOWN: any */
	char text[];
};

static bool is_any(const char *word)
{
	return !strcmp(word, "_") || !strcmp(word, "*");
}

/* The colon behind the module: the first that stands alone.  C++ names hold pairs. */
static char *find_colon(char *text)
{
	for (char *p = text; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (p[0] == ':' && p[1] == ':')
			p++;
		else if (*p == ':')
			return p;
	}
	return NULL;
}

/* `operator/` and `operator/=` are names that end in what looks like an arity. */
static bool is_operator_slash(const char *name, const char *slash)
{
	static const char word[] = "operator";
	size_t bytes = sizeof word - 1;

	return slash - name >= (ptrdiff_t)bytes && !strncmp(slash - bytes, word, bytes) &&
	       (slash[1] == '\0' || slash[1] == '=' || slash[1] == '(');
}

/* Cuts the arity off the function.  Returns NULL or the problem. */
static const char *cut_arity(char *function, uint32_t *arity)
{
	char *slash = strrchr(function, '/'), *end;
	unsigned long value;

	*arity = TW_PATTERN_ARITY_UNKNOWN;
	if (!slash || is_operator_slash(function, slash))
		return NULL;
	*slash = '\0';
	if (is_any(slash + 1))
		return NULL;
	value = strtoul(slash + 1, &end, 10);
	if (slash[1] < '0' || slash[1] > '9' || *end || value > TW_ARITY_MAX)
		return "the arity behind the last slash must be a number from 0 to 255, or _ for any";
	*arity = (uint32_t)value;
	return NULL;
}

/* An unclosed bracket matches nothing in a glob: better said than silently never matched. */
static const char *check_glob(const char *glob)
{
	for (const char *p = glob; *p; p++) {
		if (*p == '\\') {
			if (!*++p)
				return "a backslash at the end of a name quotes nothing";
		} else if (*p == '[') {
			const char *close = p + 1;

			if (*close == '!' || *close == '^')
				close++;
			if (*close == ']')
				close++;
			close = strchr(close, ']');
			/* abi tags such as [abi:cxx11] close as well, and match as a set would */
			if (!close)
				return "a [ in a name needs its ]; write \\[ for the character itself";
			p = close;
		}
	}
	return NULL;
}

static const char *check_name(const char *name, const char *empty)
{
	if (!*name)
		return empty;
	if (strlen(name) > TW_NAME_BYTES_MAX)
		return "a name is longer than 1020 bytes";
	return check_glob(name);
}

static const char *split(struct tw_pattern *pattern)
{
	char *colon = find_colon(pattern->text), *function = pattern->text;
	const char *problem;

	if (colon) {
		*colon = '\0';
		function = colon + 1;
		pattern->module = pattern->text;
		problem = check_name(pattern->module,
				     "the module before the colon is missing; write _ for any");
		if (problem)
			return problem;
	}
	problem = cut_arity(function, &pattern->arity);
	if (!problem)
		problem = check_name(function, "the function is missing; write _ for any");
	if (problem)
		return problem;
	pattern->function = is_any(function) ? NULL : function;
	if (pattern->module && is_any(pattern->module))
		pattern->module = NULL;
	return NULL;
}

TW_API int tw_pattern_parse(const char *text, struct tw_pattern **out, const char **problem)
{
	size_t bytes = text ? strlen(text) + 1 : 0;
	const char *what = "a pattern is MODULE:FUNCTION/ARITY, such as libsqlite3:sqlite3_*/_";
	struct tw_pattern *pattern;

	if (bytes > 1) {
		pattern = calloc(1, sizeof *pattern + bytes);
		if (!pattern)
			return TW_ENOMEM;
		memcpy(pattern->text, text, bytes);
		what = split(pattern);
		if (!what) {
			*out = pattern;
			return 0;
		}
		free(pattern);
	}
	if (problem)
		*problem = what;
	return TW_EBADARG;
}

TW_API void tw_pattern_destroy(struct tw_pattern *pattern)
{
	free(pattern);
}

static bool glob(const char *pattern, const char *text)
{
	return text && fnmatch(pattern, text, 0) == 0;
}

TW_API bool tw_pattern_match_module(const struct tw_pattern *pattern, const char *module, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!pattern->module)
		return true;
	return glob(pattern->module, module) || glob(pattern->module, file) ||
	       (slash && glob(pattern->module, slash + 1));
}

/*
 * Where the parameters of a demangled name begin, or its end: the first parenthesis outside of <>
 * that neither belongs to `operator()` nor to `(anonymous namespace)`.
 */
static size_t name_bytes(const char *demangled)
{
	static const char call[] = "operator()", anonymous[] = "(anonymous namespace)";
	int depth = 0;

	for (const char *p = demangled; *p; p++) {
		if (!strncmp(p, call, sizeof call - 1))
			p += sizeof call - 2;
		else if (!strncmp(p, anonymous, sizeof anonymous - 1))
			p += sizeof anonymous - 2;
		else if (!strncmp(p, "operator", 8) && (p[8] == '<' || p[8] == '>' || p[8] == '-'))
			p += strspn(p + 8, "<>-=") + 7;
		else if (*p == '<')
			depth++;
		else if (*p == '>')
			depth--;
		else if (*p == '(' && depth == 0)
			return (size_t)(p - demangled);
	}
	return strlen(demangled);
}

TW_API bool tw_pattern_match_function(const struct tw_pattern *pattern, const char *function,
				      const char *demangled)
{
	char short_name[TW_NAME_BYTES_MAX + 1];
	size_t bytes;

	if (!pattern->function || glob(pattern->function, function))
		return true;
	if (!demangled)
		return false;
	if (glob(pattern->function, demangled))
		return true;
	bytes = name_bytes(demangled);
	if (bytes >= sizeof short_name)
		return false;
	memcpy(short_name, demangled, bytes);
	short_name[bytes] = '\0';
	return glob(pattern->function, short_name);
}

TW_API bool tw_pattern_match(const struct tw_pattern *pattern, const struct tw_pattern_subject *subject)
{
	if (pattern->arity != TW_PATTERN_ARITY_UNKNOWN && pattern->arity != subject->arity)
		return false;
	return tw_pattern_match_module(pattern, subject->module, subject->file) &&
	       tw_pattern_match_function(pattern, subject->function, subject->demangled);
}

TW_API uint32_t tw_pattern_arity(const struct tw_pattern *pattern)
{
	return pattern->arity;
}

TW_API bool tw_pattern_wants_demangled(const struct tw_pattern *pattern)
{
	/* A linkage name starts with _Z or _R; whatever else a person writes may be a source name. */
	return pattern->function && strncmp(pattern->function, "_Z", 2) &&
	       strncmp(pattern->function, "_R", 2);
}
