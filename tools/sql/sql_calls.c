/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_calls.c - the table `calls`: a row a call, when it ends, by the fold of stacks.
 *
 * A query that limits the time need not read what comes before, if it asks for nothing that depends on it (the hidden columns do):
 *
 *	1 Reading begins at the limit.  Calls that return in the part are certain: they lie in it as a whole.
 *	2 Reading ends behind the limit when no call of the part is open any more.
 *	3 All other ends (a call was cut, is open at the end, has no return) depend on calls from before.  At the first sign of one the
 *	  capture is read again from its beginning; calls that have returned up to there were given already.
 *
 * A thread or a function alone is read where the rest of the capture cannot change its rows: if nothing was lost, if threads run the
 * calls, and, for a function, if all of its calls returned.
 */
#include "tools/sql/sql_groups.h"
#include "views/folds/locks.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

#define ARGUMENTS_MAX 6

static const struct tw_sql_column columns[] = {
	[TW_CALL_START] = {"start", "INTEGER", false, TW_SQL_TIME,
			   "when it began, in ns since the first event of the recording"},
	[TW_CALL_DURATION] =
		{"duration", "INTEGER", false, TW_SQL_NO_LIMIT,
		 "how long it took in ns, without the tracer's own time; NULL if its end was not recorded"},
	[TW_CALL_SELF] = {"self", "INTEGER", false, TW_SQL_NO_LIMIT,
			  "the part of duration in the function itself, without the calls that it made"},
	[TW_CALL_ENDED] =
		{"ended", "TEXT", false, TW_SQL_NO_LIMIT,
		 "returned, exception, cut: no return was seen, open: at the end, lost: in a loss; NULL: ends are not recorded"},
	[TW_CALL_PROCESS] = {"process", "INTEGER", false, TW_SQL_PROCESS, "the kernel's number of the process"},
	[TW_CALL_THREAD] = {"thread", "INTEGER", false, TW_SQL_THREAD,
			    "the kernel's number of the thread on which it began"},
	[TW_CALL_THREAD_NAME] = {"thread_name", "TEXT", false, TW_SQL_NO_LIMIT, "the last name of that thread"},
	[TW_CALL_PID] = {"pid", "TEXT", false, TW_SQL_NO_LIMIT, "the traced process, <0.number.serial>"},
	[TW_CALL_MODULE] = {"module", "TEXT", false, TW_SQL_MODULE, "the object of the function"},
	[TW_CALL_FUNCTION] = {"function", "TEXT", false, TW_SQL_FUNCTION, "the function, demangled"},
	[TW_CALL_ARGS] = {"args", "TEXT", false, TW_SQL_NO_LIMIT,
			  "its arguments as a JSON array, if they were recorded"},
	[TW_CALL_RESULT] = {"result", "", false, TW_SQL_NO_LIMIT,
			    "what it returned, if that was recorded; structs as JSON"},
	[TW_CALL_ERRNO] = {"errno", "TEXT", false, TW_SQL_NO_LIMIT,
			   "the name of its error, ENOENT ..., if a prototype says that it has one"},
	[TW_CALL_ID] = {"id", "INTEGER", true, TW_SQL_NO_LIMIT, "its number in the order in which calls began, from 1"},
	[TW_CALL_PARENT] = {"parent", "INTEGER", true, TW_SQL_NO_LIMIT,
			    "the id of the call that made it; NULL: none is known"},
	[TW_CALL_DEPTH] = {"depth", "INTEGER", true, TW_SQL_NO_LIMIT, "the number of recorded calls around it"},
	[TW_CALL_CALLER] = {"caller", "TEXT", true, TW_SQL_NO_LIMIT, "the function of parent"},
	[TW_CALL_RAN] =
		{"ran", "INTEGER", true, TW_SQL_NO_LIMIT,
		 "the part of duration in which its thread had a processor (record --sched); NULL if nothing is known"},
	[TW_CALL_PREEMPTED] = {"preempted", "INTEGER", true, TW_SQL_NO_LIMIT,
			       "likewise, in which it could run and another thread had the processor"},
	[TW_CALL_OFF] = {"off", "INTEGER", true, TW_SQL_NO_LIMIT,
			 "likewise, in which it had blocked; what duration has more than the three is not known"},
	[TW_CALL_IN_LOCKS] =
		{"in_locks", "INTEGER", true, TW_SQL_NO_LIMIT,
		 "the part of duration in waits for locks that other threads held (record --locks); NULL if that is not known"},
	[TW_CALL_LOCK] = {"lock", "TEXT", true, TW_SQL_NO_LIMIT,
			  "the lock of the longest of these waits: its variable, or its address"},
	[TW_CALL_LOCK_HOLDER] = {"lock_holder", "INTEGER", true, TW_SQL_NO_LIMIT,
				 "the kernel's number of the thread that held it for most of this wait"},
	[TW_CALL_FUNCTION_ID] = {"function_id", "INTEGER", true, TW_SQL_NO_LIMIT, "the id of its row in functions"},
	[TW_CALL_THREAD_ID] = {"thread_id", "INTEGER", true, TW_SQL_NO_LIMIT, "the id of its row in threads"},
	[TW_CALL_ARG1] = {"arg1", "", true, TW_SQL_NO_LIMIT, "the first of args; likewise arg2 to arg6"},
	{"arg2", "", true, TW_SQL_NO_LIMIT, ""},
	{"arg3", "", true, TW_SQL_NO_LIMIT, ""},
	{"arg4", "", true, TW_SQL_NO_LIMIT, ""},
	{"arg5", "", true, TW_SQL_NO_LIMIT, ""},
	{"arg6", "", true, TW_SQL_NO_LIMIT, ""},
	{0}};

