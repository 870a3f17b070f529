/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module: opens captures, and says what they hold. */
#include "tools/python/python.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

PyTypeObject *tw_py_events_type, *tw_py_calls_type;
static PyTypeObject *capture_type;

PyObject *tw_py_raise(int error, const char *what)
{
	PyObject *type = error == TW_ENOMEM    ? PyExc_MemoryError
			 : error == TW_ENOENT  ? PyExc_FileNotFoundError
			 : error == TW_EPERM   ? PyExc_PermissionError
			 : error == TW_EBADARG ? PyExc_ValueError
					       : PyExc_OSError;
	return PyErr_Format(type, "%s: %s", what, tw_strerror(error));
}

/* ---- selections ---- */

static bool take_pattern(struct tw_py_selection *selection, PyObject *text)
{
	Py_ssize_t bytes;
	const char *pattern = PyUnicode_AsUTF8AndSize(text, &bytes), *problem = "it is not one line";
	struct tw_pattern *parsed = NULL;
	char *line = NULL;
	if (!pattern)
		return false;
	bool is_line = strlen(pattern) == (size_t)bytes && !strchr(pattern, '\n');
	bool is_right = is_line && tw_pattern_parse(pattern, &parsed, &problem) == 0;
	tw_pattern_destroy(parsed);
	if (!is_right)
		PyErr_Format(PyExc_ValueError, "'%s' is not a pattern: %s", pattern, problem);
	if (is_right && asprintf(&line, "pattern %s", pattern) < 0)
		line = NULL;
	if (is_right && (!line || !tw_patterns_read(&selection->patterns, line))) {
		PyErr_NoMemory();
		is_right = false;
	}
	free(line);
	return is_right;
}

bool tw_py_selection_take(struct tw_py_selection *selection, const struct tw_py_capture *capture, PyObject *patterns,
			  int64_t start, int64_t end, int64_t thread)
{
	Py_ssize_t count = patterns == Py_None ? 0 : PySequence_Size(patterns);
	if (!capture->capture)
		PyErr_SetString(PyExc_ValueError, "the capture is closed");
	if (count < 0 || !capture->capture)
		return false;
	selection->from_ns = start < 0 ? 0 : capture->info.zero_ns + (uint64_t)start;
	selection->to_ns = end < 0 ? 0 : capture->info.zero_ns + (uint64_t)end;
	selection->thread = thread;
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *text = PySequence_GetItem(patterns, i);
		bool is_right = text && take_pattern(selection, text);
		Py_XDECREF(text);
		if (!is_right)
			return false;
	}
	return true;
}

void tw_py_selection_free(struct tw_py_selection *selection)
{
	tw_patterns_free(&selection->patterns);
}

bool tw_py_wants_function(const struct tw_py_selection *selection, const struct tw_capture_function *function)
{
	const struct tw_capture_module *module = function ? function->module : NULL;
	if (!selection->patterns.wanted_count)
		return true;
	return function &&
	       tw_patterns_match(&selection->patterns,
				 &(struct tw_patterns_subject){.module = module ? module->name : "",
							       .path = module ? module->path : NULL,
							       .soname = module ? module->soname : NULL,
							       .function = function->name,
							       .arity = function->arity == TW_CAPTURE_ARITY_UNKNOWN
										? TW_PATTERN_ARITY_UNKNOWN
										: function->arity});
}

static bool wants_stream(void *context, const struct tw_capture_stream *stream)
{
	const struct tw_py_selection *selection = context;
	return (uint32_t)stream->thread_id == selection->thread;
}

struct tw_capture_filter tw_py_filter(const struct tw_py_selection *selection)
{
	return (struct tw_capture_filter){.from_ns = selection->from_ns,
					  .to_ns = selection->to_ns,
					  .wants_stream = selection->thread < 0 ? NULL : wants_stream,
					  .context = (void *)selection};
}

/* ---- buffers ---- */

bool tw_py_columns_take(struct tw_py_columns *columns, PyObject *arrays, const char *sizes)
{
	Py_ssize_t count = PySequence_Size(arrays);
	size_t named = strlen(sizes);
	*columns = (struct tw_py_columns){.rows = PY_SSIZE_T_MAX};
	if (count < 0 || (size_t)count < named || count > TW_PY_COLUMNS_MAX) {
		PyErr_Format(PyExc_ValueError, "from %zu to %d arrays are wanted", named, TW_PY_COLUMNS_MAX);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		Py_ssize_t size = (size_t)i < named ? sizes[i] - '0' : 8;
		PyObject *array = PySequence_GetItem(arrays, i);
		bool is_right = array && PyObject_GetBuffer(array, &columns->buffers[i], PyBUF_WRITABLE) == 0;
		Py_XDECREF(array);
		if (!is_right)
			return false;
		columns->count++;
		Py_ssize_t rows = columns->buffers[i].len / size;
		columns->rows = rows < columns->rows ? rows : columns->rows;
	}
	return true;
}

