/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - drains until a program, or all of its processes, have ended, or a signal asks to stop. */
#ifndef TW_TOOLS_WATCH_H
#define TW_TOOLS_WATCH_H

#include "tracewheel/consumer.h"

#include <stdbool.h>
#include <sys/types.h>

struct tw_flight;
struct tw_late_code;
struct tw_limits;
struct tw_metrics;

struct tw_watch {
	struct tw_recorder *recorder;
	struct tw_late_code *late; /* may be NULL */
	struct tw_limits *limits;  /* says afterwards whether one was reached; may be NULL */
	struct tw_flight *flight;
	struct tw_metrics *metrics;
	pid_t child;
	bool is_stream;
	bool waits_for_all; /* waits for all processes, not only for the child */
	bool is_quiet;
	bool shows_progress; /* each second (progress.h) */
};

/* From here on signals that ask to stop are counted, and cut a round short; SIGUSR1 asks for progress. */
void tw_watch_signals(void);
/* The recorder that signals wake; NULL: none. Shares. */
void tw_watch_recorder(struct tw_recorder *recorder);
/* Has such a signal come? */
bool tw_watch_is_asked_to_stop(void);
/* The last such signal. */
int tw_watch_signal(void);

/* True: the child has ended, with its status; false: a second signal came before that, or a limit was reached. */
bool tw_watch(const struct tw_watch *watch, int *status);
/* The recording has ended before the child: the same without a recorder and limits. */
bool tw_watch_child(pid_t child, int *status);

#endif
