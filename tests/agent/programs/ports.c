/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c FOLDER - uses descriptors of every kind, in known amounts; tests/agent/ports_test.sh has the amounts. */
#include "ports_help.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define TURNS	200

static char zeros[8192];

static void make(const char *name, size_t bytes)
{
	char path[256];
	int fd = open(in_folder(path, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	check(fd >= 0, name);
	for (size_t i = 0; i < 10; i++)
		check(write(fd, zeros, bytes / 10) == (ssize_t)(bytes / 10), name);
	check(!close(fd), name);
}

static void streams(void)
{
	char path[256], line[64], *text = NULL;
	size_t capacity = 0;
	FILE *file = fopen(in_folder(path, "stream"), "w");

	check(file != NULL, "fopen");
	fprintf(file, "%s\n", "123456");
	fwrite("12345", 5, 3, file);
	fputc('\n', file);
	fclose(file);
	file = fopen(path, "r");
	check(getline(&text, &capacity, file) == 7, "getline");
	check(fread(line, 1, sizeof line, file) == 16, "fread");
	fclose(file);
	free(text);
}

static void pipes(void)
{
	int ends[2], duplicate, pair[2];
	struct iovec vector = {zeros, 300};

	check(!pipe(ends), "pipe");
	check(write(ends[1], zeros, 300) == 300 && readv(ends[0], &vector, 1) == 300, "pipe");
	duplicate = dup(ends[0]);
	check(write(ends[1], zeros, 10) == 10 && read(duplicate, zeros, 10) == 10, "dup");
	close(ends[0]);
	close(ends[1]);
	close(duplicate);
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	check(send(pair[0], zeros, 50, 0) == 50 && recv(pair[1], zeros, 50, 0) == 50, "socketpair");
	close(pair[0]);
	close(pair[1]);
}

static void *client(void *arg)
{
	const struct sockaddr_in *to = arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check(!connect(fd, (const struct sockaddr *)to, sizeof *to), "connect");
	check(send(fd, zeros, 5000, 0) == 5000, "send");
	check(recv(fd, zeros, 70, MSG_WAITALL) == 70, "recv");
	close(fd);
	return NULL;
}

static void sockets(void)
{
	static char own[8192];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, refused = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;

	check(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 5), "bind");
	check(!getsockname(listener, (struct sockaddr *)&address, &bytes), "getsockname");
	printf("port %u\n", ntohs(address.sin_port));
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, client, &address);
		fd = accept(listener, NULL, NULL);
		check(recv(fd, own, 5000, MSG_WAITALL) == 5000, "recv");
		check(send(fd, own, 70, 0) == 70, "send");
		pthread_join(thread, NULL);
		close(fd);
	}
	close(listener);
	/* No process listens there any more; the port is named nevertheless. */
	check(connect(refused, (struct sockaddr *)&address, sizeof address), "connect");
	close(refused);
}

static void events(void)
{
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0), poll = epoll_create1(0);
	struct itimerspec soon = {.it_value.tv_nsec = 1000000};
	struct epoll_event out, in = {.events = EPOLLIN};
	uint64_t number = 1;

	check(write(event, &number, 8) == 8 && read(event, &number, 8) == 8, "eventfd");
	check(!epoll_ctl(poll, EPOLL_CTL_ADD, timer, &in) && !timerfd_settime(timer, 0, &soon, NULL), "timerfd");
	check(epoll_wait(poll, &out, 1, -1) == 1 && read(timer, &number, 8) == 8, "epoll");
	close(event);
	close(timer);
	close(poll);
}

static void copies(void)
{
	char from[256], to[256];
	int in = open(in_folder(from, "whole"), O_RDONLY), out = open(in_folder(to, "copy"), O_WRONLY | O_CREAT, 0600);

	check(sendfile(out, in, NULL, 400) == 400, "sendfile");
	close(in);
	close(out);
}

/* The parent closes at once what only the child reads. */
static void children(void)
{
	char path[256];
	int fd = open(in_folder(path, "child"), O_RDONLY), ends[2], status;
	pid_t child;

	check(!pipe(ends), "pipe");
	child = fork();
	if (!child) {
		char go;

		if (read(ends[0], &go, 1) != 1 || read(fd, zeros, 100) != 100)
			_exit(1);
		close(fd);
		_exit(0);
	}
	close(fd);
	fd = open(in_folder(path, "other"), O_RDONLY);
	check(write(ends[1], "x", 1) == 1 && read(fd, zeros, 20) == 20, "children");
	check(waitpid(child, &status, 0) == child && !status, "child");
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* Descriptors are used again at once, by whichever thread comes first. */
static void *reuse(void *arg)
{
	char path[256], name[16], mine[200];
	size_t bytes = 10 * (1 + *(const unsigned *)arg);

	snprintf(name, sizeof name, "thread%u", *(const unsigned *)arg);
	in_folder(path, name);
	for (unsigned i = 0; i < TURNS; i++) {
		int fd = open(path, O_RDONLY);

		check(read(fd, mine, bytes) == (ssize_t)bytes, name);
		close(fd);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static unsigned numbers[THREADS];
	pthread_t threads[THREADS];
	char path[256], name[16];
	int fd;

	check(argc > 1, "usage: ports FOLDER");
	folder = argv[1];
	make("whole", 1000);
	make("child", 100);
	make("other", 100);
	make("left", 100);
	for (unsigned i = 0; i < THREADS; i++) {
		snprintf(name, sizeof name, "thread%u", i);
		make(name, 100);
	}
	fd = open(in_folder(path, "whole"), O_RDONLY);
	check(read(fd, zeros, sizeof zeros) == 1000 && read(fd, zeros, sizeof zeros) == 0, "read");
	close(fd);
	check(open(in_folder(path, "missing"), O_RDONLY) < 0, "missing");
	streams();
	pipes();
	sockets();
	events();
	copies();
	children();
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, reuse, &numbers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fd = open(in_folder(path, "left"), O_RDONLY);
	check(fd > 2 && !close_range((unsigned)fd, (unsigned)fd, 0), "close_range");
	fd = open(in_folder(path, "left"), O_RDONLY);
	check(read(fd, zeros, 30) == 30, "left");
	printf("done\n");
	return 0;
}
