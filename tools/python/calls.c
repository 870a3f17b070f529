/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - calls as they end, with durations: as numbers in buffers. */
#include "tools/python/python.h"
#include "tools/tool.h"
#include "views/folds/call_rows.h"

#include "tracewheel/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct calls {
	PyObject_HEAD struct tw_py_capture *capture; /* NULL: finished */
	struct tw_py_selection selection;
	bool *wanted; /* by function; NULL: all */
	uint32_t wanted_count;
	struct tw_fold fold;
	struct tw_pass *pass;
	struct tw_call_rows rows;
	size_t at; /* of the rows */
	bool is_over;
	bool has_states; /* wanted: rows have them */
};

static void finish(struct calls *self)
{
	if (self->pass)
		tw_pass_close(self->pass);
	self->pass = NULL;
	tw_call_rows_free(&self->rows);
	tw_py_selection_free(&self->selection);
	free(self->wanted);
	self->wanted = NULL;
	if (self->capture) {
		self->capture->readers--;
		Py_DECREF(self->capture);
	}
	self->capture = NULL;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	finish((struct calls *)self);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct calls *calls = self;
	struct tw_step step;
	return tw_call_rows_see(&calls->rows, event, &step);
}

/* All functions are read, so that callers and durations are right; rows of others are left out. */
static int find_wanted(struct calls *calls)
{
	const struct tw_places *places = &calls->capture->places;
	if (!calls->selection.patterns.wanted_count)
		return 0;
	calls->wanted_count = places->function_count;
	calls->wanted = calloc(places->function_count + (size_t)1, sizeof *calls->wanted);
	for (uint32_t i = 0; calls->wanted && i < places->function_count; i++)
		calls->wanted[i] = tw_py_wants_function(&calls->selection, places->functions[i]);
	return calls->wanted ? 0 : TW_ENOMEM;
}

static int begin(struct calls *calls, bool has_details)
{
	struct tw_capture_filter filter = {.wants_own_time = true, .wants_thread_states = calls->has_states};
	calls->rows.from_ns = calls->selection.from_ns;
	calls->rows.to_ns = calls->selection.to_ns;
	calls->rows.details = tw_tool_details;
	calls->rows.reads_details = calls->rows.reads_result = has_details;
	int error = find_wanted(calls);
	if (!error)
		error = tw_call_rows_begin(&calls->rows, calls->capture->capture, &calls->capture->places, &filter);
	calls->fold = (struct tw_fold){.self = calls, .filter = filter, .see = see};
	return error ? error : tw_pass_open(calls->capture->capture, &calls->fold, 1, &calls->pass);
}

PyObject *tw_py_calls(PyObject *self, PyObject *args, PyObject *names)
{
	static char *keys[] = {"functions", "start", "end", "thread", "details", "states", NULL};
	struct tw_py_capture *capture = (struct tw_py_capture *)self;
	PyObject *patterns = Py_None;
	long long start = -1, end = -1, thread = -1;
	int has_details = 0, has_states = 0;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|OLLLpp", keys, &patterns, &start, &end, &thread, &has_details,
					 &has_states))
		return NULL;
	struct calls *calls = (struct calls *)PyType_GenericAlloc(tw_py_calls_type, 0);
	if (!calls)
		return NULL;
	if (!tw_py_selection_take(&calls->selection, capture, patterns, start, end, thread) ||
	    !tw_py_make_places(capture, true)) {
		Py_DECREF(calls);
		return NULL;
	}
	Py_INCREF(self);
	calls->capture = capture;
	calls->has_states = has_states;
	capture->readers++;
	int error = begin(calls, has_details);
	if (!error)
		return (PyObject *)calls;
	Py_DECREF(calls);
	return tw_py_raise(error, "calls");
}

/* Rows, or the end.  False: an exception is set. */
static bool read_more(struct calls *calls)
{
	while (calls->capture && calls->at >= calls->rows.count) {
		tw_call_rows_forget(&calls->rows);
		calls->at = 0;
		if (calls->is_over) {
			finish(calls);
			break;
		}
		int64_t read = tw_pass_step(calls->pass);
		if (!read) {
			tw_call_rows_finish(&calls->rows);
			calls->is_over = true;
		}
		if (read < 0 || calls->rows.has_no_memory) {
			tw_py_raise(read < 0 ? (int)read : TW_ENOMEM, "calls");
			return false;
		}
		if (PyErr_CheckSignals())
			return false;
	}
	return true;
}

