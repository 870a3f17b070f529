#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever a program is made of, its entries are traced rightly or refused with a sentence, and it answers as by itself.
# Method  Programs built for one difficulty each, recorded with --local; their calls are known by construction. The bytes behind
#         planted jumps are int3.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

# ---- at a fixed low address: no space below, and jumps to code far below their function ----
cat >low.c <<'C'
#include <stdio.h>
int near(int), far(int);
__asm__(".globl near\n.type near, @function\nnear: .cfi_startproc\nlea 1(%rdi), %eax\nret\nnop\n.cfi_endproc\n.size near, .-near\n"
	".skip 0x400000, 0xcc\n"
	".globl far\n.type far, @function\nfar: .cfi_startproc\njmp near\n.cfi_endproc\n.size far, .-far\n");
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum += far(i);
	printf("%d\n", sum);
	return 0;
}
C
gcc -O2 -no-pie -o low low.c -Wl,--build-id -Wl,-Ttext-segment=0x10000 || fail "the program does not compile"
if [ "$(./low 2>/dev/null)" = 5050 ]; then
	expect 0 "$tw" record --local --returns --on-full block -t 'low:far' -o far.tw -- ./low
	is "$(<out)" 5050
	is "$(calls far.tw far)" 100
	expect 0 "$tw" record --local --returns --on-full block -t 'low:_' -o low.tw -- ./low
	is "$(<out)" 5050
	is "$(calls low.tw far near)" "100 100"
fi

# ---- compilers and layouts: what can be traced is counted exactly, and everything answers ----
cat >lib.c <<'C'
__attribute__((noinline)) int lib_add(int a, int b) { __asm__ volatile("" : "+r"(a)); return a + b; }
int lib_twice(int a) { return lib_add(a, a); }
static int lib_first(int a) { return a + 1; }
static int lib_second(int a) { return a + 2; }
int (*const lib_table[])(int) = {lib_first, lib_second};
int lib_switch(int a)
{
	switch (a % 8) {
	case 0: return a + 9;
	case 1: return (a ^ 7) * 3;
	case 2: return a / 3;
	case 3: return lib_table[a & 1](a);
	case 4: return a << 3;
	case 5: return a ^ 21;
	case 6: return a * a;
	default: return -a;
	}
}
C
cat >app.c <<'C'
#include <pthread.h>
#include <stdio.h>
int lib_add(int, int), lib_twice(int), lib_switch(int);
__attribute__((noinline)) static int by_goto(int a)
{
	static void *const ways[] = {&&one, &&two, &&three};
	goto *ways[a % 3];
one: return a + 1;
two: return a * 5;
three: return -a;
}
static void *work(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 500; i++)
		sum += lib_add(i, 2) + lib_twice(i) + lib_switch(i) + by_goto(i);
	return (void *)sum;
}
int main(void)
{
	pthread_t threads[2];
	void *a, *b;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	pthread_join(threads[0], &a);
	pthread_join(threads[1], &b);
	printf("%ld %ld\n", (long)a, (long)b);
	return 3;
}
C
cat >counts.py <<'P'
import json, sys
report, able = json.load(open("report.json")), {f["function"] for f in json.load(open("able.json"))["functions"] if not f.get("refusal")}
calls = {}
for row in report["by_function"]:
    calls[row["function"]] = calls.get(row["function"], 0) + row["calls"]
for word in sys.argv[1:]:
    function, count = word.split("=")
    assert calls.get(function, 0) == (int(count) if function in able else 0), (function, calls.get(function, 0), function in able)
assert "lib_switch" in able and len(able) >= 4, able
P
# compiled COMPILER COMPILER-FLAGS LINKER-FLAGS: lib_twice may contain lib_add.
compiled() {
	local twice=1000 linked=
	[[ $3 != -Wl* ]] || linked=$3
	# shellcheck disable=SC2086 # several words
	{ $1 -w -fPIC -shared $2 -fno-inline -o liblib.so lib.c -Wl,--build-id $linked && $1 -w $2 -o app app.c $3 -L. -llib -pthread "-Wl,-rpath,$PWD" -Wl,--build-id; } ||
		fail "$* do not compile"
	./app >answer
	expect 3 "$tw" record -q --force --local --on-full block -t 'app:_' -t 'liblib:_' -o app.tw -- ./app
	cmp -s answer out || fail "another answer: $*"
	expect 0 "$tw" report --json -n 0 app.tw
	mv out report.json
	expect 0 "$tw" functions --local --json -t 'app:_' -t 'liblib:_' ./app
	mv out able.json
	expect 0 python3 counts.py lib_add=$((1000 + twice)) lib_twice=1000 lib_switch=1000 by_goto=1000 work=2 main=1
}
# In the short form some options come together.
if [ -n "${TW_TEST_LONG:-}" ]; then
	compiled gcc -O0 ''
	compiled gcc '-O1 -fcf-protection=full' '-no-pie -fno-pie'
