/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - frames of CPython 3.11 as functions of the capture: what python.c and python_code.c share.
 *
 * The agent does not link libpython. It finds the interpreter's exported functions in the running program, and reads fields of the
 * interpreter's structures at the offsets that they have in all releases of 3.11. docs/decisions/0056 says why, and what is checked.
 *
 * Threads  those that hold the interpreter's lock (GIL), but for tw_agent_python_look().
 */
#ifndef TW_AGENT_PYTHON_H
#define TW_AGENT_PYTHON_H

#include "tracewheel/function.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- structures of CPython 3.11, as far as they are read; tests/tools/python_programs_test.sh compares them with its headers ---- */

struct tw_py_object {
	int64_t references;
	const void *type;
};

/* PyCodeObject.co_extra, of pycore_code.h: _PyCodeObjectExtra. */
struct tw_py_extra {
	int64_t count;
	void *values[];
};

/* PyCodeObject */
struct tw_py_code {
	struct tw_py_object object;
	int64_t size;
	struct tw_py_object *constants;
	char to_flags[16];
	int flags;
	char to_extra[124];
	struct tw_py_extra *extra;
};

/* CO_*, of code.h. */
enum {
	TW_PY_OPTIMIZED = 1,
	TW_PY_NEW_LOCALS = 2,
	/* Generator, coroutine, asynchronous generator. */
	TW_PY_RESUMES = 0x20 | 0x80 | 0x200
};

/* PyFunctionObject */
struct tw_py_function {
	struct tw_py_object object;
	char to_version[112];
	uint32_t version;
};

/* struct _PyInterpreterFrame, of pycore_frame.h */
struct tw_py_frame {
	struct tw_py_function *function;
	struct tw_py_object *globals;
	struct tw_py_object *builtins;
	struct tw_py_object *locals;
	struct tw_py_code *code;
	char to_owner[29];
	char owner; /* 0: a thread, also while a generator is made */
};

/* PyThreadState */
struct tw_py_thread {
	void *neighbours[2];
	void *interpreter;
	int states[2];
	int recursion_remaining;
};

/* _PyRuntimeState: the list of audit hooks. */
#define TW_PY_AUDIT_HOOKS_AT 656
struct tw_py_audit_entry {
	struct tw_py_audit_entry *next;
	int (*hook)(const char *event, struct tw_py_object *arguments, void *data);
	void *data;
};

typedef struct tw_py_object *tw_py_evaluate_fn(struct tw_py_thread *thread, struct tw_py_frame *frame, int throws);

/* ---- the functions of the interpreter that are called; all are exported ---- */

struct tw_py_api {
	const char *(*version)(void);
	int (*is_initialized)(void);
	int (*add_audit_hook)(int (*hook)(const char *, struct tw_py_object *, void *), void *data);
	struct tw_py_thread *(*thread)(void);
	void *(*main_interpreter)(void);
	tw_py_evaluate_fn *evaluate;
	tw_py_evaluate_fn *(*evaluation)(void *interpreter);
	void (*set_evaluation)(void *interpreter, tw_py_evaluate_fn *evaluate);
	int64_t (*request_extra)(void (*release)(void *));
	int (*set_extra)(struct tw_py_object *code, int64_t index, void *value);
	void (*fetch_error)(struct tw_py_object **type, struct tw_py_object **value, struct tw_py_object **trace);
	void (*restore_error)(struct tw_py_object *type, struct tw_py_object *value, struct tw_py_object *trace);
	void (*clear_error)(void);
	struct tw_py_object *(*error)(void);
	const char *(*exception_name)(struct tw_py_object *type);
	struct tw_py_object *(*attribute)(struct tw_py_object *object, const char *name);
	struct tw_py_object *(*item)(struct tw_py_object *dictionary, const char *key);
	const char *(*text)(struct tw_py_object *string);
	long (*number)(struct tw_py_object *number);
	int64_t (*tuple_count)(struct tw_py_object *tuple);
	struct tw_py_object *(*tuple_item)(struct tw_py_object *tuple, int64_t index);
	int (*is_subtype)(const void *type, const void *base);
	void (*take)(struct tw_py_object *object);
	void (*release)(struct tw_py_object *object);
	const void *code_type, *dictionary_type, *function_type, *string_type;
	char *runtime;
};

extern struct tw_py_api tw_py;

/* ---- python_code.c: which function of the capture a code object is ---- */

/* Never freed: a code object that is made again, under the same names, is the same function. */
struct tw_python_function {
	struct tw_declared_function declared; /* armed is 0 for functions that are not selected */
	bool may_be_item;		      /* has two parameters, as __getitem__() */
	bool has_item;			      /* the body of a class that defines __getitem__() */
};

/* The place of our words in co_extra. */
extern int64_t tw_python_index;

/*
 * tw_python_see - find or make the functions of a frame's code object, and of all that are defined in it.
 *
 * Declares those that the recording selects, all at once.  Never NULL.  Keeps the thread's exception.
 */
struct tw_python_function *tw_python_see(const struct tw_py_frame *frame);

/* Calls by obj[key] that the interpreter has inlined are not seen: from now on it inlines none of this function, which may be a __getitem__(). */
void tw_python_keep_item(struct tw_py_function *function);
/* The same of the one that the body of a class has left in its namespace. */
void tw_python_keep_item_of(struct tw_py_object *names);

#endif
