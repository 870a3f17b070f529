/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.c - one thread of the program is made to begin another one, which loads the agent: inject.h.
 *
 *  1 look: which objects has it, where is space behind libc's code, is it one that this can be done to?
 *  2 stop a thread after the other, each for a moment, until one is at a safe point (safe.c)
 *  3 write the code, and the words for it, where the program does not look: below the stack of the thread, and behind the code of libc
 *  4 change the thread's registers, once, and let it go: it comes back by itself (inject_x86_64.S)
 *  5 take back what was written behind libc's code; fill the file that the new thread has made; wait until it is loaded
 *
 * The death of this command at any point leaves a program that goes on: before 4 nothing of it was changed that it uses, behind 4 it needs
 * nothing.  One command at a time does this to a process.
 */
#include "tools/attach/inject.h"

#include "base/waited.h"
#include "tools/attach/dormant.h"
#include "tools/attach/fit.h"
#include "tools/attach/inject_words.h"
#include "tools/attach/safe.h"
#include "tools/common/proc.h"
#include "tools/tool.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define PAGE_BYTES UINT64_C(4096)
/* How long a safe point is looked for; how long one thread may take to stop, and the program to do what it was made to do. */
#define LOOK_NS UINT64_C(3000000000)
#define STOP_NS UINT64_C(2000000000)
#define WORK_NS UINT64_C(8000000000)
/* The red zone of the calling convention, and space for the limit of a call that is begun again. */
#define RED_BYTES 160
/* The kernel's form of a system call that it would begin again, if no register were changed. */
#define RESTART_AS_HANDLED	  (-512)
#define RESTART_ALWAYS		  (-513)
#define RESTART_UNLESS_HANDLED	  (-514)
#define RESTART_BY_BLOCK	  (-516)
#define REGISTER_WORDS		  17
#define SYSCALL_INSTRUCTION_BYTES 2

extern const char tw_inject_bootstrap[], tw_inject_bootstrap_back[], tw_inject_bootstrap_end[], tw_inject_image[],
	tw_inject_image_end[];

struct inject {
	struct tw_dormant *dormant;
	int process, thread;
	int memory; /* /proc/PID/mem */
	struct tw_safe *safe;
	struct tw_safe_libc libc;
	uint64_t space;		 /* behind libc's code */
	uint64_t area;		 /* where the image is to be */
	const char *why_not;	 /* the last reason why a thread was at no safe point */
	struct tw_waited waited; /* of the thread that was stopped last */
	struct tw_waited_process waits;
};

static void nap(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

/* For tests: the command is killed here. */
static void step(void)
{
	static int count;
	const char *wanted = getenv("TRACEWHEEL_INJECT_KILL");
	if (wanted && ++count == atoi(wanted))
		raise(SIGKILL);
}

static int refuse(struct inject *inject, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(inject->dormant->reason, sizeof inject->dormant->reason, format, list);
	va_end(list);
	return TW_EXIT_NOT_STARTED;
}

static bool get(const struct inject *inject, uint64_t address, void *bytes, size_t count)
{
	return pread(inject->memory, bytes, count, (off_t)address) == (ssize_t)count;
}

static bool put(const struct inject *inject, uint64_t address, const void *bytes, size_t count)
{
	return pwrite(inject->memory, bytes, count, (off_t)address) == (ssize_t)count;
}

/* ---- 1 ---- */

struct mapping {
	uint64_t low, high;
	bool is_code, is_writable;
	char path[PATH_MAX];
};

/* Calls @see for each mapping, until it returns false. */
static void each_mapping(int process, bool (*see)(const struct mapping *mapping, void *arg), void *arg)
{
	char name[64], *line = NULL;
	size_t capacity = 0;
	bool is_going_on = true;
	snprintf(name, sizeof name, "/proc/%d/maps", process);
	FILE *maps = fopen(name, "re");
	while (maps && is_going_on && getline(&line, &capacity, maps) > 0) {
		struct mapping mapping = {0};
		unsigned long low, high;
		char flags[8];
		int at = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &low, &high, flags, &at) < 3)
			continue;
		mapping.low = low;
		mapping.high = high;
		mapping.is_code = flags[2] == 'x';
		mapping.is_writable = flags[1] == 'w';
		snprintf(mapping.path, sizeof mapping.path, "%s", at ? line + at : "");
		is_going_on = see(&mapping, arg);
	}
	free(line);
	if (maps)
		fclose(maps);
}

