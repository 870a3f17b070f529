/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c - `tracewheel list`: which processes of this machine are recorded, by whom, and where an agent sleeps.
 *
 * A process that is recorded has the control page of its ring set mapped, and so has the command that records it: processes with the
 * same page belong together. An agent that sleeps is a thread with a name of its own. Of processes that this user may not trace, the
 * first is not seen.
 */
#include "tools/attach/list.h"
#include "base/grow.h"
#include "tools/attach/dormant.h"
#include "tools/common/proc.h"
#include "tools/tool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct process {
	int pid;
	char name[64];
	char set[PATH_MAX]; /* the ring set that it has mapped; "": none */
	bool has_agent;	    /* one that sleeps, or is attached */
	bool is_recorder;
};

struct processes {
	struct process *rows;
	size_t count;
};

bool tw_list_set(int pid, char set[PATH_MAX])
{
	static const char page[] = "/control";
	if (!tw_proc_maps(pid, "/tracewheel-", page, set))
		return false;
	set[strlen(set) - strlen(page)] = 0;
	return true;
}

/* False: no memory. */
static bool add(struct processes *processes, int pid)
{
	struct process found = {.pid = pid, .has_agent = tw_dormant_thread(pid) != 0};
	bool has_set = tw_list_set(pid, found.set);
	if (!found.has_agent && !has_set)
		return true;
	tw_proc_read(pid, "comm", found.name, sizeof found.name);
	/* The owner maps the pages of all; its program says what it is. */
	found.is_recorder = has_set && strncmp(found.name, "tracewheel", 10) == 0 && !found.has_agent;
	/* Its child, which stops threads. */
	if (strcmp(found.name, "tw-holder") == 0)
		return true;
	if (!tw_grow_one(processes->rows, processes->count))
		return false;
	processes->rows[processes->count++] = found;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void find_all(struct processes *out)
{
	DIR *folder = opendir("/proc");
	*out = (struct processes){0};
	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		int pid = atoi(entry->d_name);
		if (pid > 0 && !add(out, pid))
			break;
	}
	if (folder)
		closedir(folder);
	if (out->count)
		qsort(out->rows, out->count, sizeof *out->rows, by_number);
}

static const struct process *recorder_of(const struct processes *processes, const char *set)
{
	for (size_t i = 0; i < processes->count; i++)
		if (processes->rows[i].is_recorder && strcmp(processes->rows[i].set, set) == 0)
			return &processes->rows[i];
	return NULL;
}

static void show(const struct processes *processes, const struct process *process)
{
	const struct process *recorder = process->set[0] ? recorder_of(processes, process->set) : NULL;
	printf("%7d  %-16s  ", process->pid, process->name);
	if (!process->set[0])
		printf("dormant\n");
	else if (!recorder)
		printf("recorded, but its recorder is gone\n");
	else
		printf("%s by process %d (%s)\n", process->has_agent ? "attached" : "recorded", recorder->pid,
		       recorder->name);
}

int tw_list_recorder(const char *set)
{
	struct processes processes;
	find_all(&processes);
	const struct process *recorder = recorder_of(&processes, set);
	int pid = recorder ? recorder->pid : 0;
	free(processes.rows);
	return pid;
}

int tw_list_find(const char *name)
{
	struct processes processes;
	int found = 0;
	size_t count = 0;
	find_all(&processes);
	for (size_t i = 0; i < processes.count; i++) {
		if (!processes.rows[i].has_agent || strcmp(processes.rows[i].name, name) != 0)
			continue;
		found = processes.rows[i].pid;
		count++;
	}
	if (!count)
		tw_say("no process named '%s' has an agent; `tracewheel list` shows those that have one.", name);
	if (count > 1)
		tw_say("%zu processes named '%s' have an agent; give the number of one:", count, name);
	for (size_t i = 0; count > 1 && i < processes.count; i++)
		if (processes.rows[i].has_agent && strcmp(processes.rows[i].name, name) == 0)
			tw_say("  %d", processes.rows[i].pid);
	free(processes.rows);
	return count == 1 ? found : 0;
}

static const struct tw_option options_table[] = {{0}};

static const struct tw_command command = {
	.name = "list",
	.arguments = "",
	.summary =
		"Lists the processes of this machine that are recorded, and by which command, and those in which an agent\n"
		"sleeps, to which `tracewheel attach` can attach. Of other users' processes only agents are seen, unless by\n"
		"root.",
	.options = options_table,
	.examples = "  tracewheel list\n"};

int tw_tool_list(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct processes processes;
	int key = tw_options_next(&options);
	if (key < 0)
		return tw_options_exit(key);
	if (options.index < argc)
		return tw_usage(&command, "`list` takes no argument.");
	find_all(&processes);
	printf("%7s  %-16s  %s\n", "PROCESS", "PROGRAM", "STATE");
	for (size_t i = 0; i < processes.count; i++)
		if (!processes.rows[i].is_recorder)
			show(&processes, &processes.rows[i]);
	free(processes.rows);
	return tw_flush_stdout() ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
