/* SPDX-License-Identifier: Apache-2.0 */
/* own_path.c - where this program lies: the agent and other programs are found from there, wherever all were moved to. */
#include "tools/tool.h"

#include <unistd.h>

int tw_command_path(char path[PATH_MAX])
{
	ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[bytes > 0 ? bytes : 0] = 0;
	char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) : -1;
}
