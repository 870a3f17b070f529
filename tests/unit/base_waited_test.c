/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A thread that is stopped while it waits with a limit waits until the same end, and its call neither fails nor ends early: all
 *	   calls that the kernel begins again itself, and those that would fail with EINTR.
 * Method  Threads of a child wait for LIMIT_MS, a kind of wait each. All are held twice meanwhile. They tell what their calls gave, and
 *	   how long they took. A wait that begins anew ends more than LIMIT_MS / 2 late; how late others are depends on the machine,
 *	   and is printed. One in which a machine stands still is tried again.
 */
#include "base/hold.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 600
#define MS	 1000000L
#define TRIES	 5

static const struct timespec limit = {LIMIT_MS / 1000, LIMIT_MS % 1000 * MS};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct timespec end_by(clockid_t clock)
{
	uint64_t end = now_ns(clock) + LIMIT_MS * MS;

	return (struct timespec){(time_t)(end / 1000000000), (long)(end % 1000000000)};
}

/* Each returns 0 if its call has ended as it should. */
static int in_poll(void)
{
	return poll(NULL, 0, LIMIT_MS);
}

static int in_ppoll(void)
{
	return ppoll(NULL, 0, &limit, NULL);
}

static int in_select(void)
{
	struct timeval time = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000};

	return select(0, NULL, NULL, NULL, &time);
}

static int in_pselect(void)
{
	return pselect(0, NULL, NULL, NULL, &limit, NULL);
}

static int in_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_create1(0), &event, 1, LIMIT_MS);
}

/* Code that makes its calls itself: the limit's register is as before. */
static int in_own_epoll_wait(void)
{
	struct epoll_event event;
	long result = SYS_epoll_wait, file = epoll_create1(0), left;

	__asm__ volatile("movq %[limit], %%r10\n\tsyscall\n\tmovq %%r10, %[left]"
			 : "+a"(result), [left] "=&r"(left)
			 : [limit] "i"(LIMIT_MS), "D"(file), "S"(&event), "d"(1L)
			 : "rcx", "r10", "r11", "memory");
	return result != 0 || left != LIMIT_MS;
}

static int in_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(epoll_create1(0), &event, 1, LIMIT_MS, &none);
}

static int in_epoll_pwait2(void)
{
	struct epoll_event event;

	return epoll_pwait2(epoll_create1(0), &event, 1, &limit, NULL);
}

static int in_nanosleep(void)
{
	return nanosleep(&limit, NULL);
}

static int in_clock_nanosleep(void)
{
	return clock_nanosleep(CLOCK_REALTIME, 0, &limit, NULL);
}

static int until_by_clock_nanosleep(void)
{
	struct timespec end = end_by(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

static int in_futex(void)
{
	uint32_t word = 0;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, NULL, 0) != -1 || errno != ETIMEDOUT;
}

static int in_sem_timedwait(void)
{
	struct timespec end = end_by(CLOCK_REALTIME);
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	return sem_timedwait(&semaphore, &end) != -1 || errno != ETIMEDOUT;
}

static int in_semtimedop(void)
{
	struct sembuf down = {0, -1, 0};
	int set = semget(IPC_PRIVATE, 1, 0600), result;

	result = semtimedop(set, &down, 1, &limit) != -1 || errno != EAGAIN;
	semctl(set, 0, IPC_RMID);
	return result;
}

static int in_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &limit) != -1 || errno != EAGAIN;
}

/* Their limits belong to the socket: they may be late by all of it, and end as they should. */
static int socket_with_limit(void)
{
	struct timeval time = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		abort();
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	return pair[0];
}

static int in_recv(void)
{
	char byte;

	return recv(socket_with_limit(), &byte, 1, 0) != -1 || errno != EAGAIN;
}

static int in_recvmmsg(void)
{
	struct mmsghdr message = {.msg_len = 0};
	struct timespec time = limit;

	return recvmmsg(socket_with_limit(), &message, 1, 0, &time) != -1 || errno != EAGAIN;
}

