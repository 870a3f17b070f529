/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lates.c - one pass over the events; the steps of a message are made at the end, or before the history they need is
 * overwritten.
 */
#include "views/folds/lates.h"
#include "views/names/missing.h"
#include "views/folds/pass.h"
#include "views/names/payload.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* 48 bytes each. */
#define HISTORY	  (UINT64_C(1) << 21)
#define OWN_TIMES (UINT64_C(1) << 14)
/* The most processes that are summed up separately as causes of one step; others count in the total only. */
#define BLOCKERS_MAX 64

/* ---- steps ---- */

struct blocker {
	uint32_t process;
	uint64_t ns, times;
	struct tw_stretch longest;
};

static void add_blocker(struct blocker *blockers, unsigned *count, const struct tw_stretch *stretch)
{
	uint64_t ns = stretch->to_ns - stretch->from_ns;
	unsigned i = 0;
	while (i < *count && blockers[i].process != stretch->by)
		i++;
	if (i == BLOCKERS_MAX)
		return;
	if (i == *count)
		blockers[(*count)++] = (struct blocker){.process = stretch->by};
	blockers[i].ns += ns;
	blockers[i].times++;
	if (ns > blockers[i].longest.to_ns - blockers[i].longest.from_ns)
		blockers[i].longest = *stretch;
}

/* Adds the time of a stretch to the columns that it covers. */
static void add_to_lane(uint64_t (*columns)[TW_DOINGS], const struct tw_late_step *step,
			const struct tw_stretch *stretch)
{
	double width = (double)(step->to_ns - step->from_ns) / TW_LATE_COLUMNS;
	double from = (double)(stretch->from_ns - step->from_ns) / width,
	       to = (double)(stretch->to_ns - step->from_ns) / width;
	for (unsigned i = (unsigned)from; i < TW_LATE_COLUMNS && i < to; i++) {
		double left = from > i ? from : i, right = to < i + 1 ? to : i + 1;
		if (right > left)
			columns[i][stretch->doing] += (uint64_t)((right - left) * 1000) + 1;
	}
}

static void fill_lane(struct tw_late_step *step, uint64_t (*columns)[TW_DOINGS])
{
	for (unsigned i = 0; i < TW_LATE_COLUMNS; i++) {
		unsigned most = TW_DOING_UNKNOWN;
		for (unsigned doing = 0; doing < TW_DOINGS; doing++)
			most = columns[i][doing] > columns[i][most] ? doing : most;
		step->lane[i] = (uint8_t)most;
	}
}

static void make_step(const struct tw_lates *lates, struct tw_late_step *step)
{
	static uint64_t columns[TW_LATE_COLUMNS][TW_DOINGS];
	struct blocker blockers[BLOCKERS_MAX];
	unsigned blocker_count = 0;
	struct tw_stretch stretch;
	uint64_t at = 0, known_ns = 0;
	memset(columns, 0, sizeof columns);
	while (tw_mailboxes_back(&lates->mailboxes, step->process, step->from_ns, step->to_ns, &at, &stretch)) {
		step->ns[stretch.doing] += stretch.to_ns - stretch.from_ns;
		step->times[stretch.doing]++;
		step->takes += stretch.takes;
		known_ns += stretch.to_ns - stretch.from_ns;
		add_to_lane(columns, step, &stretch);
		if (stretch.doing == TW_DOING_BLOCKED)
			add_blocker(blockers, &blocker_count, &stretch);
	}
	if (known_ns < step->to_ns - step->from_ns)
		step->ns[TW_DOING_UNKNOWN] += step->to_ns - step->from_ns - known_ns;
	fill_lane(step, columns);
	step->by = TW_MAILBOX_NOBODY;
	for (unsigned i = 0; i < blocker_count; i++) {
		if (blockers[i].ns <= step->by_ns)
			continue;
		step->by = blockers[i].process;
		step->by_ns = blockers[i].ns;
		step->by_times = blockers[i].times;
		step->longest = blockers[i].longest;
	}
}

