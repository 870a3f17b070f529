/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - how long, how much and how fast `attach` records at most. */
#ifndef TW_TOOLS_LIMITS_H
#define TW_TOOLS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct tw_command;
struct tw_recorder_stats;

/* 0: no limit. */
struct tw_limits {
	uint64_t time_ns, events, rate;
	/* Filled while they are looked at. */
	uint64_t begun_ns, second_ns, second_events;
};

/* Sets one of "time", "events" and "rate" from an option; `none` is no limit. False: it was wrong, which has been reported. */
bool tw_limits_set(struct tw_limits *limits, const struct tw_command *command, const char *option, const char *value);
/* The recording begins now. */
void tw_limits_begin(struct tw_limits *limits);
/* Is a limit reached? Then @why says which, as a clause. Lost events count as well. */
bool tw_limits_are_reached(struct tw_limits *limits, const struct tw_recorder_stats *stats, char *why,
			   unsigned long bytes);
/* "60 s, 10,000,000 events, or 1,000,000 events a second"; "" if there are none. */
void tw_limits_text(const struct tw_limits *limits, char *out, unsigned long bytes);

#endif
