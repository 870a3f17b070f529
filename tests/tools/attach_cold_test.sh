#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that was started without the agent is attached to, at work, and goes on as if nothing had happened: its answers, memory,
#         registers, signal masks, the times that it waits, exceptions, jumps, libraries that it closes. The death of the command at any of
#         its steps changes nothing of that. Later recordings find the agent; code and slots for calls are as before.
# Method  A program checks itself in threads of each kind, of which each is stopped at some time. The command kills itself at its n-th step.
#         Control (--long): without the look for a safe point, processes in malloc() crash or stand still.
build=$1
. "$(dirname "$0")/lib.sh"
program=
trap '[ -z "$program" ] || kill -KILL "$program" 2>/dev/null; rm -rf "$work"' EXIT

cat >lib.c <<'C'
__attribute__((noinline)) int opened(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
C
cat >app.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csetjmp>
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void check(bool is_right, const char *what)
{
	if (is_right)
		return;
	printf("wrong: %s\n", what);
	fflush(stdout);
	_exit(3);
}
static double now_ms()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static bool is_over() { return !access("end", F_OK); }
/* In the short form, threads that would use a whole processor rest for this long. */
static const unsigned rest_us = getenv("TW_TEST_LONG") ? 0 : 40000;
static void wait_so(int kind)
{
	static const timespec time = {0, 30000000};
	timeval value = {0, 30000};
	epoll_event event;
	int word = 0, poller;
	double begun = now_ms();
	switch (kind) {
	case 0: check(poll(nullptr, 0, 30) == 0, "poll"); break;
	case 1: check(nanosleep(&time, nullptr) == 0, "nanosleep"); break;
	case 2: check(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, 0, 0) == -1, "futex"); break;
	case 3:
		poller = epoll_create1(0);
		check(epoll_wait(poller, &event, 1, 30) == 0, "epoll");
		close(poller);
		break;
	default: check(select(0, nullptr, nullptr, nullptr, &value) == 0, "select");
	}
	check(now_ms() - begun >= 29.999, "a wait was shortened");
}
static void *waits(void *kind)
{
	sigset_t mine, found;
	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mine, nullptr);
	while (!is_over()) {
		wait_so((int)(long)kind);
		pthread_sigmask(SIG_SETMASK, nullptr, &found);
		check(sigismember(&found, SIGUSR2) == 1 && sigismember(&found, SIGUSR1) == 0, "signal mask");
	}
	return nullptr;
}
/* Registers, flags and the red zone, in a loop without a call. */
static void *counts(void *)
{
	while (!is_over()) {
		unsigned long found = 1;
		double value = 0, two = 2.5;
		__asm__ volatile("movsd %2, %%xmm9\n mov $0x1111, %%r8\n mov $0x2222, %%r12\n movq $0x3333, -96(%%rsp)\n mov $20000000, %%ecx\n stc\n"
				 "1: lea -1(%%rcx), %%rcx\n jrcxz 2f\n jmp 1b\n"
				 "2: sbb %0, %0\n add $1, %0\n xor $0x1111, %%r8\n or %%r8, %0\n xor $0x2222, %%r12\n or %%r12, %0\n"
				 "mov -96(%%rsp), %%r8\n xor $0x3333, %%r8\n or %%r8, %0\n movsd %%xmm9, %1"
				 : "+r"(found), "=m"(value) : "m"(two) : "rcx", "r8", "r12", "xmm9", "cc", "memory");
		check(found == 0 && value == 2.5, "registers");
		usleep(rest_us);
	}
	return nullptr;
}
extern "C" __attribute__((noinline)) int thrower(int n)
{
	if (n > 3)
		throw std::runtime_error("x");
	return n ? thrower(n + 1) + 1 : 7;
}
extern "C" __attribute__((noinline)) void jumper(jmp_buf *place) { longjmp(*place, 5); }
static void *allocates(void *)
{
	char *kept[64] = {};
	for (unsigned n = 1; !(n % 1024 == 0 && is_over()); n++) {
		char *&one = kept[n * 7919 % 64];
		check(!one || (one[0] == (char)(n * 7919 % 64) && one[20] == one[0]), "memory");
		free(one);
		one = (char *)malloc(32 + n * 31 % 3000);
		memset(one, n * 7919 % 64, 32);
		if (n % 16 == 0)
			usleep(100 + rest_us / 40);
	}
	return nullptr;
}
static void *leaves(void *)
{
	for (int n = 0; !is_over(); n++) {
		jmp_buf place;
		bool is_caught = false;
		try {
			thrower(1);
		} catch (const std::exception &) {
			is_caught = true;
		}
		check(is_caught && thrower(0) == 7, "exception");
		if (int code = setjmp(place))
			check(code == 5, "jump");
		else
			jumper(&place);
		void *library = dlopen("./lib.so", RTLD_NOW);
		check(library && ((int (*)(int))dlsym(library, "opened"))(n) == n + 1, "library");
		dlclose(library);
		pid_t child = n % 16 ? 0 : fork();
		if (n % 16 == 0 && child == 0)
			_exit(thrower(0));
		int status;
		check(n % 16 || (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7), "child");
		usleep(3000);
	}
	return nullptr;
}
int main()
{
	pthread_t threads[8];
	for (long i = 0; i < 5; i++)
		pthread_create(&threads[i], nullptr, waits, (void *)i);
	pthread_create(&threads[5], nullptr, counts, nullptr);
	pthread_create(&threads[6], nullptr, allocates, nullptr);
	pthread_create(&threads[7], nullptr, leaves, nullptr);
	for (pthread_t &thread : threads)
		pthread_join(thread, nullptr);
	puts("right");
	return 0;
}
C
gcc -O1 -shared -fPIC -o lib.so lib.c && g++ -O1 -o app app.cc -pthread -Wl,--build-id || fail "the program does not compile"

