/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - text files of /proc/PID: proc.h. */
#include "tools/common/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_BYTES 4096

_Static_assert(PATH_MAX >= PAGE_BYTES, "a name may reach into a second page");

long tw_proc_read(int pid, const char *name, char *out, size_t capacity)
{
	char path[128];
	size_t used = 0;
	ssize_t got = 0;
	out[0] = 0;
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (used < capacity - 1 && (got = read(fd, out + used, capacity - 1 - used)) > 0)
		used += (size_t)got;
	int error = got < 0 ? errno : 0;
	close(fd);
	used -= used && out[used - 1] == '\n';
	out[used] = 0;
	return error ? -error : (long)used;
}

long tw_proc_status(int pid, const char *key, unsigned index)
{
	char text[4096];
	size_t bytes = strlen(key);
	tw_proc_read(pid, "status", text, sizeof text);
	for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, key, bytes) != 0 || line[bytes] != ':')
			continue;
		char *at = line + bytes + 1;
		for (; index && *at && *at != '\n'; index--)
			strtol(at, &at, 10);
		return strtol(at, NULL, 10);
	}
	return -1;
}

bool tw_proc_has_filter(int thread)
{
	return tw_proc_status(thread, "Seccomp_filters", 0) > tw_proc_status(getpid(), "Seccomp_filters", 0);
}

char tw_proc_state(int pid)
{
	char text[1024];
	tw_proc_read(pid, "stat", text, sizeof text);
	const char *at = strrchr(text, ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

bool tw_proc_maps(int pid, const char *part, const char *end, char path[PATH_MAX])
{
	char name[64], *line = NULL;
	size_t capacity = 0, bytes = strlen(end);
	snprintf(name, sizeof name, "/proc/%d/maps", pid);
	FILE *maps = fopen(name, "re");
	path[0] = 0;
	while (maps && !path[0] && getline(&line, &capacity, maps) > 0) {
		const char *file = strchr(line, '/');
		line[strcspn(line, "\n")] = 0;
		size_t length = file ? strlen(file) : 0;
		if (file && strstr(file, part) && length >= bytes && length < PATH_MAX &&
		    strcmp(file + length - bytes, end) == 0)
			memcpy(path, file, length + 1);
	}
	free(line);
	if (maps)
		fclose(maps);
	return path[0] != 0;
}

int tw_proc_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	return *end || number < 1 || number > INT_MAX ? 0 : (int)number;
}

bool tw_proc_started_as(int pid, char path[PATH_MAX])
{
	char text[1024];
	long bytes = tw_proc_read(pid, "auxv", text, sizeof text);
	ssize_t got = 0;
	for (long at = 0; at + (long)sizeof(Elf64_auxv_t) <= bytes && got <= 0; at += (long)sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;
		memcpy(&entry, text + at, sizeof entry);
		/* The stack may end behind the name: a part that cannot be read whole is not read. */
		size_t first = PAGE_BYTES - entry.a_un.a_val % PAGE_BYTES;
		struct iovec here = {path, PATH_MAX},
			     there[] = {{(void *)entry.a_un.a_val, first},
					{(void *)(entry.a_un.a_val + first), PATH_MAX - first}};
		if (entry.a_type == AT_EXECFN)
			got = process_vm_readv(pid, &here, 1, there, first < PATH_MAX ? 2 : 1, 0);
	}
	return got > 0 && memchr(path, 0, (size_t)got);
}

int tw_proc_program(int pid, char path[PATH_MAX])
{
	char name[64];
	snprintf(name, sizeof name, "/proc/%d/exe", pid);
	ssize_t bytes = readlink(name, path, PATH_MAX - 1);
	path[bytes > 0 ? bytes : 0] = 0;
	return bytes < 0 ? -errno : 0;
}
