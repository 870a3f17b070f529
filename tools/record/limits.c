/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - the limits of `record` and `attach`: limits.h. */
#include "tools/record/limits.h"
#include "tools/tool.h"

#include "tracewheel/consumer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

bool tw_limits_parse(const char *option, const char *value, uint64_t *out)
{
	if (strcmp(value, "none") == 0) {
		*out = 0;
		return true;
	}
	return strcmp(option, "time") == 0 ? tw_parse_duration(value, out) && *out
					   : tw_parse_decimal(value, strcmp(option, "rate") == 0, out);
}

bool tw_limits_set(struct tw_limits *limits, const struct tw_command *command, const char *option, const char *value)
{
	bool is_time = strcmp(option, "time") == 0, is_rate = strcmp(option, "rate") == 0;
	uint64_t *out = is_time ? &limits->time_ns : is_rate ? &limits->rate : &limits->events, number = 0;
	bool is_right = tw_limits_parse(option, value, &number);
	if (is_right)
		*out = number;
	else
		tw_usage(command,
			 is_time   ? "--time is a time such as 60s or 500ms, or none; not '%s'."
			 : is_rate ? "--rate is a number of events a second such as 1M/s, or none; not '%s'."
				   : "--events is a number such as 10M, or none; not '%s'.",
			 value);
	return is_right;
}

void tw_limits_begin(struct tw_limits *limits)
{
	limits->begun_ns = limits->second_ns = tw_now_ns();
	limits->second_events = 0;
	limits->why = 0;
}

bool tw_limits_are_set(const struct tw_limits *limits)
{
	return limits->time_ns || limits->events || limits->rate;
}

static void reach(struct tw_limits *limits, enum tw_stop why, uint64_t limit)
{
	limits->why = why;
	limits->reached = limit;
}

/* @events: of the last @time_ns, which is more than a second where the recorder stood still. */
static bool is_too_fast(struct tw_limits *limits, struct tw_recorder *recorder, uint64_t events, uint64_t time_ns)
{
	if (!limits->rate)
		return false;
	if (limits->demotes)
		return tw_recorder_demote(recorder, limits->rate) == TW_DEMOTION_IMPOSSIBLE;
	return (double)events > (double)limits->rate * (double)(time_ns > SECOND_NS ? time_ns : SECOND_NS) / SECOND_NS;
}

bool tw_limits_are_reached(struct tw_limits *limits, struct tw_recorder *recorder,
			   const struct tw_recorder_stats *stats)
{
	/* How fast they come is seen where they are taken: a slow disk stores those of several seconds at once. */
	uint64_t now = tw_now_ns(), events = stats->events, taken = stats->events_taken;
	if (limits->why)
		return true;
	for (int i = 0; i < TW_LOST_CAUSES; i++) {
		events += stats->lost[i];
		taken += stats->lost[i];
	}
	if (limits->time_ns && now - limits->begun_ns >= limits->time_ns)
		reach(limits, TW_STOP_TIME, limits->time_ns);
	else if (limits->events && events >= limits->events)
		reach(limits, TW_STOP_EVENTS, limits->events);
	else if (is_too_fast(limits, recorder, taken - limits->second_events, now - limits->second_ns))
		reach(limits, TW_STOP_RATE, limits->rate);
	if (now - limits->second_ns >= SECOND_NS) {
		limits->second_ns = now;
		limits->second_events = taken;
	}
	return limits->why != 0;
}

void tw_limits_text(const struct tw_limits *limits, char *out, unsigned long bytes)
{
	char figure[TW_FIGURE_BYTES];
	size_t used = 0;
	out[0] = 0;
	if (limits->time_ns)
		used += (size_t)snprintf(out, bytes, "after %s",
					 tw_figure_seconds(figure, (double)limits->time_ns / 1e9));
	if (limits->events)
		used += (size_t)snprintf(out + used, bytes - used, "%safter %s", used ? ", " : "",
					 tw_figure_of(figure, limits->events, "event", "events"));
	if (limits->rate)
		snprintf(out + used, bytes - used, "%sat more than %s a second%s", used ? ", or " : "",
			 tw_figure_of(figure, limits->rate, "event", "events"),
			 limits->demotes ? " that cannot be counted instead" : "");
}
