/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.h - functions that a program declares, so that their calls can be traced by name.
 *
 * A declared function is a static structure with a name, and one check at the start of the function:
 *
 *	static struct tw_declared_function step = TW_DECLARED_FUNCTION("vm", "step", 2);
 *
 *	int step_machine(struct vm *vm, int op)
 *	{
 *		tw_call2(&step, (uintptr_t)vm, (uint64_t)op);
 *		...
 *
 * and, once at the start of the program, tw_function_declare(&step).  TW_DEFINE_FUNCTION() does both
 * the definition and, by a constructor, the declaration.  While nobody traces the function, the check
 * is one load of a word and a branch that is not taken.
 *
 * Modules and functions are named as in Erlang's {Module, Function, Arity}.
 *
 * Threads  tw_callN: any, and signal handlers.  tw_function_declare: any thread outside of a hit.
 * Source   OTP: trace:function/4, {Module, Function, Arity}.
 */
#ifndef TRACEWHEEL_FUNCTION_H
#define TRACEWHEEL_FUNCTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_place;

/* Zero-initialise what is not named; the library writes `armed` and `place` only. */
struct tw_declared_function {
	uint32_t armed;		/* not 0: somebody wants to know of calls */
	uint32_t arity;		/* 0 .. 255: how many arguments it has, in Erlang's sense */
	struct tw_place *place; /* what the library knows of it */
	const char *module;	/* borrows: for the life of the process */
	const char *name;	/* borrows: for the life of the process */
};

#ifdef __cplusplus
#define TW_DECLARED_FUNCTION(module, name, arity)                                                            \
	{                                                                                                    \
		0, (arity), nullptr, (module), (name)                                                        \
	}
#else
#define TW_DECLARED_FUNCTION(module, name, arity)                                                            \
	{                                                                                                    \
		0, (arity), 0, (module), (name)                                                              \
	}
#endif

/*
 * tw_function_declare - make the function known; idempotent.
 *
 * @function	shares: for the life of the process.
 *
 * Sessions that asked for functions loaded later (on_load) get it at once.
 * Errors: TW_EBADARG (a name missing, longer than 255 bytes, arity above 255), TW_ENOMEM, TW_EDEADLK.
 */
int tw_function_declare(struct tw_declared_function *function);

/* Defines a declared function and declares it before main().  Use at file scope. */
#define TW_DEFINE_FUNCTION(variable, module, name, arity)                                                    \
	static struct tw_declared_function variable = TW_DECLARED_FUNCTION(module, name, arity);            \
	__attribute__((constructor)) static void tw_declare_##variable(void)                                 \
	{                                                                                                    \
		tw_function_declare(&variable);                                                              \
	}                                                                                                    \
	struct tw_declared_function

/* The out-of-line halves of tw_callN(); call those. */
void tw_hit0(struct tw_declared_function *function);
void tw_hit1(struct tw_declared_function *function, uint64_t a);
void tw_hit2(struct tw_declared_function *function, uint64_t a, uint64_t b);
void tw_hit_words(struct tw_declared_function *function, const uint64_t *words, unsigned count);

static inline int tw_is_armed(const struct tw_declared_function *function)
{
	return __builtin_expect(__atomic_load_n(&function->armed, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * tw_call0 .. tw_call2, tw_call_words - say that the function is called, with these arguments.
 *
 * Words are shown as unsigned integers of 64 bits.  tw_call_words takes up to six of them.
 * Keeps errno.  Cost: one load and a branch while nobody traces the function.
 */
static inline void tw_call0(struct tw_declared_function *function)
{
	if (tw_is_armed(function))
		tw_hit0(function);
}

static inline void tw_call1(struct tw_declared_function *function, uint64_t a)
{
	if (tw_is_armed(function))
		tw_hit1(function, a);
}

static inline void tw_call2(struct tw_declared_function *function, uint64_t a, uint64_t b)
{
	if (tw_is_armed(function))
		tw_hit2(function, a, b);
}

static inline void tw_call_words(struct tw_declared_function *function, const uint64_t *words, unsigned count)
{
	if (tw_is_armed(function))
		tw_hit_words(function, words, count);
}

#ifdef __cplusplus
}
#endif

#endif
