#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever file is looked at, and whatever a traced process maps, the plans that are kept for other programs stay right: for root's
#         command and for an ordinary user's, with an empty and with a warm cache. Debian's libraries, which are another's for a user, are
#         planned, and their plans kept.
# Method  A function that loads a constant; a copy of its library whose call frame information says that it begins inside that constant, with
#         the same code and build-id. A jump written by the copy's plan into the library's code changes the constant, which the honest
#         program prints. As root, a process that drops its rights lets a name lead to a file of root with contents of its choice.
build=$1
. "$(dirname "$0")/lib.sh"
export TRACEWHEEL_PLAN_WAIT_MS=10000

cat >constant.S <<'S'
	.text
	.globl constant
	.type constant, @function
constant:
	.cfi_startproc
	movabs $0x9090909090909090, %rax
	ret
	.cfi_endproc
	.size constant, .-constant
	.section .note.GNU-stack, "", @progbits
S
cat >honest.c <<'C'
#include <stdio.h>
unsigned long constant(void);
int main(void)
{
	printf("%lx\n", constant());
	return 0;
}
C
# poison.py FILE COPY: the functions of COPY begin two bytes later, in the call frame information and in the symbol tables.
cat >poison.py <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
table, = struct.unpack_from("<Q", data, 0x28)
size, count, names = struct.unpack_from("<HHH", data, 0x3A)
sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
def name(section):
    at = sections[names][4] + section[0]
    return data[at:data.index(0, at)].decode()
found = {name(section): section for section in sections}
text, frames, changed = found[".text"], found[".eh_frame"], 0
at, end = frames[4], frames[4] + frames[5]
while at < end:
    length, back = struct.unpack_from("<II", data, at)
    if not length:
        break
    begin, span = struct.unpack_from("<ii", data, at + 8)
    if back and text[3] <= frames[3] + at + 8 - frames[4] + begin < text[3] + text[5]:
        struct.pack_into("<ii", data, at + 8, begin + 2, span - 2)
        changed += 1
    at += 4 + length
for table in (".dynsym", ".symtab"):
    _, _, _, _, offset, length = found.get(table, (0,) * 6)[:6]
    for symbol in range(offset, offset + length, 24):
        value, = struct.unpack_from("<Q", data, symbol + 8)
        if data[symbol + 4] & 15 == 2 and text[3] <= value < text[3] + text[5]:
            struct.pack_into("<Q", data, symbol + 8, value + 2)
open(sys.argv[2], "wb").write(data)
sys.exit(not changed)
P
cat >open.c <<'C'
/* open LIBRARY FUNCTION: opens it and calls it. */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *handle = dlopen(argv[1], RTLD_NOW);
	const void *(*function)(void) = handle ? (const void *(*)(void))dlsym(handle, argv[2]) : NULL;
	if (!function)
		return 1;
	function();
	return 3;
}
C
gcc -shared -o libconstant.so constant.S -Wl,--build-id -Wl,-soname,libconstant.so && gcc -O2 -s -o open open.c &&
	gcc -O2 -o honest honest.c -L. -lconstant "-Wl,-rpath,$work" -Wl,--build-id || fail "gcc"
python3 poison.py libconstant.so evil.so || fail "nothing was poisoned"
answer=$(./honest)
is "$answer" 9090909090909090

# answers WHEN: the honest program does what it does alone, and its call is recorded.
answers() {
	expect 0 $run "$tw" record -q --force --local -t 'libconstant:_' -o h.tw -- ./honest
	is "$(cat out)" "$answer" "$1"
	is "$(calls h.tw constant)" 1 "$1"
}

# kept LIBRARY: the plans in the cache of files with its build-id.
kept() {
	local id
	id=$(readelf -n "$1" | awk '/Build ID/ { print $3 }')
	find "$XDG_CACHE_HOME/tracewheel/plans" -name "$id*" | sort
}

