/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - whether this process is traced and where its events go; the same for a forked child.
 *
 * Everything that the command's child starts inherits its environment:
 *
 *	TRACEWHEEL_AGENT	the ring set's directory
 *	TRACEWHEEL_ROOT		the process that is traced if children are not followed; without it, the
 *				command's own child
 *
 * so every descendant program comes here, and is inert unless it is the root or children are followed.  The image that
 * exec() replaced can no longer end its slot: the new image does.
 */
#include "agent/agent.h"
#include "agent/crash.h"
#include "agent/leave.h"

#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/native.h"
#include "session/session.h"
#include "session/tracer_module.h"
#include "tracewheel/error.h"
#include "tracewheel/port.h"
#include "tracewheel/seq.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_root(void)
{
	const char *root = secure_getenv("TRACEWHEEL_ROOT");

	if (root && *root)
		return strtol(root, NULL, 10) == getpid();
	return tw_agent_ring_set.config.owner_process_id == getppid() ||
	       tw_agent_ring_set.config.owner_process_id == getpid();
}

/* ---- a forked child that is followed ---- */

static __thread struct tw_permit *fork_permit;
static __thread bool fork_is_unfollowed;

/*
 * Seizes the permit, so that no change is half done when the memory is copied.  A thread that forks inside its own
 * transaction gets an untraced child.
 */
static void before_fork(void)
{
	fork_permit = NULL;
	/*
	 * The child is not followed under a seccomp filter, nor if it is forked in a handler that interrupted a traced
	 * call, even outside its read section: the interrupted call continues in the child, and all later calls would
	 * be nested in a ring without a reader.
	 */
	fork_is_unfollowed = tw_agent_is_active() &&
			     (!tw_thread_may_call_system() || tw_hit_is_under_way() || tw_permit_seize(&fork_permit));
	if (fork_is_unfollowed)
		fork_permit = NULL;
	tw_agent_arm_before_fork();
	tw_known_before_fork();
	tw_agent_entries_before_fork();
}

static void after_fork_in_parent(void)
{
	tw_agent_entries_after_fork();
	tw_known_after_fork();
	if (fork_permit)
		tw_permit_drop(fork_permit);
}

static bool lets_trace;

/* Claims an image of this process. */
static int claim(uint32_t *image)
{
	int error = tw_rs_image_claim(&tw_agent_ring_set, image);

	/* The recorder's child that stops threads is no ancestor; a child of this process has not inherited the leave. */
	if (!error && lets_trace)
		tw_sys_let_trace(tw_agent_ring_set.config.owner_process_id);
	return error;
}

/*
 * session/ has dropped the other threads, the permit and the rings; the gate is closed.  The child gets an image slot,
 * and a log with the definitions of everything that is set.
 */
static void follow(void)
{
	uint32_t image;

	int error = claim(&image);

	tw_agent_written_after_fork();
	/* Without a slot the child is not traced, which is counted. */
	if (error)
		return;
	tw_filter_watch(&tw_agent_ring_set.control->slots[image].filter_seen);
	tw_arg_init();
	tw_session_continue_in_child(tw_agent_session);
	tw_seq_set_system_tracer(tw_agent_session, NULL);
	tw_agent_arm_after_fork();
}

static void after_fork_in_child(void)
{
	bool was_whole = fork_permit != NULL;

	fork_permit = NULL;
	tw_agent_entries_after_fork();
	tw_known_after_fork();
	if (was_whole)
		follow();
	else if (fork_is_unfollowed)
		tw_rs_image_refuse(&tw_agent_ring_set, TW_RS_REFUSED_FORK);
}

/* ---- a forked child that is not followed ---- */

static bool is_unfollowed_child;
static __thread bool is_counting;
static __thread int errno_before_fork;

/* Counted here and not in the child: a parent that ends at once, as a daemon's does, may end the recording before the child runs. */
static void count_before_fork(void)
{
	is_counting = !is_unfollowed_child && tw_agent_enter();
	if (!is_counting)
		return;
	tw_rs_count_child(&tw_agent_ring_set, 1);
	errno_before_fork = errno;
	errno = 0;
}

/* Also called if there is no child: then errno says why, and only then. */
static void count_after_fork_in_parent(void)
{
	if (!is_counting)
		return;
	if (errno == EAGAIN || errno == ENOMEM)
		tw_rs_count_child(&tw_agent_ring_set, -1);
	else
		errno = errno_before_fork;
	tw_agent_leave();
}

static void count_after_fork_in_child(void)
{
	if (!is_counting)
		return;
	errno = errno_before_fork;
	is_unfollowed_child = true;
}

