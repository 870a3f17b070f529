/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - the one loop over the events of a capture. */
#include "views/folds/pass.h"
#include "views/output/output.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

struct tw_pass {
	struct tw_capture *capture;
	struct tw_capture_events *events;
	struct tw_fold *folds;
	size_t count, done;
	bool is_over;
	const struct tw_count *counts;	  /* sees all records; NULL: none */
	struct tw_fold *spans_fold;	  /* has see_span: spans are read, not events; else NULL */
	struct tw_marks wanted_elsewhere; /* for it; without images: it is alone */
};

/* ---- what is read ---- */

static bool is_stream_wanted(const struct tw_fold *fold, const struct tw_capture_stream *stream)
{
	return !fold->filter.wants_stream || fold->filter.wants_stream(fold->filter.context, stream);
}

static bool wants_stream(void *context, const struct tw_capture_stream *stream)
{
	const struct tw_pass *pass = context;
	for (size_t i = 0; i < pass->count; i++) {
		if (is_stream_wanted(&pass->folds[i], stream))
			return true;
	}
	return false;
}

static bool is_place_wanted(const struct tw_fold *fold, uint32_t image, uint32_t id)
{
	return !fold->filter.wants_place || tw_marks_at(&fold->wanted, image, id);
}

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_pass *pass = context;
	for (size_t i = 0; i < pass->count; i++) {
		if (is_place_wanted(&pass->folds[i], image, place->place_id))
			return true;
	}
	return false;
}

static void forget_places(struct tw_pass *pass)
{
	for (size_t i = 0; i < pass->count; i++)
		tw_marks_free(&pass->folds[i].wanted);
	tw_marks_free(&pass->wanted_elsewhere);
}

static uint8_t mark_wanted(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_capture_filter *filter = context;
	return filter->wants_place(filter->context, image, place);
}

/* A lone fold gets what the reader selects. */
static bool make_places(struct tw_pass *pass)
{
	for (size_t i = 0; i < pass->count && pass->count > 1; i++) {
		struct tw_fold *fold = &pass->folds[i];
		if (fold->filter.wants_place &&
		    !tw_marks_make(&fold->wanted, pass->capture, mark_wanted, &fold->filter))
			return false;
	}
	return true;
}

static void widen(struct tw_capture_filter *all, const struct tw_fold *fold, bool is_first)
{
	const struct tw_capture_filter *filter = &fold->filter;
	uint64_t from_ns = fold->wants_before ? 0 : filter->from_ns;
	if (is_first || from_ns < all->from_ns)
		all->from_ns = from_ns;
	if (is_first || !filter->to_ns || (all->to_ns && filter->to_ns > all->to_ns))
		all->to_ns = filter->to_ns;
	all->kinds |= filter->kinds ? filter->kinds : TW_FOLD_ALL_KINDS;
	all->wants_own_time |= filter->wants_own_time;
	all->wants_thread_states |= filter->wants_thread_states;
}

static struct tw_capture_filter filter_of(struct tw_pass *pass)
{
	struct tw_capture_filter all = {.context = pass, .wants_stream = wants_stream, .wants_place = wants_place};
	for (size_t i = 0; i < pass->count; i++) {
		widen(&all, &pass->folds[i], i == 0);
		if (!pass->folds[i].filter.wants_place)
			all.wants_place = NULL;
	}
	if (pass->count > 1)
		return all;
	struct tw_capture_filter only = pass->folds[0].filter;
	only.from_ns = all.from_ns;
	return only;
}

/* ---- who sees it ---- */

static bool is_wanted(const struct tw_pass *pass, const struct tw_fold *fold, const struct tw_capture_event *event)
{
	const struct tw_capture_filter *filter = &fold->filter;
	if ((event->time_ns < filter->from_ns && !fold->wants_before) ||
	    (filter->wants_stream && !is_stream_wanted(fold, tw_capture_stream(pass->capture, event->stream))))
		return false;
	if (event->kind == TW_CAPTURE_OWN_TIME)
		return filter->wants_own_time;
	if (event->kind == TW_CAPTURE_THREAD_STATE)
		return filter->wants_thread_states && (!filter->to_ns || event->time_ns < filter->to_ns);
	if (event->kind == TW_CAPTURE_LOSS)
		return !filter->to_ns || event->time_ns < filter->to_ns ||
		       tw_capture_ns(pass->capture, tw_capture_event_loss(event)->first_ticks) < filter->to_ns;
	if (filter->to_ns && event->time_ns >= filter->to_ns)
		return false;
	if (!((filter->kinds ? filter->kinds : TW_FOLD_ALL_KINDS) >> (event->kind < 63 ? event->kind : 63) & 1))
		return false;
	return event->kind < TW_CAPTURE_CALL || event->kind > TW_CAPTURE_STACK ||
	       is_place_wanted(fold, event->image, event->id);
}

