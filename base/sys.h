/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - the Linux calls that libc lacks or wraps in more than a system call.
 *
 * All return 0 or a positive result, or a negative errno; none changes errno, allocates, or is a cancellation point;
 * all may be called in signal handlers.
 */
#ifndef TW_BASE_SYS_H
#define TW_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's id of the calling thread and process: never cached, so correct in any kind of child. */
int tw_sys_thread_id(void);
int tw_sys_process_id(void);
int tw_sys_parent_process_id(void);
/* The number of processors on which the calling thread may run; 1 if it is not known. */
int tw_sys_processors(void);

/*
 * Sleeps while *word == expected, at most timeout_ns (UINT64_MAX: forever).  Returns 0 when woken
 * or when the word differs, -ETIMEDOUT, or -EINTR.  The word may be shared between processes.
 */
int tw_sys_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes up to count sleepers. */
int tw_sys_futex_wake(const _Atomic uint32_t *word, int count);

/* Sleeps for this time, unless a signal arrives. */
void tw_sys_sleep(uint64_t ns);

/* Files: return a close-on-exec descriptor, or the number of bytes read. */
int tw_sys_open_to_read(const char *path);
/* The same, relative to a directory: a descriptor, or AT_FDCWD. */
int tw_sys_open_at(int folder, const char *path);
long tw_sys_read(int fd, void *out, size_t bytes);
long tw_sys_read_at(int fd, void *out, size_t bytes, uint64_t offset);
/* Writes all bytes: 0, or a negative errno after a part of them. */
int tw_sys_write_all(int fd, const void *from, size_t bytes);
struct stat;
int tw_sys_stat(int fd, struct stat *out);
/* Does executing this file give privileges that the caller may not have?  May the caller execute it? */
bool tw_sys_has_capabilities(int fd);
bool tw_sys_may_execute(const char *path);
void tw_sys_close(int fd);
/* Calls fn for each name in an open directory, but for those that begin with a dot: readdir() would call malloc(). */
void tw_sys_each_name(int folder, void (*fn)(int folder, const char *name, void *arg), void *arg);

/*
 * tw_sys_fork - a child of the calling thread, which ends when this thread does.
 *
 * The child is no concern of other code in this process: handlers of pthread_atfork() do not run, and wait() and waitpid()
 * do not see it but with __WALL.  All its signals are blocked.  It has the thread's memory as it was, and must not use what
 * another thread may have been changing: malloc(), stdio.  It ends by _exit().
 *
 * Returns 0 in the child, in the parent the child's number or a negative errno.
 */
int tw_sys_fork(const char *name);
/* Waits for the end of a child, and takes it; false: it has not ended in time. */
bool tw_sys_await_end(int child, uint64_t timeout_ns);
/* Does this system let only ancestors trace a process (Yama)?  A process may let another and its children do so too. */
bool tw_sys_only_ancestors_trace(void);
void tw_sys_let_trace(int pid);

/* mprotect(): changes the permissions of pages. */
int tw_sys_protect(void *address, size_t bytes, int protection);

/* mlock2(), with or without making pages present, and munlock(). */
int tw_sys_lock(void *address, size_t bytes, bool on_fault);
int tw_sys_unlock(void *address, size_t bytes);

/* Makes pages present and writable now; -EFAULT if their file system has no space. */
int tw_sys_populate_write(void *address, size_t bytes);
/* The same for reading, where the kernel can do it at once; whole pages. */
void tw_sys_populate_read(void *address, size_t bytes);

/* Reserves unused addresses for later mappings.  NULL: no address space. */
void *tw_sys_reserve(size_t bytes);
/*
 * Maps a page of zeroed memory, replacing any mapping, that grows downwards when touched, as a stack does: over unmapped
 * addresses, down to reserved addresses or another such page, and at most as far as a stack may grow.
 */
int tw_sys_map_growing(void *page);
/*
 * Makes a second mapping of the same shared memory, from this page and of this length, which may extend past the existing
 * mapping.  @at: replaces any mapping there.  Negative: no memory, or no address space.
 */
int tw_sys_map_again(void *page, void *at, size_t bytes);
/* Enlarges the mapping, in place or elsewhere; NULL: as above, and the mapping is unchanged. */
void *tw_sys_map_more(void *address, size_t bytes, size_t more_bytes);
void tw_sys_unmap(void *address, size_t bytes);
/* Keeps this mapping from children. */
int tw_sys_keep_from_children(void *address, size_t bytes);
/* Shares it with children again. */
int tw_sys_share_with_children(void *address, size_t bytes);
/* Maps private zeroed memory, replacing any mapping there. */
int tw_sys_map_over(void *address, size_t bytes);

/* Memory barrier on every thread of this process; with code: instruction fetch as well. */
int tw_sys_membarrier_register(bool code);
int tw_sys_membarrier(bool code);

/*
 * When a process started, in clock ticks since boot (field 22 of /proc/PID/stat): together with the pid, its unique
 * identity.  -ENOENT when there is no such process, or only a zombie of it.
 */