struct calls {
	struct tw_sql_cursor *cursor;
	struct tw_fold folds[2]; /* locks, if they are wanted, before calls */
	struct tw_locks locks;
	struct tw_pass *pass;
	struct tw_places own_places; /* without a scan: of a part */
	const struct tw_places *places;
	struct tw_call_rows rows;
	size_t at;
	/* Instead of rows, where the query uses only what groups have: this is one, with so many calls to give. */
	bool is_grouped;
	struct tw_sql_groups groups;
	size_t next_group;
	uint64_t left;
	bool is_part, is_uncertain, is_finished;
	/* Read again: calls that returned up to this event of the first reading were given. */
	bool is_again;
	uint32_t again_stream;
	uint64_t again_sequence;
};

/* Clocks of processors differ by less than this. */
#define SKEW_NS 100000

/* ---- rows ---- */

/* Is the row certain, and was not given by the first reading, up to where it was not? */
static bool takes(void *context, enum tw_frame_end how)
{
	struct calls *calls = context;
	bool has_returned = how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION;
	calls->is_uncertain |= calls->is_part && !has_returned;
	return !calls->is_uncertain && !(calls->is_again && has_returned);
}

/* ---- reading ---- */

static int see(void *self, const struct tw_capture_event *event)
{
	struct calls *calls = self;
	const struct tw_sql_selection *selection = &calls->cursor->selection;
	struct tw_step step;
	if (calls->is_uncertain)
		return TW_FOLD_DONE;
	if (selection->to_ns && event->time_ns >= selection->to_ns + SKEW_NS && !calls->rows.wanted_open) {
		calls->is_finished = true;
		return TW_FOLD_DONE;
	}
	/* No call that returned by this event was given: its return was the one that was not certain. */
	if (event->stream == calls->again_stream && event->sequence == calls->again_sequence)
		calls->is_again = false;
	int error = tw_call_rows_see(&calls->rows, event, &step);
	if (error)
		return error;
	/* The return of a call from before ends those that are open in it. */
	calls->is_uncertain |= calls->is_part && step.kind == TW_STEP_UNMATCHED && step.stack->depth;
	return 0;
}

static void forget_rows(struct calls *calls)
{
	tw_call_rows_forget(&calls->rows);
	calls->at = 0;
}

static void end_reading(struct calls *calls)
{
	if (calls->pass)
		tw_pass_close(calls->pass);
	calls->pass = NULL;
	tw_call_rows_end(&calls->rows);
	calls->is_finished = calls->is_uncertain = false;
}

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_sql_cursor *cursor = context;
	(void)image;
	return tw_sql_wants_function(&cursor->selection, place->function);
}

