/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - how the program and the recording ended, and what caused a snapshot. */
#include "views/names/crash.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include "tracewheel/consumer.h"
#include "tracewheel/flight.h"

#include <stdio.h>
#include <string.h>

bool tw_name_ending(const struct tw_capture *capture, char *text, bool *is_well)
{
	int exit_code, number;
	if (!tw_capture_ending(capture, &exit_code, &number))
		return false;
	*is_well = !number && !exit_code;
	const char *name = sigabbrev_np(number);
	if (!number)
		snprintf(text, TW_ENDING_BYTES, "exit code %d", exit_code);
	else if (name)
		snprintf(text, TW_ENDING_BYTES, "killed by signal %d (SIG%s)", number, name);
	else
		snprintf(text, TW_ENDING_BYTES, "killed by signal %d", number);
	return true;
}

const char *tw_name_stop(enum tw_stop why, uint64_t limit, char text[TW_STOP_BYTES])
{
	char figure[TW_FIGURE_BYTES];
	if (why == TW_STOP_TIME)
		snprintf(text, TW_STOP_BYTES, "after %s (--time)", tw_figure_seconds(figure, (double)limit / 1e9));
	else if (why == TW_STOP_EVENTS)
		snprintf(text, TW_STOP_BYTES, "after %s (--events)", tw_figure_of(figure, limit, "event", "events"));
	else if (why == TW_STOP_RATE)
		snprintf(text, TW_STOP_BYTES, "because there were more than %s a second (--rate)",
			 tw_figure_of(figure, limit, "event", "events"));
	else
		snprintf(text, TW_STOP_BYTES, "as it was asked to");
	return text;
}

bool tw_name_trigger(const struct tw_capture *capture, char text[TW_TRIGGER_BYTES])
{
	char moment[TW_FIGURE_BYTES];
	struct tw_capture_trigger trigger;
	struct tw_capture_info info;
	if (!tw_capture_trigger(capture, &trigger))
		return false;
	tw_capture_info(capture, &info);
	tw_figure_moment(moment, trigger.ns > info.zero_ns ? trigger.ns - info.zero_ns : 0);
	snprintf(text, TW_TRIGGER_BYTES, "at %s: %s", moment, trigger.reason);
	return true;
}

/* False: the cause was no end of a process. */
static bool take_pid(const char *reason, unsigned *number, unsigned *serial)
{
	int used = 0;
	return sscanf(reason, "process <0.%u.%u>%n", number, serial, &used) == 2 && used;
}

bool tw_name_ended(const struct tw_capture *capture, uint32_t *image, uint32_t *tracee_id)
{
	const struct tw_capture_tracee *tracee;
	struct tw_capture_trigger trigger;
	unsigned number, serial;
	if (!tw_capture_trigger(capture, &trigger) || !take_pid(trigger.reason, &number, &serial))
		return false;
	for (uint32_t i = 0; tw_capture_image(capture, i); i++) {
		for (uint32_t at = 0; (tracee = tw_capture_tracee_next(capture, i, &at));) {
			if (tracee->is_port || tracee->pid_number != number || tracee->pid_serial != serial)
				continue;
			*image = i;
			*tracee_id = tracee->tracee_id;
			return true;
		}
	}
	return false;
}

static void put_trigger(struct tw_json *json, const struct tw_capture *capture)
{
	struct tw_capture_trigger trigger;
	struct tw_capture_info info;
	if (!tw_capture_trigger(capture, &trigger))
		return;
	tw_capture_info(capture, &info);
	tw_json_open(json, "trigger", '{');
	tw_json_u64(json, "ns", trigger.ns > info.zero_ns ? trigger.ns - info.zero_ns : 0);
	if (trigger.process_id > 0)
		tw_json_u64(json, "process", (uint64_t)trigger.process_id);
	if (trigger.thread_id > 0)
		tw_json_u64(json, "thread", (uint64_t)trigger.thread_id);
	if (trigger.call_ns)
		tw_json_u64(json, "call_ns", trigger.call_ns);
	unsigned number, serial;
	char pid[TW_NAME_NUMBERS_BYTES];
	if (take_pid(trigger.reason, &number, &serial)) {
		tw_name_numbers(number, serial, pid);
		tw_json_string(json, "pid", pid);
	}
	tw_json_string(json, "reason", trigger.reason);
	tw_json_crash(json, capture);
	tw_json_close(json, '}');
}

static void put_stopped(struct tw_json *json, const struct tw_capture *capture)
{
	static const char *const words[] = {[TW_STOP_TIME] = "time",
					    [TW_STOP_EVENTS] = "events",
					    [TW_STOP_RATE] = "rate",
					    [TW_STOP_ASKED] = "asked"};
	enum tw_stop why;
	uint64_t limit;
	if (!tw_capture_stopped(capture, &why, &limit))
		return;
	tw_json_open(json, "stopped", '{');
	tw_json_string(json, "by", words[why]);
	if (limit)
		tw_json_u64(json, why == TW_STOP_TIME ? "limit_ns" : "limit", limit);
	tw_json_close(json, '}');
}

void tw_json_ending(struct tw_json *json, const struct tw_capture *capture)
{
	int exit_code, number;
	char name[32] = "SIG";
	put_stopped(json, capture);
	put_trigger(json, capture);
	if (!tw_capture_ending(capture, &exit_code, &number))
		return;
	tw_json_open(json, "ending", '{');
	if (number) {
		const char *short_name = sigabbrev_np(number);
		tw_json_u64(json, "signal", (uint64_t)number);
		snprintf(name + 3, sizeof name - 3, "%s", short_name ? short_name : "?");
		tw_json_string(json, "name", name);
	} else {
		tw_json_u64(json, "exit_code", (uint64_t)exit_code);
	}
	tw_json_close(json, '}');
}
