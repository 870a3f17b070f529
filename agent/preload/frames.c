/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c - lets unwinders find stubs and copies, which belong to no object.
 *
 *	libgcc		asks _dl_find_object() (since libc 2.35) for the object that contains an address
 *	libunwind	asks dl_iterate_phdr() for all objects; so does LLVM's library of the same name
 *
 * For our code, both are answered here.  The first asks by address, so nobody else sees the answer.  The second lists
 * objects; ours are added behind the others, and only for callbacks that lie in a library called libunwind.
 * Registering frames is no alternative: see docs/decisions/0035.
 *
 * Threads: any, signal handlers too.
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "breakpoints/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#if __GLIBC_PREREQ(2, 35)

typedef int (*find_fn)(void *, struct dl_find_object *);
typedef int (*callback_fn)(struct dl_phdr_info *, size_t, void *);
typedef int (*iterate_fn)(callback_fn, void *);

TW_REAL(find_fn, object, "_dl_find_object")
TW_REAL(iterate_fn, iterate, "dl_iterate_phdr")

/* Looked up early: a handler must not call the loader. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_object();
	find_iterate();
}

TW_API int _dl_find_object(void *pc, struct dl_find_object *out)
{
	struct tw_unwind_code code;
	find_fn real = find_object();
	int result;

	if (!real)
		return -1;
	if (!tw_unwind_find_code((uintptr_t)pc, &code))
		return real(pc, out);
	/* They belong to this library's object. */
	result = real((void *)(uintptr_t)&find_object, out);
	if (result)
		return result;
	out->dlfo_map_start = (void *)(uintptr_t)code.start;
	out->dlfo_map_end = (void *)(uintptr_t)code.end;
	out->dlfo_eh_frame = (void *)(uintptr_t)code.header;
	return 0;
}

static bool is_libunwind(callback_fn callback)
{
	static const char prefix[] = "libunwind";
	struct dl_find_object object;
	const char *name, *slash;

	if (!find_object() || find_object()((void *)(uintptr_t)callback, &object))
		return false;
	name = object.dlfo_link_map->l_name;
	slash = strrchr(name, '/');
	return !strncmp(slash ? slash + 1 : name, prefix, sizeof prefix - 1);
}

struct list {
	callback_fn callback;
	void *data;
};

static int show(const struct tw_unwind_code *code, void *arg)
{
	const struct list *list = arg;
	uintptr_t start = (uintptr_t)code->start;
	const ElfW(Phdr) headers[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = (uintptr_t)code->end - start},
		{.p_type = PT_GNU_EH_FRAME,
		 .p_flags = PF_R,
		 .p_vaddr = (uintptr_t)code->header - start,
		 .p_memsz = code->header_bytes},
	};
	struct dl_phdr_info info = {.dlpi_addr = start,
				    .dlpi_name = "[tracewheel]",
				    .dlpi_phdr = headers,
				    .dlpi_phnum = sizeof headers / sizeof *headers};

	/* The fields up to the number of headers. */
	return list->callback(&info, offsetof(struct dl_phdr_info, dlpi_adds), list->data);
}

TW_API TAIL_CALLING int dl_iterate_phdr(callback_fn callback, void *data)
{
	struct list list = {callback, data};
	struct tw_unwind_code stubs;
	iterate_fn real = find_iterate();
	int result;

	if (!is_libunwind(callback))
		TAIL_CALL real(callback, data);
	/* First, because this library's object describes them too, for libgcc. */
	tw_unwind_return_stubs(&stubs);
	result = show(&stubs, &list);
	if (!result)
		result = real(callback, data);
	return result ? result : tw_unwind_each_code(show, &list);
}

#endif
