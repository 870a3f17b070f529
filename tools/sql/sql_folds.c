/* SPDX-License-Identifier: Apache-2.0 */
/* sql_folds.c - tables that are made at once: functions, threads, processes, locks. */
#include "tools/sql/sql.h"
#include "views/folds/calltree.h"
#include "views/folds/locks.h"
#include "views/folds/calltree_locks.h"
#include "views/folds/totals.h"
#include "views/names/lines.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- functions ---- */

enum {
	F_FUNCTION,
	F_MODULE,
	F_NAME,
	F_ARITY,
	F_CALLS,
	F_TOTAL,
	F_SELF,
	F_RAN,
	F_PREEMPTED,
	F_OFF,
	F_IN_LOCKS,
	F_MIN,
	F_MEDIAN,
	F_P99,
	F_MAX,
	F_RETURNED,
	F_EXCEPTIONS,
	F_CUT,
	F_OPEN,
	F_LOSSY,
	F_TRACER,
	F_ID
};

static const struct tw_sql_column function_columns[] = {
	[F_FUNCTION] = {"function", "TEXT", false, TW_SQL_NO_LIMIT, "its name, demangled"},
	[F_MODULE] = {"module", "TEXT", false, TW_SQL_NO_LIMIT, "the object that it is in"},
	[F_NAME] = {"name", "TEXT", false, TW_SQL_NO_LIMIT, "both as report shows them"},
	[F_ARITY] = {"arity", "INTEGER", false, TW_SQL_NO_LIMIT, "the number of its arguments, if it is known"},
	[F_CALLS] = {"calls", "INTEGER", false, TW_SQL_NO_LIMIT, "how often it was called"},
	[F_TOTAL] = {"total", "INTEGER", false, TW_SQL_NO_LIMIT,
		     "time in its calls in ns, of recursive ones in the outermost; this and the next need returns"},
	[F_SELF] = {"self", "INTEGER", false, TW_SQL_NO_LIMIT,
		    "time in the function itself, without the calls that it made"},
	[F_RAN] = {"ran", "INTEGER", true, TW_SQL_NO_LIMIT,
		   "the part of total in which threads had a processor (record --sched); NULL if nothing is known"},
	[F_PREEMPTED] = {"preempted", "INTEGER", true, TW_SQL_NO_LIMIT,
			 "likewise, in which they could run and another thread had the processor"},
	[F_OFF] = {"off", "INTEGER", true, TW_SQL_NO_LIMIT,
		   "likewise, in which they had blocked; what total has more than the three is not known"},
	[F_IN_LOCKS] =
		{"in_locks", "INTEGER", true, TW_SQL_NO_LIMIT,
		 "the part of total in waits for locks that other threads held (record --locks); NULL if that is not known"},
	[F_MIN] = {"min", "INTEGER", false, TW_SQL_NO_LIMIT, "the shortest call"},
	[F_MEDIAN] = {"median", "INTEGER", false, TW_SQL_NO_LIMIT, "half of the calls took less; to 1 %"},
	[F_P99] = {"p99", "INTEGER", false, TW_SQL_NO_LIMIT, "99 of 100 calls took less; to 1 %"},
	[F_MAX] = {"max", "INTEGER", false, TW_SQL_NO_LIMIT, "the longest call"},
	[F_RETURNED] = {"returned", "INTEGER", false, TW_SQL_NO_LIMIT,
			"the calls that min to max are about: with an end and no loss in them"},
	[F_EXCEPTIONS] = {"exceptions", "INTEGER", false, TW_SQL_NO_LIMIT, "calls that an exception ended"},
	[F_CUT] = {"cut", "INTEGER", false, TW_SQL_NO_LIMIT, "calls of which no return was seen"},
	[F_OPEN] = {"open", "INTEGER", false, TW_SQL_NO_LIMIT, "calls that were open at the end"},
	[F_LOSSY] = {"lossy", "INTEGER", false, TW_SQL_NO_LIMIT, "calls that events are missing in"},
	[F_TRACER] = {"tracer", "INTEGER", false, TW_SQL_NO_LIMIT,
		      "the part of self that is the tracer's own cost in ns, at most"},
	[F_ID] = {"id", "INTEGER", true, TW_SQL_NO_LIMIT, "its number in the capture: calls have it as function_id"},
	{0}};

int tw_sql_make_places(struct tw_sql *sql)
{
	const struct tw_capture_filter all = {0};
	if (sql->has_places)
		return 0;
	int error = tw_places_make(&sql->places, sql->capture, &all);
	sql->has_places = !error;
	if (error)
		tw_places_free(&sql->places);
	return error;
}

