/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - events in the order of the capture: as numbers in buffers, or one by one with what they hold. */
#include "tools/python/python.h"
#include "tools/tool.h"
#include "views/names/names.h"
#include "views/names/payload.h"

#include "tracewheel/blocks.h"
#include "tracewheel/error.h"
#include "tracewheel/spans.h"

#include <stdlib.h>
#include <string.h>

struct events {
	PyObject_HEAD struct tw_py_capture *capture; /* NULL: finished */
	struct tw_py_selection selection;
	struct tw_capture_events *reader;
	const struct tw_capture_event *batch;
	int64_t at, count; /* of the batch */
	/* Instead of a reader of events, for numbers alone: records of blocks, where their order is that of events, or none is wanted. */
	struct tw_capture_blocks *blocks;
	struct tw_capture_batch block;
	const struct tw_capture_record *record; /* the next one of the block */
	struct tw_capture_clock clock;		/* the piece of the last record */
	uint64_t kinds;
	struct tw_marks wanted; /* places; without images: all */
};

static void finish(struct events *self)
{
	tw_capture_events_destroy(self->reader);
	self->reader = NULL;
	tw_capture_blocks_destroy(self->blocks);
	self->blocks = NULL;
	self->record = NULL;
	tw_marks_free(&self->wanted);
	tw_py_selection_free(&self->selection);
	if (self->capture) {
		self->capture->readers--;
		Py_DECREF(self->capture);
	}
	self->capture = NULL;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	finish((struct events *)self);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)image;
	return tw_py_wants_function(context, place->function);
}

static uint8_t mark(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	return tw_py_wants_function(context, place->function);
}

enum { IN_ORDER, BY_BLOCKS_IN_ORDER, BY_BLOCKS };

/* Blocks serve numbers alone; a stream has none. */
static int begin(struct events *events, const struct tw_capture_filter *filter, int order)
{
	struct tw_capture *capture = events->capture->capture;
	int error = order == IN_ORDER ? TW_ENOTSUP : tw_capture_blocks_create(capture, filter, true, &events->blocks);
	if (!error && order == BY_BLOCKS_IN_ORDER && !tw_capture_blocks_are_ordered(events->blocks)) {
		tw_capture_blocks_destroy(events->blocks);
		events->blocks = NULL;
		error = TW_ENOTSUP;
	}
	if (error == TW_ENOTSUP)
		return tw_capture_events_create(capture, filter, &events->reader);
	events->kinds = (filter->kinds ? filter->kinds : TW_FOLD_ALL_KINDS) | UINT64_C(1) << TW_CAPTURE_LOSS;
	if (!error && filter->wants_place &&
	    !tw_marks_make(&events->wanted, events->capture->capture, mark, &events->selection))
		error = TW_ENOMEM;
	return error;
}

PyObject *tw_py_events(PyObject *self, PyObject *args, PyObject *names)
{
	static char *keys[] = {"functions", "start", "end", "kinds", "thread", "order", NULL};
	struct tw_py_capture *capture = (struct tw_py_capture *)self;
	PyObject *patterns = Py_None;
	long long start = -1, end = -1, thread = -1;
	unsigned long long kinds = 0;
	int order = IN_ORDER;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|OLLKLi", keys, &patterns, &start, &end, &kinds, &thread,
					 &order))
		return NULL;
	struct events *events = (struct events *)PyType_GenericAlloc(tw_py_events_type, 0);
	if (!events)
		return NULL;
	if (!tw_py_selection_take(&events->selection, capture, patterns, start, end, thread) ||
	    !tw_py_make_places(capture, false)) {
		Py_DECREF(events);
		return NULL;
	}
	Py_INCREF(self);
	events->capture = capture;
	capture->readers++;
	struct tw_capture_filter filter = tw_py_filter(&events->selection);
	filter.kinds = kinds;
	if (events->selection.patterns.wanted_count)
		filter.wants_place = wants_place;
	int error = begin(events, &filter, order);
	if (!error)
		return (PyObject *)events;
	Py_DECREF(events);
	return tw_py_raise(error, "events");
}

