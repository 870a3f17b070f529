/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what options ask for: request.h. */
#include "tools/record/request.h"
#include "tools/common/redact.h"
#include "tools/record/account.h"
#include "tools/record/late_code.h"
#include "tools/record/options.h"
#include "tools/record/rings.h"
#include "tools/record/sizes.h"
#include "tools/record/trigger.h"
#include "tools/tool.h"
#include "views/folds/memory.h"

#include "tracewheel/error.h"
#include "tracewheel/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The index of a segment is kept in memory until the segment is closed. */
#define SEGMENT_BYTES_DEFAULT (UINT64_C(256) << 20)
/* --children: the least, the most, and without a size, in each thread (base/limits.h). */
#define CHILDREN_BYTES_MIN (UINT64_C(32) << 10)
#define CHILDREN_BYTES_MAX (UINT64_C(1) << 30)
#define CHILDREN_BYTES	   (UINT64_C(4) << 20)
/* Of a stream. */
#define COUNTS_NS_DEFAULT UINT64_C(1000000000)
/* Any function of Python: the agent gives their modules this name, too. */
#define PYTHON_PATTERN "py:_"
/* Without -t, of a program's own functions: the largest are recorded, calls of the others counted (docs/decisions/0044). */

static bool add_config(struct tw_request *request, const char *key, const char *value)
{
	return tw_config_add(&request->config, key, value);
}

/* @key: of the option. */
static bool add_pattern(struct tw_request *request, int key, const char *text)
{
	struct tw_patterns patterns = {0};
	bool is_excluding = key == 'N';
	if (key == 't') {
		request->has_patterns = request->has_names = request->has_typed = true;
		return tw_conditions_take(&request->conditions, request->command, text, &request->config);
	}
	bool is_right = tw_patterns_take(&patterns, request->command, is_excluding, text);
	if (is_right && patterns.has_conditions && key == KEY_COUNT) {
		tw_usage(request->command, "--count '%s': all calls of a counted function count, without a condition.",
			 text);
		is_right = false;
	}
	is_right = is_right && add_config(request, is_excluding ? "exclude" : "pattern",
					  tw_pattern_text(is_excluding ? patterns.excluded[0] : patterns.wanted[0]));
	request->has_patterns |= !is_excluding;
	request->has_names |= !is_excluding;
	request->has_excluded |= is_excluding;
	tw_patterns_free(&patterns);
	return is_right;
}

/* Is the pattern that a linkage name stands for one of --count? */
static bool is_counted(const struct tw_request *request, const char *linkage)
{
	return tw_patterns_first_linkage(&request->counted, linkage) < request->counted.wanted_count;
}

static bool add_counted(struct tw_request *request, const char *text)
{
	return add_pattern(request, KEY_COUNT, text) &&
	       tw_patterns_take(&request->counted, request->command, false, text) &&
	       add_config(request, "count",
			  tw_pattern_text(request->counted.wanted[request->counted.wanted_count - 1]));
}

static bool add_flags(struct tw_request *request, const char *text)
{
	char *copy = strdup(text), *rest = copy;
	bool is_right = copy != NULL;
	for (char *name; is_right && (name = strsep(&rest, ","));) {
		uint32_t flags = tw_process_flag_named(name);
		is_right = flags != 0;
		if (!is_right)
			tw_usage(
				request->command,
				name[strspn(name, "0123456789")] || !*name
					? "'%s' is not a flag of processes."
					: "-p %s names no process: `record` starts the program that it traces; `tracewheel attach "
					  "%s` records one that runs, `record --erlang %s` an Erlang node.",
				name, name, name);
		/* 'all' includes calls, so it does not include 'silent'. */
		request->flags |= flags == TW_FLAG_ALL ? TW_FLAG_ALL & ~(uint32_t)TW_FLAG_SILENT : flags;
		/* CPU time needs stamps that show it. */
		if (flags == TW_FLAG_CPU_TIMESTAMP)
			request->flags |= TW_FLAG_TIMESTAMP;
	}
	free(copy);
	return is_right;
}

static bool config_flags(struct tw_request *request)
{
	if (!request->flags)
		return true;
	if (!request->has_patterns && !(request->flags & TW_FLAG_CALL) && !add_config(request, "functions", "0"))
		return false;
	return tw_config_add_flags(&request->config, "processes", request->flags);
}

