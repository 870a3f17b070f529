#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Arguments are shown as in the source, for both compilers, with debug information in the program or in a
#         separate file; unknown ones are not shown, and no argument, however wrong, harms the program.
build=$1
. "$(dirname "$0")/lib.sh"
needs_strings

cat >app.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
enum flags { O_READ = 1, O_WRITE = 2, O_SYNC = 4 };
struct point { int x, y; };
struct big { long a, b, c; };
__attribute__((noinline)) long read_row(void *db, const char *name, unsigned size, enum flags flags, double ratio)
{
	__asm__ volatile("" : "+r"(size));
	return (long)size * 2 + flags + (long)ratio + (db == name);
}
__attribute__((noinline)) int moved(struct point p, short s, unsigned char c, _Bool b, float f, struct big big, long last)
{
	__asm__ volatile("" : "+r"(last));
	return p.x + s + c + b + (int)f + (int)big.a + (int)last;
}
/* Strings that are none: never touched here. */
__attribute__((noinline)) int odd(const char *s) { __asm__ volatile("" : "+r"(s)); return s != NULL; }
__attribute__((noinline)) int many(const char *a, const char *b, const char *c, const char *d, const char *e, const char *f)
{
	__asm__ volatile("" : "+r"(a));
	return (int)strlen(a) + (b == c) + (d == e) + *f;
}
int by_hand(int a);
__asm__(".text\n.globl by_hand\n.type by_hand, @function\nby_hand:\n.rept 9\nnop\n.endr\nleal 1(%rdi), %eax\nret\n.size by_hand, . - by_hand\n"
	".section __patchable_function_entries,\"awo\",@progbits,by_hand\n.p2align 3\n.quad by_hand\n.text\n");
int main(void)
{
	static char text[200];
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct point p = {-1, 2};
	struct big big = {1, 2, 3};
	memset(text, 'x', sizeof text - 1);
	munmap(two + 4096, 4096);
	strcpy(two + 4090, "short");
	printf("%ld %d", read_row((void *)0x5500, "users\n\"", 4096, O_READ | O_SYNC, 0.5), moved(p, -3, 200, 1, 1.5f, big, 7));
	printf(" %d", odd(NULL) + odd((char *)1) + odd((char *)0xffffffffffffff00) + odd((char *)1 + (1UL << 63)));
	printf(" %d", odd(two + 4090) + odd(text) + odd(""));
	memset(two + 4090, 'y', 6);
	printf(" %d", odd(two + 4090));
	printf(" %d %d\n", many("a", "bb", "ccc", "dddd", text, text), by_hand(4));
	return 3;
}
C

# show: the calls in app.tw, as `print` shows them, into the file calls: FUNCTION: ARGUMENTS
show() {
	expect 0 "$tw" print app.tw
	sed -n 's/.* call app:\([a-z_]*\)[^ (]* *\(from [^ ]* *\)\?(\(.*\))$/\1: \3/p' out >calls
}

# shown COUNT FUNCTION ARGUMENTS WHAT: so many of them.
shown() {
	is "$(grep -c "^$2: $3" calls)" "$1" "$2: $3: $4"
}

# check COMPILER FLAGS...
check() {
	local what="$*"
	"$@" -w -fpatchable-function-entry=9 -o app app.c || fail "$what"
	./app >expected
	expect 3 "$tw" record --force -o app.tw -t 'app:_' --args -- ./app
	cmp -s out expected || fail "another answer: $what"
	show
	shown 1 read_row 'db = 0x5500, name = "users\\n\\"", size = 4096, flags = O_READ|O_SYNC, ratio = 0.5$' "$what"
	shown 1 moved 'p = point{x = -1, y = 2}, s = -3, c = 200, b = true, f = 1.5, big = _, last = 7$' "$what"
	shown 1 odd 's = NULL$' "$what"
	shown 3 odd 's = 0x' "$what"
	shown 1 odd 's = "short"$' "$what"
	shown 1 odd 's = ""$' "$what"
	shown 1 odd 's = "yyyyyy"\.\.\.$' "$what"
	shown 1 odd 's = "x\{64\}"\.\.\.$' "$what"
	shown 1 many 'a = "a", b = "bb", c = "ccc", d = "dddd", e = "x\{64\}"\.\.\., f = "x\{64\}"\.\.\.$' "$what"
	# Without debug information arguments are words.
	shown 1 by_hand '0x4, 0x' "$what"
}

