/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - a library opened at run time: its constructor, its functions and its destructor call libc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int plugin_work(int n);

__attribute__((constructor)) static void begin(void)
{
	setenv("PLUGIN", PLUGIN_NAME, 1);
}

__attribute__((destructor)) static void end(void)
{
	unsetenv("PLUGIN");
}

__attribute__((visibility("default"))) int plugin_work(int n)
{
	static const char *volatile seven = "7"; /* volatile: a compiler may evaluate strtol itself */
	int sum = 0;

	while (n--)
		sum += (int)strtol(seven, NULL, 10);
	return sum;
}

/* Distinguishes the plugins. */
__attribute__((visibility("default"))) const char plugin_name[] = PLUGIN_NAME;