/* Can the other functions be left out? Then every call of these has its return, whatever they call. */
static bool can_select_function(const struct calls *calls, const struct tw_places *places)
{
	const struct tw_sql_selection *selection = &calls->cursor->selection;
	if (tw_sql_uses_any(selection, TW_CALL_ID, TW_CALL_CALLER) || tw_sql_uses(selection, TW_CALL_SELF))
		return false;
	if (calls->cursor->sql->info.has_moments_only)
		return true;
	for (uint32_t i = TW_PLACES_FIRST; i < places->function_count; i++)
		if (places->whole_calls[i] != places->ends[i] && tw_sql_wants_function(selection, places->functions[i]))
			return false;
	return true;
}

static bool has_gaps(const struct tw_sql *sql)
{
	uint64_t lost = sql->info.damaged_records;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += sql->info.lost[cause];
	return lost || !sql->info.is_complete;
}

static void on_waited(void *context, const struct tw_lock_waited *wait)
{
	struct calls *calls = context;
	/* A wait for a condition is one for work, or for its result. */
	if (wait->lock->kind != TW_LOCK_CONDITION)
		tw_call_rows_waited(&calls->rows, calls->locks.event->stream,
				    &(struct tw_call_wait){wait->ns, wait->lock->number, wait->by});
}

/* Writes the folds of a reading, and their number. Returns 0 or an error. */
static int make_folds(struct calls *calls, const struct tw_capture_filter *filter, size_t *count)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	*count = 0;
	if (tw_sql_uses_any(&calls->cursor->selection, TW_CALL_IN_LOCKS, TW_CALL_LOCK_HOLDER)) {
		tw_locks_free(&calls->locks);
		int error = tw_locks_begin(&calls->locks, calls->cursor->sql->capture, &all, &calls->folds[0]);
		if (error)
			return error;
		calls->locks.on = (struct tw_locks_calls){.waited = on_waited, .context = calls};
		*count = calls->locks.places.has_any;
	}
	calls->folds[(*count)++] = (struct tw_fold){.self = calls, .filter = *filter, .see = see};
	return 0;
}

static int begin_reading(struct calls *calls)
{
	struct tw_sql_cursor *cursor = calls->cursor;
	const struct tw_sql_selection *selection = &cursor->selection;
	struct tw_capture_filter filter = tw_sql_filter(cursor);
	bool is_plain = !has_gaps(cursor->sql) && !tw_processes_are_declared(cursor->sql->capture);
	bool has_function = selection->module || selection->function;
	filter.kinds = 0;
	filter.wants_own_time = true;
	filter.wants_thread_states = tw_sql_uses_any(selection, TW_CALL_RAN, TW_CALL_OFF);
	filter.from_ns = calls->is_part ? selection->from_ns : 0;
	filter.to_ns = 0;
	if (!is_plain || tw_sql_uses(selection, TW_CALL_ID) || tw_sql_uses(selection, TW_CALL_PARENT))
		filter.wants_stream = NULL;
	/* Read again: the event from which on calls are new may be of any function. */
	filter.wants_place = has_function && is_plain && !calls->is_part && !calls->is_again &&
					     can_select_function(calls, calls->places)
				     ? wants_place
				     : NULL;
	calls->rows.from_ns = selection->from_ns;
	calls->rows.to_ns = selection->to_ns;
	size_t count;
	int error = tw_call_rows_begin(&calls->rows, cursor->sql->capture, calls->places, &filter);
	if (!error)
		error = make_folds(calls, &filter, &count);
	return error ? error : tw_pass_open(cursor->sql->capture, calls->folds, count, &calls->pass);
}

/* From the beginning, because of this event; NULL: at the end. */
static int read_again(struct calls *calls)
{
	const struct tw_capture_event *event = calls->is_finished ? NULL : calls->rows.event;
	calls->again_stream = event ? event->stream : UINT32_MAX;
	calls->again_sequence = event ? event->sequence : 0;
	calls->is_again = true;
	end_reading(calls);
	calls->is_part = false;
	int error = tw_sql_make_places(calls->cursor->sql);
	calls->places = &calls->cursor->sql->places;
	return error ? error : begin_reading(calls);
}