/* Registered behind session's handlers: they run last in the child, first before fork. */
static void watch_forks(void)
{
	static bool is_done;

	if (is_done)
		return;
	is_done = true;
	if (tw_agent_ring_set.config.follow_fork)
		pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	else
		pthread_atfork(count_before_fork, count_after_fork_in_parent, count_after_fork_in_child);
}

/* ---- starting ---- */

static struct tw_agent_config used_config;

/* @condition	out: the number of the condition on its calls. */
static bool is_named(const struct tw_agent_config *config, const struct tw_pattern_subject *subject,
		     uint32_t *condition)
{
	for (size_t i = 0; i < config->excluded_count; i++)
		if (tw_pattern_match(config->excluded[i], subject))
			return false;
	for (size_t i = 0; i < config->pattern_count; i++)
		if (tw_pattern_match(config->patterns[i], subject)) {
			*condition = config->condition_of[i];
			return true;
		}
	return false;
}

bool tw_agent_wants_python(const char *module, const char *function)
{
	const struct tw_pattern_subject subject = {.module = module,
						   .file = TW_AGENT_PYTHON_MODULE,
						   .function = function,
						   .arity = TW_PATTERN_ARITY_UNKNOWN};
	uint32_t condition;

	return !used_config.has_no_functions && is_named(&used_config, &subject, &condition);
}

/* Writes one note about requests that declared functions do not support.  Under the permit. */
static void tell_of_declared(const struct tw_agent_config *config, const struct tw_agent_condition *condition,
			     bool is_python)
{
	static bool was_noted;
	const char *which = is_python ? "of Python" : "that the program declares";
	char text[256] = "";

	if (was_noted)
		return;
	was_noted = true;
	if (tw_agent_is_by_end(config))
		snprintf(
			text, sizeof text,
			"functions %s are not recorded: conditions on how calls end, and --longer, are for native calls",
			which);
	else if (condition && condition->has_guards)
		snprintf(
			text, sizeof text,
			"functions %s are not recorded: the names of their arguments are unknown; --when takes $1, $2, ... for "
			"them",
			which);
	else if (config->stack_depth)
		snprintf(text, sizeof text, "callers of functions %s are not recorded: they have no return addresses",
			 which);
	if (text[0])
		tw_agent_tell(text);
}

/* Native calls look whether a snapshot is due. */
static void tell_of_triggers(const struct tw_agent_config *config, const struct tw_pattern_subject *subject)
{
	for (size_t i = 0; i < config->trigger_count; i++)
		if (tw_pattern_match(config->triggers[i].pattern, subject))
			tw_agent_tell(
				"functions of Python, and those that a program declares, ask for no snapshot: --snapshot-on "
				"is for native calls");
}

/* Patterns also select functions that the program declares. */
static bool wants_declared(const struct tw_function *function, void *arg, const struct tw_match_program **program)
{
	const struct tw_agent_config *config = arg;
	const struct tw_pattern_subject subject = {.module = function->module->name,
						   .file = function->module->soname,
						   .function = function->name,
						   .arity = function->arity};
	const struct tw_agent_condition *condition;
	uint32_t number;

	if (config->has_no_functions || !is_named(config, &subject, &number))
		return false;
	condition = number < config->condition_count ? &config->conditions[number] : NULL;
	tell_of_declared(config, condition, subject.file != NULL);
	tell_of_triggers(config, &subject);
	*program = condition ? condition->program : NULL;
	return !(condition && condition->has_guards) && !tw_agent_is_by_end(config);
}

/*
 * Loads the tracer module, before anything is traced: its own constructors run here, in the program's start, and none of the
 * program's has.  A module that cannot be used leaves the program untraced, with a note.
 */
static int use_module(const struct tw_agent_config *config)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module_path = config->tracer_path};
	struct tw_arena arena;
	char text[PATH_MAX + 256];
	int error = 0;

	tw_arena_init(&arena, SIZE_MAX);
	if (config->tracer_state)
		error = tw_term_parse(&arena, config->tracer_state, strlen(config->tracer_state), &tracer.state, NULL);
	if (!error)
		error = tw_session_use_module(tw_agent_session, &tracer);
	tw_arena_fini(&arena);
	if (!error)
		return 0;
	snprintf(text, sizeof text, "nothing was traced: the tracer module %s %s", config->tracer_path,
		 error == TW_ENOENT    ? "cannot be loaded into this program"
		 : error == TW_EBADARG ? "lacks one of its mandatory callbacks, enabled and trace, or its name"
				       : "found no memory");
	tw_agent_tell(text);
	tw_rs_count_refused(&tw_agent_ring_set, TW_RS_REFUSED_TRACER);
	return error;
}

