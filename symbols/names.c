/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - special names: functions that must not be hooked, our own objects, module names. */
#include "symbols/symbols.h"

#include "base/assert.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/*
 * Measured on sqlite3, python3, git and redis with all slots hooked: these break, or are called where no hook can run
 * (before or after the life of a thread's or the program's data, or by the compiler with a special calling
 * convention).
 */
static const char *const never[] = {
	"__tls_get_addr",
	"__tls_get_addr_slow",
	"__cxa_finalize",
	"__gmon_start__",
	"_ITM_deregisterTMCloneTable",
	"_ITM_registerTMCloneTable",
	"_ITM_addUserCommitAction",
	"_ITM_memcpyRtWn",
	"_ITM_memcpyRnWt",
	"_ITM_RU1",
	"_ITM_RU8",
	"mcount",
	"_mcount",
	"__fentry__",
	"__morestack",
	"_dl_runtime_resolve",
	"__xray_FunctionEntry",
	"__xray_FunctionExit",
};

/*
 * Returns of these functions must not be hooked.  They return twice (setjmp, vfork, getcontext), never
 * (exit, throw, longjmp), on another stack (swapcontext), or use their return address to know
 * their caller (dlopen, dlsym).  _setjmp and __sigsetjmp were seen to fail, the others are here by reasoning.
 * In the order of strcmp().
 */
static const char *const never_returning[] = {
	"_Exit",
	"_Unwind_Backtrace",
	"_Unwind_ForcedUnwind",
	"_Unwind_RaiseException",
	"_Unwind_Resume",
	"_Unwind_Resume_or_Rethrow",
	"_Ux86_64_getcontext",
	"_ZSt10unexpectedv",
	"_ZSt9terminatev",
	"____longjmp_chk",
	"__assert",
	"__assert_fail",
	"__assert_perror_fail",
	"__chk_fail",
	"__clone",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_pure_virtual",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__getcontext",
	"__go_getcontext",
	"__go_setcontext",
	"__libc_alloca_cutoff",
	"__libc_fatal",
	"__libc_longjmp",
	"__libc_siglongjmp",
	"__libc_start_call_main",
	"__libc_start_main",
	"__libc_vfork",
	"__longjmp_chk",
	"__setjmp",
	"__sigsetjmp",
	"__sigsetjmp_cancel",
	"__stack_chk_fail",
	"__stack_chk_fail_local",
	"__unw_getcontext",
	"__vfork",
	"_exit",
	"_longjmp",
	"_setjmp",
	"abort",
	"clone",
	"clone3",
	"dlclose",
	"dlmopen",
	"dlopen",
	"dlsym",
	"dlvsym",
	"err",
	"errx",
	"execl",
	"execle",
	"execlp",
	"execv",
	"execve",
	"execveat",
	"execvp",
	"execvpe",
	"exit",
	"fexecve",
	"getcontext",
	"longjmp",
	"makecontext",
	"pthread_exit",
	"quick_exit",
	"rt_sigreturn",
	"savectx",
	"setcontext",
	"setjmp",
	"siglongjmp",
	"sigsetjmp",
	"swapcontext",
	"thrd_exit",
	"unw_getcontext",
	"verr",
	"verrx",
	"vfork",
};

/* Functions of libc that agent/preload/ wraps and shows under their names. */
static const char *const wrapped[] = {
	"dlopen",	   "dlclose",	    "longjmp",	   "_longjmp",
	"siglongjmp",	   "__longjmp_chk", "prctl",	   "execve",
	"execv",	   "execvp",	    "execvpe",	   "execl",
	"execlp",	   "execle",	    "execveat",	   "fexecve",
	"posix_spawn",	   "posix_spawnp",  "vfork",	   "system",
	"popen",	   "mlockall",	    "sigaction",   "__sigaction",
	"signal",	   "bsd_signal",    "ssignal",	   "sysv_signal",
	"__sysv_signal",   "sigset",	    "sigaltstack", "pthread_setname_np",
	"dl_iterate_phdr",
};

