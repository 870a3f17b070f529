#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A cancelled thread returns from dlopen(), which is no cancellation point, traced as untraced, and no lock of the
#         agent stays held: others open libraries afterwards. The same in a child forked beside dlclose().
# Method  A cancellation is pending when the thread opens a library (with a run path, so that files are searched);
#         another comes at some moment of many openings. A destructor waits while another thread forks.
build=$1
. "$(dirname "$0")/lib.sh"

cat >work.c <<'C'
#include <string.h>
__attribute__((noinline)) unsigned long work(const char *text)
{
	unsigned long sum = 0;
	for (int i = 0; i < 100; i++) {
		__asm__ volatile("" : "+r"(text) : : "memory");
		sum += strlen(text);
	}
	return sum;
}
C
cat >slow.c <<'C'
#include <unistd.h>
extern int may_go[2], is_inside[2];
__attribute__((destructor)) static void wait(void)
{
	char byte;
	write(is_inside[1], "", 1);
	read(may_go[0], &byte, 1);
}
C
cat >app.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int may_go[2], is_inside[2];
static volatile int has_come;
static int use(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);
	unsigned long (*work)(const char *) = handle ? (unsigned long (*)(const char *))dlsym(handle, "work") : NULL;
	return work && work("hello") == 500 && dlclose(handle) == 0;
}
static void *open_one(void *path)
{
	while (!has_come)
		;
	has_come = dlopen(path, RTLD_NOW) ? 2 : 3;
	pthread_testcancel();
	return NULL;
}
static void *open_many(void *path)
{
	for (;;) {
		dlclose(dlopen(path, RTLD_NOW));
		pthread_testcancel();
	}
}
static void *close_it(void *handle)
{
	dlclose(handle);
	return NULL;
}
static int fork_beside_dlclose(void)
{
	void *handle = dlopen("./slow.so", RTLD_NOW);
	pthread_t thread;
	char byte;
	int status = 0;
	if (pipe(may_go) || pipe(is_inside) || !handle)
		return 1;
	pthread_create(&thread, NULL, close_it, handle);
	read(is_inside[0], &byte, 1);
	if (fork() == 0)
		_exit(use("./work.so") ? 0 : 1);
	wait(&status);
	write(may_go[1], "", 1);
	pthread_join(thread, NULL);
	return status != 0;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc > 1)
		return fork_beside_dlclose();
	for (int i = 0; i < 2; i++) {
		has_come = 0;
		pthread_create(&thread, NULL, open_one, i ? "libwork.so" : "./work.so");
		pthread_cancel(thread);
		has_come = 1;
		pthread_join(thread, NULL);
		printf("%d\n", has_come);
	}
	for (int i = 0; i < 40; i++) {
		pthread_create(&thread, NULL, open_many, "./work.so");
		usleep(i * 100);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	alarm(60);
	printf("%d\n", use("./work.so"));
	return 3;
}
C
mkdir libs
gcc -w -O1 -fno-builtin -fPIC -shared -fpatchable-function-entry=9 -o work.so work.c && cp work.so libs/libwork.so &&
	gcc -w -O1 -fPIC -shared -o slow.so slow.c && gcc -w -O1 -rdynamic -o app app.c -pthread -ldl "-Wl,-rpath,$PWD/libs" || fail gcc
"$tw" compact -q work.so libs/libwork.so || fail compact
for options in "-t libc:strlen" "-t work:_ -t libwork:_ --returns" "-t _:_"; do
	# shellcheck disable=SC2086 # several words
	expect 3 timeout 120 "$tw" record -q --force $options -o c.tw -- ./app
	is "$(tr '\n' ' ' <out)" "2 2 1 " "$options"
done
# Libraries opened by the child are armed, though the thread that was inside dlclose() does not exist there to resume
# writes.
expect 0 timeout 120 "$tw" record -q --force --follow-fork --on-full block -t libc:strlen -t work:_ -o f.tw -- ./app fork
expect 0 "$tw" report --json --top 0 f.tw
is "$(json 'sum(f["calls"] for f in d["by_function"] if f["name"].startswith("libc:strlen/"))')" 100 "calls of the child"
is "$(json 'sum(f["calls"] for f in d["by_function"] if f["name"].startswith("work:work/"))')" 1 "calls of the child"

# Threads that a cancellation ends within their first traced calls, several times as many as there are stacks for that, give back what they worked with: the calls of others go on.
cat >first.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int first(int i) { __asm__ volatile("" : "+r"(i)); return i; }
__attribute__((noinline)) int later(int i) { __asm__ volatile("" : "+r"(i)); return i; }
static volatile int is_ready, has_called;
static void *call_first(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	is_ready = 1;
	for (int i = 0;; i++) {
		first(i);
		has_called = 1;
	}
	return arg;
}
static void *call_later(void *arg)
{
	for (int i = 0; i < 10; i++)
		later(i);
	return arg;
}
int main(void)
{
	pthread_t thread;
	int within = 0;
	for (int i = 0; i < 3000 && within < ENOUGH; i++) {
		is_ready = has_called = 0;
		pthread_create(&thread, NULL, call_first, NULL);
		while (!is_ready)
			;
		for (volatile int spin = rand() % 30000; spin; spin--)
			;
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		within += !has_called;
	}
	printf("%d\n", within);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, call_later, NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}
C
gcc -O2 -g -DENOUGH="$(rounds 100 3000)" -fpatchable-function-entry=9 -o first first.c -pthread || fail gcc
expect 0 timeout 120 "$tw" record -q --force --ring 64K -t 'first:{first,later}' -o g.tw -- ./first
is "$(calls g.tw later)" 200 "calls of later threads"
expect 0 "$tw" info --json g.tw
is "$(json 'd["account"]["missing"]["vfork"]["events"]')" 0 "calls said to be of children of vfork()"
