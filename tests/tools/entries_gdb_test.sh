#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A debugger that stops at any instruction of a stub or a copy shows the program's callers, although these lie outside of
#         every object, and no frame without a name: a copy has its function's, marked, also in a core dump, and a breakpoint on a function is one.
# Method  gdb, with Python, steps through calls of planted functions by single instructions, and walks the frames at each that is in no
#         object. The control: a caller that is none is not found, and with a stripped agent no frame there has a name.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache
command -v gdb >/dev/null || { echo "gdb is not here: not tested" && exit 77; }

cat >walked.c <<'C'
#include <stdio.h>
#include <string.h>
__attribute__((noipa)) long leaf(long a) { return a / 3 + 1; }
__attribute__((noipa)) long pushes(long a) { char b[64]; memset(b, (int)a, sizeof b); __asm__ volatile("" ::"r"(b) : "memory"); return b[9] + leaf(a) + a; }
__attribute__((noipa)) void marked(void) { __asm__ volatile(""); }
__attribute__((noipa)) long follows(const long *a) { return *a + 1; }
int main(int argc, char **argv)
{
	if (argc > 1)
		return (int)follows(NULL);
	long sum = pushes(1) + leaf(2);
	marked();
	sum += pushes(3) + leaf(4);
	marked();
	printf("%ld\n", sum);
	return 0;
}
C
gcc -O2 -g -o walked walked.c -Wl,--build-id -Wl,-z,now || fail "gcc"
cat >walk.gdb <<'G'
set pagination off
set confirm off
set debuginfod enabled off
python
import os
class Walk(gdb.Command):
    def __init__(self):
        super().__init__("walk", gdb.COMMAND_USER)
    def invoke(self, arg, tty):
        inside = cut = known = nameless = behind = steps = 0
        is_long = os.environ.get("TW_TEST_LONG")
        seen = set()
        # Up to the next call of marked(), in the long form as far as the program goes.
        while steps < 6000 and (is_long or gdb.newest_frame().name() != "marked" or not steps):
            steps += 1
            try:
                gdb.execute("stepi", to_string=True)
                frame = gdb.newest_frame()
            except gdb.error:  # the program has ended
                break
            if gdb.solib_name(frame.pc()) or gdb.find_pc_line(frame.pc()).symtab:
                continue
            if frame.name() and "traced" not in frame.name():
                continue
            names = []
            while frame and len(names) < 20:
                names.append(frame.name())
                frame = frame.older()
            inside += 1
            cut += "main" not in names
            known += "marked" in names
            nameless += None in names
            seen.add(str(names[0]).replace(".", "[").split("[")[0])
            # While the stub has words on the stack, the function is its caller.
            behind += names[1] is not None and str(names[0]).startswith((names[1] + ".", names[1] + "["))
        print("WALKED", inside > 15, cut, known, nameless == 0, nameless == inside, behind, " ".join(sorted(seen)))
        print("PLACES", len(gdb.decode_line("leaf")[1]))
Walk()
end
break marked
run >answer
delete
finish
walk
G
"$tw" record -q --force --local --follow-fork --allow-nothing -t 'walked:{leaf,pushes}' -o w.tw -- gdb -q -nx -batch -x walk.gdb ./walked >out 2>err </dev/null
code=$?
if ! grep -q '^WALKED' out &&
	! gdb -q -nx -batch -ex 'python print("it has Python")' -ex 'break main' -ex run ./walked 2>/dev/null | grep -q 'Breakpoint 1, main'; then
	echo "gdb cannot stop a program here: not tested" && exit 77
fi
is $code 0 "gdb's exit code"
# Three instructions of the stub in each of three calls.
shows '^WALKED True 0 0 True False 9 leaf pushes$'
shows '^PLACES 1$'

# The agent is found beside the command: both in another place, without symbols.
mkdir -p bare/bin bare/lib
cp "$tw" bare/bin/
cp -a "$build"/lib/*.so* bare/lib/
strip bare/lib/libtracewheel-agent.so
expect 0 bare/bin/tracewheel record -q --force --local --follow-fork --allow-nothing -t 'walked:{leaf,pushes}' -o w.tw -- gdb -q -nx -batch -x walk.gdb ./walked
shows '^WALKED True [0-9]* 0 False True 0 None$'

[ "$(cat /proc/sys/kernel/core_pattern)" = core ] && ulimit -c unlimited 2>/dev/null || exit 0
"$tw" record -q --force --local -t 'walked:follows' -o w.tw -- ./walked crash >out 2>err
dumps=(core*)
gdb -q -nx -batch -ex bt ./walked "${dumps[0]}" >out 2>&1
shows '^#0 .* in follows.traced'
shows '^#1 .* main '
