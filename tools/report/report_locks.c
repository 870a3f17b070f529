/* SPDX-License-Identifier: Apache-2.0 */
/* report_locks.c - locks as tables: waits, and the threads that held the locks meanwhile. */
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/notes.h"
#include "views/names/threads.h"
#include "views/folds/locks.h"
#include "tools/common/select.h"
#include "tools/report/report.h"
#include "base/search.h"
#include "views/folds/calltree_locks.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAIRS_SHOWN 3

static int by_wait(const void *a, const void *b)
{
	const struct tw_lock_row *x = *(struct tw_lock_row *const *)a, *y = *(struct tw_lock_row *const *)b;
	return TW_ORDER(y->wait_ns, x->wait_ns) ?: TW_ORDER(y->taken + y->signals, x->taken + x->signals);
}

static int by_time(const void *a, const void *b)
{
	const struct tw_lock_pair *x = *(struct tw_lock_pair *const *)a, *y = *(struct tw_lock_pair *const *)b;
	return TW_ORDER(y->ns, x->ns);
}

/* The conditions, or the other locks, that were used; to be freed. */
static struct tw_lock_row **sorted_locks(const struct tw_locks *locks, bool are_conditions, size_t *count)
{
	struct tw_lock_row **sorted = malloc((locks->count + (size_t)1) * sizeof *sorted);
	*count = 0;
	for (uint32_t i = 0; sorted && i < locks->count; i++) {
		struct tw_lock_row *lock = &locks->locks[i];
		if ((lock->kind == TW_LOCK_CONDITION) == are_conditions &&
		    (lock->taken || lock->waits || lock->busy || lock->signals))
			sorted[(*count)++] = lock;
	}
	if (sorted)
		qsort(sorted, *count, sizeof *sorted, by_wait);
	return sorted;
}

static struct tw_lock_pair **sorted_pairs(const struct tw_locks *locks, const struct tw_lock_row *lock, size_t *count)
{
	size_t all = 0;
	for (uint32_t at = lock->pairs; at; at = locks->pairs[at - 1].next)
		all++;
	struct tw_lock_pair **sorted = malloc((all + 1) * sizeof *sorted);
	*count = 0;
	for (uint32_t at = lock->pairs; sorted && at; at = locks->pairs[at - 1].next)
		sorted[(*count)++] = &locks->pairs[at - 1];
	if (sorted)
		qsort(sorted, *count, sizeof *sorted, by_time);
	return sorted;
}

static const char *thread_text(const struct tw_locks *locks, uint32_t thread, char *text)
{
	const struct tw_capture_stream *stream = tw_lock_thread(locks, thread);
	if (!stream || !tw_thread_text(locks->capture, stream, text))
		snprintf(text, TW_THREAD_TEXT_BYTES, "no known thread");
	return text;
}

void tw_report_in_locks(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	const struct tw_locks *locks = tree->locks ? &tree->locks->locks : NULL;
	struct tw_call_lock most, held;
	char figure[TW_FIGURE_BYTES], text[TW_THREAD_TEXT_BYTES], name[TW_LOCK_NAME_BYTES];
	if (!tree->lock_ns || !tw_calltree_knows_locks(tree))
		return;
	tw_out_format(screen->out, "in locks: %s of total are waits for locks that other threads held",
		      tw_figure_duration(figure, tree->lock_ns));
	if (tw_calltree_main_lock(tree, &most, &held)) {
		const struct tw_lock_row *lock = &locks->locks[most.lock];
		if (!tw_lock_symbol(locks, lock, name))
			snprintf(name, sizeof name, "0x%llx", (unsigned long long)lock->address);
		tw_out_format(screen->out, ", %s for the %s ", tw_figure_duration(figure, most.ns),
			      tw_lock_kind_name(lock->kind));
		tw_out_name(screen->out, name);
		if (held.ns)
			tw_out_format(screen->out, ", %s of these mainly for %s", tw_figure_duration(figure, held.ns),
				      thread_text(locks, held.by, text));
	}
	tw_out_text(screen->out, " (report --locks).\n");
}

