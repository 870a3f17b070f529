/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.c - records the frames of a CPython 3.11 that the program is or contains, by frame evaluation (PEP 523).
 *
 *  1 look		the interpreter's functions are found in the program, or in a library that it opens
 *  2 wait		an audit hook is called when the interpreter has begun to run; it takes itself out of the list
 *  3 install	our function evaluates each frame from now on, on all threads
 *  4 evaluate	a call event, the interpreter's own evaluation, the call's end
 *
 * In a program that runs already, python_late.c does 1 to 3, and takes 3 back at the end.
 *
 * With a function of ours, CPython 3.11 does not inline calls from Python to Python: each takes C stack, some 600 bytes. In the lower half of a
 * thread's stack the interpreter evaluates by itself again, so that a recursion ends by RecursionError where it does so untraced.
 *
 * Threads  those that hold the interpreter's lock (GIL), but for tw_agent_python_look().
 */
#include "agent/agent.h"
#include "agent/python.h"

#include "base/atomic.h"
#include "base/filter.h"
#include "base/sys.h"
#include "term/term.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The usual limit. */
#define FIRST_STACK_BYTES ((uintptr_t)8 << 20)

#define UNLIKELY(condition) __builtin_expect((condition), 0)

#define SUPPORTED "3.11."

struct tw_py_api tw_py;

/* Written by the thread that loads the interpreter's object, then by that which installs. */
static enum { PYTHON_UNWANTED = 0, PYTHON_REFUSED, PYTHON_AWAITED, PYTHON_INSTALLED } state;
static void *interpreter;
static char audit_data;

/* ---- evaluation ---- */

/*
 * The part of this thread's stack that has room for calls that are not inlined.  A stack that is not the thread's own, of a coroutine, is outside: it
 * is not known.
 */
static __thread struct {
	uintptr_t low, bytes; /* of the upper half; 0: not looked up yet */
	uintptr_t bottom;
} room;

/* The first stack may grow up to a limit, which cannot be asked for under a filter; others have their size. */
static uintptr_t most_bytes(uintptr_t bytes)
{
	struct rlimit limit;

	if (bytes <= FIRST_STACK_BYTES)
		return bytes;
	if (!tw_thread_may_call_system())
		return FIRST_STACK_BYTES;
	if (tw_sys_thread_id() != tw_sys_process_id() || getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur > bytes)
		return bytes;
	return limit.rlim_cur;
}

static void find_room(void)
{
	uintptr_t low, high;

	room.low = 0;
	room.bytes = UINTPTR_MAX;
	if (!tw_sys_own_stack(&low, &high))
		return;
	room.bytes = most_bytes(high - low) / 2;
	room.low = high - room.bytes;
	room.bottom = high - 2 * room.bytes;
}

static __attribute__((noinline)) bool is_deep(uintptr_t here)
{
	if (!room.bytes)
		find_room();
	return here < room.low && here >= room.bottom;
}

/* A note of the capture. */
static void tell(const char *text)
{
	if (!tw_thread_may_call_system() || !tw_agent_enter())
		return;
	tw_agent_tell(text);
	tw_agent_leave();
}

/* The interpreter calls none of our functions inside of this frame, on no thread. */
static __attribute__((noinline)) struct tw_py_object *evaluate_deep(struct tw_py_thread *thread,
								    struct tw_py_frame *frame, int throws)
{
	tw_py_evaluate_fn *ours = tw_py.evaluation(interpreter);
	uint32_t recording = tw_python_recording;
	struct tw_py_object *result;

	tell("functions of Python are not recorded, on all threads, while a recursion uses more than half of its thread's stack");
	tw_py.set_evaluation(interpreter, tw_py.evaluate);
	result = tw_py.evaluate(thread, frame, throws);
	/* The recording may have ended meanwhile, and a later one has set its own. */
	if (recording && recording == tw_python_recording)
		tw_py.set_evaluation(interpreter, ours);
	return result;
}

/* The name of the class is the exception's. */
static __attribute__((noinline)) void end_by_exception(struct tw_frame *open)
{
	struct tw_py_object *type = tw_py.error();
	const char *name = type ? tw_py.exception_name(type) : NULL;
	struct tw_raise raise = TW_RAISE(TW_CLASS_ERROR, tw_term_atom_z(name && strlen(name) <= 255 ? name : "?"));

	/* There may be too many atoms. */
	if (tw_term_is_none(raise.value))
		raise.value = tw_term_atom_z("?");
	tw_unwind(open, &raise);
}

static __attribute__((noinline)) struct tw_py_object *evaluate_recorded(struct tw_py_thread *thread,
									struct tw_py_frame *frame, int throws,
									struct tw_python_function *function)
{
	struct tw_py_object *names = NULL, *result;
	struct tw_frame open;

	if (function->may_be_item)
		tw_python_keep_item(frame->function);
	if (function->has_item && (names = frame->locals))
		tw_py.take(names);
	tw_enter0(&function->declared, &open);
	result = tw_py.evaluate(thread, frame, throws);
	if (result)
		tw_leave_void(&open);
	else if (open.is_open)
		end_by_exception(&open);
	if (names) {
		if (result)
			tw_python_keep_item_of(names);
		tw_py.release(names);
	}
	return result;
}

