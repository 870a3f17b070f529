#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Libraries opened while the program runs have typed arguments, returns and guards as if they had been loaded at
#         the start; a command that does not answer delays no thread, and is reported.
# Method  A host that opens plugins; a shell that executes it; a recorder that is stopped, or killed.
build=$1
. "$(dirname "$0")/lib.sh"
needs_strings

cat >plug.c <<'C'
enum mode { READ = 1, WRITE = 2 };
__attribute__((noipa)) double plug_take(const char *name, int n, unsigned long size, enum mode mode) { return n / 2.0; }
__attribute__((noipa)) int plug_run(int n)
{
	for (int i = 0; i < n; i++)
		plug_take(i % 2 ? "odd" : "even", -i, i * 1000, i % 3 ? READ : WRITE);
	return n + 1;
}
C
cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *handle = dlopen(argv[i], RTLD_NOW);
		int (*run)(int) = handle ? dlsym(handle, "plug_run") : NULL;
		printf("%d\n", run ? run(6) : -1);
		if (handle)
			dlclose(handle);
	}
	return 4;
}
C
plugin() {
	gcc -w -g -O2 -fPIC -shared -fpatchable-function-entry=9 "$@" plug.c || fail "gcc $*"
}
plugin -o libplug.so
gcc -w -o host host.c || fail "gcc"

# recorded COMMAND...: records it and writes the output of print to the file out.
recorded() {
	"$tw" record --force -o p.tw "${options[@]}" -- "$@" >got 2>said
	is $? 4 "$*"
	expect 0 "$tw" print p.tw
}
typed='plug_take/4 (name = "odd", n = -3, size = 3000, mode = WRITE)$'

options=(-t 'libplug:_' --args --returns)
recorded ./host "$PWD/libplug.so" ./libplug.so
is "$(cat got)" '7
7' "another answer"
is "$(grep -c " call libplug:$typed" out)" 2
is "$(grep -c ' return_from libplug:plug_take/4 -> -1\.5$' out)" 2
is "$(grep -c ' call libplug:plug_run/1 (n = 6)$' out)" 2
is "$(grep -c 'raw words' said)" 0

# Rebuilt and opened again it is another library.
sed -i 's/int n, unsigned long size/short n, unsigned long bytes/' plug.c
cat >again.sh <<'S'
./host ./libplug.so && false
gcc -w -g -O2 -fPIC -shared -fpatchable-function-entry=9 -o new.so plug.c && mv new.so libplug.so
exec ./host ./libplug.so
S
options=(-t 'libplug:_' --args --follow-fork)
recorded sh again.sh
is "$(grep -c " call libplug:$typed" out) $(grep -c 'n = -3, bytes = 3000, mode' out)" '1 1'

# By path if there is no build-id; the program that a shell executes is examined once it is loaded.
plugin -Wl,--build-id=none -o libplug.so
options=(-t 'libplug:_' --args)
recorded ./host ./libplug.so
is "$(grep -c 'n = -3, bytes = 3000, mode' out)" 1
gcc -w -g -O2 -fpatchable-function-entry=9 -o app -xc - <<'C' || fail "gcc"
__attribute__((noipa)) int app_take(int first, const char *second) { return first; }
int main(void) { return app_take(4, "exec"); }
C
options=(-t 'app:app_take' --args)
recorded sh -c 'exec ./app'
shows 'call app:app_take/2 (first = 4, second = "exec")$'

# --when: names are looked up once the library is loaded; an invalid guard is refused at once.
options=(-t 'libplug:_' --args --when 'bytes > 2000 and name == "odd"')
recorded ./host ./libplug.so
is "$(grep -c ' call ' out) $(grep -c 'name = "odd", n = -[35], bytes' out)" '2 2'
grep -q 'looked up in libraries that are opened later' said || fail "not said at first"
grep -q "1 function of libraries that were opened later was not traced: .*no parameter 'bytes'" said || fail "not said at the end: $(cat said)"
expect 2 "$tw" record -o never.tw -t 'libplug:_' --when 'bytes > ' -- ./host
expect 2 "$tw" record -o never.tw --global -t 'host:_' --when 'bytes > 1' -- ./host
says "'host:_' can match nothing: .*no sled"

# Without debug information: words, and a sentence; with guards nothing is traced.
strip -g libplug.so
options=(-t 'libplug:_' --args)
recorded ./host ./libplug.so
is "$(grep -c 'plug_take (0x' out)" 6
grep -q 'no debug information.*its arguments are raw words' said || fail "not said"
options=(-t 'libplug:_' --when 'bytes > 2000')
recorded ./host ./libplug.so
is "$(grep -c ' call ' out)" 0
grep -q 'its functions were not traced' said || fail "not said"

# Threads wait only briefly for a recorder that is stopped or dead; the program is not affected.
plugin -o libplug.so
cat >slow.c <<'C'
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct timespec a, b;
	kill(getppid(), atoi(argv[1]));
	usleep(100000);
	clock_gettime(CLOCK_MONOTONIC, &a);
	void *handle = dlopen("./libplug.so", RTLD_NOW);
	clock_gettime(CLOCK_MONOTONIC, &b);
	int (*run)(int) = dlsym(handle, "plug_run");
	int got = run(6), slow = b.tv_sec - a.tv_sec > 60;
	if (atoi(argv[1]) == SIGSTOP)
		kill(getppid(), SIGCONT);
	else if ((handle = fopen("answer", "w")))
		fprintf(handle, "%d %d\n", got, slow), fclose(handle);
	printf("%d %d\n", got, slow);
	return 4;
}
C
gcc -w -o slow slow.c || fail "gcc"
options=(-t 'libplug:_' --args)
recorded ./slow 19
is "$(cat got)" '7 0' "a stopped recorder"
is "$(grep -c 'plug_take (0x' out)" 6
expect 0 "$tw" info p.tw
shows 'arguments are words in libplug: it was opened later, and its debug information was not read in time'
setsid "$tw" record --force -o k.tw "${options[@]}" -- ./slow 9 >/dev/null 2>&1
wait_until test -s answer
is "$(cat answer)" '7 0' "a recorder that was killed"
expect 0 "$tw" recover k.tw

exit 0
