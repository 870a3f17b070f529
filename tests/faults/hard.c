/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hard.c - programs that are hard to trace: each mode does something unusual among traced calls, checks its own
 * results, and ends with an exit code of its own.
 *
 *	hard MODE	prints "MODE: as it should be" and ends with 0; anything else is a failure
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP  __attribute__((noinline))
#define DEPTH 200

/* How many, here and in ./run test --long. */
static unsigned rounds(unsigned in_short, unsigned in_long)
{
	return getenv("TW_TEST_LONG") ? in_long : in_short;
}

/* ---- what is traced ---- */

static KEEP uint64_t leaf(uint64_t a)
{
	__asm__ volatile("" : "+r"(a));
	return a * 3 + 1;
}

/* Each level has a frame of about 64 bytes. */
static KEEP uint64_t deep(unsigned levels, uint64_t a)
{
	uint64_t here = levels ? deep(levels - 1, a + levels) : leaf(a);

	__asm__ volatile("" : "+r"(here));
	return here + levels;
}

static uint64_t deep_answer(unsigned levels, uint64_t a)
{
	return (a + (uint64_t)levels * (levels + 1) / 2) * 3 + 1 + (uint64_t)levels * (levels + 1) / 2;
}

static KEEP void want(int is_right, const char *what)
{
	if (!is_right) {
		fprintf(stderr, "hard: wrong: %s\n", what);
		_exit(9);
	}
}

static KEEP uint64_t work(uint64_t seed)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 20; i++) {
		errno = (int)i;
		want(deep(i, seed) == deep_answer(i, seed), "a result");
		want(errno == (int)i, "errno");
		sum += leaf(i);
	}
	return sum;
}

/* ---- threads ---- */

static void *in_thread(void *arg)
{
	return (void *)(uintptr_t)work((uintptr_t)arg);
}

/* In the short form, threads of which there are thousands make few calls each. */
static void *in_short_thread(void *arg)
{
	errno = 7;
	want(deep(3, (uintptr_t)arg) == deep_answer(3, (uintptr_t)arg), "a result");
	want(errno == 7, "errno");
	return arg;
}

static void run_thread(size_t stack_bytes, void *(*run)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (stack_bytes)
		want(!pthread_attr_setstacksize(&attributes, stack_bytes), "the size of a stack");
	want(!pthread_create(&thread, &attributes, run, NULL), "a thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void small_stacks(void)
{
	for (unsigned i = 0; i < 50; i++)
		run_thread(64 << 10, in_thread);
}

static void many_threads(void)
{
	/* More than there are rings. */
	for (unsigned i = 0, all = rounds(5000, 10000); i < all; i++)
		run_thread(0, rounds(0, 1) ? in_thread : in_short_thread);
}

/* A thread that ends among traced calls. */
static KEEP void leave_at(unsigned levels)
{
	if (!levels)
		pthread_exit(NULL);
	leave_at(levels - 1);
	__asm__ volatile("");
}

static void *leaving(void *arg)
{
	work(1);
	leave_at(20);
	return arg;
}

/* Or is cancelled there. */
static void *waiting(void *arg)
{
	work(2);
	for (;;)
		pause();
	return arg;
}

static void ended_threads(void)
{
	for (unsigned i = 0, all = rounds(60, 200); i < all; i++) {
		pthread_t a, b;
		void *result;

		want(!pthread_create(&a, NULL, leaving, NULL) && !pthread_create(&b, NULL, waiting, NULL), "a thread");
		pthread_cancel(b);
		pthread_join(a, NULL);
		pthread_join(b, &result);
		want(result == PTHREAD_CANCELED, "a cancelled thread");
	}
}

/* ---- stacks ---- */

static sigjmp_buf back;
static volatile uint64_t levels_reached;

static KEEP uint64_t endless(uint64_t a)
{
	volatile char space[256];

	space[a % 256] = 1;
	levels_reached = a;
	return endless(a + 1) + (uint64_t)space[a % 256];
}

static void on_overflow(int number)
{
	(void)number;
	want(leaf(1) == 4, "a call in the handler");
	siglongjmp(back, 1);
}

static void *overflow_once(void *arg)
{
	stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};

	sigaltstack(&stack, NULL);
	if (!sigsetjmp(back, 1))
		endless(0);
	want(levels_reached > 100, "a stack that overflows early");
	work(3);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return arg;
}

static void overflow(void)
{
	struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};

	sigaction(SIGSEGV, &action, NULL);
	for (unsigned i = 0; i < 5; i++) {
		pthread_attr_t attributes;
		pthread_t thread;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, 512 << 10);
		want(!pthread_create(&thread, &attributes, overflow_once, NULL), "a thread");
		pthread_join(thread, NULL);
		pthread_attr_destroy(&attributes);
	}
}

