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

static bool is_same(int process, const char *what)
{
	struct stat own, other;
	char name[64], own_name[64];
	snprintf(name, sizeof name, "/proc/%d/%s", process, what);
	snprintf(own_name, sizeof own_name, "/proc/self/%s", what);
	return stat(own_name, &own) == 0 && stat(name, &other) == 0 && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

int tw_fit_way(int process, char way[TW_FIT_WAY_BYTES])
{
	bool has_users = !is_same(process, "ns/user"), has_files = !is_same(process, "ns/mnt"),
	     has_numbers = !is_same(process, "ns/pid"), has_root = !has_files && !is_same(process, "root");
	int number = process;
	for (unsigned i = 0; has_numbers && tw_proc_status(process, "NSpid", i) > 0; i++)
		number = (int)tw_proc_status(process, "NSpid", i);
	way[0] = 0;
	if (has_users || has_files || has_numbers || has_root)
		snprintf(way, TW_FIT_WAY_BYTES, "nsenter -t %d%s%s%s%s%s", process,
			 has_users ? " -U --preserve-credentials" : "", has_files ? " -m" : "", has_root ? " -r" : "",
			 has_numbers ? " -p" : "", has_numbers && !has_files ? " unshare -m --mount-proc" : "");
	return number;
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
	char way[TW_FIT_WAY_BYTES];
	const char *why = NULL;
	if (!is_same(process, "ns/user")) {
		int number = tw_fit_way(process, way);
		snprintf(
			dormant->reason, sizeof dormant->reason,
			"process %d lives in another user namespace: run this command inside of it (%s tracewheel attach %d), or start the "
			"program with the agent (docs/attach.md#containers).",
			process, way, number);
		return false;
	}
	if (shares_memory(process))
		why = "it shares its memory with its parent until it executes a program";
	else if (has_filter(process))
		why = "a thread of it has set a seccomp filter, which may kill it for a system call of the tracer";
	else if (has_shadow_stack(process) || !vector_bytes() || vector_bytes() > TW_INJECT_VECTOR_BYTES - 64)
		why = "it uses a feature of the processor, shadow stacks or large registers, with which threads are left alone: "
		      "start it with the agent (docs/attach.md)";
	if (why)
		snprintf(dormant->reason, sizeof dormant->reason, "process %d is left alone: %s.", process, why);
	return !why;
}
