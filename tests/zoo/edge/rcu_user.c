/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -lurcu-memb */
/* Uses liburcu itself: its own read sections survive the tracer's repairs and waits. */
#include "edge.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <urcu/urcu-memb.h>

static sigjmp_buf out;
static volatile int may_jump, jumps, gone;

static void on_alarm(int number)
{
	if (may_jump) {
		may_jump = 0;
		jumps++;
		siglongjmp(out, 1);
	}
}

int main(void)
{
	const long all = edge_rounds(200, 70);
	struct itimerval every = {{0, 400}, {0, 400}};

	urcu_memb_register_thread();
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	urcu_memb_read_lock();
	while (jumps < all) {
		if (sigsetjmp(out, 1) == 0) {
			may_jump = 1;
			for (;;)
				edge_touch(4);
		}
		edge_call(1);
		gone += !urcu_memb_read_ongoing();
	}
	signal(SIGALRM, SIG_IGN);
	dlclose(dlopen("libresolv.so.2", RTLD_NOW));
	gone += !urcu_memb_read_ongoing();
	urcu_memb_read_unlock();
	urcu_memb_synchronize_rcu();
	urcu_memb_unregister_thread();
	return edge_end(!gone);
}