static bool set_path(struct tw_request *request, const char *value)
{
	if (!*value || strlen(value) >= PATH_MAX)
		return tw_refuse(request->command, "-o wants the name of a capture.");
	strcpy(request->path, value);
	request->recorder.is_stream = strcmp(value, "-") == 0;
	request->recorder.stream_fd = STDOUT_FILENO;
	return true;
}

static bool set_stack(struct tw_request *request, const char *value)
{
	uint64_t number;
	request->has_stack = true;
	request->has_frames = strcmp(value, "1") != 0;
	if (tw_parse_count(value, &number) && number >= 1 && number <= 64)
		return add_config(request, "stack", value);
	return tw_refuse(request->command, "--stack is a number of callers, from 1 to 64; not '%s'.", value);
}

static bool set_callers(struct tw_request *request, const char *value)
{
	request->callers = value;
	if (strcmp(value, "main") == 0 || strcmp(value, "all") == 0)
		return true;
	return tw_refuse(request->command, "--callers is main or all, not '%s'.", value);
}

static bool set_longer(struct tw_request *request, const char *value)
{
	bool is_right = tw_parse_duration(value, &request->longer_ns) && request->longer_ns;
	return is_right ||
	       tw_refuse(request->command, "--longer is a duration, such as 10ms or 50us, not '%s'.", value);
}

static bool set_children(struct tw_request *request, const char *value)
{
	request->children_bytes = CHILDREN_BYTES;
	request->conditions.have_children = true;
	if (!value || (tw_parse_bytes(value, &request->children_bytes) &&
		       request->children_bytes >= CHILDREN_BYTES_MIN && request->children_bytes <= CHILDREN_BYTES_MAX))
		return true;
	return tw_refuse(request->command, "--children is a size from 32K to 1G, of each thread, not '%s'.", value);
}

static bool set_redact(struct tw_request *request, const char *value)
{
	request->has_redact = true;
	return tw_redact_option(request->command, value) && add_config(request, "redact", value);
}

/* The name of an option that needs each call as it begins, or other events in between; NULL: none of these. */
static const char *name_beside_longer(int key)
{
	switch (key) {
	case 'p': return "-p";
	case KEY_BY: return "--by";
	case KEY_HISTOGRAM: return "--histogram";
	case KEY_LOCKS: return "--locks";
	case KEY_MATCH: return "--match";
	case KEY_MEMORY: return "--memory";
	case KEY_PORTS: return "--ports";
	case KEY_PYTHON: return "--python";
	case KEY_QUANTILES: return "--quantiles";
	case KEY_RETURN_TO: return "--return-to";
	case KEY_STACK: return "--stack";
	case KEY_SUM: return "--sum";
	case KEY_TRACER: return "--tracer";
	default: return NULL;
	}
}

/* All options that are not handled elsewhere. */
static const char *name_of_size(int key)
{
	switch (key) {
	case KEY_RING: return "ring";
	case KEY_CAP: return "ring-cap";
	case KEY_ROTATE: return "rotate";
	case KEY_SEGMENT_TIME: return "segment-time";
	case KEY_DURABLE: return "durable";
	case KEY_LONG_SCHEDULE: return "long-schedule";
	case KEY_COUNTS_EVERY: return "counts-every";
	default: return "keep";
	}
}

static bool set_memory(struct tw_request *request)
{
	return add_pattern(request, KEY_MEMORY, TW_MEMORY_PATTERN) &&
	       add_config(request, "arguments1", TW_MEMORY_WORDS_1) &&
	       add_config(request, "arguments2", TW_MEMORY_WORDS_2) &&
	       add_config(request, "arguments3", TW_MEMORY_WORDS_3) && add_config(request, "bare", TW_MEMORY_BARE) &&
	       add_config(request, "returns", "1") && (request->has_stack || set_stack(request, "8")) &&
	       tw_arguments_set(&request->arguments, request->command, "raw");
}

static bool set_flight(struct tw_request *request, int key, const char *value)
{
	struct tw_flight *flight = &request->flight;
	if (key != KEY_SNAPSHOT_ON || !tw_trigger_is_pattern(value))
		return tw_flight_set(flight, &request->recorder, request->command, key, value);
	flight->beside = "--snapshot-on";
	return tw_triggers_take(&flight->triggers, request->command, value, &request->config);
}