/* Prints its variable, or its address and, on a line of its own, where it was made. */
static void put_name(const struct tw_screen *screen, const struct tw_locks *locks, const struct tw_lock_row *lock,
		     int used)
{
	char text[TW_LOCK_NAME_BYTES], name[TW_NAME_SHORT_BYTES];
	if (tw_lock_symbol(locks, lock, text)) {
		tw_screen_cut(screen, text, used);
		return;
	}
	tw_out_format(screen->out, "0x%llx\n", (unsigned long long)lock->address);
	if (!tw_lock_site(locks, lock, text))
		return;
	tw_out_format(screen->out, "%11s%s ", "", lock->is_made_there ? "made in" : "first used in");
	int before = lock->is_made_there ? 19 : 25;
	tw_screen_cut(screen, tw_screen_short(screen, text, screen->columns - before, name), before);
}

static void put_pairs(const struct tw_screen *screen, const struct tw_locks *locks, const struct tw_lock_row *lock,
		      size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], waiter[TW_THREAD_TEXT_BYTES], holder[TW_THREAD_TEXT_BYTES],
		line[500];
	size_t count, shown;
	struct tw_lock_pair **pairs = sorted_pairs(locks, lock, &count);
	shown = top && count > PAIRS_SHOWN ? PAIRS_SHOWN : count;
	for (size_t i = 0; i < shown; i++) {
		const struct tw_lock_pair *pair = pairs[i];
		thread_text(locks, pair->waiter, waiter);
		thread_text(locks, pair->holder, holder);
		bool is_condition = lock->kind == TW_LOCK_CONDITION, is_known = pair->holder != TW_LOCK_NONE;
		int bytes = snprintf(line, sizeof line, "%18s%11s  %s%s%s%s", tw_figure_duration(a, pair->ns),
				     tw_figure_count(b, pair->times), waiter,
				     !is_known	    ? ", and no signal was seen"
				     : is_condition ? " until "
						    : " while ",
				     is_known ? holder : "",
				     !is_known	    ? ""
				     : is_condition ? " signalled"
						    : " held it");
		if (screen->cuts_names && bytes > screen->columns)
			tw_out_format(screen->out, "%.*s..\n", (int)tw_utf8_part(line, (size_t)screen->columns - 2),
				      line);
		else
			tw_out_format(screen->out, "%s\n", line);
	}
	if (shown < count)
		tw_out_format(screen->out, "%29s  and %s of threads\n", "",
			      tw_figure_of(a, count - shown, "more pair", "more pairs"));
	if (lock->slow)
		tw_out_format(screen->out, "%18s%11s  slow calls without a known holder\n",
			      tw_figure_duration(a, lock->slow_ns), tw_figure_count(b, lock->slow));
	free(pairs);
}

static void put_locks(const struct tw_screen *screen, const struct tw_locks *locks, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES], e[TW_FIGURE_BYTES];
	size_t count, waited = 0;
	uint64_t waits = 0, ns = 0;
	struct tw_lock_row **rows = sorted_locks(locks, false, &count);
	for (size_t i = 0; rows && i < count; i++) {
		waited += rows[i]->waits != 0;
		waits += rows[i]->waits;
		ns += rows[i]->wait_ns;
	}
	tw_out_format(screen->out, "\n%slocks: %s, %s waited for%s", tw_screen_bold(screen),
		      tw_figure_of(a, count, "was used", "were used"), tw_figure_count(b, waited),
		      tw_screen_plain(screen));
	if (waits)
		tw_out_format(screen->out, ", %s, %s in all", tw_figure_of(a, waits, "time", "times"),
			      tw_figure_duration(b, ns));
	tw_out_format(screen->out, "\n%s%9s%9s%11s%11s%9s  lock%s\n", tw_screen_bold(screen), "waited", "longest",
		      "waits", "taken", "held", tw_screen_plain(screen));
	size_t shown = top && top < count ? top : count;
	for (size_t i = 0; rows && i < shown; i++) {
		const struct tw_lock_row *lock = rows[i];
		tw_out_format(screen->out, "%9s%9s%11s%11s%9s  %s ",
			      lock->waits ? tw_figure_duration(a, lock->wait_ns) : "-",
			      lock->waits ? tw_figure_duration(b, lock->wait_max_ns) : "-",
			      tw_figure_count(c, lock->waits), tw_figure_count(d, lock->taken),
			      tw_figure_duration(e, lock->held_ns), tw_lock_kind_name(lock->kind));
		put_name(screen, locks, lock, 52 + (int)strlen(tw_lock_kind_name(lock->kind)));
		put_pairs(screen, locks, lock, top);
	}
	if (shown < count)
		tw_out_format(screen->out, "%49s  in %s more\n", "", tw_figure_count(a, count - shown));
	free(rows);
}

