/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle.c - turns linkage names of C++ and Rust into readable ones.
 *
 * The demangler of libstdc++ is loaded at the first such name, so that the command neither links C++ nor contains a
 * demangler of its own; without libstdc++ the linkage names are shown.
 */
#include "tools/common/names.h"
#include "tools/tool.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef char *demangle_fn(const char *name, char *buffer, size_t *bytes, int *status);

static demangle_fn *find_demangler(void)
{
	static demangle_fn *found;
	static bool is_searched;
	if (!is_searched) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		if (library)
			*(void **)&found = dlsym(library, "__cxa_demangle");
		is_searched = true;
	}
	return found;
}

char *tw_name_demangled(const char *name)
{
	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	demangle_fn *demangle = find_demangler();
	int status = -1;
	char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
	if (status == 0)
		return text;
	free(text);
	return NULL;
}