static bool is_wanted(const struct calls *calls, const struct tw_call_row *row)
{
	const struct tw_capture_stream *stream = NULL;
	if (calls->wanted && !(row->function < calls->wanted_count && calls->wanted[row->function]))
		return false;
	if (calls->selection.thread < 0)
		return true;
	stream = tw_capture_stream(calls->capture->capture, row->stream);
	return stream && (uint32_t)stream->thread_id == calls->selection.thread;
}

/* Durations are floating-point numbers, which can be unknown: exact up to 104 days. */
enum { START, DURATION, SELF, ID, PARENT, FUNCTION, CALLER, THREAD, DEPTH, ENDED, STATES };
static const char sizes[] = "8888844441", sizes_with_states[] = "8888844441888";
/* Of calls whose ends were not recorded; else enum tw_frame_end. */
#define NO_END 255

static void put_row(const struct calls *calls, const struct tw_py_columns *columns, const struct tw_call_row *row,
		    Py_ssize_t at)
{
	const struct tw_capture_stream *stream = tw_capture_stream(calls->capture->capture, row->stream);
	const Py_buffer *to = columns->buffers;
	((int64_t *)to[START].buf)[at] = tw_py_time(calls->capture, row->start_ns);
	((double *)to[DURATION].buf)[at] = row->has_end ? (double)row->duration_ns : (double)NAN;
	((double *)to[SELF].buf)[at] = row->has_end ? (double)row->self_ns : (double)NAN;
	((int64_t *)to[ID].buf)[at] = (int64_t)row->id;
	((int64_t *)to[PARENT].buf)[at] = (int64_t)row->parent;
	((uint32_t *)to[FUNCTION].buf)[at] = row->function;
	((uint32_t *)to[CALLER].buf)[at] = row->has_caller ? row->caller : TW_PY_NONE;
	((uint32_t *)to[THREAD].buf)[at] = stream ? stream->thread : TW_PY_NONE;
	((uint32_t *)to[DEPTH].buf)[at] = row->depth;
	((uint8_t *)to[ENDED].buf)[at] = row->has_end ? (uint8_t)row->how : NO_END;
	for (unsigned i = 0; calls->has_states && i < TW_STATE_SUMS; i++)
		((double *)to[STATES + i].buf)[at] = row->has_states ? (double)row->states.ns[i] : (double)NAN;
}

/* Adds (details of the call, details of its end), None for what is not there. */
static bool add_details(PyObject *list, const struct tw_call_row *row)
{
	PyObject *both = Py_BuildValue("(z#,z#)", row->details, (Py_ssize_t)row->details_bytes, row->result,
				       (Py_ssize_t)row->result_bytes);
	bool is_right = both && PyList_Append(list, both) == 0;
	Py_XDECREF(both);
	return is_right;
}

/* fill([start, duration, self, id, parent, function, caller, thread, depth, ended and, if wanted, ran, preempted, off], list or None): how many
   rows were written, 0 at the end. */
static PyObject *fill(PyObject *self, PyObject *args)
{
	struct calls *calls = (struct calls *)self;
	struct tw_py_columns columns;
	PyObject *arrays, *list;
	Py_ssize_t at = 0;
	if (!PyArg_ParseTuple(args, "OO", &arrays, &list))
		return NULL;
	bool is_right = tw_py_columns_take(&columns, arrays, calls->has_states ? sizes_with_states : sizes);
	if (calls->capture)
		tw_py_use(calls->capture->capture);
	while (is_right && at < columns.rows) {
		is_right = read_more(calls);
		if (!is_right || !calls->capture)
			break;
		for (; is_right && at < columns.rows && calls->at < calls->rows.count; calls->at++) {
			const struct tw_call_row *row = &calls->rows.rows[calls->at];
			if (!is_wanted(calls, row))
				continue;
			put_row(calls, &columns, row, at++);
			is_right = list == Py_None || add_details(list, row);
		}
	}
	tw_py_columns_free(&columns);
	return is_right ? PyLong_FromSsize_t(at) : NULL;
}

static PyMethodDef methods[] = {{"fill", fill, METH_VARARGS, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_methods, methods}, {0}};
PyType_Spec tw_py_calls_spec = {.name = "tracewheel._tracewheel.Calls",
				.basicsize = sizeof(struct calls),
				.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				.slots = slots};
