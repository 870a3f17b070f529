/* SPDX-License-Identifier: Apache-2.0 */
/* own_path.c - where this program lies: the agent and other programs are found and run from there, wherever all were moved to. */
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int tw_command_path(char path[PATH_MAX])
{
	ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[bytes > 0 ? bytes : 0] = 0;
	char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) : -1;
}

int tw_run_program(const char *name, char **argv)
{
	static char file[NAME_MAX + 1];
	char self[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	int error = ENOENT, parent = tw_command_path(self);

	if (!*name || *name == '-' || strchr(name, '/') ||
	    snprintf(file, sizeof file, "tracewheel-%s", name) >= (int)sizeof file)
		return TW_EXIT_OK;
	argv[0] = file;
	if (parent >= 0) {
		snprintf(path, sizeof path, "%.*s/%s", parent, self, file);
		execv(path, argv);
		error = errno;
	}
	if (error == ENOENT) {
		execvp(file, argv);
		error = errno;
		/* Also where a folder of PATH may not be searched. */
		if (error == EACCES || error == ENOTDIR)
			error = ENOENT;
	}
	if (error == ENOENT)
		return TW_EXIT_OK;
	return tw_fail("the program %s could not be started: %s.", file, strerror(error));
}
