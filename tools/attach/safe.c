/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe.c - a point where a thread holds nothing that pthread_create() may need: safe.h.
 *
 * The frames of the thread are followed to their end, by the call frame information of the files.  Its stack must be
 *
 *	functions of libc, inside a system call that waits or transfers, entered from the next line; or none of libc
 *	functions of the program and its libraries, one or more
 *	the two functions of libc that begin a thread or the program, and _start
 *
 * Nothing else may be there: no loader, no memory allocator, no libc that calls the program back (an exit handler, fork handlers, a list of
 * objects), no signal handler, no code without a file.  No lock of libc's is held at such a point, but those of streams, which a new thread
 * does not need.  In a wait for a lock (a futex) only the functions that a program calls for that are known to hold none.
 */
#include "tools/attach/safe.h"

#include "symbols/debug/stopped.h"
#include "tools/common/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#define FRAMES_MAX  512
#define LIBC	    "/libc.so.6"
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

enum kind { LIBC_CODE, FORBIDDEN, PROGRAM_CODE };

struct tw_safe {
	int process;
	struct tw_stopped *stopped;
	char allocator[PATH_MAX]; /* the library that defines malloc(); "": libc */
	bool has_own_allocator;	  /* in the program itself */
	bool has_two_allocators;
	struct tw_stopped_frame frames[FRAMES_MAX];
};

/* ---- the process ---- */

static void see_allocator(const char *object, bool is_program, void *arg)
{
	struct tw_safe *safe = arg;
	size_t bytes = strlen(object), end = strlen(LIBC);
	/* The loader has one for itself, until libc's is there. */
	if ((bytes >= end && strcmp(object + bytes - end, LIBC) == 0) || strstr(object, "/ld-linux"))
		return;
	safe->has_own_allocator |= is_program;
	safe->has_two_allocators |= safe->allocator[0] && strcmp(safe->allocator, object) != 0;
	snprintf(safe->allocator, sizeof safe->allocator, "%s", object);
}

static bool find_libc(struct tw_safe *safe, struct tw_safe_libc *libc)
{
	const struct {
		const char *name;
		uint64_t *address;
	} needed[] = {{"pthread_attr_init", &libc->attributes_init},
		      {"pthread_attr_setdetachstate", &libc->attributes_detached},
		      {"pthread_create", &libc->create},
		      {"dlopen", &libc->open},
		      {"dlerror", &libc->error}};
	for (size_t i = 0; i < COUNT_OF(needed); i++) {
		*needed[i].address = tw_stopped_symbol(safe->stopped, LIBC, needed[i].name);
		if (!*needed[i].address)
			return false;
	}
	return true;
}

bool tw_safe_open(int process, struct tw_safe **out, struct tw_safe_libc *libc, char *reason)
{
	struct tw_safe *safe = calloc(1, sizeof *safe);
	const char *why = NULL;
	reason[0] = 0;
	if (!safe)
		return false;
	safe->process = process;
	if (!tw_stopped_open(process, &safe->stopped)) {
		why = "its mapped files cannot be read";
	} else if (!find_libc(safe, libc)) {
		why = "it has no libc.so.6 of glibc 2.34 or later";
	} else {
		tw_stopped_exporters(safe->stopped, "malloc", see_allocator, safe);
		if (safe->has_own_allocator || safe->has_two_allocators)
			why = "it has a malloc() of its own inside, so it is not known when that is at work";
		else if (strstr(safe->allocator, "san.so"))
			why = "it was built with a sanitizer, which must see each thread begin";
	}
	if (why) {
		snprintf(reason, TW_SAFE_REASON_BYTES, "%s", why);
		tw_safe_close(safe);
		return false;
	}
	*out = safe;
	return true;
}

void tw_safe_close(struct tw_safe *safe)
{
	if (!safe)
		return;
	tw_stopped_close(safe->stopped);
	free(safe);
}

/* ---- frames ---- */