void tw_py_columns_free(struct tw_py_columns *columns)
{
	while (columns->count)
		PyBuffer_Release(&columns->buffers[--columns->count]);
}

/* ---- a capture ---- */

void tw_py_use(const struct tw_capture *capture)
{
	static const struct tw_capture *used;
	if (used != capture)
		tw_names_use(capture);
	used = capture;
}

static int open_path(const char *path, struct tw_capture **out)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = TW_ENOTSUP;
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		error = tw_capture_open_stream_file(fd, NULL, out);
	else
		error = tw_capture_open(path, NULL, out);
	if (fd >= 0)
		close(fd);
	return error;
}

static PyObject *open_capture(PyObject *module, PyObject *args)
{
	PyObject *path = NULL;
	struct tw_capture *capture = NULL;
	(void)module;
	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
		return NULL;
	int error = open_path(PyBytes_AsString(path), &capture);
	struct tw_py_capture *self = error ? NULL : (struct tw_py_capture *)PyType_GenericAlloc(capture_type, 0);
	if (error)
		tw_py_raise(error, PyBytes_AsString(path));
	if (self) {
		self->capture = capture;
		tw_capture_info(capture, &self->info);
	} else {
		tw_capture_close(capture);
	}
	Py_DECREF(path);
	return (PyObject *)self;
}