static const struct kind {
	const char *name;
	int (*wait)(void);
	bool may_be_late, is_realtime;
} kinds[] = {
	{.name = "poll", .wait = in_poll},
	{.name = "ppoll", .wait = in_ppoll},
	{.name = "select", .wait = in_select},
	{.name = "pselect", .wait = in_pselect},
	{.name = "epoll_wait", .wait = in_epoll_wait},
	{.name = "epoll_wait, not libc's", .wait = in_own_epoll_wait, .may_be_late = true},
	{.name = "epoll_pwait", .wait = in_epoll_pwait},
	{.name = "epoll_pwait2", .wait = in_epoll_pwait2},
	{.name = "nanosleep", .wait = in_nanosleep},
	{.name = "clock_nanosleep", .wait = in_clock_nanosleep},
	{.name = "clock_nanosleep, absolute", .wait = until_by_clock_nanosleep},
	{.name = "futex", .wait = in_futex},
	{.name = "sem_timedwait", .wait = in_sem_timedwait, .is_realtime = true},
	{.name = "semtimedop", .wait = in_semtimedop},
	{.name = "sigtimedwait", .wait = in_sigtimedwait},
	{.name = "recv, SO_RCVTIMEO", .wait = in_recv, .may_be_late = true},
	{.name = "recvmmsg, SO_RCVTIMEO", .wait = in_recvmmsg, .may_be_late = true},
};
#define KINDS (sizeof kinds / sizeof *kinds)

struct told {
	int result, error;
	uint64_t took_ns;
};
static struct told *told;

static void *wait_so(void *arg)
{
	size_t kind = (size_t)arg;
	/* The machine's time may be set meanwhile: a wait until a time of that clock is measured by it. */
	clockid_t clock = kinds[kind].is_realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	uint64_t begun = now_ns(clock);

	errno = 0;
	told[kind].result = kinds[kind].wait();
	told[kind].error = errno;
	told[kind].took_ns = now_ns(clock) - begun;
	return NULL;
}

static pid_t begin_child(void)
{
	pthread_t thread[KINDS];
	sigset_t set;
	pid_t child = fork();

	if (child)
		return child;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < KINDS; i++)
		if (pthread_create(&thread[i], NULL, wait_so, (void *)i))
			_exit(1);
	for (size_t i = 0; i < KINDS; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

/* Returns by how much the latest one was late. */
static uint64_t hold_while_they_wait(bool is_last)
{
	static struct tw_hold hold;
	struct timespec third = {0, LIMIT_MS * MS / 3};
	pid_t child = begin_child();
	uint64_t latest = 0;
	int status;

	for (unsigned i = 0; i < 2; i++) {
		nanosleep(&third, NULL);
		if (tw_hold_begin(&hold, child) == TW_HOLD_OK)
			tw_hold_end(&hold);
		while (tw_hold_end_late(&hold))
			;
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (size_t i = 0; i < KINDS; i++) {
		uint64_t late = told[i].took_ns - LIMIT_MS * MS;

		if (is_last)
			print_message("%-28s %7.2f ms late\n", kinds[i].name, (double)(int64_t)late / 1e6);
		if (told[i].result)
			fail_msg("%s: %d, %s", kinds[i].name, told[i].result, strerror(told[i].error));
		if (told[i].took_ns < LIMIT_MS * MS)
			fail_msg("%s ended %.3f ms early", kinds[i].name, -(double)(int64_t)late / 1e6);
		if (!kinds[i].may_be_late && late > latest)
			latest = late;
	}
	return latest;
}

static void waits_end_when_they_would_have(void **state)
{
	uint64_t late = UINT64_MAX;

	told = mmap(NULL, KINDS * sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(told, MAP_FAILED);
	for (unsigned i = 0; i < TRIES && late >= LIMIT_MS / 4 * MS; i++)
		late = hold_while_they_wait(false);
	if (late >= LIMIT_MS / 4 * MS)
		hold_while_they_wait(true);
	else
		print_message("at most %.2f ms late\n", (double)late / 1e6);
	assert_true(late < LIMIT_MS / 4 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_end_when_they_would_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
