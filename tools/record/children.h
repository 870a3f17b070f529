/* SPDX-License-Identifier: Apache-2.0 */
/* children.h - whether any process is left to record. */
#ifndef TW_TOOLS_CHILDREN_H
#define TW_TOOLS_CHILDREN_H

#include "tracewheel/consumer.h"

#include <stdbool.h>

/*
 * tw_children_are_left - is there a process that is traced, or one that was started recently and may yet be?
 *
 * Drains the rings. Reads /proc of every process of the system, unless a traced one is alive.
 */
bool tw_children_are_left(struct tw_recorder *recorder);

#endif
