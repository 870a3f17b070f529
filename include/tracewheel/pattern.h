/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - what a person writes to name functions: MODULE:FUNCTION/ARITY.
 *
 *	libsqlite3:sqlite3_step/_	one function of one module, of any arity
 *	libsqlite3:sqlite3_*		a shell glob; the arity may be left out, which means any
 *	libsqlite3:_			every function of a module; `_` alone means "any", as in Erlang
 *	sqlite3_step			a function of that name in any module
 *	libgeo:geo::Point::*		C++: by its demangled name, with or without the parameters,
 *	libgeo:_ZN3geo5PointC1Ev	or by its linkage name
 *	libc:{malloc,free,mem*}		several in braces, anywhere in the pattern
 *
 * A module is named as events show it (`libsqlite3`, `_` for any), by its file name or SONAME
 * (`libsqlite3.so.0`), or by its path.  The colon that ends the module is the first one that is not
 * part of `::`.  Globs are * ? and [a-z] [!a-z]; a backslash takes the next character as it is.
 *
 * Each name that a view prints is a pattern for that function: a name that is equal, character by character, matches
 * whatever globs it holds.  What compilers append to the names of special versions (.isra.0, [clone ...]), the result type of
 * templates, and qualifiers behind the parameters (const) may be left out.
 *
 * An arity is a number from 0 to 255, `_` or `*`.  Where a function's arity is not known only the
 * last two match it.
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

/* The arity of a function of which it is not known. */
#define TW_PATTERN_ARITY_UNKNOWN UINT32_MAX
/* The arity of one that nobody has looked up yet: fulfils whatever a pattern asks for. */
#define TW_PATTERN_ARITY_ANY (UINT32_MAX - 1)

struct tw_pattern;

/* What a pattern is held against.  NULL strings match `_` only. */
struct tw_pattern_subject {
	const char *module;    /* as events show it */
	const char *file;      /* its path or SONAME; may be NULL */
	const char *function;  /* its linkage name */
	const char *demangled; /* of C++ and Rust; may be NULL */
	uint32_t arity;        /* or TW_PATTERN_ARITY_UNKNOWN, TW_PATTERN_ARITY_ANY */
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

/* Does all of the pattern match?  No allocation. */
bool tw_pattern_match(const struct tw_pattern *pattern, const struct tw_pattern_subject *subject);

/* Does its module match?  @file is a path, a file name or a SONAME, and may be NULL. */
bool tw_pattern_match_module(const struct tw_pattern *pattern, const char *module, const char *file);

/* Could its function match?  @demangled may be NULL. */
bool tw_pattern_match_function(const struct tw_pattern *pattern, const char *function, const char *demangled);

/* As it was parsed; lends. */
const char *tw_pattern_text(const struct tw_pattern *pattern);

/*
 * tw_pattern_alternative - the pattern without braces: each text that it stands for, a pattern of its own.
 *
 * Lends, until the pattern is destroyed; NULL behind the last.  Without braces there is one.
 */
const char *tw_pattern_alternative(const struct tw_pattern *pattern, size_t index);

/* The module and the function of one of them, without the arity; lends; NULL: any. */
void tw_pattern_names(const struct tw_pattern *pattern, size_t index, const char **module, const char **function);

/* The arity that it asks for (with braces: one of them), or TW_PATTERN_ARITY_UNKNOWN when any will do. */
uint32_t tw_pattern_arity(const struct tw_pattern *pattern);

/* Can a demangled name make a difference to it?  (Then it is worth the work of demangling.) */
bool tw_pattern_wants_demangled(const struct tw_pattern *pattern);

#ifdef __cplusplus
}
#endif

#endif
