/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks all its memory, now and later, as time servers and audio programs do: without privileges, below the usual limit
 * of 8 MiB; is refused below a limit that is too small for it; and locks no more than its own memory.
 */
#include "edge.h"
#include "locked.h"
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *calls(void *unused)
{
	edge_calls(20000);
	return NULL;
}

static int check(int holds, const char *what)
{
	if (!holds)
		printf("WRONG: %s\n", what);
	return holds;
}

int main(void)
{
	struct rlimit small = {1 << 20, 8 << 20}, usual = {8 << 20, 8 << 20};
	pthread_attr_t attributes;
	pthread_t threads[3];
	void *more;
	int is_right = 1;

	setrlimit(RLIMIT_MEMLOCK, &usual);
	if (getuid() == 0)
		is_right &=
			check(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534),
			      "rights");
	edge_calls(1000);
	setrlimit(RLIMIT_MEMLOCK, &small);
	is_right &= check(mlockall(MCL_CURRENT | MCL_FUTURE) == -1 && errno == ENOMEM && locked_kib() == 0,
			  "locked beyond the limit");
	setrlimit(RLIMIT_MEMLOCK, &usual);
	is_right &= check(!mlockall(MCL_CURRENT | MCL_FUTURE), "not locked");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 3; i++)
		is_right &= check(!pthread_create(&threads[i], &attributes, calls, NULL), "no thread");
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	/* A mapping made now is locked as well, and fits the limit. */
	more = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is_right &= check(more != MAP_FAILED, "no memory");
	is_right &= check(locked_kib() > 4 << 10 && locked_kib() < 6 << 10, "not what it has itself");
	munmap(more, 2 << 20);
	is_right &= check(!munlockall() && locked_kib() == 0, "not unlocked");
	is_right &= check(!mlockall(MCL_CURRENT) && locked_kib() > 2 << 10, "not locked now");
	more = mmap(NULL, 7 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is_right &= check(more != MAP_FAILED, "later memory counts");
	edge_calls(1000);
	return edge_end(is_right);
}
