/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what the options of `record` and `attach` ask for: the recorder's options, and the configuration for agents.
 *
 * Messages go to standard error.  Threads  the command's.
 */
#ifndef TW_TOOLS_REQUEST_H
#define TW_TOOLS_REQUEST_H

#include "tools/common/patterns.h"
#include "tools/record/aggregate.h"
#include "tools/record/arguments.h"
#include "tools/record/check.h"
#include "tools/record/condition.h"
#include "tools/record/config.h"
#include "tools/record/flight.h"
#include "tools/record/launch.h"
#include "tools/record/limits.h"
#include "tools/record/metrics.h"
#include "tools/record/tracer.h"

#include "tracewheel/consumer.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Without -t, this many of a program's functions are recorded, the largest, and calls of the others counted. */
#define TW_RECORDED_MOST "10000"

struct tw_command;
struct tw_late_code;

/* Zeroed at first, except `command`. */
struct tw_request {
	const struct tw_command *command; /* whose options these are */
	struct tw_recorder_options recorder;
	char path[PATH_MAX + 4];
	struct tw_config config;
	bool has_redact; /* text is replaced */
	bool has_patterns, has_excluded;
	bool has_ports; /* these are patterns as well, and the agent knows them */
	bool has_names; /* -t, --locks, --syscalls */
	bool has_syscalls;
	bool has_python;
	bool has_typed; /* -t */
	bool allows_nothing;
	struct tw_patterns counted; /* --count; these are patterns as well */
	char alias[NAME_MAX + 1];   /* the name that the program was started by, if it is not its file's; "" */
	struct tw_aggregate_request aggregate;
	struct tw_check *check;
	struct tw_conditions conditions;
	struct tw_arguments arguments;
	struct tw_tracer_file tracer;
	struct tw_flight flight;
	struct tw_metrics metrics;
	bool has_stack;
	bool has_frames; /* more callers than the direct one */
	uint64_t longer_ns;
	uint64_t children_bytes;   /* --children; 0: not given */
	bool needs_each_call;	   /* for the views of --locks or --memory: their functions cannot be counted instead */
	const char *beside_longer; /* an option given that excludes --longer; NULL: none */
	struct tw_limits limits;
	uint32_t flags; /* of processes */
	bool is_local, is_careful, is_global;
	bool is_quiet;
	bool shows_progress;
	bool is_until_first;
	const char *program_output; /* NULL: as this command's */
	const char *callers;
};

/* A tw_options_take_fn; @key: of options.h. */
bool tw_request_take(void *request, int key, const char *value);
/* Do the options fit each other, and what does the condition ask for?  Returns 0, or an exit code. */
int tw_request_check(struct tw_request *request);
/*
 * tw_request_prepare - look up in the program's files what is asked for, and complete the configuration.
 *
 * @typed	the name that the program was started by.
 *
 * Returns 0, or an exit code.
 */
int tw_request_prepare(struct tw_request *request, const struct tw_launch *launch, const char *typed);
/* The recorder's options borrow what the request has. */
void tw_request_set_memory(struct tw_request *request);
/* Answers what agents ask later; tw_late_code_end() ends it.  @request	borrows until then. */
struct tw_late_code *tw_request_late_code(const struct tw_request *request, struct tw_recorder *recorder);
/* Are functions recorded at their entries? */
bool tw_request_has_entries(const struct tw_request *request);
/* Are only functions of the program itself selected? */
bool tw_request_is_main_only(const struct tw_request *request);
/*
 * tw_request_account - say what was recorded, and what was not.
 *
 * @is_left	the reader of the stream has gone.  @left_pid	the program, if it continues untraced; else 0.
 */
void tw_request_account(const struct tw_request *request, const struct tw_recorder_stats *stats, int error,
			bool is_left, pid_t left_pid);
void tw_request_free(struct tw_request *request);

#endif
