/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.h - `record --flight`: rings are overwritten, and written as a capture when something happens.
 *
 * Messages go to standard error.  Threads  the command's.
 */
#ifndef TW_TOOLS_RECORD_FLIGHT_H
#define TW_TOOLS_RECORD_FLIGHT_H

#include "tools/common/patterns.h"
#include "tracewheel/flight.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tw_command;
struct tw_config;

/* The program is no child of this command. */
#define TW_FLIGHT_STATUS_UNKNOWN (-1)

/* Zeroed at first, except `most` and `every_ns`. */
struct tw_flight {
	bool is_wanted;
	const char *beside; /* an option given that is for --flight only; NULL: none */
	uint64_t signals;   /* those that ask for a snapshot, by bit */
	bool on_crash, on_exit;
	struct tw_patterns triggers; /* calls */
	uint32_t most;		     /* snapshots of one run, by signals and calls */
	uint64_t every_ns;	     /* and this far apart */
	char folder[PATH_MAX + 16];  /* of the recorder: the path of the capture, and TW_FLIGHT_END */
	/* While it runs. */
	struct tw_recorder *recorder;
	pid_t child;  /* the program */
	pid_t writer; /* the process that writes; 0: none does */
	uint32_t made;
	uint64_t made_ns; /* when the last one began */
	uint64_t passed_over;
	bool is_watching; /* for calls */
	bool is_quiet;
};

/* Takes an option: KEY_FLIGHT, KEY_SNAPSHOT_ON, KEY_SNAPSHOTS, KEY_EVERY.  False: it was wrong, which has been reported. */
bool tw_flight_set(struct tw_flight *flight, struct tw_recorder_options *recorder, const struct tw_command *command,
		   int key, const char *value);
/* Do the options fit each other?  False: no, which has been reported. */
bool tw_flight_check(const struct tw_flight *flight, const struct tw_recorder_options *recorder,
		     const struct tw_command *command);
/* Lines for agents.  *has_frames is set if they need tables of frames.  False: there is no memory, which has been reported. */
bool tw_flight_config(const struct tw_flight *flight, struct tw_config *config, bool *has_frames);
/* Makes the recorder's options those of a flight recorder, if one is wanted.  @path: of the capture. */
void tw_flight_prepare(struct tw_flight *flight, struct tw_recorder_options *recorder, const char *path);

/* From here on signals ask for snapshots; after tw_watch_signals().  @child: the program.  Nothing, if none is wanted. */
void tw_flight_begin(struct tw_flight *flight, struct tw_recorder *recorder, pid_t child, bool is_quiet);
/* Begins the snapshot that was asked for: another process writes it.  Between two rounds of the recorder. */
void tw_flight_poll(struct tw_flight *flight);
/*
 * tw_flight_end - wait for the process that writes, and write the snapshot of --snapshot-on crash or exit.
 *
 * @has_ended	the program has, with this status of wait(2), or TW_FLIGHT_STATUS_UNKNOWN.
 * Before tw_recorder_finish().
 */
void tw_flight_end(struct tw_flight *flight, bool has_ended, int status);

/* Says what was written, or why nothing was.  Returns an exit code. */
int tw_flight_say(int error, const struct tw_flight_result *result, const struct tw_flight_options *options,
		  bool is_quiet);

#endif
