/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - durations of calls, each counted in one of at most 64 x 64 counters.
 *
 * Each power of two is divided into 64 equal parts, so a quantile is wrong by at most 0.8 % (below 128 ns it is
 * exact). Powers that never occur take no memory: a function has 512 bytes for each that does. Based on Gil Tene's
 * HdrHistogram.
 */
#ifndef TW_VIEWS_HISTOGRAM_H
#define TW_VIEWS_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define TW_HISTOGRAM_PARTS 64

/* Zeroed at first. */
struct tw_histogram {
	uint64_t count;
	uint64_t min;
	uint64_t max;
	uint64_t *parts[65 - 6]; /* by the power of two; the first holds 0 to 63 */
};

/* Returns false without memory. */
static inline bool tw_histogram_add(struct tw_histogram *histogram, uint64_t value)
{
	unsigned power = value < TW_HISTOGRAM_PARTS ? 0 : 58 - (unsigned)__builtin_clzll(value);
	uint64_t **parts = &histogram->parts[power];
	if (!*parts && !(*parts = calloc(TW_HISTOGRAM_PARTS, sizeof **parts)))
		return false;
	/* From 64 on the leading bit is given by the power. */
	(*parts)[(power ? value >> (power - 1) : value) & (TW_HISTOGRAM_PARTS - 1)]++;
	if (!histogram->count || value < histogram->min)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->count++;
	return true;
}

/* A value that occurred so often. Returns false without memory. */
bool tw_histogram_add_many(struct tw_histogram *histogram, uint64_t value, uint64_t count);
/* Takes all values of the other, which is empty afterwards. */
void tw_histogram_join(struct tw_histogram *histogram, struct tw_histogram *from);
/* The value below which this share of all values lies: 0.5 is the median. 0 if there are none. */
uint64_t tw_histogram_quantile(const struct tw_histogram *histogram, double share);
void tw_histogram_free(struct tw_histogram *histogram);

#endif