static int begin(struct tw_fold *fold)
{
	fold->has_begun = true;
	return fold->begin ? fold->begin(fold->self, fold->filter.from_ns) : 0;
}

/* Takes the answer of a fold: 0, or an error. */
static int answer(struct tw_pass *pass, struct tw_fold *fold, int result)
{
	if (result != TW_FOLD_DONE)
		return result;
	fold->is_done = true;
	pass->done++;
	return 0;
}

static int show(struct tw_pass *pass, struct tw_fold *fold, const struct tw_capture_event *event)
{
	int error = 0;
	if (!fold->has_begun && event->time_ns >= fold->filter.from_ns)
		error = answer(pass, fold, begin(fold));
	return error || fold->is_done ? error : answer(pass, fold, fold->see(fold->self, event));
}

/* The reader has selected the events of a lone fold. */
static int show_one(struct tw_pass *pass, const struct tw_capture_event *events, int64_t count)
{
	struct tw_fold *fold = pass->folds;
	int error = 0;
	int64_t i = 0;
	for (; i < count && !error && !fold->has_begun && !fold->is_done; i++)
		error = show(pass, fold, &events[i]);
	for (; i < count && !error && !fold->is_done; i++)
		error = fold->see(fold->self, &events[i]);
	return answer(pass, fold, error);
}

static int show_batch(struct tw_pass *pass, const struct tw_capture_event *events, int64_t count)
{
	int error = 0;
	if (pass->count == 1)
		return show_one(pass, events, count);
	for (int64_t i = 0; i < count && !error && pass->done < pass->count; i++) {
		for (size_t j = 0; j < pass->count && !error; j++) {
			struct tw_fold *fold = &pass->folds[j];
			if (!fold->is_done && is_wanted(pass, fold, &events[i]))
				error = show(pass, fold, &events[i]);
		}
	}
	return error;
}

static int begin_all(struct tw_pass *pass)
{
	int error = 0;
	for (size_t i = 0; i < pass->count && !error; i++) {
		if (!pass->folds[i].has_begun)
			error = answer(pass, &pass->folds[i], begin(&pass->folds[i]));
	}
	return error;
}

/* ---- spans ---- */

static bool selects_nothing(const struct tw_fold *fold)
{
	const struct tw_capture_filter *filter = &fold->filter;
	return !filter->from_ns && !filter->to_ns && !filter->wants_place && !filter->kinds;
}

/* The fold that takes spans: all others want some functions of the whole capture. */
static struct tw_fold *spans_fold(const struct tw_pass *pass)
{
	struct tw_fold *found = NULL;
	for (size_t i = 0; i < pass->count; i++) {
		struct tw_fold *fold = &pass->folds[i];
		const struct tw_capture_filter *filter = &fold->filter;
		if (fold->batch || filter->from_ns || filter->to_ns || (pass->count > 1 && filter->wants_stream))
			return NULL;
		if (fold->see_span && !found && selects_nothing(fold))
			found = fold;
		else if (!filter->wants_place)
			return NULL;
	}
	return found;
}

static uint8_t mark_elsewhere(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_pass *pass = context;
	bool is_wanted = false;
	for (size_t i = 0; i < pass->count && !is_wanted; i++)
		is_wanted = tw_marks_at(&pass->folds[i].wanted, image, place->place_id);
	return is_wanted;
}

static bool make_wanted_elsewhere(struct tw_pass *pass)
{
	return !pass->spans_fold || pass->count == 1 ||
	       tw_marks_make(&pass->wanted_elsewhere, pass->capture, mark_elsewhere, pass);
}

int tw_pass_event(struct tw_fold_span *span, const struct tw_capture_record *record, uint64_t sequence)
{
	struct tw_pass *pass = span->pass;
	struct tw_capture_event event;
	int error = 0;
	if (tw_capture_span_event(pass->events, &span->records, record, sequence, &event))
		error = show_batch(pass, &event, 1);
	return error ? error : pass->spans_fold->is_done ? TW_FOLD_DONE : 0;
}

static int count_span(const struct tw_pass *pass, const struct tw_capture_span *span)
{
	const struct tw_capture_batch batch = {.first = span->first,
					       .end = span->end,
					       .first_sequence = span->first_sequence,
					       .stream = span->stream,
					       .image = span->image,
					       .tracee_id = span->tracee_id};
	return pass->counts->see(pass->counts->self, &batch);
}