/* More events.  Returns their number, 0 at the end; below 0: an exception is set. */
static int64_t read_more(struct events *events)
{
	if (!events->capture)
		return 0;
	tw_py_use(events->capture->capture);
	if (events->at < events->count)
		return events->count - events->at;
	events->at = 0;
	events->count = tw_capture_events_next(events->reader, &events->batch);
	if (events->count < 0)
		tw_py_raise((int)events->count, "events");
	if (events->count <= 0)
		finish(events);
	if (PyErr_CheckSignals())
		return -1;
	return events->count;
}

static bool has_function(const struct tw_capture_event *event)
{
	bool has_place = event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_STACK;
	return has_place && !(event->kind == TW_CAPTURE_RETURN_TO && event->payload_words);
}

static uint32_t function_of(const struct events *events, const struct tw_capture_event *event)
{
	return has_function(event) ? tw_places_function(&events->capture->places, event->image, event->id) : TW_PY_NONE;
}

/* Of a thread's number: streams do not move, and are few. */
static uint32_t thread_of(const struct events *events, uint32_t stream)
{
	const struct tw_capture_stream *at = tw_capture_stream(events->capture->capture, stream);
	return at ? at->thread : TW_PY_NONE;
}

/* The columns of the rows from `at` on. */
struct target {
	int64_t *time;
	uint8_t *kind;
	uint32_t *function, *thread;
	const struct tw_py_columns *columns;
};

enum { TIME, KIND, FUNCTION, THREAD, WORDS };

static void put_rows(const struct events *events, const struct target *target, Py_ssize_t at, int64_t count)
{
	const struct tw_capture_event *event = &events->batch[events->at];
	uint32_t stream = TW_CAPTURE_NONE, thread = TW_PY_NONE;
	for (int64_t i = 0; i < count; i++, event++, at++) {
		if (event->stream != stream)
			thread = thread_of(events, stream = event->stream);
		target->time[at] = tw_py_time(events->capture, event->time_ns);
		target->kind[at] = event->kind;
		target->function[at] = function_of(events, event);
		target->thread[at] = thread;
		for (unsigned k = WORDS; k < target->columns->count; k++)
			((uint64_t *)target->columns->buffers[k].buf)[at] =
				k - WORDS < event->payload_words ? event->payload[k - WORDS] : 0;
	}
}

/* ---- the same of blocks ---- */

static inline uint64_t ns_of(struct events *events, uint64_t ticks)
{
	if (!tw_capture_clock_has(&events->clock, ticks))
		tw_capture_clock_at(events->capture->capture, ticks, &events->clock);
	return tw_capture_clock_ns(&events->clock, ticks);
}

/* A loss is selected if any part of its time is. */
static bool is_before_end(struct events *events, const struct tw_capture_record *record, unsigned kind, uint64_t ns)
{
	uint64_t to_ns = events->selection.to_ns;
	if (!to_ns || ns < to_ns)
		return true;
	return kind == TW_CAPTURE_LOSS && ns_of(events, *record->payload) < to_ns;
}

static void put_words(const struct target *target, Py_ssize_t at, const struct tw_capture_record *record)
{
	uint32_t words = tw_capture_record_words(record), skipped = tw_capture_record_has_cpu_time(record);
	for (unsigned k = WORDS; k < target->columns->count; k++) {
		uint32_t word = k - WORDS + skipped;
		((uint64_t *)target->columns->buffers[k].buf)[at] = word < words ? record->payload[word] : 0;
	}
}

/* The same for all records of a block. */
struct of_block {
	const uint32_t *functions; /* by place */
	uint32_t count, thread;
};

static bool has_limits(const struct events *events, const struct target *target)
{
	return events->wanted.images || events->selection.from_ns || events->selection.to_ns ||
	       target->columns->count > WORDS;
}

