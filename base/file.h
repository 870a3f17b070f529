/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - the one way to open a file that a capture, a traced process or another file names.
 *
 * Such a name may be that of a pipe, which makes the reader wait, of a device, which may do something when it is opened, or of a file of
 * holes, which takes no disk and all memory.  Here such a file is refused before it is opened for reading.
 *
 * Threads  any.  Errors are those of tracewheel/error.h.
 * Limits   TW_FILE_BYTES_MAX, TW_FILE_HOLES_FACTOR.
 */
#ifndef TW_BASE_FILE_H
#define TW_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct stat;

/*
 * The bytes of a file, as the kernel knows them: each change of a byte, the owner or the mode changes the time of change, which no
 * program can set.  Two equal ones are the same bytes, unless the owner writes twice within a tick of the clock (tw_file_is_settled()).
 */
struct tw_file_identity {
	uint64_t device, inode, bytes;
	int64_t changed_s, modified_s;
	uint32_t changed_ns, modified_ns;
};

/*
 * tw_file_open - open a regular file for reading; links are followed.
 *
 * @status	of the opened file; untouched on errors.
 *
 * Never waits for another program (but for a file system that another program serves).  Returns a descriptor that is closed on exec,
 * or TW_ENOENT, TW_EPERM, TW_EIO, TW_EFORMAT (not a regular file), TW_ELIMIT (too large, or nearly all of it is holes).
 */
int tw_file_open(const char *path, struct stat *status);

/* The same, but no component of the path may be a link.  TW_ENOTSUP: the kernel cannot do that (before Linux 5.6). */
int tw_file_open_exactly(const char *path, struct stat *status);

void tw_file_identify(const struct stat *status, struct tw_file_identity *out);

/*
 * Is a change of the bytes after this moment certain to change the identity?  False for some time after each change.  To be asked before
 * the bytes are read.
 */
bool tw_file_is_settled(const struct tw_file_identity *identity);

/* Does the file belong to root or to the user of this process?  May nobody else write it? */
bool tw_file_is_trusted(const struct stat *status);

/*
 * Is it on a file system whose owners and times of change mean nothing: procfs, where any program makes files of root with contents of its
 * choice, or one that a program serves (FUSE)?  Also true if that is not known.
 */
bool tw_file_is_synthetic(int fd);

/* Reads all bytes or fails: TW_EIO, TW_EFORMAT when the file ends before. */
int tw_file_read_at(int fd, void *out, uint64_t bytes, uint64_t offset);
/* Writes all bytes or fails. */
int tw_file_write_at(int fd, const void *data, uint64_t bytes, uint64_t offset);

#endif
