/* SPDX-License-Identifier: Apache-2.0 */
/* A timer's handler jumps out of the interrupted code, thousands of times. */
#include "edge.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf out;
static volatile int may_jump, jumps;

static void on_alarm(int number)
{
	edge_call(3);
	if (may_jump) {
		may_jump = 0;
		jumps++;
		siglongjmp(out, 1);
	}
}

int main(void)
{
	const long all = edge_rounds(500, 150);
	struct itimerval every = {{0, 300}, {0, 300}};

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	while (jumps < all) {
		if (sigsetjmp(out, 1) == 0) {
			may_jump = 1;
			for (;;)
				edge_touch(4);
		}
	}
	signal(SIGALRM, SIG_IGN);
	return edge_end(1);
}
