/* SPDX-License-Identifier: Apache-2.0 */
/* waited_linux.c - see waited.h. */
#include "base/waited.h"

#include "base/clock.h"
#include "base/sys.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

/* The kernel's answer inside of a system call that it starts again, unless a handler runs first. */
#define RESTART_UNLESS_HANDLED (-514)
#define NS_PER_MS	       UINT64_C(1000000)
#define NS_PER_S	       UINT64_C(1000000000)

/* Calls that fail with EINTR, and the register with their limit: none, milliseconds, or the address of a struct timespec. */
enum limit { NONE, MS, TIMESPEC };
#define REGISTER(name) offsetof(struct user_regs_struct, name)
static const struct call {
	uint16_t number;
	uint8_t limit, at;
} calls[] = {
	{SYS_read, NONE, 0},
	{SYS_write, NONE, 0},
	{SYS_accept, NONE, 0},
	{SYS_accept4, NONE, 0},
	{SYS_sendto, NONE, 0},
	{SYS_recvfrom, NONE, 0},
	{SYS_sendmsg, NONE, 0},
	{SYS_recvmsg, NONE, 0},
	{SYS_recvmmsg, NONE, 0},
	{SYS_semop, NONE, 0},
	{SYS_semtimedop, TIMESPEC, REGISTER(r10)},
	{SYS_rt_sigtimedwait, TIMESPEC, REGISTER(rdx)},
	{SYS_epoll_wait, MS, REGISTER(r10)},
	{SYS_epoll_pwait, MS, REGISTER(r10)},
	{SYS_epoll_pwait2, TIMESPEC, REGISTER(r10)},
	{SYS_io_getevents, TIMESPEC, REGISTER(r8)},
	{SYS_io_pgetevents, TIMESPEC, REGISTER(r8)},
};

static const struct call *call_of(uint64_t number)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

static unsigned long long *limit_of(const struct call *call, struct user_regs_struct *registers)
{
	return (unsigned long long *)(void *)((char *)registers + call->at);
}

/* ---- what the kernel tells of a thread ---- */

/* The last field of a mapping's line is a path that ends so; a new file may have taken its name since. */
#define LIBC "/libc.so.6"

/* Finds libc's code in the list of mappings. */
static void find_libc(struct tw_waited_process *process, int process_id)
{
	char text[8192], *line, *next;
	unsigned long low, high;
	size_t bytes = 0;
	long got;
	int fd;

	process->has_libc = true;
	process->libc_low = process->libc_high = 0;
	snprintf(text, sizeof text, "/proc/%d/maps", process_id);
	fd = tw_sys_open_to_read(text);
	while (fd >= 0 && (got = tw_sys_read(fd, text + bytes, sizeof text - 1 - bytes)) > 0) {
		text[bytes + (size_t)got] = '\0';
		for (line = text; (next = strchr(line, '\n')); line = next + 1) {
			*next = '\0';
			if (!strstr(line, LIBC) || sscanf(line, "%lx-%lx r-x", &low, &high) != 2 ||
			    !strstr(line, " r-xp "))
				continue;
			process->libc_low = low;
			process->libc_high = high;
		}
		/* A line that is longer than all of it is none of libc's. */
		bytes = strlen(line) < sizeof text / 2 ? strlen(line) : 0;
		memmove(text, line, bytes);
	}
	if (fd >= 0)
		tw_sys_close(fd);
}

/*
 * A changed limit stays in its register behind the call. Functions of libc have passed it on by then; code that makes its calls itself may make
 * the next with the same register.
 */
static bool is_of_libc(struct tw_waited_process *process, int process_id, uint64_t pc)
{
	if (!process->has_libc)
		find_libc(process, process_id);
	return pc >= process->libc_low && pc < process->libc_high;
}

/* The call in which it waits; 0: in none of those with a limit. @pc: behind the call. */
static int32_t limited_call(int process_id, int thread_id, uint64_t *pc)
{
	const struct call *call;
	char text[256], *end, *last;
	unsigned long number;

	if (!tw_sys_read_of_thread(process_id, thread_id, "syscall", text, sizeof text))
		return 0;
	number = strtoul(text, &end, 10);
	call = end == text ? NULL : call_of(number);
	last = strrchr(text, ' ');
	*pc = last ? strtoull(last, NULL, 16) : 0;
	return call && call->limit != NONE ? (int32_t)number : 0;
}

static bool read_switches(int process_id, int thread_id, uint32_t *out)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char text[4096];
	const char *line =
		tw_sys_read_of_thread(process_id, thread_id, "status", text, sizeof text) ? strstr(text, key) : NULL;

	if (line)
		*out = (uint32_t)strtoul(line + sizeof key - 1, NULL, 10);
	return line != NULL;
}