/* The first page of libc, which has its headers; and the largest gap between mappings. */
struct places {
	uint64_t libc, last, gap, gap_bytes;
};

static bool see_place(const struct mapping *mapping, void *arg)
{
	struct places *places = arg;
	const char *slash = strrchr(mapping->path, '/');
	if (!places->libc && slash && strcmp(slash, "/libc.so.6") == 0)
		places->libc = mapping->low;
	/* Not between program and heap, which grows, and not below the stack. */
	if (places->last && mapping->high >> 47 == 0 && strcmp(mapping->path, "[stack]") != 0 &&
	    mapping->low - places->last > places->gap_bytes) {
		places->gap = places->last;
		places->gap_bytes = mapping->low - places->last;
	}
	places->last = mapping->high;
	return true;
}

/* Behind the code of libc, up to the end of its last page, nothing is. */
static uint64_t find_space(const struct inject *inject, uint64_t base)
{
	size_t bytes = (size_t)(tw_inject_bootstrap_end - tw_inject_bootstrap);
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	char there[256];
	if (!get(inject, base, &header, sizeof header) || bytes > sizeof there)
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		if (!get(inject, base + header.e_phoff + i * sizeof segment, &segment, sizeof segment))
			return 0;
		uint64_t end = (base + segment.p_vaddr + segment.p_memsz + 15) & ~UINT64_C(15);
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || end % PAGE_BYTES == 0 ||
		    end % PAGE_BYTES + bytes > PAGE_BYTES || !get(inject, end, there, bytes))
			continue;
		bool is_free = true;
		for (size_t k = 0; k < bytes; k++)
			is_free &= there[k] == 0;
		/* As an earlier command has left it that was killed. */
		if (is_free || memcmp(there, tw_inject_bootstrap, bytes - sizeof(uint64_t)) == 0)
			return end;
	}
	return 0;
}

static int look(struct inject *inject)
{
	char reason[TW_SAFE_REASON_BYTES], name[64];
	struct places places = {0};
	int process = inject->process;
	if (!tw_fit(inject->dormant))
		return TW_EXIT_NOT_STARTED;
	snprintf(name, sizeof name, "/proc/%d/mem", process);
	inject->memory = open(name, O_RDWR | O_CLOEXEC);
	if (inject->memory < 0) {
		inject->dormant->thread = process;
		tw_dormant_refuse_by_rights(inject->dormant);
		return TW_EXIT_NOT_STARTED;
	}
	if (!tw_safe_open(process, &inject->safe, &inject->libc, reason))
		return refuse(
			inject,
			"process %d cannot be attached to while it runs: %s. Start it with the agent (docs/attach.md).",
			process, *reason ? reason : "there is no memory");
	each_mapping(process, see_place, &places);
	inject->space = places.libc ? find_space(inject, places.libc) : 0;
	inject->area = (places.gap + places.gap_bytes / 2) & ~(PAGE_BYTES - 1);
	if (!inject->space || places.gap_bytes < 64 * PAGE_BYTES)
		return refuse(
			inject,
			"process %d cannot be attached to while it runs: there is no space behind the code of its libc. Start it "
			"with the agent (docs/attach.md).",
			process);
	return 0;
}

/* ---- 2 ---- */

enum stopped { STOPPED, NOT_STOPPED, GONE, NEVER };

