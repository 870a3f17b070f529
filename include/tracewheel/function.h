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
 * the definition and, by a constructor, the declaration.  While the function is not traced, the check is one load of
 * a word and a branch that is not taken.
 *
 * Modules and functions are named as in Erlang's {Module, Function, Arity}.
 *
 * A run-time that distinguishes calls within a module from calls that name it (Module:Function(...)) reports the
 * former with tw_local_callN(): global tracing makes no event for those.  TW_DECLARED_LOCAL
 * in `flags` declares a function that other modules cannot call: global tracing does not find it.
 *
 * tw_enterN() and tw_leave() also report the end of the function: see further down.
 *
 * Threads  tw_callN: any, and signal handlers.  tw_function_declare: any thread outside of a hit.
 * Source   OTP: trace:function/4, {Module, Function, Arity}.
 */
#ifndef TRACEWHEEL_FUNCTION_H
#define TRACEWHEEL_FUNCTION_H

#include "tracewheel/term.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_place;

/* Zero-initialise the other fields; the library writes `armed` and `place` only. */
struct tw_declared_function {
	uint32_t armed;		/* not 0: some session traces its calls */
	uint32_t arity;		/* 0 .. 255: number of arguments, in Erlang's sense */
	struct tw_place *place; /* the library's data */
	const char *module;	/* borrows: for the life of the process */
	const char *name;	/* borrows: for the life of the process */
	uint32_t flags;		/* TW_DECLARED_* */
};

enum {
	/* Not exported: found by local tracing only.  OTP: a function that is not in -export. */
	TW_DECLARED_LOCAL = 1
};

#ifdef __cplusplus
#define TW_DECLARED_FUNCTION(module, name, arity)        \
	{                                                \
		0, (arity), nullptr, (module), (name), 0 \
	}
#else
#define TW_DECLARED_FUNCTION(module, name, arity)  \
	{                                          \
		0, (arity), 0, (module), (name), 0 \
	}
#endif

/*
 * tw_function_declare - make the function known; idempotent.
 *
 * @function	shares: for the life of the process.
 *
 * Sessions that trace functions loaded later (on_load) trace it at once.
 * Errors: TW_EBADARG (a name missing, longer than 255 bytes, arity above 255), TW_ENOMEM, TW_EDEADLK.
 */
int tw_function_declare(struct tw_declared_function *function);

/*
 * tw_module_load - make the functions of a loaded object known under its name, as if declared.
 *
 * Two kinds of places need no help from the program: entry sleds (-fpatchable-function-entry), used by local tracing
 * and counters, and the GOT slots through which other objects call the functions, used by global tracing.  Setting a
 * function by the name of its module finds them automatically; this call is for an object opened by dlopen(), so that
 * on_load is set on its functions, and for wildcards over all modules.  The object and its callers stay loaded from
 * then on.
 *
 * @module	as patterns name it: "libsqlite3" or its soname; the program by its file's name.
 *
 * Returns the number of objects of that name.  Errors: TW_EBADARG, TW_ENOMEM, TW_EDEADLK in a hit or in a
 * transaction.  Arities are not known: TW_ARITY_ANY matches such functions, and events show them as
 * {Module,Function,'_'}.
 */
int tw_module_load(const char *module);

/*
 * tw_module_unload - forget the functions of a declared module: they are no longer traced or counted.
 *
 * After return the library does not write to their structures, and the memory may be freed.  Functions declared later
 * under the same names are new ones, with the settings of on_load.  Call it before a module is replaced by another
 * version and before the object that holds the structures is closed.
 *
 * Returns the number of functions removed.  Errors: TW_EBADARG, TW_EDEADLK in a hit or in a transaction.
 * Source: OTP, code:purge/1 and the loading of a new version.
 */
int tw_module_unload(const char *module);

/* Defines a declared function and declares it before main().  Use at file scope. */
#define TW_DEFINE_FUNCTION(variable, module, name, arity)                                        \
	static struct tw_declared_function variable = TW_DECLARED_FUNCTION(module, name, arity); \
	__attribute__((constructor)) static void tw_declare_##variable(void)                     \
	{                                                                                        \
		tw_function_declare(&variable);                                                  \
	}                                                                                        \
	struct tw_declared_function

/* The out-of-line halves of tw_callN(); call those. */
void tw_hit0(struct tw_declared_function *function);
void tw_hit1(struct tw_declared_function *function, uint64_t a);
void tw_hit2(struct tw_declared_function *function, uint64_t a, uint64_t b);
void tw_hit_words(struct tw_declared_function *function, const uint64_t *words, unsigned count);
void tw_hit_local_words(struct tw_declared_function *function, const uint64_t *words, unsigned count);

