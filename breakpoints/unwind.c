/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.c - the personality routine of the return stubs, and the type of an exception.
 *
 * Only libgcc's unwinder is supported.  LLVM's identifies a frame by its stack pointer alone, takes a stub's frame
 * for the one that catches, and aborts when the stub's routine does not stop there.
 */
#include "breakpoints/unwind.h"

#include "base/atomic.h"
#include "breakpoints/entry.h"
#include "breakpoints/returns.h"
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#define NAME_BYTES 256
/* "GNUCC++\0", and "CLNGC++\0" of libc++abi; the last byte is 1 in an exception that refers to another. */
#define GNU_CLASS   UINT64_C(0x474e5543432b2b00)
#define CLANG_CLASS UINT64_C(0x434c4e47432b2b00)
/* "MOZ\0RUST": as a number, like the others, in old versions; as bytes in this order in memory in newer ones. */
#define OLD_RUST_CLASS UINT64_C(0x4d4f5a0052555354)
#define RUST_CLASS     UINT64_C(0x54535552005a4f4d)

tw_bp_throw_fn tw_bp_trampoline_throw;

_Unwind_Reason_Code tw_return_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
					  struct _Unwind_Exception *exception, struct _Unwind_Context *context);

typedef _Unwind_Word (*cfa_fn)(struct _Unwind_Context *);
typedef _Unwind_Ptr (*ip_fn)(struct _Unwind_Context *);
typedef _Unwind_Reason_Code (*backtrace_fn)(_Unwind_Trace_Fn, void *);

/* libgcc's functions, found before the first call with notification of exceptions is opened. */
static struct {
	_Atomic(cfa_fn) get_cfa;
	_Atomic(ip_fn) get_ip;
	backtrace_fn backtrace;
	uintptr_t low, high; /* range of its code */
} libgcc;
_Atomic bool tw_unwind_known;

static uintptr_t cfa_of(struct _Unwind_Context *context)
{
	/* RELAXED unwind.beside: either address reaches the function. */
	return tw_load_relaxed(&libgcc.get_cfa)(context);
}

static uintptr_t ip_of(struct _Unwind_Context *context)
{
	/* RELAXED unwind.beside: as above. */
	return tw_load_relaxed(&libgcc.get_ip)(context);
}

void tw_unwind_enter_beside(struct tw_permit *permit)
{
	/* RELAXED unwind.beside: as above. */
	const void *cfa = tw_entry_beside(permit, (const void *)(uintptr_t)tw_load_relaxed(&libgcc.get_cfa));
	/* RELAXED unwind.beside: as above. */
	const void *ip = tw_entry_beside(permit, (const void *)(uintptr_t)tw_load_relaxed(&libgcc.get_ip));

	if (cfa) {
		/* RELAXED unwind.beside: as above. */
		tw_store_relaxed(&libgcc.get_cfa, (cfa_fn)(uintptr_t)cfa);
	}
	if (ip) {
		/* RELAXED unwind.beside: as above. */
		tw_store_relaxed(&libgcc.get_ip, (ip_fn)(uintptr_t)ip);
	}
}

/* ---- the unwinder ---- */

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t inside = *(const uintptr_t *)arg;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || inside - low >= info->dlpi_phdr[i].p_memsz)
			continue;
		libgcc.low = low;
		libgcc.high = low + info->dlpi_phdr[i].p_memsz;
		return 1;
	}
	return 0;
}

static bool load(void)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
	uintptr_t inside;
	cfa_fn cfa;
	ip_fn ip;

	if (!library)
		return false;
	/* The handle is kept. */
	*(void **)&cfa = dlsym(library, "_Unwind_GetCFA");
	*(void **)&ip = dlsym(library, "_Unwind_GetIP");
	*(void **)&libgcc.backtrace = dlsym(library, "_Unwind_Backtrace");
	/* RELAXED unwind.beside: published by tw_unwind_known. */
	tw_store_relaxed(&libgcc.get_cfa, cfa);
	/* RELAXED unwind.beside: as above. */
	tw_store_relaxed(&libgcc.get_ip, ip);
	inside = (uintptr_t)libgcc.backtrace;
	return cfa && ip && libgcc.backtrace && dl_iterate_phdr(find_code, &inside);
}