# In the short form two of them: both compilers, versions of DWARF, and levels.
check gcc -O2 -g
cp app app.built
if [ -n "${TW_TEST_LONG:-}" ]; then
	check gcc -O0 -gdwarf-4
	check gcc -O2 -gdwarf-4
	! command -v clang >/dev/null || check clang -O2 -g
fi
other=gcc
! command -v clang >/dev/null || other=clang
check $other -O0 -gdwarf-4
cp app app.other

# A parameter that clang does not pass, because the function in the same file does not use it, is not shown, and no
# guard uses its register.
if command -v clang >/dev/null; then
	cat >unused.c <<'C'
__attribute__((noinline)) int scale(int used, int unused, const char *name) { __asm__ volatile(""); return used * 3; }
int main(int argc, char **argv) { return scale(argc, 42, "hello") != 3; }
C
	clang -O2 -g -fpatchable-function-entry=9 -o unused unused.c || fail "clang"
	expect 0 "$tw" record --force -o unused.tw -t unused:scale --args -- ./unused
	expect 0 "$tw" print unused.tw
	shows 'call unused:scale/3 (used = 1, unused = _, name = _)$'
	for guard in 'unused == 42' 'name == "hello"' 'used == 1 and unused > 0'; do
		expect 2 "$tw" record -o never.tw -t unused:scale --when "$guard" -- ./unused
		says 'is optimized out'
	done
	expect 0 "$tw" record --force -o unused.tw -t unused:scale --when 'used == 1' -- ./unused
	expect 0 "$tw" print unused.tw
	is "$(grep -c ' call ' out)" 1
fi

# Other formats, for the last one.
expect 0 "$tw" print --format erlang --bare-pids app.tw
shows '{app,read_row,\[21760,<<"users\\n\\"">>,4096,5,0.5\]}'
shows "{app,moved,\[{-1,2},-3,200,true,1.5,'_',7\]}"
"$tw" print --format json app.tw >out
python3 -I -S - <<'PY' || fail "JSON"
import json
calls = {e["function"]: e for e in map(json.loads, open("out")) if e["kind"] == "call"}
assert calls["read_row"]["args"] == [21760, 'users\n"', 4096, 5, 0.5], calls["read_row"]
assert calls["read_row"]["names"] == ["db", "name", "size", "flags", "ratio"]
assert calls["moved"]["args"] == [{"x": -1, "y": 2}, -3, 200, True, 1.5, None, 7], calls["moved"]
assert calls["read_row"]["arity"] == 5
PY
expect 3 "$tw" record --force -o app.tw -t 'app:_' --args=8 -- ./app
show
shown 1 odd 's = "x\{8\}"\.\.\.$' "--args=8"
expect 3 "$tw" record --force -o app.tw -t 'app:_' --args=raw -- ./app
show
shown 1 read_row '0x5500, 0x[0-9a-f]*, 0x1000, 0x5, ' "--args=raw"
expect 2 "$tw" record --args=7 -o never.tw -- ./app
says "from 8 to 256"

# Separate debug information, by build-id or link; a wrong one is reported and not used.
cp app.built app && objcopy --only-keep-debug app app.debug &&
	objcopy --strip-debug --add-gnu-debuglink=app.debug app || fail "objcopy"