/* Functions by number without a scan: of a part, or where nothing returns. */
static int make_own_places(struct calls *calls)
{
	struct tw_count count;
	int error = tw_places_begin(&calls->own_places, calls->cursor->sql->capture, &count);
	if (!error)
		error = tw_places_end(&calls->own_places);
	calls->places = &calls->own_places;
	/* Without a scan nothing is known to return. */
	for (uint32_t i = 0; !error && i < calls->own_places.image_count; i++) {
		for (uint32_t id = 0; id < calls->own_places.images[i].count; id++) {
			const struct tw_capture_place *place = tw_capture_place(calls->cursor->sql->capture, i, id);
			calls->own_places.images[i].is_moment[id] =
				calls->cursor->sql->info.has_moments_only || (place && place->has_no_end);
		}
	}
	return error;
}

/* More rows, or the end. */
static int read_more(struct calls *calls)
{
	int64_t read = calls->is_finished ? 0 : tw_pass_step(calls->pass);
	if (read < 0)
		return (int)read;
	calls->cursor->sql->events_read += (uint64_t)read;
	if (!calls->is_uncertain && !read && !calls->is_finished) {
		tw_call_rows_finish(&calls->rows);
		calls->is_finished = true;
	}
	if (calls->is_uncertain)
		return read_again(calls);
	calls->cursor->is_over = calls->is_finished && !calls->rows.count;
	return calls->rows.has_no_memory ? TW_ENOMEM : 0;
}

/* Are the numbers of calls that the scan counted those of the rows, and enough? */
static bool is_counted(const struct calls *calls)
{
	const struct tw_sql *sql = calls->cursor->sql;
	const struct tw_places *places = &sql->places;
	uint64_t made = 0;
	if (calls->cursor->selection.columns & ~TW_CALL_OF_FUNCTION || has_gaps(sql))
		return false;
	for (uint32_t i = 0; i < places->calls_count; i++)
		made += places->calls[i];
	/* Else some are of no place that is defined, or the capture is a part. */
	return made == places->kinds[TW_CAPTURE_CALL];
}

static int make_groups(struct calls *calls)
{
	const struct tw_places *places = &calls->cursor->sql->places;
	int error = tw_sql_make_places(calls->cursor->sql);
	calls->places = places;
	if (!error && is_counted(calls)) {
		for (uint32_t i = 0; !error && i < places->calls_count; i++) {
			const struct tw_call_row row = {.function = i};
			uint64_t count = tw_sql_calls_of(places, i);
			if (count && !tw_sql_groups_add(&calls->groups, &row, count))
				error = TW_ENOMEM;
		}
	} else if (!error) {
		error = begin_reading(calls);
		while (!error && !(error = read_more(calls)) && !calls->cursor->is_over) {
			for (size_t i = 0; !error && i < calls->rows.count; i++)
				error = tw_sql_groups_add(&calls->groups, &calls->rows.rows[i], 1) ? 0 : TW_ENOMEM;
			forget_rows(calls);
		}
	}
	if (!error)
		tw_sql_groups_sort(&calls->groups, calls->cursor->sql, places, calls->cursor->selection.order);
	calls->cursor->is_over = false;
	return error;
}

static int open_table(struct tw_sql_cursor *cursor)
{
	struct calls *calls = cursor->state = calloc(1, sizeof *calls);
	const struct tw_sql_selection *selection = &cursor->selection;
	struct tw_sql *sql = cursor->sql;
	if (!calls)
		return TW_ENOMEM;
	calls->cursor = cursor;
	calls->again_stream = UINT32_MAX;
	calls->is_part = selection->from_ns > sql->info.start_ns &&
			 !tw_sql_uses_any(selection, TW_CALL_ID, TW_CALL_LOCK_HOLDER) && !has_gaps(sql) &&
			 !tw_processes_are_declared(sql->capture);
	calls->rows.details = tw_tool_details;
	calls->rows.takes = takes;
	calls->rows.context = calls;
	calls->rows.reads_details = tw_sql_uses(selection, TW_CALL_ARGS) ||
				    tw_sql_uses_any(selection, TW_CALL_ARG1, TW_CALL_ARG1 + ARGUMENTS_MAX - 1);
	calls->rows.reads_result = tw_sql_uses(selection, TW_CALL_RESULT) || tw_sql_uses(selection, TW_CALL_ERRNO);
	int error;
	calls->is_grouped = selection->is_grouped;
	if (calls->is_grouped)
		return make_groups(calls);
	if ((calls->is_part && !sql->has_places) || sql->info.has_moments_only) {
		error = make_own_places(calls);
	} else {
		error = tw_sql_make_places(sql);
		calls->places = &sql->places;
	}
	return error ? error : begin_reading(calls);
}