/* Signals that come meanwhile are passed on.  NEVER: it did not stop in time; the kernel lets it go when this command ends. */
static enum stopped stop(int thread)
{
	uint64_t deadline_ns = tw_now_ns() + STOP_NS;
	int status;
	if (ptrace(PTRACE_INTERRUPT, thread, 0, 0) < 0)
		return GONE;
	for (;;) {
		int got = waitpid(thread, &status, __WALL | WNOHANG);
		if (got < 0 || (got == thread && !WIFSTOPPED(status)))
			return GONE;
		if (got == thread && status >> 16 == PTRACE_EVENT_STOP) {
			if (WSTOPSIG(status) == SIGTRAP)
				return STOPPED;
			ptrace(PTRACE_DETACH, thread, 0, 0);
			return NOT_STOPPED;
		}
		if (got == thread)
			ptrace(PTRACE_CONT, thread, 0, WSTOPSIG(status));
		else if (tw_now_ns() > deadline_ns)
			return NEVER;
		else
			nap(20000);
	}
}

struct stack {
	uint64_t pointer;
	bool is_large;
};

static bool see_stack(const struct mapping *mapping, void *arg)
{
	struct stack *stack = arg;
	if (stack->pointer < mapping->low || stack->pointer >= mapping->high)
		return true;
	stack->is_large = mapping->is_writable &&
			  stack->pointer - mapping->low >= TW_INJECT_STACK_BYTES + TW_INJECT_IMAGE_BYTES + PAGE_BYTES;
	return false;
}

/* Is it at a point where it can be used? */
static bool is_usable(struct inject *inject, int thread, const struct user_regs_struct *registers)
{
	struct stack stack = {0};
	/* For the proof that the look is needed. */
	if (!getenv("TRACEWHEEL_INJECT_UNCHECKED"))
		inject->why_not = tw_safe_why_not(inject->safe, thread, registers);
	if (inject->why_not)
		return false;
	stack.pointer = registers->rsp;
	each_mapping(inject->process, see_stack, &stack);
	if (!stack.is_large)
		inject->why_not = "the stacks of its threads are small";
	return stack.is_large;
}

/* Returns 0 with a thread that is stopped at a safe point, 1 to go on, or an exit code. */
static int try_thread(struct inject *inject, int thread, struct user_regs_struct *registers)
{
	if (ptrace(PTRACE_SEIZE, thread, 0, 0) < 0) {
		char state = errno == ESRCH ? 0 : tw_proc_state(thread);
		/* It has ended, or is about to. */
		if (!state || state == 'Z' || state == 'X')
			return 1;
		inject->dormant->thread = thread;
		tw_dormant_refuse_by_rights(inject->dormant);
		return TW_EXIT_NOT_STARTED;
	}
	tw_waited_see(&inject->waited, &inject->waits, inject->process, thread);
	enum stopped stopped = stop(thread);
	if (stopped == NEVER)
		return refuse(inject,
			      "process %d does not stop: it waits for a device, or its control group is frozen.",
			      inject->process);
	if (stopped != STOPPED)
		return 1;
	if (ptrace(PTRACE_GETREGS, thread, 0, registers) < 0) {
		ptrace(PTRACE_DETACH, thread, 0, 0);
		return 1;
	}
	/* Its call is begun again, whether it is used or not. */
	bool is_repaired = tw_waited_repair(&inject->waited, inject->process, thread, registers,
					    (registers->rsp - RED_BYTES + 16) & ~UINT64_C(15));
	if (is_usable(inject, thread, registers)) {
		inject->thread = thread;
		return 0;
	}
	if (is_repaired)
		ptrace(PTRACE_SETREGS, thread, 0, registers);
	ptrace(PTRACE_DETACH, thread, 0, 0);
	return 1;
}

/* Each thread once. As above. */
static int try_threads(struct inject *inject, struct user_regs_struct *registers)
{
	char name[64];
	int code = 1;
	snprintf(name, sizeof name, "/proc/%d/task", inject->process);
	DIR *folder = opendir(name);
	for (const struct dirent *entry; folder && code == 1 && (entry = readdir(folder));) {
		int thread = atoi(entry->d_name);
		if (thread > 0)
			code = try_thread(inject, thread, registers);
	}
	if (folder)
		closedir(folder);
	return folder ? code : refuse(inject, "process %d has just ended.", inject->process);
}