/* When the scheduler has seen it run last, by the clock of its processor; 0: the kernel does not say. */
static uint64_t ran_ns(int process_id, int thread_id)
{
	char text[4096], *end;
	const char *at = tw_sys_read_of_thread(process_id, thread_id, "sched", text, sizeof text)
				 ? strstr(text, "se.exec_start")
				 : NULL;
	uint64_t ms;

	at = at ? strchr(at, ':') : NULL;
	ms = at ? strtoull(at + 1, &end, 10) : 0;
	return ms && *end == '.' ? ms * NS_PER_MS + strtoull(end + 1, NULL, 10) : 0;
}

/* On which it ran last; -1: not known.  The 39th field; the bracket ends the second. */
static int processor_of(int process_id, int thread_id)
{
	char text[1024];
	const char *at =
		tw_sys_read_of_thread(process_id, thread_id, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at) : -1;
}

/* ---- the clocks of processors ---- */

/* This thread goes there. */
static struct tw_waited_clock ask_clock(int processor)
{
	struct tw_waited_clock clock = {0};
	cpu_set_t before, there;

	CPU_ZERO(&there);
	if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before))
		return clock;
	CPU_SET(processor, &there);
	if (sched_setaffinity(0, sizeof there, &there))
		return clock;
	/* The scheduler notes the time. */
	sched_yield();
	clock.there_ns = ran_ns(getpid(), (int)syscall(SYS_gettid));
	clock.here_ns = tw_clock_monotonic_ns();
	sched_setaffinity(0, sizeof before, &before);
	return clock;
}

/* The clock stands while the processor is lent to interrupts: asked after the thread has run, it gives no time before that. */
static uint64_t here_ns(struct tw_waited_process *process, int processor, uint64_t there_ns)
{
	struct tw_waited_clock other = {0}, *clock = &other;

	if (processor >= 0 && processor < TW_WAITED_CLOCKS)
		clock = &process->clocks[processor];
	if (clock->there_ns < there_ns)
		*clock = ask_clock(processor);
	return clock->there_ns >= there_ns ? clock->here_ns - (clock->there_ns - there_ns) : 0;
}

void tw_waited_see(struct tw_waited *waited, struct tw_waited_process *process, int process_id, int thread_id)
{
	uint64_t ran, pc = 0;

	*waited = (struct tw_waited){.call = limited_call(process_id, thread_id, &pc)};
	/* In this order: with the same number afterwards it has not run between. */
	if (!waited->call || !is_of_libc(process, process_id, pc) ||
	    !read_switches(process_id, thread_id, &waited->switches))
		return;
	ran = ran_ns(process_id, thread_id);
	if (ran)
		waited->since_ns = here_ns(process, processor_of(process_id, thread_id), ran);
}

/* ---- what is changed ---- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* A limit in memory, by one elsewhere. */
static void shorten_timespec(int thread_id, unsigned long long *limit, uint64_t space, uint64_t waited_ns)
{
	struct timespec time;
	struct iovec local = {&time, sizeof time}, remote = {(void *)(uintptr_t)*limit, sizeof time};
	uint64_t left;

	if (!*limit || process_vm_readv(thread_id, &local, 1, &remote, 1, 0) != sizeof time || time.tv_sec < 0 ||
	    time.tv_sec > INT32_MAX)
		return;
	left = less((uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec, waited_ns);
	time = (struct timespec){(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
	remote.iov_base = (void *)(uintptr_t)space;
	if (process_vm_writev(thread_id, &local, 1, &remote, 1, 0) == sizeof time)
		*limit = space;
}

static void shorten(int thread_id, const struct call *call, struct user_regs_struct *registers, uint64_t space,
		    uint64_t waited_ns)
{
	unsigned long long *limit = limit_of(call, registers);

	if (call->limit == TIMESPEC)
		shorten_timespec(thread_id, limit, space, waited_ns);
	else if ((int32_t)*limit > 0)
		*limit = less(*limit & UINT32_MAX, waited_ns / NS_PER_MS);
}

bool tw_waited_repair(const struct tw_waited *waited, int process_id, int thread_id, struct user_regs_struct *registers,
		      uint64_t space)
{
	const struct call *call = (int64_t)registers->rax == -EINTR ? call_of(registers->orig_rax) : NULL;
	uint64_t now = tw_clock_monotonic_ns();
	uint32_t switches;

	if (!call)
		return false;
	registers->rax = (unsigned long long)(int64_t)RESTART_UNLESS_HANDLED;
	/* The stop is one more. */
	if (call->limit != NONE && waited->call == (int32_t)call->number && waited->since_ns &&
	    read_switches(process_id, thread_id, &switches) && switches == waited->switches + 1)
		shorten(thread_id, call, registers, space, less(now, waited->since_ns));
	return true;
}
