/* SPDX-License-Identifier: Apache-2.0 */
/* ports_help.h - what the programs of descriptors share: their folder, and an end when something fails. */
#ifndef PORTS_HELP_H
#define PORTS_HELP_H

#include <stdio.h>
#include <stdlib.h>

static const char *folder;

static void check(int is_right, const char *what)
{
	if (is_right)
		return;
	perror(what);
	exit(1);
}

static char *in_folder(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", folder, name);
	return path;
}

#endif
