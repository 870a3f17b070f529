/* SPDX-License-Identifier: Apache-2.0 */
/* sql_events.c - the table `events`: a row an event, as `print --format json` shows them; messages and losses are views of it. */
#include "tools/sql/sql.h"
#include "base/grow.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdlib.h>

enum { TIME, PROCESS, THREAD, THREAD_NAME, PID, KIND, MODULE, FUNCTION, DETAILS };

static const struct tw_sql_column columns[] =
	{[TIME] = {"time", "INTEGER", false, TW_SQL_TIME,
		   "when it happened, in ns since the first event of the recording"},
	 [PROCESS] = {"process", "INTEGER", false, TW_SQL_PROCESS, "the kernel's number of the process"},
	 [THREAD] = {"thread", "INTEGER", false, TW_SQL_THREAD, "the kernel's number of the thread"},
	 [THREAD_NAME] = {"thread_name", "TEXT", false, TW_SQL_NO_LIMIT, "the last name of the thread"},
	 [PID] = {"pid", "TEXT", false, TW_SQL_NO_LIMIT,
		  "the traced process, <0.number.serial>, or the port, #Port<0.number>"},
	 [KIND] = {"kind", "TEXT", false, TW_SQL_KIND,
		   "call, return_from, exception_from, send, receive ... lost, own_time"},
	 [MODULE] = {"module", "TEXT", false, TW_SQL_MODULE, "the object of the function, if the kind has one"},
	 [FUNCTION] = {"function", "TEXT", false, TW_SQL_FUNCTION, "the function, demangled"},
	 [DETAILS] = {"details", "TEXT", false, TW_SQL_NO_LIMIT,
		      "what else the kind has, as JSON: args, value, message, to ..."},
	 {0}};

/* The events that have been read and not yet given. */
struct queue {
	struct tw_fold fold;
	struct tw_pass *pass;
	const struct tw_capture_event **events;
	size_t count, capacity, at;
};

/* ---- what is selected ---- */

bool tw_sql_wants_function(const struct tw_sql_selection *selection, const struct tw_capture_function *function)
{
	if (!selection->module && !selection->function)
		return true;
	const char *module = function && function->module ? function->module->name : NULL;
	if (selection->module && (!module || strcmp(tw_utf8_text(module), selection->module) != 0))
		return false;
	return !selection->function ||
	       (function && strcmp(tw_utf8_text(tw_name_shown(function->name)), selection->function) == 0);
}

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_sql_cursor *cursor = context;
	(void)image;
	return tw_sql_wants_function(&cursor->selection, place->function);
}

static bool wants_stream(void *context, const struct tw_capture_stream *stream)
{
	const struct tw_sql_cursor *cursor = context;
	const struct tw_sql_selection *selection = &cursor->selection;
	const struct tw_capture_image *image = tw_capture_image(cursor->sql->capture, stream->image);
	if (selection->has_thread && (uint32_t)stream->thread_id != selection->thread)
		return false;
	return !selection->has_process || (image && (uint32_t)image->process_id == selection->process);
}

struct tw_capture_filter tw_sql_filter(struct tw_sql_cursor *cursor)
{
	const struct tw_sql_selection *selection = &cursor->selection;
	bool has_stream = selection->has_thread || selection->has_process;
	return (struct tw_capture_filter){
		.from_ns = selection->from_ns,
		.to_ns = selection->to_ns,
		.wants_stream = has_stream ? wants_stream : NULL,
		.wants_place = selection->module || selection->function ? wants_place : NULL,
		.context = cursor,
		.kinds = selection->kinds,
		.wants_own_time = !selection->kinds || selection->kinds >> TW_CAPTURE_OWN_TIME & 1,
	};
}

/* ---- names ---- */

static size_t make_module(const struct tw_capture_place *place, char *text, size_t capacity)
{
	const struct tw_capture_function *function = place->function;
	const char *name = tw_utf8_text(function && function->module ? function->module->name : "?");
	size_t bytes = strnlen(name, capacity);
	memcpy(text, name, bytes);
	return bytes;
}

static size_t make_function(const struct tw_capture_place *place, char *text, size_t capacity)
{
	const char *name = place->function ? tw_utf8_text(tw_name_shown(place->function->name)) : "?";
	size_t bytes = strnlen(name, capacity);
	memcpy(text, name, bytes);
	return bytes;
}

