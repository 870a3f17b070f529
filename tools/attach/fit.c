/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - processes that are left alone, whatever their threads do: fit.h. */
#include "tools/attach/fit.h"

#include "tools/attach/dormant.h"
#include "tools/attach/inject_words.h"
#include "tools/common/proc.h"

#include <cpuid.h>
#include <dirent.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A child of vfork() that has not executed a program yet. */
static bool shares_memory(int process)
{
	long parent = tw_proc_status(process, "PPid", 0);
	return parent > 0 && syscall(SYS_kcmp, process, (pid_t)parent, KCMP_VM, 0, 0) == 0;
}

static bool is_same_namespace(int process)
{
	struct stat own, other;
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/ns/user", process);
	return stat("/proc/self/ns/user", &own) == 0 && stat(name, &other) == 0 && own.st_ino == other.st_ino;
}

static bool has_shadow_stack(int process)
{
	char text[4096];
	tw_proc_read(process, "status", text, sizeof text);
	const char *line = strstr(text, "x86_Thread_features:");
	return line && memmem(line, strcspn(line, "\n"), "shstk", 5);
}

/* The bytes of all vector registers that are in use. */
static unsigned vector_bytes(void)
{
	unsigned a, b = 0, c, d;
	return __get_cpuid_count(13, 0, &a, &b, &c, &d) ? b : 0;
}

static bool find_filter(int process)
{
	char name[64];
	bool is_found = false;
	snprintf(name, sizeof name, "/proc/%d/task", process);
	DIR *folder = opendir(name);
	for (const struct dirent *entry; folder && !is_found && (entry = readdir(folder));) {
		int thread = atoi(entry->d_name);
		is_found = thread > 0 && tw_proc_has_filter(thread);
	}
	if (folder)
		closedir(folder);
	return is_found;
}

/*
 * A filter that one of its threads has set: the agent hears of later ones only.  The kernel's list ends early where a thread ends
 * while it is read, so there are several passes.
 */
static bool has_filter(int process)
{
	bool is_found = false;
	for (int i = 0; i < 3 && !is_found; i++)
		is_found = find_filter(process);
	return is_found;
}

bool tw_fit(struct tw_dormant *dormant)
{
	int process = dormant->process;
	const char *why = NULL;
	if (shares_memory(process))
		why = "it shares its memory with its parent until it executes a program";
	else if (!is_same_namespace(process))
		why = "it has another user namespace: start it with the agent (docs/attach.md)";
	else if (has_filter(process))
		why = "a thread of it has set a seccomp filter, which may kill it for a system call of the tracer";
	else if (has_shadow_stack(process) || !vector_bytes() || vector_bytes() > TW_INJECT_VECTOR_BYTES - 64)
		why = "it uses a feature of the processor, shadow stacks or large registers, with which threads are left alone: "
		      "start it with the agent (docs/attach.md)";
	if (why)
		snprintf(dormant->reason, sizeof dormant->reason, "process %d is left alone: %s.", process, why);
	return !why;
}
