#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program whose handlers look at the faulting instruction works under --local: they are shown the function's own
#         instruction, also if it runs as a copy; what they repair, skip, set or leave by a jump goes on as untraced; each call
#         is recorded once; and the program is told of its own handlers only.
# Method  Functions that fault in their first instructions, in a library whose constructor sets a handler before the agent
#         begins; later handlers of other kinds. The program compares each address with the label of the instruction. A second
#         program has a library that wraps sigaction() itself: it keeps the program's handlers and calls them from its own, as
#         libjsig does; and it sets handlers in several threads at once. The same runs untraced have the same output.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >lib.c <<'C'
#include <signal.h>
#define FUNCTION(name, body)                                                                                        \
	__asm__(".globl " #name ", " #name "_fault\n.type " #name ", @function\n.p2align 4\n" #name ":\n.cfi_startproc\n" \
		body "\n.cfi_endproc\n.size " #name ", .-" #name)
FUNCTION(poke, "poke_fault: movb $1, (%rdi)\nmov $7, %eax\nret");
FUNCTION(peek, "xor %eax, %eax\npeek_fault: mov (%rdi), %al\nadd $3, %eax\nret");
FUNCTION(divide, "mov %edi, %eax\ncltd\ndivide_fault: idivl (%rsi)\nadd $100, %eax\nret");
FUNCTION(skip, "skip_fault: movb $1, (%rdi)\nmov $9, %eax\nadd $1, %eax\nret");
FUNCTION(recover, "recover_fault: movb $1, (%rdi)\nmov $1, %eax\nret\n.globl recover_there\nrecover_there: mov $2, %eax\nret");
FUNCTION(leave_it, "leave_it_fault: movb $1, (%rdi)\nmov $5, %eax\nret");
FUNCTION(good, "mov %edi, %eax\nadd $2, %eax\nret\ngood_fault:");
void (*first_handler)(int, siginfo_t *, void *);
static void handle(int number, siginfo_t *info, void *context) { first_handler(number, info, context); }
void (*set_first(void))(int, siginfo_t *, void *) { return handle; }
__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSEGV, &action, 0);
	sigaction(SIGFPE, &action, 0);
}
C
cat >app.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
int poke(char *), peek(char *), divide(int, int *), skip(char *), recover(char *), leave_it(char *), good(int);
extern const char poke_fault[], peek_fault[], divide_fault[], skip_fault[], recover_fault[], recover_there[], leave_it_fault[];
extern void (*first_handler)(int, siginfo_t *, void *);
void (*set_first(void))(int, siginfo_t *, void *);
static char *page;
static const char *expected, *name;
static sigjmp_buf out;
static void look(const char *pc, const siginfo_t *info, int number)
{
	Dl_info found;
	void *frames[32];
	int count = backtrace(frames, 32), is_there = 0;
	if (pc != expected || !dladdr(pc, &found) || !found.dli_sname || strncmp(found.dli_sname, name, strlen(name)))
		printf("%s: the fault is at %+ld\n", name, (long)(pc - expected));
	if (number == SIGFPE && info && info->si_addr != expected)
		printf("%s: the address is at %+ld\n", name, (long)((char *)info->si_addr - expected));
	if (number == SIGSEGV && info && info->si_addr != page)
		printf("%s: of other memory\n", name);
	for (int i = 0; i < count; i++)
		is_there |= frames[i] == (void *)expected;
	if (!is_there)
		printf("%s: not on the stack\n", name);
}
static void on_fault(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	look((char *)registers[REG_RIP], info, number);
	if (!strcmp(name, "skip"))
		registers[REG_RIP] += 3;
	else if (!strcmp(name, "recover"))
		registers[REG_RIP] = (greg_t)recover_there;
	else if (!strcmp(name, "leave_it"))
		siglongjmp(out, 3);
	else if (number == SIGFPE)
		*(int *)registers[REG_RSI] = 5;
	else
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
static void repair(int number) { mprotect(page, 4096, PROT_READ | PROT_WRITE); }
#define TRY(what, call) (name = #what, expected = what##_fault, mprotect(page, 4096, PROT_NONE), printf(#what " %d\n", call))
static void all(void)
{
	int zero = 0;
	for (int i = 0; i < 3; i++) {
		TRY(poke, poke(page));
		TRY(peek, peek(page));
		zero = 0;
		TRY(divide, divide(35, &zero));
		TRY(skip, skip(page));
		TRY(recover, recover(page));
		TRY(leave_it, sigsetjmp(out, 1) ? -1 : leave_it(page));
		printf("good %d\n", good(i));
	}
}
int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	void *warm[4];
	setbuf(stdout, NULL);
	backtrace(warm, 4);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	first_handler = on_fault;
	all();
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, &before);
	printf("before: %d %x\n", before.sa_sigaction == set_first(), before.sa_flags & (SA_SIGINFO | SA_NODEFER));
	sigaction(SIGFPE, &action, NULL);
	all();
	printf("old: %d\n", signal(SIGSEGV, repair) == (void (*)(int))on_fault);
	TRY(poke, poke(page));
	printf("own: %d\n", signal(SIGSEGV, SIG_DFL) == repair);
	action.sa_flags |= SA_RESETHAND;
	sigaction(SIGSEGV, &action, NULL);
	TRY(peek, peek(page));
	sigaction(SIGSEGV, NULL, &before);
	printf("default: %d, refused: %d\n", before.sa_handler == SIG_DFL, sigaction(12345, &action, NULL));
	return 0;
}
C
# The linker warns of labels that are neither functions nor data.
gcc -O2 -shared -fPIC -o libfaulty.so lib.c -Wl,--build-id && gcc -O1 -fPIC -o app app.c -L. -lfaulty -Wl,-rpath,"$work" 2>gcc.log ||
	fail "the programs do not compile: $(cat gcc.log)"
