#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A child that is forked while a library is being opened does not wait for a dlclose() that nobody is in, and the library's
#         functions are recorded in it from its first call.
# Method  A constructor forks: the agent has not seen its library yet. The child calls a function, and counts its calls.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >opened.c <<'C'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long opened_leaf(long x)
{
	return x * 3 + (x >> 2) * 7;
}
__attribute__((constructor)) static void fork_in_constructor(void)
{
	pid_t child = fork();
	long sum = 0;
	int status;
	if (!child) {
		for (volatile long i = 0; i < 7; i++)
			sum += opened_leaf(i);
		_exit(sum ? 0 : 1);
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
}
C
cat >app.c <<'C'
#include <dlfcn.h>
int main(void)
{
	return dlopen("./libopened.so", RTLD_NOW) ? 0 : 1;
}
C
gcc -O1 -shared -fPIC -Wl,--build-id -o libopened.so opened.c && gcc -O1 -o app app.c -ldl || fail "the program does not compile"
for way in --local --global ''; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record $way --follow-fork --allow-nothing -t libopened:opened_leaf -o r.tw --force -- ./app
	! grep -q 'took too long' err || fail "the child has waited, $way"
	[ "$way" = --global ] || is "$(calls r.tw opened_leaf)" 7 "calls in the child, $way"
done

# ---- another thread holds the loader's lock for ever, in the child ----
cat >locked.c <<'C'
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int is_locked, is_done;
__attribute__((noinline)) long locked_leaf(long x)
{
	return x * 3 + (x >> 2) * 7;
}
static int hold(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	is_locked = 1;
	while (!is_done)
		usleep(1000);
	return 1;
}
static void *lock(void *arg)
{
	dl_iterate_phdr(hold, arg);
	return arg;
}
int main(void)
{
	pthread_t thread;
	int status = 1;
	pthread_create(&thread, NULL, lock, NULL);
	while (!is_locked)
		usleep(1000);
	pid_t child = fork();
	if (!child) {
		alarm(20);
		long sum = 0;
		for (volatile long i = 0; i < 7; i++)
			sum += locked_leaf(i);
		_exit(sum ? 0 : 1);
	}
	waitpid(child, &status, 0);
	is_done = 1;
	pthread_join(thread, NULL);
	return status != 0;
}
C
gcc -O1 -Wl,--build-id -o locked locked.c -lpthread || fail "the program does not compile"
for way in --local --global ''; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record $way --follow-fork --allow-nothing -t locked:locked_leaf -t libc:usleep -o l.tw --force -- ./locked
	[ "$way" = --global ] || is "$(calls l.tw locked_leaf)" 7 "calls in the child of a program whose loader is locked, $way"
done
