/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.h - how far a sum varies by chance, and whether two sums differ by more than that.
 *
 * The values of one run are not independent (caches warm up, a processor is shared), so their own variance says too little. Values that
 * follow each other are put into batches, and the batches' means are compared: "batch means", as simulations use them. The
 * number of batches is kept between 16 and 32 by joining two and two, so that a million values need no more memory than forty.
 *
 * Source  Law, Simulation Modeling and Analysis, 9.5.3 (batch means); Welch, Biometrika 34 (1947), for sums with different variances.
 */
#ifndef TW_VIEWS_SPREAD_H
#define TW_VIEWS_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_SPREAD_BATCHES 32

/* Zeroed at first. */
struct tw_spread {
	uint64_t sums[TW_SPREAD_BATCHES]; /* of whole batches */
	uint32_t count;
	uint64_t size;	    /* values of a batch; 0 before the first */
	uint64_t sum, used; /* of the batch that is being filled */
	uint64_t values;
};

/* Takes the full batch among the others. */
void tw_spread_close_batch(struct tw_spread *spread);

static inline void tw_spread_add(struct tw_spread *spread, uint64_t value)
{
	spread->values++;
	spread->sum += value;
	if (++spread->used >= spread->size)
		tw_spread_close_batch(spread);
}

/* A value that was estimated. */
struct tw_estimate {
	double value;
	double variance; /* of the estimate, not of single values */
	double freedom;	 /* degrees of it; 0: the variance is not known */
};

/* The sum of all values. Its variance is known from two values on. */
struct tw_estimate tw_spread_sum(const struct tw_spread *spread, uint64_t sum);
/* The mean of the same value in several runs. */
struct tw_estimate tw_estimate_runs(const double *values, size_t count);
/*
 * Half of the interval in which the difference of both lies in 95 of 100 cases. False: the variance of one is not known. A value that is
 * always 0 (a function that was not called) has none: zeroed but for .freedom = INFINITY.
 */
bool tw_estimates_noise(const struct tw_estimate *a, const struct tw_estimate *b, double *out);

#endif
