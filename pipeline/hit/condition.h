/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.h - conditions on native calls: by their arguments as they begin, or by how they end.
 *
 * A condition is a match program over the six integer registers.  If the end decides, further words follow them (enum
 * tw_condition_word).  Calls that an exception has left have no result and no errno; the program says by its clauses what is true of
 * them (agent/condition.c).
 *
 * errno is that of calls that report an error by it: the functions' prototypes say how, and the words of the kind are 0 of a call that
 * has not failed.  If nothing is known of a function it is errno as the call leaves it.
 *
 * Threads  in a hit, in a read section.  Compiled without vector registers, as hit.c.
 */
#ifndef TW_PIPELINE_CONDITION_H
#define TW_PIPELINE_CONDITION_H

#include "base/limits.h"
#include "match/match.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_place;

/* Behind the registers, $7 and up: tools/record/when.c writes them. */
enum tw_condition_word {
	TW_CONDITION_RESULT = TW_ARGS_MAX,
	TW_CONDITION_DURATION,	       /* ns */
	TW_CONDITION_ERRNO,	       /* as the call leaves it */
	TW_CONDITION_EXCEPTION,	       /* 1: an exception, a jump or the thread's end has left the call */
	TW_CONDITION_ERRNO_OF_INT,     /* of calls that fail by an int of -1 */
	TW_CONDITION_ERRNO_OF_LONG,    /* by -1 */
	TW_CONDITION_ERRNO_OF_POINTER, /* by a null pointer, or -1 */
	TW_CONDITION_WORDS
};

/* The condition itself.  Never changed or freed once a place has it. */
struct tw_call_condition {
	const struct tw_match_program *program; /* NULL: every call */
	uint64_t ns_scale;			/* nanoseconds = ticks * ns_scale >> 32 */
	uint64_t since_ticks; /* when it was made: what was kept of a call before is for another one */
	/* Of the end: the whole of it for calls that have returned, if it is one comparison of one word; else its op is none. */
	struct tw_match_quick quick;
	bool is_of_end;
	uint8_t kept_count;	   /* of the end: the registers that it uses */
	uint8_t kept[TW_ARGS_MAX]; /* their numbers, from 0 */
};

/* How a call ended. */
struct tw_condition_end {
	const uint64_t *registers; /* those of the call that the condition uses; others are not read */
	uint64_t ticks;		   /* how long it took */
	uint64_t value;		   /* rax, of a call that has returned */
	bool is_exception;
};

/* Is it certain, by the result alone, that a call that has returned does not fulfil a condition on its end?  In no hit. */
static inline __attribute__((always_inline)) bool tw_condition_refuses(const struct tw_call_condition *condition,
								       uint64_t value)
{
	const struct tw_match_quick *quick = &condition->quick;
	bool may_have_failed;

	switch (quick->op == TW_MATCH_QUICK_RANGE ? quick->arg : 0) {
	case TW_CONDITION_RESULT: return (value - quick->low) << quick->shift > quick->span;
	case TW_CONDITION_ERRNO_OF_INT: may_have_failed = (int32_t)value == -1; break;
	case TW_CONDITION_ERRNO_OF_LONG: may_have_failed = (int64_t)value == -1; break;
	case TW_CONDITION_ERRNO_OF_POINTER: may_have_failed = value + 1 <= 1; break;
	default: return false;
	}
	/* Of all others errno is 0. */
	return !may_have_failed && (0 - quick->low) << quick->shift > quick->span;
}

/* @words	the registers of a call that begins. */
bool tw_condition_is_met(const struct tw_call_condition *condition, const struct tw_place *place, const uint64_t *words,
			 unsigned count);
bool tw_condition_is_met_by_end(const struct tw_call_condition *condition, const struct tw_place *place,
				const struct tw_condition_end *end);

#endif
