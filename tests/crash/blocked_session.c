/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a session is destroyed, and a library opened, while a thread of the program sleeps over its full
 * ring.
 *
 * Method: a program that records itself, whose disk accepts nothing for a while: the writer's pwritev() is defined in
 * this file.  The thread sleeps; dlopen() returns meanwhile; destroying ends the wait; the next session works.
 */
#include <tracewheel/tracewheel.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

TW_DEFINE_FUNCTION(step, "crash", "step", 2);

static _Atomic int is_stuck, stops;
static _Atomic uint64_t made;

/* Found before libc's by every library of the program. */
__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset)
{
	ssize_t all = 0;

	while (atomic_load(&is_stuck))
		usleep(1000);
	for (int i = 0; i < count; i++) {
		ssize_t written = pwrite(fd, pieces[i].iov_base, pieces[i].iov_len, offset + all);

		if (written < 0)
			return written;
		all += written;
		if ((size_t)written < pieces[i].iov_len)
			break;
	}
	return all;
}

static void *call(void *unused)
{
	for (uint64_t i = 0; !atomic_load_explicit(&stops, memory_order_relaxed); i++) {
		tw_call2(&step, i, ~i);
		atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	}
	return NULL;
}

static void check(int is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "FAILED: %s\n", what);
	exit(1);
}

static struct tw_session *begin(const char *path)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE,
					 .capture_path = path,
					 .on_full = TW_ON_FULL_BLOCK,
					 .ring_bytes = 1 << 16};
	struct tw_session *session;

	check(tw_session_create("blocked", &tracer, &session) == 0, "a session");
	check(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) >= 0, "flags");
	check(tw_trace_function(session, "crash", "step", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) == 1, "a function");
	return session;
}

static void *free_disk_soon(void *unused)
{
	usleep(200000);
	atomic_store(&is_stuck, 0);
	return NULL;
}

/* True if dlopen() returned while the thread slept, which wakes by itself after a second. */
static int destroy_while_blocked(const char *path)
{
	struct tw_session *session = begin(path);
	pthread_t helper;
	uint64_t before;
	int slept;

	usleep(20000);
	atomic_store(&is_stuck, 1);
	do {
		before = atomic_load(&made);
		usleep(20000);
	} while (before != atomic_load(&made));
	check(dlopen("libm.so.6", RTLD_NOW) != NULL, "dlopen");
	slept = before == atomic_load(&made);
	pthread_create(&helper, NULL, free_disk_soon, NULL);
	check(tw_session_destroy(session) == 1, "destroyed");
	pthread_join(helper, NULL);
	/* The thread continues, or the alarm ends the test. */
	while (atomic_load(&made) <= before)
		usleep(1000);
	tw_session_put(session);
	return slept;
}

int main(void)
{
	char folder[] = "/tmp/tracewheel-crash-XXXXXX", path[64], command[128];
	pthread_t thread;
	int slept = 0;

	alarm(300);
	check(mkdtemp(folder) != NULL, "a folder");
	pthread_create(&thread, NULL, call, NULL);
	/* More often only if the thread had slept enough before a busy machine scheduled this one. */
	for (int i = 0; i < 5 || (!slept && i < 25); i++) {
		snprintf(path, sizeof path, "%s/%d.tw", folder, i);
		slept += destroy_while_blocked(path);
	}
	check(slept, "dlopen did not wait for the thread that sleeps");
	atomic_store(&stops, 1);
	pthread_join(thread, NULL);
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command) ? 1 : 0;
}
