/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - memory that is mapped from files of others, which may be cut while they are read.
 *
 * An access to a page that a file does not have any more is a SIGBUS.  The handler asks those who map such files, one of whom puts other
 * memory there.  A fault that is nobody's occurs again, under the handler of before.
 *
 * Threads  one sets and ends; any has faults.  The handler is the process': for commands, not for libraries in programs of others.
 */
#ifndef TW_BASE_GUARD_H
#define TW_BASE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Each at most once at a time. */
enum tw_guarded { TW_GUARDED_RINGS, TW_GUARDED_FILES, TW_GUARDED_KINDS };

/* Called in the signal handler.  Is the address this one's, and is there memory now? */
typedef bool (*tw_guard_fn)(void *arg, uintptr_t at);

/* False: the kind is set already. */
bool tw_guard_set(enum tw_guarded kind, tw_guard_fn replace, void *arg);
void tw_guard_end(enum tw_guarded kind);

#endif
