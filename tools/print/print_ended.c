/* SPDX-License-Identifier: Apache-2.0 */
/* print_ended.c - of a snapshot that an Erlang process caused by its end: the last events of that process, before all others. */
#include "views/folds/pass.h"
#include "tools/print/print.h"

#define SHOWN 20

struct ended {
	struct tw_printer *printer;
	const struct tw_print_format *format;
	uint32_t image, tracee_id;
	uint64_t seen, skipped; /* events of the process: in the first pass, and before the last ones in the second */
};

static bool is_of_it(const struct ended *ended, const struct tw_capture_event *event)
{
	return event->tracee_id == ended->tracee_id && event->image == ended->image && event->kind != TW_CAPTURE_LOSS &&
	       event->kind != TW_CAPTURE_OWN_TIME;
}

static int count(void *self, const struct tw_capture_event *event)
{
	struct ended *ended = self;
	ended->seen += is_of_it(ended, event);
	return 0;
}

static int show(void *self, const struct tw_capture_event *event)
{
	struct ended *ended = self;
	if (!is_of_it(ended, event))
		return 0;
	if (ended->seen - ended->skipped > SHOWN) {
		ended->skipped++;
		return 0;
	}
	ended->format->event(ended->printer, event);
	return 0;
}

int tw_print_ended(struct tw_printer *printer, const struct tw_print_format *format,
		   const struct tw_capture_filter *filter)
{
	struct ended ended = {.printer = printer, .format = format};
	char text[TW_THREAD_TEXT_BYTES], figure[TW_FIGURE_BYTES];
	struct tw_fold fold = {.self = &ended, .filter = *filter, .see = count};
	if (!tw_name_ended(printer->capture, &ended.image, &ended.tracee_id))
		return 0;
	int error = tw_pass_one((struct tw_capture *)printer->capture, &fold, NULL);
	if (error)
		return error;
	tw_process_text_alone(printer->capture, ended.image, ended.tracee_id, text);
	if (ended.seen > SHOWN)
		tw_out_format(printer->out, "the last %d of %s of %s:\n", SHOWN,
			      tw_figure_of(figure, ended.seen, "event", "events"), text);
	else
		tw_out_format(printer->out, "the events of %s:\n", text);
	fold.see = show;
	error = tw_pass_one((struct tw_capture *)printer->capture, &fold, NULL);
	tw_out_text(printer->out, "\nall processes:\n");
	return error;
}