static bool add_name(struct tw_sql_rows *rows, const struct tw_places *places, uint32_t number)
{
	const struct tw_capture_function *function = places->functions[number];
	const char *name = places->names[number].text;
	bool has_arity = function && function->arity != TW_CAPTURE_ARITY_UNKNOWN;
	return tw_sql_text(rows, function ? tw_name_shown(function->name) : name) &&
	       tw_sql_text(rows, function && function->module ? function->module->name : NULL) &&
	       tw_sql_text(rows, name) && tw_sql_integer_if(rows, has_arity, has_arity ? function->arity : 0);
}

static bool add_function(struct tw_sql_rows *rows, const struct tw_calltree *tree,
			 const struct tw_call_function *function)
{
	const struct tw_histogram *took = &function->took;
	bool has_times = tree && tw_places_have_durations(&tree->places), has_took = has_times && took->count;
	const uint64_t *states = function->states.ns;
	bool has_states = has_times && tw_state_sums_all(&function->states);
	return tw_sql_integer_if(rows, has_times, function->total_ns) &&
	       tw_sql_integer_if(rows, has_times, function->self_ns) &&
	       tw_sql_integer_if(rows, has_states, states[TW_STATE_RAN]) &&
	       tw_sql_integer_if(rows, has_states, states[TW_STATE_PREEMPTED]) &&
	       tw_sql_integer_if(rows, has_states, states[TW_STATE_OFF]) &&
	       tw_sql_integer_if(rows, has_times && tw_calltree_knows_locks(tree), function->lock_ns) &&
	       tw_sql_integer_if(rows, has_took, took->min) &&
	       tw_sql_integer_if(rows, has_took, has_took ? tw_histogram_quantile(took, 0.5) : 0) &&
	       tw_sql_integer_if(rows, has_took, has_took ? tw_histogram_quantile(took, 0.99) : 0) &&
	       tw_sql_integer_if(rows, has_took, took->max) && tw_sql_integer_if(rows, has_times, took->count) &&
	       tw_sql_integer_if(rows, has_times, function->exceptions) &&
	       tw_sql_integer_if(rows, has_times, function->cut) &&
	       tw_sql_integer_if(rows, has_times, function->open) &&
	       tw_sql_integer_if(rows, has_times, function->lossy) &&
	       tw_sql_integer_if(rows, has_times,
				 has_times ? tw_tracer_cost_of(&tree->cost, &function->paid, function->self_ns) : 0);
}

uint64_t tw_sql_calls_of(const struct tw_places *places, uint32_t number)
{
	return number == TW_PLACES_GC_MINOR   ? places->collections[0]
	       : number == TW_PLACES_GC_MAJOR ? places->collections[1]
					      : places->calls[number];
}

/* Numbers of calls come from a scan, times from the call tree, which takes several times as long. */
static int make_functions(struct tw_sql *sql, uint64_t columns, struct tw_sql_rows *rows)
{
	static const struct tw_call_function none;
	const struct tw_sql_selection selection = {.columns = columns};
	const struct tw_capture_filter all = {.wants_own_time = true};
	bool has_times = tw_sql_uses_any(&selection, F_TOTAL, F_TRACER) && !sql->info.has_moments_only, is_done = true;
	struct tw_calltree tree = {.follows_locks = tw_sql_uses(&selection, F_IN_LOCKS)};
	int error = has_times ? tw_calltree_make(&tree, sql->capture, &all) : tw_sql_make_places(sql);
	const struct tw_places *places = has_times ? &tree.places : &sql->places;
	for (uint32_t i = 0; !error && is_done && i < places->calls_count; i++) {
		const struct tw_call_function *function =
			has_times && i < tree.function_count ? &tree.functions[i] : &none;
		if (tw_sql_calls_of(places, i))
			is_done = add_name(rows, places, i) && tw_sql_integer(rows, tw_sql_calls_of(places, i)) &&
				  add_function(rows, has_times ? &tree : NULL, function) && tw_sql_integer(rows, i);
	}
	tw_calltree_free(&tree);
	return error ? error : is_done ? 0 : TW_ENOMEM;
}

const struct tw_sql_table tw_sql_functions = {.name = "functions",
					      .help = "every function that was called, with the sums of report",
					      .columns = function_columns,
					      .make = make_functions};

/* ---- threads ---- */

