/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - why the kernel tells no context switches: sched.h. */
#include "tools/record/sched.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>

/* From this value of perf_event_paranoid on, users without privileges get no events of their own programs. */
#define PARANOID_FORBIDS 3

static int paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int value = 0;
	bool is_known = file && fscanf(file, "%d", &value) == 1;
	if (file)
		fclose(file);
	return is_known ? value : 0;
}

static void say_forbidden(void)
{
	if (paranoid() >= PARANOID_FORBIDS)
		tw_say("--sched: no states of threads are recorded, all else is: kernel.perf_event_paranoid is %d here, which leaves "
		       "perf events to root; `sysctl kernel.perf_event_paranoid=2` allows them.",
		       paranoid());
	else
		tw_say("--sched: no states of threads are recorded, all else is: perf_event_open() is forbidden here, as by the seccomp "
		       "filter of a container; give the container CAP_PERFMON, or a profile that allows the call.");
}

void tw_sched_say_refused(const struct tw_recorder *recorder)
{
	struct tw_recorder_stats stats;
	tw_recorder_stats(recorder, &stats);
	switch (-stats.states_error) {
	case 0: break;
	case EPERM:
	case EACCES: say_forbidden(); break;
	case ENOBUFS:
		tw_say("--sched: no states of threads are recorded, all else is: other recordings of perf events hold the memory that "
		       "may be locked; a larger kernel.perf_event_mlock_kb or `ulimit -l` allows more.");
		break;
	case EMFILE:
	case ENFILE:
		tw_say("--sched: no states of threads are recorded, all else is: each processor needs an open file, and no more "
		       "may be opened; a larger `ulimit -n` allows them.");
		break;
	default:
		tw_say("--sched: no states of threads are recorded, all else is: this kernel tells no context switches "
		       "(CONFIG_PERF_EVENTS, from Linux 4.3 on).");
		break;
	}
}

void tw_sched_say_lost(const struct tw_recorder_stats *stats)
{
	char figure[TW_FIGURE_BYTES];
	if (stats->switches_lost)
		tw_say("%s: there were more than could be read or stored. States of threads are unknown there.",
		       tw_figure_of(figure, stats->switches_lost, "context switch was lost",
				    "context switches were lost"));
}