static void give_up(const char *why);

/*
 * The first call of a code object.  NULL: the interpreter is not as it should be, and nothing is recorded any more; or the recording is over,
 * and this call had begun before.
 */
static __attribute__((noinline)) struct tw_python_function *see(const struct tw_py_frame *frame)
{
	struct tw_python_function *function;

	if (!tw_python_recording)
		return NULL;
	/* It ended without the lock, which this thread has; or this is a child that is not recorded. */
	if (!tw_agent_is_active()) {
		tw_python_remove();
		return NULL;
	}
	if (frame->code->object.type != tw_py.code_type) {
		give_up("its frames are not those of CPython 3.11");
		return NULL;
	}
	function = tw_python_see(frame);
	if (tw_python_function_of(frame->code) != function)
		give_up("its code objects are not those of CPython 3.11, or there is no memory");
	return function;
}

static struct tw_py_object *evaluate(struct tw_py_thread *thread, struct tw_py_frame *frame, int throws)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct tw_python_function *function;

	if (UNLIKELY(here - room.low >= room.bytes) && is_deep(here))
		return evaluate_deep(thread, frame, throws);
	function = tw_python_function_of(frame->code);
	if (UNLIKELY(!function))
		function = see(frame);
	/*
	 * The making of a generator runs its frame up to its start, which is no call; each resumption is one.  A call beyond the limit of
	 * recursion never begins.
	 */
	if (!function || (!tw_is_armed(&function->declared) && !function->has_item) ||
	    ((frame->code->flags & TW_PY_RESUMES) && !frame->owner) || thread->recursion_remaining <= 0)
		return tw_py.evaluate(thread, frame, throws);
	return evaluate_recorded(thread, frame, throws, function);
}

/* ---- installation ---- */

void tw_python_tell_why(const char *why)
{
	char text[256];

	snprintf(text, sizeof text, "no functions of Python are recorded: %s", why);
	tell(text);
}

static void give_up(const char *why)
{
	tw_python_tell_why(why);
	state = PYTHON_REFUSED;
	tw_python_remove();
}

/* The first hook of the interpreter is ours: the word that adding it has changed from NULL.  NULL: the list is elsewhere. */
static struct tw_py_audit_entry *own_entry;

static struct tw_py_audit_entry **audit_list(void)
{
	return (struct tw_py_audit_entry **)(void *)(tw_py.runtime + TW_PY_AUDIT_HOOKS_AT);
}

/*
 * An audit hook makes some operations of Python slower.  At its end the interpreter frees the entries, with another allocator than it took
 * them from if the environment asks for one (PYTHONMALLOC); it crashes then.
 */
static void leave_audit(void)
{
	if (own_entry && *audit_list() == own_entry && own_entry->data == &audit_data)
		*audit_list() = own_entry->next;
}

const char *tw_python_is_refused(const struct tw_py_api *api, void *in)
{
	tw_py_evaluate_fn *before = api->evaluation(in);

	if (before == api->evaluate || before == evaluate)
		return NULL;
	return "another function evaluates the frames of this interpreter";
}

const char *tw_python_install(void *in, uint32_t recording)
{
	const char *why = tw_python_is_refused(&tw_py, in);

	if (why)
		return why;
	interpreter = in;
	if (tw_python_index < 0)
		tw_python_index = tw_py.request_extra(NULL);
	if (tw_python_index < 0 || !tw_python_functions_init())
		return "code objects of this interpreter have no room for a word of ours, or there is no memory";
	tw_python_recording = recording;
	tw_py.set_evaluation(interpreter, evaluate);
	return NULL;
}

const char *tw_python_remove(void)
{
	tw_py_evaluate_fn *found;

	if (!tw_python_recording)
		return NULL;
	tw_python_recording = 0;
	found = tw_py.evaluation(interpreter);
	if (found == evaluate)
		tw_py.set_evaluation(interpreter, tw_py.evaluate);
	else if (found != tw_py.evaluate)
		return "a function that came later evaluates frames, and may call ours";
	return NULL;
}

static int audit(const char *event, struct tw_py_object *arguments, void *data)
{
	struct tw_py_thread *thread = tw_py.thread();

	(void)arguments, (void)data;
	if (state == PYTHON_AWAITED && thread && tw_py.is_initialized() &&
	    thread->interpreter == tw_py.main_interpreter()) {
		const char *why = tw_python_install(thread->interpreter, 1);

		state = why ? PYTHON_REFUSED : PYTHON_INSTALLED;
		if (why)
			tw_python_tell_why(why);
	}
	/* The last event is that the entries are about to be freed. */
	if (state != PYTHON_AWAITED || !strcmp(event, "cpython._PySys_ClearAuditHooks"))
		leave_audit();
	return 0;
}

/* ---- looking ---- */