int tw_sys_process_start_time(int pid, uint64_t *out);
/* The kernel's random id of this boot, as its 32 hexadecimal digits say; all zeros if the kernel does not provide it. */
void tw_sys_boot_id(uint8_t out[16]);
/* The pid namespace of the calling process; 0 if the kernel does not provide it. */
uint64_t tw_sys_pid_namespace(void);
/* Is the process that had this pid and start time certainly gone?  False if that cannot be determined. */
bool tw_sys_is_process_gone(int pid, uint64_t start_time);
/* Is there a process with this number, or a zombie of one?  Also true if that cannot be determined. */
bool tw_sys_is_process_there(int pid);
/* Does this thread of this process exist?  Also true if that cannot be determined. */
bool tw_sys_is_thread_alive(int pid, int tid);
/* The start time of a thread, as tw_sys_process_start_time(); a negative errno. */
int tw_sys_thread_start_time(int pid, int tid, uint64_t *out);
/* The beginning of a file of a thread in /proc, as "status", terminated; false if there is none, or it is empty.  @bytes: of @text. */
bool tw_sys_read_of_thread(int pid, int tid, const char *file, char *text, size_t bytes);
/* The name of a thread, terminated; false if the kernel does not provide it. */
bool tw_sys_name_of_thread(int pid, int tid, char name[16]);
/* The name of the calling thread, terminated. */
void tw_sys_thread_name(char name[16]);

/* Blocks all signals that can be blocked; and restores the mask.  Words are kernel signal sets. */
int tw_sys_block_signals(uint64_t *saved);
int tw_sys_restore_signals(const uint64_t *saved);
/* The signals blocked now. */
void tw_sys_blocked_signals(uint64_t *out);

/*
 * Copies up to `bytes` (at most a page) that can be read from an address of process `pid`, which is this one: the
 * kernel stops at unmapped memory, without a signal.  Returns the number of bytes, or -EFAULT.  In this header,
 * because hits call it, and are compiled without vector registers.
 */
static inline long tw_sys_read_own_memory(long pid, void *to, uint64_t address, size_t bytes)
{
	struct {
		uint64_t base, bytes;
	} local = {(uint64_t)(uintptr_t)to, bytes}, remote[2];
	uint64_t to_page_end = 4096 - address % 4096, first = bytes < to_page_end ? bytes : to_page_end;
	long result;

	/* A piece that cannot be read as a whole is not read at all, so there is one piece per page. */
	remote[0].base = address;
	remote[0].bytes = first;
	remote[1].base = address + first;
	remote[1].bytes = bytes - first;
	/* No statement may come between these and the call: a sanitizer's code at a store uses the registers. */
	register uint64_t remote_count __asm__("r8") = bytes > first ? 2 : 1;
	register uint64_t flags __asm__("r9") = 0;
	register void *remote_at __asm__("r10") = remote;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(310L /* process_vm_readv */), "D"(pid), "S"(&local), "d"(1L), "r"(remote_at),
			   "r"(remote_count), "r"(flags)
			 : "rcx", "r11", "memory");
	return result;
}

/*
 * The words at up to TW_SYS_WORDS_MAX addresses of this process, aligned to 8, by one system call for each readable run.
 * Unreadable words are 0.
 */
#define TW_SYS_WORDS_MAX 64
void tw_sys_read_own_words(const uintptr_t *addresses, size_t count, uint64_t *values);
/* One of them; false: it cannot be read, and *value is untouched.  In hits and signal handlers. */
bool tw_sys_read_own_word(uintptr_t address, uint64_t *value);

/*
 * The processor time that all threads of this process have used, in ns: CLOCK_PROCESS_CPUTIME_ID.  A negative errno where
 * the system refuses.  The kernel adds up the threads at each call.  In this header for the same reason as above.
 */
static inline int64_t tw_sys_process_cpu_ns(void)
{
	struct {
		int64_t s, ns;
	} time = {0, 0};
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(228L /* clock_gettime */), "D"(2L /* CLOCK_PROCESS_CPUTIME_ID */), "S"(&time)
			 : "rcx", "r11", "memory");
	return result < 0 ? result : time.s * 1000000000 + time.ns;
}

/* The calling thread's alternate signal stack.  low == high: none, or (disarmed in handlers) this is a handler on it. */
struct tw_sys_signal_stack {
	uintptr_t low, high;
	bool is_disarmed_in_handlers; /* SS_AUTODISARM */
};
void tw_sys_signal_stack(struct tw_sys_signal_stack *out);
/* Gives the thread one; 0 bytes: it has none any more.  False: the thread is on one now. */
bool tw_sys_set_signal_stack(void *low, size_t bytes);

/*
 * Sends the calling thread this signal again, as siginfo_t says it came, which stays pending while it is blocked.  A negative errno on failure.
 */
int tw_sys_send_again(int signal, const void *info);
/* From now on this signal does to the process what it does to programs that say nothing of it. */
void tw_sys_default_signal(int signal);

/*
 * The stack that this thread began with, even if it runs on another one now; the first thread's may be longer.  No system
 * call.  False: not known.  In stack_glibc.c; call the other function once before, outside of hits.
 */
bool tw_sys_own_stack(uintptr_t *low, uintptr_t *high);
void tw_sys_own_stack_init(void);

#endif
