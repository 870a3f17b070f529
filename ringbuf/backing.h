/* SPDX-License-Identifier: Apache-2.0 */
/* backing.h - the memory behind a ring set: files of a directory on tmpfs, or anonymous. */
#ifndef TW_RINGBUF_BACKING_H
#define TW_RINGBUF_BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes the directory of this user on tmpfs and `name` in it; gives the path.  Where another user has taken the
 * directory's name, another is used.
 */
int tw_backing_make_directory(const char *name, char *path, size_t path_bytes);

/* Calls fn with each directory that tw_backing_make_directory() has made for this user and that is still there. */
void tw_backing_each_directory(void (*fn)(const char *path, void *arg), void *arg);

/*
 * Is this directory ours alone?  It and what is in it decide where a program writes: not a link, owned
 * by this user (or root), writable by nobody else.  TW_ENOENT, TW_EPERM.
 */
int tw_backing_check_directory(const char *path);

/* Makes and maps a file of fixed size, sparse. */
int tw_backing_create(const char *directory, const char *file, size_t bytes, void **out);

/*
 * tw_backing_create_pieces - the same, but only pieces of it are mapped.
 *
 * The file may be larger than RLIMIT_FSIZE allows now, as long as it may be raised.
 */
struct tw_backing_piece {
	uint64_t offset;
	size_t bytes;
	void *mapped; /* gives; on entry: where, in place of whatever is mapped there, or NULL: anywhere */
};
int tw_backing_create_pieces(const char *directory, const char *file, uint64_t file_bytes,
			     struct tw_backing_piece *pieces, unsigned count);

/* Maps an existing file, checked as the directory is.  is_private: a copy, changes are not seen by others. */
int tw_backing_open(const char *directory, const char *file, bool is_private, void **out, size_t *bytes);

/* Small files, written and read as a whole.  read: *text is terminated, and freed by the caller. */
int tw_backing_write(const char *directory, const char *file, const void *head, size_t head_bytes, const char *text,
		     size_t text_bytes);
int tw_backing_read(const char *directory, const char *file, void *head, size_t head_bytes, char **text,
		    size_t text_bytes_max);

/* Memory without a name. */
int tw_backing_anonymous(size_t bytes, void **out);
void tw_backing_unmap(void *address, size_t bytes);
/* If it is there. */
void tw_backing_remove_file(const char *directory, const char *file);
/* Every regular file whose name fn accepts. */
void tw_backing_remove_files(const char *directory, bool (*fn)(const char *name));
/* What the files of a directory take. */
uint64_t tw_backing_used_bytes(const char *directory);
/* Has nothing been made or removed in it for a minute? */
bool tw_backing_is_old(const char *directory);

#endif
