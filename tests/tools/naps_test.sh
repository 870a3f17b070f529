#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    No process sleeps for a fixed time when a recording begins or ends: neither the recorder nor the program, also
#         not in each process of many.
# Method  A filter ends every process that calls nanosleep() or clock_nanosleep(). The programs themselves wait by
#         poll(), so that a recorder on a fast machine has time to measure its clock. First the filter itself is tested.
build=$1
. "$(dirname "$0")/lib.sh"

cat >awake.c <<'C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	execvp(argv[1], argv + 1);
	return 127;
}
C
cat >app.c <<'C'
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 0;
	poll(0, 0, 20);
	for (int i = 0; i < children; i++) {
		if (fork() == 0) {
			if (i % 2)
				execl(argv[0], argv[0], NULL);
			return getppid() < 0;
		}
		wait(0);
	}
	return 3 + (getppid() < 0);
}
C
gcc -w -O1 -o awake awake.c && gcc -w -O1 -o app app.c || fail gcc
./awake true || { echo "filters are refused here: not tested" && exit 77; }
./awake sleep 0.001 2>/dev/null && fail "the filter does not end sleepers"

expect 3 ./awake "$tw" record -q -o a.tw -t libc:getppid -- ./app
expect 0 "$tw" info --json a.tw
is "$(json 'd["events"]')" 1
expect 3 ./awake "$tw" record -q -o b.tw --follow-fork -t libc:getppid -- ./app 10
expect 0 "$tw" info --json b.tw
is "$(json 'd["events"], sum(d["lost"].values())')" "11 0"
echo PASS
