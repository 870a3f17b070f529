/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - frames of CPython 3.11 as functions of the capture: what python.c, python_late.c and python_code.c share.
 *
 * The agent does not link libpython. It finds the interpreter's exported functions in the running program, and reads fields of the
 * interpreter's structures at the offsets that they have in all releases of 3.11. docs/decisions/0056 says why, and what is checked.
 *
 * Threads  those that hold the interpreter's lock (GIL), if nothing else is said.
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
	/* For interpreters that run already. */
	int (*is_finalizing)(void);
	struct tw_py_thread *(*make_thread)(void *interpreter);
	void (*take_lock)(struct tw_py_thread *thread);
	void (*clear_thread)(struct tw_py_thread *thread);
	void (*delete_current)(void);
	void *(*first_interpreter)(void);
	void *(*next_interpreter)(void *interpreter);
	int (*stop_collector)(void);
	int (*start_collector)(void);
	struct tw_py_object *(*call)(struct tw_py_object *function, struct tw_py_object *argument);
	int64_t (*list_count)(struct tw_py_object *list);
	struct tw_py_object *(*list_item)(struct tw_py_object *list, int64_t index);
	struct tw_py_object *(*interned)(const char *text);
	struct tw_py_object *(*lookup)(const void *type, struct tw_py_object *name);
	struct tw_py_object *object_type, *type_type;
};

extern struct tw_py_api tw_py;

/* ---- python.c ---- */

#define TW_PYTHON_WHY_BYTES 160

/*
 * tw_python_find - find the functions of an interpreter that is in this object.
 *
 * @why		out: "", or why it cannot be recorded, as a clause; TW_PYTHON_WHY_BYTES.
 *
 * False: there is none.  Threads: any, of which one finds.
 */
bool tw_python_find(void *handle, struct tw_py_api *api, char *why);
/* Evaluates another function than the interpreter's and ours its frames?  Then why nothing is recorded, as a clause; else NULL.  Threads: any. */
const char *tw_python_is_refused(const struct tw_py_api *api, void *interpreter);
/*
 * tw_python_install - evaluate frames for the recording of this number, from now on, on all threads.
 *
 * Returns NULL, or why not, as a clause.
 */
const char *tw_python_install(void *interpreter, uint32_t recording);
/*
 * tw_python_remove - the interpreter evaluates its frames by itself again; open ones end in ours.
 *
 * Returns NULL, or why it does not, as a clause.
 */
const char *tw_python_remove(void);
/* A note of the capture: why nothing of Python is recorded.  Threads: any. */
void tw_python_tell_why(const char *why);

/* ---- python_code.c: which function of the capture a code object is ---- */

/* Never freed: a code object that is made again, under the same names, is the same function. */
struct tw_python_function {
	struct tw_declared_function declared; /* armed is 0 for functions that are not selected */
	bool may_be_item;		      /* has two parameters, as __getitem__() */
	bool has_item;			      /* the body of a class that defines __getitem__() */
	bool is_declared;
	uint32_t number;
};

/*
 * The place of our words in co_extra.  A word is the number of the recording, and that of the function: it is no pointer, so that one which is
 * left by an earlier recording means nothing.
 */
extern int64_t tw_python_index;
/* The recording that is under way: 1 or more; 0: none. */
extern uint32_t tw_python_recording;
/* By number; the first is that of all which are not selected.  There as soon as a recording is. */
extern struct tw_python_function **tw_python_functions;

/* NULL: the code object was not seen in this recording. */
static inline struct tw_python_function *tw_python_function_of(const struct tw_py_code *code)
{
	const struct tw_py_extra *extra = code->extra;
	uint64_t word;

	if (!extra || extra->count <= tw_python_index)
		return NULL;
	word = (uint64_t)(uintptr_t)extra->values[tw_python_index];
	return word >> 32 == tw_python_recording ? tw_python_functions[(uint32_t)word] : NULL;
}

/* Makes the list of functions.  False: there is no memory. */
bool tw_python_functions_init(void);

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
/* The same of all classes that there are. */
void tw_python_keep_items(void);
/* The interpreter may inline those of all classes again. */
void tw_python_free_items(void);

#endif
