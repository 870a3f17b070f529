/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports_edges.c FOLDER FD - descriptors in ways that tables get wrong, in known amounts; tests/agent/ports_edges_test.sh has
 * the amounts.  FD is open, and this program did not open it.
 */
#include "ports_help.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#define LEAVES 20

static char zeros[4096];

static int make(const char *name)
{
	char path[256];
	int fd = open(in_folder(path, name), O_RDWR | O_CREAT | O_TRUNC, 0600);

	check(fd >= 0, name);
	return fd;
}

static void put(int fd, size_t bytes)
{
	check(write(fd, zeros, bytes) == (ssize_t)bytes, "write");
}

/* ---- calls that never return ---- */

static sigjmp_buf out_of_read;
static atomic_int turns_begun, turns_ended;
static pthread_t reader;
static pid_t reader_id;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(out_of_read, 1);
}

static int is_asleep(pid_t thread)
{
	char path[64], text[512], *state;
	FILE *stat;
	size_t bytes;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
	stat = fopen(path, "r");
	check(stat != NULL, path);
	bytes = fread(text, 1, sizeof text - 1, stat);
	fclose(stat);
	text[bytes] = '\0';
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

/* Interrupts each turn once the reader sleeps in read(). */
static void *interrupt(void *arg)
{
	for (int turn = 1; turn <= LEAVES; turn++) {
		while (atomic_load(&turns_begun) < turn || !is_asleep(reader_id))
			usleep(100);
		pthread_kill(reader, SIGUSR1);
		while (atomic_load(&turns_ended) < turn)
			usleep(100);
	}
	return arg;
}

static void leave_calls(void)
{
	int ends[2], fd = make("after");
	pthread_t thread;
	char byte;

	check(!pipe(ends), "pipe");
	reader = pthread_self();
	reader_id = gettid();
	signal(SIGUSR1, leave);
	pthread_create(&thread, NULL, interrupt, NULL);
	while (atomic_load(&turns_ended) < LEAVES) {
		if (sigsetjmp(out_of_read, 1)) {
			atomic_fetch_add(&turns_ended, 1);
			continue;
		}
		atomic_fetch_add(&turns_begun, 1);
		check(read(ends[0], &byte, 1) < 0, "a read of an empty pipe");
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < 10; i++)
		put(fd, 7);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* ---- descriptors that change hands ---- */

static void ranges(void)
{
	int fd = make("range");

	put(fd, 5);
	check(!close_range((unsigned)fd, (unsigned)fd, CLOSE_RANGE_CLOEXEC), "close_range");
	put(fd, 6);
	close(fd);
}

static void duplicates(void)
{
	int first = make("first"), second = make("second"), third;

	put(second, 3);
	/* Closes `second`, and leads to `first`, which stays open when one of the two is closed. */
	check(dup2(first, second) == second, "dup2");
	put(second, 4);
	close(first);
	put(second, 5);
	third = make("third");
	put(third, 2);
	close(third);
	/* `second` stays open. */
}

/* A child of vfork() runs on its parent's thread, and closes its own descriptors only. */
static void children(void)
{
	int fd = make("parent"), other = make("child");
	pid_t child;

	put(fd, 10);
	for (int i = 0; i < 20; i++) {
		child = vfork();
		if (!child) {
			close(fd);
			if (dup2(other, 1) != 1)
				_exit(1);
			if (i == 0)
				execl("/nonexistent/program", "program", (char *)NULL);
			else if (i < 3)
				execl("/bin/sh", "sh", "-c", "printf 12345", (char *)NULL);
			_exit(0);
		}
		check(child > 0 && waitpid(child, NULL, 0) == child, "vfork");
		put(fd, 10);
	}
	close(fd);
	close(other);
}

/* Between fork and exec libc itself moves descriptors. */
static void spawned(void)
{
	extern char **environ;
	char path[256],
		*arguments[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"printf 1234567; printf 89 >&2"}, NULL};
	int fd = make("spawned");
	posix_spawn_file_actions_t actions;
	FILE *stream;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, 1);
	posix_spawn_file_actions_addopen(&actions, 2, in_folder(path, "opened"), O_WRONLY | O_CREAT, 0600);
	check(!posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ), "posix_spawn");
	check(waitpid(child, NULL, 0) == child, "posix_spawn");
	posix_spawn_file_actions_destroy(&actions);
	close(fd);
	stream = popen("printf 123", "r");
	check(stream && fread(zeros, 1, 10, stream) == 3 && !pclose(stream), "popen");
}

/* The fork is libc's own, and the parent ends at once: its number is not that of the child's parent any more. */
static void daemons(void)
{
	int fd = make("daemon"), ends[2];
	char byte;
	pid_t child;

	check(!pipe(ends), "pipe");
	child = fork();
	if (!child) {
		if (daemon(1, 1))
			_exit(1);
		put(fd, 10);
		_exit(0);
	}
	close(ends[1]);
	/* Until the daemon, which holds the other end, has ended. */
	check(waitpid(child, NULL, 0) == child && read(ends[0], &byte, 1) == 0, "daemon");
	close(ends[0]);
	close(fd);
}

/* Received over a socket, by a call that does not say so. */
static void received(void)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec vector = {zeros, 1};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	int pair[2], fd = make("sent");

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	check(sendmsg(pair[0], &message, 0) == 1 && recvmsg(pair[1], &message, 0) == 1, "a descriptor over a socket");
	memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
	for (int i = 0; i < 5; i++)
		put(fd, 10);
}

/* ---- streams ---- */

static void streams(void)
{
	char path[256], *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes), *file = fopen(in_folder(path, "old"), "w");

	check(memory && file, "streams");
	fprintf(memory, "nothing of this is in a file");
	fclose(memory);
	free(text);
	fprintf(file, "123");
	file = freopen(in_folder(path, "new"), "w", file);
	check(file != NULL, "freopen");
	fprintf(file, "12345");
	fclose(file);
	file = fopen(in_folder(path, "wide"), "w");
	check(file != NULL, "wide");
	fwprintf(file, L"%s", "123");
	fclose(file);
}

static void pipes(void)
{
	struct iovec vector = {zeros, 40};
	int one[2], two[2], file = make("spliced");

	check(!pipe(one) && !pipe(two), "pipe");
	put(one[1], 40);
	check(tee(one[0], two[1], 40, 0) == 40, "tee");
	check(vmsplice(two[0], &vector, 1, 0) == 40, "vmsplice");
	check(splice(one[0], NULL, file, NULL, 40, 0) == 40, "splice");
	close(one[0]);
	close(one[1]);
	close(two[0]);
	close(two[1]);
	close(file);
}

int main(int argc, char **argv)
{
	int given;

	check(argc > 2, "usage: ports_edges FOLDER FD");
	folder = argv[1];
	given = atoi(argv[2]);
	leave_calls();
	ranges();
	duplicates();
	children();
	spawned();
	daemons();
	streams();
	pipes();
	received();
	/* Numbers that are not open are none of its ports. */
	for (int fd = 60; fd < 90; fd++)
		close(fd);
	for (int i = 0; i < 5; i++)
		check(read(given, zeros, 10) == 10, "the given descriptor");
	printf("done\n");
	return 0;
}