static void put_conditions(const struct tw_screen *screen, const struct tw_locks *locks, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES], e[TW_FIGURE_BYTES];
	size_t count;
	struct tw_lock_row **rows = sorted_locks(locks, true, &count);
	if (!count) {
		free(rows);
		return;
	}
	tw_out_format(screen->out, "\n%scondition variables: %s%s\n%s%9s%9s%11s%11s%9s  condition variable%s\n",
		      tw_screen_bold(screen), tw_figure_of(a, count, "was used", "were used"), tw_screen_plain(screen),
		      tw_screen_bold(screen), "waited", "longest", "waits", "signals", "timeouts",
		      tw_screen_plain(screen));
	size_t shown = top && top < count ? top : count;
	for (size_t i = 0; rows && i < shown; i++) {
		const struct tw_lock_row *lock = rows[i];
		tw_out_format(screen->out, "%9s%9s%11s%11s%9s  ",
			      lock->waits ? tw_figure_duration(a, lock->wait_ns) : "-",
			      lock->waits ? tw_figure_duration(b, lock->wait_max_ns) : "-",
			      tw_figure_count(c, lock->waits), tw_figure_count(d, lock->signals),
			      tw_figure_count(e, lock->timeouts));
		put_name(screen, locks, lock, 51);
		put_pairs(screen, locks, lock, top);
	}
	if (shown < count)
		tw_out_format(screen->out, "%49s  in %s more\n", "", tw_figure_count(a, count - shown));
	free(rows);
}

static void put_notes(const struct tw_screen *screen, const struct tw_locks *locks)
{
	static struct tw_out text;
	char a[TW_FIGURE_BYTES], gone[TW_MISSING_TEXT_BYTES];
	tw_out_init(&text, -1);
	if (!locks->calls)
		tw_out_text(&text, "No calls of locks were recorded: tracewheel record --locks -- COMMAND.\n");
	if (locks->lost || locks->overwritten)
		tw_out_format(
			&text,
			"%sIn %s gap%s %s: which thread held a lock is known again from its next call on, and some waits are not "
			"counted.%s\n",
			locks->lost ? tw_screen_red(screen) : "", tw_figure_count(a, locks->gaps),
			locks->gaps == 1 ? "" : "s", tw_missing_gone(locks->lost, locks->overwritten, gone),
			locks->lost ? tw_screen_plain(screen) : "");
	if (locks->dropped)
		tw_out_format(&text, "%s call%s did not return in the selection, and %s in no wait.\n",
			      tw_figure_count(a, locks->dropped), locks->dropped == 1 ? "" : "s",
			      locks->dropped == 1 ? "is" : "are");
	if (locks->wordless)
		tw_out_format(&text, "%s no arguments or results: record with --locks.\n",
			      tw_figure_of(a, locks->wordless, "call has", "calls have"));
	if (locks->are_full)
		tw_out_text(&text, "There are too many locks, or pairs of threads: some are missing.\n");
	tw_screen_wrapped(screen, text.data, text.used);
}

void tw_report_locks(const struct tw_screen *screen, const struct tw_locks *locks, size_t top)
{
	put_notes(screen, locks);
	if (!locks->calls)
		return;
	put_locks(screen, locks, top);
	put_conditions(screen, locks, top);
}

/* ---- JSON ---- */

static void put_thread(struct tw_json *json, const char *name, const struct tw_locks *locks, uint32_t thread)
{
	const struct tw_capture_stream *stream = tw_lock_thread(locks, thread);
	char text[TW_THREAD_NAME_BYTES] = "", member[40];
	tw_json_u64(json, name, stream ? (uint64_t)stream->thread_id : 0);
	if (stream)
		tw_thread_name(locks->capture, stream, text);
	snprintf(member, sizeof member, "%s_name", name);
	tw_json_string(json, member, text);
}