/* The part of a time in which the tracer delayed a thread: several at once count once. */
static uint64_t own_time(const struct tw_lates *lates, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t first = lates->own_count > OWN_TIMES ? lates->own_count - OWN_TIMES : 0, ns = 0;
	/* They are in order of their beginnings. */
	for (uint64_t i = first; i < lates->own_count; i++) {
		const struct tw_late_own *own = &lates->own[i & (OWN_TIMES - 1)];
		uint64_t from = own->from_ns > from_ns ? own->from_ns : from_ns;
		uint64_t to = own->to_ns < to_ns ? own->to_ns : to_ns;
		if (to <= from)
			continue;
		ns += to - from;
		from_ns = to;
	}
	return ns;
}

/* Stretches below a twentieth of the wait are not followed. */
static void make_steps(struct tw_lates *lates, struct tw_late *late)
{
	uint64_t from_ns = late->arrived_ns, to_ns = late->taken_ns, least_ns = tw_late_wait(late) / 20;
	uint32_t process = late->receiver;
	late->is_traced = true;
	late->own_ns = own_time(lates, from_ns, to_ns);
	for (late->step_count = 0;
	     late->step_count < TW_LATE_STEPS && process < lates->mailboxes.count && to_ns > from_ns;) {
		struct tw_late_step *step = &late->steps[late->step_count++];
		*step = (struct tw_late_step){.process = process, .from_ns = from_ns, .to_ns = to_ns};
		make_step(lates, step);
		if (late->step_count == 1)
			step->takes = late->others;
		process = step->by;
		from_ns = step->longest.from_ns;
		to_ns = step->longest.sent_ns;
		if (to_ns < from_ns + least_ns)
			break;
	}
}

/* ---- rows ---- */

static bool is_wanted(const struct tw_lates *lates, const struct tw_mailbox_process *process)
{
	return !lates->process || tw_mailboxes_is_called(&lates->mailboxes, process, lates->process);
}

static void on_taken(void *context, struct tw_mailbox_process *process, const struct tw_message *message,
		     uint64_t now_ns, bool is_sure)
{
	struct tw_lates *lates = context;
	struct tw_late late = {.number = message->number,
			       .arrived_ns = message->arrived_ns,
			       .sent_ns = message->sent_ns,
			       .taken_ns = now_ns,
			       .sender = message->sender,
			       .receiver = process->number,
			       .length = message->length,
			       .others = process->taken - 1 - message->taken_before,
			       .is_sure = is_sure};
	uint64_t wait_ns = tw_late_wait(&late);
	if (now_ns < lates->from_ns || (lates->to_ns && now_ns >= lates->to_ns) ||
	    (lates->process && !is_wanted(lates, process)))
		return;
	/* In an Erlang VM the event `receive` says only when it was taken. */
	if (!message->sent_ns && lates->mailboxes.images[process->image].is_erlang_vm) {
		lates->without_arrival++;
		return;
	}
	lates->unsure += !is_sure;
	lates->has_no_memory |= !tw_histogram_add(&lates->waits, wait_ns);
	if (!lates->capacity ||
	    (lates->count == lates->capacity && tw_late_wait(&lates->rows[lates->count - 1]) >= wait_ns))
		return;
	size_t at = lates->count < lates->capacity ? lates->count++ : lates->count - 1;
	late.steps = lates->rows[at].steps;
	for (; at > 0 && tw_late_wait(&lates->rows[at - 1]) < wait_ns; at--)
		lates->rows[at] = lates->rows[at - 1];
	lates->rows[at] = late;
}

static void on_forgets(void *context, uint64_t before_ns)
{
	struct tw_lates *lates = context;
	for (size_t i = 0; i < lates->count; i++) {
		if (!lates->rows[i].is_traced && lates->rows[i].arrived_ns <= before_ns)
			make_steps(lates, &lates->rows[i]);
	}
}