static const char *const texts[TW_SYM_REFUSALS] = {
	[TW_SYM_OK] = "can be traced",
	[TW_SYM_NEVER] = "the compiler or the loader calls it where no hook can run",
	[TW_SYM_OWN_CALLER] = "the call is made by Tracewheel itself or by the dynamic loader",
	[TW_SYM_OWN] = "the function belongs to Tracewheel itself",
	[TW_SYM_LOADER] = "the function belongs to the dynamic loader",
	[TW_SYM_VDSO] = "the function belongs to the kernel's vdso",
	[TW_SYM_NULL] = "no loaded object defines the function",
	[TW_SYM_UNRESOLVED] = "the call is not bound yet and no loaded object defines the function",
	[TW_SYM_ADDRESS_TAKEN] = "the code takes the function's address from the same slot, and a hook would change it",
	[TW_SYM_NOT_FUNCTION] = "it is data, not a function",
	[TW_SYM_NO_OBJECT] = "the call leads to code outside of all loaded objects",
	[TW_SYM_IFUNC] = "the implementation is chosen at run time and the choice is not known yet",
	[TW_SYM_SLED_SHORT] = "its entry sled is too short: -fpatchable-function-entry=9 leaves space for a call",
	[TW_SYM_SLED_OTHER] =
		"its entry sled does not hold NOPs: something else has written there (a debugger's breakpoint?)",
};

const char *tw_sym_refusal_text(enum tw_sym_refusal refusal)
{
	return (unsigned)refusal < TW_SYM_REFUSALS ? texts[refusal] : "unknown reason";
}

static bool is_listed(const char *const *list, size_t count, const char *name)
{
	/* Names by the thousand are looked for, and the first letter decides for most. */
	for (size_t i = 0; i < count; i++)
		if (*list[i] == *name && !strcmp(list[i], name))
			return true;
	return false;
}

