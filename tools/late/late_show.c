/* SPDX-License-Identifier: Apache-2.0 */
/* late_show.c - the slowest messages as text and as JSON. */
#include "tools/late/late.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include <stdio.h>
#include <unistd.h>

/* ---- text ---- */

struct screen {
	struct tw_out *out;
	const struct tw_lates *lates;
	const char *bold, *red, *plain;
	int columns; /* 0: names are not cut */
};

/* Writes a text, cut to the rest of the line. */
static void put_cut(const struct screen *screen, const char *text, int used)
{
	size_t bytes = strlen(text), capacity = screen->columns > used + 8 ? (size_t)(screen->columns - used) : 8;
	if (!screen->columns || bytes <= capacity)
		tw_out_text(screen->out, text);
	else
		tw_out_format(screen->out, "%.*s..", (int)tw_utf8_part(text, capacity - 2), text);
}

static void put_process(const struct screen *screen, uint32_t process, int used)
{
	char text[TW_THREAD_TEXT_BYTES];
	tw_mailboxes_name(&screen->lates->mailboxes, process, text);
	put_cut(screen, text, used);
}

static const char *times(uint64_t count, char *text)
{
	char figure[TW_FIGURE_BYTES];
	if (count == 1)
		return "once";
	snprintf(text, TW_FIGURE_BYTES, "%s times", tw_figure_count(figure, count));
	return text;
}

static void put_share(const struct screen *screen, const struct tw_late_step *step, unsigned doing, int indent)
{
	char a[TW_FIGURE_BYTES];
	uint64_t all = step->to_ns - step->from_ns;
	tw_out_format(screen->out, "%*s%9s %5.1f %%  ", indent, "", tw_figure_duration(a, step->ns[doing]),
		      all ? 100.0 * (double)step->ns[doing] / (double)all : 0);
}

static void put_blocked(const struct screen *screen, const struct tw_late_step *step, int indent)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	put_share(screen, step, TW_DOING_BLOCKED, indent);
	tw_out_format(screen->out, "was blocked, %s", times(step->times[TW_DOING_BLOCKED], a));
	if (step->by == TW_MAILBOX_NOBODY) {
		tw_out_text(screen->out, "; the cause is not known\n");
		return;
	}
	bool is_all = step->by_ns == step->ns[TW_DOING_BLOCKED];
	tw_out_text(screen->out, is_all ? ", by " : "; most by ");
	put_process(screen, step->by, indent + 52);
	if (is_all)
		tw_out_text(screen->out, "\n");
	else
		tw_out_format(screen->out, "\n%*s%s, %s\n", indent + 19, "", tw_figure_duration(a, step->by_ns),
			      times(step->by_times, b));
}

static void put_step(const struct screen *screen, const struct tw_late_step *step, int indent)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (step->ns[TW_DOING_RUN]) {
		put_share(screen, step, TW_DOING_RUN, indent);
		tw_out_format(screen->out, "ran, %s", times(step->times[TW_DOING_RUN], a));
		if (step->takes)
			tw_out_format(screen->out, "; took %s message%s", tw_figure_count(b, step->takes),
				      step->takes == 1 ? "" : "s");
		tw_out_text(screen->out, "\n");
	}
	if (step->ns[TW_DOING_READY]) {
		put_share(screen, step, TW_DOING_READY, indent);
		tw_out_format(screen->out, "was ready but not scheduled, %s\n", times(step->times[TW_DOING_READY], a));
	}
	if (step->ns[TW_DOING_BLOCKED])
		put_blocked(screen, step, indent);
	if (step->ns[TW_DOING_UNKNOWN]) {
		put_share(screen, step, TW_DOING_UNKNOWN, indent);
		tw_out_text(screen->out, "(not known)\n");
	}
}