./app >plain || fail "the program is wrong by itself"
! grep -q 'at\|not\|other' plain || fail "the program is wrong by itself: $(cat plain)"

for options in "" "--returns"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record --local $options -t 'libfaulty:_' -N 'libfaulty:{handle,set_first,begin}' --force -qo fault.tw -- ./app
	cmp -s out plain || fail "$options: another answer: $(diff out plain)"
	expect 0 "$tw" report --json -n 0 fault.tw
	is "$(json "sorted((f['function'], f['calls']) for f in d['by_function'])")" \
		"[('divide', 6), ('good', 6), ('leave_it', 6), ('peek', 7), ('poke', 7), ('recover', 6), ('skip', 6)]"
done

# ---- a library that keeps handlers and calls them from its own; handlers that several threads set at once ----
cat >chain.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
static struct sigaction kept;
static int has_own;
static char *own_page;
int sigaction(int number, const struct sigaction *action, struct sigaction *old_action)
{
	int (*real)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
	struct sigaction before = kept;
	if (number != SIGSEGV || !has_own)
		return real(number, action, old_action);
	if (action)
		kept = *action;
	if (old_action)
		*old_action = before;
	return 0;
}
static void handle(int number, siginfo_t *info, void *context)
{
	if (info->si_addr == own_page)
		mprotect(own_page, 4096, PROT_READ | PROT_WRITE);
	else
		kept.sa_sigaction(number, info, context);
}
void begin_chain(char *page)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
	own_page = page;
	sigaction(SIGSEGV, &action, &kept);
	has_own = 1;
}
C
cat >chained.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
int poke(char *), good(int);
extern const char poke_fault[];
void begin_chain(char *page);
static char *pages;
static int faults, strange;
static void on_fault(int number, siginfo_t *info, void *context)
{
	if (++faults > 100)
		_exit(1);
	strange += (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != poke_fault || info->si_addr != pages + 4096;
	mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE);
}
static _Thread_local int handled;
static volatile int mismatched;
static void one(int number, siginfo_t *info, void *context) { handled++; mismatched |= !info || !context; }
static void two(int number) { handled++; }
static void *set_often(void *arg)
{
	struct sigaction first = {.sa_sigaction = one, .sa_flags = SA_SIGINFO}, second = {.sa_handler = two}, before;
	for (int i = 0; i < 20000; i++) {
		sigaction(SIGPROF, i % 2 ? &first : &second, &before);
		/* Handler and flags were set together. */
		mismatched |= (before.sa_handler == two) == !!(before.sa_flags & SA_SIGINFO) && before.sa_handler != SIG_DFL;
		mismatched |= before.sa_handler != two && before.sa_sigaction != one && before.sa_handler != SIG_DFL;
		if (i % 16 == 0)
			pthread_kill(pthread_self(), SIGPROF);
	}
	return handled == 1250 ? "" : NULL;
}
int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
	pthread_t threads[3];
	int all = 1;
	pages = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	begin_chain(pages);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 3; i++) {
		mprotect(pages, 8192, PROT_NONE);
		printf("poke %d %d %d\n", poke(pages), poke(pages + 4096), good(i));
	}
	sigaction(SIGSEGV, NULL, &before);
	printf("faults %d strange %d own %d\n", faults, strange, before.sa_sigaction == on_fault);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, set_often, NULL);
	for (int i = 0; i < 3; i++) {
		void *result;
		pthread_join(threads[i], &result);
		all &= !!result;
	}
	printf("handled %d mismatched %d\n", all, mismatched);
	return 0;
}
C
gcc -O2 -shared -fPIC -o libchain.so chain.c && gcc -O1 -fPIC -o chained chained.c -L. -lchain -lfaulty -Wl,-rpath,"$work" 2>gcc.log ||
	fail "the programs do not compile: $(cat gcc.log)"
is "$(./chained)" "poke 7 7 2
poke 7 7 3
poke 7 7 4
faults 3 strange 0 own 1
handled 1 mismatched 0"
./chained >plain
expect 0 "$tw" record --local -t 'libfaulty:_' -N 'libfaulty:{handle,set_first,begin}' --force -qo chain.tw -- ./chained
cmp -s out plain || fail "another answer: $(diff out plain)"
expect 0 "$tw" report --json -n 0 chain.tw
is "$(json "sorted((f['function'], f['calls']) for f in d['by_function'])")" "[('good', 3), ('poke', 6)]"
