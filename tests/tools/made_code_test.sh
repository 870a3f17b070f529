#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Functions that code made by Java's VM calls keep their return addresses, by which the VM walks its stacks: also those that such a function ends
#         with by a jump. All others of its library, and all of other libraries, have their ends.
# Method  A library with the SONAME of Java's VM, and the same under another name. Code that the program makes at run time calls one of its functions, which
#         compares its return address with that code, as the VM does. (The VM itself is recorded by `./run zoo`, where there is a JDK.)
build=$1
. "$(dirname "$0")/lib.sh"
cat >vm.c <<'C'
#define F __attribute__((noinline, noipa))
#define PUBLIC __attribute__((visibility("default")))
typedef int looks_fn(void **slot);
static looks_fn *look;
/* The made code leaves the address of its call's slot: HotSpot's last Java frame. */
F int at_end(void **slot) { volatile int found = look(slot); return found + 1; }
/* A jump is the last thing that it does. */
F int entry(void **slot) { volatile int one = 1; __asm__ volatile("" : : "r"(one)); return at_end(slot); }
F int entry_too(void **slot) { volatile int two = look(slot); return two + 2; }
F int only_called(int n) { volatile int three = n; return three + 3; }
PUBLIC F int caller(int n) { volatile int sum = only_called(n) + only_called(n + 1); return sum; }
PUBLIC looks_fn *table[] = {entry, entry_too};
PUBLIC void begin(looks_fn *fn) { look = fn; }
/* It calls one of the table itself as well. */
PUBLIC int itself(void **slot) { volatile int sum = entry_too(slot); return sum; }
C
cat >app.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
typedef int looks_fn(void **slot);
extern looks_fn *table[];
extern void begin(looks_fn *fn);
extern int caller(int n);
static unsigned char *code;
static int missed;
static int look(void **slot) { missed += (unsigned char *)*slot < code || (unsigned char *)*slot >= code + 64; return 0; }
int main(void)
{
	/* push %rbx; lea -8(%rsp),%rdi; call *%rax ... : the slot of its call is 8 below the stack pointer there. */
	static const unsigned char made[] = {0x53, 0x48, 0x89, 0xf8, 0x48, 0x8d, 0x7c, 0x24, 0xf8, 0xff, 0xd0, 0x5b, 0xc3};
	int sum = 0;
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, made, sizeof made);
	begin(look);
	for (int i = 0; i < 100; i++)
		sum += ((int (*)(looks_fn *))code)(table[i % 2]) + caller(i);
	printf("%d %d\n", missed, sum);
	return 0;
}
C
for name in jvm other; do
	gcc -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,lib$name.so -o lib$name.so vm.c || fail gcc
	gcc -O1 -o $name app.c -L. -l$name -Wl,-rpath,"$PWD" || fail gcc
	expect 0 "$tw" functions --json -t "lib$name:_" ./$name
	json '" ".join(sorted(f["function"] for f in d["functions"] if not f.get("ends", True)))' >"$name.endless"
	expect 0 ./$name
	cp out "$name.alone"
	expect 0 "$tw" record -q --force --local --returns -t "lib$name:_" -o $name.tw -- ./$name
	cp out "$name.recorded"
	expect 0 "$tw" report --json --top 0 $name.tw
	json '" ".join(sorted("%s:%d:%d" % (f["function"], f["calls"], f.get("no_end", 0)) for f in d["by_function"] if f["function"] in ("entry", "entry_too", "at_end", "caller", "only_called")))' >"$name.ends"
done
is "$(cat jvm.endless)" "at_end entry entry_too" "functions without ends"
is "$(cat other.endless)" "" "functions without ends of another library"
is "$(cat jvm.alone)" "$(cat jvm.recorded)" "what the VM finds"
# The test can fail: another library's functions have other return addresses.
[ "$(cut -d' ' -f1 other.recorded)" -gt 0 ] || fail "no return address was another, so that this shows nothing"
cat jvm.ends other.ends
exit 0
