/* SPDX-License-Identifier: Apache-2.0 */
/* condition.h - when the condition of `record` can be decided. */
#ifndef TW_TOOLS_CONDITION_H
#define TW_TOOLS_CONDITION_H

#include <stdint.h>

enum tw_condition_kind {
	TW_CONDITION_OF_BEGIN,	/* by arguments, as a call begins; also if it is malformed */
	TW_CONDITION_OF_LENGTH, /* by its duration alone, which --longer decides in the program */
	TW_CONDITION_OF_END	/* by how it ends, which the program does not decide */
};

/*
 * tw_condition_kind - what a condition is about.
 *
 * @least_ns	of TW_CONDITION_OF_LENGTH: the shortest duration that fulfils it, 1 or more.
 */
enum tw_condition_kind tw_condition_kind(const char *text, uint64_t *least_ns);

#endif
