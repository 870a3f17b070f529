/* SPDX-License-Identifier: Apache-2.0 */
/* backing.h - the memory of a ring set: files in a directory on tmpfs, or anonymous memory. */
#ifndef TW_RINGBUF_BACKING_H
#define TW_RINGBUF_BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Creates `name` in this user's directory on tmpfs, and that directory if needed; gives the path.  If another user owns
 * a directory of that name, another name is tried.
 */
int tw_backing_make_directory(const char *name, char *path, size_t path_bytes);

/* Calls fn for each existing directory that tw_backing_make_directory() created for this user. */
void tw_backing_each_directory(void (*fn)(const char *path, void *arg), void *arg);

/*
 * Checks that a directory may be trusted to decide where a program writes: it is not a link, is owned by this user or
 * root, and no one else may write to it.  Errors: TW_ENOENT, TW_EPERM.
 */
int tw_backing_check_directory(const char *path);

/* Creates and maps a sparse file of fixed size. */
int tw_backing_create(const char *directory, const char *file, size_t bytes, void **out);

/*
 * tw_backing_create_pieces - create a sparse file, but map only pieces of it.
 *
 * The file may be larger than RLIMIT_FSIZE if the hard limit allows it.
 */
struct tw_backing_piece {
	uint64_t offset;
	size_t bytes;
	void *mapped; /* gives; on entry the address to map over, or NULL for any */
};
int tw_backing_create_pieces(const char *directory, const char *file, uint64_t file_bytes,
			     struct tw_backing_piece *pieces, unsigned count);

/* Maps an existing file after the same checks as for the directory. is_private: a private copy. */
int tw_backing_open(const char *directory, const char *file, bool is_private, void **out, size_t *bytes);

/* Write and read small files as a whole. read: the caller frees *text, which is null-terminated. */
int tw_backing_write(const char *directory, const char *file, const void *head, size_t head_bytes, const char *text,
		     size_t text_bytes);
int tw_backing_read(const char *directory, const char *file, void *head, size_t head_bytes, char **text,
		    size_t text_bytes_max);

/* Memory without a file: shared with children; or this process' own. */
int tw_backing_anonymous(size_t bytes, void **out);
int tw_backing_own(size_t bytes, void **out);
void tw_backing_unmap(void *address, size_t bytes);
/* Does nothing if the file does not exist. */
void tw_backing_remove_file(const char *directory, const char *file);
/* Removes every regular file whose name fn accepts. */
void tw_backing_remove_files(const char *directory, bool (*fn)(const char *name));
/* The disk space that the files of a directory use. */
uint64_t tw_backing_used_bytes(const char *directory);
/* True if nothing was created or removed in the directory for a minute. */
bool tw_backing_is_old(const char *directory);

#endif