static int find_thread(struct inject *inject, struct user_regs_struct *registers)
{
	uint64_t deadline_ns = tw_now_ns() + LOOK_NS;
	int code;
	long ns = 50000;
	while ((code = try_threads(inject, registers)) == 1 && tw_now_ns() < deadline_ns) {
		nap(ns);
		ns += ns < 1000000 ? ns / 8 : 0;
		if (tw_proc_state(inject->process) == 'T')
			return refuse(inject, "process %d is stopped: continue it first (kill -CONT %d).",
				      inject->process, inject->process);
	}
	if (code == 1)
		return refuse(
			inject,
			"process %d was at no point in three seconds where a thread could be added safely: %s. Try again, or "
			"start it with the agent (docs/attach.md).",
			inject->process, inject->why_not ? inject->why_not : "it has no thread");
	return code;
}

/* ---- 3, 4 ---- */

static void set_word(char *image, unsigned offset, uint64_t value)
{
	memcpy(image + TW_INJECT_CODE_BYTES + offset, &value, sizeof value);
}

/* As the kernel would begin an interrupted system call again.  Returns what that depends on. */
static uint32_t begin_again(struct user_regs_struct *r)
{
	int64_t result = (int64_t)r->rax;
	if ((int64_t)r->orig_rax < 0)
		return TW_INJECT_RESTART_NEVER;
	if (result != RESTART_AS_HANDLED && result != RESTART_ALWAYS && result != RESTART_UNLESS_HANDLED &&
	    result != RESTART_BY_BLOCK && result != -EINTR)
		return TW_INJECT_RESTART_NEVER;
	r->rax = result == RESTART_BY_BLOCK ? SYS_restart_syscall : r->orig_rax;
	r->rip -= SYSCALL_INSTRUCTION_BYTES;
	return result == RESTART_ALWAYS	      ? TW_INJECT_RESTART_NEVER
	       : result == RESTART_AS_HANDLED ? TW_INJECT_RESTART_AS_HANDLED
					      : TW_INJECT_RESTART_UNLESS_HANDLED;
}

/* The image, and before it the registers as it gives them back. */
static bool write_image(struct inject *inject, const struct user_regs_struct *back, uint32_t restart, uint64_t at)
{
	char image[REGISTER_WORDS * sizeof(uint64_t) + TW_INJECT_IMAGE_BYTES], *words;
	uint64_t end[2] = {back->eflags, back->rsp};
	_Static_assert(offsetof(struct user_regs_struct, orig_rax) == (REGISTER_WORDS - 2) * sizeof(uint64_t),
		       "the first registers lie in the order in which they are given back");
	memcpy(image, back, (REGISTER_WORDS - 2) * sizeof(uint64_t));
	memcpy(image + (REGISTER_WORDS - 2) * sizeof(uint64_t), end, sizeof end);
	words = image + REGISTER_WORDS * sizeof(uint64_t);
	memcpy(words, tw_inject_image, TW_INJECT_IMAGE_BYTES);
	set_word(words, TW_INJECT_STATE, (uint64_t)restart << 32);
	set_word(words, TW_INJECT_BACK, back->rip);
	set_word(words, TW_INJECT_ATTRIBUTES_INIT, inject->libc.attributes_init);
	set_word(words, TW_INJECT_ATTRIBUTES_DETACHED, inject->libc.attributes_detached);
	set_word(words, TW_INJECT_CREATE, inject->libc.create);
	set_word(words, TW_INJECT_OPEN, inject->libc.open);
	set_word(words, TW_INJECT_ERROR, inject->libc.error);
	return put(inject, at, image, sizeof image);
}

