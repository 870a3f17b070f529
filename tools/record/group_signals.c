/* SPDX-License-Identifier: Apache-2.0 */
/* group_signals.c - counts the signals of its process group, in memory that it shares with the recorder. */
#include "tools/record/group_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS 65

struct counts {
	_Atomic unsigned got[SIGNALS];
};

static struct counts *counts;
static unsigned asked[SIGNALS];
static pid_t counter;

/* In the new process.  All signals are blocked, so none is missed and none ends it but SIGKILL. */
static void watch_signals(pid_t parent, const char *last_word)
{
	sigset_t all;
	int number;
	char *words = program_invocation_name;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "tw-signals");
	if (getppid() != parent || close_range(0, ~0U, 0) < 0)
		_exit(0);
	/* The words of a command line follow each other in memory. */
	if (words < last_word)
		memset(words, 0, (size_t)(last_word - words) + strlen(last_word));
	sigfillset(&all);
	for (;;) {
		number = sigwaitinfo(&all, NULL);
		/* RELAXED: a count, and nothing else is read. */
		if (number > 0 && number < SIGNALS)
			atomic_fetch_add_explicit(&counts->got[number], 1, memory_order_relaxed);
	}
}

void tw_group_signals_begin(const char *last_word)
{
	sigset_t all, before;
	pid_t parent = getpid();
	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	counter = fork();
	if (counter == 0)
		watch_signals(parent, last_word);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

bool tw_group_signals_are_counted(void)
{
	return counter > 0;
}

bool tw_group_signals_got(int number)
{
	if (!tw_group_signals_are_counted() || number <= 0 || number >= SIGNALS)
		return false;
	/* RELAXED: as above. */
	unsigned got = atomic_load_explicit(&counts->got[number], memory_order_relaxed);
	bool is_more = got != asked[number];
	asked[number] = got;
	return is_more;
}

bool tw_group_signals_are_behind(int number)
{
	char text[4096], path[64];
	snprintf(path, sizeof path, "/proc/%d/status", (int)counter);
	int fd = tw_group_signals_are_counted() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[bytes > 0 ? bytes : 0] = 0;
	const char *pending = strstr(text, "\nShdPnd:");
	return pending && strtoull(pending + 8, NULL, 16) >> (number - 1) & 1;
}

void tw_group_signals_end(void)
{
	if (!tw_group_signals_are_counted())
		return;
	kill(counter, SIGKILL);
	while (waitpid(counter, NULL, 0) < 0 && errno == EINTR)
		;
	counter = 0;
}
