/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_page.c - the slowest messages as one page: late.html, which is built into the program, with the data as JSON,
 * escaped so that it cannot end its element.
 */
#include "tools/late/late.h"
#include "views/names/names.h"
#include "views/output/page.h"
#include "views/names/threads.h"

#include <stdlib.h>

TW_PAGE(tw_late_page_text, TW_PAGE_FILE);

static void put_process(struct tw_out *out, const struct tw_lates *lates, uint32_t process)
{
	char text[TW_THREAD_TEXT_BYTES];
	tw_mailboxes_name(&lates->mailboxes, process, text);
	tw_page_text(out, text, strlen(text));
}

/* Writes runs of equal columns: kind, first, count. */
static void put_lane(struct tw_out *out, const struct tw_late_step *step)
{
	tw_out_text(out, ",\"lane\":[");
	for (unsigned i = 0, end; i < TW_LATE_COLUMNS; i = end) {
		for (end = i + 1; end < TW_LATE_COLUMNS && step->lane[end] == step->lane[i]; end++)
			;
		tw_out_format(out, "%s%u,%u,%u", i ? "," : "", step->lane[i], i, end - i);
	}
	tw_out_text(out, "]");
}

static void put_step(struct tw_out *out, const struct tw_lates *lates, const struct tw_late *late,
		     const struct tw_late_step *step)
{
	tw_out_text(out, "{\"process\":");
	put_process(out, lates, step->process);
	tw_out_format(
		out,
		",\"from\":%llu,\"to\":%llu,\"ns\":[%llu,%llu,%llu,%llu],\"times\":[%llu,%llu,%llu,%llu],\"takes\":%llu",
		(unsigned long long)(step->from_ns > late->arrived_ns ? step->from_ns - late->arrived_ns : 0),
		(unsigned long long)(step->to_ns - late->arrived_ns), (unsigned long long)step->ns[0],
		(unsigned long long)step->ns[1], (unsigned long long)step->ns[2], (unsigned long long)step->ns[3],
		(unsigned long long)step->times[0], (unsigned long long)step->times[1],
		(unsigned long long)step->times[2], (unsigned long long)step->times[3],
		(unsigned long long)step->takes);
	if (step->ns[TW_DOING_BLOCKED]) {
		tw_out_text(out, ",\"by\":");
		put_process(out, lates, step->by);
		tw_out_format(out, ",\"byNs\":%llu", (unsigned long long)step->by_ns);
	}
	put_lane(out, step);
	tw_out_text(out, "}");
}

static void put_late(struct tw_out *out, const struct tw_lates *lates, const struct tw_late *late)
{
	tw_out_format(out, "{\"wait\":%llu,\"tracer\":%llu,\"at\":%llu,\"queue\":%u,\"isSure\":%s,\"message\":",
		      (unsigned long long)tw_late_wait(late), (unsigned long long)late->own_ns,
		      (unsigned long long)(late->arrived_ns > lates->zero_ns ? late->arrived_ns - lates->zero_ns : 0),
		      late->length, late->is_sure ? "true" : "false");
	tw_page_text(out, late->text, strlen(late->text));
	tw_out_text(out, ",\"sender\":");
	put_process(out, lates, late->sender);
	tw_out_text(out, ",\"receiver\":");
	put_process(out, lates, late->receiver);
	tw_out_text(out, ",\"steps\":[");
	for (uint32_t i = 0; i < late->step_count; i++) {
		tw_out_text(out, i ? "," : "");
		put_step(out, lates, late, &late->steps[i]);
	}
	tw_out_text(out, "]}");
}

bool tw_late_page(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture, const char *path)
{
	const char *rest = tw_page_begin(out, tw_late_page_text);
	char note[TW_LATE_NOTE];
	bool warns, is_next = false;
	if (!rest)
		return false;
	tw_out_text(out, "{\"title\":");
	tw_page_text(out, path, strlen(path));
	tw_out_format(out, ",\"columns\":%d,\"taken\":%llu,\"median\":%llu,\"p99\":%llu,\"longest\":%llu,\"notes\":[",
		      TW_LATE_COLUMNS, (unsigned long long)lates->waits.count,
		      (unsigned long long)tw_histogram_quantile(&lates->waits, 0.5),
		      (unsigned long long)tw_histogram_quantile(&lates->waits, 0.99),
		      (unsigned long long)lates->waits.max);
	for (unsigned i = 0; tw_late_note(lates, capture, i, note, &warns); i++) {
		if (!*note)
			continue;
		tw_out_text(out, is_next ? ",{\"text\":" : "{\"text\":");
		tw_page_text(out, note, strlen(note));
		tw_out_format(out, ",\"warns\":%s}", warns ? "true" : "false");
		is_next = true;
	}
	tw_out_text(out, "],\"late\":[");
	for (size_t i = 0; i < lates->count; i++) {
		tw_out_text(out, i ? "," : "");
		put_late(out, lates, &lates->rows[i]);
	}
	tw_out_text(out, "]}");
	tw_out_text(out, rest);
	return true;
}
