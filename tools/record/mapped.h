/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - opens a file as a traced process has mapped it.
 *
 * The process has chosen the file and its name, and may have fewer rights than the command: the name may lead elsewhere by now, or
 * in another mount namespace, and the file may be made to look like one of root.
 *
 * Threads  any.
 */
#ifndef TW_TOOLS_MAPPED_H
#define TW_TOOLS_MAPPED_H

#include "tracewheel/symbols.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* An executable mapping of a file that has a name. */
struct tw_mapped {
	const char *range; /* START-END */
	const char *path;
	uint64_t inode;
	unsigned device_major, device_minor;
};

/* Reads a line of /proc/PID/maps, which it modifies and @out borrows.  False: it is not such a mapping. */
bool tw_mapped_read(char *line, struct tw_mapped *out);

/*
 * tw_mapped_each - read the executable mappings of a process that runs, in the order of their addresses.
 *
 * @fn		borrows the mapping during the call.  False ends the walk.  Those of another user's process are not seen.
 */
typedef bool (*tw_mapped_fn)(int process_id, const struct tw_mapped *mapped, void *arg);
void tw_mapped_each(int process_id, tw_mapped_fn fn, void *arg);

/*
 * tw_mapped_open - open the file of a mapping, if it is certain that it is this one, and if only root and this user may have written it.
 *
 * @status	of the file; untouched on errors.
 * @why		why not, without a full stop; NULL: it is no regular file, or not mapped any more.
 *
 * By the kernel's link to the mapped file, which only root may use; else by its name, compared with the mapping's device and inode.  Nothing is
 * read from it.  Returns a descriptor, or a negative number.
 */
int tw_mapped_open(int process_id, const struct tw_mapped *mapped, struct stat *status, const char **why);

/*
 * tw_mapped_add - add the objects that a process has mapped to those of its program: what it has opened itself.
 *
 * Returns the number of files that are not looked at: they cannot be opened as they are mapped, or others than root and this user may
 * have written them, or they are no objects.
 */
unsigned tw_mapped_add(int process_id, struct tw_symbols *symbols);

#endif