static bool set_locks(struct tw_request *request)
{
	request->has_stack = request->allows_nothing = true;
	return add_pattern(request, KEY_LOCKS, "_:pthread_{mutex,rwlock,cond}_*") &&
	       add_config(request, "returns", "1") && add_config(request, "stack", "1") &&
	       tw_arguments_set(&request->arguments, request->command, "raw");
}

bool tw_request_take(void *arg, int key, const char *value)
{
	struct tw_request *request = arg;
	request->beside_longer = name_beside_longer(key) ?: request->beside_longer;
	request->needs_each_call |= key == KEY_LOCKS || key == KEY_MEMORY;
	switch (key) {
	case 'o': return set_path(request, value);
	case 't':
	case 'N': return add_pattern(request, key, value);
	case KEY_COUNT: return add_counted(request, value);
	case KEY_PROGRAM_OUTPUT: request->program_output = value; return true;
	case KEY_BY: return tw_aggregate_set(&request->aggregate, request->command, "by", value);
	case KEY_SUM: return tw_aggregate_set(&request->aggregate, request->command, "sum", value);
	case KEY_HISTOGRAM: return tw_aggregate_set(&request->aggregate, request->command, "histogram", value);
	case KEY_QUANTILES: return tw_aggregate_set(&request->aggregate, request->command, "quantiles", value);
	case KEY_ALLOW_NOTHING: request->allows_nothing = true; return true;
	case KEY_PROCESSES: tw_say("--processes is --flags now."); return add_flags(request, value);
	case 'p': return add_flags(request, value);
	case 'q': request->is_quiet = true; return true;
	case KEY_PROGRESS: request->shows_progress = true; return true;
	case KEY_LOCAL: request->is_local = true; return true;
	case KEY_CAREFUL: request->is_careful = true; return true;
	case KEY_GLOBAL: request->is_global = true; return true;
	case KEY_FORCE: request->recorder.force = true; return true;
	case KEY_ERLANG: tw_usage(request->command, "--erlang comes first, before all other options."); return false;
	case KEY_FOLLOW: request->recorder.follow_fork = true; return true;
	case KEY_UNTIL_FIRST: request->is_until_first = true; return true;
	case KEY_ON_FULL: return tw_rings_set_policy(&request->recorder, request->command, value);
	case KEY_MATCH: return tw_conditions_set_match(&request->conditions, request->command, value);
	case KEY_WHEN: return tw_conditions_set_when(&request->conditions, request->command, value);
	case KEY_TRACER: return tw_tracer_file_set(&request->tracer, request->command, value, &request->config);
	case KEY_ARGS: return tw_arguments_set(&request->arguments, request->command, value);
	case KEY_PROTOTYPES: return tw_arguments_set_file(&request->arguments, request->command, value);
	case KEY_NO_STRINGS: return request->arguments.layouts.hides_strings = true;
	case KEY_REDACT: return set_redact(request, value);
	case KEY_SCHED: return request->recorder.has_thread_states = true;
	case KEY_METRICS: request->metrics.path = value; return true;
	case KEY_LONGER: return set_longer(request, value);
	case KEY_CHILDREN: return set_children(request, value);
	case KEY_TIME: return tw_limits_set(&request->limits, request->command, "time", value);
	case KEY_EVENTS: return tw_limits_set(&request->limits, request->command, "events", value);
	case KEY_RATE: return tw_limits_set(&request->limits, request->command, "rate", value);
	case KEY_SYSCALLS:
		request->has_patterns = request->has_names = request->has_syscalls = true;
		/* fallthrough */
	case KEY_RETURNS: return add_config(request, "returns", "1");
	case KEY_PORTS: request->has_patterns = request->has_ports = true; return add_config(request, "ports", "1");
	case KEY_EXCEPTIONS: return add_config(request, "exceptions", "1");
	case KEY_RETURN_TO: return add_config(request, "return_to", "1");
	case KEY_LOCKS: return set_locks(request);
	case KEY_MEMORY: return set_memory(request);
	case KEY_PYTHON:
		return request->has_python || ((request->has_python = true) && add_config(request, "python", "1"));
	case KEY_CALLERS: return set_callers(request, value);
	case KEY_STACK: return set_stack(request, value);
	case KEY_FLIGHT:
	case KEY_SNAPSHOT_ON:
	case KEY_SNAPSHOTS:
	case KEY_EVERY: return set_flight(request, key, value);
	default: return tw_sizes_set(&request->recorder, request->command, name_of_size(key), value);
	}
}

