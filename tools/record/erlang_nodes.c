/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_nodes.c - `record --erlang` of several nodes: a process for each, and `tracewheel merge` at the end. */
#include "tools/record/erlang_nodes.h"
#include "tools/tool.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES_MAX   64
#define OPTIONS_MAX 512

static volatile pid_t children[NODES_MAX]; /* 0: none, or it was waited for */
static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void forward(int number)
{
	int saved = errno;
	for (int i = 0; i < NODES_MAX; i++)
		if (children[i])
			kill(children[i], number);
	errno = saved;
}

/* NODE.tw in the folder of the merged capture. */
static bool name_part(const struct tw_erlang_nodes *nodes, int i, char path[PATH_MAX])
{
	const char *slash = nodes->merged ? strrchr(nodes->merged, '/') : NULL;
	int folder = slash ? (int)(slash - nodes->merged) + 1 : 0;
	return snprintf(path, PATH_MAX, "%.*s%s.tw", folder, nodes->merged ? nodes->merged : "", nodes->targets[i]) <
	       PATH_MAX;
}

/* A process group of its own: a Ctrl-C comes once, from here.  It does not outlive this process. */
static pid_t start(const struct tw_erlang_nodes *nodes, char **argv)
{
	pid_t parent = getpid(), child = fork();
	if (child)
		return child;
	setpgid(0, 0);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		signal(forwarded[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent)
		execv(nodes->self, argv);
	_exit(TW_EXIT_NOT_STARTED);
}

static void start_all(const struct tw_erlang_nodes *nodes)
{
	char part[PATH_MAX], *argv[OPTIONS_MAX + 5];
	int count = nodes->option_count + 1;
	argv[0] = "tracewheel";
	memcpy(argv + 1, nodes->options, (size_t)nodes->option_count * sizeof *argv);
	/* The last -o is taken. */
	argv[count] = "-o";
	argv[count + 1] = part;
	argv[count + 3] = NULL;
	for (int i = 0; i < nodes->target_count; i++) {
		argv[count + 2] = nodes->targets[i];
		name_part(nodes, i, part);
		pid_t child = start(nodes, argv);
		children[i] = child > 0 ? child : 0;
	}
}

/* -> the exit code: of the first that failed, and 0 if none did. */
static int wait_for_all(const struct tw_erlang_nodes *nodes)
{
	int code = 0, status;
	for (pid_t child; (child = wait(&status)) > 0 || errno == EINTR;) {
		if (child <= 0)
			continue;
		for (int i = 0; i < nodes->target_count; i++)
			if (children[i] == child)
				children[i] = 0;
		int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (!code && ended) {
			code = ended;
			/* It has not begun. */
			if (ended != TW_EXIT_FAILURE)
				forward(SIGTERM);
		}
	}
	return code;
}

static int merge(const struct tw_erlang_nodes *nodes)
{
	static char parts[NODES_MAX][PATH_MAX];
	char *argv[NODES_MAX + 8] = {"tracewheel", "merge", "-o", (char *)nodes->merged};
	int count = 4;
	if (nodes->force)
		argv[count++] = "--force";
	if (nodes->is_quiet)
		argv[count++] = "--quiet";
	for (int i = 0; i < nodes->target_count; i++) {
		name_part(nodes, i, parts[i]);
		argv[count++] = parts[i];
	}
	execv(nodes->self, argv);
	tw_say("the captures cannot be merged: %s cannot be started: %s.", nodes->self, strerror(errno));
	return TW_EXIT_FAILURE;
}

int tw_erlang_nodes_record(const struct tw_erlang_nodes *nodes)
{
	struct sigaction action = {.sa_handler = forward}, found;
	char part[PATH_MAX];
	if (nodes->target_count > NODES_MAX)
		return tw_say("there are more than %d nodes.", NODES_MAX), TW_EXIT_USAGE;
	if (nodes->option_count > OPTIONS_MAX)
		return tw_say("there are more than %d options.", OPTIONS_MAX), TW_EXIT_USAGE;
	for (int i = 0; i < nodes->target_count; i++)
		if (strchr(nodes->targets[i], '/') || !name_part(nodes, i, part))
			return tw_say("'%s' is neither the name of a node nor the number of a process.",
				      nodes->targets[i]),
			       TW_EXIT_USAGE;
	if (nodes->merged && !nodes->force && access(nodes->merged, F_OK) == 0)
		return tw_say("'%s' exists; --force replaces it, -o names another.", nodes->merged),
		       TW_EXIT_NOT_STARTED;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		if (sigaction(forwarded[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
	start_all(nodes);
	int code = wait_for_all(nodes);
	return code || !nodes->merged ? code : merge(nodes);
}
