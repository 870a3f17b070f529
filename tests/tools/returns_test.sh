#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Returns, exceptions, longjmp and the ends of threads are recorded, each once and in order, and the program
#         runs as untraced: exceptions thrown through many watched calls, rethrown, nested, from four threads, uncaught.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.cc <<'CC'
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
namespace app {
struct Bad : std::exception { const char *what() const noexcept override { return "no"; } };
template <class T> struct Odd { T value; };
/* Memory that its destructor frees. */
struct Kept {
	char *text = strdup("forty");
	~Kept() { free(text); }
	int size() const { return (int)strlen(text); }
};
}
static thread_local jmp_buf buffer;
extern "C" {
__attribute__((noinline)) int deep(int n)
{
	app::Kept kept;
	if (n == 0)
		throw app::Bad();
	int r = deep(n - 1);
	__asm__ volatile("");
	return r + kept.size();
}
/* The call is the last instruction of its caller. */
[[noreturn]] __attribute__((noinline)) void always(int x)
{
	if (x)
		throw app::Odd<int>{1};
	throw 42;
}
__attribute__((noinline)) int calls_always(int x)
{
	try { always(x); } catch (int) { return 1; } catch (app::Odd<int> &) { return 2; }
}
[[noreturn]] __attribute__((noinline)) void at_the_end(int x) { always(x); }
__attribute__((noinline)) int catches(int n) { try { return deep(n); } catch (std::exception &) { return -1; } }
__attribute__((noinline)) int rethrows(int n)
{
	try { return deep(n); } catch (std::exception &) { try { throw 5; } catch (int) {} throw; }
}
__attribute__((noinline)) int forwards(int n)
{
	std::exception_ptr kept;
	try { deep(n); } catch (...) { kept = std::current_exception(); }
	std::rethrow_exception(kept);
}
__attribute__((noinline)) void jumps(int n) { if (!n) longjmp(buffer, 7); jumps(n - 1); __asm__ volatile(""); }
__attribute__((noinline)) int sets(int n) { if (int r = setjmp(buffer)) return r; jumps(n); return 0; }
__attribute__((noinline)) int twice(int x) { __asm__ volatile("" : "+r"(x)); return 2 * x; }
__attribute__((noinline)) int tail(int x) { __asm__ volatile("" : "+r"(x)); return twice(x + 1); }
__attribute__((noinline)) void leaves(int n) { if (!n) pthread_exit(nullptr); leaves(n - 1); __asm__ volatile(""); }
__attribute__((noinline)) void terminates() noexcept { deep(1); }
}
static void *ends(void *) { leaves(3); return nullptr; }
static void *work(void *result)
{
	int *right = (int *)result;
	for (int i = 0; i < TIMES; i++) {
		*right += catches(i % 7) == -1;
		*right += calls_always(i & 1) == 1 + (i & 1);
		*right += sets(4) == 7;
		*right += tail(20) == 42;
		try { at_the_end(0); } catch (int x) { *right += x == 42; }
		try { rethrows(3); } catch (app::Bad &) { ++*right; }
		try { forwards(2); } catch (app::Bad &e) { *right += !strcmp(e.what(), "no"); }
	}
	return nullptr;
}
int main(int argc, char **)
{
	int right[4] = {}, sum = 0;
	pthread_t threads[4];
	for (int t = 0; t < 4; t++)
		pthread_create(&threads[t], nullptr, work, &right[t]);
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], nullptr);
	for (int x : right)
		sum += x;
	pthread_t id;
	pthread_create(&id, nullptr, ends, nullptr);
	pthread_join(id, nullptr);
	std::printf("%d right\n", sum);
	std::fflush(stdout);
	if (argc > 1)
		terminates();
	return sum != 4 * 7 * TIMES;
}
CC

# many COUNT KIND [FUNCTION [REST]]: the number of such lines will be wanted by all_many; COUNT same: all lines that begin like this.
many() {
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${3:-}" "${4:-}" >>wanted
}
all_many() {
	awk -F '\t' '
		NR == FNR { count[NR] = $1; kind[NR] = $2; name[NR] = $3; rest[NR] = $4; last = NR; next }
		FNR == 1 { FS = " "; $0 = $0 }
		{
			for (i = 1; i <= last; i++) {
				if ($3 != kind[i])
					continue;
				if ($4 == "app:" name[i] || name[i] == "")
					found[i] += rest[i] == "" || index($0, rest[i])
				if (count[i] == "same")
					begun[i] += index($4, "app:" name[i]) == 1
			}
		}
		END {
			for (i = 1; i <= last; i++)
				if (found[i] + 0 != (count[i] == "same" ? begun[i] + 0 : count[i])) {
					print found[i] + 0, kind[i], name[i], rest[i] ", not", count[i], begun[i]
					is_wrong = 1
				}
			exit is_wrong || !last
		}' wanted text >&2 || fail "$how: other numbers"
	rm wanted
}

record() {
	expect 0 "$tw" record -q --force --on-full block "$@" -t 'app:_' -o app.tw -- ./app
	shows "^$((28 * times)) right\$"
	"$tw" print app.tw >print || fail "$how: print"
	# One thread after another.
	sort -s -k2,2 print >text
}

times=$(rounds 28 100)
sum=0
for ((i = 0; i < times; i++)); do
	sum=$((sum + i % 7 + 1))
