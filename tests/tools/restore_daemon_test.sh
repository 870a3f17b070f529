#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A daemon has its code back, too: a child whose parent, the first process, ends as soon as the child is one of the recording,
#         while the child still writes the definitions of all that it has inherited; or before.
# Method  A library of many functions, whose definitions take milliseconds. The parent waits until the child has mapped its image; or
#         the child waits until the recording has ended, in a handler of fork() that comes before the agent's.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >many.s <<'S'
	.altmacro
	.macro FUNCTION number
	.p2align 4
	.globl many_\number
	.type many_\number, @function
many_\number:
	.cfi_startproc
	leaq 3(%rdi,%rdi,2), %rax
	addq $\number, %rax
	ret
	.cfi_endproc
	.size many_\number, . - many_\number
	.endm
	.set next, 0
	.rept 20000
	FUNCTION %next
	.set next, next + 1
	.endr
	.section .note.GNU-stack, "", @progbits
S
cat >early.c <<'C'
#include <pthread.h>
#include <unistd.h>
static void wait_in_child(void)
{
	while (!access("is_late", F_OK) && access("go", F_OK))
		usleep(1000);
}
__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(NULL, NULL, wait_in_child);
}
C
cat >app.c <<'C'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
long many_7(long);
/* The number of the image that the process has mapped; 0: none. */
static int image_of(int process)
{
	char line[512], *at;
	int image = 0;
	snprintf(line, sizeof line, "/proc/%d/maps", process);
	FILE *maps = fopen(line, "r");
	while (maps && fgets(line, sizeof line, maps))
		if ((at = strstr(line, "/image-")))
			sscanf(at, "/image-%d", &image);
	if (maps)
		fclose(maps);
	return image;
}
int main(void)
{
	int own = image_of(getpid()), found;
	pid_t child = fork();
	if (child) {
		while (access("is_late", F_OK) && ((found = image_of(child)) == own || !found))
			;
		_exit(0);
	}
	setsid();
	FILE *out = fopen("made", "w");
	fprintf(out, "%d\n", (int)getpid());
	fclose(out);
	rename("made", "pid");
	while (access("end", F_OK))
		usleep(1000);
	out = fopen("made", "w");
	fprintf(out, "%ld\n", many_7(1));
	fclose(out);
	rename("made", "answer");
	return 0;
}
C
gcc -shared -Wl,--build-id -Wl,-soname,libmany.so -o libmany.so many.s && gcc -O1 -shared -fPIC -o libearly.so early.c &&
	gcc -O1 -o app app.c -L. -lmany -Wl,--no-as-needed -learly || fail "the program does not compile"

for when in early early is_late; do
	rm -f pid answer end go
	: >$when
	LD_LIBRARY_PATH=. "$tw" record --local --follow-fork --until-first -t libmany:_ -o r.tw --force -- ./app >out 2>err </dev/null
	is $? 0
	: >go
	wait_until test -e pid
	is "$(python3 "$common/changed_text.py" "$(cat pid)")" 0 "bytes of the daemon that differ, $when"
	: >end
	wait_until test -e answer
	is "$(cat answer)" 13 "the answer"
done