/* ---- the messages themselves ---- */

struct text_of {
	const struct tw_mailbox_process *receiver;
	char *text;
};

static int see_text(void *self, const struct tw_capture_event *event)
{
	struct text_of *of = self;
	struct tw_message_payload payload;
	struct tw_term term;
	if (event->kind != TW_CAPTURE_RECEIVE || event->image != of->receiver->image ||
	    event->tracee_id != of->receiver->tracee_id)
		return 0;
	tw_print_payload_take(event, &payload);
	if (payload.has_terms && tw_print_next_term(&payload, &term))
		tw_term_format(term, TW_PRINT_PRETTY | TW_PRINT_NODES, of->text, TW_LATE_TEXT);
	return *of->text ? TW_FOLD_DONE : 0;
}

static void read_text(const struct tw_lates *lates, struct tw_capture *capture, struct tw_late *late)
{
	struct text_of of = {lates->mailboxes.processes[late->receiver], late->text};
	struct tw_fold fold = {.self = &of,
			       .filter = {.from_ns = late->arrived_ns,
					  .to_ns = late->arrived_ns + 1,
					  .kinds = UINT64_C(1) << TW_CAPTURE_RECEIVE},
			       .see = see_text};
	if (!*late->text)
		tw_pass_one(capture, &fold, NULL);
}

/* ---- the pass ---- */

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)context;
	(void)image;
	return tw_mailboxes_wants_place(place);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_lates *lates = self;
	if (event->kind == TW_CAPTURE_OWN_TIME)
		lates->own[lates->own_count++ & (OWN_TIMES - 1)] =
			(struct tw_late_own){event->time_ns,
					     event->time_ns + tw_capture_own_ns(lates->mailboxes.capture, event)};
	return tw_mailboxes_event(&lates->mailboxes, event) && !lates->has_no_memory ? 0 : TW_ENOMEM;
}

static int read_events(struct tw_lates *lates, struct tw_capture *capture)
{
	struct tw_fold fold = {.self = lates,
			       .filter = {.to_ns = lates->to_ns,
					  .kinds = tw_mailboxes_kinds(),
					  .wants_place = wants_place,
					  .wants_own_time = true},
			       .see = see};
	return tw_pass_one(capture, &fold, "reading");
}

int tw_lates_make(struct tw_lates *lates, struct tw_capture *capture, size_t capacity)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	lates->zero_ns = info.zero_ns;
	lates->capacity = capacity;
	lates->rows = calloc(capacity + 1, sizeof *lates->rows);
	int error = tw_mailboxes_init(&lates->mailboxes, capture, lates->history ? lates->history : HISTORY);
	for (size_t i = 0; !error && lates->rows && i < capacity; i++) {
		lates->rows[i].steps = calloc(TW_LATE_STEPS, sizeof *lates->rows[i].steps);
		error = lates->rows[i].steps ? 0 : TW_ENOMEM;
	}
	lates->mailboxes.calls = (struct tw_mailbox_calls){.taken = on_taken, .forgets = on_forgets, .context = lates};
	lates->own = malloc(OWN_TIMES * sizeof *lates->own);
	if (!lates->rows || !lates->own)
		error = TW_ENOMEM;
	if (!error)
		error = read_events(lates, capture);
	if (error)
		return error;
	tw_mailboxes_finish(&lates->mailboxes);
	lates->waiting = lates->mailboxes.has_takes ? lates->mailboxes.held : 0;
	for (size_t i = 0; i < lates->count; i++) {
		if (!lates->rows[i].is_traced)
			make_steps(lates, &lates->rows[i]);
		read_text(lates, capture, &lates->rows[i]);
	}
	return 0;
}

void tw_lates_free(struct tw_lates *lates)
{
	for (size_t i = 0; lates->rows && i < lates->capacity; i++)
		free(lates->rows[i].steps);
	free(lates->rows);
	free(lates->own);
	tw_histogram_free(&lates->waits);
	tw_mailboxes_free(&lates->mailboxes);
}