expect 3 "$tw" record --force -o app.tw -t 'app:read_row' --args -- ./app
show
shown 1 read_row '.*size = 4096' "separate debug information"
objcopy --only-keep-debug app.other app.debug || fail "objcopy"
expect 3 "$tw" record --force -o app.tw -t 'app:read_row' --args -- ./app
says 'another build than .*app; its arguments are raw words'
show
shown 1 read_row '0x5500, ' "a wrong debug file was used"
rm app.debug
expect 3 "$tw" record --force -o app.tw -t 'app:read_row' --args -- ./app
says 'no debug information.*raw words'
show
shown 1 read_row '0x5500, ' "raw words"

# Through GOT slots of a library, C++ methods, and functions that are chosen at run time.
cat >lib.cc <<'C'
struct Counter { int n; virtual ~Counter() {} int add(int by, const char *why); };
int Counter::add(int by, const char *why) { return n += by; }
extern "C" int one(int a) { return a + 1; }
extern "C" int two(int a) { return a + 2; }
extern "C" int (*choose(void))(int) { return two; }
extern "C" int chosen(int a) __attribute__((ifunc("choose")));
C
cat >main.cc <<'C'
struct Counter { int n; virtual ~Counter(); int add(int by, const char *why); };
extern "C" int chosen(int a);
extern "C" Counter *make();
int main() { alignas(16) static char room[32]; return ((Counter *)room)->add(5, "five") + chosen(3) - 7; }
C
g++ -w -g -O2 -fPIC -shared -o liblib.so lib.cc && g++ -w -O2 -o app main.cc -L. -llib "-Wl,-rpath,$PWD" || fail "g++"
expect 3 "$tw" record --global --force -o app.tw -t 'liblib:_' --args -- ./app
expect 0 "$tw" print app.tw
shows 'Counter::add(int, char const\*)/3 from app (this = 0x[0-9a-f]*, by = 5, why = "five")'
if grep -q 'liblib:chosen' out; then
	grep -q 'chosen/1 from app (a = 3)' out || grep -q 'chosen from app (0x3' out || fail "a function that is chosen at run time"
fi

# Results of functions, by type.
cp app.built app
expect 3 "$tw" record --force -o app.tw -t 'app:moved' -t 'app:read_row' --args --returns -- ./app
expect 0 "$tw" print app.tw
shows 'return_from app:read_row/5 -> 8197$'
shows 'return_from app:moved/7 -> 206$'

# Floating-point ones too, also if a tail call gives them; and they reach the caller.
cat >float.c <<'C'
#include <stdio.h>
#define NOIPA __attribute__((noipa))
struct one { double d; };
struct two { double x, y; };
NOIPA double wide(double x) { return x / 2; }
NOIPA float narrow(float x) { return -x; }
NOIPA double tail(double x) { __asm__ volatile("mov $77, %%eax" ::: "eax"); return wide(x + 1); }
NOIPA struct one wrapped(double x) { return (struct one){x}; }
NOIPA struct two both(double x) { return (struct two){x, x}; }
NOIPA long whole(double x) { return (long)x; }
NOIPA long double longest(double x) { return x; }
NOIPA long sum(int a, long b) { return a + b; }
NOIPA long last(double d, float f, long only) { return only; }
NOIPA int one(short a) { return a; }
NOIPA int none(void) { return 6; }
int main(void)
{
	printf("%g %g %g %g ", wide(0.5), narrow(1.5f), tail(3), wrapped(2.5).d);
	printf("%ld %ld %d %d ", sum(-1, 2), last(1, 2, 3), one(-5), none());
	printf("%g %ld %Lg %g\n", both(4.5).y, whole(6.5), longest(7.5), wide(1e999));
	return 0;
}
C
gcc -w -g -O2 -fpatchable-function-entry=9 -o float float.c && ./float >expected || fail "gcc"
expect 0 "$tw" record --force -o float.tw -t 'float:_' --args --returns -- ./float
cmp -s out expected || fail "another answer: floating-point returns"
expect 0 "$tw" print float.tw
for shown in 'wide/1 -> 0\.25' 'narrow/1 -> -1\.5' 'tail/1 -> 2\.0' 'whole/1 -> 6' 'wide/1 -> inf'; do
	grep -q " return_from float:$shown\$" out || fail "no '$shown'"