static const struct {
	const char *name;
	size_t at; /* in struct tw_py_api */
} names[] = {
#define NAME(field, symbol)                               \
	{                                                 \
		symbol, offsetof(struct tw_py_api, field) \
	}
	NAME(version, "Py_GetVersion"),
	NAME(is_initialized, "Py_IsInitialized"),
	NAME(add_audit_hook, "PySys_AddAuditHook"),
	NAME(thread, "_PyThreadState_UncheckedGet"),
	NAME(main_interpreter, "PyInterpreterState_Main"),
	NAME(evaluate, "_PyEval_EvalFrameDefault"),
	NAME(evaluation, "_PyInterpreterState_GetEvalFrameFunc"),
	NAME(set_evaluation, "_PyInterpreterState_SetEvalFrameFunc"),
	NAME(request_extra, "_PyEval_RequestCodeExtraIndex"),
	NAME(set_extra, "_PyCode_SetExtra"),
	NAME(fetch_error, "PyErr_Fetch"),
	NAME(restore_error, "PyErr_Restore"),
	NAME(clear_error, "PyErr_Clear"),
	NAME(error, "PyErr_Occurred"),
	NAME(exception_name, "PyExceptionClass_Name"),
	NAME(attribute, "PyObject_GetAttrString"),
	NAME(item, "PyDict_GetItemString"),
	NAME(text, "PyUnicode_AsUTF8"),
	NAME(number, "PyLong_AsLong"),
	NAME(tuple_count, "PyTuple_Size"),
	NAME(tuple_item, "PyTuple_GetItem"),
	NAME(is_subtype, "PyType_IsSubtype"),
	NAME(take, "Py_IncRef"),
	NAME(release, "Py_DecRef"),
	NAME(code_type, "PyCode_Type"),
	NAME(dictionary_type, "PyDict_Type"),
	NAME(function_type, "PyFunction_Type"),
	NAME(string_type, "PyUnicode_Type"),
	NAME(runtime, "_PyRuntime"),
	NAME(is_finalizing, "_Py_IsFinalizing"),
	NAME(make_thread, "PyThreadState_New"),
	NAME(take_lock, "PyEval_RestoreThread"),
	NAME(clear_thread, "PyThreadState_Clear"),
	NAME(delete_current, "PyThreadState_DeleteCurrent"),
	NAME(first_interpreter, "PyInterpreterState_Head"),
	NAME(next_interpreter, "PyInterpreterState_Next"),
	NAME(stop_collector, "PyGC_Disable"),
	NAME(start_collector, "PyGC_Enable"),
	NAME(call, "PyObject_CallOneArg"),
	NAME(list_count, "PyList_Size"),
	NAME(list_item, "PyList_GetItem"),
	NAME(interned, "PyUnicode_InternFromString"),
	NAME(lookup, "_PyType_Lookup"),
	NAME(object_type, "PyBaseObject_Type"),
	NAME(type_type, "PyType_Type"),
#undef NAME
};

bool tw_python_find(void *handle, struct tw_py_api *api, char *why)
{
	const char *lacks = NULL, *version;

	*why = '\0';
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *symbol = dlsym(handle, names[i].name);

		if (!symbol && i == 0)
			return false;
		if (!symbol)
			lacks = names[i].name;
		memcpy((char *)api + names[i].at, &symbol, sizeof symbol);
	}
	version = api->version();
	if (strncmp(version, SUPPORTED, sizeof SUPPORTED - 1) != 0)
		snprintf(why, TW_PYTHON_WHY_BYTES, "this is Python %.*s, and --python knows CPython 3.11 only",
			 (int)strcspn(version, " "), version);
	else if (lacks)
		snprintf(why, TW_PYTHON_WHY_BYTES, "this interpreter does not export %s", lacks);
	return true;
}

static void look(void *handle)
{
	static _Atomic bool is_found;
	bool is_again = false;
	char why[TW_PYTHON_WHY_BYTES];
	struct tw_py_api api;

	if (state != PYTHON_AWAITED || tw_py.version || !tw_python_find(handle, &api, why))
		return;
	/* RELAXED agent.python: one of the threads that open libraries goes on, and nobody reads what it writes before the interpreter runs. */
	if (!tw_cas_relaxed(&is_found, &is_again, true))
		return;
	tw_py.version = api.version;
	state = PYTHON_REFUSED;
	if (*why) {
		tw_python_tell_why(why);
		return;
	}
	tw_py = api;
	if (api.is_initialized())
		tw_python_tell_why("the interpreter began to run unseen");
	else if (*audit_list() || api.add_audit_hook(audit, &audit_data))
		tw_python_tell_why("the program has audit hooks of its own");
	else
		state = PYTHON_AWAITED;
	own_entry = *audit_list();
}

void tw_agent_python_begin(void)
{
	state = PYTHON_AWAITED;
	look(RTLD_DEFAULT);
	dlerror();
}

void tw_agent_python_look(void *handle)
{
	look(handle);
}

void tw_agent_python_end(void)
{
	if (state != PYTHON_AWAITED)
		return;
	if (tw_py.version)
		tw_python_tell_why("the interpreter never began to run");
	/* With children, most programs may be something else. */
	else if (!tw_agent_ring_set.config.follow_fork)
		tw_python_tell_why("this program is no Python, or an interpreter that exports none of its functions");
}
