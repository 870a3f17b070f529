/* SPDX-License-Identifier: Apache-2.0 */
/* sys_linux.c - system calls made directly, without errno and cancellation. */
#include "base/sys.h"
#include "base/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined __x86_64__
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#else
#error "write the system call of this processor here"
#endif
}

int tw_sys_thread_id(void)
{
	return (int)call6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

int tw_sys_process_id(void)
{
	return (int)call6(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

int tw_sys_parent_process_id(void)
{
	return (int)call6(SYS_getppid, 0, 0, 0, 0, 0, 0);
}

int tw_sys_processors(void)
{
	uint64_t allowed[8192 / 64]; /* the kernel refuses less than it has */
	long bytes = call6(SYS_sched_getaffinity, 0, sizeof allowed, (long)(uintptr_t)allowed, 0, 0, 0);
	int count = 0;

	for (long i = 0; i < bytes / (long)sizeof allowed[0]; i++)
		count += __builtin_popcountll(allowed[i]);
	return count ? count : 1;
}

/* Called in hits: the vector registers may be the program's. */
#define NO_VECTORS __attribute__((target("general-regs-only")))

NO_VECTORS int tw_sys_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec limit = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
	long result = call6(SYS_futex, (long)word, FUTEX_WAIT, (long)expected,
			    timeout_ns == UINT64_MAX ? 0 : (long)&limit, 0, 0);

	return result == -EAGAIN ? 0 : (int)result;
}

NO_VECTORS int tw_sys_futex_wake(const _Atomic uint32_t *word, int count)
{
	return (int)call6(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

void tw_sys_sleep(uint64_t ns)
{
	struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	call6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

int tw_sys_open_to_read(const char *path)
{
	return (int)call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

int tw_sys_open_at(int folder, const char *path)
{
	return (int)call6(SYS_openat, folder, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0);
}

long tw_sys_read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	return call6(SYS_pread64, fd, (long)out, (long)bytes, (long)offset, 0, 0);
}

NO_VECTORS bool tw_sys_read_own_word(uintptr_t address, uint64_t *value)
{
	struct iovec local = {value, sizeof *value}, remote = {(void *)address, sizeof *value};

	return call6(SYS_process_vm_readv, tw_sys_process_id(), (long)&local, 1, (long)&remote, 1, 0) == sizeof *value;
}

/* The kernel stops before the first piece that cannot be read. */
void tw_sys_read_own_words(const uintptr_t *addresses, size_t count, uint64_t *values)
{
	struct iovec remote[TW_SYS_WORDS_MAX];
	int pid = tw_sys_process_id();

	for (size_t i = 0; i < count; i++) {
		remote[i] = (struct iovec){(void *)addresses[i], sizeof *values};
		values[i] = 0;
	}
	for (size_t at = 0; at < count; at++) {
		struct iovec local = {values + at, (count - at) * sizeof *values};
		long bytes =
			call6(SYS_process_vm_readv, pid, (long)&local, 1, (long)(remote + at), (long)(count - at), 0);

		if (bytes < 0 && bytes != -EFAULT)
			return;
		if (bytes > 0)
			at += (size_t)bytes / sizeof *values;
	}
}

int tw_sys_stat(int fd, struct stat *out)
{
	return (int)call6(SYS_fstat, fd, (long)out, 0, 0, 0, 0);
}

bool tw_sys_has_capabilities(int fd)
{
	return call6(SYS_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0;
}

bool tw_sys_may_execute(const char *path)
{
	return call6(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) == 0;
}

long tw_sys_read(int fd, void *out, size_t bytes)
{
	return call6(SYS_read, fd, (long)out, (long)bytes, 0, 0, 0);
}

int tw_sys_write_all(int fd, const void *from, size_t bytes)
{
	const char *at = from;

	while (bytes) {
		long n = call6(SYS_write, fd, (long)at, (long)bytes, 0, 0, 0);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (n != -EINTR) {
			return n ? (int)n : -EIO;
		}
	}
	return 0;
}

void tw_sys_close(int fd)
{
	call6(SYS_close, fd, 0, 0, 0, 0, 0);
}

int tw_sys_protect(void *address, size_t bytes, int protection)
{
	return (int)call6(SYS_mprotect, (long)address, (long)bytes, protection, 0, 0, 0);
}

int tw_sys_lock(void *address, size_t bytes, bool on_fault)
{
	return (int)call6(SYS_mlock2, (long)address, (long)bytes, on_fault ? MLOCK_ONFAULT : 0, 0, 0, 0);
}

int tw_sys_unlock(void *address, size_t bytes)
{
	return (int)call6(SYS_munlock, (long)address, (long)bytes, 0, 0, 0, 0);
}

void tw_sys_populate_read(void *address, size_t bytes)
{
	call6(SYS_madvise, (long)address, (long)bytes, MADV_POPULATE_READ, 0, 0, 0);
}

/* Kernels before 5.14 lack the advice: touch each page, which is correct but may raise SIGBUS. */
int tw_sys_populate_write(void *address, size_t bytes)
{
	int result = (int)call6(SYS_madvise, (long)address, (long)bytes, MADV_POPULATE_WRITE, 0, 0, 0);

	if (result != -EINVAL)
		return result;
	for (size_t at = 0; at < bytes; at += 4096) {
		_Atomic char *page = (_Atomic char *)((char *)address + at);
		/* RELAXED sys.touch: adds 0 to a byte, only to make its page present. */
		tw_fetch_add_relaxed(page, 0);
	}
	return 0;
}

static void *mapped(long result)
{
	return result < 0 && result >= -4095 ? NULL : (void *)result;
}

void *tw_sys_reserve(size_t bytes)
{
	return mapped(call6(SYS_mmap, 0, (long)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

int tw_sys_map_growing(void *page)
{
	return mapped(call6(SYS_mmap, (long)page, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE | MAP_GROWSDOWN, -1, 0))
		       ? 0
		       : -ENOMEM;
}

int tw_sys_map_again(void *page, void *at, size_t bytes)
{
	return mapped(call6(SYS_mremap, (long)page, 0, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)at, 0))
		       ? 0
		       : -ENOMEM;
}

void *tw_sys_map_more(void *address, size_t bytes, size_t more_bytes)
{
	return mapped(call6(SYS_mremap, (long)address, (long)bytes, (long)more_bytes, MREMAP_MAYMOVE, 0, 0));
}

void tw_sys_unmap(void *address, size_t bytes)
{
	call6(SYS_munmap, (long)address, (long)bytes, 0, 0, 0, 0);
}

int tw_sys_keep_from_children(void *address, size_t bytes)
{
	return (int)call6(SYS_madvise, (long)address, (long)bytes, MADV_DONTFORK, 0, 0, 0);
}

int tw_sys_share_with_children(void *address, size_t bytes)
{
	return (int)call6(SYS_madvise, (long)address, (long)bytes, MADV_DOFORK, 0, 0, 0);
}

int tw_sys_map_over(void *address, size_t bytes)
{
	return mapped(call6(SYS_mmap, (long)address, (long)bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0))
		       ? 0
		       : -ENOMEM;
}

int tw_sys_membarrier_register(bool code)
{
	return (int)call6(SYS_membarrier,
			  code ? MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
			       : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
			  0, 0, 0, 0, 0);
}

int tw_sys_membarrier(bool code)
{
	return (int)call6(SYS_membarrier,
			  code ? MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE : MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0,
			  0, 0);
}

static char *put_decimal(char *end, unsigned n)
{
	do {
		*--end = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return end;
}

/*
 * Fields count from the last parenthesis: the command's name may hold anything, also ") ".  A leader that has ended
 * while other threads continue looks like a zombie, but has threads (field 20).
 */
static int parse_stat(const char *text, uint64_t *out)
{
	const char *p = strrchr(text, ')');
	bool is_zombie;

	if (!p || !p[1])
		return -ENOENT;
	is_zombie = p[2] == 'Z' || p[2] == 'X';
	for (int field = 2; p && field < 20; field++)
		p = strchr(p + 1, ' ');
	if (!p || (is_zombie && strtoul(p + 1, NULL, 10) <= 1))
		return -ENOENT;
	for (int field = 20; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -ENOENT;
	*out = strtoull(p + 1, NULL, 10);
	return 0;
}

/* A short file as text; a negative errno. */
static int read_text(const char *path, char *text, size_t bytes)
{
	long fd = call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0), got;

	if (fd < 0)
		return (int)fd;
	got = call6(SYS_read, fd, (long)text, (long)bytes - 1, 0, 0, 0);
	call6(SYS_close, fd, 0, 0, 0, 0, 0);
	if (got <= 0)
		return -ENOENT;
	text[got] = '\0';
	return 0;
}

static int read_start_time(const char *path, uint64_t *out)
{
	char text[1024];
	int error = read_text(path, text, sizeof text);

	return error ? error : parse_stat(text, out);
}

void tw_sys_boot_id(uint8_t out[16])
{
	char text[40];
	unsigned digits = 0;

	memset(out, 0, 16);
	if (read_text("/proc/sys/kernel/random/boot_id", text, sizeof text))
		return;
	for (const char *p = text; *p && digits < 32; p++) {
		int value = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;

		if (value < 0)
			continue;
		out[digits / 2] |= (uint8_t)(value << (digits % 2 ? 0 : 4));
		digits++;
	}
}

static void append_number(char *path, int number)
{
	char digits[12], *end = digits + sizeof digits - 1;

	*end = '\0';
	strcat(path, put_decimal(end, (unsigned)number));
}

int tw_sys_process_start_time(int pid, uint64_t *out)
{
	char path[32] = "/proc/";

	append_number(path, pid);
	strcat(path, "/stat");
	return read_start_time(path, out);
}

int tw_sys_thread_start_time(int pid, int tid, uint64_t *out)
{
	char path[48] = "/proc/";

	append_number(path, pid);
	strcat(path, "/task/");
	append_number(path, tid);
	strcat(path, "/stat");
	return read_start_time(path, out);
}

uint64_t tw_sys_pid_namespace(void)
{
	struct stat st;

	return call6(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0) == 0 ? st.st_ino : 0;
}

bool tw_sys_is_process_gone(int pid, uint64_t start_time)
{
	uint64_t found;
	int error = tw_sys_process_start_time(pid, &found);

	/* Even if no file can be opened, the kernel can tell that a process does not exist. */
	if (error && error != -ENOENT)
		return call6(SYS_kill, pid, 0, 0, 0, 0, 0) == -ESRCH;
	return error ? true : found != start_time;
}

bool tw_sys_is_process_there(int pid)
{
	return call6(SYS_kill, pid, 0, 0, 0, 0, 0) != -ESRCH;
}

bool tw_sys_is_thread_alive(int pid, int tid)
{
	return call6(SYS_tgkill, pid, tid, 0, 0, 0, 0) != -ESRCH;
}

bool tw_sys_read_of_thread(int pid, int tid, const char *file, char *text, size_t bytes)
{
	char path[64];
	long got;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, file);
	fd = tw_sys_open_to_read(path);
	got = fd >= 0 ? tw_sys_read(fd, text, bytes - 1) : 0;
	if (fd >= 0)
		tw_sys_close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool tw_sys_name_of_thread(int pid, int tid, char name[16])
{
	char text[18];
	size_t bytes;

	if (!tw_sys_read_of_thread(pid, tid, "comm", text, sizeof text))
		return false;
	bytes = strlen(text);
	/* The kernel appends a line feed, and the name may contain others. */
	bytes -= text[bytes - 1] == '\n';
	memset(name, 0, 16);
	memcpy(name, text, bytes < 15 ? bytes : 15);
	return true;
}

void tw_sys_thread_name(char name[16])
{
	memset(name, 0, 16);
	call6(SYS_prctl, PR_GET_NAME, (long)name, 0, 0, 0, 0);
}

bool tw_sys_await_end(int child, uint64_t timeout_ns)
{
	struct timespec timeout = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
	int fd = (int)call6(SYS_pidfd_open, child, 0, 0, 0, 0, 0), status;
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	if (fd >= 0) {
		call6(SYS_ppoll, (long)&ended, 1, (long)&timeout, 0, 0, 0);
		tw_sys_close(fd);
	}
	return call6(SYS_wait4, child, (long)&status, WNOHANG | __WALL, 0, 0, 0) == child;
}

bool tw_sys_only_ancestors_trace(void)
{
	int fd = tw_sys_open_to_read("/proc/sys/kernel/yama/ptrace_scope");
	char scope = '0';

	if (fd < 0)
		return false;
	tw_sys_read(fd, &scope, 1);
	tw_sys_close(fd);
	return scope == '1';
}

void tw_sys_let_trace(int pid)
{
	call6(SYS_prctl, PR_SET_PTRACER, pid, 0, 0, 0, 0);
}

/* As getdents64 returns them. */
struct entry {
	uint64_t inode, offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

void tw_sys_each_name(int folder, void (*fn)(int folder, const char *name, void *arg), void *arg)
{
	_Alignas(struct entry) char buffer[4096];
	long got;

	while ((got = call6(SYS_getdents64, folder, (long)buffer, sizeof buffer, 0, 0, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			at += entry->bytes;
			if (entry->name[0] != '.')
				fn(folder, entry->name, arg);
		}
	}
}

int tw_sys_fork(const char *name)
{
	int parent = tw_sys_process_id(), child;
	uint64_t saved;

	tw_sys_block_signals(&saved);
	/* No signal at its end: neither SIGCHLD nor wait() tells other code of it. */
	child = (int)call6(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (child) {
		tw_sys_restore_signals(&saved);
		return child;
	}
	call6(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	call6(SYS_prctl, PR_SET_NAME, (long)name, 0, 0, 0, 0);
	/* Agents carry this file, and may not call libc's _exit(). */
	if (tw_sys_parent_process_id() != parent)
		call6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	return 0;
}

NO_VECTORS int tw_sys_block_signals(uint64_t *saved)
{
	uint64_t all = ~UINT64_C(0);

	return (int)call6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)saved, sizeof all, 0, 0);
}

NO_VECTORS int tw_sys_restore_signals(const uint64_t *saved)
{
	return (int)call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)saved, 0, sizeof *saved, 0, 0);
}

NO_VECTORS void tw_sys_blocked_signals(uint64_t *out)
{
	*out = 0;
	call6(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)out, sizeof *out, 0, 0);
}

NO_VECTORS void tw_sys_signal_stack(struct tw_sys_signal_stack *out)
{
	stack_t stack = {0};

	*out = (struct tw_sys_signal_stack){0};
	if (call6(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0) < 0 || (stack.ss_flags & SS_DISABLE))
		return;
	out->low = (uintptr_t)stack.ss_sp;
	out->high = out->low + stack.ss_size;
	out->is_disarmed_in_handlers = ((unsigned)stack.ss_flags & SS_AUTODISARM) != 0;
}

bool tw_sys_set_signal_stack(void *low, size_t bytes)
{
	stack_t stack = {.ss_sp = low, .ss_size = bytes, .ss_flags = bytes ? 0 : SS_DISABLE};

	return call6(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0) == 0;
}

int tw_sys_send_again(int signal, const void *info)
{
	return (int)call6(SYS_rt_tgsigqueueinfo, tw_sys_process_id(), tw_sys_thread_id(), signal, (long)info, 0, 0);
}

void tw_sys_default_signal(int signal)
{
	/* As the kernel has it: handler, flags, restorer, mask. */
	const uint64_t action[4] = {0};

	call6(SYS_rt_sigaction, signal, (long)action, 0, sizeof action[3], 0, 0);
}
