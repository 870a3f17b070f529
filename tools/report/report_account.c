/* SPDX-License-Identifier: Apache-2.0 */
/* report_account.c - what is missing in a report, and why. */
#include "tools/report/report.h"
#include "views/names/holes.h"
#include "views/names/missing.h"
#include "views/names/crash.h"
#include "views/names/names.h"
#include "views/names/notes.h"

#include "tracewheel/segment.h"

#include <ctype.h>

#define NOTES_SHOWN 3

void tw_report_losses(const struct tw_screen *screen, const struct tw_totals *totals, const struct tw_capture *capture,
		      const struct tw_capture_account *account, const struct tw_capture_info *info, bool is_part)
{
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	uint64_t lost = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += totals->lost[cause];
	/* The account has the sentence of the whole. */
	if (totals->overwritten && is_part)
		tw_out_format(screen->out, "%s in this part, as --on-full overwrite requests.\n",
			      tw_missing_replaced(totals->overwritten, text));
	if (!lost && totals->overwritten)
		return;
	if (!lost) {
		/* Without the end of a capture its account is not known. */
		tw_out_text(screen->out,
			    is_part				? "Nothing was lost in this part.\n"
			    : info->is_live			? "Nothing was lost so far.\n"
			    : tw_missing_is_part(account, info) ? "It reports no losses, but parts of it are missing.\n"
			    : tw_notes_is_untraced(capture, account) ? "Nothing was lost of what was traced.\n"
								     : "Nothing was lost.\n");
		return;
	}
	/* The functions of lost events are not known: the share is of all events of that time and of those threads. */
	tw_missing_lost(totals->lost, is_part ? (struct tw_missing_apart){0} : tw_missing_apart_of(account), text);
	tw_out_format(screen->out, "%sLOST %s, %.2f %% of all%s: %s%s\n", tw_screen_red(screen),
		      tw_figure_of(figure, lost, "event", "events"),
		      100.0 * (double)lost / (double)(lost + totals->all_events), is_part ? " in this part" : "", text,
		      tw_screen_plain(screen));
}

/* After everything that is said of the program. */
void tw_report_setups(const struct tw_screen *screen, const struct tw_capture *capture)
{
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	tw_capture_account(capture, &account);
	if (*tw_missing_setups(&account, clause))
		tw_out_format(screen->out, "%c%s: this is not in the times of calls.\n",
			      toupper((unsigned char)*clause), clause + 1);
}

static void put_hole(void *context, const char *line)
{
	const struct tw_screen *screen = context;
	tw_out_format(screen->out, "%c%s.\n", toupper((unsigned char)*line), line + 1);
}

/* Shows data missing for other causes, and waits for the tracer. */
void tw_report_account(const struct tw_screen *screen, const struct tw_capture *capture,
		       const struct tw_capture_info *info)
{
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	tw_capture_account(capture, &account);
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++) {
		bool is_failure = cause >= TW_MISSING_SEGMENTS && cause <= TW_MISSING_UNSTORED;
		if (!*tw_missing_clause(&account, cause, clause))
			continue;
		tw_out_format(screen->out, "%s%s%c%s%s.%s\n", is_failure ? tw_screen_red(screen) : "",
			      is_failure ? "This capture is not complete: " : "",
			      is_failure ? *clause : toupper((unsigned char)*clause), clause + 1,
			      is_failure ? "; the readable part is shown" : "",
			      is_failure ? tw_screen_plain(screen) : "");
	}
	tw_missing_each_hole(capture, TW_HOLES_SHOWN, put_hole, (void *)screen);
	if (tw_capture_is_asked(capture))
		tw_out_text(screen->out,
			    "These are the segments that were asked for; others of the recording are not here.\n");
	if (info->is_live)
		tw_out_format(screen->out, "%sThis capture is not complete: %s.%s\n", tw_screen_red(screen),
			      tw_names_unfinished(), tw_screen_plain(screen));
	if (*tw_missing_waits(&account, clause))
		tw_out_format(screen->out, "The program %s: this is not in the times of calls.\n", clause);
}

void tw_report_stopped(const struct tw_screen *screen, const struct tw_capture *capture)
{
	char text[TW_STOP_BYTES], trigger[TW_TRIGGER_BYTES];
	enum tw_stop why;
	uint64_t limit;
	if (tw_name_trigger(capture, trigger)) {
		tw_out_text(screen->out, "A flight recorder's snapshot, ");
		tw_out_name(screen->out, trigger);
		tw_out_text(screen->out, ".\n");
	}
	tw_crash_put(screen->out, capture, "", "  ");
	if (tw_capture_stopped(capture, &why, &limit))
		tw_out_format(screen->out, "The recording ended %s; the program went on.\n",
			      tw_name_stop(why, limit, text));
}

void tw_report_ending(const struct tw_screen *screen, const struct tw_capture *capture)
{
	char ending[TW_ENDING_BYTES];
	bool is_well;
	if (tw_name_ending(capture, ending, &is_well) && !is_well)
		tw_out_format(screen->out, "%sThe program ended: %s.%s\n", tw_screen_red(screen), ending,
			      tw_screen_plain(screen));
}

static void put_note(void *context, const char *note)
{
	const struct tw_screen *screen = context;
	tw_out_text(screen->out, "Note: ");
	tw_out_name(screen->out, note);
	tw_out_text(screen->out, ".\n");
}

/* Shows some notes of the agent: why something that was requested is missing. */
void tw_report_notes(struct tw_screen *screen, const struct tw_capture *capture)
{
	char figure[TW_FIGURE_BYTES];
	size_t others = tw_notes_each(capture, NOTES_SHOWN, put_note, screen);
	if (others)
		tw_out_format(screen->out, "%s: tracewheel info.\n",
			      tw_figure_of(figure, others, "further note", "further notes"));
}

void tw_report_preface(const struct tw_screen *screen, const struct tw_capture *capture)
{
	static struct tw_out text;
	struct tw_screen plain = *screen;
	struct tw_capture_info info;
	tw_out_init(&text, -1);
	plain.out = &text;
	tw_capture_info(capture, &info);
	tw_report_head(&plain, capture, &info);
	tw_report_stopped(&plain, capture);
	tw_report_account(&plain, capture, &info);
	tw_report_notes(&plain, capture);
	tw_screen_wrapped(screen, text.data, text.used);
}
