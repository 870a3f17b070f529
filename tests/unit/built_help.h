/* SPDX-License-Identifier: Apache-2.0 */
/* built_help.h - programs that a test builds in a folder of its own; set_up() makes the folder. */
#ifndef TW_TESTS_BUILT_HELP_H
#define TW_TESTS_BUILT_HELP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[64];

/* Runs a command of the shell in the folder. */
static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool run(const char *format, ...)
{
	char command[1024];
	int used = snprintf(command, sizeof command, "cd %s && ", folder);
	va_list list;

	va_start(list, format);
	vsnprintf(command + used, sizeof command - (size_t)used, format, list);
	va_end(list);
	return system(command) == 0;
}

static int tear_down(void **state)
{
	return run("rm -rf %s", folder) ? 0 : -1;
}

#endif