const char *tw_sym_left_alone(const char *soname)
{
	static const char *const sanitizers[] = {"libasan.so",	 "libtsan.so",	 "libubsan.so", "liblsan.so",
						 "libhwasan.so", "libclang_rt.", "libmsan.so"};

	for (size_t i = 0; i < TW_COUNT_OF(sanitizers); i++)
		if (!strncmp(soname, sanitizers[i], strlen(sanitizers[i])))
			return "it is a sanitizer, which replaces functions itself";
	return NULL;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool tw_sym_is_stack_copier(const char *path)
{
	return strstr(file_name(path), "greenlet") || strstr(file_name(path), "stacklet");
}

bool tw_sym_copies_stacks(const char *path)
{
	const char *name = file_name(path);

	/* PyPy has its stacklets inside. */
	return tw_sym_is_stack_copier(path) || !strncmp(name, "libpypy", 7) || !strncmp(name, "pypy", 4);
}

bool tw_sym_repeats_stacks(const char *path)
{
	const char *name = file_name(path);

	/* Ruby's callcc; Guile's call/cc. */
	return !strcmp(name, "continuation.so") || !strncmp(name, "libguile-", 9);
}

bool tw_sym_is_never(const char *function)
{
	/* All of them start with an underscore or an m: most names are decided here. */
	return (*function == '_' || *function == 'm') && is_listed(never, TW_COUNT_OF(never), function);
}

bool tw_sym_is_wrapped(const char *function)
{
	return is_listed(wrapped, TW_COUNT_OF(wrapped), function);
}

static int compare_name(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

/*
 * Words that a program may use for functions of its own, which return like any.  The others of the list are reserved, or
 * do what their name says wherever they are (a program's own swapcontext, a preloaded dlopen), unless their code shows
 * otherwise: tw_sym_may_return_once().
 */
static bool is_word(const char *function)
{
	static const char *const words[] = {"abort",	  "clone",   "err",  "errx", "exit",
					    "quick_exit", "savectx", "verr", "verrx"};

	return is_listed(words, TW_COUNT_OF(words), function);
}

static bool is_c_library(const char *soname)
{
	/* glibc's, musl's; older ones of glibc have some of the functions in a library for threads. */
	return !strncmp(soname, "libc.", 5) || !strncmp(soname, "libpthread.", 11);
}

bool tw_sym_is_never_returning(const char *soname, const char *function)
{
	if (soname && !is_c_library(soname) && is_word(function))
		return false;
	return bsearch(function, never_returning, TW_COUNT_OF(never_returning), sizeof *never_returning,
		       compare_name) != NULL;
}

bool tw_sym_may_return_once(const char *soname, const char *function)
{
	static const char *const names[] = {"getcontext", "setjmp", "sigsetjmp", "vfork"};

	return soname && !is_c_library(soname) && is_listed(names, TW_COUNT_OF(names), function);
}

static const char *const endless[] = {
	"_Exit",
	"_Unwind_Backtrace",
	"_Unwind_ForcedUnwind",
	"_Unwind_RaiseException",
	"_Unwind_Resume",
	"_Unwind_Resume_or_Rethrow",
	"_Ux86_64_getcontext",
	"____longjmp_chk",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__getcontext",
	"__go_getcontext",
	"__go_setcontext",
	"__libc_alloca_cutoff",
	"__libc_longjmp",
	"__libc_siglongjmp",
	"__libc_vfork",
	"__longjmp_chk",
	"__setjmp",
	"__sigsetjmp",
	"__sigsetjmp_cancel",
	"__unw_getcontext",
	"__vfork",
	"_exit",
	"_longjmp",
	"_setjmp",
	"clone",
	"clone3",
	"dlclose",
	"dlmopen",
	"dlopen",
	"dlsym",
	"dlvsym",
	"execl",
	"execle",
	"execlp",
	"execv",
	"execve",
	"execveat",
	"execvp",
	"execvpe",
	"fexecve",
	"getcontext",
	"longjmp",
	"makecontext",
	"rt_sigreturn",
	"savectx",
	"setcontext",
	"setjmp",
	"siglongjmp",
	"sigsetjmp",
	"swapcontext",
	"unw_getcontext",
	"vfork",
};

bool tw_sym_has_no_end(const char *function)
{
	return is_listed(endless, TW_COUNT_OF(endless), function);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static enum tw_sym_role role_of_name(const char *name)
{
	if (starts_with(name, "libtracewheel"))
		return TW_SYM_ROLE_OWN;
	if (starts_with(name, "ld-linux") || starts_with(name, "ld.so") || starts_with(name, "ld-2."))
		return TW_SYM_ROLE_LOADER;
	if (starts_with(name, "linux-vdso") || starts_with(name, "linux-gate"))
		return TW_SYM_ROLE_VDSO;
	return TW_SYM_ORDINARY;
}

/* Files are renamed and copied; the SONAME stays. */
enum tw_sym_role tw_sym_role_of(const char *path, const char *soname)
{
	enum tw_sym_role role = role_of_name(base_name(path));

	return role == TW_SYM_ORDINARY ? role_of_name(soname) : role;
}

void tw_sym_module_name(const char *path, char *out, size_t bytes)
{
	const char *name = base_name(path), *end = name + strlen(name);
	size_t length;

	/* The first ".so" that ends the name or a part of it: libpython3.11.so.1.0, a.cpython-311.so */
	for (const char *so = strstr(name, ".so"); so; so = strstr(so + 1, ".so"))
		if (so != name && (so[3] == '\0' || so[3] == '.')) {
			end = so;
			break;
		}
	length = (size_t)(end - name);
	if (length >= bytes)
		length = bytes - 1;
	memcpy(out, name, length);
	out[length] = '\0';
}

char *tw_sym_demangle(const char *linkage_name)
{
	char *(*demangle)(const char *, char *, size_t *, int *);
	void (*give_back)(void *);
	int status = -1;
	char *text, *copy;

	if (strncmp(linkage_name, "_Z", 2))
		return NULL;
	*(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	if (!demangle)
		return NULL;
	text = demangle(linkage_name, NULL, NULL, &status);
	copy = status == 0 ? strdup(text) : NULL;
	/* The text was allocated by the program's malloc, which may be another one. */
	*(void **)&give_back = dlsym(RTLD_DEFAULT, "free");
	if (status == 0 && give_back)
		give_back(text);
	return copy;
}
