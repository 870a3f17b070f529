/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.h - functions of actors: named, called with values, and so traceable like Erlang's.
 *
 *	static struct value loc(struct actor *self, const struct value *arguments)
 *	{
 *		return integer(number_of(arguments[0]) + 1);
 *	}
 *	static struct function loc_function = LOCAL_FUNCTION("tro", "loc", 1, loc);
 *
 *	static struct value calls_loc(struct actor *self, const struct value *arguments)
 *	{
 *		return integer(2 * number_of(call(self, &loc_function, arguments[0])));
 *	}
 *	static struct value tail_calls_loc(struct actor *self, const struct value *arguments)
 *	{
 *		return tail_call(self, &loc_function, arguments[0]);
 *	}
 *
 * call() returns when the function has returned; tail_call() leaves its caller at once, so that a loop of tail calls
 * needs no stack. call_remote() and tail_call_remote() name the module, as mod:fun() does: `global` tracing sees these
 * only.
 *
 * Threads  the actor's.
 */
#ifndef ACTORS_FUNCTION_H
#define ACTORS_FUNCTION_H

#include "trace_function.h"
#include "value.h"

#define ARITY_MAX 8

typedef struct value function_body(struct actor *self, const struct value *arguments);

struct function {
	struct traced_function traced; /* module, name, arity */
	function_body *body;
};

#define FUNCTION(module, name, arity, body)                \
	{                                                  \
		TRACED_FUNCTION(module, name, arity), body \
	}
#define LOCAL_FUNCTION(module, name, arity, body)                \
	{                                                        \
		TRACED_LOCAL_FUNCTION(module, name, arity), body \
	}

/*
 * Makes functions known to tracing; main() does it for those of the run-time and of its loads.  A module that is loaded
 * again is unloaded first: its functions are then new ones.
 */
void module_load(struct function *const *functions, size_t count);
void module_unload(const char *module);

enum call_kind { CALL_LOCAL, CALL_REMOTE };

struct value call_with(struct actor *self, struct function *function, const struct value *arguments,
		       enum call_kind kind);
struct value tail_call_with(struct actor *self, struct function *function, const struct value *arguments,
			    enum call_kind kind);

#define ARGUMENTS(...)			      ((const struct value[]){NONE, ##__VA_ARGS__} + 1)
#define call(self, function, ...)	      call_with((self), (function), ARGUMENTS(__VA_ARGS__), CALL_LOCAL)
#define call_remote(self, function, ...)      call_with((self), (function), ARGUMENTS(__VA_ARGS__), CALL_REMOTE)
#define tail_call(self, function, ...)	      tail_call_with((self), (function), ARGUMENTS(__VA_ARGS__), CALL_LOCAL)
#define tail_call_remote(self, function, ...) tail_call_with((self), (function), ARGUMENTS(__VA_ARGS__), CALL_REMOTE)

/* ---- exceptions ---- */

enum exception_class { CLASS_NONE, CLASS_ERROR, CLASS_EXIT, CLASS_THROW };

struct exception {
	enum exception_class class;
	struct value value;
};

_Noreturn void raise_exception(struct actor *self, enum exception_class class, struct value value);
#define raise_error(self, reason) raise_exception((self), CLASS_ERROR, (reason))
#define raise_exit(self, reason)  raise_exception((self), CLASS_EXIT, (reason))
#define raise_throw(self, value)  raise_exception((self), CLASS_THROW, (value))

/*
 * try: calls code(self, environment) and catches.  Memory from malloc held by the calls in between is lost, so they
 * hold none.
 */
struct value try_call(struct actor *self, fun_code *code, struct value environment, struct exception *caught);
/* catch: the value, the value thrown, or {'EXIT',Reason}. */
struct value catch_call(struct actor *self, fun_code *code, struct value environment);

#endif
