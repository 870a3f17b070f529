/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - preloaded after the agent: ends the program with status 99 if a hook allocates, frees or calls the loader.
 * With GUARD_COUNTS set it prints at exit how often the program allocated.  Its names have no version: ld.so prefers
 * them to libc's.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static int (*is_in_hit)(void);
static unsigned long mallocs;

__attribute__((constructor)) static void find(void)
{
	*(void **)&is_in_hit = dlsym(RTLD_DEFAULT, "tw_agent_is_in_hit");
}

__attribute__((destructor)) static void say(void)
{
	if (getenv("GUARD_COUNTS"))
		dprintf(1, "mallocs: %s\n", mallocs > 100 ? "many" : mallocs ? "few" : "none");
}

static void guard(const char *what)
{
	if (is_in_hit && is_in_hit()) {
		ssize_t ignored = write(2, what, strlen(what));

		ignored = write(2, " inside a hook\n", 15);
		(void)ignored;
		_exit(99);
	}
}

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void __libc_free(void *memory);

SHOWN void *malloc(size_t bytes)
{
	guard("malloc");
	mallocs++;
	return __libc_malloc(bytes);
}

SHOWN void *calloc(size_t count, size_t bytes)
{
	guard("calloc");
	return __libc_calloc(count, bytes);
}

SHOWN void *realloc(void *old, size_t bytes)
{
	guard("realloc");
	return __libc_realloc(old, bytes);
}

SHOWN void free(void *memory)
{
	guard("free");
	__libc_free(memory);
}

/* Finds the real ones without dlsym, which is one of them. */
#define REAL(name) dlvsym(RTLD_NEXT, name, "GLIBC_2.34")

SHOWN void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);

	guard("dlopen");
	*(void **)&real = REAL("dlopen");
	return real(name, flags);
}

SHOWN int dlclose(void *handle)
{
	int (*real)(void *);

	guard("dlclose");
	*(void **)&real = REAL("dlclose");
	return real(handle);
}

SHOWN int dladdr(const void *address, Dl_info *info)
{
	int (*real)(const void *, Dl_info *);

	guard("dladdr");
	*(void **)&real = REAL("dladdr");
	return real(address, info);
}
