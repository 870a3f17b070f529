/* SPDX-License-Identifier: Apache-2.0 */
/* spool.h - stores the data of a pipe in a file, so that it can be read more than once. */
#ifndef TW_VIEWS_SPOOL_H
#define TW_VIEWS_SPOOL_H

/*
 * tw_spool - read a pipe to its end, and return a file with its data.
 *
 * @fd	borrows.  A regular file at its beginning is returned itself.
 *
 * The caller closes the file, unless it is @fd; it has no name, and is removed when it is closed. It is made in the
 * folder that TMPDIR names (/tmp). Meanwhile the first SIGINT is ignored: it reaches the writer as well, whose
 * remaining data is still to come. Returns -1 after an error, which has been reported.
 */
int tw_spool(int fd);

#endif
