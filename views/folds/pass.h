/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.h - reads the events of a capture once, in their order, for any number of folds.
 *
 * A fold is what a view makes of events: a call tree, mailboxes, locks, lines of text. It says which events it wants, and
 * sees each of them. No view has a loop over events of its own.
 *
 * Threads  a fold is called on the thread of tw_pass(); the reader makes batches of events ahead of it, on others.
 */
#ifndef TW_VIEWS_PASS_H
#define TW_VIEWS_PASS_H

#include "views/folds/marks.h"
#include "views/folds/scan.h"

#include "tracewheel/spans.h"

/* Every function returns 0 to go on, TW_FOLD_DONE if the fold needs no more, or an error (below 0), which ends the pass. */
enum { TW_FOLD_DONE = 1 };

/* The kinds that a filter without kinds selects. */
#define TW_FOLD_ALL_KINDS                                                          \
	(~(UINT64_C(1) << TW_CAPTURE_SWITCH | UINT64_C(1) << TW_CAPTURE_OWN_TIME | \
	   UINT64_C(1) << TW_CAPTURE_THREAD_STATE))

struct tw_pass;

/* The records of a span, for a fold. */
struct tw_fold_span {
	struct tw_pass *pass;
	struct tw_capture_span records;
	const struct tw_marks_image
		*wanted_elsewhere; /* of its image: other folds want these events; NULL: none does */
	uint64_t seen;		   /* set: how many records it was, as far as it came */
};

struct tw_fold {
	void *self;
	/* Which events; losses are always among them.  The selection begins at from_ns. */
	struct tw_capture_filter filter;
	/*
	 * Events from before from_ns too, from the beginning of the capture on: calls and processes may have begun there.
	 * begin() tells them apart.
	 */
	bool wants_before;
	/* Before the first event of the selection, and at the end if there is none: exactly once.  NULL: no interest. */
	int (*begin)(void *self, uint64_t from_ns);
	int (*see)(void *self, const struct tw_capture_event *event);
	/*
	 * Instead of see(), where all of a capture is read: the records of a span.  Those that the fold does not take as records, and those of
	 * span->wanted_elsewhere, go through tw_pass_event().  One of the folds may have it, if it selects nothing.  NULL: no interest.
	 */
	int (*see_span)(void *self, struct tw_fold_span *span);
	/* Around the events that were read at once, of a live stream those that have arrived.  NULL: no interest. */
	int (*batch)(void *self, bool is_over);
	/* Of the pass. */
	bool has_begun, is_done;
	struct tw_marks wanted; /* places; without images: all, or the only fold, which gets what the reader selects */
};

/*
 * tw_pass - reads the events that any of the folds wants.
 *
 * @doing	"reading": a progress meter on standard error shows it; NULL: none.
 * @folds	each sees its events in the capture's order; folds see one event in the order of the array.
 *
 * Returns 0, also when all folds were done before the end, or the first error.
 */
int tw_pass(struct tw_capture *capture, struct tw_fold *folds, size_t count, const char *doing);

/*
 * tw_pass_counted - the same over the whole of a capture, with a count of its records, which sees them before the folds do.
 *
 * @count	what it gets of a batch: first, end, first_sequence, stream, image and tracee_id.  TW_FOLD_DONE ends the pass.
 *
 * Returns what tw_pass() does; TW_ENOTSUP, before anything is read, where records are not read as spans: one fold has see_span and selects
 * nothing, and others select functions.
 */
int tw_pass_counted(struct tw_capture *capture, struct tw_fold *folds, size_t fold_count, const struct tw_count *count,
		    const char *doing);

/*
 * tw_pass_open - the same in steps, for a view whose results are taken one by one, and may not be wanted to the end.
 *
 * @folds	borrows until tw_pass_close().
 * @out		gives: tw_pass_close() ends it.
 *
 * Returns 0 or an error.
 */
int tw_pass_open(struct tw_capture *capture, struct tw_fold *folds, size_t count, struct tw_pass **out);
/* Reads the next events, and shows them to the folds.  Returns their number, 0 once all folds are done or there are no more, or an error. */
int64_t tw_pass_step(struct tw_pass *pass);
void tw_pass_close(struct tw_pass *pass);

/* Of see_span(): all folds that want the event of a record see it.  Returns what see_span() returns then, 0 to go on. */
int tw_pass_event(struct tw_fold_span *span, const struct tw_capture_record *record, uint64_t sequence);

/* The same with one fold. */
static inline int tw_pass_one(struct tw_capture *capture, struct tw_fold *fold, const char *doing)
{
	return tw_pass(capture, fold, 1, doing);
}

#endif
