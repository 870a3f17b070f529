/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c - quantiles of durations. */
#include "views/folds/histogram.h"

#include <math.h>

#define POWERS (sizeof(((struct tw_histogram *)0)->parts) / sizeof(uint64_t *))

/* The middle of a part. */
static uint64_t value_of(unsigned power, unsigned part)
{
	if (power == 0)
		return part;
	uint64_t low = (uint64_t)(TW_HISTOGRAM_PARTS + part) << (power - 1);
	return low + ((UINT64_C(1) << (power - 1)) >> 1);
}

uint64_t tw_histogram_quantile(const struct tw_histogram *histogram, double share)
{
	uint64_t wanted = (uint64_t)ceil(share * (double)histogram->count), seen = 0;
	if (!histogram->count)
		return 0;
	if (wanted <= 1)
		return histogram->min;
	if (wanted >= histogram->count)
		return histogram->max;
	for (unsigned power = 0; power < POWERS; power++) {
		for (unsigned part = 0; histogram->parts[power] && part < TW_HISTOGRAM_PARTS; part++) {
			seen += histogram->parts[power][part];
			if (seen < wanted)
				continue;
			uint64_t value = value_of(power, part);
			if (value < histogram->min)
				return histogram->min;
			return value < histogram->max ? value : histogram->max;
		}
	}
	return histogram->max;
}

bool tw_histogram_add_many(struct tw_histogram *histogram, uint64_t value, uint64_t count)
{
	unsigned power = value < TW_HISTOGRAM_PARTS ? 0 : 58 - (unsigned)__builtin_clzll(value);
	if (!count)
		return true;
	if (!tw_histogram_add(histogram, value))
		return false;
	histogram->parts[power][(power ? value >> (power - 1) : value) & (TW_HISTOGRAM_PARTS - 1)] += count - 1;
	histogram->count += count - 1;
	return true;
}

void tw_histogram_join(struct tw_histogram *histogram, struct tw_histogram *from)
{
	if (!from->count)
		return;
	if (!histogram->count || from->min < histogram->min)
		histogram->min = from->min;
	if (from->max > histogram->max)
		histogram->max = from->max;
	histogram->count += from->count;
	for (unsigned power = 0; power < POWERS; power++) {
		if (!histogram->parts[power]) {
			histogram->parts[power] = from->parts[power];
			from->parts[power] = NULL;
		}
		for (unsigned part = 0; from->parts[power] && part < TW_HISTOGRAM_PARTS; part++)
			histogram->parts[power][part] += from->parts[power][part];
	}
	tw_histogram_free(from);
}

void tw_histogram_free(struct tw_histogram *histogram)
{
	for (unsigned power = 0; power < POWERS; power++)
		free(histogram->parts[power]);
	*histogram = (struct tw_histogram){0};
}
