/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - finds the program that is about to be executed, and whether it can be traced (base/program.h).
 *
 * Runs in children of vfork() and in signal handlers: uses system calls and the stack only.
 */
#include "agent/agent.h"

#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

/* Text without an interpreter is run by a shell, which is traced. */
static enum tw_program_kind classify_at(int fd, bool is_ours)
{
	enum tw_program_kind kind = TW_PROGRAM_UNKNOWN;
	char text[TW_PROGRAM_TEXT_BYTES];

	for (unsigned depth = 0; fd >= 0 && depth < TW_PROGRAM_SCRIPTS_MAX; depth++) {
		kind = tw_program_classify(fd, text);
		if (is_ours)
			tw_sys_close(fd);
		if (kind != TW_PROGRAM_SCRIPT)
			return kind;
		if (!*text)
			return TW_PROGRAM_TRACED;
		fd = tw_sys_open_at(AT_FDCWD, text);
		is_ours = true;
	}
	if (fd >= 0 && is_ours)
		tw_sys_close(fd);
	return TW_PROGRAM_UNKNOWN;
}

enum tw_program_kind tw_agent_program_of(int fd)
{
	return classify_at(fd, false);
}

enum tw_program_kind tw_agent_program_at(int folder, const char *name)
{
	return classify_at(tw_sys_open_at(folder, name), true);
}

enum tw_program_kind tw_agent_program_in(const char *list, const char *name)
{
	char path[4096];
	size_t name_bytes = strlen(name);

	if (strchr(name, '/'))
		return tw_agent_program_at(AT_FDCWD, name);
	if (!list)
		list = "/bin:/usr/bin";
	for (;; list++) {
		size_t bytes = strcspn(list, ":");

		if (bytes + name_bytes + 2 <= sizeof path) {
			memcpy(path, list, bytes);
			path[bytes] = '/';
			memcpy(path + bytes + (bytes > 0), name, name_bytes + 1);
			if (tw_sys_may_execute(path))
				return tw_agent_program_at(AT_FDCWD, path);
		}
		list += bytes;
		if (!*list)
			return TW_PROGRAM_UNKNOWN;
	}
}
