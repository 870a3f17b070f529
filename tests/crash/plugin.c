/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - a library whose constructor makes traced calls; the outer one opens the inner one there. */
#include "tests/crash/work.h"

#include <dlfcn.h>

__attribute__((visibility("default"))) int plugin_calls;

__attribute__((constructor)) static void begin(void)
{
	for (int i = 0; i < 10; i++)
		crash_step((uint64_t)plugin_calls++, 0);
#ifdef INNER
	void *inner = dlopen(INNER, RTLD_NOW);
	const int *inner_calls = inner ? dlsym(inner, "plugin_calls") : 0;

	plugin_calls += inner_calls ? *inner_calls : 1000000;
	for (int i = 0; i < 10; i++)
		crash_step((uint64_t)plugin_calls++, 0);
#endif
}
