#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A prototype says what the arguments of a function without debug information are, and what a call fills is shown with its return.
#         A wrong prototype shows nonsense at most: no memory is touched that may not be read, and the program does not notice.
# Method  A program without debug information, whose calls are known; each word of the language; prototypes that are wrong in each way,
#         with addresses at guard pages and lengths up to all of the address space; prototypes that are refused.
build=$1
. "$(dirname "$0")/lib.sh"
needs_strings
export XDG_CONFIG_HOME=$work/config
tracer=$tw

cat >app.c <<'C'
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define F __attribute__((noinline, noipa))
F int numbers(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f) { return a + b + c + d + e + (int)f; }
F long longs(long a, unsigned long b, double c, float d, _Bool e) { return a + (long)b + (long)c + (long)d + e; }
F const char *names(const char *s, void *p) { return p ? s : NULL; }
F int flagged(int flags, unsigned mode, int fd) { return flags + (int)mode + fd; }
F long fill(char *to, size_t size, const char *from) { size_t n = strlen(from); n = n < size ? n : size; memcpy(to, from, n); return (long)n; }
F int pair(int out[2], long *total) { out[0] = 3; out[1] = -4; *total = 1L << 40; return 0; }
F int fails(char *to) { (void)to; errno = ENOENT; return -1; }
F int error(int e) { return e; }
F int counted(unsigned char *to, unsigned *count) { memcpy(to, "12345", 5); *count = 5; return 1; }
F long items(char *to, size_t size, size_t count) { memset(to, 'i', size * count); return (long)count - 1; }
F void nothing(char *to) { strcpy(to, "done"); }
F int deep(int n, char *to) { char own[16]; if (n) deep(n - 1, own); sprintf(to, "%d", n); return own[0] == 0; }
F int many(long a, long b, long c, long d, long e, long f, const char *g) { return (int)(a + b + c + d + e + f) + g[0]; }
F long hostile(uint64_t a, uint64_t b, uint64_t c) { return (long)(a ^ b ^ c); }
F long gone(char *to, size_t size) { munmap(to, size); return (long)size; }
int main(void)
{
	char *two = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), to[64] = "before", own[16];
	uint64_t odd[] = {0, 1, 4096, (uint64_t)two, (uint64_t)two + 4095, (uint64_t)two + 4096, UINT64_MAX, UINT64_MAX - 8, 1UL << 63, 1UL << 47};
	unsigned char bytes[8];
	unsigned count = 7, sum = 0;
	int out[2];
	long total;
	mprotect(two + 4096, 4096, PROT_NONE);
	memset(two, 'z', 4096);
	printf("%d %ld\n", numbers(-1, 255, -2, 65535, -3, 4000000000u), longs(-5, ~0UL, 0.5, 0.25f, 1));
	printf("%s\n", names("a\"b", to));
	printf("%d\n", names(NULL, NULL) == NULL);
	printf("%d\n", flagged(0x241, 0644, -100));
	printf("%d %d\n", flagged(0x1002, 0644, 5), 1);
	printf("%d\n", flagged(0, 0, 6));
	printf("%ld\n", fill(to, sizeof to, "hello\n"));
	printf("%ld\n", fill(to, 3, "hello"));
	printf("%d %d\n", pair(out, &total), fails(to));
	printf("%d\n", error(2));
	printf("%d\n", error(0));
	printf("%d %ld\n", counted(bytes, &count), items(to, 4, 3));
	nothing(to);
	printf("%s %d %d\n", to, deep(20, own), many(1, 2, 3, 4, 5, 6, "g"));
	for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++)
		for (unsigned k = 0; k < sizeof odd / sizeof *odd; k++)
			sum = sum * 31 + (unsigned)hostile(odd[i], odd[k], odd[(i + k) % 7]);
	printf("%u\n", sum);
	printf("%ld\n", gone(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096));
	return 3;
}
C
gcc -O1 -w -fpatchable-function-entry=9 -o app app.c || fail "gcc"
./app >expected
[ $? = 3 ] || fail "the program itself"

# traced PROTOTYPE...: the program traced with them does and says the same.
traced() {
	local options=()
	for prototype; do options+=("--args=$prototype"); done
	expect 3 "$tracer" record -q --force -o app.tw -t 'app:_' --returns "${options[@]}" -- ./app
	cmp -s out expected || fail "another answer with $*"
	expect 0 "$tw" print app.tw
	cp out shown
}
# of FUNCTION: what stands behind its name, of its calls and returns
of() {
	sed -n "s/^ *[0-9.]* *[0-9]* \(call\|return_from\) app:$1\(\/[0-9_]*\)\? \(from [^ ]* \)\?\(.*\)$/\4/p" shown
}

cat >names.proto <<'P'
# Comments, and lines that go on.
table open O_RDONLY=0/3 O_WRONLY=1/3 O_RDWR=2/3
	O_CREAT=0100 O_TRUNC=01000   # the rest has no name here
