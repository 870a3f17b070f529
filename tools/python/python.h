/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - the extension module tracewheel._tracewheel: a capture as numbers in buffers.
 *
 * The module fills buffers that its callers made (arrays of numpy, or of the module array), a batch at a time.  Functions and threads are
 * numbers; functions() and threads() are the tables of their names.  Functions for people are in tracewheel/__init__.py.
 *
 * Units    times and durations are in nanoseconds; times count from the first event of the recording.
 * Threads  the interpreter's lock is held all the time.
 * Python   the limited API of 3.11: one file serves later versions too.
 */
#ifndef TW_TOOLS_PYTHON_H
#define TW_TOOLS_PYTHON_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tools/common/patterns.h"
#include "views/folds/pass.h"
#include "views/folds/places.h"

#include "tracewheel/capture.h"

/* No function, and no thread. */
#define TW_PY_NONE UINT32_MAX

struct tw_py_capture {
	PyObject_HEAD struct tw_capture *capture;
	struct tw_capture_info info;
	struct tw_places places; /* of all functions; scanned: which of them return */
	bool is_scanned;
	unsigned readers; /* events() and calls() that are not finished */
};

/* Which events or calls. */
struct tw_py_selection {
	struct tw_patterns patterns; /* none: all */
	uint64_t from_ns, to_ns;     /* of the capture's clock; 0: no end */
	uint64_t kinds;		     /* 0: all */
	int64_t thread;		     /* its number in the system; -1: all */
};

/* Sets the exception for an error of tracewheel/error.h, and returns NULL. */
PyObject *tw_py_raise(int error, const char *what);
/*
 * The arguments of events() and calls().
 *
 * @patterns	a sequence of strings; None: all functions.
 * @start, @end	times as columns have them; below 0: no limit.
 * @thread	below 0: all.
 *
 * False: an exception is set.  tw_py_selection_free() in both cases.
 */
bool tw_py_selection_take(struct tw_py_selection *selection, const struct tw_py_capture *capture, PyObject *patterns,
			  int64_t start, int64_t end, int64_t thread);
void tw_py_selection_free(struct tw_py_selection *selection);
/* Is the function wanted? */
bool tw_py_wants_function(const struct tw_py_selection *selection, const struct tw_capture_function *function);
/* The filter, without places and kinds; its context is the selection. */
struct tw_capture_filter tw_py_filter(const struct tw_py_selection *selection);
/* The state that views keep of a capture is of this one from now on; NULL: of none. */
void tw_py_use(const struct tw_capture *capture);
/* Functions by number; @is_scanned: with what returns.  False: an exception is set. */
bool tw_py_make_places(struct tw_py_capture *capture, bool is_scanned);

static inline int64_t tw_py_time(const struct tw_py_capture *capture, uint64_t ns)
{
	return (int64_t)(ns - capture->info.zero_ns);
}

/* Arrays to fill. */
#define TW_PY_COLUMNS_MAX 24
struct tw_py_columns {
	Py_buffer buffers[TW_PY_COLUMNS_MAX];
	unsigned count;
	Py_ssize_t rows; /* as many as fit all of them */
};

/* From a sequence of writable buffers whose elements have these sizes in bytes, a digit each; more have 8.  False: an exception is set. */
bool tw_py_columns_take(struct tw_py_columns *columns, PyObject *arrays, const char *sizes);
void tw_py_columns_free(struct tw_py_columns *columns);

extern PyType_Spec tw_py_events_spec, tw_py_calls_spec;
/* Made of these, by the module. */
extern PyTypeObject *tw_py_events_type, *tw_py_calls_type;

/* Methods of a capture. */
PyObject *tw_py_events(PyObject *self, PyObject *args, PyObject *names);
PyObject *tw_py_calls(PyObject *self, PyObject *args, PyObject *names);

#endif
