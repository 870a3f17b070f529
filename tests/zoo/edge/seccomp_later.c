/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, then a filter, then signals (an interval timer that is already running) and calls again. */
#include "edge.h"
#include "seccomp_help.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int ticks;

static void on_alarm(int number)
{
	edge_calls(2);
	ticks++;
}

int main(void)
{
	const long all = edge_rounds(100, 40);
	struct itimerval every = {{0, 1000}, {0, 1000}};

	edge_calls(1000);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	edge_confine();
	while (ticks < all)
		edge_calls(1000);
	if (write(1, "right\n", 6) != 6)
		_exit(4);
	_exit(22);
}