/* A tracer module gets only the arguments that a call passes. */
static bool is_tracer_alone(const struct tw_request *request)
{
	if (!request->tracer.path[0])
		return true;
	if (request->counted.wanted_count)
		tw_usage(request->command, "--tracer and --count exclude each other: a tracer module gets each call.");
	else if (request->aggregate.is_wanted)
		tw_usage(request->command, "--tracer goes without --by, --sum, --histogram and --quantiles: a tracer "
					   "module gets each call.");
	else if (request->has_stack)
		tw_usage(request->command,
			 "--tracer and --stack exclude each other: events of a tracer module have no callers.");
	else if (request->arguments.is_wanted && request->arguments.string_bytes)
		tw_usage(request->command,
			 "--tracer and --args exclude each other, but for --args=raw: a tracer module gets words.");
	else if (request->recorder.is_stream)
		tw_usage(request->command, "--tracer and -o - exclude each other: no event would be in the stream.");
	else
		return true;
	return false;
}

static bool place_conditions(struct tw_request *request)
{
	char ns[24];
	struct tw_conditions *conditions = &request->conditions;
	if (!tw_conditions_check(conditions, request->command, request->longer_ns))
		return false;
	request->longer_ns = conditions->least_ns ?: request->longer_ns;
	snprintf(ns, sizeof ns, "%llu", (unsigned long long)conditions->least_ns);
	return !conditions->least_ns || (add_config(request, "longer", ns) && add_config(request, "returns", "1"));
}

/* Does the end of calls decide which are recorded? */
static bool is_by_end(const struct tw_request *request)
{
	return request->conditions.are_of_end || request->conditions.least_ns;
}

/* Descriptions of descriptors are paths and addresses. */
static bool are_strings_hidden(const struct tw_request *request)
{
	bool is_right = !request->arguments.layouts.hides_strings || !request->has_ports;
	return is_right ||
	       tw_refuse(request->command,
			 "--no-strings and --ports exclude each other: ports are known by their paths and addresses.");
}

static bool place_children(struct tw_request *request)
{
	char bytes[24];
	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)request->children_bytes);
	if (!request->children_bytes)
		return true;
	if (!is_by_end(request))
		return tw_refuse(
			request->command,
			"--children goes with --longer, or with a condition on how calls end, as -t 'srv:handle if result < 0': "
			"the calls in such calls are recorded with them.");
	return add_config(request, "children", bytes);
}

static bool is_longer_alone(const struct tw_request *request)
{
	bool is_right = !is_by_end(request) || !request->beside_longer;
	return is_right ||
	       tw_refuse(request->command, "%s and %s exclude each other: which calls are %s is known when they end.",
			 request->longer_ns ? "--longer" : "conditions on how calls end", request->beside_longer,
			 request->longer_ns ? "long" : "recorded");
}

/* Counted calls have no condition. */
static bool are_all_summed_up(const struct tw_request *request)
{
	if (!request->aggregate.is_wanted || request->counted.wanted_count ||
	    !tw_conditions_are_there(&request->conditions))
		return true;
	return tw_refuse(request->command,
			 "--by, --sum, --histogram and --quantiles are of all calls: without --when and --match.");
}

bool tw_request_has_entries(const struct tw_request *request)
{
	bool has_functions =
		request->has_names || (!request->has_ports && (!request->flags || request->flags & TW_FLAG_CALL));
	return request->is_local || (has_functions && !request->is_global);
}

