/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - patterns that users write to name functions: MODULE:FUNCTION/ARITY.
 *
 *	libsqlite3:sqlite3_step/_	one function of one module, of any arity
 *	libsqlite3:sqlite3_*		a shell glob; a missing arity means any
 *	libsqlite3:_			every function of a module; `_` alone means "any", as in Erlang
 *	sqlite3_step			a function of that name in any module
 *	libgeo:geo::Point::*		C++: by its demangled name, with or without the parameters,
 *	libgeo:_ZN3geo5PointC1Ev	or by its linkage name
 *	libc:{malloc,free,mem*}		several in braces, anywhere in the pattern
 *	sdt:postgresql:query__start	a probe that the program brings itself, of a provider
 *
 * A module is named as events show it (`libsqlite3`, `_` for any), by its file name or SONAME
 * (`libsqlite3.so.0`), or by its path.  The colon that ends the module is the first one that is not
 * part of `::`.  Globs are * ? and [a-z] [!a-z]; a backslash takes the next character as it is.
 *
 * Each name that a view prints is a pattern for that function: an identical name matches, even if it contains glob
 * characters.  Suffixes of compiler-made versions (.isra.0, [clone ...]), the result type of templates, and qualifiers after
 * the parameters (const) may be left out.
 *
 * An arity is a number from 0 to 255, `_` or `*`.  Only the last two match a function whose arity is not known.
 *
 * Threads    any; a pattern never changes once it is made.
 * Ownership  tw_pattern_parse() gives, tw_pattern_destroy() takes.
 */
#ifndef TRACEWHEEL_PATTERN_H
#define TRACEWHEEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An arity that is not known. */
#define TW_PATTERN_ARITY_UNKNOWN UINT32_MAX
/* An arity that has not been looked up yet: matches any pattern. */
#define TW_PATTERN_ARITY_ANY (UINT32_MAX - 1)

struct tw_pattern;

/* A function to match against a pattern.  NULL strings match `_` only. */
struct tw_pattern_subject {
	const char *module;    /* as events show it */
	const char *file;      /* its path or SONAME; may be NULL */
	const char *function;  /* its linkage name */
	const char *demangled; /* of C++ and Rust; may be NULL */
	uint32_t arity;	       /* or TW_PATTERN_ARITY_UNKNOWN, TW_PATTERN_ARITY_ANY */
};

/*
 * tw_pattern_parse - read a pattern.
 *
 * @text	borrows: UTF-8.
 * @out		gives.
 * @problem	may be NULL; on TW_EBADARG one clear sentence without a full stop, a constant.
 *
 * Errors: TW_EBADARG, TW_ENOMEM.
 */
int tw_pattern_parse(const char *text, struct tw_pattern **out, const char **problem);
void tw_pattern_destroy(struct tw_pattern *pattern);

/* Does the whole pattern match?  No allocation. */
bool tw_pattern_match(const struct tw_pattern *pattern, const struct tw_pattern_subject *subject);

/* Does the module part match?  @file is a path, a file name or a SONAME, and may be NULL. */
bool tw_pattern_match_module(const struct tw_pattern *pattern, const char *module, const char *file);

/* Could the function part match?  @demangled may be NULL. */
bool tw_pattern_match_function(const struct tw_pattern *pattern, const char *function, const char *demangled);

/* The text as parsed; lends. */
const char *tw_pattern_text(const struct tw_pattern *pattern);

/*
 * tw_pattern_alternative - the pattern with its braces expanded: each alternative is a pattern of its own.
 *
 * Lends, until the pattern is destroyed; NULL past the last.  A pattern without braces has one.
 */
const char *tw_pattern_alternative(const struct tw_pattern *pattern, size_t index);

/* The module and the function of an alternative, without the arity; lends; NULL: any. */
void tw_pattern_names(const struct tw_pattern *pattern, size_t index, const char **module, const char **function);

/* The module of all probes that programs bring themselves: sdt:PROVIDER:NAME. */
#define TW_PATTERN_PROBES "sdt"

/* Does the pattern ask for such probes?  Only one with that module does, and not `_`. */
bool tw_pattern_is_of_probes(const struct tw_pattern *pattern);

/* The arity in the pattern (with braces: one of them), or TW_PATTERN_ARITY_UNKNOWN if any arity matches. */
uint32_t tw_pattern_arity(const struct tw_pattern *pattern);

/* Can a demangled name change the result?  (Only then is demangling worth its cost.) */
bool tw_pattern_wants_demangled(const struct tw_pattern *pattern);

/*
 * tw_pattern_wants_demangled_of - can the demangled name of this function change the result?
 *
 * @function	a linkage name; borrows.  Its identifiers are those of its demangled name, so most names of C++ need not be
 *		demangled.
 */
bool tw_pattern_wants_demangled_of(const struct tw_pattern *pattern, const char *function);

#ifdef __cplusplus
}
#endif

#endif