/* Each group as many times as it has calls, or once for a statement that knows its weight. */
static int next_of_group(struct calls *calls)
{
	struct tw_sql *sql = calls->cursor->sql;
	if (calls->left > 1 && !sql->is_weighing) {
		calls->left--;
		return 0;
	}
	calls->cursor->is_over = calls->next_group == calls->groups.count;
	sql->weight = 1;
	if (calls->cursor->is_over)
		return 0;
	calls->left = calls->groups.at[calls->next_group++].count;
	if (sql->is_weighing)
		sql->weight = calls->left;
	if (calls->cursor->selection.is_distinct)
		calls->left = 1;
	return 0;
}

static int next_call(struct tw_sql_cursor *cursor)
{
	struct calls *calls = cursor->state;
	int error = 0;
	if (calls->is_grouped)
		return next_of_group(calls);
	calls->at++;
	while (!error && !cursor->is_over && calls->at >= calls->rows.count) {
		forget_rows(calls);
		error = read_more(calls);
	}
	return error;
}

static void close_table(struct tw_sql_cursor *cursor)
{
	struct calls *calls = cursor->state;
	end_reading(calls);
	tw_call_rows_free(&calls->rows);
	tw_sql_groups_free(&calls->groups);
	tw_places_free(&calls->own_places);
	tw_locks_free(&calls->locks);
	free(calls);
}

/* ---- columns ---- */

const char *tw_sql_call_name(struct tw_sql *sql, const struct tw_places *places, uint32_t function, bool is_module)
{
	const struct tw_capture_function *at = places->functions[function];
	if (is_module)
		return at && at->module ? tw_sql_shown_module(sql, at->module) : NULL;
	return at ? tw_sql_shown(sql, at) : places->names[function].text;
}

