/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - wrappers of exec and posix_spawn, which add or remove our variables (agent/environment.c).
 *
 * They run in children of vfork() and in signal handlers: memory is on the stack.  Programs that libc executes itself
 * (system() and popen(), children.c; wordexp()) do not pass here.
 */
#include "agent/agent.h"
#include "agent/preload/real.h"
#include "base/export.h"
#include "pipeline/hit/longer.h"

#include <alloca.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXECVE, EXECVPE, EXECVEAT, FEXECVE, SPAWN, SPAWNP, CALLS };
static const char *const names[CALLS] = {"execve", "execvpe", "execveat", "fexecve", "posix_spawn", "posix_spawnp"};
static _Atomic(void *) real_calls[CALLS];

static void *find(int number)
{
	return tw_real(&real_calls[number], names[number]);
}

/* Looked up early: a child of vfork() must not call the loader. */
__attribute__((constructor(101))) static void find_all(void)
{
	for (int number = 0; number < CALLS; number++)
		find(number);
}

typedef int (*execve_fn)(const char *, char *const *, char *const *);
typedef int (*execveat_fn)(int, const char *, char *const *, char *const *, int);
typedef int (*fexecve_fn)(int, char *const *, char *const *);
typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
			char *const *, char *const *);

/* On the caller's stack frame: no other memory may be available. */
#define ENVIRONMENT_FOR(program, variables) \
	tw_agent_environment_for((program), (variables), alloca(tw_agent_environment_bytes(variables)))

static int execute(const char *path, char *const *arguments, char *const *variables)
{
	tw_longer_record_open();
	if (tw_agent_environment_is_ours())
		variables = ENVIRONMENT_FOR(tw_agent_program_at(AT_FDCWD, path), variables);
	return ((execve_fn)find(EXECVE))(path, arguments, variables);
}

static int execute_found(const char *name, char *const *arguments, char *const *variables)
{
	tw_longer_record_open();
	if (tw_agent_environment_is_ours())
		variables = ENVIRONMENT_FOR(tw_agent_program_in(getenv("PATH"), name), variables);
	return ((execve_fn)find(EXECVPE))(name, arguments, variables);
}

TW_API int execve(const char *path, char *const arguments[], char *const variables[])
{
	return execute(path, arguments, variables);
}

TW_API int execv(const char *path, char *const arguments[])
{
	return execute(path, arguments, environ);
}

TW_API int execvpe(const char *name, char *const arguments[], char *const variables[])
{
	return execute_found(name, arguments, variables);
}

TW_API int execvp(const char *name, char *const arguments[])
{
	return execute_found(name, arguments, environ);
}

/* Builds an array of the arguments up to NULL on the caller's frame, and leaves `list` after it. */
#define TAKE_ARGUMENTS(out, list, first)                                                                         \
	do {                                                                                                     \
		size_t taken = 0, count = 1;                                                                     \
                                                                                                                 \
		va_start(list, first);                                                                           \
		for (const char *next = first; next; next = va_arg(list, const char *))                          \
			count++;                                                                                 \
		va_end(list);                                                                                    \
		out = alloca(count * sizeof *out);                                                               \
		va_start(list, first);                                                                           \
		for (const char *next = first; (out[taken++] = (char *)next); next = va_arg(list, const char *)) \
			;                                                                                        \
	} while (0)

TW_API int execl(const char *path, const char *first, ...)
{
	char **arguments;
	va_list list;

	TAKE_ARGUMENTS(arguments, list, first);
	va_end(list);
	return execute(path, arguments, environ);
}

TW_API int execlp(const char *name, const char *first, ...)
{
	char **arguments;
	va_list list;

	TAKE_ARGUMENTS(arguments, list, first);
	va_end(list);
	return execute_found(name, arguments, environ);
}

TW_API int execle(const char *path, const char *first, ...)
{
	char *const *variables, **arguments;
	va_list list;

	TAKE_ARGUMENTS(arguments, list, first);
	variables = va_arg(list, char *const *);
	va_end(list);
	return execute(path, arguments, variables);
}

TW_API int execveat(int folder, const char *path, char *const arguments[], char *const variables[], int flags)
{
	char *const *given = variables;

	tw_longer_record_open();
	if (tw_agent_environment_is_ours())
		given = ENVIRONMENT_FOR(*path ? tw_agent_program_at(folder, path) : tw_agent_program_of(folder),
					variables);
	return ((execveat_fn)find(EXECVEAT))(folder, path, arguments, given, flags);
}

TW_API int fexecve(int fd, char *const arguments[], char *const variables[])
{
	char *const *given = variables;

	tw_longer_record_open();
	if (tw_agent_environment_is_ours())
		given = ENVIRONMENT_FOR(tw_agent_program_of(fd), variables);
	return ((fexecve_fn)find(FEXECVE))(fd, arguments, given);
}

static int began(int error)
{
	if (!error)
		tw_preload_child_began();
	return error;
}

/* A spawned program is a child. */
TW_API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[])
{
	char *const *given = variables;

	if (tw_agent_environment_is_followed())
		given = ENVIRONMENT_FOR(tw_agent_program_at(AT_FDCWD, path), variables);
	tw_preload_child_begins();
	return began(((spawn_fn)find(SPAWN))(pid, path, actions, attributes, arguments, given));
}

TW_API int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[])
{
	char *const *given = variables;

	if (tw_agent_environment_is_followed())
		given = ENVIRONMENT_FOR(tw_agent_program_in(getenv("PATH"), name), variables);
	tw_preload_child_begins();
	return began(((spawn_fn)find(SPAWNP))(pid, name, actions, attributes, arguments, given));
}
