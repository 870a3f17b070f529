/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - the folder of a capture: made, looked through, moved away, removed.
 *
 * Whatever holds a file that no capture has is left alone.
 */
#ifndef TW_PIPELINE_FOLDER_H
#define TW_PIPELINE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct tw_recorder_options;

/*
 * tw_folder_make - makes options->path.
 *
 * What is there makes way as options->force and options->keep_old say: never while a recording is alive, never anything that is
 * no capture.  Answers 0 or an error: TW_EEXIST, TW_ENOENT, TW_EPERM, TW_ENOSPC, TW_EIO, TW_EBADARG (no room for ".old").
 */
int tw_folder_make(const struct tw_recorder_options *options);

/* A descriptor of it, or an error. */
int tw_folder_open(const char *path);

/* Is every file in it one of a capture?  Gives the first number that no segment has.  0 or TW_EIO. */
int tw_folder_look(int directory_fd, uint32_t *next_number, bool *has_others);

#endif
