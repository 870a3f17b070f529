/* SPDX-License-Identifier: Apache-2.0 */
/* erlang.c - `tracewheel record --erlang`: drains the rings that a tracer inside an Erlang VM writes, outside of the VM. */
#include "tools/record/erlang.h"
#include "tools/record/flight.h"
#include "tools/record/launch.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest sleep in one round; commands and events cut it short. */
#define POLL_NS UINT64_C(1000000000)

enum order { ORDER_NONE, ORDER_STOP, ORDER_ABORT };

static _Atomic int order;

static const char *name_of(int error)
{
	switch (error) {
	case TW_EEXIST: return "eexist";
	case TW_ENOENT: return "enoent";
	case TW_EPERM: return "eacces";
	case TW_ENOSPC: return "enospc";
	case TW_ENOMEM: return "enomem";
	case TW_EBADARG: return "badarg";
	default: return "eio";
	}
}

/* For users of tracewheel:start/2. */
static const char *reason_of(int error, const struct tw_recorder_options *options)
{
	switch (error) {
	case TW_EEXIST:
		return options->force ? "it is not a capture, or is being recorded now: it is not replaced"
				      : "it exists; force => true replaces it";
	case TW_ENOENT: return "its folder does not exist, or that of the rings, /dev/shm";
	case TW_EPERM: return "its folder cannot be written, or that of the rings, /dev/shm";
	case TW_ENOSPC:
		return "there is no space on its disk, or in /dev/shm for the rings; ring_bytes => 65536 needs less";
	default: return tw_strerror(error);
	}
}

/* "snapshot AGE REASON": what the rings of a flight recorder hold; AGE, in ns, says how long ago its cause was. */
static void write_snapshot(struct tw_recorder *recorder, char *line)
{
	static struct tw_flight_result result;
	char *reason;
	uint64_t age_ns = strtoull(line, &reason, 10);
	reason[strcspn(reason, "\n")] = 0;
	const struct tw_flight_options options = {.ring_set_path = tw_recorder_ring_set_path(recorder),
						  .reason = *reason ? reason + 1 : reason,
						  .trigger_ns = tw_now_ns() - age_ns};
	int error = tw_flight_write(&options, &result);
	if (error)
		printf("unwritten %s\n", tw_strerror(error));
	else
		printf("snapshot %llu %s\n", (unsigned long long)result.stats.events, result.path);
	fflush(stdout);
}

/* A thread of its own: the recorder sleeps on its rings, not on a pipe. */
static void *listen_to_port(void *recorder)
{
	static const char snapshot[] = "snapshot ";
	char line[1024];
	int wanted = ORDER_STOP;
	while (fgets(line, sizeof line, stdin)) {
		if (strncmp(line, snapshot, sizeof snapshot - 1) == 0)
			write_snapshot(recorder, line + sizeof snapshot - 1);
		if (strcmp(line, "abort\n") == 0)
			wanted = ORDER_ABORT;
		if (strcmp(line, "abort\n") == 0 || strcmp(line, "stop\n") == 0)
			break;
	}
	atomic_store_explicit(&order, wanted, memory_order_release);
	tw_recorder_wake(recorder);
	return NULL;
}

/* The VM's end of the pipe decides: a Ctrl-C is the VM's, and a VM that dies takes its port programs along. */
static void ignore_signals(void)
{
	static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		signal(numbers[i], SIG_IGN);
	tw_launch_ignore_signals();
}

static void tell(const struct tw_recorder_stats *stats, int error)
{
	static const char *const causes[TW_LOST_CAUSES] = {"lost_full", "lost_too_big", "lost_nested", "lost_no_ring"};
	printf("done events=%llu", (unsigned long long)stats->events);
	for (int i = 0; i < TW_LOST_CAUSES; i++)
		printf(" %s=%llu", causes[i], (unsigned long long)stats->lost[i]);
	printf(" unstored=%llu bytes=%llu write_errors=%llu redacted=%llu complete=%d\n",
	       (unsigned long long)stats->unstored, (unsigned long long)stats->file_bytes,
	       (unsigned long long)stats->write_errors, (unsigned long long)stats->redacted, error == 0);
	fflush(stdout);
}

int tw_record_erlang_port(struct tw_recorder_options *options, const char *path, bool is_flight)
{
	struct tw_flight flight = {.is_wanted = is_flight};
	struct tw_recorder_stats stats = {0};
	struct tw_recorder *recorder;
	pthread_t listener;
	ignore_signals();
	options->path = path;
	tw_flight_prepare(&flight, options, path);
	options->leaves_memory = true;
	options->guards_rings = true;
	options->ends_inside = true;
	int error = tw_recorder_create(options, &recorder);
	if (error || pthread_create(&listener, NULL, listen_to_port, recorder)) {
		if (!error)
			tw_recorder_abort(recorder);
		error = error ? error : TW_ENOMEM;
		printf("error %s %s\n", name_of(error), reason_of(error, options));
		return TW_EXIT_NOT_STARTED;
	}
	printf("ready %s\n", tw_recorder_ring_set_path(recorder));
	fflush(stdout);
	while (atomic_load_explicit(&order, memory_order_acquire) == ORDER_NONE)
		tw_recorder_poll(recorder, POLL_NS);
	pthread_join(listener, NULL);
	if (order == ORDER_ABORT) {
		tw_recorder_abort(recorder);
		return 0;
	}
	tw_recorder_close(recorder);
	error = tw_recorder_finish(recorder, &stats);
	tell(&stats, error);
	return error ? TW_EXIT_FAILURE : 0;
}
