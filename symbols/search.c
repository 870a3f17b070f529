/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - finds a needed library as ld.so would, without asking ld.so.
 *
 *  1. RPATH of the requesting object, if that has no RUNPATH, and of the program
 *  2. LD_LIBRARY_PATH
 *  3. RUNPATH of the requesting object
 *  4. /etc/ld.so.cache
 *  5. the default directories
 *
 * `ld.so --list` would know better, but runs the interpreter that the file names: reading a file must not execute
 * anything.  Not searched: glibc-hwcaps subdirectories.
 */
#include "symbols/file.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/limits.h"
#include "tracewheel/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_PATH	"/etc/ld.so.cache"
#define CACHE_BYTES_MAX (16u << 20)

static const char *const default_directories[] =
	{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

/* The layout that glibc writes since 2.2 ("new format"), alone since 2.32. */
struct cache_head {
	char magic[20]; /* "glibc-ld.so.cache1.1" */
	uint32_t entry_count;
	uint32_t string_bytes;
	uint32_t unused[5];
};
struct cache_entry {
	int32_t flags;
	uint32_t key, value; /* offsets of strings in the file */
	uint32_t os_version;
	uint64_t hardware;
};
/* An ELF library of libc6 for x86-64. */
#define CACHE_FLAGS 0x0303

static int try_path(const char *path, struct tw_elf_file **out)
{
	int error = tw_elf_file_open(path, out);

	/* Wrong architecture, damaged, not readable: ld.so continues as well. */
	return error == TW_ENOMEM ? error : error ? TW_ENOENT : 0;
}

/* Appends a piece of text; false when the path grows too long. */
static bool append(char *path, size_t *length, const char *text, size_t bytes)
{
	if (bytes > TW_PATH_BYTES_MAX - *length)
		return false;
	memcpy(path + *length, text, bytes);
	*length += bytes;
	path[*length] = '\0';
	return true;
}

/* $ORIGIN, $LIB and $PLATFORM, with or without braces.  Returns the length of the token; 0: not a token.
 */
static size_t expand_token(const char *at, const char *origin, const char **value, size_t *value_bytes)
{
	static const struct {
		const char *name, *value;
	} tokens[] = {{"ORIGIN", NULL}, {"LIB", "lib/x86_64-linux-gnu"}, {"PLATFORM", "x86_64"}};
	bool has_brace = at[1] == '{';

	for (size_t i = 0; i < TW_COUNT_OF(tokens); i++) {
		size_t bytes = strlen(tokens[i].name);
		const char *name = at + 1 + has_brace, *slash = strrchr(origin, '/');

		if (strncmp(name, tokens[i].name, bytes) || (has_brace && name[bytes] != '}'))
			continue;
		*value = tokens[i].value ? tokens[i].value : origin;
		*value_bytes = tokens[i].value ? strlen(tokens[i].value) : slash ? (size_t)(slash - origin) : 0;
		return 1 + bytes + 2 * has_brace;
	}
	return 0;
}

static int try_directory(const char *directory, size_t bytes, const char *name, const char *origin,
			 struct tw_elf_file **out)
{
	char path[TW_PATH_BYTES_MAX + 1];
	size_t length = 0;

	for (size_t i = 0; i < bytes;) {
		const char *value = directory + i;
		size_t value_bytes = 1, taken = 0;

		if (directory[i] == '$')
			taken = expand_token(directory + i, origin, &value, &value_bytes);
		if (!append(path, &length, value, value_bytes))
			return TW_ENOENT;
		i += taken ? taken : 1;
	}
	if (!append(path, &length, "/", 1) || !append(path, &length, name, strlen(name)))
		return TW_ENOENT;
	return try_path(path, out);
}

/* A list of directories, separated by colons or semicolons.  An empty one is the current directory. */
static int try_list(const char *list, const char *name, const char *origin, struct tw_elf_file **out)
{
	int error = TW_ENOENT;

	while (list && *list && error == TW_ENOENT) {
		size_t bytes = strcspn(list, ":;");

		error = bytes ? try_directory(list, bytes, name, origin, out)
			      : try_directory(".", 1, name, origin, out);
		list += bytes;
		if (*list)
			list++;
	}
	return error;
}

static int try_cache_entries(const char *cache, size_t bytes, const char *name, struct tw_elf_file **out)
{
	const struct cache_head *head = (const void *)cache;
	const struct cache_entry *entries = (const void *)(head + 1);

	if (bytes < sizeof *head || memcmp(head->magic, "glibc-ld.so.cache1.1", sizeof head->magic) ||
	    head->entry_count > (bytes - sizeof *head) / sizeof *entries)
		return TW_ENOENT;
	for (uint32_t i = 0; i < head->entry_count; i++) {
		if (entries[i].flags != CACHE_FLAGS || entries[i].key >= bytes || entries[i].value >= bytes ||
		    strcmp(cache + entries[i].key, name))
			continue;
		if (try_path(cache + entries[i].value, out) == 0)
			return 0;
	}
	return TW_ENOENT;
}

static int try_cache(const char *name, struct tw_elf_file **out)
{
	struct stat status;
	int fd = tw_file_open(CACHE_PATH, &status), error = TW_ENOENT;
	char *cache;

	if (fd < 0)
		return TW_ENOENT;
	if (status.st_size > 0 && status.st_size < CACHE_BYTES_MAX) {
		cache = malloc((size_t)status.st_size + 1);
		if (cache && tw_file_read_at(fd, cache, (uint64_t)status.st_size, 0) == 0) {
			cache[status.st_size] = '\0';
			error = try_cache_entries(cache, (size_t)status.st_size, name, out);
		}
		free(cache);
	}
	close(fd);
	return error;
}

int tw_elf_search(const char *name, const struct tw_elf_file *requester, const struct tw_elf_file *program,
		  struct tw_elf_file **out)
{
	int error = TW_ENOENT;

	if (strchr(name, '/'))
		return try_path(name, out);
	if (!*requester->elf.runpath) {
		error = try_list(requester->elf.rpath, name, requester->path, out);
		if (error == TW_ENOENT && requester != program)
			error = try_list(program->elf.rpath, name, program->path, out);
	}
	if (error == TW_ENOENT)
		error = try_list(getenv("LD_LIBRARY_PATH"), name, requester->path, out);
	if (error == TW_ENOENT)
		error = try_list(requester->elf.runpath, name, requester->path, out);
	if (error == TW_ENOENT)
		error = try_cache(name, out);
	for (size_t i = 0; error == TW_ENOENT && i < TW_COUNT_OF(default_directories); i++)
		error = try_directory(default_directories[i], strlen(default_directories[i]), name, "", out);
	return error;
}