else
	compiled gcc '-O0 -fcf-protection=full' '-no-pie -fno-pie'
fi
! command -v clang >/dev/null || compiled clang -O2 '-Wl,-z,pack-relative-relocs'
if [ -n "${TW_TEST_LONG:-}" ]; then
	compiled gcc '-O2 -fcf-protection=full' '-Wl,-z,pack-relative-relocs'
	compiled gcc -Os '-no-pie -fno-pie'
	if command -v clang >/dev/null; then
		compiled clang '-O0 -fcf-protection=full' ''
		compiled clang -Os '-no-pie -fno-pie'
	fi
fi
compiled gcc '-O3 -fno-plt' '-Wl,-z,now'

# ---- two files of one build-id, and of one name ----
id=0x0123456789abcdef0123456789abcdef01234567
echo 'int one(int a) { return a / 3 + 1; } int two(int a) { return a / 5 * 2; }' >first.c
echo 'int zero(int a, int b) { if (a > b) return a / b; return b - a; } int two(int a) { return a / 7; } int one(int a) { return 50 / (9 - a); }' >second.c
echo '#include <stdio.h>
int one(int), two(int);
int main(void) { printf("%d\n", one(3) + two(one(4))); return 0; }' >same.c
mkdir -p a
for which in first second; do
	gcc -O2 -fPIC -shared -o $which.so $which.c -Wl,-soname,a/libsame.so -Wl,--build-id=$id || fail "gcc"
done
gcc -O2 -c same.c && gcc -o same same.o ./first.so -Wl,--build-id || fail "gcc"
for which in first second first; do
	rm -f a/libsame.so && cp $which.so a/libsame.so || fail "cp"
	answer=$(./same)
	expect 0 "$tw" record -q --force --local --on-full block -t 'libsame:_' -o same.tw -- ./same
	is "$(<out)" "$answer" "$which"
	is "$(calls same.tw one two)" "2 1" "$which"
done
# Both at once: what belongs to the other file is not planted.
echo 'int other(int a, int b, int c) { return a > 3 ? a * b / c : b - c; }' >other.c
echo '#include <stdio.h>
int one(int), two(int), other(int, int, int);
int main(void) { printf("%d\n", one(3) + two(one(4)) + other(9, 8, 7)); return 0; }' >both.c
gcc -O2 -fPIC -shared -o libother.so other.c -Wl,--build-id=$id && gcc -O2 -o both both.c a/libsame.so ./libother.so -Wl,--build-id || fail "gcc"
answer=$(./both)
expect 0 "$tw" record -q --force --local --on-full block --allow-nothing -t 'libsame:_' -t 'libother:_' -o both.tw -- ./both
is "$(<out)" "$answer"