static const struct tw_sql_column thread_columns[] =
	{{"thread", "INTEGER", false, TW_SQL_NO_LIMIT, "the kernel's number of the thread"},
	 {"thread_name", "TEXT", false, TW_SQL_NO_LIMIT, "its last name"},
	 {"process", "INTEGER", false, TW_SQL_NO_LIMIT, "the kernel's number of its process"},
	 {"start", "INTEGER", false, TW_SQL_NO_LIMIT, "its first event, in ns since that of the recording"},
	 {"last", "INTEGER", false, TW_SQL_NO_LIMIT, "its last event, likewise"},
	 {"events", "INTEGER", false, TW_SQL_NO_LIMIT, "events in the capture"},
	 {"calls", "INTEGER", false, TW_SQL_NO_LIMIT, "calls among them"},
	 {"lost", "INTEGER", false, TW_SQL_NO_LIMIT,
	  "events of the thread that were lost, without those of threads that got no ring"},
	 {"overwritten", "INTEGER", false, TW_SQL_NO_LIMIT, "older events that newer ones replaced, as was asked for"},
	 {"id", "INTEGER", true, TW_SQL_NO_LIMIT, "its number in the capture: calls have it as thread_id"},
	 {0}};

static const struct tw_capture_image *image_of_thread(const struct tw_sql *sql, uint32_t thread)
{
	const struct tw_capture_stream *stream;
	for (uint32_t i = 0; (stream = tw_capture_stream(sql->capture, i)); i++)
		if (stream->thread == thread)
			return tw_capture_image(sql->capture, stream->image);
	return NULL;
}

static int make_threads(struct tw_sql *sql, uint64_t columns, struct tw_sql_rows *rows)
{
	const struct tw_capture_filter all = {0};
	struct tw_totals totals = {0};
	struct tw_places places = {0};
	bool is_done = true;
	(void)columns;
	int error = tw_totals_make(&totals, &places, sql->capture, &all);
	for (size_t i = 0; !error && is_done && i < totals.threads.count; i++) {
		const struct tw_totals_row *row = &totals.threads.rows[i];
		const struct tw_capture_image *image = image_of_thread(sql, row->thread);
		uint64_t lost = 0;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += row->lost[cause];
		is_done = tw_sql_integer(rows, row->thread_id) && tw_sql_text(rows, row->thread_name) &&
			  tw_sql_integer_if(rows, image, image ? (uint32_t)image->process_id : 0) &&
			  tw_sql_integer(rows, (uint64_t)tw_sql_time(sql, row->start_ns)) &&
			  tw_sql_integer(rows, (uint64_t)tw_sql_time(sql, row->end_ns)) &&
			  tw_sql_integer(rows, row->events) && tw_sql_integer(rows, row->calls) &&
			  tw_sql_integer(rows, lost) && tw_sql_integer(rows, row->overwritten) &&
			  tw_sql_integer(rows, row->thread);
	}
	tw_totals_free(&totals);
	tw_places_free(&places);
	return error ? error : is_done ? 0 : TW_ENOMEM;
}

const struct tw_sql_table tw_sql_threads = {.name = "threads",
					    .help = "every thread that recorded anything",
					    .columns = thread_columns,
					    .make = make_threads};

/* ---- processes ---- */

static const struct tw_sql_column process_columns[] =
	{{"process", "INTEGER", false, TW_SQL_NO_LIMIT, "the kernel's number of the process"},
	 {"exec", "INTEGER", false, TW_SQL_NO_LIMIT,
	  "which program of the process it is, from 1; NULL if it had only one"},
	 {"parent", "INTEGER", false, TW_SQL_NO_LIMIT, "the number of the process that started it"},
	 {"program", "TEXT", false, TW_SQL_NO_LIMIT, "the path of its program"},
	 {"command", "TEXT", false, TW_SQL_NO_LIMIT, "its arguments, written as for a shell"},
	 {"start", "INTEGER", false, TW_SQL_NO_LIMIT,
	  "when it began, in ns since the first event of the recording, or 0 if that was before"},
	 {"ended", "INTEGER", false, TW_SQL_NO_LIMIT, "when it ended; NULL if that is not known"},
	 {"host", "TEXT", false, TW_SQL_NO_LIMIT, "the machine"},
	 {"node", "TEXT", false, TW_SQL_NO_LIMIT, "its name in captures of several nodes"},
	 {"lost_without_ring", "INTEGER", false, TW_SQL_NO_LIMIT, "events of its threads that got no ring"},
	 {0}};

