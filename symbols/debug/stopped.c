/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopped.c - unwinds stopped threads of another process, by libdwfl and the call frame information of its files: stopped.h.
 *
 * Files are opened as the process sees them.  Of code that no file describes, as a just-in-time compiler's, there are no frames.
 */
#include "symbols/debug/stopped.h"

#include "base/file.h"

#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#define REGISTERS 17

struct tw_stopped {
	int process;
	Dwfl *dwfl;
	const struct user_regs_struct *registers;
	struct tw_stopped_frame *frames;
	size_t count, capacity;
	bool is_too_deep;
};

/* ---- files ---- */

static int find_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	char place[PATH_MAX];
	struct stat status;
	int process = (int)(intptr_t)*data, fd;

	(void)module, (void)base, (void)elf;
	*path = NULL;
	if (*name != '/' || snprintf(place, sizeof place, "/proc/%d/root%s", process, name) >= (int)sizeof place)
		return -1;
	fd = tw_file_open(place, &status);
	return fd < 0 ? -1 : fd;
}

static int find_nothing(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word checksum, char **path)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)checksum, (void)path;
	return -1;
}

static const Dwfl_Callbacks files = {.find_elf = find_file, .find_debuginfo = find_nothing};

/* ---- registers and memory ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct tw_stopped *stopped = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = stopped;
	return stopped->process;
}

static bool get_thread(Dwfl *dwfl, pid_t id, void *arg, void **thread)
{
	(void)dwfl, (void)id;
	*thread = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *arg)
{
	struct tw_stopped *stopped = arg;
	struct iovec here = {out, sizeof *out}, there = {(void *)(uintptr_t)address, sizeof *out};

	(void)dwfl;
	return process_vm_readv(stopped->process, &here, 1, &there, 1, 0) == sizeof *out;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct user_regs_struct *r = ((struct tw_stopped *)arg)->registers;
	const Dwarf_Word words[REGISTERS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
					     r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};

	return dwfl_thread_state_registers(thread, 0, REGISTERS, words);
}

static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
					      .get_thread = get_thread,
					      .memory_read = read_word,
					      .set_initial_registers = set_registers};

/* ---- opening ---- */

/* Reads what is needed to unwind, so that no file is opened while a thread is stopped. */
static int prepare(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr low, void *arg)
{
	Dwarf_Addr bias;

	(void)data, (void)name, (void)low, (void)arg;
	dwfl_module_eh_cfi(module, &bias);
	dwfl_module_getsymtab(module);
	return DWARF_CB_OK;
}

static int give_process(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr low, void *arg)
{
	(void)module, (void)name, (void)low;
	*data = arg;
	return DWARF_CB_OK;
}

bool tw_stopped_open(int process, struct tw_stopped **out)
{
	struct tw_stopped *stopped = calloc(1, sizeof *stopped);

	if (!stopped)
		return false;
	stopped->process = process;
	stopped->dwfl = dwfl_begin(&files);
	if (!stopped->dwfl || dwfl_linux_proc_report(stopped->dwfl, process) != 0 ||
	    dwfl_report_end(stopped->dwfl, NULL, NULL) != 0)
		goto close;
	dwfl_getmodules(stopped->dwfl, give_process, (void *)(intptr_t)process, 0);
	if (!dwfl_attach_state(stopped->dwfl, NULL, process, &threads, stopped))
		goto close;
	dwfl_getmodules(stopped->dwfl, prepare, NULL, 0);
	*out = stopped;
	return true;
close:
	tw_stopped_close(stopped);
	return false;
}

void tw_stopped_close(struct tw_stopped *stopped)
{
	if (!stopped)
		return;
	if (stopped->dwfl)
		dwfl_end(stopped->dwfl);
	free(stopped);
}

/* ---- symbols ---- */

static uint64_t exported(Dwfl_Module *module, const char *function)
{
	int count = dwfl_module_getsymtab(module);

	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		GElf_Word section;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, NULL, NULL);

		if (name && strcmp(name, function) == 0 && symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
			return address;
	}
	return 0;
}

struct wanted {
	const char *ending, *function;
	uint64_t address;
	void (*found)(const char *object, bool is_program, void *arg);
	void *arg;
	bool is_first;
};

static bool ends_with(const char *text, const char *ending)
{
	size_t bytes = strlen(text), end = strlen(ending);

	return bytes >= end && strcmp(text + bytes - end, ending) == 0;
}

static int look_for_symbol(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr low, void *arg)
{
	struct wanted *wanted = arg;

	(void)data, (void)low;
	if (!ends_with(name, wanted->ending))
		return DWARF_CB_OK;
	wanted->address = exported(module, wanted->function);
	return DWARF_CB_ABORT;
}

uint64_t tw_stopped_symbol(struct tw_stopped *stopped, const char *ending, const char *function)
{
	struct wanted wanted = {.ending = ending, .function = function};

	dwfl_getmodules(stopped->dwfl, look_for_symbol, &wanted, 0);
	return wanted.address;
}

static int look_for_exporter(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr low, void *arg)
{
	const struct wanted *wanted = arg;
	char program[PATH_MAX], link[64];
	ssize_t bytes;

	(void)low;
	snprintf(link, sizeof link, "/proc/%d/exe", (int)(intptr_t)*data);
	bytes = readlink(link, program, sizeof program - 1);
	program[bytes > 0 ? bytes : 0] = '\0';
	if (exported(module, wanted->function))
		wanted->found(name, strcmp(name, program) == 0, wanted->arg);
	return DWARF_CB_OK;
}

void tw_stopped_exporters(struct tw_stopped *stopped, const char *function,
			  void (*found)(const char *object, bool is_program, void *arg), void *arg)
{
	struct wanted wanted = {.function = function, .found = found, .arg = arg};

	dwfl_getmodules(stopped->dwfl, look_for_exporter, &wanted, 0);
}

/* ---- frames ---- */

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct tw_stopped *stopped = arg;
	struct tw_stopped_frame *out = &stopped->frames[stopped->count];
	Dwfl_Module *module;
	Dwarf_Addr pc;
	bool is_interrupted;

	if (stopped->count == stopped->capacity || !dwfl_frame_pc(frame, &pc, &is_interrupted)) {
		stopped->is_too_deep = true;
		return DWARF_CB_ABORT;
	}
	*out = (struct tw_stopped_frame){.pc = pc, .is_interrupted = is_interrupted};
	module = dwfl_addrmodule(stopped->dwfl, pc - !is_interrupted);
	if (module) {
		out->object = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
		out->function = dwfl_module_addrname(module, pc - !is_interrupted);
	}
	stopped->count++;
	return DWARF_CB_OK;
}

size_t tw_stopped_frames(struct tw_stopped *stopped, const struct user_regs_struct *registers,
			 struct tw_stopped_frame *frames, size_t capacity)
{
	stopped->registers = registers;
	stopped->frames = frames;
	stopped->count = 0;
	stopped->capacity = capacity;
	stopped->is_too_deep = false;
	if (dwfl_getthread_frames(stopped->dwfl, stopped->process, add_frame, stopped) != 0 || stopped->is_too_deep)
		return 0;
	return stopped->count;
}
