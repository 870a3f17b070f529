/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - whether a program about to be executed can be traced; tools/record/launch.c checks the same before the
 * start.
 *
 * Runs in children of vfork() and in signal handlers: uses system calls and the stack only.
 */
#include "agent/agent.h"

#include "base/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nesting of scripts whose interpreter is a script; the kernel's limit. */
#define SCRIPTS_MAX	    5
#define PROGRAM_HEADERS_MAX 64
#define LINE_BYTES	    256

/* ld.so ignores LD_PRELOAD in programs with other privileges than their caller. */
static bool has_other_rights(int fd)
{
	struct stat status;

	if (tw_sys_stat(fd, &status))
		return false;
	return ((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
	       ((status.st_mode & S_ISGID) && status.st_gid != getgid()) ||
	       (getuid() != 0 && tw_sys_has_capabilities(fd));
}

static enum tw_agent_program classify_elf(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr table[PROGRAM_HEADERS_MAX];
	unsigned count = head->e_phnum < PROGRAM_HEADERS_MAX ? head->e_phnum : PROGRAM_HEADERS_MAX;

	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64 || head->e_phentsize != sizeof *table)
		return TW_PROGRAM_OTHER;
	if (tw_sys_read_at(fd, table, count * sizeof *table, head->e_phoff) != (long)(count * sizeof *table))
		return TW_PROGRAM_UNKNOWN;
	for (unsigned i = 0; i < count; i++) {
		char loader[LINE_BYTES] = "";
		size_t bytes = table[i].p_filesz < sizeof loader ? table[i].p_filesz : sizeof loader - 1;

		if (table[i].p_type != PT_INTERP)
			continue;
		if (tw_sys_read_at(fd, loader, bytes, table[i].p_offset) != (long)bytes ||
		    !strstr(loader, "/ld-linux-x86-64"))
			return TW_PROGRAM_OTHER;
		return has_other_rights(fd) ? TW_PROGRAM_RIGHTS : TW_PROGRAM_TRACED;
	}
	return TW_PROGRAM_STATIC;
}

/* Takes the interpreter from a script's first line; false: text without one, which shells run. */
static bool take_interpreter(char *line, char *path)
{
	size_t bytes;

	if (line[0] != '#' || line[1] != '!')
		return false;
	line += 2;
	line += strspn(line, " \t");
	bytes = strcspn(line, " \t\n");
	memcpy(path, line, bytes);
	path[bytes] = '\0';
	return bytes > 0;
}

/* True: *program is the answer; false: path holds an interpreter to examine next. */
static bool classify(int fd, enum tw_agent_program *program, char *path)
{
	union {
		Elf64_Ehdr elf;
		char text[LINE_BYTES];
	} head = {.text = ""};
	long bytes = tw_sys_read_at(fd, head.text, sizeof head.text - 1, 0);

	if (bytes >= (long)sizeof head.elf && !memcmp(head.text, ELFMAG, SELFMAG))
		*program = classify_elf(fd, &head.elf);
	else if (bytes > 0 && take_interpreter(head.text, path))
		return false;
	else
		*program = TW_PROGRAM_TRACED;
	return true;
}

static enum tw_agent_program classify_at(int fd, bool is_ours)
{
	enum tw_agent_program program = TW_PROGRAM_UNKNOWN;
	char path[LINE_BYTES];

	for (unsigned depth = 0; fd >= 0 && depth < SCRIPTS_MAX; depth++) {
		bool is_known = classify(fd, &program, path);

		if (is_ours)
			tw_sys_close(fd);
		if (is_known)
			return program;
		fd = tw_sys_open_at(AT_FDCWD, path);
		is_ours = true;
	}
	if (fd >= 0 && is_ours)
		tw_sys_close(fd);
	return TW_PROGRAM_UNKNOWN;
}

enum tw_agent_program tw_agent_program_of(int fd)
{
	return classify_at(fd, false);
}

enum tw_agent_program tw_agent_program_at(int folder, const char *name)
{
	return classify_at(tw_sys_open_at(folder, name), true);
}

enum tw_agent_program tw_agent_program_in(const char *list, const char *name)
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
