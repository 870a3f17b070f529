/* SPDX-License-Identifier: Apache-2.0 */
/* backing.h - the memory behind a ring set: files of a directory on tmpfs, or anonymous. */
#ifndef TW_RINGBUF_BACKING_H
#define TW_RINGBUF_BACKING_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the directory of this user on tmpfs and `name` in it; gives the path. */
int tw_backing_make_directory(const char *name, char *path, size_t path_bytes);

/*
 * Is this directory ours alone?  It and what is in it decide where a program writes: not a link, owned
 * by this user (or root), writable by nobody else.  TW_ENOENT, TW_EPERM.
 */
int tw_backing_check_directory(const char *path);

/* Makes and maps a file of fixed size, sparse.  *fd stays open if it is not NULL. */
int tw_backing_create(const char *directory, const char *file, size_t bytes, void **out, int *fd);
/* Maps an existing file, checked as the directory is.  is_private: a copy, changes are not seen by others. */
int tw_backing_open(const char *directory, const char *file, bool is_private, void **out, size_t *bytes);
/* The same in memory without a name. */
int tw_backing_anonymous(size_t bytes, void **out);
/* Gives a range real memory; TW_ENOSPC where there is none, and never a SIGBUS later. */
int tw_backing_allocate(int fd, size_t offset, size_t bytes);
void tw_backing_unmap(void *address, size_t bytes);
int tw_backing_remove_file(const char *directory, const char *file);

#endif
