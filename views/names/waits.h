/* SPDX-License-Identifier: Apache-2.0 */
/* waits.h - the functions of the C library in which a thread waits for others, for events or for a time, and uses no processor; those that fork. */
#ifndef TW_VIEWS_WAITS_H
#define TW_VIEWS_WAITS_H

#include "tracewheel/capture.h"

#include <stdbool.h>

/*
 * Does the function wait by what it is for, as epoll_wait() or nanosleep()? Those that may wait, as read() of a socket or
 * pthread_mutex_lock(), do not count: their time is part of the work. @function: NULL: false.
 */
bool tw_function_waits(const struct tw_capture_function *function);
/* Does it return twice, in the child as well? @function: NULL: false. */
bool tw_function_forks(const struct tw_capture_function *function);

#endif