/*
 * Rows of calls and returns without limits, as nearly all are: through pointers and a piece of the clock that no store can change.  Returns the
 * first record that is anything else.
 */
static const struct tw_capture_record *put_plain(struct events *events, const struct target *target,
						 const struct of_block *of, const struct tw_capture_record *record,
						 Py_ssize_t *row)
{
	const struct tw_capture_record *end = events->block.end;
	const struct tw_capture_clock clock = events->clock;
	const uint64_t kinds = events->kinds;
	const Py_ssize_t rows = target->columns->rows;
	int64_t *restrict times = target->time;
	uint8_t *restrict kinds_of = target->kind;
	uint32_t *restrict functions = target->function, *restrict threads = target->thread;
	Py_ssize_t at = *row;
	for (; record < end && at < rows; at++, record = tw_capture_record_next(record)) {
		/* With the bit of a record that has processor time. */
		unsigned kind = (unsigned)(record->head & 0xff);
		uint32_t id = tw_capture_record_id(record);
		if (kind < TW_CAPTURE_CALL || kind > TW_CAPTURE_EXCEPTION_FROM || !(kinds >> kind & 1) ||
		    !tw_capture_clock_has(&clock, record->ticks))
			break;
		times[at] = tw_py_time(events->capture, tw_capture_clock_ns(&clock, record->ticks));
		kinds_of[at] = (uint8_t)kind;
		functions[at] = id < of->count ? of->functions[id] : TW_PLACES_UNKNOWN;
		threads[at] = of->thread;
	}
	*row = at;
	return record;
}

/* Rows of the block's records, as many as fit.  Returns the row behind them. */
static Py_ssize_t put_records(struct events *events, const struct target *target, Py_ssize_t at)
{
	const struct tw_capture_batch *block = &events->block;
	const struct tw_capture_record *record = events->record;
	const struct tw_places *places = &events->capture->places;
	const uint32_t count = block->image < places->image_count ? places->images[block->image].count : 0;
	const uint32_t *functions = count ? places->images[block->image].function : NULL;
	const uint32_t thread = thread_of(events, block->stream);
	const struct of_block of = {functions, count, thread};
	const bool is_plain = !has_limits(events, target);
	for (; record < block->end && at < target->columns->rows; record = tw_capture_record_next(record)) {
		if (is_plain)
			record = put_plain(events, target, &of, record, &at);
		if (record >= block->end || at == target->columns->rows)
			break;
		unsigned kind = tw_capture_record_kind(record);
		uint32_t id = tw_capture_record_id(record);
		bool has_place = kind >= TW_CAPTURE_CALL && kind <= TW_CAPTURE_STACK;
		if (!(events->kinds >> (kind < 63 ? kind : 63) & 1) ||
		    (events->wanted.images && has_place && !tw_marks_at(&events->wanted, block->image, id)))
			continue;
		uint64_t ns = ns_of(events, record->ticks);
		if (ns < events->selection.from_ns || !is_before_end(events, record, kind, ns))
			continue;
		/* The function that control returned to is among the words, if it is known. */
		if (kind == TW_CAPTURE_RETURN_TO)
			has_place = tw_capture_record_words(record) == tw_capture_record_has_cpu_time(record);
		target->time[at] = tw_py_time(events->capture, ns);
		target->kind[at] = (uint8_t)kind;
		target->function[at] = !has_place ? TW_PY_NONE : id < count ? functions[id] : TW_PLACES_UNKNOWN;
		target->thread[at] = thread;
		put_words(target, at++, record);
	}
	events->record = record < block->end ? record : NULL;
	return at;
}

