#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Nothing waits until the memory of large rings is freed: when a program has ended, the capture is completed,
#         `record` prints its summary and passes the exit code on, and only then the memory is freed; the process that
#         frees it ends last. Events that are lost because the recorder stands still make no system calls.
# Method  Rings of 64 MiB are filled; strace gives the order of the command's system calls, and the program's. No times.
build=$1
. "$(dirname "$0")/lib.sh"
command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || { echo "no strace here: not tested"; exit 77; }
filter=--seccomp-bpf
strace -f $filter -o /dev/null true 2>/dev/null || filter=

cat >fill.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) long tick(long a) { return a + 1; }
int main(int argc, char **argv)
{
	long n = 0;
	kill(getppid(), SIGSTOP);
	for (long i = 0; i < atol(argv[1]); i++)
		n = tick(n);
	kill(getppid(), SIGCONT);
	return 7;
}
C
gcc -w -O2 -fpatchable-function-entry=9 -o fill fill.c || fail "gcc"
for calls in 6000000 1000; do
	# The recorder is stopped while the program runs, so that its rings grow to their full size.
	expect 7 strace -f $filter -o calls -s 200 -e trace=rt_sigprocmask,munmap,unlink,unlinkat,renameat,rename,clone,clone3,exit_group,write,exit \
		"$tw" record --force --ring 64M -o a.tw -t fill:tick -- ./fill $calls
	says "events of"
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["complete"], d["live"], d["events"] + sum(d["lost"].values())')" "True False $calls"
	python3 - $calls <<'EOT' || fail "not in this order ($calls calls)"
import re, sys
lines = [l.split(None, 1) for l in open("calls")]
recorder = lines[0][0]
own = [l for pid, l in lines if pid == recorder]
named = max(i for i, l in enumerate(own) if "rename" in l and ".tws" in l)
unmarked = max(i for i, l in enumerate(own) if "unlink" in l and '"live"' in l)
said = max(i for i, l in enumerate(own) if l.startswith("write(2"))
assert named < unmarked < said, (named, unmarked, said)
freed = [i for i, l in enumerate(own) if (m := re.match(r"munmap\(\w+, (\d+)", l)) and int(m[1]) >= 64 << 20 and i > named]
children = [re.search(r"= (\d+)", l)[1] for i, l in enumerate(own) if "CLONE_VM" in l and "CLONE_VFORK" not in l and
            "CLONE_THREAD" not in l and i > said and re.search(r"= \d", l)]
# The recorder is looked at again once a millisecond, for some microseconds.
looks = sum("rt_sigprocmask" in l for _, l in lines)
assert looks < 50000, looks
if int(sys.argv[1]) > 1000000:
    assert not freed and len(children) == 1, (freed, children)
    ends = {pid: i for i, (pid, l) in enumerate(lines) if l.startswith("+++ exited")}
    assert ends[recorder] < ends[children[0]], ends
else:
    assert not children, children
EOT
done