static void put_lock_json(struct tw_json *json, const struct tw_locks *locks, const struct tw_lock_row *lock,
			  uint64_t zero_ns, size_t pairs_max)
{
	char text[TW_LOCK_NAME_BYTES];
	size_t count;
	bool is_condition = lock->kind == TW_LOCK_CONDITION;
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "kind", tw_lock_kind_name(lock->kind));
	int bytes = snprintf(text, sizeof text, "0x%llx", (unsigned long long)lock->address);
	tw_json_text(json, "address", text, (size_t)bytes);
	tw_json_text(json, "symbol", text, tw_lock_symbol(locks, lock, text));
	tw_json_text(json, lock->is_made_there ? "made_in" : "used_in", text, tw_lock_site(locks, lock, text));
	const struct tw_capture_image *image = tw_capture_image(locks->capture, lock->image);
	tw_json_u64(json, "process", image ? (uint64_t)image->process_id : 0);
	tw_json_u64(json, "waits", lock->waits);
	tw_json_seconds(json, "waited", lock->wait_ns);
	tw_json_seconds(json, "longest_wait", lock->wait_max_ns);
	tw_json_u64(json, "longest_ns", lock->wait_max_at_ns > zero_ns ? lock->wait_max_at_ns - zero_ns : 0);
	if (is_condition) {
		tw_json_u64(json, "signals", lock->signals);
		tw_json_u64(json, "timeouts", lock->timeouts);
	} else {
		tw_json_u64(json, "taken", lock->taken);
		tw_json_u64(json, "not_taken", lock->busy);
		tw_json_u64(json, "slow_calls", lock->slow);
		tw_json_seconds(json, "slow", lock->slow_ns);
		tw_json_seconds(json, "held", lock->held_ns);
		tw_json_seconds(json, "longest_hold", lock->held_max_ns);
	}
	struct tw_lock_pair **pairs = sorted_pairs(locks, lock, &count);
	tw_json_open(json, "pairs", '[');
	for (size_t i = 0; pairs && i < count && (!pairs_max || i < pairs_max); i++) {
		tw_json_open(json, NULL, '{');
		put_thread(json, "waiter", locks, pairs[i]->waiter);
		put_thread(json, is_condition ? "signaller" : "holder", locks, pairs[i]->holder);
		tw_json_u64(json, "times", pairs[i]->times);
		tw_json_seconds(json, "waited", pairs[i]->ns);
		tw_json_seconds(json, "longest", pairs[i]->max_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(pairs);
	tw_json_close(json, '}');
}

void tw_report_locks_json(struct tw_json *json, const struct tw_locks *locks, uint64_t zero_ns, size_t top,
			  size_t pairs)
{
	for (unsigned are_conditions = 0; are_conditions < 2; are_conditions++) {
		size_t count;
		struct tw_lock_row **rows = sorted_locks(locks, are_conditions, &count);
		tw_json_open(json, are_conditions ? "conditions" : "locks", '[');
		for (size_t i = 0; rows && i < count && (!top || i < top); i++)
			put_lock_json(json, locks, rows[i], zero_ns, pairs);
		tw_json_close(json, ']');
		free(rows);
	}
	tw_json_open(json, "lock_gaps", '{');
	tw_json_u64(json, "gaps", locks->gaps);
	tw_json_u64(json, "lost", locks->lost);
	tw_json_u64(json, "overwritten", locks->overwritten);
	tw_json_u64(json, "dropped", locks->dropped);
	tw_json_u64(json, "wordless", locks->wordless);
	tw_json_close(json, '}');
}

/* ---- the view ---- */

int tw_report_locks_view(struct tw_selection *selection, const struct tw_report_order *order,
			 const struct tw_command *command, bool is_json, struct tw_capture *capture, const char *path)
{
	static struct tw_out out;
	struct tw_capture_filter filter;
	struct tw_capture_info info;
	struct tw_capture_account account;
	struct tw_locks locks = {0};
	if (!tw_selection_filter(selection, capture, command, &filter))
		return TW_EXIT_USAGE;
	int error = tw_locks_make(&locks, capture, &filter);
	tw_capture_info(capture, &info);
	tw_out_init(&out, STDOUT_FILENO);
	if (!error && is_json) {
		struct tw_json json = {.out = &out, .is_spread = true};
		tw_json_open(&json, NULL, '{');
		tw_report_locks_json(&json, &locks, info.zero_ns, order->top, 0);
		tw_capture_account(capture, &account);
		tw_missing_json(&json, &account);
		tw_notes_json(&json, capture);
		tw_json_close(&json, '}');
	} else if (!error) {
		struct tw_screen screen = tw_screen_make(&out, 0);
		tw_report_preface(&screen, capture);
		tw_report_locks(&screen, &locks, order->top);
	}
	int code = error ? tw_fail("reading '%s' failed: %s", path, tw_strerror(error)) : tw_out_finish(&out);
	tw_locks_free(&locks);
	tw_lock_names_forget();
	tw_lines_forget();
	return tw_names_end(capture, path, code);
}
