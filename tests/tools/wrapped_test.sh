#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Calls of libc's functions that the agent wraps are recorded as those of any other.
# Method  A program calls some of each kind. Each function that the agent exports is on one of the lists below, so that a new wrapper is
#         noticed.
build=$1
. "$(dirname "$0")/lib.sh"

cat >calls.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
int capset(void *header, const void *data);
static void on_signal(int number) {}
static int look(struct dl_phdr_info *info, size_t bytes, void *arg) { return 0; }
int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	stack_t stack;
	jmp_buf place;
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGUSR2, on_signal);
	ssignal(SIGUSR2, on_signal);
	sigset(SIGUSR2, on_signal);
	sigaltstack(NULL, &stack);
	pthread_setname_np(pthread_self(), "x");
	dl_iterate_phdr(look, NULL);
	dlclose(dlopen(NULL, RTLD_NOW));
	prctl(PR_GET_NAME, (char[16]){0});
	capset(NULL, NULL);
	mlockall(-1);
	system(":");
	pclose(popen(":", "r"));
	if (!vfork())
		_exit(0);
	if (!setjmp(place))
		longjmp(place, 1);
	execve("/", argv, NULL);
	return 0;
}
C
gcc -w -O2 -o calls calls.c || fail gcc
expect 0 "$tw" record -q --force -t 'libc:{sigaction,signal,ssignal,sigset,sigaltstack,pthread_setname_np,dl_iterate_phdr,dlopen,dlclose,prctl,capset,mlockall,system,popen,vfork,longjmp,execve}' \
	-o c.tw -- ./calls
expect 0 "$tw" print c.tw
is "$(sed -n 's/.* call libc:\([a-z_]*\).*/\1/p' out | tr '\n' ' ')" \
	"sigaction signal ssignal sigset sigaltstack pthread_setname_np dl_iterate_phdr dlopen dlclose prctl capset mlockall system popen vfork longjmp execve "

recorded="__longjmp_chk __sigaction __sysv_signal _longjmp bsd_signal capset dl_iterate_phdr dlclose dlopen execl execle execlp execv execve execveat execvp execvpe
	fexecve longjmp mlockall popen posix_spawn posix_spawnp prctl pthread_setname_np sigaction sigaltstack siglongjmp signal sigset ssignal system sysv_signal vfork"
# Functions that make copies of the process' memory, and what unwinders ask.
unrecorded="_Fork _dl_find_object syscall"
is "$(nm -D --defined-only "$build/lib/libtracewheel-agent.so" | awk '$2 == "T" && $3 !~ /^_?_?tw_/ { print $3 }' | sort | tr '\n' ' ')" \
	"$(printf '%s\n' $recorded $unrecorded | sort | tr '\n' ' ')"
