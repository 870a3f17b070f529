/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - options of `record` that are a size, a time or a number: sizes.h. */
#include "tools/record/sizes.h"
#include "tools/record/rings.h"

#include <string.h>
#include <unistd.h>

#define PAGE_BYTES	 4096
#define LEAST_SEGMENT_NS 10000000

static bool is_ring(const char *value, uint64_t *bytes)
{
	return tw_parse_bytes(value, bytes) && *bytes >= TW_RING_BYTES_LEAST && *bytes <= UINT64_C(1) << 30 &&
	       (*bytes & (*bytes - 1)) == 0;
}

static bool is_size(const char *value, uint64_t *bytes)
{
	return tw_parse_bytes(value, bytes) && *bytes >= TW_RING_BYTES_LEAST;
}

/* Whole pages: the next lower number of them. */
static bool is_cap(const char *value, uint64_t *bytes)
{
	if (!tw_parse_bytes(value, bytes) || *bytes < TW_RING_BYTES_LEAST + PAGE_BYTES || *bytes > UINT64_C(1) << 40)
		return false;
	*bytes -= *bytes % PAGE_BYTES;
	return true;
}

static bool is_milliseconds(const char *value, uint64_t *ns)
{
	return tw_parse_milliseconds(value, ns) && *ns > 0;
}

static bool is_number(const char *value, uint32_t *out)
{
	uint64_t number;

	if (!tw_parse_count(value, &number) || number < 1 || number > UINT32_MAX)
		return false;
	*out = (uint32_t)number;
	return true;
}

bool tw_sizes_set(struct tw_recorder_options *recorder, const struct tw_command *command, const char *option,
		  const char *value)
{
	const char *sentence = NULL;

	if (strcmp(option, "ring") == 0)
		sentence = is_ring(value, &recorder->ring_bytes) ? NULL
								 : "--ring is a power of two from 64K to 1G, not '%s'.";
	else if (strcmp(option, "flight") == 0)
		sentence =
			tw_parse_duration(value, &recorder->flight_ns) || is_ring(value, &recorder->ring_bytes)
				? NULL
				: "--flight is a time, such as 10s, or the ring of each thread, a power of two from 64K to 1G; not '%s'.";
	else if (strcmp(option, "ring-cap") == 0)
		sentence = is_cap(value, &recorder->cap_bytes)
				   ? NULL
				   : "--ring-cap is a size from 68K to 1024G, such as 16M, not '%s'.";
	else if (strcmp(option, "rotate") == 0)
		sentence = is_size(value, &recorder->segment_bytes)
				   ? NULL
				   : "'%s' is not a size of at least 64K, such as 16M.";
	else if (strcmp(option, "segment-time") == 0)
		sentence = tw_parse_duration(value, &recorder->segment_ns) && recorder->segment_ns >= LEAST_SEGMENT_NS
				   ? NULL
				   : "--segment-time is a time of at least 10ms, such as 10s, not '%s'.";
	else if (strcmp(option, "counts-every") == 0)
		sentence = tw_parse_duration(value, &recorder->counts_ns) && recorder->counts_ns >= LEAST_SEGMENT_NS
				   ? NULL
				   : "--counts-every is a time of at least 10ms, such as 1s, not '%s'.";
	else if (strcmp(option, "durable") == 0)
		sentence = is_milliseconds(value, &recorder->durable_ns)
				   ? NULL
				   : "--durable is a number of milliseconds, not '%s'.";
	else if (strcmp(option, "long-schedule") == 0)
		sentence = is_milliseconds(value, &recorder->run_delay_ns)
				   ? NULL
				   : "--long-schedule is a number of milliseconds, from 1 on, not '%s'.";
	else
		sentence =
			is_number(value, &recorder->segments_kept) ? NULL : "--keep is a number from 1 on, not '%s'.";
	if (sentence)
		tw_usage(command, sentence, value);
	return !sentence;
}

bool tw_sizes_check_run_delay(const struct tw_recorder_options *recorder, const struct tw_command *command)
{
	if (!recorder->run_delay_ns)
		return true;
	if (recorder->policy == TW_RECORDER_OVERWRITE)
		tw_usage(command, "--long-schedule is not for --on-full overwrite: nothing is written while it runs.");
	else if (access("/proc/self/schedstat", R_OK) != 0)
		tw_usage(command, "--long-schedule needs /proc/PID/schedstat, which this kernel does not have "
				  "(CONFIG_SCHED_INFO).");
	else
		return true;
	return false;
}
