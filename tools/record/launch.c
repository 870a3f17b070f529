/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - checks a program before it is traced, and starts it. */
#include "tools/record/launch.h"
#include "tools/tool.h"

#include "base/file.h"
#include "base/program.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signals that a writer of files must survive and the traced program must not inherit. */
static const int writers_signals[] = {SIGPIPE, SIGXFSZ};
static struct sigaction before[sizeof writers_signals / sizeof *writers_signals];

static int refuse(struct tw_launch *launch, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct tw_launch *launch, int code, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(launch->reason, sizeof launch->reason, format, list);
	va_end(list);
	return code;
}

static bool is_executable_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Searches as execvp() does. Returns 0 or an exit code. */
static int find_path(struct tw_launch *launch, const char *command)
{
	struct stat st;
	if (strlen(command) >= PATH_MAX)
		return refuse(launch, TW_EXIT_NOT_FOUND, "the program's name is too long.");
	if (strchr(command, '/')) {
		strcpy(launch->path, command);
	} else {
		const char *path = getenv("PATH");
		char forbidden[PATH_MAX] = "";
		launch->path[0] = 0;
		for (const char *at = path ? path : "/bin:/usr/bin"; at;
		     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
			int bytes = (int)strcspn(at, ":");
			char candidate[PATH_MAX];
			if (snprintf(candidate, sizeof candidate, "%.*s%s%s", bytes, at, bytes ? "/" : "./", command) >=
			    PATH_MAX)
				continue;
			if (is_executable_file(candidate)) {
				strcpy(launch->path, candidate);
				break;
			}
			if (!forbidden[0] && stat(candidate, &st) == 0)
				strcpy(forbidden, candidate);
		}
		if (!launch->path[0] && !forbidden[0])
			return refuse(
				launch, TW_EXIT_NOT_FOUND,
				strchr(command, ' ')
					? "there is no program '%s' in any folder of PATH; arguments of a program are not "
					  "part of its name: write it without the quotes."
				: *command == '@'
					? "there is no program '%s' in any folder of PATH; a file of options comes first, directly "
					  "behind record."
					: "there is no program '%s' in any folder of PATH.",
				command);
		if (!launch->path[0])
			strcpy(launch->path, forbidden);
	}
	if (stat(launch->path, &st) != 0)
		return refuse(launch, TW_EXIT_NOT_FOUND, "there is no program '%s': %s.", launch->path,
			      strerror(errno));
	if (S_ISDIR(st.st_mode))
		return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' is a folder, not a program.", launch->path);
	if (!is_executable_file(launch->path))
		return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' may not be executed; `chmod +x` allows it.",
			      launch->path);
	return 0;
}

/* Refuses a program of this kind; 0: it can be traced. `text` is that of tw_program_classify(). */
static int check_kind(struct tw_launch *launch, enum tw_program_kind kind, const char *text)
{
	switch (kind) {
	case TW_PROGRAM_MACHINE:
		return refuse(launch, TW_EXIT_NOT_STARTED,
			      "'%s' is not a 64-bit x86 program; only those can be traced.", launch->program);
	case TW_PROGRAM_OBJECT:
		return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' is an ELF file, but not a program.",
			      launch->program);
	case TW_PROGRAM_UNKNOWN:
		return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' is a damaged ELF file.", launch->program);
	case TW_PROGRAM_LOADER:
		return refuse(
			launch, TW_EXIT_NOT_STARTED,
			"'%s' is loaded by '%s' and not by glibc's loader, which is the only one that can bring the "
			"tracing library in.",
			launch->program, text);
	case TW_PROGRAM_STATIC:
		return refuse(
			launch, TW_EXIT_NOT_STARTED,
			"'%s' is statically linked: it has no calls into shared libraries and no loader that could bring "
			"the tracing library in. Link it dynamically, or link libtracewheel into it.",
			launch->program);
	case TW_PROGRAM_SET_UID:
	case TW_PROGRAM_SET_GID:
		return refuse(
			launch, TW_EXIT_NOT_STARTED,
			"'%s' is set-%cid: it runs with other rights than yours, so the loader takes no tracing library "
			"from you. Run it as that user to trace it.",
			launch->program, kind == TW_PROGRAM_SET_UID ? 'u' : 'g');
	case TW_PROGRAM_CAPABILITIES:
		return refuse(
			launch, TW_EXIT_NOT_STARTED,
			"'%s' has file capabilities, so the loader takes no tracing library from you. Trace it as root.",
			launch->program);
	default: return 0;
	}
}

int tw_launch_find(struct tw_launch *launch, const char *command)
{
	memset(launch, 0, sizeof *launch);
	int code = find_path(launch, command);
	if (code)
		return code;
	strcpy(launch->program, launch->path);
	for (int depth = 0; depth < TW_PROGRAM_SCRIPTS_MAX; depth++) {
		char text[TW_PROGRAM_TEXT_BYTES];
		struct stat status;
		int fd = tw_file_open(launch->program, &status);
		if ((fd == TW_ENOENT || fd == TW_EFORMAT) && launch->is_script)
			return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' wants the interpreter '%s', which is %s.",
				      launch->path, launch->program, fd == TW_ENOENT ? "not there" : "no program");
		if (fd < 0)
			return refuse(launch, TW_EXIT_NOT_STARTED,
				      "'%s' may be executed but not read, so the loader takes no tracing "
				      "library for it.",
				      launch->program);
		enum tw_program_kind kind = tw_program_classify(fd, text);
		close(fd);
		if (kind != TW_PROGRAM_SCRIPT)
			return check_kind(launch, kind, text);
		/* As execvp() does for text without an interpreter. */
		strcpy(launch->program, *text ? text : "/bin/sh");
		launch->is_script = true;
	}
	return refuse(launch, TW_EXIT_NOT_EXECUTABLE, "'%s' is a script of a script of a script; that is too deep.",
		      launch->path);
}