done
for shown in 'sum/2 (a = -1, b = 2)' 'last/3 (d = 1\.0, f = 2\.0, only = 3)' 'one/1 (a = -5)' 'none/0'; do
	grep -q " call float:$shown\$" out || fail "no '$shown'"
done
for shown in 'longest/1 -> 7\.5' 'both/1 -> two{x = 4\.5, y = 4\.5}' 'wrapped/1 -> one{d = 2\.5}'; do
	grep -q " return_from float:$shown\$" out || fail "no '$shown'"
done
"$tw" print --format json float.tw >out
python3 -I -S - <<'PY' || fail "JSON of results"
import json
returned = {e["function"]: e for e in map(json.loads, open("out")) if e["kind"] == "return_from"}
assert returned["both"]["value"] == {"x": 4.5, "y": 4.5}, returned["both"]
assert returned["longest"]["value"] == 7.5, returned["longest"]
PY
expect 0 "$tw" print --format erlang --bare-pids float.tw
shows '{float,narrow,1},-1\.5'
shows '{float,both,1},{4\.5,4\.5}'
shows '{float,longest,1},7\.5'
expect 0 "$tw" print --tree float.tw
shows 'float:narrow(x = 1\.5) = -1\.5$'
shows 'float:one(a = -5) = -5$'
shows 'float:longest(x = 7\.5) = 7\.5$'

