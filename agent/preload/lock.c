/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - mlockall() of the program locks the program's memory but not ours.
 *
 * mlockall() counts, and makes present, everything that is mapped, including our large, mostly unused areas, and
 * it would fail where the limit (RLIMIT_MEMLOCK) sufficed for the program alone.  Thus present mappings are locked
 * piece by piece, except ours: our library, our large areas (base/own_area.h), the files of rings.  The kernel locks
 * later mappings as requested; rings are copies of an unlocked mapping and stay unlocked.
 *
 * Locking piece by piece has the same limit and the same errors; as with mlockall(), a page that cannot be made present
 * is no error.
 */
#include "agent/agent.h"
#include "base/atomic.h"
#include "base/export.h"
#include "base/filter.h"
#include "base/own_area.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

typedef int (*lock_fn)(int);

extern const char own_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const char own_end[] __asm__("_end") __attribute__((visibility("hidden")));

static _Atomic(lock_fn) real_mlockall;

static lock_fn find_mlockall(void)
{
	/* RELAXED agent.real: every thread finds the same answer. */
	lock_fn real = tw_load_relaxed(&real_mlockall);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "mlockall");
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(&real_mlockall, real);
	}
	return real;
}

__attribute__((constructor(101))) static void find_early(void)
{
	find_mlockall();
	tw_own_area_add(own_start, (size_t)(own_end - own_start));
}

/* ---- libraries loaded only because of us ---- */

static const char *const our_libraries[] = {"libgmp.so.", "libm.so."};
enum { OUR_LIBRARIES = sizeof our_libraries / sizeof *our_libraries };

static bool needs(const struct link_map *object, const char *library)
{
	const char *names = NULL;

	for (const ElfW(Dyn) *d = object->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			names = (const char *)d->d_un.d_ptr;
	/* For the vdso the loader does not relocate this pointer. */
	for (const ElfW(Dyn) *d = object->l_ld; (uintptr_t)names > object->l_addr && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && !strncmp(names + d->d_un.d_val, library, strlen(library)))
			return true;
	return false;
}

/* Does the program or one of its libraries need it as well? */
static bool is_programs(const char *library)
{
	for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
		if (object->l_addr != (uintptr_t)own_start && needs(object, library))
			return true;
	return false;
}

/* ---- the program's memory ---- */

/* Called for each piece; false: stop. */
typedef bool (*piece_fn)(uintptr_t from, uintptr_t to, void *arg);

struct walk {
	piece_fn fn;
	void *arg;
	const char *rings; /* the directory of our ring files */
	bool is_ours[OUR_LIBRARIES];
};

static bool is_of_ours(const struct walk *walk, const char *path)
{
	size_t rings_bytes = strlen(walk->rings);
	const char *name = strrchr(path, '/') + 1;

	if (!strncmp(path, walk->rings, rings_bytes) && path[rings_bytes] == '/')
		return true;
	for (unsigned i = 0; i < OUR_LIBRARIES; i++)
		if (walk->is_ours[i] && !strncmp(name, our_libraries[i], strlen(our_libraries[i])))
			return true;
	return false;
}

static bool without_ours(const struct walk *walk, uintptr_t from, uintptr_t to)
{
	uintptr_t first, end;

	while (from < to && tw_own_area_find(from, to, &first, &end)) {
		if (from < first && !walk->fn(from, first, walk->arg))
			return false;
		from = end;
	}
	return from >= to || walk->fn(from, to, walk->arg);
}

/* A line of /proc/self/maps: FROM-TO PERMISSIONS OFFSET DEVICE INODE PATH. */
static bool take_line(const struct walk *walk, const char *line)
{
	const char *path = strchr(line, '/');
	uintptr_t from, to;
	char *rest;

	from = strtoul(line, &rest, 16);
	to = *rest == '-' ? strtoul(rest + 1, NULL, 16) : 0;
	/* The kernel's vsyscall page, above user addresses. */
	if (to <= from || to >> 47)
		return true;
	return (path && is_of_ours(walk, path)) || without_ours(walk, from, to);
}

/* Returns 1, 0 if the function stopped, or a negative errno. */
static int each_piece(const struct walk *walk)
{
	int fd = tw_sys_open_to_read("/proc/self/maps"), answer = 1;
	char text[4096], *end, *line;
	size_t bytes = 0;
	long got;

	if (fd < 0)
		return fd;
	while (answer == 1 && (got = tw_sys_read(fd, text + bytes, sizeof text - 1 - bytes)) > 0) {
		bytes += (size_t)got;
		text[bytes] = '\0';
		for (line = text; answer == 1 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			answer = take_line(walk, line);
		}
		bytes -= (size_t)(line - text);
		memmove(text, line, bytes);
		/* A longer line: skip the rest of its path. */
		if (bytes == sizeof text - 1)
			bytes = 64;
	}
	tw_sys_close(fd);
	return answer;
}

/* ---- locking ---- */

struct locking {
	uint64_t locked_bytes, limit_bytes;
	bool is_on_fault;
	int error;
};

static bool add_piece(uintptr_t from, uintptr_t to, void *arg)
{
	*(uint64_t *)arg += to - from;
	return true;
}

/* First without making pages present: an error then means the limit, or a piece that was unmapped meanwhile. */
static bool lock_piece(uintptr_t from, uintptr_t to, void *arg)
{
	struct locking *locking = arg;
	int error = tw_sys_lock((void *)from, to - from, true);

	if (error == -EPERM || (error == -ENOMEM && locking->locked_bytes > locking->limit_bytes)) {
		locking->error = -error;
		return false;
	}
	if (!locking->is_on_fault)
		tw_sys_lock((void *)from, to - from, false);
	return true;
}

static bool unlock_piece(uintptr_t from, uintptr_t to, void *arg)
{
	tw_sys_unlock((void *)from, to - from);
	return true;
}

/* 0, an errno, or -1: not possible here. */
static int lock_current(int flags, const char *rings)
{
	struct locking locking = {.is_on_fault = flags & MCL_ONFAULT};
	struct rlimit limit;
	struct walk walk = {.rings = rings};
	int walked;

	for (unsigned i = 0; i < OUR_LIBRARIES; i++)
		walk.is_ours[i] = !is_programs(our_libraries[i]);
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return -1;
	locking.limit_bytes = limit.rlim_cur;
	walk.fn = add_piece;
	walk.arg = &locking.locked_bytes;
	if (each_piece(&walk) < 0)
		return -1;
	walk.fn = lock_piece;
	walk.arg = &locking;
	walked = each_piece(&walk);
	walk.fn = unlock_piece;
	if (walked == 0)
		each_piece(&walk);
	return walked == 0 ? locking.error : walked < 0 ? -1 : 0;
}

TW_API int mlockall(int flags)
{
	const char *rings = tw_agent_ring_set_path();
	int error = -1, result = 0;

	if (!rings || flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) || !(flags & (MCL_CURRENT | MCL_FUTURE)) ||
	    !tw_thread_may_call_system())
		return find_mlockall()(flags);
	/* As in the kernel: without MCL_FUTURE, later mappings are not locked even if they were before. */
	if (!(flags & MCL_FUTURE) && tw_own_area_is_future_locked())
		munlockall();
	if (flags & MCL_CURRENT)
		error = lock_current(flags, rings);
	if (error > 0) {
		errno = error;
		return -1;
	}
	if (error < 0)
		result = find_mlockall()(flags);
	else if (flags & MCL_FUTURE)
		result = find_mlockall()(flags & ~MCL_CURRENT);
	if (result == 0)
		tw_own_area_set_future_locked(flags & MCL_FUTURE);
	return result;
}
