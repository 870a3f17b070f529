/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differences.h - what differs between two runs, by function: calls, times, and how much of it may be chance.
 *
 * Functions are the same if their names are, whatever their addresses; the program itself is the same program under
 * another name. A side has one capture or several, and then means of them.
 *
 * Noise: half the interval in which a difference of own time lies in 95 of 100 cases if nothing but chance made it. With several captures a
 * side it is from their sums. With one it is from batches of the function's calls (spread.h): then what shifts a whole run, such as the
 * processor's clock or another program, is not in it.
 */
#ifndef TW_VIEWS_DIFFERENCES_H
#define TW_VIEWS_DIFFERENCES_H

#include "views/folds/calltree.h"
#include "views/folds/spread.h"
#include "views/folds/totals.h"

enum { TW_OLD, TW_NEW, TW_SIDES };

/* Of one function; sums are means of the captures of its side. */
struct tw_difference_side {
	uint64_t calls; /* recorded or counted */
	uint64_t total_ns, self_ns;
	uint64_t lock_ns;	     /* of total_ns: in waits for locks */
	struct tw_state_sums states; /* of self_ns: the time in which its threads ran, ...; the rest is unknown */
	struct tw_histogram took;    /* of all captures */
	bool is_lossy;		     /* the times contain losses, or calls that were cut */
	bool has_times;
};

struct tw_difference {
	const char *name;
	bool lacks_arity;
	struct tw_difference_side sides[TW_SIDES];
	uint64_t noise_ns;
	bool has_noise;	 /* else there are too few calls to know it */
	bool has_states; /* all captures have states of threads */
	bool has_locks;	 /* all captures have waits for locks */
};

/* A function in one capture. */
struct tw_difference_part {
	char *name; /* of the program's own functions: from the colon on */
	bool lacks_arity;
	unsigned side, capture;
	uint64_t calls, total_ns, self_ns, lock_ns;
	struct tw_state_sums states;
	bool is_lossy, has_times;
	struct tw_histogram took;
	struct tw_estimate self;
};

/* Zeroed at first. */
struct tw_differences {
	struct tw_difference_part *parts;
	uint32_t part_count, part_capacity;
	char *program[TW_SIDES]; /* the module of the first program; NULL: not known */
	unsigned captures[TW_SIDES];
	bool lacks_times;	    /* a capture has no returns */
	bool lacks_states;	    /* a capture has no states of threads */
	bool lacks_locks;	    /* in a capture, waits for locks are not known */
	uint64_t lock_ns[TW_SIDES]; /* in all of them; after tw_differences_finish() the mean of the captures */
	/* After tw_differences_finish(). */
	struct tw_difference *rows; /* that which explains most of the difference first */
	size_t count;
	size_t common;			   /* functions that both sides called */
	uint64_t calls[TW_SIDES];	   /* of all functions: means of the captures */
	struct tw_estimate self[TW_SIDES]; /* likewise; its noise is known with several captures */
};

/*
 * tw_differences_add - one more capture of a side.
 *
 * @tree	made with has_spread; its histograms are taken. NULL: the capture has no returns.
 * @totals	borrowed.
 *
 * Returns false without memory.
 */
bool tw_differences_add(struct tw_differences *differences, unsigned side, const struct tw_capture *capture,
			struct tw_calltree *tree, const struct tw_totals *totals);
/*
 * tw_differences_add_part - one function of a side, from elsewhere than a capture.
 *
 * @name	as of the function; that of the program is left out where program[] of the side is set.
 * @part	its name is set, its histogram taken. The caller counts captures[].
 *
 * Returns false without memory.
 */
bool tw_differences_add_part(struct tw_differences *differences, const char *name, struct tw_difference_part *part);
/* Makes the rows. Returns false without memory. */
bool tw_differences_finish(struct tw_differences *differences);
void tw_differences_free(struct tw_differences *differences);

/* ---- what trees share (treediff.h) ---- */

/* The module of the first program's own functions, to be freed; NULL: not known. */
char *tw_difference_program(const struct tw_capture *capture);
/* A name without the program's module, which may be another in the other run. Borrowed. */
const char *tw_difference_key(const char *name, const char *program);
/* The key of a function of the program, in place: with the program's name again. False: no memory. */
bool tw_difference_name(char **key, const char *program);
/*
 * The own time of one side. @is_called: in any of its captures. @runs: by capture, if there are several; @one: if there is one; it is not
 * known from less than two calls.
 */
struct tw_estimate tw_difference_estimate(bool is_called, const double *runs, unsigned captures,
					  const struct tw_estimate *one);

/* New less old. */
static inline int64_t tw_difference_self(const struct tw_difference *difference)
{
	return (int64_t)(difference->sides[TW_NEW].self_ns - difference->sides[TW_OLD].self_ns);
}

/* Is the difference not larger than what chance makes, as far as is known? */
static inline bool tw_difference_is_noise(const struct tw_difference *difference)
{
	int64_t self = tw_difference_self(difference);
	return difference->has_noise && (uint64_t)(self < 0 ? -self : self) <= difference->noise_ns;
}

#endif
