/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - makes the plan of an object's function entries from its file, and keeps plans of files seen before.
 *
 * The form of a plan is that of symbols/entry_plan.h.  Only the command makes plans: this room links the decoder.
 *
 * Threads  any; calls are independent.
 */
#ifndef TW_PLAN_PLAN_H
#define TW_PLAN_PLAN_H

#include "symbols/entry_plan.h"
#include "symbols/file.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * tw_entry_plan_make - analyse a file.
 *
 * @file	borrows; it is opened again, and must be the same file with the same bytes.
 * @bytes	gives: free().  A whole plan, which tw_entry_plan_open() accepts.
 *
 * Errors: TW_ENOENT (no call frame information, or no build-id), TW_EFORMAT, TW_EIO, TW_ENOTSUP (more than 4 GiB),
 * TW_ENOMEM.
 */
int tw_entry_plan_make(const struct tw_elf_file *file, void **bytes, size_t *count);

/*
 * tw_entry_plan_get - the plan of a file, from the cache or made now.
 *
 * @was_cached	may be NULL.
 *
 * A plan in the cache is of the same file with the same bytes, and of the same debug file, by their identities (base/file.h).  The plan of a
 * file that others than root and this user own or may write is made in memory, and never kept.
 * The cache is $XDG_CACHE_HOME/tracewheel/plans, or ~/.cache/tracewheel/plans.  A damaged file in it, or one
 * of another version, is made anew.  A cache that cannot be written is no error.  As tw_entry_plan_make() otherwise.
 */
int tw_entry_plan_get(const struct tw_elf_file *file, void **bytes, size_t *count, bool *was_cached);

/*
 * tw_entry_plan_folder - the folder of the cache, which is made; a plan is the file tw_entry_plan_name_file().plan there, which appears whole.
 *
 * False: there is none.
 */
bool tw_entry_plan_folder(char *out, size_t bytes);

/* The identity of the separate debug file, in which functions have names; zeros: there is none. */
void tw_entry_plan_debug_file(const struct tw_elf *elf, struct tw_file_identity *out);

/*
 * tw_frame_rows_make - the table of a file's frames (symbols/frame_rows.h); rows.c.
 * tw_frame_rows_get - the same, from the cache or made now: as tw_entry_plan_get().
 *
 * @bytes	gives: free().  A whole table, which tw_frame_rows_open() accepts.
 *
 * Errors: TW_ENOENT (no call frame information, or no build-id), TW_EFORMAT, TW_ENOTSUP (more than 4 GiB), TW_ENOMEM.
 */
int tw_frame_rows_make(const struct tw_elf_file *file, void **bytes, size_t *count);
int tw_frame_rows_get(const struct tw_elf_file *file, void **bytes, size_t *count);

/* Of type tw_sym_unpack_fn; unpack.c. */
int tw_plan_unpack(int fd, uint64_t offset, uint64_t bytes);

#endif