static int make_processes(struct tw_sql *sql, uint64_t columns, struct tw_sql_rows *rows)
{
	static struct tw_out command;
	const struct tw_capture_image **images = calloc(sql->info.images + (size_t)1, sizeof *images);
	bool is_done = images;
	(void)columns;
	size_t count = images ? tw_names_images(sql->capture, images, sql->info.images) : 0;
	for (size_t i = 0; i < count && is_done; i++) {
		const struct tw_capture_image *image = images[i];
		uint32_t exec = tw_exec_number(sql->capture, image->image);
		tw_out_init(&command, -1);
		tw_out_command(&command, image->command, image->command_bytes, TW_OUT_BYTES / 8);
		command.data[command.used] = 0;
		is_done = tw_sql_integer(rows, (uint32_t)image->process_id) && tw_sql_integer_if(rows, exec, exec) &&
			  tw_sql_integer(rows, (uint32_t)image->parent_process_id) &&
			  tw_sql_text(rows, image->program) && tw_sql_text(rows, command.data) &&
			  tw_sql_integer(rows, (uint64_t)tw_sql_time(sql, image->start_ns)) &&
			  tw_sql_integer_if(rows, image->is_final && image->end_ns,
					    (uint64_t)tw_sql_time(sql, image->end_ns)) &&
			  tw_sql_text(rows, image->host) && tw_sql_text(rows, image->node) &&
			  tw_sql_integer(rows, image->no_ring_lost);
	}
	free(images);
	return is_done ? 0 : TW_ENOMEM;
}

const struct tw_sql_table tw_sql_processes = {.name = "processes",
					      .help = "every program of every process that was recorded",
					      .columns = process_columns,
					      .make = make_processes};

/* ---- locks ---- */

static const struct tw_sql_column lock_columns[] =
	{{"address", "INTEGER", false, TW_SQL_NO_LIMIT, "where it is in the memory of the process"},
	 {"symbol", "TEXT", false, TW_SQL_NO_LIMIT, "the variable that it is, if it is one"},
	 {"site", "TEXT", false, TW_SQL_NO_LIMIT, "the code that made it, or used it first"},
	 {"kind", "TEXT", false, TW_SQL_NO_LIMIT, "mutex, rwlock or condition"},
	 {"process", "INTEGER", false, TW_SQL_NO_LIMIT, "the kernel's number of the process"},
	 {"taken", "INTEGER", false, TW_SQL_NO_LIMIT, "how often it was taken"},
	 {"busy", "INTEGER", false, TW_SQL_NO_LIMIT, "how often a try or a limited wait did not get it"},
	 {"waits", "INTEGER", false, TW_SQL_NO_LIMIT, "how often a thread waited for it"},
	 {"waited", "INTEGER", false, TW_SQL_NO_LIMIT, "for how long in all, in ns"},
	 {"longest_wait", "INTEGER", false, TW_SQL_NO_LIMIT, "the longest of these waits"},
	 {"held", "INTEGER", false, TW_SQL_NO_LIMIT, "how long it was held in all, in ns"},
	 {"longest_held", "INTEGER", false, TW_SQL_NO_LIMIT, "the longest time that it was held"},
	 {"signals", "INTEGER", false, TW_SQL_NO_LIMIT, "of a condition: how often it was signalled"},
	 {0}};

static bool add_lock(const struct tw_sql *sql, struct tw_sql_rows *rows, const struct tw_locks *locks,
		     const struct tw_lock_row *lock)
{
	char symbol[TW_LOCK_NAME_BYTES] = "", site[TW_LOCK_NAME_BYTES] = "";
	const struct tw_capture_image *image = tw_capture_image(sql->capture, lock->image);
	tw_lock_symbol(locks, lock, symbol);
	tw_lock_site(locks, lock, site);
	return tw_sql_integer(rows, lock->address) && tw_sql_text(rows, symbol) && tw_sql_text(rows, site) &&
	       tw_sql_text(rows, tw_lock_kind_name(lock->kind)) &&
	       tw_sql_integer(rows, image ? (uint32_t)image->process_id : 0) && tw_sql_integer(rows, lock->taken) &&
	       tw_sql_integer(rows, lock->busy) && tw_sql_integer(rows, lock->waits) &&
	       tw_sql_integer(rows, lock->wait_ns) && tw_sql_integer(rows, lock->wait_max_ns) &&
	       tw_sql_integer(rows, lock->held_ns) && tw_sql_integer(rows, lock->held_max_ns) &&
	       tw_sql_integer(rows, lock->signals);
}

static int make_locks(struct tw_sql *sql, uint64_t columns, struct tw_sql_rows *rows)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	struct tw_locks locks = {0};
	bool is_done = true;
	(void)columns;
	int error = tw_locks_make(&locks, sql->capture, &all);
	for (uint32_t i = 0; !error && is_done && i < locks.count; i++) {
		const struct tw_lock_row *lock = &locks.locks[i];
		if (lock->taken || lock->waits || lock->busy || lock->signals)
			is_done = add_lock(sql, rows, &locks, lock);
	}
	tw_locks_free(&locks);
	return error ? error : is_done ? 0 : TW_ENOMEM;
}

const struct tw_sql_table tw_sql_locks =
	{.name = "locks",
	 .help = "locks and condition variables, and the waits for them (record --locks)",
	 .columns = lock_columns,
	 .make = make_locks};
