/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - batch means, and the noise of differences. */
#include "views/folds/spread.h"

#include <math.h>

void tw_spread_close_batch(struct tw_spread *spread)
{
	if (!spread->size)
		spread->size = 1;
	spread->sums[spread->count++] = spread->sum;
	spread->sum = spread->used = 0;
	if (spread->count < TW_SPREAD_BATCHES)
		return;
	spread->count /= 2;
	spread->size *= 2;
	for (uint32_t i = 0; i < spread->count; i++)
		spread->sums[i] = spread->sums[2 * i] + spread->sums[2 * i + 1];
}

/* The variance of the mean of these. */
static double variance_of_mean(const double *values, size_t count)
{
	double mean = 0, squares = 0;
	for (size_t i = 0; i < count; i++)
		mean += values[i];
	mean /= (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return squares / (double)(count - 1) / (double)count;
}

struct tw_estimate tw_spread_sum(const struct tw_spread *spread, uint64_t sum)
{
	struct tw_estimate estimate = {.value = (double)sum};
	double means[TW_SPREAD_BATCHES];
	if (spread->count < 2)
		return estimate;
	for (uint32_t i = 0; i < spread->count; i++)
		means[i] = (double)spread->sums[i] / (double)spread->size;
	estimate.variance = variance_of_mean(means, spread->count) * (double)spread->values * (double)spread->values;
	estimate.freedom = spread->count - 1;
	return estimate;
}

struct tw_estimate tw_estimate_runs(const double *values, size_t count)
{
	struct tw_estimate estimate = {0};
	for (size_t i = 0; i < count; i++)
		estimate.value += values[i] / (double)count;
	if (count < 2)
		return estimate;
	estimate.variance = variance_of_mean(values, count);
	estimate.freedom = (double)(count - 1);
	return estimate;
}

/* The quantile 0.975 of Student's distribution: by its expansion in 1/freedom, which is right to 1 % from 3 on. */
static double student(double freedom)
{
	const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, n = freedom;
	if (n < 3) {
		/* Between the exact values for 1, 2 and 3. */
		static const double exact[] = {12.706, 12.706, 4.303, 3.182};
		unsigned at = n < 1 ? 0 : (unsigned)n;
		return exact[at] + (exact[at + 1] - exact[at]) * (n < 1 ? 0 : n - at);
	}
	return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
	       (3 * z5 * z * z + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

bool tw_estimates_noise(const struct tw_estimate *a, const struct tw_estimate *b, double *out)
{
	double sum = a->variance + b->variance;
	*out = 0;
	if (a->freedom <= 0 || b->freedom <= 0)
		return false;
	if (sum <= 0)
		return true;
	double freedom = sum * sum / (a->variance * a->variance / a->freedom + b->variance * b->variance / b->freedom);
	*out = student(freedom) * sqrt(sum);
	return true;
}
