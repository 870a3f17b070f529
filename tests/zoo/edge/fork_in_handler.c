/* SPDX-License-Identifier: Apache-2.0 */
/* A timer's handler forks wherever the program is, also inside a hit; each child makes calls and ends normally. */
#include "edge.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int forks, bad;

/* Once: a timer that fires again while a handler runs would leave the program no time in between. */
static void set_alarm(void)
{
	const struct itimerval once = {{0, 0}, {0, 2000}};

	setitimer(ITIMER_REAL, &once, NULL);
}

static void on_alarm(int number)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		edge_calls(20);
		_exit(7);
	}
	waitpid(child, &status, 0);
	bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	forks++;
	set_alarm();
}

int main(void)
{
	const long all = edge_rounds(60, 20);

	signal(SIGALRM, on_alarm);
	set_alarm();
	while (forks < all)
		edge_calls(100);
	signal(SIGALRM, SIG_IGN);
	return edge_end(!bad);
}