# all WHO: everything, as root or as an ordinary user.
all() {
	local before
	export XDG_CACHE_HOME=$PWD/cache
	mkdir cache
	[ -z "$run" ] || chown 65534 cache .

	# ---- looked at before, and with the honest plan in the cache ----
	for cache in empty warm; do
		expect 0 $run "$tw" functions --local -t '_:_' ./evil.so
		answers "$1: looked at, $cache cache"
	done
	# The copy under the library's name, with its times, and back again.
	cp -p libconstant.so right.so
	cp -p right.so libconstant.so
	sleep 0.05
	answers "$1: the same again"
	before=$(kept libconstant.so)
	cp evil.so libconstant.so
	touch -r right.so libconstant.so
	sleep 0.05
	expect 0 $run "$tw" functions --local -t '_:_' ./libconstant.so
	cat right.so >libconstant.so
	touch -r right.so libconstant.so
	sleep 0.05
	answers "$1: rewritten"
	[ "$(kept libconstant.so)" != "$before" ] || fail "$1: the plan was kept for other bytes"
	# Opened later: first the copy, then the library itself.
	expect 3 $run "$tw" record -q --force --local --allow-nothing -t 'evil:_' -o e.tw -- ./open ./evil.so constant
	answers "$1: opened later"

	# ---- Debian's library, planned and kept; of the start, and opened later ----
	if [ -n "$sqlite" ]; then
		for cache in made kept; do
			expect 3 $run "$tw" record -q --force --local -t 'libsqlite3:sqlite3_libversion' -o s.tw -- ./open "$sqlite" sqlite3_libversion
			is "$(calls s.tw sqlite3_libversion)" 1 "$1: Debian's, opened later, $cache"
			[ "$cache" = kept ] || before=$(ls -i $(kept "$sqlite"))
			[ -n "$before" ] || fail "$1: no plan of Debian's library was kept"
		done
		is "$(ls -i $(kept "$sqlite"))" "$before" "$1: made anew"
		expect 0 $run "$tw" record -q --force --local -t 'libsqlite3:sqlite3_open_v2' -o s.tw -- sqlite3 :memory: 'select 1'
		is "$(calls s.tw sqlite3_open_v2)" 1 "$1: Debian's, of the start"
		is "$(ls -i $(kept "$sqlite"))" "$before" "$1: made anew for the start"
	fi

	# ---- a file that others may write has a plan, which is not kept ----
	for mode in 775 757; do
		cp libconstant.so libloose.so
		chmod $mode libloose.so
		sleep 0.05
		expect 0 $run "$tw" functions --local --json -t 'libloose:_' ./libloose.so
		is "$(json "[f['way'] for f in d['functions']]")" "['entry']" "$1: mode $mode"
		before=$(kept libconstant.so)
		expect 0 $run "$tw" functions --local -t 'libloose:_' ./libloose.so
		is "$(kept libconstant.so)" "$before" "$1: kept with mode $mode"
	done

	# ---- names that lead elsewhere ----
	ln -sf libconstant.so libconstant.so.1
	expect 3 $run "$tw" record -q --force --local -t 'libconstant:_' -o l.tw -- ./open ./libconstant.so.1 constant
	is "$(calls l.tw constant)" 1 "$1: opened by a link"
	rm -rf cache ./*.tw
}

command -v sqlite3 >/dev/null && sqlite=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | awk '/libsqlite3.so.0 / { print $NF; exit }') || sqlite=
run=
all "this user"
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	echo "this is not root: another user and a process that drops its rights were not tested" >&2
	exit 77
fi
run="setpriv --reuid 65534 --regid 65534 --clear-groups env -u TRACEWHEEL_SHM"
if $run test -x "$tw"; then
	export HOME=$work
	all "another user"
	chown 0 .
else
	echo "the build may not be read by other users: another user was not tested" >&2
fi
run=

# ---- a process that has dropped its rights: a name that is another file in its own mounts ----
cat >attack.c <<'C'
/*
 * attack LIBRARY FOLDER WAY: as nobody, maps a copy of LIBRARY under the name FOLDER/libconstant.so, and opens it.
 *
 * mounts	 the copy lies in a file system of this process; for others the name is a link to /proc/PID/cmdline, a file of root with
 *		 the library's contents
 * file, writable	 the copy lies there for all
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char bytes[1 << 20];
static long count;

static void put(const char *path, const void *from, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0755);
	if (fd < 0 || write(fd, from, length) != (long)length)
		_exit(4);
	close(fd);
}

/* Its command line becomes the library. */
static int hold(int argc, char **argv)
{
	char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1, done = 1;
	if (end - argv[0] <= count)
		return 5;
	memcpy(argv[0], bytes, (size_t)count);
	prctl(PR_SET_DUMPABLE, 0);
	if (write(9, &done, 1) != 1)
		return 6;
	pause();
	return 0;
}

static pid_t start_holder(char **argv)
{
	char done;
	int ends[2];
	pid_t holder;
	if (pipe(ends) || (holder = fork()) < 0)
		_exit(7);
	if (!holder) {
		static char padding[100000];
		memset(padding, 'x', sizeof padding - 1);
		unsetenv("LD_PRELOAD");
		dup2(ends[1], 9);
		execl("/proc/self/exe", argv[0], argv[1], argv[2], "holder", padding, (char *)NULL);
		_exit(8);
	}
	close(ends[1]);
	if (read(ends[0], &done, 1) != 1)
		_exit(9);
	return holder;
}

static void mount_own(const char *folder)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		_exit(77);
	put("/proc/self/setgroups", "deny", 4);
	put("/proc/self/uid_map", "0 65534 1", 9);
	put("/proc/self/gid_map", "0 65534 1", 9);
	if (mount("none", folder, "tmpfs", 0, NULL))
		_exit(77);
}

int main(int argc, char **argv)
{
	char path[300], link[64];
	int fd = open(argv[1], O_RDONLY);
	pid_t holder = 0;
	count = read(fd, bytes, sizeof bytes);
	close(fd);
	if (!strcmp(argv[3], "holder"))
		return hold(argc, argv);
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return 2;
	prctl(PR_SET_DUMPABLE, 1);
	mkdir(argv[2], 0755);
	snprintf(path, sizeof path, "%s/libconstant.so", argv[2]);
	if (!strcmp(argv[3], "mounts")) {
		holder = start_holder(argv);
		snprintf(link, sizeof link, "/proc/%d/cmdline", holder);
		if (symlink(link, path))
			return 3;
		mount_own(argv[2]);
	}
	put(path, bytes, (size_t)count);
	if (!dlopen(path, RTLD_NOW))
		return 10;
	if (holder)
		kill(holder, SIGKILL);
	return 3;
}
C
gcc -O1 -w -D_GNU_SOURCE -o attack attack.c || fail "gcc"
export XDG_CACHE_HOME=$PWD/cache
chmod 711 .
for cache in empty warm; do
	for way in mounts file; do
		rm -rf there
		install -d -o 65534 there
		code=0
		"$tw" record --force --local --allow-nothing -t 'libconstant:_' -o a.tw -- ./attack "$work/evil.so" "$work/there" $way >out 2>err || code=$?
		if [ $code = 77 ]; then
			echo "no user name spaces: a process with other mounts was not tested" >&2
			continue
		fi
		is $code 3 "the attack by $way"
		says "there/libconstant.so: another user than root and you may write its file; its functions without sleds were not traced"
		answers "attacked by $way, $cache cache"
	done
done
