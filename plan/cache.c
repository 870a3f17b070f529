/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - plans of files seen before, one file a build-id, replaced as a whole. */
#include "plan/plan.h"
#include "base/sys.h"
#include "symbols/entries.h"

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

/* The folder of plans, with all folders above it that are ours; false: there is no home. */
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
		if (mkdir(out, 0700) && errno != EEXIST)
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

static bool name_plan(const struct tw_elf *elf, char out[PATH_BYTES])
{
	char folder[PATH_BYTES], id[2 * 32 + 1];
	int length;

	if (!make_folder(folder))
		return false;
	for (uint32_t i = 0; i < elf->build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", elf->build_id[i]);
	length = snprintf(out, PATH_BYTES, "%s/%s.plan", folder, id);
	return length > 0 && length < PATH_BYTES;
}

/* Is this the plan of the file, and right? */
static bool is_plan_of(const struct tw_elf_file *file, const void *bytes, size_t count)
{
	struct tw_entry_plan plan;

	return tw_entry_plan_open(bytes, count, &plan) == 0 && plan.header->type == file->header.e_type &&
	       plan.header->build_id_bytes == file->elf.build_id_bytes &&
	       plan.header->image_bytes == file->elf.image.high - file->elf.image.low &&
	       plan.header->code_checksum == tw_entry_plan_checksum_code(&file->elf) &&
	       !memcmp(plan.header->build_id, file->elf.build_id, file->elf.build_id_bytes);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* A file that was not stripped, or a debug file, came after the plan was made: it has names that the plan may not have. */
static bool is_outdated(const struct tw_elf_file *file, const struct stat *plan)
{
	int fd = tw_sym_debug_file(&file->elf);
	struct stat debug;
	bool is_outdated = is_later(&file->changed, &plan->st_mtim) ||
			   (fd >= 0 && fstat(fd, &debug) == 0 && is_later(&debug.st_ctim, &plan->st_mtim));

	if (fd >= 0)
		close(fd);
	return is_outdated;
}

/* Reads a plan that this user wrote; false: there is none that can be used. */
static bool read_plan(const char *path, const struct tw_elf_file *file, void **bytes, size_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	void *plan = NULL;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	    (uint64_t)status.st_size <= PLAN_BYTES_MAX && !is_outdated(file, &status))
		plan = malloc((size_t)status.st_size + 1);
	if (plan && (tw_elf_read_at(fd, plan, (uint64_t)status.st_size, 0) ||
		     !is_plan_of(file, plan, (size_t)status.st_size))) {
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

int tw_entry_plan_get(const struct tw_elf_file *file, void **bytes, size_t *count, bool *was_cached)
{
	char path[PATH_BYTES];
	bool has_cache = file->elf.build_id_bytes && name_plan(&file->elf, path);
	bool is_cached = has_cache && read_plan(path, file, bytes, count);
	int error = 0;

	if (was_cached)
		*was_cached = is_cached;
	if (is_cached)
		return 0;
	error = tw_entry_plan_make(file, bytes, count);
	if (!error && has_cache)
		write_plan(path, *bytes, *count);
	return error;
}