begin() {
	rm -f end
	./app >answer &
	program=$!
	wait_until has_threads 9
}
has_threads() {
	local tasks=("/proc/$program/task"/*)
	[ ${#tasks[@]} -ge "$1" ]
}
# A library may be closed while it is read.
is_as_before() {
	[ "$(python3 -I -S "$common/changed_text.py" "$program" 2>changed.err)" = 0 ]
}
end() {
	touch end
	wait "$program" || fail "the program's exit code is $?: $(cat answer)"
	is "$(cat answer)" right
	program=
}
# attach OPTION...: once more where a busy machine leaves no safe point in time.
attach() {
	for _ in 1 2 3 4 5; do
		"$tw" attach -q --force --rate none --time 100ms -o c.tw "$@" "$program" 2>err && return
		grep -q 'at no point in three seconds\|did not get to run\|in time' err || fail "attach: $(cat err)"
	done
	fail "no safe point"
}

# Each cycle brings the agent into a new process, and finds it there.
for _ in $(seq "$(rounds 1 100)"); do
	begin
	attach -t 'app:{thrower,jumper}' -t 'lib:opened' -t 'libc:{malloc,free}' --returns --exceptions
	expect 0 "$tw" info c.tw
	shows '^events *[1-9]'
	attach -t app:_ --returns
	wait_until is_as_before
	is "$(cat "/proc/$program/task"/*/comm | grep -c tw-dormant)" 1 "threads of the agent"
	is "$(ls "/proc/$program/task" | wc -l)" 10 "threads"
	expect 0 "$tw" detach "$program"
	end
done

# The command dies at each of its steps, in the short form at every second one; the next one attaches.
for number in $(seq 1 "$(rounds 2 1)" 21); do
	begin
	code=0
	TRACEWHEEL_INJECT_KILL=$number "$tw" attach -q --force --time 20ms -t app:thrower -o k.tw "$program" 2>err || code=$?
	if [ $code = 0 ]; then
		end
		break
	fi
	if [ $code != 137 ]; then
		grep -q 'at no point in three seconds\|in time' err || fail "step $number: exit code $code: $(cat err)"
	fi
	attach --time 20ms -t app:thrower
	end
done
[ "$number" -ge 8 ] || fail "only $number steps"

# A program of one thread becomes one of two; libc's own count of them is right then.
sleep 60 &
program=$!
wait_until grep -q sleep "/proc/$program/comm"
attach -t libc:_ --allow-nothing
is "$(ls "/proc/$program/task" | wc -l)" 2 "threads"
kill $program
wait $program 2>/dev/null

# Not touched, with the reason.
cat >own.c <<'C'
#include <stddef.h>
#include <unistd.h>
static char memory[1 << 20];
static size_t used;
void *malloc(size_t bytes) { used += (bytes + 15) & ~(size_t)15; return memory + used - ((bytes + 15) & ~(size_t)15); }
void free(void *memory) { (void)memory; }
int main(void) { pause(); return 0; }
C
gcc -O1 -fno-builtin -rdynamic -o own own.c || fail "the program does not compile"
./own &
program=$!
wait_until grep -q '^own' "/proc/$program/comm"
expect 125 "$tw" attach -t own:_ --allow-nothing "$program"
says "a malloc() of its own"
is "$(ls "/proc/$program/task" | wc -l)" 1 "threads"
expect 127 "$tw" detach "$program"
says "has no agent: nothing is recorded there"
kill $program
wait $program 2>/dev/null
sleep 60 &
program=$!
wait_until grep -q sleep "/proc/$program/comm"
kill -STOP "$program"
wait_until grep -q 'State:.*T' "/proc/$program/status"
expect 125 "$tw" attach -t libc:_ "$program"
says "is stopped: continue it first"
kill -CONT "$program"
if command -v strace >strace.path; then
	strace -f -o strace.out -p "$program" 2>strace.err &
	tracer=$!
	wait_until grep -q 'TracerPid:.*[1-9]' "/proc/$program/status"
	expect 125 "$tw" attach -t libc:_ "$program"
	says "is traced by process $tracer (strace)"
	kill $tracer
	wait $tracer 2>/dev/null
fi
kill $program
wait $program 2>/dev/null
program=

# Namespaces: the sentence of a refusal has the line that works. One of files alone needs none.
cat >inner.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int inner_leaf(int x) { volatile int y = x * 3; return y + 1; }
int main(void)
{
	for (int sum = 0; sum >= 0; usleep(1000))
		sum = inner_leaf(sum & 63);
	return 0;
}
C
gcc -O1 -o inner$$ inner.c -Wl,--build-id || fail "the program does not compile"
in_namespace() {
	program=$(pgrep -n -x inner$$)
}
# calls_inside COMMAND...: again where a busy machine did not let a thread stop in time.
calls_inside() {
	for _ in $(seq 20); do
		expect 0 timeout 60 "$@"
		expect 0 "$tw" info n.tw
		! grep -q '^events *[1-9]' out || return 0
	done
	fail "no call in namespaces $flags"
}
for flags in "-m" "-p -f" "-m -p -f --mount-proc" "-U -r" "-U -m -p -f -r --mount-proc"; do
	# shellcheck disable=SC2086
	[ "$(id -u)" = 0 ] && unshare $flags true 2>err || continue
	# shellcheck disable=SC2086
	unshare $flags ./inner$$ 2>unshare.err &
	outer=$!
	wait_until in_namespace
	options=(--force --time 100ms --allow-nothing -t inner$$:inner_leaf -o "$PWD/n.tw")
	if [ "$flags" = -m ]; then
		calls_inside "$tw" attach "${options[@]}" "$program"
	else
		expect 125 "$tw" attach "${options[@]}" "$program"
		way=$(sed -n 's/.*run this command inside of it[: (]*\(nsenter .*\) tracewheel attach \([0-9]*\).*/\1 \2/p' err)
		[ -n "$way" ] || fail "no way into namespaces $flags: $(cat err)"
		# shellcheck disable=SC2086
		calls_inside ${way% *} "$tw" attach "${options[@]}" "${way##* }"
	fi
	kill -KILL "$program"
	wait $outer 2>/dev/null
done
program=
[ -n "${TW_TEST_LONG:-}" ] || exit 0

# Control: where it is not looked for a safe point, some of these processes do not end well.
cat >inside.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	static char *kept[64];
	unsigned seed = 1;
	for (long n = 0; n < 20000000; n++) {
		seed = seed * 1103515245 + 12345;
		free(kept[seed >> 8 & 63]);
		kept[seed >> 8 & 63] = malloc(1100 + (seed >> 17) % 3000);
	}
	puts("right");
	return 0;
}
C
gcc -O2 -fno-builtin -o inside inside.c || fail "the program does not compile"
# ended_well COUNT SECONDS: how many of so many processes do, in so many seconds, and the exit codes of the others.
ended_well() {
	local well=0 code others= watch
	for _ in $(seq "$1"); do
		./inside >answer 2>inside.err &
		program=$!
		sleep 0.05
		timeout -s KILL 60 "$tw" attach -q --force --time 10ms --allow-nothing -t inside:_ -o c.tw "$program" 2>err
		sleep "$2" &
		watch=$!
		code=0
		wait -n $program $watch 2>inside.err || code=$?
		if [ $code = 0 ] && grep -q right answer; then well=$((well + 1)); else others+=" $code"; fi
		kill -KILL $watch $program 2>inside.err
		wait $watch $program 2>inside.err
	done
	echo "$well$others"
}
is "$(ended_well 60 300)" 60 "processes that end well"
unchecked=$(TRACEWHEEL_INJECT_UNCHECKED=1 ended_well 200 30)
[ "${unchecked%% *}" -lt 200 ] || fail "no process crashes without the look for a safe point"
program=