/* Returns the number of records, 0 at the end, or an error. */
static int64_t step_spans(struct tw_pass *pass)
{
	const struct tw_capture_span *spans;
	struct tw_fold *fold = pass->spans_fold;
	uint64_t records = 0;
	int64_t count = tw_capture_spans_next(pass->events, &spans);
	int error = count > 0 ? begin_all(pass) : 0;
	for (int64_t i = 0; i < count && !error; i++) {
		struct tw_fold_span span = {.pass = pass, .records = spans[i]};
		/* Folds that are done want no more. */
		if (pass->wanted_elsewhere.images && pass->done + 1 < pass->count)
			span.wanted_elsewhere = &pass->wanted_elsewhere.images[spans[i].image];
		error = pass->counts ? count_span(pass, &spans[i]) : 0;
		if (error == TW_FOLD_DONE)
			return 0;
		error = error ? error : fold->see_span(fold->self, &span);
		records += span.seen;
	}
	if (error == TW_FOLD_DONE)
		error = 0;
	return error ? error : count > 0 ? (int64_t)records : count;
}

static int around(struct tw_pass *pass, bool is_over)
{
	int error = 0;
	for (size_t i = 0; i < pass->count && !error; i++) {
		struct tw_fold *fold = &pass->folds[i];
		if (fold->batch && !fold->is_done)
			error = answer(pass, fold, fold->batch(fold->self, is_over));
	}
	return error;
}

int tw_pass_open(struct tw_capture *capture, struct tw_fold *folds, size_t count, struct tw_pass **out)
{
	struct tw_pass *pass = calloc(1, sizeof *pass);
	if (!pass)
		return TW_ENOMEM;
	*pass = (struct tw_pass){.capture = capture, .folds = folds, .count = count};
	for (size_t i = 0; i < count; i++)
		folds[i].has_begun = folds[i].is_done = false;
	int error = make_places(pass) ? 0 : TW_ENOMEM;
	if (!error) {
		/* The reader keeps the filter's context: the pass. */
		const struct tw_capture_filter filter = filter_of(pass);
		error = tw_capture_events_create(capture, &filter, &pass->events);
		pass->spans_fold = spans_fold(pass);
		if (!error && !make_wanted_elsewhere(pass))
			error = TW_ENOMEM;
	}
	if (error)
		tw_pass_close(pass);
	else
		*out = pass;
	return error;
}

int64_t tw_pass_step(struct tw_pass *pass)
{
	const struct tw_capture_event *batch;
	int64_t count = 0;
	if (pass->is_over)
		return 0;
	if (pass->done < pass->count && pass->spans_fold)
		count = step_spans(pass);
	/* A live stream has events only. */
	if (count == TW_ENOTSUP)
		pass->spans_fold = NULL;
	if (pass->done < pass->count && !pass->spans_fold)
		count = tw_capture_events_next(pass->events, &batch);
	pass->is_over = count <= 0;
	if (pass->is_over)
		return count < 0 ? count : begin_all(pass);
	if (pass->spans_fold)
		return count;
	int error = around(pass, false);
	if (!error)
		error = show_batch(pass, batch, count);
	if (!error)
		error = around(pass, true);
	return error ? error : count;
}

void tw_pass_close(struct tw_pass *pass)
{
	if (pass->events)
		tw_capture_events_destroy(pass->events);
	forget_places(pass);
	free(pass);
}

static int run(struct tw_pass *pass, const char *doing)
{
	struct tw_capture_info info;
	struct tw_meter meter;
	uint64_t done = 0;
	int64_t read;
	tw_capture_info(pass->capture, &info);
	if (doing)
		tw_meter_start(&meter, doing);
	while ((read = tw_pass_step(pass)) > 0) {
		done += (uint64_t)read;
		if (doing)
			tw_meter_at(&meter, done, info.events);
	}
	if (doing)
		tw_meter_stop(&meter);
	tw_pass_close(pass);
	return (int)read;
}

int tw_pass(struct tw_capture *capture, struct tw_fold *folds, size_t count, const char *doing)
{
	struct tw_pass *pass;
	int error = tw_pass_open(capture, folds, count, &pass);
	return error ? error : run(pass, doing);
}

int tw_pass_counted(struct tw_capture *capture, struct tw_fold *folds, size_t fold_count, const struct tw_count *count,
		    const char *doing)
{
	struct tw_pass *pass;
	int error = tw_pass_open(capture, folds, fold_count, &pass);
	if (error)
		return error;
	pass->counts = count;
	if (pass->spans_fold)
		return run(pass, doing);
	tw_pass_close(pass);
	return TW_ENOTSUP;
}