table small ONE=1 FIVE=5 SIX=0x6
P
expect 3 "$tw" record -q --force -o app.tw -t 'app:_' --returns --prototypes names.proto \
	--args='int numbers(char a, uchar b, short c, ushort d, int e, uint f)' --args='long longs(long, ulong b, double c, float d, bool e)' \
	--args='str names(str s, ptr p)' --args='flagged(flags(open) flags, octal(flags&0100) mode, fd at)' \
	--args='long fill(out buf(len=result) to, size size, str from)' --args='int pair(out int fds[2], out long total)' \
	--args='errno int fails(out str to)' --args='error error(enum(small) e)' --args='int counted(out buf(len=*count), out uint count)' \
	--args='long items(out buf(len=result*size) to, size size, hex count)' --args='void nothing(out str to)' \
	--args='int deep(int n, out str to)' --args='app:many(_, _, _, _, _, int sixth, str seventh)' -- ./app
cmp -s out expected || fail "another answer"
expect 0 "$tw" print app.tw
cp out shown
is "$(of numbers)" "(a = -1, b = 255, c = -2, d = 65535, e = -3, f = 4000000000)
-> -294901512"
is "$(of longs | head -n 1)" "(-5, b = 18446744073709551615, c = 0.5, d = 0.25, e = true)"
is "$(of names | sed 's/p = 0x[0-9a-f]*/p = P/')" '(s = "a\"b", p = P)
-> "a\"b"
(s = NULL, p = NULL)
-> NULL'
is "$(of flagged | grep -v '^->')" "(flags = O_WRONLY|O_CREAT|O_TRUNC, mode = 0644, at = AT_FDCWD)
(flags = O_RDWR|0x1000, at = 5)
(flags = O_RDONLY, at = 6)"
is "$(of fill | sed 's/0x[0-9a-f]*/P/')" '(to = P, size = 64, from = "hello\n")
-> 6 (to = "hello\n")
(to = P, size = 3, from = "hello")
-> 3 (to = "hel")'
is "$(of pair | tail -n 1)" "-> 0 (fds = [3, -4], total = 1099511627776)"
is "$(of fails | tail -n 1)" "-> -1 ENOENT"
is "$(of error)" "(e = 2)
-> ENOENT
(e = 0)
-> 0"
is "$(of counted | tail -n 1)" '-> 1 ($1 = "12345", count = 5)'
is "$(of items | tail -n 1)" '-> 2 (to = "iiiiiiii")'
of items | grep -q 'size = 4, count = 0x3)$' || fail "hex"
is "$(of nothing | tail -n 1)" '-> (to = "done")'
is "$(of many | head -n 1)" "(_, _, _, _, _, sixth = 6, seventh = _)"
# Of calls that are open at once, the arguments of the newest sixteen are kept.
is "$(of deep | grep -c '^->')" 21
is "$(of deep | grep '^->' | tail -n +2 | head -n 15)" "$(for n in $(seq 1 15); do echo "-> 0 (to = \"$n\")"; done)"
is "$(of deep | grep '^->' | tail -n +17 | sort -u)" "-> 0"

# JSON and Erlang.
expect 0 "$tw" print --format json app.tw
python3 - <<'PY' || fail "JSON"
import json
lines = [json.loads(line) for line in open("out")]
events = [e for e in (lines[0] if isinstance(lines[0], list) else lines) if e.get("kind") == "return_from"]
by = {e["function"]: e for e in events}
assert by["fails"]["value"] == -1 and by["fails"]["errno"] == "ENOENT" and "filled" not in by["fails"], by["fails"]
assert by["pair"]["value"] == 0 and by["pair"]["filled"] == {"fds": [3, -4], "total": 1 << 40}, by["pair"]
assert by["nothing"]["filled"] == {"to": "done"}, by["nothing"]
PY
expect 0 "$tw" print --format erlang app.tw
shows "{-1,'ENOENT'}"
shows '{0,\[{fds,\[3,-4\]},{total,1099511627776}\]}'

# Without --returns nothing is filled; what is said of a function by its name alone holds in all modules, and a module restricts it.
expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' --args='libc:fill(str, int, str)' -- ./app
expect 0 "$tw" print app.tw
is "$(grep -c '(0x.*, 0x40, 0x' out)" 1 "another module's"
expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' --args='{libc,app}:fill(_, int, str)' -- ./app
expect 0 "$tw" print app.tw
is "$(grep -c '(_, 64, "hello\\n")' out)" 1 "its own module's"

# Wrong prototypes of functions that get numbers, guard pages and the ends of the address space.
for a in 'str a' 'out str a' 'buf(len=b) a' 'buf(len=b*c) a' 'out buf(len=result) a' 'out buf(len=b*c) a' 'buf(len=4294967295) a' \
	'out buf(len=result*b) a' 'out ptr a[32]'; do
	traced "errno long hostile($a, hex b, hex c)" "str hostile(str x, str y, str z)"
	traced "long hostile($a, out uint b, out ulong c)"
done
traced 'long hostile(out buf(len=*b*c) a, out ulong b, size c)' 'gone(out buf(len=size) to, size size)' 'str numbers(str a, str b, str c)'
of gone | grep -q '^-> 4096 (to = _)$' || fail "memory that is gone: $(of gone)"
# A buffer that ends at a guard page is read as far as it goes.
traced 'long hostile(buf(len=64) a)'
of hostile | grep -q '^(a = "z"\.\.\.)$' || fail "no byte before the guard page"

