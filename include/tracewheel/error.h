/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - the errors that a call of Tracewheel can return.
 *
 * Every call that can fail returns 0 or one of the negative numbers below, and leaves its
 * out-parameters untouched on failure.  The numbers are negated errno values, so that a caller may
 * also print them with strerror().  The list is closed: no call returns anything else.
 *
 * Threads: any.  Ownership: the strings are constants.
 */
#ifndef TRACEWHEEL_ERROR_H
#define TRACEWHEEL_ERROR_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An argument is not acceptable; nothing was changed.  OTP: badarg. */
#define TW_EBADARG (-EINVAL)
/* A limit of the library was reached; nothing was changed.  OTP: system_limit. */
#define TW_ELIMIT (-E2BIG)
/* The session was destroyed, or is being destroyed.  OTP: badarg. */
#define TW_EDEAD (-ESTALE)
/* A control call inside a hit or a callback, or while this thread holds the permit. */
#define TW_EDEADLK (-EDEADLK)
/* No memory. */
#define TW_ENOMEM (-ENOMEM)
/* No space on the file system or in the memory file system. */
#define TW_ENOSPC (-ENOSPC)
/* The file, directory, process or name does not exist. */
#define TW_ENOENT (-ENOENT)
/* The file exists already and is not overwritten. */
#define TW_EEXIST (-EEXIST)
/* Not allowed. */
#define TW_EPERM (-EPERM)
/* The file has another format, is damaged or is cut off. */
#define TW_EFORMAT (-EBADMSG)
/* The file was written by another version of the format. */
#define TW_EVERSION (-EPROTO)
/* Reading or writing failed. */
#define TW_EIO (-EIO)
/* The other side (the consumer, the command, the program) is gone. */
#define TW_EPIPE (-EPIPE)
/* The time given has passed. */
#define TW_ETIMEDOUT (-ETIMEDOUT)
/* This machine, kernel or program cannot do it. */
#define TW_ENOTSUP (-EOPNOTSUPP)
/* A signal interrupted the wait. */
#define TW_EINTR (-EINTR)

/*
 * tw_strerror - one sentence: what happened, why, and what to do.
 *
 * @error	0 or a negative number of the list above; any other gives a sentence saying that it is unknown.
 *
 * Returns a constant string; never NULL.  Threads: any.  Signal handlers: yes.
 */
const char *tw_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
