/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dormant.c - finds the dormant agent of a process, and wakes it: dormant.h.
 *
 * The thread sleeps in a futex, so /proc/PID/task/TID/syscall has the address of its words; the kernel lets those read it who may
 * trace the process by ptrace, and the same rule stands before each step here.
 */
#include "tools/attach/dormant.h"

#include "tools/attach/as_user.h"
#include "tools/attach/list.h"
#include "tools/common/proc.h"
#include "tools/record/launch.h"
#include "tools/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often, with a millisecond between, a thread is looked at that is just awake, or that does not stop. */
#define TRIES	    2000
#define SEIZE_TRIES 50
/* In the beginning it is looked at more often: mostly it sleeps, or has stopped, at once. */
#define NAP_NS_MIN 50000
#define NAP_NS	   1000000

static void nap(int tries)
{
	long ns = tries < 5 ? NAP_NS_MIN << tries : NAP_NS;
	nanosleep(&(struct timespec){0, ns}, NULL);
}

static void refuse(struct tw_dormant *dormant, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(dormant->reason, sizeof dormant->reason, format, list);
	va_end(list);
}

/* ---- why not ---- */

bool tw_dormant_is_of_user(struct tw_dormant *dormant)
{
	int process = dormant->process;
	long uid = tw_proc_status(process, "Uid", 1);
	if (uid < 0 || uid == (long)geteuid())
		return true;
	if (geteuid() == 0)
		refuse(dormant,
		       "process %d belongs to user %ld, and root may not act as that user here: the container lacks CAP_SYS_PTRACE, "
		       "CAP_DAC_OVERRIDE, CAP_SETUID or CAP_SETGID (docs/attach.md).",
		       process, uid);
	else
		refuse(dormant,
		       "process %d belongs to user %ld: do this as root, or as that user (`sudo -u '#%ld' tracewheel ...`; docs/attach.md).",
		       process, uid, uid);
	return false;
}

static bool is_traced_by_another(struct tw_dormant *dormant)
{
	long tracer = tw_proc_status(dormant->thread, "TracerPid", 0);
	char name[64] = "";
	if (tracer <= 0)
		return false;
	tw_proc_read((int)tracer, "comm", name, sizeof name);
	refuse(dormant,
	       "process %d is traced by process %ld (%s), and a process can have one tracer only: detach that first.",
	       dormant->process, tracer, name);
	return true;
}

void tw_dormant_refuse_by_rights(struct tw_dormant *dormant)
{
	int process = dormant->process;
	char yama[16] = "";
	if (is_traced_by_another(dormant) || !tw_dormant_is_of_user(dormant))
		return;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, yama, sizeof yama - 1) > 0 && yama[0] != '0')
		refuse(dormant,
		       "the system lets nobody trace process %d but its ancestors (Yama): as root, `sysctl kernel.yama.ptrace_scope=0` "
		       "allows it.",
		       process);
	else
		refuse(dormant,
		       "the system does not let you trace process %d: it has more rights than you, or has changed its user, or "
		       "forbids it (PR_SET_DUMPABLE). The capabilities CAP_SYS_PTRACE and CAP_DAC_OVERRIDE allow it "
		       "(docs/attach.md).",
		       process);
	if (fd >= 0)
		close(fd);
}

/* No thread waits: why, and what to do. */
static void refuse_absent(struct tw_dormant *dormant)
{
	static struct tw_launch launch;
	int process = dormant->process;
	char name[64] = "", path[PATH_MAX], set[PATH_MAX];
	tw_proc_read(process, "comm", name, sizeof name);
	if (tw_proc_state(process) == 'Z')
		refuse(dormant, "process %d (%s) has ended.", process, name);
	else if (tw_proc_program(process, path) == -ENOENT)
		refuse(dormant, "process %d (%s) is a part of the kernel, which has no functions to trace.", process,
		       name);
	else if (path[0] && tw_launch_find(&launch, path) == TW_EXIT_NOT_STARTED)
		refuse(dormant, "process %d (%s) cannot be traced: %s", process, name, launch.reason);
	else if (tw_list_set(process, set))
		refuse(dormant,
		       "process %d (%s) has been recorded since it was started, by process %d, and has no agent that could be "
		       "woken.",
		       process, name, tw_list_recorder(set));
	else if (tw_proc_maps(process, "/libtracewheel-agent.so", "", path))
		refuse(dormant,
		       "process %d (%s) has an agent, but not one that sleeps: it was forked while its parent was recorded, or "
		       "was not allowed to have one more thread.",
		       process, name);
	else
		dormant->is_without_agent = true;
	if (dormant->is_without_agent)
		refuse(dormant,
		       "process %d (%s) has no agent: nothing is recorded there, and `tracewheel attach %d` brings one into it.",
		       process, name, process);
}