static void put_late(const struct screen *screen, size_t number, const struct tw_late *late)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	uint64_t at_ns = late->arrived_ns > screen->lates->zero_ns ? late->arrived_ns - screen->lates->zero_ns : 0;
	tw_out_format(screen->out, "\n%s%2zu. %s%s%s  to ", screen->bold, number,
		      tw_figure_duration(a, tw_late_wait(late)), late->is_sure ? "" : " ?", screen->plain);
	put_process(screen, late->receiver, 24);
	tw_out_text(screen->out, "\n    from ");
	put_process(screen, late->sender, 9);
	tw_out_text(screen->out, *late->text ? ": " : "");
	put_cut(screen, late->text, 40);
	tw_out_format(screen->out, "\n    it arrived at %s s", tw_figure_moment(a, at_ns));
	if (late->length > 1)
		tw_out_format(screen->out, " after %s other%s", tw_figure_count(b, late->length - 1),
			      late->length == 2 ? "" : "s");
	tw_out_text(screen->out, "; until it was taken, its receiver\n");
	for (uint32_t i = 0; i < late->step_count; i++) {
		int indent = 4 + (int)i * 2;
		if (i) {
			tw_out_format(screen->out, "%*s", indent, "");
			put_process(screen, late->steps[i].process, indent + 44);
			tw_out_format(screen->out,
				      late->steps[i - 1].by_times > 1 ? ", the longest time, in the %s until it sent,\n"
								      : ", in the %s until it sent,\n",
				      tw_figure_duration(a, late->steps[i].to_ns - late->steps[i].from_ns));
		}
		put_step(screen, &late->steps[i], indent);
	}
	if (late->own_ns)
		tw_out_format(screen->out, "    (in %s of this time the tracer itself delayed a thread)\n",
			      tw_figure_duration(a, late->own_ns));
}

/* Writes a text, wrapped at blanks to the screen's width. */
static void put_wrapped(const struct screen *screen, const char *text)
{
	int width = screen->columns ? screen->columns : 1 << 20, used = 0;
	while (*text) {
		size_t word = strcspn(text, " ");
		if (used && used + 1 + (int)word > width) {
			tw_out_text(screen->out, "\n");
			used = 0;
		} else if (used) {
			tw_out_text(screen->out, " ");
			used++;
		}
		tw_out_bytes(screen->out, text, word);
		used += (int)word;
		text += word + (text[word] == ' ');
	}
	tw_out_text(screen->out, "\n");
}

void tw_late_text(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture)
{
	bool is_coloured = tw_colour_is_wanted(STDOUT_FILENO), warns;
	struct screen screen = {.out = out,
				.lates = lates,
				.bold = is_coloured ? "\033[1m" : "",
				.red = is_coloured ? "\033[1;31m" : "",
				.plain = is_coloured ? "\033[0m" : "",
				.columns = tw_width_is_wanted(STDOUT_FILENO) ? tw_terminal_columns(STDOUT_FILENO) : 0};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES], note[TW_LATE_NOTE],
		line[400];
	if (lates->waits.count) {
		snprintf(line, sizeof line, "%s message%s taken; in the queue: median %s, p99 %s, longest %s.",
			 tw_figure_count(a, lates->waits.count), lates->waits.count == 1 ? " was" : "s were",
			 tw_figure_duration(b, tw_histogram_quantile(&lates->waits, 0.5)),
			 tw_figure_duration(c, tw_histogram_quantile(&lates->waits, 0.99)),
			 tw_figure_duration(d, lates->waits.max));
		put_wrapped(&screen, line);
	} else if (lates->mailboxes.messages && !lates->without_arrival) {
		put_wrapped(&screen, "No message was taken in the selection.");
	}
	for (unsigned i = 0; tw_late_note(lates, capture, i, note, &warns); i++) {
		if (!*note)
			continue;
		tw_out_text(out, warns ? screen.red : "");
		put_wrapped(&screen, note);
		tw_out_text(out, warns ? screen.plain : "");
	}
	for (size_t i = 0; i < lates->count; i++)
		put_late(&screen, i + 1, &lates->rows[i]);
}

/* ---- JSON ---- */

static void put_pid(struct tw_json *json, const char *name, const struct tw_lates *lates, uint32_t process)
{
	char text[64] = "";
	if (process < lates->mailboxes.count)
		tw_name_numbers(lates->mailboxes.processes[process]->pid_number,
				lates->mailboxes.processes[process]->pid_serial, text);
	else if (process == TW_MAILBOX_TIMER)
		snprintf(text, sizeof text, "timer");
	tw_json_string(json, name, text);
}

