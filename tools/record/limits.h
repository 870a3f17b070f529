/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - how long, how much and how fast `record` and `attach` record at most. */
#ifndef TW_TOOLS_LIMITS_H
#define TW_TOOLS_LIMITS_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_command;
struct tw_recorder;
struct tw_recorder_stats;

/* 0: no limit. */
struct tw_limits {
	uint64_t time_ns, events, rate;
	bool demotes; /* too many events in a second are no end, as long as the functions that make them can be counted instead */
	/* Filled while they are looked at: the last two when one is reached. */
	uint64_t begun_ns, second_ns, second_events;
	enum tw_stop why; /* 0: none is reached */
	uint64_t reached;
};

/* 250000, 10M, 2k, 1M/s, 10s, none (0): the value of one of the options "time" (ns), "events" and "rate". */
bool tw_limits_parse(const char *option, const char *value, uint64_t *out);
/* Sets one of "time", "events" and "rate" from an option; `none` is no limit. False: it was wrong, which has been reported. */
bool tw_limits_set(struct tw_limits *limits, const struct tw_command *command, const char *option, const char *value);
/* The recording begins now. */
void tw_limits_begin(struct tw_limits *limits);
/* Is there a limit? */
bool tw_limits_are_set(const struct tw_limits *limits);
/* Is one reached, from now on? Lost events count as well.  To be called each 50 ms or so. */
bool tw_limits_are_reached(struct tw_limits *limits, struct tw_recorder *recorder,
			   const struct tw_recorder_stats *stats);
/* "60 s, 10,000,000 events, or 1,000,000 events a second"; "" if there are none. */
void tw_limits_text(const struct tw_limits *limits, char *out, unsigned long bytes);

#endif