/* ---- finding ---- */

/* One pass over the threads; *count: how many there were. */
static int find_thread(int process, unsigned *count)
{
	char path[64];
	int found = 0;
	*count = 0;
	snprintf(path, sizeof path, "/proc/%d/task", process);
	DIR *folder = opendir(path);
	for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
		char name[64];
		int thread = atoi(entry->d_name);
		snprintf(path, sizeof path, "task/%d/comm", thread);
		*count += thread > 0;
		if (thread > 0 && tw_proc_read(process, path, name, sizeof name) > 0 &&
		    strcmp(name, TW_DOORBELL_THREAD) == 0)
			found = thread;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The kernel's list ends early where a thread ends while it is read: the next pass, or the one after it, is whole. */
int tw_dormant_thread(int process)
{
	unsigned count = 0;
	int found = find_thread(process, &count);
	for (int i = 0; i < 3 && !found && count > 1; i++)
		found = find_thread(process, &count);
	return found;
}

bool tw_dormant_read(struct tw_dormant *dormant)
{
	struct tw_doorbell found;
	struct iovec here = {&found, sizeof found}, there = {(void *)(uintptr_t)dormant->at, sizeof found};
	char path[64], name[64];
	snprintf(path, sizeof path, "task/%d/comm", dormant->thread);
	if (tw_proc_read(dormant->process, path, name, sizeof name) < 0 || strcmp(name, TW_DOORBELL_THREAD) != 0 ||
	    process_vm_readv(dormant->process, &here, 1, &there, 1, 0) != sizeof found ||
	    found.magic != TW_DOORBELL_MAGIC)
		return false;
	found.path[sizeof found.path - 1] = found.own[sizeof found.own - 1] = 0;
	dormant->seen = found;
	return true;
}

/* The address on which the thread sleeps. Returns 0, or a negative errno; EAGAIN: it is awake. */
static int find_words(struct tw_dormant *dormant)
{
	char path[64], text[512];
	long number;
	unsigned long long address;
	snprintf(path, sizeof path, "task/%d/syscall", dormant->thread);
	long bytes = tw_proc_read(dormant->process, path, text, sizeof text);
	if (bytes < 0)
		return (int)bytes;
	if (sscanf(text, "%ld 0x%llx", &number, &address) != 2 || number != SYS_futex)
		return -EAGAIN;
	dormant->at = address - offsetof(struct tw_doorbell, rung);
	return 0;
}

/* It may be in another futex for a moment. Returns 0 or a negative errno; EAGAIN: it is awake all the time. */
static int await_words(struct tw_dormant *dormant, bool *is_known)
{
	int error = -EAGAIN;
	*is_known = false;
	for (int i = 0; i < TRIES && (error == -EAGAIN || (!error && !*is_known)); i++) {
		error = find_words(dormant);
		*is_known = !error && tw_dormant_read(dormant);
		if (!*is_known)
			nap(i);
	}
	return error;
}

static int find(struct tw_dormant *dormant, int pid)
{
	bool is_known;
	long process = tw_proc_status(pid, "Tgid", 0);
	if (process <= 0) {
		refuse(dormant, "there is no process %d.", pid);
		return TW_EXIT_NOT_FOUND;
	}
	dormant->process = (int)process;
	dormant->thread = tw_dormant_thread(dormant->process);
	if (!dormant->thread) {
		refuse_absent(dormant);
		return TW_EXIT_NOT_FOUND;
	}
	if (tw_proc_state(dormant->process) == 'T') {
		refuse(dormant, "process %d is stopped: continue it first (kill -CONT %d).", dormant->process,
		       dormant->process);
		return TW_EXIT_NOT_STARTED;
	}
	int error = await_words(dormant, &is_known);
	if (error == -ENOENT || error == -ESRCH) {
		refuse(dormant, "process %d has just ended.", dormant->process);
		return TW_EXIT_NOT_FOUND;
	}
	if (!error && is_known && dormant->seen.version == TW_DOORBELL_VERSION)
		return 0;
	if (error == -EAGAIN)
		refuse(dormant, "the agent of process %d is busy, or its control group is frozen; try again.",
		       dormant->process);
	else if (error)
		tw_dormant_refuse_by_rights(dormant);
	else if (!is_known)
		refuse(dormant, "the agent of process %d is not one that this command knows.", dormant->process);
	else
		refuse(dormant,
		       "the agent of process %d belongs to another version of Tracewheel: use the command of that version, or "
		       "restart the program.",
		       dormant->process);
	return TW_EXIT_NOT_STARTED;
}

int tw_dormant_find(struct tw_dormant *dormant, int pid)
{
	*dormant = (struct tw_dormant){0};
	tw_as_user_of(pid);
	int code = find(dormant, pid);
	if (code && !dormant->is_without_agent)
		tw_say("%s", dormant->reason);
	return code;
}

/* ---- waking ---- */

static bool put(const struct tw_dormant *dormant, size_t offset, const void *bytes, size_t count)
{
	struct iovec here = {(void *)(uintptr_t)bytes, count},
		     there = {(void *)(uintptr_t)(dormant->at + offset), count};
	return process_vm_writev(dormant->process, &here, 1, &there, 1, 0) == (ssize_t)count;
}

/* The thread is stopped: nobody else rings. Returns the number; 0: another command was faster, or the process is gone. */
static uint32_t write_request(struct tw_dormant *dormant, enum tw_doorbell_request asked, const char *path,
			      const char *why)
{
	struct tw_doorbell *seen = &dormant->seen;
	char texts[TW_DOORBELL_PATH_BYTES + TW_DOORBELL_WHY_BYTES] = "";
	_Static_assert(offsetof(struct tw_doorbell, why) == offsetof(struct tw_doorbell, path) + TW_DOORBELL_PATH_BYTES,
		       "the texts are written as one");
	if (!tw_dormant_read(dormant)) {
		refuse(dormant, "process %d has just ended.", dormant->process);
		return 0;
	}
	if (seen->answered != seen->rung) {
		refuse(dormant, "another command has just woken the agent of process %d; try again.", dormant->process);
		return 0;
	}
	uint32_t number = seen->rung + 1 ? seen->rung + 1 : 1, word = asked;
	snprintf(texts, TW_DOORBELL_PATH_BYTES, "%s", path);
	snprintf(texts + TW_DOORBELL_PATH_BYTES, TW_DOORBELL_WHY_BYTES, "%s", why ? why : "");
	if (put(dormant, offsetof(struct tw_doorbell, asked), &word, sizeof word) &&
	    put(dormant, offsetof(struct tw_doorbell, path), texts, sizeof texts) &&
	    put(dormant, offsetof(struct tw_doorbell, rung), &number, sizeof number))
		return number;
	refuse(dormant, "the memory of process %d cannot be written: %s.", dormant->process, strerror(errno));
	return 0;
}

/* Another command may hold the thread for a moment. */
static bool seize(struct tw_dormant *dormant)
{
	for (int i = 0; i < SEIZE_TRIES; i++) {
		if (ptrace(PTRACE_SEIZE, dormant->thread, 0, 0) == 0)
			return true;
		if (errno == ESRCH) {
			refuse(dormant, "process %d has just ended.", dormant->process);
			return false;
		}
		nap(i);
	}
	tw_dormant_refuse_by_rights(dormant);
	return false;
}

/* Interrupted, it sleeps again when it is let go, and then looks at the number first. No other thread is touched. */
uint32_t tw_dormant_ring(struct tw_dormant *dormant, enum tw_doorbell_request asked, const char *path, const char *why)
{
	uint32_t number = 0;
	int status, stopped = 0;
	if (!seize(dormant))
		return 0;
	if (ptrace(PTRACE_INTERRUPT, dormant->thread, 0, 0) == 0)
		for (int i = 0; i < TRIES && !(stopped = waitpid(dormant->thread, &status, __WALL | WNOHANG)); i++)
			nap(i);
	if (stopped == dormant->thread && WIFSTOPPED(status)) {
		number = write_request(dormant, asked, path, why);
		ptrace(PTRACE_DETACH, dormant->thread, 0, 0);
		return number;
	}
	/* The kernel lets it go when this thread ends; a process that cannot be stopped for two seconds is left. */
	refuse(dormant,
	       "the agent of process %d does not wake up: the process has ended, or its control group is frozen.",
	       dormant->process);
	return 0;
}