static bool write_bootstrap(const struct inject *inject, uint64_t back)
{
	char bytes[256];
	size_t count = (size_t)(tw_inject_bootstrap_end - tw_inject_bootstrap);
	memcpy(bytes, tw_inject_bootstrap, count);
	memcpy(bytes + (tw_inject_bootstrap_back - tw_inject_bootstrap), &back, sizeof back);
	return put(inject, inject->space, bytes, count);
}

static bool send_thread(struct inject *inject, const struct user_regs_struct *registers)
{
	struct user_regs_struct back = *registers, there = *registers;
	uint32_t restart = begin_again(&back);
	uint64_t image_bytes = REGISTER_WORDS * sizeof(uint64_t) + TW_INJECT_IMAGE_BYTES;
	uint64_t stack = (registers->rsp - RED_BYTES - image_bytes) & ~UINT64_C(63);
	step();
	if (!write_image(inject, &back, restart, stack))
		return false;
	step();
	if (!write_bootstrap(inject, back.rip))
		return false;
	step();
	there.orig_rax = UINT64_MAX;
	there.rax = SYS_mmap;
	there.rdi = there.rbx = inject->area;
	there.rsi = there.rbp = TW_INJECT_AREA_BYTES;
	there.rdx = PROT_READ | PROT_WRITE;
	there.r10 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	there.r8 = UINT64_MAX;
	there.r9 = 0;
	there.r12 = stack + REGISTER_WORDS * sizeof(uint64_t);
	there.r13 = TW_INJECT_IMAGE_BYTES;
	there.rsp = stack;
	there.rip = inject->space;
	there.eflags = 0x202;
	bool is_set = ptrace(PTRACE_SETREGS, inject->thread, 0, &there) == 0;
	step();
	return is_set;
}

/* ---- 5 ---- */

static bool get_word(const struct inject *inject, unsigned offset, uint32_t *out)
{
	return get(inject, inject->area + TW_INJECT_CODE_BYTES + offset, out, sizeof *out);
}

/* Until the program has come so far. */
static bool await(const struct inject *inject, uint32_t state)
{
	uint64_t deadline_ns = tw_now_ns() + WORK_NS;
	uint32_t seen = 0;
	while (!(get_word(inject, TW_INJECT_STATE, &seen) && seen >= state) && tw_now_ns() < deadline_ns &&
	       tw_proc_state(inject->process))
		nap(100000);
	return seen >= state;
}

static void clear_space(const struct inject *inject)
{
	static const char nothing[256];
	put(inject, inject->space, nothing, (size_t)(tw_inject_bootstrap_end - tw_inject_bootstrap));
}

/* The part of the library that the loader maps; the rest, for debuggers and linkers, would stay in the program's memory.  0: it is damaged. */
static uint64_t loaded_bytes(int library)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint64_t end = 0;
	if (pread(library, &header, sizeof header, 0) != sizeof header)
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + i * sizeof segment);
		if (pread(library, &segment, sizeof segment, at) != sizeof segment)
			return 0;
		if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > end)
			end = segment.p_offset + segment.p_filesz;
	}
	return end;
}

static bool copy(int from, int to, uint64_t bytes)
{
	char buffer[65536];
	while (bytes) {
		ssize_t got = read(from, buffer, bytes < sizeof buffer ? (size_t)bytes : sizeof buffer);
		if (got <= 0 || write(to, buffer, (size_t)got) != got)
			return false;
		bytes -= (uint64_t)got;
	}
	return true;
}