# Those that are installed are right, each of them.
expect 0 "$tw" record -q --force --allow-nothing -o none.tw --args -t none:none -- true
is "$(cat err)" ""
ls "$build"/share/tracewheel/prototypes/{libc,syscalls,sqlite3,openssl,zlib}.proto >out || fail "not all installed prototypes"

# Refused, with one sentence each.
refused() {
	expect 2 "$tw" record -o none.tw --args="$1" -- true
	says "--args='.*' is refused: .*$2"
	is "$(grep -c 'refused' err)" 1
}
refused 'f(' "is no prototype"
refused 'f)(' "is no prototype"
refused 'f() g' "stands behind the prototype"
refused 'f(unsigned int x)' "'unsigned' is not a type here: say uint"
refused 'f(char *s)' "types are single words, str for char"
refused 'f(thing x)' "'thing' is not a type"
refused 'f(void x)' "only the type of a result"
refused 'f(out double x)' "a call fills buf, str, ptr, hex and whole numbers"
refused 'f(buf x)' "buf needs its length"
refused 'f(buf(size=3) x)' "buf needs its length"
refused 'f(buf(len=n) x)' "len=n: the function has no such argument"
refused 'f(buf(len=result) x)' "the result is known after the call"
refused 'f(out buf(len=*n) x, size n)' "not declared as a number that the call fills"
refused 'f(buf(len=n) x, double n)' "not in an integer register"
refused 'f(flags(none) x)' "there is no such table of names"
refused 'f(enum x)' "there is no such table of names"
refused 'f(int(3) x)' "'int' has no options"
refused 'f(octal(x) y)' "a condition is octal(ARGUMENT&BITS)"
refused 'f(int x[2])' "only numbers that the call fills have a count"
refused 'f(..., int)' "'...' comes last"
refused 'f(int,,int)' "an argument is empty"
refused 'buf(len=3) f()' "is no name of a function\|is not a type"
refused 'errno double f()' "errno goes with whole numbers"
refused 'double f(out str s)' "out does not go with a result of type double"
expect 2 "$tw" record -o none.tw --args=17x -- true
says "or a prototype"
printf 'module libc\n\nint f(int)\nint g(\n' >bad.proto
expect 2 "$tw" record -o none.tw --prototypes bad.proto -- true
says "bad.proto, line 4: 'int g(' is no prototype"
expect 2 "$tw" record -o none.tw --prototypes none.proto -- true
says "none.proto cannot be read"

# The user's folder: what is wrong in it is reported, and left out.  It is asked before what is installed.
mkdir -p config/tracewheel/prototypes
printf 'table broken\nint fill(_, size own, _)\n' >config/tracewheel/prototypes/own.proto
expect 3 "$tw" record --force -o app.tw -t 'app:fill' --args -- ./app
says "own.proto, line 1: the table is empty; the line is left out"
expect 0 "$tw" print app.tw
is "$(grep -c '(_, own = 64, _)' out)" 1 "the user's own"
# Conditions know the names too, with and without --args.
for args in --args ''; do
	for condition in 'own == 64:1' 'own > 64:0'; do
		# shellcheck disable=SC2086 # no word, or one
		expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' $args --when "${condition%:*}" -- ./app
		expect 0 "$tw" print app.tw
		is "$(grep -c 'call app:fill' out)" "${condition#*:}" "--when '${condition%:*}' $args"
	done
done
expect 2 "$tw" record --force -o app.tw -t 'app:fill' --when 'size > 64' -- ./app
says "no parameter 'size': its parameters are _, own, _"
expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' --args=raw -- ./app
expect 0 "$tw" print app.tw
is "$(grep -c 'own = ' out)" 0 "raw"
# Debug information knows better than these, and the command line better than it.
gcc -O1 -g -w -fpatchable-function-entry=9 -o app app.c || fail "gcc"
expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' --args -- ./app
expect 0 "$tw" print app.tw
is "$(grep -c 'size = 64, from = ' out)" 1 "debug information"
expect 3 "$tw" record -q --force -o app.tw -t 'app:fill' --args='fill(_, size mine)' -- ./app
expect 0 "$tw" print app.tw
is "$(grep -c '(_, mine = 64)' out)" 1 "the command line"
# It does not know what a call fills, and shows nothing that lay there before.
echo 'void nothing(out str to)' >"$XDG_CONFIG_HOME/tracewheel/prototypes/filled.proto"
for shown in 0 1; do
	returns=(--returns)
	expect 3 "$tw" record -q --force -o app.tw -t 'app:nothing/1' --args "${returns[@]:0:$shown}" -- ./app
	expect 0 "$tw" print app.tw
	is "$(grep -c 'call app:nothing/1 (to = 0x[0-9a-f]*)' out)" 1 "memory before the call"
	is "$(grep -c -- '-> (to = "done")' out)" "$shown" "memory after the call"
done