# --when by the names of parameters: their types define how a register is interpreted.
cat >when.c <<'C'
enum mode { READ = 1, WRITE = 2 };
__attribute__((noinline)) int take(const char *s, int n, unsigned u, unsigned long wide, enum mode mode, double d)
{
	__asm__ volatile("" : "+r"(n));
	return n + (int)u;
}
__attribute__((noinline)) int other(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(void)
{
	int sum = 0;
	for (int i = -3; i <= 3; i++)
		sum += take("x", i, (unsigned)i, i == 3 ? -1UL : (unsigned long)(i + 3), i > 0 ? READ : WRITE, 1.0) + other(i);
	return sum == 12345;
}
C
gcc -w -g -O2 -fpatchable-function-entry=9 -o when when.c || fail "gcc"
# recorded: how many events the capture got, by the sentence of `record`.
recorded() {
	! grep -q ' holds no events\.$' err || echo 0
	sed -n 's/^tracewheel: [a-z]*\.tw: \([0-9]*\) events\? of 1 thread in .*/\1/p' err
}
# taken GUARD: the number of calls of take() that pass it
taken() {
	expect 0 "$tw" record --force -o when.tw -t 'when:take' --when "$1" --args -- ./when
	recorded
}
is "$(taken 'mode == WRITE && n > -2')" 2
is "$(taken 'u >= 4294967293 and n < 0 and mode /= READ')" 3
is "$(taken 'not (n > -2)')" 2
is "$(taken 'n > 5000000000')" 0
is "$(taken 'n < 5000000000 and wide >= 18446744073709551615')" 1
# Parts of those above.
if [ -n "${TW_TEST_LONG:-}" ]; then
	is "$(taken 'n < 0')" 3
	is "$(taken 'n >= -1 and n =< 1')" 3
	is "$(taken 'u > 100')" 3
	is "$(taken 'wide > 4096')" 1
fi
# refuses PATTERN GUARD SENTENCE
refuses() {
	expect 2 "$tw" record --force -o never.tw -t "$1" --when "$2" -- ./when
	says "$3"
}
refuses when:take 'size > 1' "no parameter 'size': its parameters are s, n, u, wide, mode, d"
refuses when:take "s == \"$(printf 'x%.0s' {1..256})\"" "a string in it has more than 255 bytes"
# Each function has its own registers; functions without such a parameter are not traced, which is reported.
expect 0 "$tw" record --force -o when.tw -t 'when:_' --when 'n > 1' -- ./when
says "1 function that patterns name is not traced: .*no parameter 'n'"
expect 0 "$tw" print when.tw
is "$(grep -c ' call when:take\b' out) $(grep -c ' call when:other\b' out) $(grep -c ' call when:main\b' out)" '2 2 0'
expect 0 "$tw" record --force -o when.tw -t 'when:_' --when 'n > 1 and mode == READ' --args --returns -- ./when
expect 0 "$tw" print when.tw
is "$(grep -c ' call when:take/6 (s = "x", n = ' out) $(grep -c ' return_from when:take/6' out) $(grep -c 'other' out)" '2 2 0'
refuses 'when:_' 'n > ' 'is refused: '
strip -g when
refuses when:take 'n > 1' "need debug information or a prototype .*no debug information"
is "$(taken '$2 band 1 == 1')" 4

# Strings are compared as bytes, whatever the pointer; floating-point numbers by their value.  Neither is touched.
cat >text.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
__attribute__((noipa)) double ask(const char *name, unsigned size, double ratio, float part)
{
	return ratio + part + size;
}
int main(void)
{
	static char text[300];
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double sum = 0, zero = 0;
	memset(text, 'x', sizeof text - 1);
	munmap(two + 4096, 4096);
	strcpy(two + 4090, "users");
	sum += ask("users", 1, 0.5, 0.25f) + ask("users", 5000, 1.5, -0.25f) + ask("user", 5000, 2.5, 0);
	sum += ask("\xc3\xa4\n\"", 5000, -2.5, 0) + ask("", 6000, 1e300, 3) + ask(NULL, 6000, 0, 3);
	sum += ask((char *)1, 6000, 1, 3) + ask((char *)0xffffffffffffff00, 6000, 1, 3);
	sum += ask(two + 4090, 7000, 0, 3);
	memset(two + 4090, 'y', 6);
	sum += ask(two + 4090, 8000, 0, 3) + ask(text, 8000, 0, 3);
	printf("%a\n", sum);
	return ask("not", 9000, zero / zero, 1) == 1;
}
C
gcc -w -g -O2 -fpatchable-function-entry=9 -o text text.c && sum=$(./text) || fail "gcc"
# asked GUARD: the number of calls of ask() that pass it, of 12
asked() {
	expect 0 "$tw" record --force -o text.tw -t 'text:ask' --when "$1" -- ./text
	[ "$(<out)" = "$sum" ] || echo "another answer;"
	recorded
}
is "$(asked 'name != "users"')" 9
is "$(asked 'not (name == "users") and size > 5000')" 7
is "$(asked 'name == "ä\n\""')" 1
is "$(asked 'name == ""')" 1
is "$(asked 'name == "yyyyyy" or name == "user"')" 2
is "$(asked 'name == 0')" 1
is "$(asked '"users" == name and size < 5000')" 1
is "$(asked "name == \"$(printf 'x%.0s' {1..255})\"")" 0
is "$(asked 'is_binary(name) and byte_size(name) > 250')" 1
is "$(asked 'binary_part(name, 0, 4) == "user"')" 4
is "$(asked 'ratio > 0.4 and ratio < 2 and part < 0')" 1
is "$(asked 'part == 3.0 && name == "users"')" 1
# Parts of those above.
if [ -n "${TW_TEST_LONG:-}" ]; then
	is "$(asked 'name == "users"')" 3
	is "$(asked 'size > 4096 and name == "users"')" 2
	is "$(asked 'not (name == "users")')" 9
	is "$(asked 'ratio > 1')" 3
fi
expect 0 "$tw" record --force -o text.tw -t 'text:ask' \
	--match "[{['\$1','\$2'|'_'],[{'==',{string_at,'\$1'},<<\"user\">>}],[{message,{vector_double,0}}]}]" -- ./text
expect 0 "$tw" print text.tw
is "$(grep -c ' call .*2\.5$' out)" 1

# Only the command uses debug information: nothing that is preloaded or linked into programs loads its library.
for library in tracewheel tracewheel-agent tracewheel-capture; do
	! readelf -d "$build/lib/lib$library.so" | grep -E 'NEEDED.*lib(dw|elf)\.' || fail "$library links libdw"
done