/* The bytes of the library into the file that the new thread has made. */
static bool fill(const struct inject *inject, uint32_t file, const char *agent)
{
	char name[64], path[TW_INJECT_PATH_BYTES] = "";
	const uint32_t filled = TW_INJECT_FILLED;
	snprintf(name, sizeof name, "/proc/%d/fd/%u", inject->process, file);
	/* The loader knows libraries by their paths: with two slashes this is nobody else's. */
	snprintf(path, sizeof path, "/proc/self/fd//%u", file);
	int from = open(agent, O_RDONLY | O_CLOEXEC), to = open(name, O_WRONLY | O_CLOEXEC);
	uint64_t bytes = from >= 0 && to >= 0 ? loaded_bytes(from) : 0;
	bool is_filled = bytes && copy(from, to, bytes);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	step();
	return is_filled && put(inject, inject->area + TW_INJECT_CODE_BYTES + TW_INJECT_PATH, path, sizeof path) &&
	       put(inject, inject->area + TW_INJECT_CODE_BYTES + TW_INJECT_STATE, &filled, sizeof filled);
}

static int load(struct inject *inject, const char *agent)
{
	char text[TW_INJECT_TEXT_BYTES];
	uint32_t file = 0, created = 0;
	uint64_t handle = 0;
	int process = inject->process;
	if (!await(inject, TW_INJECT_ENTERED))
		return refuse(inject, "process %d did not get to run in time, or can map no more memory; try again.",
			      process);
	clear_space(inject);
	step();
	if (!await(inject, TW_INJECT_WAITING)) {
		get_word(inject, TW_INJECT_CREATED, &created);
		return refuse(inject, "process %d cannot have another thread: %s.", process,
			      created ? strerror((int)created) : "it did not begin in time");
	}
	step();
	if (!get_word(inject, TW_INJECT_FILE, &file) || (int)file < 0)
		return refuse(inject, "process %d can have no file in memory for the agent: %s.", process,
			      strerror(-(int)file));
	if (!fill(inject, file, agent) || !await(inject, TW_INJECT_DONE))
		return refuse(inject, "the agent could not be brought into process %d in time; try again.", process);
	step();
	if (!get(inject, inject->area + TW_INJECT_CODE_BYTES + TW_INJECT_HANDLE, &handle, sizeof handle) ||
	    !get(inject, inject->area + TW_INJECT_CODE_BYTES + TW_INJECT_TEXT, text, sizeof text))
		return refuse(inject, "process %d has just ended.", process);
	text[sizeof text - 1] = 0;
	if (!handle)
		return refuse(inject, "process %d cannot load the agent: %.400s.", process, text);
	/* Its thread gives itself the name by which it is found. */
	bool is_there = false;
	for (uint64_t deadline_ns = tw_now_ns() + WORK_NS;
	     !(is_there = tw_dormant_thread(process)) && tw_now_ns() < deadline_ns;)
		nap(100000);
	if (!is_there)
		return refuse(inject, "process %d has loaded the agent, which can have no thread.", process);
	return 0;
}

static int work(struct inject *inject, const char *agent)
{
	struct user_regs_struct registers;
	struct sched_param first = {.sched_priority = 1}, usual = {0};
	int code = look(inject);
	if (code)
		return code;
	/* A thread that waits here for a processor keeps one of the program's standing; who may not do this does without. */
	bool is_first = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
	code = find_thread(inject, &registers);
	bool is_sent = !code && send_thread(inject, &registers);
	if (!code)
		ptrace(PTRACE_DETACH, inject->thread, 0, 0);
	if (is_first)
		sched_setscheduler(0, SCHED_OTHER, &usual);
	if (code)
		return code;
	step();
	return is_sent ? load(inject, agent)
		       : refuse(inject, "the memory of process %d cannot be written.", inject->process);
}

int tw_inject(struct tw_dormant *dormant, const char *agent)
{
	struct inject inject = {.dormant = dormant, .process = dormant->process, .memory = -1};
	char name[64];
	snprintf(name, sizeof name, "/proc/%d", dormant->process);
	int lock = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		code = refuse(&inject,
			      lock < 0 ? "process %d has just ended."
				       : "another command attaches to process %d just now; try again.",
			      dormant->process);
	else
		code = work(&inject, agent);
	tw_safe_close(inject.safe);
	if (inject.memory >= 0)
		close(inject.memory);
	if (lock >= 0)
		close(lock);
	return code;
}