static inline int tw_is_armed(const struct tw_declared_function *function)
{
	return __builtin_expect(__atomic_load_n(&function->armed, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * tw_call0 .. tw_call2, tw_call_words - report a call of the function with these arguments.
 *
 * Words are shown as unsigned integers of 64 bits.  tw_call_words takes up to six of them.
 * Keeps errno.  Cost: one load and a branch while the function is not traced.
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

/*
 * tw_local_call0 .. tw_local_call2, tw_local_call_words - the same for a call that does not name the module: local
 * tracing and counters see it, global tracing does not.
 */
static inline void tw_local_call_words(struct tw_declared_function *function, const uint64_t *words, unsigned count)
{
	if (tw_is_armed(function))
		tw_hit_local_words(function, words, count);
}

static inline void tw_local_call0(struct tw_declared_function *function)
{
	tw_local_call_words(function, 0, 0);
}

static inline void tw_local_call1(struct tw_declared_function *function, uint64_t a)
{
	tw_local_call_words(function, &a, 1);
}

static inline void tw_local_call2(struct tw_declared_function *function, uint64_t a, uint64_t b)
{
	uint64_t words[2] = {a, b};

	tw_local_call_words(function, words, 2);
}

/*
 * ---- returns: calls traced to their end ----
 *
 *	int step_machine(struct vm *vm, int op)
 *	{
 *		struct tw_frame frame;
 *		int result;
 *
 *		tw_enter2(&step, &frame, (uintptr_t)vm, (uint64_t)op);	in place of tw_call2()
 *		...
 *		tw_leave(&frame, (uint64_t)result);
 *		return result;
 *	}
 *
 * These calls give return_from, exception_from and return_to events to sessions that trace them, and the end of calls to
 * call_time and call_memory.  A run-time that keeps its own stacks holds the frame in the function's activation record,
 * which may move in memory and continue on another thread.  While the function is not traced, enter costs one load, one
 * branch and one store; leave costs one load and one branch.
 *
 * A tail call passes the frame on: tw_tailN() with the frame of the caller, in place of tw_enterN().  When the frame is
 * left, every traced function of the chain has returned, the last called first.  The chain's memory belongs to the
 * process: 8 bytes for each call whose return or exception is traced, two words for any number of consecutive calls of
 * one function, none for return_to, call_time and call_memory.  Limits: 1,500,000 such calls per process, 256 MiB for
 * the program; the ends of calls beyond them are counted as lost (full) when the chain ends.
 *
 * An exception is reported frame by frame, innermost first, then by the function that catches it:
 *
 *	struct tw_raise raise = TW_RAISE(TW_CLASS_ERROR, reason);
 *
 *	tw_unwind(&inner, &raise);		each frame that it leaves
 *	tw_unwind(&outer, &raise);
 *	tw_caught(&raise, &catcher);		once, by the function that goes on; NULL: undefined
 *
 * A frame that is left without a call (longjmp) may be abandoned: its chain is freed when the process exits.
 *
 * Threads  the thread that runs the process; a frame by one thread at a time.  Signal handlers: yes.
 * Source   OTP: {return_trace}, {exception_trace}, flag return_to.
 */
struct tw_frame {
	uint32_t is_open; /* 0: its end is not traced */
	uint32_t tail;	  /* the library's, like the words */
	uint64_t words[10];
};

/* A call, as tw_hit_enter() and tw_hit_tail() take it. */
struct tw_frame_call {
	const uint64_t *words;	     /* up to six */
	const struct tw_term *terms; /* up to 255 */
	unsigned count;		     /* of the words, or of the terms */
	int has_terms;
	int is_local; /* does not name the module */
};

/* The out-of-line halves; call those below. */
void tw_hit_enter2(struct tw_declared_function *function, struct tw_frame *frame, uint64_t a, uint64_t b);
void tw_hit_enter(struct tw_declared_function *function, struct tw_frame *frame, const struct tw_frame_call *call);
void tw_hit_tail(struct tw_declared_function *function, struct tw_frame *frame, const struct tw_frame_call *call);
void tw_hit_leave(struct tw_frame *frame, uint64_t value);
void tw_hit_leave_void(struct tw_frame *frame);
void tw_hit_leave_term(struct tw_frame *frame, struct tw_term value);

/* tw_enter2, tw_enter_words - report a call with two words, or with up to six, and open its frame. */
static inline void tw_enter2(struct tw_declared_function *function, struct tw_frame *frame, uint64_t a, uint64_t b)
{
	frame->is_open = 0;
	if (tw_is_armed(function))
		tw_hit_enter2(function, frame, a, b);
}

static inline void tw_enter_words(struct tw_declared_function *function, struct tw_frame *frame, const uint64_t *words,
				  unsigned count)
{
	struct tw_frame_call call = {words, 0, count, 0, 0};

	frame->is_open = 0;
	if (tw_is_armed(function))
		tw_hit_enter(function, frame, &call);
}

static inline void tw_enter0(struct tw_declared_function *function, struct tw_frame *frame)
{
	tw_enter_words(function, frame, 0, 0);
}

static inline void tw_enter1(struct tw_declared_function *function, struct tw_frame *frame, uint64_t a)
{
	tw_enter_words(function, frame, &a, 1);
}

/*
 * tw_enter_terms, tw_call_terms - report a call whose arguments are terms; match specifications see them unchanged.
 *
 * @terms	borrow until the call returns; build them only if tw_is_armed().  Terms that do not fit a record
 *		(8 KiB with its head) are cut, and '...' marks the cut: see tw_term_copy().
 */
static inline void tw_enter_terms(struct tw_declared_function *function, struct tw_frame *frame,
				  const struct tw_term *terms, unsigned count)
{
	struct tw_frame_call call = {0, terms, count, 1, 0};

	frame->is_open = 0;
	if (tw_is_armed(function))
		tw_hit_enter(function, frame, &call);
}

static inline void tw_call_terms(struct tw_declared_function *function, const struct tw_term *terms, unsigned count)
{
	struct tw_frame_call call = {0, terms, count, 1, 0};

	if (tw_is_armed(function))
		tw_hit_enter(function, 0, &call);
}

/* The general form: words or terms, local or global. */
static inline void tw_enter(struct tw_declared_function *function, struct tw_frame *frame,
			    const struct tw_frame_call *call)
{
	frame->is_open = 0;
	if (tw_is_armed(function))
		tw_hit_enter(function, frame, call);
}

/* tw_tail, tw_tail2 - the function that owns the frame ends with a tail call. */
static inline void tw_tail(struct tw_declared_function *function, struct tw_frame *frame,
			   const struct tw_frame_call *call)
{
	if (tw_is_armed(function))
		tw_hit_tail(function, frame, call);
}

static inline void tw_tail2(struct tw_declared_function *function, struct tw_frame *frame, uint64_t a, uint64_t b)
{
	uint64_t words[2] = {a, b};
	struct tw_frame_call call = {words, 0, 2, 0, 0};

	tw_tail(function, frame, &call);
}

/* tw_leave, tw_leave_term, tw_leave_void - the function returns a word, a term or no visible value. */
static inline void tw_leave(struct tw_frame *frame, uint64_t value)
{
	if (__builtin_expect(frame->is_open != 0, 0))
		tw_hit_leave(frame, value);
}

static inline void tw_leave_term(struct tw_frame *frame, struct tw_term value)
{
	if (__builtin_expect(frame->is_open != 0, 0))
		tw_hit_leave_term(frame, value);
}

static inline void tw_leave_void(struct tw_frame *frame)
{
	if (__builtin_expect(frame->is_open != 0, 0))
		tw_hit_leave_void(frame);
}

/* ---- the stack of a process: for return_to, {caller}, {caller_line} and {current_stacktrace} ---- */

/* A function on a stack.  Strings borrow until the end of the program. */
struct tw_stack_entry {
	const char *module, *function;
	uint32_t arity;
	uint32_t line;	  /* 0: not known */
	const char *file; /* NULL: not known */
};

/*
 * Gives the return stack of the process that this thread runs.  out[0] is the function to which the function being
 * entered or left returns (after tail calls, not the one that made the call); out[1] is the function to which that one
 * returns, and so on.  Returns the number of entries, at most `capacity`.
 *
 * Called inside tw_enter, tw_call, tw_tail and tw_leave, on their thread, only if a session needs it.  It must not
 * allocate, lock, wait or call this library.
 */
typedef unsigned (*tw_stack_fn)(struct tw_stack_entry *out, unsigned capacity, void *arg);

/* Sets the function for the whole program; without it callers are `undefined`.  NULL removes it. */
void tw_runtime_stack(tw_stack_fn stack, void *arg);

/* ---- memory: for call_memory ---- */

/* The library's. */
void tw_hit_allocation(uint64_t words);

/*
 * tw_process_allocated - the process that this thread runs has allocated @words words on its heap, received messages
 * included.  Words freed by a collection are not reported.  Source: call_memory of trace:function/4.
 */
static inline void tw_process_allocated(uint64_t words)
{
	tw_hit_allocation(words);
}

/* ---- exceptions ---- */

enum tw_exception_class { TW_CLASS_ERROR = 0, TW_CLASS_EXIT, TW_CLASS_THROW };

/* One exception being raised. */
struct tw_raise {
	enum tw_exception_class exception_class;
	struct tw_term value;
	uint64_t words[2]; /* the library's: zeros at first */
};

#define TW_RAISE(exception_class, value)    \
	{                                   \
		(exception_class), (value), \
		{                           \
			0, 0                \
		}                           \
	}

void tw_hit_unwind(struct tw_frame *frame, struct tw_raise *raise);
void tw_hit_caught(struct tw_raise *raise, const struct tw_stack_entry *catcher);

/* The exception leaves the function that owns the frame. */
static inline void tw_unwind(struct tw_frame *frame, struct tw_raise *raise)
{
	if (__builtin_expect(frame->is_open != 0, 0))
		tw_hit_unwind(frame, raise);
}

/* A function catches the exception and continues. */
static inline void tw_caught(struct tw_raise *raise, const struct tw_stack_entry *catcher)
{
	if (__builtin_expect(raise->words[0] != 0, 0))
		tw_hit_caught(raise, catcher);
}

#ifdef __cplusplus
}
#endif

#endif