static void put_name(const struct calls *calls, sqlite3_context *context, uint32_t function, bool is_module)
{
	const char *name = tw_sql_call_name(calls->cursor->sql, calls->places, function, is_module);
	/* Names of what is no function may be of a part's own places. */
	if (name)
		sqlite3_result_text(context, name, -1,
				    calls->places->functions[function] ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

static void put_json(const struct calls *calls, sqlite3_context *context, const struct tw_call_row *row, int column)
{
	const struct tw_sql *sql = calls->cursor->sql;
	struct tw_sql_json call = {row->details, row->details_bytes}, end = {row->result, row->result_bytes}, value;
	if (column == TW_CALL_ERRNO) {
		if (end.at && tw_sql_json_member(end, "errno", &value))
			tw_sql_json_result(sql, context, value);
	} else if (column == TW_CALL_RESULT) {
		if (end.at && (tw_sql_json_member(end, "value", &value) ||
			       (tw_sql_json_member(end, "values", &value) && tw_sql_json_element(value, 0, &value))))
			tw_sql_json_result(sql, context, value);
	} else if (call.at && tw_sql_json_member(call, "args", &value) &&
		   (column == TW_CALL_ARGS || tw_sql_json_element(value, (unsigned)(column - TW_CALL_ARG1), &value))) {
		tw_sql_json_result(sql, context, value);
	}
}

static void put_thread(const struct tw_sql *sql, sqlite3_context *context, const struct tw_call_row *row, int column)
{
	const struct tw_capture_stream *stream = tw_capture_stream(sql->capture, row->stream);
	const struct tw_capture_image *image = tw_capture_image(sql->capture, row->image);
	if (column == TW_CALL_PROCESS)
		sqlite3_result_int64(context, image ? (uint32_t)image->process_id : 0);
	else if (column == TW_CALL_THREAD)
		sqlite3_result_int64(context, stream ? (uint32_t)stream->thread_id : 0);
	else if (column == TW_CALL_THREAD_ID)
		sqlite3_result_int64(context, stream ? stream->thread : 0);
	else if (column == TW_CALL_THREAD_NAME)
		tw_sql_put_thread_name(sql, context, row->stream);
	else
		tw_sql_put_pid(sql, context, row->image, row->tracee_id);
}

/* Nothing is known of waits if calls that take locks have no arguments, or no results. */
static void put_wait(const struct calls *calls, sqlite3_context *context, const struct tw_call_row *row, int column)
{
	const struct tw_locks *locks = &calls->locks;
	char text[TW_LOCK_NAME_BYTES];
	if (!locks->calls || locks->wordless || !row->has_end)
		return;
	if (column == TW_CALL_IN_LOCKS) {
		sqlite3_result_int64(context, (sqlite3_int64)row->lock_ns);
	} else if (row->wait.ns && column == TW_CALL_LOCK) {
		if (!tw_lock_symbol(locks, &locks->locks[row->wait.lock], text))
			snprintf(text, sizeof text, "0x%llx", (unsigned long long)locks->locks[row->wait.lock].address);
		sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
	} else if (row->wait.ns) {
		const struct tw_capture_stream *stream = tw_lock_thread(locks, row->wait.by);
		if (stream)
			sqlite3_result_int64(context, (uint32_t)stream->thread_id);
	}
}

static void put_column(struct tw_sql_cursor *cursor, sqlite3_context *context, int column)
{
	const struct calls *calls = cursor->state;
	const struct tw_call_row *row =
		calls->is_grouped ? &calls->groups.at[calls->next_group - 1].row : &calls->rows.rows[calls->at];
	switch (column) {
	case TW_CALL_START: sqlite3_result_int64(context, tw_sql_time(cursor->sql, row->start_ns)); break;
	case TW_CALL_DURATION:
	case TW_CALL_SELF:
		if (row->has_end)
			sqlite3_result_int64(context,
					     (sqlite3_int64)(column == TW_CALL_SELF ? row->self_ns : row->duration_ns));
		break;
	case TW_CALL_ENDED:
		if (row->has_end)
			sqlite3_result_text(context, tw_stacks_end_name(row->how), -1, SQLITE_STATIC);
		break;
	case TW_CALL_PROCESS:
	case TW_CALL_THREAD:
	case TW_CALL_THREAD_NAME:
	case TW_CALL_THREAD_ID:
	case TW_CALL_PID: put_thread(cursor->sql, context, row, column); break;
	case TW_CALL_MODULE:
	case TW_CALL_FUNCTION: put_name(calls, context, row->function, column == TW_CALL_MODULE); break;
	case TW_CALL_FUNCTION_ID: sqlite3_result_int64(context, row->function); break;
	case TW_CALL_ID: sqlite3_result_int64(context, (sqlite3_int64)row->id); break;
	case TW_CALL_PARENT:
		if (row->parent)
			sqlite3_result_int64(context, (sqlite3_int64)row->parent);
		break;
	case TW_CALL_DEPTH: sqlite3_result_int64(context, row->depth); break;
	case TW_CALL_CALLER:
		if (row->has_caller)
			put_name(calls, context, row->caller, false);
		break;
	case TW_CALL_RAN:
	case TW_CALL_PREEMPTED:
	case TW_CALL_OFF:
		if (row->has_states)
			sqlite3_result_int64(context,
					     (sqlite3_int64)row->states.ns[TW_STATE_RAN + column - TW_CALL_RAN]);
		break;
	case TW_CALL_IN_LOCKS:
	case TW_CALL_LOCK:
	case TW_CALL_LOCK_HOLDER: put_wait(calls, context, row, column); break;
	default: put_json(calls, context, row, column);
	}
}

const struct tw_sql_table tw_sql_calls = {.name = "calls",
					  .help = "every call, in the order in which calls ended",
					  .columns = columns,
					  .grouped = TW_CALL_GROUPED,
					  .open = open_table,
					  .next = next_call,
					  .column = put_column,
					  .close = close_table};