/* A text that the key's object has, kept. NULL: no memory. */
static const char *keep(struct tw_sql *sql, const void *object, const char *text)
{
	uint64_t key = (uintptr_t)object;
	uint32_t number = tw_map_get(&sql->shown, key);
	if (number != TW_MAP_NONE)
		return sql->shown_names[number];
	char *name = strdup(tw_utf8_text(text));
	if (!name || !tw_grow(sql->shown_names, sql->shown_count, sql->shown_capacity) ||
	    !tw_map_put(&sql->shown, key, (uint32_t)sql->shown_count)) {
		free(name);
		return NULL;
	}
	return sql->shown_names[sql->shown_count++] = name;
}

const char *tw_sql_shown(struct tw_sql *sql, const struct tw_capture_function *function)
{
	return keep(sql, function, tw_name_shown(function->name));
}

const char *tw_sql_shown_module(struct tw_sql *sql, const struct tw_capture_module *module)
{
	return keep(sql, module, module->name);
}

bool tw_sql_make_names(struct tw_sql *sql)
{
	if (sql->texts)
		return true;
	sql->texts = calloc(2 * (size_t)sql->info.images + 1, sizeof *sql->texts);
	for (uint32_t i = 0; sql->texts && i < sql->info.images; i++) {
		if (!tw_names_places(&sql->texts[2 * i], sql->capture, i, make_module) ||
		    !tw_names_places(&sql->texts[2 * i + 1], sql->capture, i, make_function))
			return false;
	}
	return sql->texts;
}

static void put_name(const struct tw_sql *sql, sqlite3_context *context, const struct tw_capture_event *event,
		     bool is_function)
{
	bool has_place = event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_STACK;
	/* The function that control returned to is among the details, if it is known. */
	if (!has_place || event->image >= sql->info.images ||
	    (event->kind == TW_CAPTURE_RETURN_TO && event->payload_words))
		return;
	const struct tw_names *names = &sql->texts[2 * event->image + is_function];
	if (event->id < names->count && names->at[event->id].text)
		sqlite3_result_text(context, names->at[event->id].text, (int)names->at[event->id].bytes, SQLITE_STATIC);
}

void tw_sql_put_thread_name(const struct tw_sql *sql, sqlite3_context *context, uint32_t stream)
{
	char name[TW_THREAD_NAME_BYTES];
	const struct tw_capture_stream *at = tw_capture_stream(sql->capture, stream);
	if (at && *tw_thread_name(sql->capture, at, name))
		sqlite3_result_text(context, tw_utf8_text(name), -1, SQLITE_TRANSIENT);
}

void tw_sql_put_pid(const struct tw_sql *sql, sqlite3_context *context, uint32_t image, uint32_t tracee_id)
{
	char pid[64];
	size_t bytes = tw_name_pid(sql->capture, image, tracee_id, pid, sizeof pid);
	sqlite3_result_text(context, pid, (int)bytes, SQLITE_TRANSIENT);
}

/* ---- rows ---- */

static int see(void *self, const struct tw_capture_event *event)
{
	struct queue *queue = self;
	if (!tw_grow(queue->events, queue->count, queue->capacity))
		return TW_ENOMEM;
	queue->events[queue->count++] = event;
	return 0;
}

static int open_events(struct tw_sql_cursor *cursor)
{
	struct queue *queue = cursor->state = calloc(1, sizeof *queue);
	if (!queue || !tw_sql_make_names(cursor->sql))
		return TW_ENOMEM;
	queue->fold = (struct tw_fold){.self = queue, .filter = tw_sql_filter(cursor), .see = see};
	return tw_pass_open(cursor->sql->capture, &queue->fold, 1, &queue->pass);
}

static int next_event(struct tw_sql_cursor *cursor)
{
	struct queue *queue = cursor->state;
	queue->at++;
	while (queue->at >= queue->count) {
		queue->at = queue->count = 0;
		int64_t read = tw_pass_step(queue->pass);
		cursor->is_over = read <= 0;
		if (read <= 0)
			return (int)read;
		cursor->sql->events_read += (uint64_t)read;
	}
	return 0;
}

static void close_events(struct tw_sql_cursor *cursor)
{
	struct queue *queue = cursor->state;
	if (queue->pass)
		tw_pass_close(queue->pass);
	free(queue->events);
	free(queue);
}

