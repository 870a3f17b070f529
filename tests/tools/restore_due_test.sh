#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    When a recording ends, no slot is written for it any more: neither one whose write is put off while a thread is inside
#         dlclose(), nor one that a thread has just bound.
# Method  A destructor opens a library, whose slots are due then, and lasts until the recording has ended. Then threads that open and
#         close libraries all the time, in several rounds. The program counts its slots that lead to the agent.
build=$1
. "$(dirname "$0")/lib.sh"

cat >slow.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((destructor)) static void open_and_wait(void)
{
	dlopen("./libuser0.so", RTLD_LAZY | RTLD_LOCAL);
	fclose(fopen("inside", "w"));
	while (access("end", F_OK))
		usleep(1000);
}
C
echo '#include <unistd.h>
long user_call(void) { return getppid() + getpid(); }' >user.c
cat >app.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int count_slots(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Rela) *row = NULL;
	size_t count = 0;
	if (strstr(info->dlpi_name, "tracewheel"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dynamic && dynamic->d_tag; dynamic++) {
		if (dynamic->d_tag == DT_JMPREL)
			row = (const void *)dynamic->d_un.d_ptr;
		if (dynamic->d_tag == DT_PLTRELSZ)
			count = dynamic->d_un.d_val / sizeof *row;
	}
	for (; row && count; row++, count--) {
		void *target = *(void **)(info->dlpi_addr + row->r_offset);
		Dl_info found;
		/* Stubs have no names there, wrapped functions have. */
		if (dladdr(target, &found) && strstr(found.dli_fname, "tracewheel-agent") && !found.dli_sname)
			++*(int *)arg;
	}
	return bytes == 0;
}
static void say(const char *file, int is_counted)
{
	FILE *out = fopen("made", "w");
	int count = 0;
	if (is_counted)
		dl_iterate_phdr(count_slots, &count);
	fprintf(out, "%d\n", count);
	fclose(out);
	rename("made", file);
}
static void *close_slow(void *handle)
{
	dlclose(handle);
	return NULL;
}
static void *open_and_close(void *name)
{
	while (access("end", F_OK)) {
		void *user = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
		((long (*)(void))dlsym(user, "user_call"))();
		dlclose(user);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	static char *const names[] = {"./libuser0.so", "./libuser1.so"};
	pthread_t threads[2];
	int is_slow = argc > 1 && !strcmp(argv[1], "slow");
	signal(SIGTERM, SIG_IGN);
	if (is_slow) {
		pthread_create(threads, NULL, close_slow, dlopen("./libslow.so", RTLD_NOW | RTLD_LOCAL));
		while (access("inside", F_OK))
			usleep(1000);
	}
	for (int i = 0; !is_slow && i < 2; i++)
		pthread_create(&threads[i], NULL, open_and_close, names[i]);
	/* Not counted: other threads have the loader's lock. */
	say("begun", 0);
	while (access("end", F_OK))
		usleep(1000);
	for (int i = 0; i < 2 - is_slow; i++)
		pthread_join(threads[i], NULL);
	say("ended", 1);
	return 0;
}
C
gcc -O1 -shared -fPIC -o libslow.so slow.c && gcc -O1 -shared -fPIC -Wl,-z,lazy -o libuser0.so user.c && cp libuser0.so libuser1.so &&
	gcc -O1 -o app app.c -ldl -lpthread || fail "the program does not compile"

# record MODE: until the program has begun; then the recording ends, and the program afterwards.
record() {
	rm -rf begun ended inside end r.tw
	"$tw" record --global --allow-nothing -t 'libc:get{pid,ppid}' -t libc:access -o r.tw -- ./app "$1" >out 2>err </dev/null &
	local recorder=$!
	wait_until test -e begun
	while kill -TERM $recorder 2>/dev/null; do
		sleep 0.1
	done
	wait $recorder
	is $? 143
	: >end
	wait_until test -e ended
	is "$(cat ended)" 0 "slots that lead to the agent, $1"
}

record slow
for _ in {1..12}; do
	record busy
done
[ "$(calls r.tw getppid)" -gt 0 ] || fail "no slot was armed"
