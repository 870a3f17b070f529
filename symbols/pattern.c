/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - parses and matches MODULE:FUNCTION/ARITY; text only, independent of ELF. */
#include "tracewheel/pattern.h"

#include "base/export.h"
#include "base/limits.h"
#include "symbols/clone.h"
#include "tracewheel/error.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More alternatives in braces than users write. */
#define PARTS_MAX      256
#define TEXT_BYTES_MAX 65536

/* One alternative of the pattern.  Its names are one text: the module, a zero byte, the function, a zero byte. */
struct part {
	char *written; /* without braces, as a pattern of its own */
	char *names;
	const char *module;   /* NULL: any */
	const char *function; /* NULL: any */
	uint32_t arity;	      /* TW_PATTERN_ARITY_UNKNOWN: any */
	/* A part of the function that every matching name contains, also before it is demangled; no bytes: none is known. */
	const char *literal;
	size_t literal_bytes;
	size_t start_bytes; /* the first bytes of the function, in which nothing is a glob */
};

struct tw_pattern {
	char *text;
	size_t count;
	struct part parts[];
};

static bool is_any(const char *word)
{
	return !strcmp(word, "_") || !strcmp(word, "*");
}

/* The colon after the module: the first one not in a pair.  C++ names hold pairs, sets and ABI tags single ones. */
static char *find_colon(char *text)
{
	int depth = 0;

	for (char *p = text; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (p[0] == ':' && p[1] == ':')
			p++;
		else if (*p == '[')
			depth++;
		else if (*p == ']' && depth)
			depth--;
		else if (*p == ':' && !depth)
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

/* An unclosed bracket matches nothing in a glob, so it is reported instead of never matching. */
static const char *check_glob(const char *glob)
{
	static const char subscript[] = "operator[]";

	for (const char *p = glob; *p; p++) {
		if (!strncmp(p, subscript, sizeof subscript - 1)) {
			p += sizeof subscript - 2;
			continue;
		}
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

/* PROVIDER:NAME, of which either may be any. */
static void split_probe(char *function)
{
	char *colon = strchr(function, ':');

	if (colon && colon == function + 1 && *function == '_')
		*function = '*';
	if (colon && !strcmp(colon + 1, "_"))
		colon[1] = '*';
}

static const char *split(struct part *part)
{
	char *colon = find_colon(part->names), *function = part->names;
	const char *problem;

	if (*part->names == '!')
		return "no name begins with !; -N PATTERN excludes functions";
	if (colon) {
		*colon = '\0';
		function = colon + 1;
		part->module = part->names;
		problem = check_name(part->module, "the module before the colon is missing; write _ for any");
		if (problem)
			return problem;
	}
	problem = cut_arity(function, &part->arity);
	if (!problem)
		problem = check_name(function, "the function is missing; write _ for any");
	if (problem)
		return problem;
	if (part->module && !strcmp(part->module, TW_PATTERN_PROBES))
		split_probe(function);
	part->function = is_any(function) ? NULL : function;
	if (part->module && is_any(part->module))
		part->module = NULL;
	return NULL;
}

/* ---- several names in braces ---- */

/* The end of the name that begins here: the comma or brace that ends it.  Parameters and sets may hold both. */
static const char *end_of_name(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		if (*at == '\\' && at[1])
			at++;
		else if (strchr("([<{", *at))
			depth++;
		else if (depth && strchr(")]>}", *at))
			depth--;
		else if (!depth && (*at == ',' || *at == '}'))
			return at;
	}
	return NULL;
}

/* The first group {a,b}.  A compiler's `{lambda(int, int)#1}` has no comma outside parentheses, and is a name. */
static const char *find_group(const char *text, const char **close)
{
	for (const char *p = text; *p; p++) {
		const char *end;
		bool has_comma = false;

		if (*p == '\\' && p[1])
			p++;
		if (*p != '{')
			continue;
		for (end = end_of_name(p + 1); end && *end == ','; end = end_of_name(end + 1))
			has_comma = true;
		if (end && has_comma) {
			*close = end;
			return p;
		}
	}
	return NULL;
}

/* Gives one text for each combination; groups nested in a name are expanded as well.  @groups were resolved before. */
static const char *expand(const char *text, unsigned groups, char **out, size_t *count)
{
	const char *close, *group = find_group(text, &close), *name, *end, *problem = NULL;

	/* Each group at least doubles the number of texts. */
	if (*count == PARTS_MAX || groups > 8)
		return "there are more than 256 names in its braces";
	if (!group) {
		out[*count] = strdup(text);
		return out[*count] ? (++*count, NULL) : "";
	}
	for (name = group + 1; !problem && name <= close; name = end + 1) {
		char *chosen = malloc(strlen(text) + 1);

		end = end_of_name(name);
		if (!chosen)
			return "";
		sprintf(chosen, "%.*s%.*s%s", (int)(group - text), text, (int)(end - name), name, close + 1);
		problem = end == name ? "a name in its braces is missing" : expand(chosen, groups + 1, out, count);
		free(chosen);
	}
	return problem;
}

/*
 * Text that a demangler writes and that is not in the linkage name (libiberty's cp-demangle.c): names of types and operators, standard
 * substitutions, kinds of symbols.  Identifiers stand in both.
 */
static const char made_words[] =
	"std allocator basic_string string char_traits basic_istream basic_ostream basic_iostream istream ostream iostream "
	"signed char boolean byte unsigned double long float __float128 __int128 short void wchar_t char8_t char16_t char32_t "
	"decimal32 decimal64 decimal128 half _Float _Float16 _Float32 _Float32x _Float64 _Float64x _Float128 bfloat16_t _BitInt __vector nullptr_t decltype auto typename template "
	"struct union enum class true false ull operator alignof __alignof__ await co_await delete new dynamic_cast "
	"reinterpret_cast static_cast const_cast sizeof throw typeid noexcept requires concept const volatile restrict "
	"__restrict complex imaginary _Complex _Imaginary vtable VTT construction typeinfo name function non-virtual thunk "
	"virtual covariant return guard variable reference temporary hidden alias java Class transaction clone TLS init wrapper "
	"transaction_safe parameter object initializer module for global constructors destructors keyed lambda unnamed type default arg parm this "
	"anonymous namespace abi friend literal mangling this_type _GLOBAL__";

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_made(const char *word, size_t bytes)
{
	char copy[64];

	if (bytes >= sizeof copy)
		return false;
	memcpy(copy, word, bytes);
	copy[bytes] = '\0';
	return strstr(made_words, copy);
}

/* The longest run of letters before brackets; one that begins with a digit may be a number, which is written in other ways. */
static void find_literal(struct part *part)
{
	part->start_bytes = part->function ? strcspn(part->function, "*?[\\") : 0;
	for (const char *p = part->function; p && *p && *p != '[';) {
		size_t bytes = 0;

		while (is_word(p[bytes]))
			bytes++;
		if (bytes > 2 && bytes > part->literal_bytes && (*p < '0' || *p > '9') && !is_made(p, bytes)) {
			part->literal = p;
			part->literal_bytes = bytes;
		}
		p += bytes;
		if (*p == '\\' && p[1])
			p++;
		p += *p != '\0' && *p != '[';
	}
}

static struct tw_pattern *make(const char *text, char **texts, size_t count, const char **problem)
{
	struct tw_pattern *pattern = calloc(1, sizeof *pattern + count * sizeof *pattern->parts);

	*problem = pattern && (pattern->text = strdup(text)) ? NULL : "";
	for (size_t i = 0; !*problem && i < count; i++) {
		pattern->parts[i] = (struct part){.written = texts[i], .names = strdup(texts[i])};
		texts[i] = NULL;
		pattern->count++;
		*problem = pattern->parts[i].names ? split(&pattern->parts[i]) : "";
		if (!*problem)
			find_literal(&pattern->parts[i]);
	}
	return pattern;
}

TW_API int tw_pattern_parse(const char *text, struct tw_pattern **out, const char **problem)
{
	const char *what = "a pattern is MODULE:FUNCTION/ARITY, such as libsqlite3:sqlite3_*/_";
	struct tw_pattern *pattern = NULL;
	char *texts[PARTS_MAX];
	size_t count = 0;

	if (text && *text) {
		what = strlen(text) <= TEXT_BYTES_MAX ? expand(text, 0, texts, &count)
						      : "it has more than 65,536 bytes";
		if (!what)
			pattern = make(text, texts, count, &what);
		for (size_t i = 0; i < count; i++)
			free(texts[i]);
	}
	if (!what) {
		*out = pattern;
		return 0;
	}
	tw_pattern_destroy(pattern);
	/* The text is not at fault. */
	if (!*what)
		return TW_ENOMEM;
	if (problem)
		*problem = what;
	return TW_EBADARG;
}

TW_API void tw_pattern_destroy(struct tw_pattern *pattern)
{
	for (size_t i = 0; pattern && i < pattern->count; i++) {
		free(pattern->parts[i].written);
		free(pattern->parts[i].names);
	}
	if (pattern)
		free(pattern->text);
	free(pattern);
}

TW_API const char *tw_pattern_text(const struct tw_pattern *pattern)
{
	return pattern->text;
}

TW_API const char *tw_pattern_alternative(const struct tw_pattern *pattern, size_t index)
{
	return index < pattern->count ? pattern->parts[index].written : NULL;
}

TW_API void tw_pattern_names(const struct tw_pattern *pattern, size_t index, const char **module, const char **function)
{
	*module = index < pattern->count ? pattern->parts[index].module : NULL;
	*function = index < pattern->count ? pattern->parts[index].function : NULL;
}

/* ---- matching ---- */

/*
 * Does the linkage name begin as the function of the pattern does, which without a demangled name it must?  Most do not, and
 * recordings with hundreds of patterns ask for each function.
 */
static bool begins_alike(const struct part *part, const char *function)
{
	for (size_t i = 0; i < part->start_bytes; i++)
		if (part->function[i] != function[i])
			return false;
	return true;
}

/* Names that views print may contain literal brackets and stars: compares the text literally first. */
static bool glob(const char *pattern, const char *text)
{
	return text && (!strcmp(pattern, text) || (strpbrk(pattern, "*?[\\") && fnmatch(pattern, text, 0) == 0));
}

/* The same, for the first bytes of a text.  @buffer has TW_NAME_BYTES_MAX + 1. */
static bool glob_start(const char *pattern, const char *text, size_t bytes, char *capacity)
{
	if (bytes > TW_NAME_BYTES_MAX)
		return false;
	memcpy(capacity, text, bytes);
	capacity[bytes] = '\0';
	return glob(pattern, capacity);
}

static bool is_module(const struct part *part, const char *module, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!part->module)
		return true;
	return glob(part->module, module) || glob(part->module, file) || (slash && glob(part->module, slash + 1));
}

/*
 * The start of the parameters of a demangled name, or its end: the first parenthesis outside of <>
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

/* Skips the result type that precedes templates: it ends at the last blank outside brackets. */
static const char *skip_result(const char *demangled, size_t bytes)
{
	const char *name = demangled;
	int depth = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (!strncmp(demangled + i, "operator", 8))
			break;
		if (strchr("(<[{", demangled[i]))
			depth++;
		else if (strchr(")>]}", demangled[i]))
			depth--;
		else if (demangled[i] == ' ' && !depth)
			name = demangled + i + 1;
	}
	return name;
}

/* Length without the compiler's suffixes of special versions. */
static size_t whole_bytes(const char *demangled)
{
	const char *clone = strstr(demangled, " [clone ");

	return clone ? (size_t)(clone - demangled) : strlen(demangled);
}

/* Length without the qualifiers after the parameters. */
static size_t bare_bytes(const char *demangled, size_t bytes)
{
	static const char *const ends[] = {" const", " volatile", " &", " &&"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t end = strlen(ends[i]);

		if (bytes > end && !memcmp(demangled + bytes - end, ends[i], end)) {
			bytes -= end;
			i = (size_t)-1;
		}
	}
	return bytes;
}

static bool is_demangled(const char *pattern, const char *demangled)
{
	char capacity[TW_NAME_BYTES_MAX + 1];
	size_t whole = whole_bytes(demangled), ends[] = {whole, bare_bytes(demangled, whole), name_bytes(demangled)};
	size_t result = (size_t)(skip_result(demangled, ends[2]) - demangled);

	if (glob(pattern, demangled))
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (glob_start(pattern, demangled, ends[i], capacity) ||
		    (result && ends[i] > result && glob_start(pattern, demangled + result, ends[i] - result, capacity)))
			return true;
	return false;
}

/* "NAME [LINKAGE NAME]": views tell functions of one readable name apart in this way. */
static bool is_namesake(const char *pattern, const char *function, const char *demangled)
{
	size_t shown = strlen(demangled), linkage = strlen(function);

	return !strncmp(pattern, demangled, shown) && !strncmp(pattern + shown, " [", 2) &&
	       !strncmp(pattern + shown + 2, function, linkage) && !strcmp(pattern + shown + 2 + linkage, "]");
}

static bool is_function(const struct part *part, const char *function, const char *demangled)
{
	char capacity[TW_NAME_BYTES_MAX + 1];
	const char *suffix;

	if (!part->function || glob(part->function, function))
		return true;
	suffix = function ? tw_sym_clone_suffix(function) : NULL;
	if (suffix && glob_start(part->function, function, (size_t)(suffix - function), capacity))
		return true;
	if (function && demangled && is_namesake(part->function, function, demangled))
		return true;
	return demangled && is_demangled(part->function, demangled);
}

static bool is_arity(const struct part *part, uint32_t arity)
{
	return part->arity == TW_PATTERN_ARITY_UNKNOWN || part->arity == arity || arity == TW_PATTERN_ARITY_ANY;
}

TW_API bool tw_pattern_match_module(const struct tw_pattern *pattern, const char *module, const char *file)
{
	for (size_t i = 0; i < pattern->count; i++)
		if (is_module(&pattern->parts[i], module, file))
			return true;
	return false;
}

TW_API bool tw_pattern_match_function(const struct tw_pattern *pattern, const char *function, const char *demangled)
{
	for (size_t i = 0; i < pattern->count; i++)
		if (is_function(&pattern->parts[i], function, demangled))
			return true;
	return false;
}

TW_API bool tw_pattern_match(const struct tw_pattern *pattern, const struct tw_pattern_subject *subject)
{
	for (size_t i = 0; i < pattern->count; i++) {
		const struct part *part = &pattern->parts[i];

		if (!subject->demangled && subject->function && !begins_alike(part, subject->function))
			continue;
		if (is_arity(part, subject->arity) && is_module(part, subject->module, subject->file) &&
		    is_function(part, subject->function, subject->demangled))
			return true;
	}
	return false;
}

TW_API bool tw_pattern_is_of_probes(const struct tw_pattern *pattern)
{
	for (size_t i = 0; i < pattern->count; i++)
		if (pattern->parts[i].module && !strcmp(pattern->parts[i].module, TW_PATTERN_PROBES))
			return true;
	return false;
}

TW_API uint32_t tw_pattern_arity(const struct tw_pattern *pattern)
{
	for (size_t i = 0; i < pattern->count; i++)
		if (pattern->parts[i].arity != TW_PATTERN_ARITY_UNKNOWN)
			return pattern->parts[i].arity;
	return TW_PATTERN_ARITY_UNKNOWN;
}

TW_API bool tw_pattern_wants_demangled(const struct tw_pattern *pattern)
{
	for (size_t i = 0; i < pattern->count; i++) {
		const char *function = pattern->parts[i].function;

		/* A linkage name starts with _Z or _R; any other text may be a source name. */
		if (function && strncmp(function, "_Z", 2) && strncmp(function, "_R", 2))
			return true;
	}
	return false;
}

TW_API bool tw_pattern_wants_demangled_of(const struct tw_pattern *pattern, const char *function)
{
	/* Most names of C are told apart by two characters: recordings with hundreds of patterns ask for each function. */
	if (function[0] != '_' || (function[1] != 'Z' && function[1] != 'R'))
		return false;
	for (size_t i = 0; i < pattern->count; i++) {
		const struct part *part = &pattern->parts[i];

		/* Rust's own mangling writes types, repeated words and non-ASCII letters as other text. */
		if (part->function && strncmp(part->function, "_Z", 2) && strncmp(part->function, "_R", 2) &&
		    (!part->literal_bytes || !strncmp(function, "_R", 2) ||
		     memmem(function, strlen(function), part->literal, part->literal_bytes)))
			return true;
	}
	return false;
}
