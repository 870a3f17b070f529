#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    When a recording ends, no slot or sled is written for it any more: neither one whose write is put off while a thread is
#         inside dlclose(), nor a slot that a thread has just bound.
# Method  A destructor opens a library, whose slots and sleds are due then, and lasts until the recording has ended. Then threads that
#         open and close libraries all the time, in several rounds. The program counts its slots and sleds that lead to the agent.
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
	while (!access("slow", F_OK) && access("end", F_OK))
		usleep(1000);
}
C
echo '#include <unistd.h>
long user_call(void) { return getppid() + getpid(); }
__attribute__((patchable_function_entry(9))) long user_sled(void) { return 1; }' >user.c
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
static void say(const char *file, int count)
{
	FILE *out = fopen("made", "w");
	fprintf(out, "%d\n", count);
	fclose(out);
	rename("made", file);
}
static int is_sled_armed(void)
{
	void *sled = dlsym(dlopen("./libuser0.so", RTLD_LAZY | RTLD_NOLOAD), "user_sled");
	return memchr(sled, 0xe9, 9) != NULL;
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
	int is_busy = !strcmp(argv[argc - 1], "busy"), is_quick = !strcmp(argv[argc - 1], "quick"), running = 0, count = 0;
	signal(SIGTERM, SIG_IGN);
	for (int i = 0; is_busy && i < 2; i++)
		pthread_create(&threads[running++], NULL, open_and_close, names[i]);
	if (!is_busy)
		pthread_create(&threads[running++], NULL, close_slow, dlopen("./libslow.so", RTLD_NOW | RTLD_LOCAL));
	while (!is_busy && access("inside", F_OK))
		usleep(1000);
	if (is_quick) {
		pthread_join(threads[--running], NULL);
		say("armed", is_sled_armed());
	}
	say("begun", 0);
	while (access("end", F_OK))
		usleep(1000);
	while (running)
		pthread_join(threads[--running], NULL);
	if (!is_busy)
		say("sled", is_sled_armed());
	dl_iterate_phdr(count_slots, &count);
	say("ended", count);
	return 0;
}
C
gcc -O1 -shared -fPIC -o libslow.so slow.c && gcc -O1 -shared -fPIC -Wl,-z,lazy -o libuser0.so user.c && cp libuser0.so libuser1.so &&
	gcc -O1 -o app app.c -ldl -lpthread || fail "the program does not compile"

# record MODE OPTION: until the program has begun; then the recording ends, and the program afterwards.
record() {
	rm -rf begun ended sled armed slow inside end r.tw
	[ "$1" != slow ] || : >slow
	"$tw" record "$2" --allow-nothing -t libuser0:user_sled -t 'libc:get{pid,ppid}' -t libc:access -o r.tw -- ./app "$1" >out 2>err </dev/null &
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

record slow --global
record slow --local
is "$(cat sled)" 0 "sleds that lead to the agent"
record quick --local
is "$(cat armed) $(cat sled)" "1 0" "armed late, and taken back"
for _ in $(seq "$(rounds 4 12)"); do
	record busy --global
done
[ "$(calls r.tw getppid)" -gt 0 ] || fail "no slot was armed"
