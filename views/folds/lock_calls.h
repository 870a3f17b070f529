/* SPDX-License-Identifier: Apache-2.0 */
/* lock_calls.h - the functions of libc that take, release and wait for locks. */
#ifndef TW_VIEWS_LOCK_CALLS_H
#define TW_VIEWS_LOCK_CALLS_H

#include "tracewheel/capture.h"

#include <stdint.h>

enum {
	TW_LOCK_DOES_NOTHING,
	TW_LOCK_DOES_LOCK,
	TW_LOCK_DOES_TRY,
	TW_LOCK_DOES_READ,
	TW_LOCK_DOES_TRY_READ,
	TW_LOCK_DOES_UNLOCK,
	TW_LOCK_DOES_WAIT,
	TW_LOCK_DOES_SIGNAL,
	TW_LOCK_DOES_INIT,
	TW_LOCK_DOES_DESTROY
};
#define TW_LOCK_KIND_SHIFT 4

/* The effect of a call there in the low bits, and above them the kind of its lock; TW_LOCK_DOES_NOTHING: no such function. */
uint8_t tw_lock_place_does(const struct tw_capture_place *place);

#endif