done
for how in '-O2' '-O0' '-O2 -foptimize-sibling-calls -fomit-frame-pointer -fcf-protection=none' '-Os'; do
	# shellcheck disable=SC2086
	g++ $how -fpatchable-function-entry=9 -DTIMES="$times" -rdynamic -pthread -o app app.cc 2>err || fail "g++ $how"
	expect 0 ./app
	record --local --exceptions
	for f in deep catches calls_always rethrows forwards sets jumps twice tail leaves; do
		many same call "$f"
	done
	# Four threads: catches(i % 7) with i % 7 + 1 calls of deep; rethrows four; forwards three.
	deep=$((4 * sum + 4 * times * 7)) all=$((4 * times))
	many $deep call deep
	many $deep exception_from deep "throw 'app::Bad'"
	many 0 return_from deep
	many $all return_from catches
	many 0 exception_from catches
	many $all exception_from rethrows "throw 'app::Bad'"
	many $all exception_from forwards "throw 'app::Bad'"
	many $((all + all / 2)) exception_from always "throw int"
	many $((all / 2)) exception_from always "throw 'app::Odd<int>'"
	many $all exception_from at_the_end "throw int"
	many $((5 * all)) exception_from jumps "throw longjmp"
	many $all return_from sets "0x7"
	many 4 exception_from leaves "exit pthread_exit"
	many $all return_from twice "0x2a"
	many $all return_from tail "0x2a"
	many 1 exception_from 'ends(void*)' "exit pthread_exit"
	all_many
	# Every call ends once.
	calls=$(grep -c ' call app:' text) ends=$(grep -cE ' (return|exception)_from app:' text)
	[ "$calls" = "$ends" ] || fail "$how: $calls calls, $ends ends"
done

how='returns alone'
record --local --returns
many 0 exception_from
many $all return_from catches
many 0 return_from deep
all_many

how='return_to'
record --local --exceptions --return-to
# One for a chain of tail calls, one for an exception, to the function that catches it, or is left next.
[ "$(grep -A1 'return_from app:twice' text | grep -c 'return_from app:tail')" = $all ] || fail "$how: tail calls"
[ "$(grep -A1 'return_from app:twice' text | grep -c return_to)" = 0 ] || fail "$how: in the middle of a chain"
[ "$(grep -A1 'return_from app:tail' text | grep -c return_to)" = $all ] || fail "$how: no return_to behind a chain"
[ "$(grep -A1 'exception_from app:always' text | grep -c return_to)" = $all ] || fail "$how: no return_to behind always"
[ "$(grep -A1 'exception_from app:at_the_end' text | grep -c return_to)" = $all ] || fail "$how: nor behind its caller"

how='an exception that nobody catches'
expect 134 "$tw" record -q --force --local --exceptions -t 'app:_' -o app.tw -- ./app x
says 'app::Bad'

# Through the GOT, of an unprepared program.
how='slots'
cat >plain.c <<'C'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	volatile double x = argc;
	volatile int n = 0;
	for (int i = 0; i < 100; i++)
		n += (int)strtol("7", NULL, 10);
	printf("%d %.3f\n", n, cbrt(x + 26));
	return 0;
}
C
gcc -O2 -fno-builtin -o plain plain.c -lm || fail "gcc"
expect 0 "$tw" record -q --force --returns --global -t libc:strtol -t 'libm:cbrt' -o plain.tw -- ./plain
shows '^700 3.000$'
"$tw" print plain.tw >text
[ "$(grep -c 'return_from libc:strtol from plain -> 0x7' text)" = 100 ] || fail "strtol did not return 100 times"
[ "$(grep -c 'return_from libm:cbrt' text)" = 1 ] || fail "cbrt did not return"

# Functions of the program have ends, though functions of libc of these names have none; those of libc still have none.
how='words'
cat >words.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define OWN(name) \
	__attribute__((noinline, noclone)) long name(long x) \
	{ \
		volatile char bytes[64]; \
		bytes[x & 63] = 1; \
		printf("%s", ""); \
		return x + bytes[x & 63]; \
	}
OWN(err)
OWN(clone)
OWN(verr)
OWN(savectx)
OWN(vfork)
OWN(getcontext)
/* These do what their names say: one keeps its return address, the other hands its own on. */
long setjmp(void **to), sigsetjmp(void **to);
__asm__(".globl setjmp, sigsetjmp\n.type setjmp, @function\n.type sigsetjmp, @function\n"
	"setjmp: .cfi_startproc\nxorl %eax, %eax\nmovq (%rsp), %rdx\nmovq %rdx, (%rdi)\nret\n.cfi_endproc\n.size setjmp, .-setjmp\n"
	"sigsetjmp: .cfi_startproc\nxorl %eax, %eax\nxorl %edx, %edx\nxorl %ecx, %ecx\njmp setjmp\n.cfi_endproc\n.size sigsetjmp, .-sigsetjmp\n");
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 10; i++)
		sum += err(i) + clone(i) + verr(i) + savectx(i);
	for (int i = 0; i < 10; i++)
		vfork(i), getcontext(i);
	void *self = NULL, *other = NULL;
	if (setjmp(&self) || sigsetjmp(&other) || (char *)self < (char *)main || (char *)other < (char *)self || (char *)other > (char *)main + 500)
		return 1;
	printf("%ld\n", sum);
	exit(0);
}
C
gcc -O2 -fno-builtin -w -o words words.c || fail "gcc"
expect 0 "$tw" record -q --force --returns -o words.tw -- ./words
shows '^220$'
"$tw" print words.tw >text
for word in err clone verr savectx vfork getcontext; do
	[ "$(grep -c "return_from words:$word" text)" = 10 ] || fail "$word did not return 10 times"
done
for word in setjmp sigsetjmp; do
	grep -q "call words:$word" text || fail "$word was not called"
	! grep -q "return_from words:$word" text || fail "$word was given another return address"
done
grep -q 'call libc:exit' text || fail "exit of libc was not called"
echo "all as it should be"