static bool is_listed(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; name && i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static enum kind kind_of(const struct tw_safe *safe, const struct tw_stopped_frame *frame)
{
	const char *slash = frame->object ? strrchr(frame->object, '/') : NULL;
	if (!slash || strcmp(frame->object, safe->allocator) == 0 || strncmp(slash, "/ld-linux", 9) == 0)
		return FORBIDDEN;
	return strcmp(slash, LIBC) == 0 ? LIBC_CODE : PROGRAM_CODE;
}

/* How many frames are left without those in which a thread, or the program, begins; 0: it does not begin as libc's do. */
static size_t without_beginning(const struct tw_safe *safe, size_t count)
{
	const struct tw_stopped_frame *last = &safe->frames[count - 1];
	if (count > 3 && kind_of(safe, last) == PROGRAM_CODE) {
		if (!last[-1].function || strcmp(last[-1].function, "__libc_start_main") != 0)
			return 0;
		count--;
		last--;
	}
	if (count < 3 || kind_of(safe, last) != LIBC_CODE || kind_of(safe, last - 1) != LIBC_CODE ||
	    kind_of(safe, last - 2) != PROGRAM_CODE)
		return 0;
	return count - 2;
}

/* ---- system calls ---- */

/* @entry	the function of libc's that the program has called; NULL: none. */
static bool is_safe_futex(const char *entry)
{
	/* Not those by which libc waits for its own locks. */
	static const char *const waits[] = {"pthread_cond_wait",
					    "pthread_cond_timedwait",
					    "pthread_cond_clockwait",
					    "pthread_join",
					    "pthread_mutex_lock",
					    "pthread_rwlock_rdlock",
					    "pthread_rwlock_wrlock",
					    "sem_wait",
					    "sem_timedwait",
					    "sem_clockwait",
					    "syscall"};
	return !entry || is_listed(waits, COUNT_OF(waits), entry);
}

/* A mask of signals that is set for the call only: the call would be begun again under the other one, and a signal be missed. */
static bool has_mask(const struct tw_safe *safe, const struct user_regs_struct *r)
{
	uint64_t words[2] = {0};
	struct iovec here = {words, sizeof words}, there = {(void *)(uintptr_t)r->r9, sizeof words};
	if (r->orig_rax == SYS_ppoll)
		return r->r10 != 0;
	if (r->orig_rax == SYS_epoll_pwait || r->orig_rax == SYS_epoll_pwait2)
		return r->r8 != 0;
	return r->orig_rax == SYS_pselect6 && r->r9 != 0 &&
	       (process_vm_readv(safe->process, &here, 1, &there, 1, 0) != sizeof words || words[0] != 0);
}

static const char *why_not_in_call(const struct tw_safe *safe, const struct user_regs_struct *r, const char *entry)
{
	/* They wait or transfer; libc calls them for no lock, no memory and no thread of its own. */
	static const unsigned char known[] = {SYS_read,	  SYS_write,	SYS_poll,    SYS_pread64,   SYS_pwrite64,
					      SYS_readv,  SYS_writev,	SYS_select,  SYS_nanosleep, SYS_accept,
					      SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,   SYS_wait4};
	static const unsigned short others[] = {SYS_clock_nanosleep, SYS_epoll_wait, SYS_pselect6, SYS_ppoll,
						SYS_epoll_pwait,     SYS_accept4,    SYS_recvmmsg, SYS_sendmmsg,
						SYS_preadv,	     SYS_pwritev,    SYS_waitid,   SYS_epoll_pwait2,
						SYS_fsync,	     SYS_fdatasync};
	/* Functions that hold more when they wait. */
	static const char *const busy[] = {"exit",	 "abort",	    "fork",	     "system",
					   "popen",	 "dlopen",	    "dlclose",	     "pthread_exit",
					   "quick_exit", "dl_iterate_phdr", "pthread_create"};
	bool is_known = false;
	for (size_t i = 0; i < COUNT_OF(known); i++)
		is_known |= r->orig_rax == known[i];
	for (size_t i = 0; i < COUNT_OF(others); i++)
		is_known |= r->orig_rax == others[i];
	if (r->orig_rax == SYS_futex)
		is_known = is_safe_futex(entry);
	if (!is_known || is_listed(busy, COUNT_OF(busy), entry))
		return "its threads are in system calls of memory, locks or threads";
	return has_mask(safe, r) ? "its threads wait for signals" : NULL;
}

/* ---- signals and restartable sequences ---- */

static uint64_t hexadecimal(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	return line ? strtoull(line + strlen(key), NULL, 16) : 0;
}

/* Its handler would run first, and the system call not end by it. */
static bool has_signal(const struct tw_safe *safe, int thread)
{
	char name[64], status[4096];
	snprintf(name, sizeof name, "task/%d/status", thread);
	if (tw_proc_read(safe->process, name, status, sizeof status) < 0)
		return true;
	uint64_t waiting = hexadecimal(status, "\nSigPnd:") | hexadecimal(status, "\nShdPnd:");
	return (waiting & ~hexadecimal(status, "\nSigBlk:")) != 0;
}

/* The kernel would not see that the thread has left it, and begin it again. */
static bool is_in_sequence(const struct tw_safe *safe, int thread)
{
	struct __ptrace_rseq_configuration area = {0};
	uint64_t words[2] = {0};
	struct iovec here = {words, sizeof words};
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread, sizeof area, &area) < 0 || !area.rseq_abi_pointer)
		return false;
	struct iovec there = {(void *)(uintptr_t)area.rseq_abi_pointer, sizeof words};
	return process_vm_readv(safe->process, &here, 1, &there, 1, 0) != sizeof words || words[1] != 0;
}

const char *tw_safe_why_not(struct tw_safe *safe, int thread, const struct user_regs_struct *registers)
{
	bool is_in_call = (int64_t)registers->orig_rax >= 0;
	size_t count = tw_stopped_frames(safe->stopped, registers, safe->frames, FRAMES_MAX);
	const struct tw_stopped_frame *frames = safe->frames;
	if (!count)
		return "the callers of its functions cannot be found (code that is made while it runs, or without call frame "
		       "information)";
	for (size_t i = 1; i < count; i++)
		if (frames[i].is_interrupted)
			return "its threads are in signal handlers";
	size_t end = without_beginning(safe, count), own = 0;
	if (!end)
		return "its threads are at their begin or end, or in functions that libc calls";
	while (own < end && kind_of(safe, &frames[own]) == LIBC_CODE)
		own++;
	for (size_t i = own; i < end; i++)
		if (kind_of(safe, &frames[i]) != PROGRAM_CODE)
			return "its threads are in the memory allocator, the loader, or functions that libc calls";
	if (own && !is_in_call)
		return "its threads are in libc";
	if (has_signal(safe, thread))
		return "signals come all the time";
	if (is_in_call)
		return why_not_in_call(safe, registers, own ? frames[own - 1].function : NULL);
	return is_in_sequence(safe, thread) ? "its threads are in restartable sequences" : NULL;
}
