/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - functions by name. */
#include "views/names/waits.h"

#include <string.h>

/* Without leading underscores: __poll is poll. */
static const char *const functions[] = {
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"poll",
	"ppoll",
	"poll_chk",
	"ppoll_chk",
	"select",
	"pselect",
	"nanosleep",
	"clock_nanosleep",
	"usleep",
	"sleep",
	"pause",
	"sigwait",
	"sigwaitinfo",
	"sigtimedwait",
	"sigsuspend",
	"accept",
	"accept4",
	"wait",
	"wait3",
	"wait4",
	"waitid",
	"waitpid",
	"futex",
	"pthread_cond_wait",
	"pthread_cond_timedwait",
	"pthread_cond_clockwait",
	"cnd_wait",
	"cnd_timedwait",
	"pthread_join",
	"pthread_timedjoin_np",
	"pthread_clockjoin_np",
	"thrd_join",
	"thrd_sleep",
	"pthread_barrier_wait",
	"sem_wait",
	"sem_timedwait",
	"sem_clockwait",
	"msgrcv",
	"mq_receive",
	"mq_timedreceive",
	"futex_wait",
};

/* A program's own function may have the name of one of them. */
static bool is_of_libc(const struct tw_capture_module *module)
{
	static const char *const modules[] = {"libc", "libpthread", "librt", "syscall"};
	for (size_t i = 0; module && module->name && i < sizeof modules / sizeof *modules; i++) {
		if (strcmp(module->name, modules[i]) == 0)
			return true;
	}
	return false;
}

bool tw_function_forks(const struct tw_capture_function *function)
{
	static const char *const names[] = {"fork", "_Fork", "vfork", "__fork", "__libc_fork"};
	for (size_t i = 0; function && is_of_libc(function->module) && i < sizeof names / sizeof *names; i++) {
		if (function->name && strcmp(function->name, names[i]) == 0)
			return true;
	}
	return false;
}

bool tw_function_waits(const struct tw_capture_function *function)
{
	if (!function || !function->name || !is_of_libc(function->module))
		return false;
	const char *name = function->name + strspn(function->name, "_");
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (strcmp(name, functions[i]) == 0)
			return true;
	}
	return false;
}