static bool complete_request(struct tw_request *request, const char *program)
{
	const char *callers = request->callers ? request->callers : request->has_patterns ? "all" : "main";
	bool has_counted = request->counted.wanted_count != 0;
	if (request->aggregate.is_wanted && !tw_aggregate_config(&request->aggregate, has_counted, &request->config))
		return false;
	if (tw_aggregate_needs_types(&request->aggregate) && !request->arguments.is_wanted &&
	    !tw_arguments_set(&request->arguments, request->command, NULL))
		return false;
	bool is_selected = request->has_patterns || tw_conditions_are_there(&request->conditions) ||
			   request->tracer.path[0] || request->aggregate.is_wanted || request->longer_ns;
	if (!tw_flight_config(&request->flight, &request->config, &request->has_frames) || !config_flags(request) ||
	    (!request->has_patterns && !add_config(request, "pattern", "_:_")) ||
	    (!is_selected && !add_config(request, "record_most", TW_RECORDED_MOST)))
		return false;
	if (!add_config(request, "callers", callers) || (request->is_local && !add_config(request, "local", "1")) ||
	    ((tw_request_has_entries(request) || request->has_frames) && !tw_late_code_config(&request->config)) ||
	    !add_config(request, "careful", request->is_careful ? "1" : "0") ||
	    (request->is_global && !add_config(request, "global", "1")))
		return false;
	if (!request->path[0]) {
		const char *slash = strrchr(program, '/');
		request->recorder.keep_old = true;
		snprintf(request->path, sizeof request->path, "%s.tw", slash ? slash + 1 : program);
	}
	bool is_stream = request->recorder.is_stream;
	if (is_stream && (isatty(STDOUT_FILENO) || request->recorder.policy == TW_RECORDER_OVERWRITE))
		return tw_refuse(request->command,
				 "-o - is not for terminals, nor for --on-full overwrite: it keeps nothing back.");
	if (is_stream)
		strcpy(request->path, "the stream");
	if (is_stream && !request->recorder.counts_ns)
		request->recorder.counts_ns = COUNTS_NS_DEFAULT;
	request->recorder.path = request->path;
	if (!request->recorder.segment_bytes && !is_stream)
		request->recorder.segment_bytes = SEGMENT_BYTES_DEFAULT;
	tw_flight_prepare(&request->flight, &request->recorder, request->path);
	return true;
}

bool tw_request_is_main_only(const struct tw_request *request)
{
	return !request->has_patterns || (request->callers && strcmp(request->callers, "main") == 0);
}

/* Checks the patterns against the files. False: one can match nothing, which has been reported. */
/*
 * Looks up the patterns. Those of --syscalls need not all match: another libc has other functions. For the check they are one
 * pattern, of all functions of libc.
 */
static bool check_config(struct tw_request *request)
{
	if (!request->has_syscalls) {
		tw_check_patterns(request->check, request->config.text);
		return true;
	}
	size_t bytes = request->config.bytes;
	if (!add_config(request, "pattern", "libc:_"))
		return false;
	tw_check_patterns(request->check, request->config.text);
	request->config.bytes = bytes;
	request->config.text[bytes] = 0;
	return tw_arguments_set_syscalls(&request->arguments, &request->config);
}

static bool check_patterns(struct tw_request *request, const struct tw_launch *launch)
{
	if (!request->has_patterns && !request->has_excluded && !request->flight.triggers.wanted_count &&
	    !request->conditions.when && !request->has_frames && !tw_request_has_entries(request))
		return true;
	request->check = tw_check_open(
		&(struct tw_check_options){.program = launch->program,
					   .process_id = launch->process_id,
					   .alias = request->alias[0] ? request->alias : NULL,
					   .is_local = request->is_local,
					   .is_careful = request->is_careful,
					   .is_global = request->is_global,
					   .has_entries = tw_request_has_entries(request),
					   .has_frames = request->has_frames,
					   .is_main_only = tw_request_is_main_only(request),
					   .may_become_another = launch->is_script || request->recorder.follow_fork,
					   .has_python = request->has_python,
					   .is_quiet = request->is_quiet,
					   .allows_nothing = request->allows_nothing});
	if ((request->has_patterns || request->has_excluded || request->flight.triggers.wanted_count) &&
	    !check_config(request))
		return false;
	bool is_excluding = false;
	const char *pattern;
	for (size_t i = 0; (pattern = tw_check_linkage(request->check, i, &is_excluding)); i++)
		if (!add_config(request, is_excluding ? "exclude" : "pattern", pattern) ||
		    (!is_excluding && is_counted(request, pattern) && !add_config(request, "count", pattern)) ||
		    (!is_excluding && !tw_conditions_take_linkage(&request->conditions, pattern, &request->config)))
			return false;
	return tw_check_say(request->check);
}