static void put_column(struct tw_sql_cursor *cursor, sqlite3_context *context, int column)
{
	const struct queue *queue = cursor->state;
	const struct tw_capture_event *event = queue->events[queue->at];
	const struct tw_sql *sql = cursor->sql;
	const struct tw_capture_stream *stream = tw_capture_stream(sql->capture, event->stream);
	const struct tw_capture_image *image = tw_capture_image(sql->capture, event->image);
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	size_t bytes;
	char *details;
	switch (column) {
	case TIME: sqlite3_result_int64(context, tw_sql_time(sql, event->time_ns)); break;
	case PROCESS: sqlite3_result_int64(context, image ? (uint32_t)image->process_id : 0); break;
	case THREAD: sqlite3_result_int64(context, stream ? (uint32_t)stream->thread_id : 0); break;
	case THREAD_NAME: tw_sql_put_thread_name(sql, context, event->stream); break;
	case PID: tw_sql_put_pid(sql, context, event->image, event->tracee_id); break;
	case KIND: sqlite3_result_text(context, kind ? kind->word : "event", -1, SQLITE_STATIC); break;
	case MODULE:
	case FUNCTION: put_name(sql, context, event, column == FUNCTION); break;
	default:
		details = tw_tool_details(sql->capture, event, &bytes);
		if (details)
			sqlite3_result_text(context, details, (int)bytes, free);
	}
}

const struct tw_sql_table tw_sql_events = {.name = "events",
					   .help = "every event, in the order of print: calls and their ends too",
					   .columns = columns,
					   .open = open_events,
					   .next = next_event,
					   .column = put_column,
					   .close = close_events};

/* ---- views ---- */

static const struct tw_sql_column message_columns[] =
	{{"time", "INTEGER", false, TW_SQL_TIME,
	  "when it was sent or received, in ns since the first event of the recording"},
	 {"process", "INTEGER", false, TW_SQL_PROCESS, "the kernel's number of the process"},
	 {"thread", "INTEGER", false, TW_SQL_THREAD, "the kernel's number of the thread that ran it"},
	 {"pid", "TEXT", false, TW_SQL_NO_LIMIT, "the process that sent or received it"},
	 {"kind", "TEXT", false, TW_SQL_NO_LIMIT, "send, send_to_non_existing_process or receive"},
	 {"receiver", "TEXT", false, TW_SQL_NO_LIMIT, "of a send: the pid or the name that it was sent to"},
	 {"message", "TEXT", false, TW_SQL_NO_LIMIT, "the message, as an Erlang term"},
	 {0}};

const struct tw_sql_table tw_sql_messages = {
	.name = "messages",
	.help = "messages between processes of a run-time system, sent and received (record -p send,receive)",
	.columns = message_columns,
	.view = "SELECT time, process, thread, pid, kind, details->>'to' AS receiver, details->>'message' AS message FROM %sevents"
		" WHERE kind IN ('send', 'send_to_non_existing_process', 'receive')"};

static const struct tw_sql_column loss_columns[] =
	{{"time", "INTEGER", false, TW_SQL_TIME,
	  "of the last lost event, in ns since the first event of the recording"},
	 {"process", "INTEGER", false, TW_SQL_PROCESS, "the kernel's number of the process"},
	 {"thread", "INTEGER", false, TW_SQL_THREAD, "the kernel's number of the thread"},
	 {"lost", "INTEGER", false, TW_SQL_NO_LIMIT, "events lost here: the sum of the next four"},
	 {"full", "INTEGER", false, TW_SQL_NO_LIMIT, "because the ring or the disk was full"},
	 {"too_big", "INTEGER", false, TW_SQL_NO_LIMIT, "because they were larger than a record may be"},
	 {"nested", "INTEGER", false, TW_SQL_NO_LIMIT,
	  "in a signal handler that interrupted another event of the thread"},
	 {"no_ring", "INTEGER", false, TW_SQL_NO_LIMIT, "because the thread got no ring"},
	 {"overwritten", "INTEGER", false, TW_SQL_NO_LIMIT,
	  "older events that newer ones replaced, as was asked for; not lost"},
	 {0}};

const struct tw_sql_table tw_sql_losses = {
	.name = "losses",
	.help = "where events are missing, and how many",
	.columns = loss_columns,
	.view = "SELECT time, process, thread, (details->>'full') + (details->>'too_big') + (details->>'nested') + (details->>'no_ring')"
		" AS lost, details->>'full' AS full, details->>'too_big' AS too_big, details->>'nested' AS nested,"
		" details->>'no_ring' AS no_ring, coalesce(details->>'overwritten', 0) AS overwritten FROM %sevents WHERE kind = 'lost'"};