/* Fills all columns, or up to the end.  Returns the rows; below 0: an exception is set. */
static Py_ssize_t fill_of_blocks(struct events *events, const struct target *target)
{
	Py_ssize_t at = 0;
	tw_py_use(events->capture->capture);
	while (at < target->columns->rows) {
		if (!events->record) {
			int found = tw_capture_blocks_next(events->blocks, &events->block);
			if (found < 0)
				tw_py_raise(found, "events");
			if (found <= 0)
				finish(events);
			if (found < 0 || PyErr_CheckSignals())
				return -1;
			if (!found)
				break;
			events->record = events->block.first;
		}
		at = put_records(events, target, at);
	}
	return at;
}

/* fill([time, kind, function, thread, word1 ...]): how many rows were written, 0 at the end. */
static PyObject *fill(PyObject *self, PyObject *arrays)
{
	struct events *events = (struct events *)self;
	struct tw_py_columns columns;
	Py_ssize_t at = 0;
	bool is_right = tw_py_columns_take(&columns, arrays, "8144");
	struct target target = {columns.buffers[TIME].buf, columns.buffers[KIND].buf, columns.buffers[FUNCTION].buf,
				columns.buffers[THREAD].buf, &columns};
	if (is_right && events->blocks) {
		at = fill_of_blocks(events, &target);
		is_right = at >= 0;
		tw_py_columns_free(&columns);
		return is_right ? PyLong_FromSsize_t(at) : NULL;
	}
	while (is_right && at < columns.rows) {
		int64_t ready = read_more(events);
		is_right = ready >= 0;
		if (ready <= 0)
			break;
		ready = ready < columns.rows - at ? ready : columns.rows - at;
		put_rows(events, &target, at, ready);
		events->at += ready;
		at += ready;
	}
	tw_py_columns_free(&columns);
	return is_right ? PyLong_FromSsize_t(at) : NULL;
}

/* JSON text of what `print --format json` has for the event alone; None: nothing. */
static PyObject *details_of(const struct events *events, const struct tw_capture_event *event)
{
	size_t bytes;
	char *details = tw_tool_details(events->capture->capture, event, &bytes);
	if (!details)
		Py_RETURN_NONE;
	PyObject *text = PyUnicode_DecodeUTF8(details, (Py_ssize_t)bytes, "backslashreplace");
	free(details);
	return text;
}

static PyObject *pid_of(const struct events *events, const struct tw_capture_event *event)
{
	char pid[64];
	if (!event->tracee_id)
		Py_RETURN_NONE;
	size_t bytes = tw_name_pid(events->capture->capture, event->image, event->tracee_id, pid, sizeof pid);
	return PyUnicode_DecodeUTF8(pid, (Py_ssize_t)bytes, "backslashreplace");
}

/* (time, kind, function or None, thread, pid or None, details or None) */
static PyObject *row_of(const struct events *events, const struct tw_capture_event *event)
{
	uint32_t function = function_of(events, event);
	PyObject *number = function == TW_PY_NONE ? (Py_INCREF(Py_None), Py_None) : PyLong_FromUnsignedLong(function);
	return Py_BuildValue("(L,i,N,I,N,N)", (long long)tw_py_time(events->capture, event->time_ns), event->kind,
			     number, thread_of(events, event->stream), pid_of(events, event),
			     details_of(events, event));
}

/* The next rows, as they are ready; an empty list at the end. */
static PyObject *next_rows(PyObject *self, PyObject *unused)
{
	struct events *events = (struct events *)self;
	PyObject *list = PyList_New(0);
	(void)unused;
	int64_t ready = list ? read_more(events) : -1;
	/* Not all at once: what a caller does not want to read is not made. */
	for (int64_t i = 0; list && i < ready && i < 1024; i++) {
		PyObject *row = row_of(events, &events->batch[events->at]);
		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
		events->at++;
	}
	if (ready < 0)
		Py_CLEAR(list);
	return list;
}

static PyMethodDef methods[] = {{"fill", fill, METH_O, NULL}, {"next_rows", next_rows, METH_NOARGS, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_methods, methods}, {0}};
PyType_Spec tw_py_events_spec = {.name = "tracewheel._tracewheel.Events",
				 .basicsize = sizeof(struct events),
				 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				 .slots = slots};
