/* SPDX-License-Identifier: Apache-2.0 */
/* children.h - how long there is somebody to record. */
#ifndef TW_TOOLS_CHILDREN_H
#define TW_TOOLS_CHILDREN_H

#include "tracewheel/consumer.h"

#include <stdbool.h>

/*
 * tw_children_are_left - does a process live that is traced, or one that was started lately and may yet be?
 *
 * Drains the rings.  Costs a look at each process of the system, unless a traced one lives.
 */
bool tw_children_are_left(struct tw_recorder *recorder);

#endif
