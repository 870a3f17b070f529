/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - a function in a library, traced through the program's GOT slot. */
#ifndef CRASH_WORK_H
#define CRASH_WORK_H

#include <stdint.h>

void crash_step(uint64_t word, uint64_t mixed);

#endif