# ---- a cache of plans that was damaged, is of another version, or belongs to others ----
rm cache/tracewheel/plans/*"${id#0x}"*
expect 0 "$tw" record -q --force --local --on-full block -t 'libsame:_' -o same.tw -- ./same
plan=$(echo cache/tracewheel/plans/*"${id#0x}"*)
[ -f "$plan" ] || fail "no plan in the cache"
# remade WHAT: the plan is made anew, or goes without the cache.
remade() {
	expect 0 "$tw" record -q --force --local --on-full block -t 'libsame:_' -o same.tw -- ./same
	is "$(calls same.tw one two)" "2 1" "$1"
}
remade "the other file's plan"
cp "$plan" right
printf '\001' | dd of="$plan" bs=1 seek=8 conv=notrunc status=none && remade "another version" && cmp -s "$plan" right || fail "it was not made anew"
printf 'x' | dd of="$plan" bs=1 seek=140 conv=notrunc status=none && remade "a damaged plan" && cmp -s "$plan" right || fail "it was not made anew"
head -c 100 right >"$plan" && remade "half a plan" && cmp -s "$plan" right || fail "it was not made anew"
: >"$plan" && remade "an empty plan" && cmp -s "$plan" right || fail "it was not made anew"
rm "$plan" && ln -s "$work/right" "$plan" && remade "a link"
rm "$plan" && mkdir "$plan" && remade "a folder" && rmdir "$plan"
chmod 500 cache/tracewheel/plans && remade "a folder that cannot be written"
chmod 700 cache/tracewheel/plans

# ---- damaged call frame information: refused, or the program answers ----
cat >damage.py <<'P'
import random, subprocess, sys
import os
library = open("liblib.so", "rb").read()
sections = subprocess.run(["readelf", "-SW", "liblib.so"], capture_output=True, text=True).stdout
spans = [(int(w[w.index(n) + 3], 16), int(w[w.index(n) + 4], 16)) for line in sections.splitlines() for w in [line.replace("[", "").split()]
         for n in (".eh_frame", ".eh_frame_hdr") if n in w]
assert len(spans) == 2, spans
tw, seed = sys.argv[1], 5
answer = open("answer").read()
able = 0
for seed in range(40 if os.environ.get("TW_TEST_LONG") else 5):
    chance = random.Random(seed)
    damaged = bytearray(library)
    for _ in range(chance.choice((1, 1, 3, 20))):
        start, count = chance.choice(spans)
        damaged[start + chance.randrange(count)] = chance.choice((0, 1, 0xff, chance.randrange(256)))
    # As from the linker, so that no plan of another file is used.
    os.unlink("liblib.so")
    open("liblib.so", "wb").write(damaged)
    os.chmod("liblib.so", 0o755)
    done = subprocess.run([tw, "record", "-q", "--force", "--local", "--allow-nothing", "-t", "liblib:_", "-o", "x.tw", "--", "./app"],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": "/proc/nowhere"})
    assert done.stdout == answer and done.returncode == 3, (seed, done)
    able += "x.tw" in os.listdir(".")
P
# The last library of above; in the long form one that is optimized less.
[ -z "${TW_TEST_LONG:-}" ] || compiled gcc '-O2' ''
expect 0 python3 damage.py "$tw"

# ---- --careful: no function with an indirect jump that is not understood ----
echo '__attribute__((noipa)) int twice(int a) { return a / 3 * 2; }
__attribute__((noipa)) int jumps(int (*to)(int), int a) { return to(a + 7); }
int main(void) { int sum = 0; for (int i = 0; i < 10; i++) sum += jumps(twice, i); return sum != 70; }' >careful.c
gcc -O2 -o careful careful.c -Wl,--build-id || fail "gcc"
./careful || fail "the sum is another one"
expect 0 "$tw" functions --local -t 'careful:jumps' ./careful
shows 'entry  careful:jumps'
expect 0 "$tw" functions --local --careful --refused -t 'careful:jumps' ./careful
shows 'careful:jumps.*: it contains an indirect jump whose targets are not known'
expect 0 "$tw" record -q --force --local -t 'careful:_' -o careful.tw -- ./careful
is "$(calls careful.tw jumps twice)" "10 10"
expect 0 "$tw" record -q --force --local --careful -t 'careful:_' -o careful.tw -- ./careful
is "$(calls careful.tw jumps twice)" "0 10"
expect 2 "$tw" record --force --local --careful -t 'careful:jumps' -o careful.tw -- ./careful
says 'jumps of careful cannot be traced: it contains an indirect jump'
# An object is left alone by -N.
expect 0 "$tw" record -q --force --local -t '_:_' -N 'libsame:_' -o both.tw -- ./both
is "$(calls both.tw one main)" "0 1"

# ---- another patcher before and after, and code that changes itself ----
cat >patch.c <<'C'
#include <string.h>
#include <sys/mman.h>
static unsigned char saved[16];
int patch_early(int a) { return a / 3 + 1; }
int patch_late(int a) { return a / 5 + 2; }
int patch_new(int a) { return a * 100 + 7; }
static void put(void *at, const void *bytes, size_t count)
{
	void *page = (void *)((unsigned long)at & ~4095ul);
	mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, bytes, count);
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
static void redirect(int (*from)(int))
{
	unsigned char jump[5] = {0xe9};
	int distance = (int)((char *)patch_new - (char *)from - 5);
	memcpy(jump + 1, &distance, 4);
	memcpy(saved, (void *)from, 16);
	put((void *)from, jump, 5);
}
__attribute__((constructor)) static void before_the_agent(void) { redirect(patch_early); }
void patch(void) { redirect(patch_late); }
void patch_back(void) { put((void *)patch_late, saved, 16); }
void patch_over(void) { put((void *)patch_late, "\xb8\x2a\0\0\0\xc3", 6); }
C
echo '#include <stdio.h>
int patch_early(int), patch_late(int);
void patch(void), patch_back(void), patch_over(void);
int main(void)
{
	printf("%d %d", patch_early(9), patch_late(25)), patch(), printf(" %d", patch_late(25));
	patch_back(), printf(" %d", patch_late(25)), patch_over(), printf(" %d\n", patch_late(25));
	return 0;
}' >patched.c
gcc -w -O2 -fPIC -shared -o libpatch.so patch.c -Wl,--build-id && gcc -w -O2 -o patched patched.c ./libpatch.so -Wl,--build-id || fail "gcc"
is "$(./patched)" "907 7 2507 7 42"
expect 0 "$tw" record -q --force --local -t 'libpatch:_' -o patched.tw -- ./patched
is "$(<out)" "907 7 2507 7 42"
is "$(calls patched.tw patch_early patch_late patch_new)" "0 2 2"
expect 0 "$tw" info patched.tw
shows '1 function of libpatch is not traced: the first instructions in memory are not those of the file'

# ---- more than 2 and 4 GiB of addresses; no build-id ----
echo '#include <stdio.h>
__asm__(".section .far,\"ax\",@progbits\n.globl far_one\n.type far_one,@function\nfar_one: lea 1(%rdi),%eax\nret\n.size far_one,.-far_one\n.text\n");
int far_one(int);
static int (*volatile far)(int) = far_one;
int main(void) { printf("%d\n", far(6)); return 0; }' >far.c
gcc -O2 -mcmodel=large -fno-pie -c far.c || fail "gcc"
for at in 0x90000000 0x200000000; do
	gcc -no-pie -o far far.o -Wl,--section-start=.far=$at -Wl,--build-id || fail "gcc"
	expect 0 "$tw" record -q --force --local -t 'far:_' -o far.tw -- ./far
	is "$(<out)" 7
	expect 1 "$tw" functions --local ./far
	says "spans more than 2 GiB of addresses"
done
gcc -o nameless same.o a/libsame.so -Wl,--build-id=none || fail "gcc"
expect 2 "$tw" record --force --local -t 'nameless:main' -o nameless.tw -- ./nameless
says 'its entries are left alone: its file has no build-id'

# ---- other languages, if their compilers are here: right, whatever is traced ----
# answers PROGRAM: the same output and code, with every function of it and its libraries.
answers() {
	local code=0
	"$@" >answer 2>/dev/null </dev/null || code=$?
	expect $code "$tw" record -q --force --local --follow-fork --allow-nothing -t '_:_' -o other.tw -- "$@"
	cmp -s answer out || fail "another answer: $*"
}
if command -v rustc >/dev/null && echo 'fn f(n: u64) -> u64 { if n == 0 { panic!("no") } n * 3 } fn main() { let r: Vec<_> = (0..9u64).map(|n|
std::panic::catch_unwind(move || f(n)).unwrap_or(7)).collect(); println!("{:?} {}", r, std::thread::spawn(|| f(4)).join().unwrap()); }' >rust.rs; then
	# Linking the debug information of its library, and reading it, takes most of the time.
	[ -n "${TW_TEST_LONG:-}" ] && strip=none || strip=debuginfo
	for level in $(rounds 3 "0 3 s"); do
		! rustc -C opt-level=$level -C strip=$strip -o rust rust.rs 2>/dev/null || answers ./rust
	done
fi
if command -v go >/dev/null && mkdir -p go && cat >go/main.go <<'GO'; then
package main

/*
static int three(int a) { return a * 3; }
*/
import "C"
import "fmt"

func double(a int) int { return a * 2 }

func main() {
	c := make(chan int)
	for i := 0; i < 20; i++ {
		go func(i int) { c <- double(int(C.three(C.int(i)))) }(i)
	}
	sum := 0
	for i := 0; i < 20; i++ {
		sum += <-c
	}
	defer func() { fmt.Println(recover(), sum) }()
	panic("thrown")
}
GO
	! (cd go && HOME=$work GOCACHE=$work/gocache GOFLAGS=-mod=mod go build -o ../gone main.go) >/dev/null 2>&1 || answers ./gone
fi
