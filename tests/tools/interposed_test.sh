#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    No function of the program runs inside the agent, whatever names of libc the program defines itself.
# Method  A program that wraps the functions that profilers wrap (pthread_mutex_lock, malloc, clock_gettime, mmap, ...).
#         Each wrapper calls traced functions, and counts its calls: their number must equal the untraced one. The same
#         wrappers preloaded before the command, and MemorySanitizer, which wraps everything. Functions that the library
#         imports from libc must not use the program's malloc.
build=$1
. "$(dirname "$0")/lib.sh"

cat >wrap.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long counts[8];
static struct timespec last;
static char path[64];

/* A wrapper's own calls pass traced slots; so do those that libc makes for it. */
static void note(int which)
{
	clock_gettime(CLOCK_MONOTONIC, &last);
	snprintf(path, sizeof path, "%d", which);
	__atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED);
}

#define REAL(name)                                                                                                       \
	static __typeof__(name) *real;                                                                                   \
	if (!real)                                                                                                       \
	real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	REAL(pthread_mutex_lock);
	int result = real(mutex);
	note(0);
	return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	REAL(pthread_mutex_unlock);
	note(1);
	return real(mutex);
}

int pthread_setcancelstate(int state, int *before)
{
	REAL(pthread_setcancelstate);
	note(2);
	return real(state, before);
}

int open(const char *name, int flags, ...)
{
	static int (*real)(const char *, int, int);
	if (!real)
		real = (int (*)(const char *, int, int))dlsym(RTLD_NEXT, "open");
	note(3);
	return real(name, flags, 0600);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	REAL(mmap);
	note(4);
	return real(at, bytes, protection, flags, fd, offset);
}

char *getenv(const char *name)
{
	REAL(getenv);
	note(5);
	return real(name);
}

#ifdef WITH_MALLOC
/* An allocator of its own, under a lock of its own that is not recursive. */
static char heap[1 << 24];
static size_t used;
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
void *malloc(size_t bytes)
{
	size_t *at;
	pthread_mutex_lock(&heap_lock);
	note(6);
	at = (size_t *)(heap + used);
	used += (bytes + 31) & ~(size_t)15;
	pthread_mutex_unlock(&heap_lock);
	if (used > sizeof heap)
		abort();
	at[0] = bytes;
	return at + 2;
}
void free(void *at)
{
	if (at && ((char *)at < heap || (char *)at >= heap + sizeof heap)) {
		write(2, "not mine\n", 9);
		abort();
	}
}
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *at, size_t bytes)
{
	void *to = malloc(bytes);
	if (at)
		memcpy(to, at, ((size_t *)at)[-2] < bytes ? ((size_t *)at)[-2] : bytes);
	return to;
}
void *aligned_alloc(size_t alignment, size_t bytes) { return (void *)(((size_t)malloc(bytes + alignment) + alignment - 1) & -alignment); }
#endif

#ifdef WITH_MAIN
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int kept;
static void *work(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&mutex);
		kept++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	void *handle;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	handle = dlopen("./late.so", RTLD_NOW);
	if (!handle || ((int (*)(int))dlsym(handle, "late"))(1) != 2)
		return 1;
	dlclose(handle);
#ifdef WITH_MALLOC
	/* ld.so allocates for each examination of an object, outside of our locks. */
	counts[0] = counts[1] = 0;
#endif
	printf("%d: %ld %ld %ld %ld\n", kept, counts[0], counts[1], counts[2], counts[3]);
	return 3;
}
#endif
C
echo 'int late(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }' >late.c
gcc -O1 -fPIC -shared -fpatchable-function-entry=9 -o late.so late.c || fail gcc
"$tw" compact -q late.so || fail compact
gcc -w -O1 -rdynamic -DWITH_MAIN -o wrapped wrap.c -pthread -ldl || fail gcc
gcc -w -O1 -rdynamic -DWITH_MAIN -DWITH_MALLOC -o allocating wrap.c -pthread -ldl || fail gcc
gcc -w -O1 -fPIC -shared -o wrap.so wrap.c -pthread -ldl || fail gcc
for program in wrapped allocating; do
	./$program >expected
	for options in "" "-t libc:_" "-t _:_ --returns" "--follow-fork -t late:_" "-t libc:_ --on-full block"; do
		# shellcheck disable=SC2086 # several words
		expect 3 timeout 60 "$tw" record -q --force $options -o w.tw -- ./$program
		cmp -s out expected || fail "$program answers otherwise with '$options': $(diff out expected)"
	done
	expect 0 "$tw" report --json --top 0 w.tw
	[ "$(json 'sum(f["calls"] for f in d["by_function"] if f["name"].startswith("libc:clock_gettime/"))')" -gt 4000 ] ||
		fail "the wrappers' own calls were not recorded"
done
expect 3 env LD_PRELOAD="$PWD/wrap.so" timeout 60 "$tw" record -q --force -t libc:_ -o w.tw -- sh -c 'exit 3'
if command -v clang >/dev/null && clang -w -O1 -fsanitize=memory -DWITH_MAIN -DNO_WRAPPERS -x c -o sanitized - -pthread -ldl 2>/dev/null <<'C'
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); } puts("well"); return 3; }
C
then
	expect 3 timeout 60 "$tw" record -q --force -t libc:_ -o w.tw -- ./sanitized
	shows well
fi

# libc functions that allocate would use the program's malloc; functions that run the program's code are not called at
# all.
if nm -D --undefined-only "$build/lib/libtracewheel-agent.so" |
	grep -wE 'strdup|strndup|v?asprintf|fopen|fdopen|scandir|getline|getdelim|open_memstream|getcwd|qsort|tsearch|system|popen' >out; then
	fail "the preloaded library calls what allocates by the program's malloc"
fi