const char *tw_unwind_find(void)
{
	void *other = dlopen("libunwind.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (other) {
		dlclose(other);
		/* RELAXED unwind.known: calls opened meanwhile may or may not be notified of exceptions. */
		tw_store_relaxed(&tw_unwind_known, false);
		return "the program unwinds by LLVM's libunwind";
	}
	if (!libgcc.high && !load())
		return "libgcc_s is not there";
	/* PAIR unwind.known: release; acquire in tw_unwind_is_known().  The unwinder's data is visible. */
	tw_store_release(&tw_unwind_known, true);
	return NULL;
}

struct search {
	uintptr_t frame_address, found;
};

static _Unwind_Reason_Code visit_frame(struct _Unwind_Context *context, void *arg)
{
	struct search *search = arg;

	if (cfa_of(context) < search->frame_address)
		return _URC_NO_REASON;
	if (cfa_of(context) == search->frame_address)
		search->found = ip_of(context);
	/* A stub has the frame address of its caller, and precedes it. */
	return search->found && !tw_returns_is_stub(search->found) ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

uintptr_t tw_unwind_address_at(uintptr_t frame_address)
{
	struct search search = {frame_address, 0};

	if (frame_address && tw_unwind_is_known())
		libgcc.backtrace(visit_frame, &search);
	return tw_returns_is_stub(search.found) ? 0 : search.found;
}

void tw_unwind_return_stubs(struct tw_unwind_code *out)
{
	/* 12 bytes, and two rows. */
	*out = (struct tw_unwind_code){tw_return_enter, tw_return_stubs_end, tw_return_listed, 28};
}

/* ---- the exception ---- */

/*
 * The header of a C++ exception begins 80 bytes before that of the unwinder, with the type_info (Itanium C++ ABI,
 * exception handling, section 2.2.1).  In an exception that refers to another (std::rethrow_exception), it precedes
 * that one's object, after that one's own header.
 */
static const char *type_of(_Unwind_Exception_Class class, const struct _Unwind_Exception *exception)
{
	const struct type_info {
		const void *vtable;
		const char *name;
	} * type;
	const char *header = (const char *)exception - 80;

	if (class & 1) {
		const char *object;

		memcpy(&object, header, sizeof object);
		header = object - sizeof *exception - 80;
	}
	memcpy(&type, header, sizeof type);
	return type->name;
}

static void describe(_Unwind_Action actions, _Unwind_Exception_Class class, const struct _Unwind_Exception *exception,
		     char name[NAME_BYTES], struct tw_unwind *out)
{
	/* libgcc compares frames by this address, minus one if the frame below is a signal frame, as stubs are. */
	*out = (struct tw_unwind){TW_UNWIND_THROW, name, (exception->private_2 + 7) & ~UINT64_C(7)};
	if (actions & _UA_FORCE_UNWIND) {
		*out = (struct tw_unwind){TW_UNWIND_EXIT, "pthread_exit", 0};
	} else if ((class & ~UINT64_C(1)) == GNU_CLASS || (class & ~UINT64_C(1)) == CLANG_CLASS) {
		tw_sym_type_name(type_of(class, exception), name, NAME_BYTES);
	} else if (class == RUST_CLASS || class == OLD_RUST_CLASS) {
		out->class = TW_UNWIND_ERROR;
		out->name = "rust_panic";
	} else {
		out->name = "foreign";
	}
}

/* Called by the unwinder for a watched call.  It only reports: the search and the unwinding continue. */
_Unwind_Reason_Code tw_return_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
					  struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	char name[NAME_BYTES];
	struct tw_unwind unwind;
	uint64_t *slot;

	if (!(actions & _UA_CLEANUP_PHASE) || !tw_bp_trampoline_throw || caller < libgcc.low || caller >= libgcc.high)
		return _URC_CONTINUE_UNWIND;
	slot = (uint64_t *)cfa_of(context) - 1;
	if (tw_returns_find(slot) && tw_returns_is_stub(*slot)) {
		describe(actions, class, exception, name, &unwind);
		tw_bp_trampoline_throw(slot, &unwind);
	}
	return _URC_CONTINUE_UNWIND;
}
