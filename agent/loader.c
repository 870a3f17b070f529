/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - finds the file that a program's dlopen means.
 *
 * How the caller affects the search, and where that is handled:
 *
 *	NULL, a path		no effect
 *	a path with $ORIGIN	the caller's directory			expanded here
 *	a plain name		loaded already: no effect		left to ld.so
 *				RPATH, LD_LIBRARY_PATH, RUNPATH	searched here, in the order that ld.so itself
 *								gives for the caller (RTLD_DI_SERINFO)
 *				cache, default directories		left to ld.so
 *	the namespace		always the first, which contains every caller of our wrapper
 *
 * One difference remains: this library is the loader of an object opened so.  It matters only for the old RPATH (not
 * RUNPATH) of a library that opens another one whose dependencies are found by the first one's RPATH.
 */
#include "agent/agent.h"

#include "base/limits.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_run_path(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_RPATH || d->d_tag == DT_RUNPATH)
			return true;
	return false;
}

static bool append(char *path, size_t capacity, size_t *length, const char *text, size_t bytes)
{
	if (bytes >= capacity - *length)
		return false;
	memcpy(path + *length, text, bytes);
	*length += bytes;
	path[*length] = '\0';
	return true;
}

/*
 * The directory that $ORIGIN stands for.  RTLD_DI_ORIGIN cannot be used: glibc 2.36 copies from a null pointer if ld.so
 * has not needed the origin yet.
 */
static bool find_origin(const struct link_map *map, char *origin, size_t capacity)
{
	ssize_t bytes = (ssize_t)strlen(map->l_name);
	char *slash;

	if (bytes == 0) {
		bytes = readlink("/proc/self/exe", origin, capacity - 1);
		if (bytes <= 0)
			return false;
	} else {
		if ((size_t)bytes >= capacity)
			return false;
		memcpy(origin, map->l_name, (size_t)bytes);
	}
	origin[bytes] = '\0';
	slash = strrchr(origin, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

/* Expands $ORIGIN only. $LIB and $PLATFORM do not depend on the caller. */
static bool expand_origin(const char *name, struct link_map *map, char *path, size_t capacity)
{
	char origin[TW_PATH_BYTES_MAX + 1];
	size_t length = 0;
	bool has_origin = false;

	if (!find_origin(map, origin, sizeof origin))
		return false;
	while (*name) {
		size_t bytes = strcspn(name, "$");

		if (!append(path, capacity, &length, name, bytes))
			return false;
		name += bytes;
		bytes = !strncmp(name, "$ORIGIN", 7) ? 7 : !strncmp(name, "${ORIGIN}", 9) ? 9 : 0;
		if (bytes) {
			has_origin = true;
			if (!append(path, capacity, &length, origin, strlen(origin)))
				return false;
			name += bytes;
		} else if (*name) {
			if (!append(path, capacity, &length, name++, 1))
				return false;
		}
	}
	return has_origin;
}

/* ld.so skips files of another class or machine, and takes the first other file even if it is unusable. */
static bool is_candidate(const char *path)
{
	ElfW(Ehdr) header;
	int fd = tw_sys_open_at(AT_FDCWD, path);
	long got;

	if (fd < 0)
		return false;
	got = tw_sys_read(fd, &header, sizeof header);
	tw_sys_close(fd);
	return got != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	       (header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64);
}

static bool search(const char *name, struct link_map *map, char *path, size_t capacity)
{
	Dl_serinfo size, *list;
	bool is_found = false;

	if (dlinfo(map, RTLD_DI_SERINFOSIZE, &size))
		return false;
	list = malloc(size.dls_size);
	if (!list)
		return false;
	*list = size;
	if (dlinfo(map, RTLD_DI_SERINFOSIZE, list) == 0 && dlinfo(map, RTLD_DI_SERINFO, list) == 0) {
		for (unsigned i = 0; i < list->dls_cnt && !is_found; i++) {
			const Dl_serpath *directory = &list->dls_serpath[i];
			size_t length = 0;

			/* Here ld.so would consult its cache: leave the rest to it. */
			if (directory->dls_flags & LA_SER_DEFAULT)
				break;
			is_found = append(path, capacity, &length, directory->dls_name, strlen(directory->dls_name)) &&
				   append(path, capacity, &length, "/", 1) &&
				   append(path, capacity, &length, name, strlen(name)) && is_candidate(path);
		}
	}
	free(list);
	return is_found;
}

/* Searches for the caller where the result may differ from ours. dlopen() is no cancellation point. */
static bool find(const char *name, struct link_map *map, char *path, size_t capacity)
{
	int cancel_state;
	bool is_found;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	is_found = strchr(name, '$') ? expand_origin(name, map, path, capacity) : search(name, map, path, capacity);
	pthread_setcancelstate(cancel_state, NULL);
	return is_found;
}

void *tw_loader_open(const struct tw_loader_calls *calls, const char *name, int flags, const void *caller)
{
	char path[TW_PATH_BYTES_MAX + 1];
	struct link_map *map = NULL;
	Dl_info info;
	void *present = NULL, *handle;

	if (!name || !*name || (strchr(name, '/') && !strchr(name, '$')) ||
	    !dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ||
	    (!strchr(name, '$') && !has_run_path(map)))
		return calls->open(name, flags);
	/* Keeps it loaded until it is opened: another thread may be closing it. */
	if (!strchr(name, '$'))
		present = calls->open(name, RTLD_LAZY | RTLD_NOLOAD);
	if (!present && find(name, map, path, sizeof path))
		name = path;
	handle = calls->open(name, flags);
	if (present)
		calls->close(present);
	return handle;
}