static void put_name(struct tw_json *json, const char *name, const struct tw_lates *lates, uint32_t process)
{
	char text[TW_THREAD_NAME_BYTES] = "";
	if (process < lates->mailboxes.count)
		tw_process_name(lates->mailboxes.capture, lates->mailboxes.processes[process]->image,
				lates->mailboxes.processes[process]->tracee_id, text);
	tw_json_string(json, name, text);
}

static void put_moment(struct tw_json *json, const char *name, const struct tw_lates *lates, uint64_t ns)
{
	tw_json_u64(json, name, ns > lates->zero_ns ? ns - lates->zero_ns : 0);
}

static void put_step_json(struct tw_json *json, const struct tw_lates *lates, const struct tw_late_step *step)
{
	static const char *const names[TW_DOINGS] = {"unknown", "ran", "ready", "blocked"};
	tw_json_open(json, NULL, '{');
	put_pid(json, "process", lates, step->process);
	put_name(json, "name", lates, step->process);
	put_moment(json, "ns", lates, step->from_ns);
	tw_json_seconds(json, "seconds", step->to_ns - step->from_ns);
	for (unsigned doing = 0; doing < TW_DOINGS; doing++)
		tw_json_seconds(json, names[doing], step->ns[doing]);
	tw_json_u64(json, "runs", step->times[TW_DOING_RUN]);
	tw_json_u64(json, "messages", step->takes);
	if (step->ns[TW_DOING_BLOCKED]) {
		put_pid(json, "blocked_by", lates, step->by);
		put_name(json, "blocked_by_name", lates, step->by);
		tw_json_seconds(json, "blocked_by_seconds", step->by_ns);
		tw_json_u64(json, "blocked_by_times", step->by_times);
	}
	tw_json_close(json, '}');
}

void tw_late_json(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture)
{
	struct tw_json json = {.out = out, .is_spread = true};
	struct tw_capture_account account;
	bool warns;
	char note[TW_LATE_NOTE];
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "messages", lates->mailboxes.messages);
	tw_json_u64(&json, "taken", lates->waits.count);
	tw_json_u64(&json, "still_waiting", lates->waiting);
	tw_json_u64(&json, "dropped", lates->mailboxes.dropped);
	tw_json_u64(&json, "lost", lates->mailboxes.lost);
	tw_json_u64(&json, "overwritten", lates->mailboxes.overwritten);
	tw_json_u64(&json, "unfollowed", lates->mailboxes.unfollowed);
	tw_json_u64(&json, "unsure", lates->unsure);
	tw_json_bool(&json, "knows_takes", lates->mailboxes.has_takes);
	tw_json_bool(&json, "knows_waits", lates->mailboxes.has_waits);
	tw_json_u64(&json, "without_arrival", lates->without_arrival);
	if (lates->waits.count) {
		tw_json_seconds(&json, "median_wait", tw_histogram_quantile(&lates->waits, 0.5));
		tw_json_seconds(&json, "p99_wait", tw_histogram_quantile(&lates->waits, 0.99));
		tw_json_seconds(&json, "longest_wait", lates->waits.max);
	}
	tw_json_open(&json, "notes", '[');
	for (unsigned i = 0; tw_late_note(lates, capture, i, note, &warns); i++) {
		if (*note)
			tw_json_string(&json, NULL, note);
	}
	tw_json_close(&json, ']');
	tw_capture_account(capture, &account);
	tw_missing_json(&json, &account);
	tw_json_open(&json, "late", '[');
	for (size_t i = 0; i < lates->count; i++) {
		const struct tw_late *late = &lates->rows[i];
		tw_json_open(&json, NULL, '{');
		tw_json_seconds(&json, "waited", tw_late_wait(late));
		put_moment(&json, "ns", lates, late->arrived_ns);
		tw_json_string(&json, "message", late->text);
		put_pid(&json, "sender", lates, late->sender);
		put_name(&json, "sender_name", lates, late->sender);
		put_pid(&json, "receiver", lates, late->receiver);
		put_name(&json, "receiver_name", lates, late->receiver);
		tw_json_u64(&json, "queue", late->length);
		tw_json_seconds(&json, "tracer", late->own_ns);
		tw_json_bool(&json, "is_sure", late->is_sure);
		tw_json_open(&json, "chain", '[');
		for (uint32_t k = 0; k < late->step_count; k++)
			put_step_json(&json, lates, &late->steps[k]);
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}
