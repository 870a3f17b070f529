/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle.c - turns linkage names of C++ and Rust into readable ones, with libiberty, which c++filt, gdb and perf use too.
 *
 * It is linked statically, and into the command only: traced programs are spared it.
 */
#include "views/names/names.h"
#include "views/output/output.h"

#include <libiberty/demangle.h>
#include <stdlib.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

bool tw_name_is_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 || strstr(name, ".llvm.");
}

/* Without DMGL_VERBOSE the hashes of Rust's names are left out. */
char *tw_name_demangled(const char *name)
{
	if (!tw_name_is_mangled(name))
		return NULL;
	/* Link-time optimization makes local functions global with a suffix that says nothing. */
	const char *suffix = strstr(name, ".llvm.");
	char *stem = suffix ? strndup(name, (size_t)(suffix - name)) : NULL;
	const char *whole = stem ? stem : name;
	char *text = rust_demangle(whole, OPTIONS);
	if (!text)
		text = cplus_demangle_v3(whole, OPTIONS);
	/* A name of C. */
	if (!text && stem && *stem)
		return stem;
	free(stem);
	return text;
}

char *tw_name_demangled_inside(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 ? cplus_demangle_v3(name, OPTIONS) : NULL;
}