/* ---- limits of the capture ---- */

/* Parts that were not recorded. */
static void note_absence(const struct tw_mailboxes *mailboxes, unsigned number, char *text)
{
	switch (number) {
	case 0:
		if (!mailboxes->messages)
			snprintf(
				text, TW_LATE_NOTE,
				"No messages were recorded: tracewheel record -p send,receive,procs,running -t 'mailbox:_' -- COMMAND.");
		break;
	case 1:
		if (mailboxes->messages && mailboxes->are_erlang_vms)
			snprintf(
				text, TW_LATE_NOTE,
				"An Erlang VM reports a message when its receiver looks for messages: each counts as taken then; it may have "
				"waited longer.");
		else if (mailboxes->messages && !mailboxes->has_takes)
			snprintf(
				text, TW_LATE_NOTE,
				"When messages were taken is not in this capture (-t 'mailbox:_', docs/embedding.md): each counts as taken "
				"when its receiver next ran; it may have waited longer.");
		break;
	case 2:
		if (mailboxes->messages && !mailboxes->runs)
			snprintf(
				text, TW_LATE_NOTE,
				"No schedules were recorded (-p running): the states of processes meanwhile are not known.");
		break;
	case 3:
		if (mailboxes->messages && mailboxes->runs && !mailboxes->has_waits)
			snprintf(
				text, TW_LATE_NOTE,
				"When processes waited is not in this capture%s: one that is out counts as blocked until a message comes.",
				mailboxes->are_erlang_vms ? "" : " (-t 'mailbox:_')");
		break;
	}
}

bool tw_late_note(const struct tw_lates *lates, const struct tw_capture *capture, unsigned number, char *text,
		  bool *warns)
{
	const struct tw_mailboxes *mailboxes = &lates->mailboxes;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], gone[TW_MISSING_TEXT_BYTES];
	*text = 0;
	*warns = false;
	switch (number) {
	case 0:
	case 1:
	case 2:
	case 3: note_absence(mailboxes, number, text); return true;
	case 4:
		*warns = mailboxes->lost;
		if (mailboxes->lost || mailboxes->overwritten)
			snprintf(text, TW_LATE_NOTE,
				 "%s: %s in queues then, and not in this list; waits marked ? may be wrong (%s).",
				 tw_missing_gone(mailboxes->lost, mailboxes->overwritten, gone),
				 tw_figure_of(b, mailboxes->unfollowed, "message was", "messages were"),
				 lates->unsure ? "of messages taken after a gap" : "there are none");
		return true;
	case 5:
		*warns = true;
		if (mailboxes->unmatched)
			snprintf(text, TW_LATE_NOTE, "%s taken whose arrival is not in the capture.",
				 tw_figure_of(a, mailboxes->unmatched, "message was", "messages were"));
		return true;
	case 6:
		if (lates->without_arrival)
			snprintf(
				text, TW_LATE_NOTE,
				"%s taken whose send is not in the capture (-p send): how long they waited is not known.",
				tw_figure_of(a, lates->without_arrival, "message was", "messages were"));
		return true;
	case 7:
		if (lates->waiting || mailboxes->dropped)
			snprintf(text, TW_LATE_NOTE,
				 "Never taken: %s still in queues at the end, %s in those of processes that exited.",
				 tw_figure_of(a, lates->waiting, "message", "messages"),
				 tw_figure_count(b, mailboxes->dropped));
		return true;
	case 8:
		*warns = true;
		if (mailboxes->left_out)
			snprintf(text, TW_LATE_NOTE, "%s did not fit in memory while more than %s were in queues.",
				 tw_figure_of(a, mailboxes->left_out, "message", "messages"),
				 tw_figure_count(b, TW_MAILBOX_MESSAGES_MAX));
		return true;
	default: return false;
	}
}
