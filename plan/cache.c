/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - plans, and tables of frames, of files seen before, replaced as a whole.
 *
 * A plan is code that other programs will run.  It is kept only of a file that nobody but root and this user can have written, and is used only for
 * that file with the same bytes, by its identity (base/file.h): not for one that claims the same build-id, and not for a copy.  A checksum or
 * digest of the bytes would take as long as reading them, on each start, and an agent cannot make it: ld.so maps no symbol tables.
 */
#include "plan/plan.h"
#include "base/file.h"
#include "base/sys.h"
#include "symbols/entries.h"
#include "symbols/frame_rows.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1024
/* Larger than any plan: a larger file is not one of ours. */
#define PLAN_BYTES_MAX (UINT64_C(1) << 30)

/*
 * Is it a folder in which only this user makes and removes files?  The cache's folder itself may be root's (/var/cache).  A command of root with
 * another user's $HOME keeps nothing there.
 */
static bool is_ours(const char *path, bool is_root)
{
	struct stat status;

	if (is_root)
		return stat(path, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0);
	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder of plans, with all folders above it that are ours; false: there is none. */
static bool make_folder(char out[PATH_BYTES])
{
	static const char *const parts[] = {"", "/tracewheel", "/tracewheel/plans"};
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char root[PATH_BYTES / 2];
	int length;

	if (cache && *cache == '/')
		length = snprintf(root, sizeof root, "%s", cache);
	else if (home && *home == '/')
		length = snprintf(root, sizeof root, "%s/.cache", home);
	else
		return false;
	if (length < 0 || (size_t)length >= sizeof root)
		return false;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		snprintf(out, PATH_BYTES, "%s%s", root, parts[i]);
		if ((mkdir(out, 0700) && errno != EEXIST) || !is_ours(out, !i))
			return false;
	}
	return true;
}

bool tw_entry_plan_folder(char *out, size_t bytes)
{
	char folder[PATH_BYTES];

	if (!make_folder(folder) || strlen(folder) >= bytes)
		return false;
	strcpy(out, folder);
	return true;
}

static bool name_plan(const struct tw_elf_file *file, const char *behind, char out[PATH_BYTES])
{
	char folder[PATH_BYTES], name[TW_ENTRY_PLAN_NAME_BYTES];
	int length;

	if (!make_folder(folder))
		return false;
	tw_entry_plan_name_file("", &file->elf, &file->identity, name);
	length = snprintf(out, PATH_BYTES, "%s/%s%s", folder, name, behind);
	return length > 0 && length < PATH_BYTES;
}

/* A file, and the debug file that there is of it now. */
struct sources {
	const struct tw_elf_file *file;
	struct tw_file_identity debug_file;
};

/* The data kept of a file. */
struct kind {
	const char *behind; /* the end of its name */
	int (*make)(const struct tw_elf_file *file, void **bytes, size_t *count);
	/* Is this of these, and right? */
	bool (*is_of)(const struct sources *sources, const void *bytes, size_t count);
};

static bool is_plan_of(const struct sources *sources, const void *bytes, size_t count)
{
	struct tw_entry_plan plan;

	return tw_entry_plan_open(bytes, count, &plan) == 0 &&
	       tw_entry_plan_is_of(&plan, &sources->file->elf, &sources->file->identity) &&
	       !memcmp(&plan.header->debug_file, &sources->debug_file, sizeof sources->debug_file);
}

/* Names are not in it: any debug file will do. */
static bool are_rows_of(const struct sources *sources, const void *bytes, size_t count)
{
	struct tw_frame_rows rows;

	return tw_frame_rows_open(bytes, count, &rows) == 0 &&
	       tw_frame_rows_is_of(&rows, &sources->file->elf, &sources->file->identity);
}

/* Reads a plan that this user wrote; false: there is none that can be used. */
static bool read_plan(const char *path, const struct kind *kind, const struct sources *sources, void **bytes,
		      size_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	void *plan = NULL;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && tw_file_is_trusted(&status) && status.st_uid == geteuid() &&
	    (uint64_t)status.st_size <= PLAN_BYTES_MAX)
		plan = malloc((size_t)status.st_size + 1);
	if (plan && (tw_file_read_at(fd, plan, (uint64_t)status.st_size, 0) ||
		     !kind->is_of(sources, plan, (size_t)status.st_size))) {
		free(plan);
		plan = NULL;
	}
	close(fd);
	if (!plan)
		return false;
	*bytes = plan;
	*count = (size_t)status.st_size;
	return true;
}

/* Under a name of its own first, so that no other command sees half a plan. */
static void write_plan(const char *path, const void *bytes, size_t count)
{
	char temporary[PATH_BYTES + 16];
	int fd;

	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return;
	bool is_whole = tw_sys_write_all(fd, bytes, count) == 0;

	if (close(fd) || !is_whole || rename(temporary, path))
		unlink(temporary);
}

static int get(const struct tw_elf_file *file, const struct kind *kind, void **bytes, size_t *count, bool *was_cached)
{
	struct sources sources = {.file = file};
	char path[PATH_BYTES];
	bool has_cache = file->may_be_kept && file->elf.build_id_bytes && name_plan(file, kind->behind, path),
	     is_cached;
	int error = 0;

	if (has_cache && kind->is_of == is_plan_of) {
		tw_entry_plan_debug_file(&file->elf, &sources.debug_file);
		has_cache = tw_file_is_settled(&sources.debug_file);
	}
	is_cached = has_cache && read_plan(path, kind, &sources, bytes, count);
	if (was_cached)
		*was_cached = is_cached;
	if (is_cached)
		return 0;
	error = kind->make(file, bytes, count);
	/* A debug file that came meanwhile is another. */
	if (!error && has_cache && kind->is_of(&sources, *bytes, *count))
		write_plan(path, *bytes, *count);
	return error;
}

int tw_entry_plan_get(const struct tw_elf_file *file, void **bytes, size_t *count, bool *was_cached)
{
	static const struct kind kind = {".plan", tw_entry_plan_make, is_plan_of};

	return get(file, &kind, bytes, count, was_cached);
}

int tw_frame_rows_get(const struct tw_elf_file *file, void **bytes, size_t *count)
{
	static const struct kind kind = {".frames", tw_frame_rows_make, are_rows_of};

	return get(file, &kind, bytes, count, NULL);
}