bool tw_launch_agent(char path[PATH_MAX], char reason[TW_LAUNCH_REASON_BYTES])
{
	/* The installed tree; the build tree. */
	static const char *const folders[] = {"/" TW_AGENT_FOLDER, "/../lib"};
	char self[PATH_MAX];
	int parent = tw_command_path(self);
	if (parent < 0)
		parent = 0;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char candidate[2 * PATH_MAX];
		snprintf(candidate, sizeof candidate, "%.*s%s/libtracewheel-agent.so", parent, self, folders[i]);
		char *real = realpath(candidate, NULL);
		if (!real)
			continue;
		/* The loader splits LD_PRELOAD at both. */
		bool is_usable = strlen(real) < PATH_MAX && !strpbrk(real, ": ");
		if (is_usable)
			strcpy(path, real);
		else
			snprintf(reason, TW_LAUNCH_REASON_BYTES,
				 "the tracing library is in a folder with a blank or a colon in its name "
				 "(%s), which the loader "
				 "cannot preload; move it.",
				 real);
		free(real);
		return is_usable;
	}
	snprintf(reason, TW_LAUNCH_REASON_BYTES,
		 "%.*s%s/libtracewheel-agent.so is missing, with which programs are traced; install the command and it "
		 "together, and move them together.",
		 parent, self, folders[0]);
	return false;
}

/*
 * AddressSanitizer ends a program if a library was loaded before its run-time, unless an option allows it. The agent
 * removes the option again; it recognises it by the colon at the end. Returns whether it will remove the variable.
 */
static bool allow_order(void)
{
	const char *options = getenv("ASAN_OPTIONS");
	char *more;
	if (options && strstr(options, "verify_asan_link_order"))
		return false;
	if (asprintf(&more, "%s%sverify_asan_link_order=0:", options ? options : "", options && *options ? ":" : "") <
	    0)
		return false;
	setenv("ASAN_OPTIONS", more, 1);
	free(more);
	return !options || !*options;
}

/* Sets the environment of the program, which is also this process' environment from here on. */
static bool set_environment(const char *agent, const char *ring_set)
{
	const char *others = getenv("LD_PRELOAD");
	char *preload;
	bool has_others = others && *others;
	if (asprintf(&preload, "%s%s%s", agent, has_others ? ":" : "", has_others ? others : "") < 0)
		return false;
	bool is_set = setenv("LD_PRELOAD", preload, 1) == 0 && setenv("TRACEWHEEL_AGENT", ring_set, 1) == 0;
	free(preload);
	/* The agent removes an even number of variables: agent/environment.c. */
	bool is_even = !has_others;
	is_even ^= allow_order();
	return is_set && (is_even || setenv("TRACEWHEEL_EVEN", "", 1) == 0);
}

void tw_launch_ignore_signals(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (size_t i = 0; i < sizeof writers_signals / sizeof *writers_signals; i++)
		sigaction(writers_signals[i], &ignore, &before[i]);
}

/*
 * posix_spawn() rather than fork(): the recorder's memory need not be copied for a child that replaces it at once.
 * exec() itself resets the signals that are caught here.
 */
static int spawn(const struct tw_launch *launch, char **argv, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&defaults);
	for (size_t i = 0; i < sizeof writers_signals / sizeof *writers_signals; i++)
		if (before[i].sa_handler != SIG_IGN)
			sigaddset(&defaults, writers_signals[i]);
	int error = posix_spawnattr_setsigdefault(&attributes, &defaults);
	if (!error)
		error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	if (!error && launch->output)
		error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, launch->output,
							 O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (!error && (launch->is_output_ours || launch->output))
		error = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	if (!error)
		error = posix_spawn(pid, launch->path, &actions, &attributes, argv, environ);
	if (error == ENOEXEC) {
		/* Text without #!: run by the shell, as execvp() does. */
		size_t count = 0;
		while (argv[count])
			count++;
		char **words = calloc(count + 2, sizeof *words);
		if (words) {
			words[0] = (char *)"/bin/sh";
			words[1] = (char *)launch->path;
			memcpy(words + 2, argv + 1, count * sizeof *words);
			error = posix_spawn(pid, words[0], &actions, &attributes, words, environ);
		}
		free(words);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

int tw_launch_start(struct tw_launch *launch, char **argv, const char *agent, const char *ring_set, pid_t *pid)
{
	int error = set_environment(agent, ring_set) ? spawn(launch, argv, pid) : ENOMEM;
	if (!error)
		return 0;
	return refuse(launch,
		      error == ENOENT			   ? TW_EXIT_NOT_FOUND
		      : error == EAGAIN || error == ENOMEM ? TW_EXIT_NOT_STARTED
							   : TW_EXIT_NOT_EXECUTABLE,
		      "'%s' cannot be started: %s.", launch->path, strerror(error));
}
