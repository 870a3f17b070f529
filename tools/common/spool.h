/* SPDX-License-Identifier: Apache-2.0 */
/* spool.h - what comes through a pipe, in a file that may be read more than once. */
#ifndef TW_TOOLS_SPOOL_H
#define TW_TOOLS_SPOOL_H

/*
 * tw_spool - waits for the end of what comes, and answers a file that holds it.
 *
 * @fd	borrows.  A regular file that stands at its beginning is answered itself.
 *
 * The file is the caller's to close, unless it is @fd; it has no name, and is gone when it is closed.  It lies in the
 * folder that TMPDIR names (/tmp).  Meanwhile the first SIGINT is not obeyed: it goes to who writes as well, and what that
 * has to say until its end is still to come.
 * Answers -1 after having said what is wrong.
 */
int tw_spool(int fd);

#endif
