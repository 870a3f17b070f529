/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.c - files of /proc/PID/maps: /proc/PID/map_files, or the name where that is certain. */
#include "tools/record/mapped.h"

#include "base/file.h"
#include "base/grow.h"
#include "tracewheel/error.h"

#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define AGENT "libtracewheel-agent"

/* START-END PERMISSIONS OFFSET DEVICE INODE   PATH */
bool tw_mapped_read(char *line, struct tw_mapped *out)
{
	static const char gone[] = " (deleted)";
	char *rest = line, *words[5];
	line[strcspn(line, "\n")] = 0;
	for (int i = 0; i < 5; i++) {
		words[i] = strsep(&rest, " ");
		if (!rest || !*words[i])
			return false;
	}
	rest += strspn(rest, " ");
	size_t bytes = strlen(rest);
	if (strlen(words[1]) != 4 || words[1][2] != 'x' || *rest != '/' ||
	    (bytes >= sizeof gone && strcmp(rest + bytes - (sizeof gone - 1), gone) == 0))
		return false;
	*out = (struct tw_mapped){.range = words[0], .path = rest, .inode = strtoull(words[4], NULL, 10)};
	return sscanf(words[3], "%x:%x", &out->device_major, &out->device_minor) == 2;
}

void tw_mapped_each(int process_id, tw_mapped_fn fn, void *arg)
{
	char name[64], *line = NULL;
	size_t capacity = 0;
	bool goes_on = true;
	snprintf(name, sizeof name, "/proc/%d/maps", process_id);
	FILE *maps = fopen(name, "re");
	while (maps && goes_on && getline(&line, &capacity, maps) > 0) {
		struct tw_mapped mapped;
		goes_on = !tw_mapped_read(line, &mapped) || fn(process_id, &mapped, arg);
	}
	free(line);
	if (maps)
		fclose(maps);
}

static bool shares_mount_namespace(int process_id)
{
	struct stat own, other;
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/ns/mnt", process_id);
	return stat("/proc/self/ns/mnt", &own) == 0 && stat(name, &other) == 0 && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

/* Of files in btrfs and overlayfs the kernel lists the device below. */
static bool has_device_below(int fd)
{
	struct statfs system;
	return fstatfs(fd, &system) == 0 &&
	       (system.f_type == BTRFS_SUPER_MAGIC || system.f_type == OVERLAYFS_SUPER_MAGIC);
}

static bool is_mapped_file(int fd, const struct stat *status, const struct tw_mapped *mapped)
{
	return status->st_ino == mapped->inode &&
	       ((major(status->st_dev) == mapped->device_major && minor(status->st_dev) == mapped->device_minor) ||
		has_device_below(fd));
}

static int open_by_name(int process_id, const struct tw_mapped *mapped, struct stat *status, const char **why)
{
	if (!shares_mount_namespace(process_id)) {
		*why = "the process has other mounts, where its name may mean another file";
		return TW_ENOENT;
	}
	int fd = tw_file_open_exactly(mapped->path, status);
	if (fd == TW_EFORMAT)
		return fd;
	if (fd < 0) {
		*why = fd == TW_ENOTSUP ? "this kernel cannot open its file without following links"
		       : fd == TW_EPERM ? "its file may not be read"
					: "its file cannot be opened by its name";
		return fd;
	}
	if (is_mapped_file(fd, status, mapped))
		return fd;
	*why = "another file has the name of its file";
	close(fd);
	return TW_ENOENT;
}

/* By the descriptor: none of this can change before the file is read. */
static const char *why_not_trusted(int fd, const struct stat *status)
{
	if (tw_file_is_synthetic(fd))
		return "its file lies on a file system where owners mean nothing";
	/* A file of this user's group is planned, and its plan is not kept. */
	if ((status->st_uid != 0 && status->st_uid != geteuid()) || status->st_mode & S_IWOTH)
		return "another user than root and you may write its file";
	return NULL;
}

int tw_mapped_open(int process_id, const struct tw_mapped *mapped, struct stat *status, const char **why)
{
	struct stat found;
	char name[96];
	*why = NULL;
	snprintf(name, sizeof name, "/proc/%d/map_files/%.40s", process_id, mapped->range);
	int fd = tw_file_open(name, &found);
	if (fd == TW_EPERM)
		fd = open_by_name(process_id, mapped, &found, why);
	else if (fd == TW_ELIMIT)
		*why = "its file is too large, or nearly all of it is holes";
	if (fd < 0)
		return fd;
	*why = why_not_trusted(fd, &found);
	if (*why) {
		close(fd);
		return TW_EPERM;
	}
	*status = found;
	return fd;
}

struct adding {
	struct tw_symbols *symbols;
	char **real; /* the paths of all objects without links, each of which takes system calls; NULL: unknown */
	size_t count, capacity;
	unsigned left; /* files that are not looked at */
};

static bool is_object(struct adding *adding, const char *path)
{
	const struct tw_symbols_object *object;
	while ((object = tw_symbols_object(adding->symbols, adding->count)) &&
	       tw_grow(adding->real, adding->count, adding->capacity))
		adding->real[adding->count++] = realpath(object->path, NULL);
	for (size_t i = 0; i < adding->count; i++)
		if (adding->real[i] && strcmp(adding->real[i], path) == 0)
			return true;
	return false;
}

static bool add(int process_id, const struct tw_mapped *mapped, void *arg)
{
	struct adding *adding = arg;
	const char *name = strrchr(mapped->path, '/') + 1, *why;
	struct stat status;
	/* The agent declares nothing, as programs do that are linked with the library. */
	if (strncmp(name, AGENT, sizeof AGENT - 1) == 0 || is_object(adding, mapped->path))
		return true;
	int fd = tw_mapped_open(process_id, mapped, &status, &why);
	adding->left += fd < 0 || tw_symbols_add(adding->symbols, fd, mapped->path) != 0;
	if (fd >= 0)
		close(fd);
	return true;
}

unsigned tw_mapped_add(int process_id, struct tw_symbols *symbols)
{
	struct adding adding = {.symbols = symbols};
	tw_mapped_each(process_id, add, &adding);
	for (size_t i = 0; i < adding.count; i++)
		free(adding.real[i]);
	free(adding.real);
	return adding.left;
}