/* ---- processes ---- */

static KEEP pid_t fork_at(unsigned levels)
{
	pid_t child = levels ? fork_at(levels - 1) : fork();

	__asm__ volatile("" : "+r"(child));
	return child;
}

static void forks(void)
{
	for (unsigned i = 0, all = rounds(15, 50); i < all; i++) {
		pid_t child = fork_at(20);
		int status = 0;

		if (child == 0) {
			work(4);
			_exit(17);
		}
		work(5);
		want(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 17,
		     "a child");
	}
}

/* ---- system calls that fail ---- */

#define REFUSE(call) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* Refuses everything that a tracer might need once the program runs. */
static void refuse_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_membarrier),
		REFUSE(SYS_openat),
		REFUSE(SYS_open),
		REFUSE(SYS_memfd_create),
		REFUSE(SYS_process_vm_readv),
		REFUSE(SYS_ftruncate),
		REFUSE(SYS_unlink),
		REFUSE(SYS_socket),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

	want(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	     "a filter");
}

static void filtered(void)
{
	work(6);
	refuse_calls();
	work(7);
	for (unsigned i = 0; i < 20; i++)
		run_thread(0, in_thread);
}

/* Only read, write, exit and sigreturn: anything else ends the process. */
static void strict(void)
{
	static const char text[] = "strict: as it should be\n";

	unsigned all = rounds(200, 1000);

	work(8);
	want(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "strict mode");
	for (unsigned i = 0; i < all; i++)
		work(9);
	syscall(SYS_write, 1, text, sizeof text - 1);
	syscall(SYS_exit, 0);
}

/* ---- programs that read their own code ---- */

/* The addresses of all sleds, collected by the linker. */
extern void *const __start___patchable_function_entries[], *const __stop___patchable_function_entries[];

static int is_in_a_sled(uintptr_t address)
{
	for (void *const *at = __start___patchable_function_entries; at < __stop___patchable_function_entries; at++)
		if (address - (uintptr_t)*at < 9)
			return 1;
	return 0;
}

/* Compares the program's code with its file. */
static int own_code(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	int file = open("/proc/self/exe", O_RDONLY), *changed = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		const uint8_t *here = (const uint8_t *)(info->dlpi_addr + part->p_vaddr);
		uint8_t *there = malloc(part->p_filesz);

		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			want(there && pread(file, there, part->p_filesz, (off_t)part->p_offset) ==
					      (ssize_t)part->p_filesz,
			     "the program's file");
			for (size_t at = 0; at < part->p_filesz; at++) {
				if (here[at] == there[at])
					continue;
				want(is_in_a_sled((uintptr_t)here + at), "code outside of sleds");
				++*changed;
			}
		}
		free(there);
	}
	close(file);
	return 1; /* the first object is the program */
}

static void own_bytes(void)
{
	int changed = 0;

	for (unsigned i = 0; i < 20; i++) {
		work(i);
		dl_iterate_phdr(own_code, &changed);
	}
	/* The caller uses it to check that local tracing had an effect. */
	fprintf(stderr, "hard: %s bytes of sleds were changed\n", changed ? "some" : "no");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"small_stacks", small_stacks},
		{"many_threads", many_threads},
		{"ended_threads", ended_threads},
		{"overflow", overflow},
		{"forks", forks},
		{"filtered", filtered},
		{"strict", strict},
		{"own_bytes", own_bytes},
	};

	for (size_t i = 0; i < sizeof modes / sizeof *modes && argc > 1; i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].run();
		want(deep(DEPTH, 1) == deep_answer(DEPTH, 1), "a last result");
		printf("%s: as it should be\n", argv[1]);
		return 0;
	}
	fprintf(stderr, "hard: which mode?\n");
	return 2;
}
