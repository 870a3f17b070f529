/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - the folder of a capture: made, checked, moved away, removed.
 *
 * A folder with a file that does not belong to a capture is left alone.
 */
#ifndef TW_PIPELINE_FOLDER_H
#define TW_PIPELINE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct tw_recorder_options;

/*
 * tw_folder_make - make options->path.
 *
 * A capture that is there is removed or renamed, as options->force and options->keep_old say: never while a recording
 * is alive, and never anything that is no capture. Returns 0 or an error: TW_EEXIST, TW_ENOENT, TW_EPERM, TW_ENOSPC,
 * TW_EIO, TW_EBADARG (".old" makes the name too long).
 */
int tw_folder_make(const struct tw_recorder_options *options);

/*
 * tw_folder_identity - the line of a ring set's text that names the folder it is drained into: device, inode, owner.
 *
 * A mark in a folder names a ring set, and anybody may write one into a folder of their own. The line, which is as safe as
 * the ring set, says whether the mark is believed. Returns the line; "" if the folder cannot be examined.
 */
#define TW_FOLDER_LINE_BYTES 80
const char *tw_folder_identity(int directory_fd, char line[TW_FOLDER_LINE_BYTES]);
/* The rest of the line of a ring set's text that begins with @key, and its @bytes; NULL: there is none. */
const char *tw_folder_line(const char *text, const char *key, int *bytes);
/* Was the ring set with this text made for this folder? */
bool tw_folder_has_set(int directory_fd, const char *text);

/* Returns a descriptor of the folder, or an error. */
int tw_folder_open(const char *path);

/* Does every file in it belong to a capture? Returns the first number that no segment has. 0 or TW_EIO. */
int tw_folder_check(int directory_fd, uint32_t *next_number, bool *has_others);

/*
 * tw_folder_put - make a new file of this text, whole or not at all, whenever the process dies: a mark that names no rings says that they
 * are gone.
 *
 * If the file system has no files without a name, a death in the middle may leave a part of it.
 * @is_durable	it is on the disk afterwards.
 *
 * Errors: TW_EEXIST, TW_ENOSPC, those of the system.
 */
int tw_folder_put(int directory_fd, const char *name, const char *text, bool is_durable);

#endif
