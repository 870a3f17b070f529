/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - opens plugins in every way that depends on the caller, uses and closes them.
 *
 * Each argument is opened, its name printed, its work called five times, and closed again; "-N NAME" does
 * so N times; "-t NAME" on four threads, a hundred times each.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int use(const char *name, int is_quiet)
{
	void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	int (*work)(int);
	const char *plugin;

	if (!handle) {
		printf("%s: cannot be opened\n", name);
		return 1;
	}
	if (dlerror())
		printf("%s: opened, and yet an error\n", name);
	work = (int (*)(int))dlsym(handle, "plugin_work");
	plugin = dlsym(handle, "plugin_name");
	if (!work || !plugin || work(5) != 35)
		printf("%s: does not work\n", name);
	else if (!is_quiet)
		printf("%s: %s\n", name, plugin);
	if (dlclose(handle))
		printf("%s: cannot be closed\n", name);
	return 0;
}

static void *use_often(void *name)
{
	for (int i = 0; i < 100; i++)
		use(name, 1);
	return NULL;
}

static void use_on_threads(char *name)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, use_often, name);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-t"))
			use_on_threads(argv[++i]);
		else if (argv[i][0] == '-')
			for (int n = atoi(argv[i++] + 1); n > 0; n--)
				use(argv[i], 1);
		else
			use(argv[i], 0);
	}
	printf("still loaded: %s\n", getenv("PLUGIN") ? getenv("PLUGIN") : "nothing");
	return 0;
}