/* Its calls are events: each is recorded as it begins. */
static bool is_python_recorded(struct tw_request *request)
{
	if (!request->has_python)
		return true;
	if (request->counted.wanted_count || request->aggregate.is_wanted)
		return tw_refuse(request->command,
				 "--python goes without --count, --by, --sum, --histogram and --quantiles: "
				 "calls of Python are recorded, and `report --by` sums them up.");
	return request->has_typed || add_pattern(request, 't', PYTHON_PATTERN);
}

int tw_request_check(struct tw_request *request)
{
	if (!is_python_recorded(request))
		return TW_EXIT_USAGE;
	if (!place_conditions(request) || tw_rings_are_too_large(&request->recorder, request->command) ||
	    !is_tracer_alone(request) || !are_all_summed_up(request) || !is_longer_alone(request) ||
	    !place_children(request) || !are_strings_hidden(request) ||
	    !tw_flight_check(&request->flight, &request->recorder, request->command) ||
	    !tw_sizes_check_run_delay(&request->recorder, request->command))
		return TW_EXIT_USAGE;
	if (request->recorder.has_thread_states &&
	    (request->flight.is_wanted || request->recorder.policy == TW_RECORDER_OVERWRITE))
		return tw_usage(
			request->command,
			"--sched goes without --flight and --on-full overwrite: nothing is written while the program runs.");
	if (request->flight.is_wanted && (request->limits.events || request->limits.rate))
		return tw_usage(
			request->command,
			"--flight goes without --events and --rate: no event is written before something happens.");
	if (request->is_local && request->is_global)
		return tw_usage(request->command, "--local and --global exclude each other.");
	if (request->is_local && request->has_ports)
		return tw_usage(request->command,
				"--local and --ports exclude each other: at libc's entries a transfer of fread() "
				"would count twice, as its inner read().");
	return 0;
}

int tw_request_prepare(struct tw_request *request, const struct tw_launch *launch, const char *typed)
{
	if (!tw_config_add_alias(&request->config, launch->is_script ? "" : launch->path, typed, request->alias) ||
	    !complete_request(request, launch->path))
		return TW_EXIT_NOT_STARTED;
	if (!check_patterns(request, launch))
		return TW_EXIT_USAGE;
	if (!tw_arguments_find_arities(&request->arguments, launch->program, &request->config) ||
	    !tw_arguments_find(&request->arguments, launch->program, &request->config, request->is_quiet))
		return TW_EXIT_NOT_STARTED;
	if (!tw_conditions_config(&request->conditions,
				  &(struct tw_conditions_target){.command = request->command,
								 .config = &request->config,
								 .arguments = &request->arguments,
								 .are_words = !tw_check_may_declare(request->check)}) ||
	    !tw_arguments_find_guards(&request->arguments, request->command, launch->program, &request->config,
				      request->is_quiet) ||
	    !tw_triggers_config(&request->flight.triggers,
				&(struct tw_triggers_target){.command = request->command,
							     .program = launch->program,
							     .arguments = &request->arguments,
							     .config = &request->config,
							     .is_quiet = request->is_quiet}))
		return TW_EXIT_USAGE;
	return tw_arguments_config_late(&request->arguments, &request->config) ? 0 : TW_EXIT_NOT_STARTED;
}

void tw_request_set_memory(struct tw_request *request)
{
	request->recorder.config = request->config.text;
	request->recorder.layouts = request->arguments.layouts.text;
	request->recorder.leaves_memory = request->recorder.guards_rings = true;
}

struct tw_late_code *tw_request_late_code(const struct tw_request *request, struct tw_recorder *recorder)
{
	return tw_late_code_begin(&(struct tw_late_options){.arguments = &request->arguments,
							    .config = request->config.text,
							    .recorder = recorder,
							    .has_plans = tw_request_has_entries(request),
							    .has_frames = request->has_frames,
							    .has_slots = !request->is_local,
							    .is_main_only = tw_request_is_main_only(request)});
}

void tw_request_free(struct tw_request *request)
{
	tw_check_close(request->check);
	tw_arguments_free(&request->arguments);
	tw_patterns_free(&request->counted);
	free(request->config.text);
	tw_conditions_free(&request->conditions);
	tw_patterns_free(&request->flight.triggers);
}
