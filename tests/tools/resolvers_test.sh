#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Functions that choose the code of another (STT_GNU_IFUNC) are recorded as others are: each call that the loader makes of them for
#         the program, while it binds and by dlsym(), and none that Tracewheel makes to learn which code was chosen.
# Method  Resolvers that count their calls: an untraced run says how many the program causes.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >pick.c <<'C'
#include <stdio.h>
static int choosings;
static int one(void) { return 1; }
int FUNCTION(void) __attribute__((ifunc("choose")));
__attribute__((used, noinline)) static int (*choose(void))(void)
{
	choosings++;
	return one;
}
int COUNT(void) { return choosings; }
C
cat >main.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int early(void), early_count(void);
int main(void)
{
	int sum = 0, before = early_count();
	void *late;
	int (*count)(void);

	/* Bound at the first call. */
	sum += early() + early();
	for (int i = 0; i < 3; i++)
		sum += ((int (*)(void))dlsym(RTLD_DEFAULT, "early"))();
	late = dlopen("./liblate.so", RTLD_NOW);
	count = (int (*)(void))dlsym(late, "late_count");
	for (int i = 0; i < 2; i++)
		sum += ((int (*)(void))dlsym(late, "late"))();
	printf("%d %d %d\n", sum, early_count() - before, count());
	return 0;
}
C
gcc -O1 -fPIC -shared -DFUNCTION=early -DCOUNT=early_count -o libearly.so pick.c -Wl,--build-id || fail "libearly.so does not compile"
gcc -O1 -fPIC -shared -DFUNCTION=late -DCOUNT=late_count -o liblate.so pick.c -Wl,--build-id || fail "liblate.so does not compile"
gcc -O1 -o main main.c ./libearly.so -ldl -Wl,-z,lazy -Wl,--build-id || fail "the program does not compile"
is "$(./main)" "7 4 2"

for way in "" --local; do
	expect 0 "$tw" record -q --force $way --on-full block --returns -t 'libearly:_' -t 'liblate:_' -o a.tw -- ./main
	# Of the library that is opened later, Tracewheel asks as well.
	grep -q '^7 4 [23]$' out || fail "the program printed '$(cat out)'"
	is "$(calls a.tw libearly:choose) $(calls a.tw liblate:choose)" "4 2"
	is "$(calls a.tw libearly:early_count) $(calls a.tw liblate:late_count)" "2 1"
	expect 0 "$tw" report --json -n 0 a.tw
	is "$(json "d['events'] - 2 * d['calls']")" 0
done

# In libc the loader asks them for dlsym().
cat >ask.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
int main(void)
{
	for (int i = 0; i < 5; i++)
		if (!dlsym(RTLD_DEFAULT, "strcspn"))
			return 1;
	return 0;
}
C
gcc -O1 -o ask ask.c -ldl -Wl,--build-id || fail "the program does not compile"
expect 0 "$tw" functions --local --json -t 'libc:_' ./ask
is "$(json "sum('loader' in f.get('refusal', '') and not f.get('chosen') for f in d['functions'])")" 0
expect 0 "$tw" record -q --force --on-full block -t 'libc:_' -o b.tw -- ./ask
# Its name, if libc's debug information is installed.
value=$(readelf -W --dyn-syms "$(ldd ask | awk '$1 ~ /^libc.so/ {print $3}')" | awk '$8 ~ /^strcspn@/ {print $2; exit}')
nameless=$(printf 'sub_%x' "0x$value")
is $(($(calls b.tw "$nameless") + $(calls b.tw strcspn_ifunc))) 5

# ---- the list of functions tells both ways; with --local there is no such name ----
expect 0 "$tw" functions -t libc:strlen -t 'libearly:_' "$(command -v sqlite3 || command -v python3)"
shows '^entry  libc:strlen .*of the code that the loader chooses$'
shows '^slot   libc:strlen .*, if another function has the same code$'
expect 0 "$tw" functions --json -t 'libearly:_' ./main
is "$(json "[(f['function'], f['way'], f.get('chosen', False)) for f in d['functions'] if 'early' in f['function'] or f['function'] == 'choose']")" \
	"[('choose', 'entry', False), ('early', 'entry', True), ('early', 'slot', False), ('early_count', 'entry', False)]"
expect 0 "$tw" functions --local --refused -t 'libearly:early' ./main
shows 'libearly:early .*: the loader chooses its code'
expect 2 "$tw" record --local -t libearly:early -o c.tw -- ./main
says 'early of libearly cannot be traced: the loader chooses its code, which is recorded under this name without --local'