static void end_capture(struct tw_py_capture *self)
{
	tw_py_use(NULL);
	tw_places_free(&self->places);
	self->places = (struct tw_places){0};
	tw_capture_close(self->capture);
	self->capture = NULL;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	end_capture((struct tw_py_capture *)self);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static struct tw_py_capture *is_open(PyObject *self)
{
	struct tw_py_capture *capture = (struct tw_py_capture *)self;
	tw_py_use(capture->capture);
	if (capture->capture)
		return capture;
	PyErr_SetString(PyExc_ValueError, "the capture is closed");
	return NULL;
}

bool tw_py_make_places(struct tw_py_capture *capture, bool is_scanned)
{
	const struct tw_capture_filter all = {0};
	struct tw_count count;
	if (capture->places.images && (capture->is_scanned || !is_scanned))
		return true;
	tw_py_use(capture->capture);
	tw_places_free(&capture->places);
	capture->places = (struct tw_places){0};
	int error = is_scanned ? tw_places_make(&capture->places, capture->capture, &all)
			       : tw_places_begin(&capture->places, capture->capture, &count);
	if (!error && !is_scanned)
		error = tw_places_end(&capture->places);
	capture->is_scanned = is_scanned;
	if (error)
		tw_py_raise(error, "the functions of the capture");
	return !error;
}

static PyObject *text_of(const char *text)
{
	return PyUnicode_DecodeUTF8(text ? text : "", (Py_ssize_t)strlen(text ? text : ""), "backslashreplace");
}

/* Adds a value that it takes.  False: an exception is set. */
static bool put(PyObject *dict, const char *key, PyObject *value)
{
	bool is_right = value && PyDict_SetItemString(dict, key, value) == 0;
	Py_XDECREF(value);
	return is_right;
}

static PyObject *missing_of(const struct tw_capture *capture)
{
	struct tw_capture_account account;
	PyObject *missing = PyDict_New();
	tw_capture_account(capture, &account);
	for (unsigned cause = 0; missing && cause < TW_MISSING_CAUSES; cause++) {
		const struct tw_capture_missing *at = &account.missing[cause];
		if (!at->events && !at->places && !at->has_more)
			continue;
		PyObject *value =
			Py_BuildValue("{s:K,s:K,s:O}", "events", (unsigned long long)at->events, "places",
				      (unsigned long long)at->places, "more", at->has_more ? Py_True : Py_False);
		if (!put(missing, tw_missing_cause_name(cause), value))
			Py_CLEAR(missing);
	}
	return missing;
}

static PyObject *info(PyObject *self, PyObject *unused)
{
	struct tw_py_capture *capture = is_open(self);
	struct tw_capture_account account;
	(void)unused;
	if (!capture)
		return NULL;
	tw_capture_info(capture->capture, &capture->info);
	tw_capture_account(capture->capture, &account);
	const struct tw_capture_info *is = &capture->info;
	return Py_BuildValue("{s:K,s:L,s:L,s:K,s:K,s:I,s:I,s:K,s:K,s:O,s:O,s:N}", "events",
			     (unsigned long long)is->events, "start", (long long)(is->start_ns - is->zero_ns), "end",
			     (long long)(is->end_ns - is->zero_ns), "start_wall", (unsigned long long)is->start_wall_ns,
			     "zero_monotonic", (unsigned long long)is->zero_ns, "threads", (unsigned)is->threads,
			     "segments", (unsigned)is->segments, "bytes", (unsigned long long)is->file_bytes,
			     "raw_bytes", (unsigned long long)is->raw_bytes, "complete",
			     account.is_complete ? Py_True : Py_False, "whole", account.is_whole ? Py_True : Py_False,
			     "missing", missing_of(capture->capture));
}

/* (name, module, function, linkage, arity or None), by number. */
static PyObject *functions(PyObject *self, PyObject *unused)
{
	struct tw_py_capture *capture = is_open(self);
	(void)unused;
	if (!capture || !tw_py_make_places(capture, false))
		return NULL;
	const struct tw_places *places = &capture->places;
	PyObject *list = PyList_New(0);
	for (uint32_t i = 0; list && i < places->function_count; i++) {
		const struct tw_capture_function *at = places->functions[i];
		bool has_arity = at && at->arity != TW_CAPTURE_ARITY_UNKNOWN;
		PyObject *arity = has_arity ? PyLong_FromUnsignedLong(at->arity) : (Py_INCREF(Py_None), Py_None);
		PyObject *row = Py_BuildValue("(N,N,N,N,N)", text_of(places->names[i].text),
					      text_of(at && at->module ? at->module->name : NULL),
					      text_of(at ? tw_name_shown(at->name) : NULL),
					      text_of(at ? at->name : NULL), arity);
		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* (thread, name, process, program) by number; streams of one thread share it. */
static PyObject *threads(PyObject *self, PyObject *unused)
{
	struct tw_py_capture *capture = is_open(self);
	const struct tw_capture_stream *stream;
	char name[TW_THREAD_NAME_BYTES];
	PyObject *rows = PyDict_New();
	(void)unused;
	if (!capture)
		Py_CLEAR(rows);
	for (uint32_t i = 0; rows && (stream = tw_capture_stream(capture->capture, i)); i++) {
		const struct tw_capture_image *image = tw_capture_image(capture->capture, stream->image);
		PyObject *number = PyLong_FromUnsignedLong(stream->thread);
		PyObject *row =
			Py_BuildValue("(i,N,i,N)", (int)stream->thread_id,
				      text_of(tw_thread_name(capture->capture, stream, name)),
				      image ? (int)image->process_id : 0, text_of(image ? image->program : NULL));
		if (!number || !row || PyDict_SetItem(rows, number, row))
			Py_CLEAR(rows);
		Py_XDECREF(number);
		Py_XDECREF(row);
	}
	return rows;
}

/* The names of kinds by number. */
static PyObject *kinds(PyObject *module, PyObject *unused)
{
	PyObject *rows = PyDict_New();
	(void)module;
	(void)unused;
	for (unsigned kind = 0; rows && kind < 64; kind++) {
		const struct tw_print_kind *at = tw_print_kind((uint8_t)kind);
		if (at && !put(rows, at->word, PyLong_FromUnsignedLong(kind)))
			Py_CLEAR(rows);
	}
	if (rows && (!put(rows, "lost", PyLong_FromUnsignedLong(TW_CAPTURE_LOSS)) ||
		     !put(rows, "own_time", PyLong_FromUnsignedLong(TW_CAPTURE_OWN_TIME))))
		Py_CLEAR(rows);
	return rows;
}

static PyObject *close_capture(PyObject *self, PyObject *unused)
{
	struct tw_py_capture *capture = (struct tw_py_capture *)self;
	(void)unused;
	if (capture->readers) {
		PyErr_SetString(PyExc_BufferError, "events or calls of the capture are still read");
		return NULL;
	}
	end_capture(capture);
	Py_INCREF(Py_None);
	return Py_None;
}

static PyMethodDef methods[] = {{"info", info, METH_NOARGS, NULL},
				{"functions", functions, METH_NOARGS, NULL},
				{"threads", threads, METH_NOARGS, NULL},
				{"events", (PyCFunction)(void (*)(void))tw_py_events, METH_VARARGS | METH_KEYWORDS,
				 NULL},
				{"calls", (PyCFunction)(void (*)(void))tw_py_calls, METH_VARARGS | METH_KEYWORDS, NULL},
				{"close", close_capture, METH_NOARGS, NULL},
				{0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_methods, methods}, {0}};
static PyType_Spec capture_spec = {.name = "tracewheel._tracewheel.Capture",
				   .basicsize = sizeof(struct tw_py_capture),
				   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				   .slots = slots};

static PyMethodDef module_methods[] = {{"open", open_capture, METH_VARARGS, NULL},
				       {"kinds", kinds, METH_NOARGS, NULL},
				       {0}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
				 .m_name = "_tracewheel",
				 .m_size = -1,
				 .m_methods = module_methods};

PyMODINIT_FUNC PyInit__tracewheel(void);

PyMODINIT_FUNC PyInit__tracewheel(void)
{
	capture_type = (PyTypeObject *)PyType_FromSpec(&capture_spec);
	tw_py_events_type = (PyTypeObject *)PyType_FromSpec(&tw_py_events_spec);
	tw_py_calls_type = (PyTypeObject *)PyType_FromSpec(&tw_py_calls_spec);
	return capture_type && tw_py_events_type && tw_py_calls_type ? PyModule_Create(&definition) : NULL;
}