static int begin(struct tw_agent_config *config)
{
	uint32_t image, actions;
	int error;

	lets_trace = config->lets_trace;
	error = claim(&image);
	if (error)
		return error;
	/* The word is in a page that forked children share. */
	tw_filter_watch(&tw_agent_ring_set.control->slots[image].filter_seen);
	error = tw_session_make("record", &tw_agent_ring_set, &tw_agent_session);
	if (error) {
		tw_rs_image_end(&tw_agent_ring_set, image);
		return error;
	}
	if (config->tracer_path && use_module(config)) {
		/* The session has set nothing, and never will. */
		tw_rs_image_end(&tw_agent_ring_set, image);
		return TW_ENOTSUP;
	}
	tw_hit_host.pinned_rs = &tw_agent_ring_set;
	tw_hit_host.pinned_session = tw_agent_session->slot;
	tw_hit_host.children_words = config->children_bytes / sizeof(uint64_t);
	tw_agent_written_show();
	tw_native_init();
	tw_agent_arm_init(config);
	if (config->has_ports)
		tw_agent_ports_inherited();
	used_config = *config;
	/* With all requested actions: declared functions report returns even if native returns cannot be watched. */
	actions = tw_agent_end_actions(config);
	/* In Python, an exception is a way to end a call as good as a return. */
	if (config->has_python && actions)
		actions |= TW_ACTION_EXCEPTION;
	tw_session_trace_wanted(tw_agent_session, wants_declared, &used_config, actions);
	watch_forks();
	return 0;
}

/* Traces, once the ring set is attached.  After an error nothing is traced, and the configuration is gone. */
static int trace(bool *is_filtered)
{
	struct tw_agent_config config;
	uint32_t flags;
	int error = tw_agent_config_parse(tw_agent_ring_set.text, tw_agent_ring_set.config.text_bytes, &config);

	if (error)
		return error;
	/* It is unknown which calls a filter set before the program started forbids, so none is made. */
	if (config.filters >= 0 && tw_filter_count("self") > config.filters) {
		tw_rs_count_refused(&tw_agent_ring_set, TW_RS_REFUSED_FILTER);
		tw_agent_config_fini(&config);
		*is_filtered = true;
		return TW_EPERM;
	}
	flags = config.process_flags | (config.has_no_functions ? 0 : TW_FLAG_CALL);
	tw_patch_use_vectors(&config.vectors);
	/* Without layouts all arguments are words. */
	tw_agent_layouts_update(&config, &tw_agent_ring_set);
	tw_arg_init();
	error = begin(&config);
	if (error) {
		tw_agent_config_fini(&config);
		return error;
	}
	if (used_config.tells_crash)
		tw_agent_crash_begin();
	tw_agent_update();
	/* The recording hears of sequential tracing, unless the program sets another system tracer. */
	tw_seq_set_system_tracer(tw_agent_session, NULL);
	tw_trace_process(tw_agent_session, TW_PID_ALL, true, flags | (config.has_return_to ? TW_FLAG_RETURN_TO : 0));
	if (flags & (TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_PORTS | TW_FLAG_RUNNING_PORTS))
		tw_trace_port(tw_agent_session, TW_PORT_ALL, true, flags & TW_FLAG_ALL);
	tw_agent_set_active(true);
	return 0;
}

static void start(const char *path)
{
	bool is_traced, is_filtered;
	int error = TW_ENOTSUP;

	if (tw_rs_attach(&tw_agent_ring_set, path))
		return;
	is_traced = tw_agent_ring_set.config.follow_fork || is_root();
	if (is_traced)
		tw_agent_environment_init(tw_agent_ring_set.config.follow_fork);
	if (is_traced)
		error = trace(&is_filtered);
	if (!error && used_config.has_python)
		tw_agent_python_begin();
	/* A session without its tracer module keeps its rings: it is listed, and sets nothing. */
	if (error && !tw_agent_session)
		tw_rs_detach(&tw_agent_ring_set);
}

void tw_agent_start(void)
{
	const char *path = secure_getenv("TRACEWHEEL_AGENT");
	int saved_errno = errno;

	if (path && *path == '/')
		start(path);
	else if (!path)
		tw_agent_wait_for_command();
	errno = saved_errno;
}

bool tw_agent_is_asked(const char *line)
{
	const char *text = tw_agent_ring_set.text, *at = strstr(text, line);

	while (at && !((at == text || at[-1] == '\n') && at[strlen(line)] == '\n'))
		at = strstr(at + 1, line);
	return at != NULL;
}

int tw_agent_attach(const char *path, bool *is_filtered, char *why)
{
	int error = tw_rs_attach(&tw_agent_ring_set, path);
	bool has_python;

	*why = '\0';
	if (error)
		return error;
	has_python = tw_agent_is_asked("python 1");
	error = has_python && !tw_agent_python_may_attach(why) ? TW_ENOTSUP : trace(is_filtered);
	if (error)
		tw_rs_detach(&tw_agent_ring_set);
	else if (has_python)
		tw_agent_python_attach();
	return error;
}
