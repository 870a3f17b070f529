#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --syscalls` and `print --format strace` show what strace shows: the same calls in the same order, with the same paths,
#         flags, data, results and errors. A call that another thread interrupts is resumed, and one that never returns has no result.
# Method  A program that makes calls of each kind, and commands of coreutils, under strace and under this, compared without addresses and times. strace sees more: the dynamic
#         linker and constructors come before the program is traced, so that what this shows must be the end of what strace shows. The calls
#         that libc makes by names of its own (_nocancel) count only where its symbols are installed. A program with two threads.
build=$1
. "$(dirname "$0")/lib.sh"
needs_strings
# Descriptors of who runs the tests would change the numbers of those that the commands open.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
# Without locales, whose files are read before and after the agent starts.
export LC_ALL=C

cat >compare.py <<'PY'
import re, sys
ours, theirs, has_inner = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
KINDS = set("openat read write close fadvise64 copy_file_range lseek mkdir rmdir unlinkat symlinkat dup2 utimensat renameat2 umask fchmodat "
            "readlink getcwd newfstatat".split())
INNER = {"openat", "read", "close"} if not has_inner else set()
NAMES = {"open": "openat", "open64": "openat", "__open64": "openat", "__open": "openat", "openat64": "openat", "__openat64": "openat",
         "posix_fadvise": "fadvise64", "posix_fadvise64": "fadvise64", "fstatat": "newfstatat", "fstatat64": "newfstatat",
         "__read": "read", "__write": "write", "__close": "close", "lseek64": "lseek", "__lseek": "lseek", "__dup2": "dup2"}

def calls(path):
    out = []
    for line in open(path, errors="replace"):
        found = re.match(r"(?:\d+\.\d+ )?(\w+)\((.*)\) += (.*?)(?: <[\d.]+>)?$", line.rstrip("\n"))
        if not found:
            continue
        name, arguments, result = found[1], found[2], found[3]
        if name in NAMES:
            arguments = ("AT_FDCWD, " if re.fullmatch(r"(__)?open(64)?", name) else "") + arguments
            name = NAMES[name]
        if name == "futimens":
            name, arguments = "utimensat", re.sub(r"(.*), (.*)", r"\1, NULL, \2, 0", arguments)
        if name not in KINDS or name in INNER:
            continue
        arguments = re.sub(r"\{.*\}|0x[0-9a-f]+", "ADDRESS", arguments)
        if name == "fchmodat":
            arguments = re.sub(r", 0$", "", arguments)
        if name == "umask":
            arguments = re.sub(r"^0+", "0", arguments)
        # strace keeps 32 bytes of a string.
        arguments = re.sub(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?', lambda s: '"' + s[1][:24] + '"', arguments)
        out.append(f"{name}({arguments}) = {result}")
    return out

a, b = calls(ours), calls(theirs)
b = b[len(b) - len(a):] if len(a) <= len(b) else b
# Constructors open files, too: at the beginning both may differ.
if not a or a != b:
    sys.exit("\n".join(["ours:", *a, "strace:", *b]))
PY

# Does libc have names for what it calls itself?
has_inner=0
"$tw" functions -t 'libc:__read_nocancel' cat 2>/dev/null | grep -q __read_nocancel && has_inner=1
can_strace=1
strace -o trace true 2>/dev/null || can_strace=0

# same SETUP COMMAND...: the command does the same under both, after the same preparation
same() {
	local setup=$1
	shift
	rm -rf here && mkdir here && (cd here && printf 'hello\n' >a && printf 'one\ntwo\n' >b && eval "$setup")
	(cd here && "$tw" record -q --syscalls -o ../s.tw --force -- "$@" 2>&1 </dev/null | cat >../out)
	"$tw" print --format strace s.tw >shown 2>err || fail "print: $*"
	[ "$can_strace" = 1 ] || return
	rm -rf here && mkdir here && (cd here && printf 'hello\n' >a && printf 'one\ntwo\n' >b && eval "$setup")
	(cd here && strace -o ../trace "$@" 2>&1 </dev/null | cat >../out)
	python3 compare.py shown trace $has_inner >difference 2>&1 || fail "$*: $(cat difference)"
}

# A small program makes each kind of call that the commands make: its recording, which takes most of the time, is one for all.
cat >every.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	struct stat state;
	char text[64];
	int in = open("a", O_RDONLY), out = openat(AT_FDCWD, "c", O_WRONLY | O_CREAT | O_EXCL, 0644);
	posix_fadvise(in, 0, 0, POSIX_FADV_SEQUENTIAL);
	copy_file_range(in, NULL, out, NULL, 3, 0);
	lseek(in, 0, SEEK_SET);
	write(1, text, (size_t)read(in, text, sizeof text));
	lseek(in, 0, SEEK_SET);
	dup2(in, 0);
	close(in);
	read(0, text, 2);
	open("none", O_RDONLY);
	close(out);
	symlinkat("a", AT_FDCWD, "link");
	readlink("link", text, sizeof text);
	rmdir("a");
	mkdir("d", 0755);
	rmdir("d");
	renameat2(AT_FDCWD, "b", AT_FDCWD, "e", RENAME_NOREPLACE);
	fchmodat(AT_FDCWD, "a", 0600, 0);
	umask(022);
	utimensat(AT_FDCWD, "a", NULL, 0);
	fstatat(AT_FDCWD, "a", &state, 0);
	unlinkat(AT_FDCWD, "e", 0);
	return 0;
}
C
gcc -O1 -w -o every every.c || fail "gcc"
same : ../every
shown() {
	grep -q "^[0-9.]* $1 *= $2 <" shown || fail "$1: $(cat shown)"
}
shown '\(open\|open64\|openat\)(.*"a", O_RDONLY)' 3
shown 'write(1, "hello\\n", 6)' 6
shown '.*"none", O_RDONLY)' '-1 ENOENT (No such file or directory)'
shown '.*"c", O_WRONLY|O_CREAT|O_EXCL, 0644)' 4
shown 'rmdir("a")' '-1 ENOTDIR (Not a directory)'
shown 'readlink("link", "a", [0-9]*)' 1
shown 'read(0, "he", 2)' 2
for kind in posix_fadvise copy_file_range lseek dup2 close symlinkat mkdir renameat2 fchmodat umask utimensat fstatat unlinkat; do
	shown "$kind\(64\)\?(.*)" '[0-9]*'
done
same : dd if=a of=o bs=2 count=2 status=none
shown 'read(0, "he", 2)' 2
if [ -n "${TW_TEST_LONG:-}" ]; then
	same : cat a
	shown '\(open\|open64\|openat\)(.*"a", O_RDONLY)' 3
	shown 'write(1, "hello\\n", 6)' 6
	same : cat none
	shown '.*"none", O_RDONLY)' '-1 ENOENT (No such file or directory)'
	same : cp a c
	shown '.*"c", O_WRONLY|O_CREAT|O_EXCL, 0644)' 4
	same : ln -s a link
	same : rmdir a
	shown 'rmdir("a")' '-1 ENOTDIR (Not a directory)'
	same 'ln -s a link' readlink link
	shown 'readlink("link", "a", [0-9]*)' 1
	same : mv b c
	same : chmod 600 a
	same : touch t
fi

# The program itself shows what is not the same for all: two threads, a call that never returns, flags without a name, sockets.
cat >app.c <<'C'
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
static int fds[2];
static void *other(void *arg) { char c; (void)arg; if (write(fds[1], "x", 1) != 1 || read(fds[0], &c, 0)) return fds; return NULL; }
int main(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)}, name;
	socklen_t bytes = sizeof name;
	pthread_t thread;
	char text[300];
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	connect(fd, (struct sockaddr *)&to, sizeof to);
	getpeername(fd, (struct sockaddr *)&name, &bytes);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (pipe(fds) || pthread_create(&thread, NULL, other, NULL) || read(fds[0], text, sizeof text) != 1)
		return 1;
	pthread_join(thread, NULL);
	open("/none/such", O_RDWR | O_CREAT | O_SYNC | 0x40000000, 0600);
	close(-1);
	_exit(0);
}
C
gcc -O1 -w -pthread -o app app.c || fail "gcc"
expect 0 "$tw" record -q --force --syscalls -o s.tw -- ./app
expect 0 "$tw" print --format strace s.tw
shows 'socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, 0) *= [0-9]* <'
shows 'connect([0-9]*, "127.0.0.1:9", 16) *= 0 <'
shows 'getpeername([0-9]*, "127.0.0.1:9", \[16\]) *= 0 <'
shows 'fcntl\(64\)\?([0-9]*, F_SETFL, 0x800) *= 0 <'
shows 'pipe(\[[0-9]*, [0-9]*\]) *= 0 <'
shows '"/none/such", O_RDWR|O_CREAT|O_SYNC|0x40000000, 0600) *= -1 ENOENT (No such file or directory) <'
shows 'close(-1) *= -1 EBADF (Bad file descriptor) <'
shows '_exit(0) *= ?$'
shows '^[0-9.]* \[[0-9][^]]*\] read([0-9]*,  <unfinished \.\.\.>$\|^[0-9.]* \[[0-9][^]]*\] read([0-9]*, "x", 300) *= 1 <'
is "$(grep -c 'unfinished' out)" "$(grep -c 'resumed' out)"
# A call that returned after --limit is not one that never did.
expect 0 "$tw" print --format strace --limit 1 s.tw
shows '= ? <unfinished \.\.\.>$'
# JSON of the same has numbers.
expect 0 "$tw" print --format json s.tw
shows '"function":"connect".*"args":\[[0-9]*,"127.0.0.1:9",16\]'
# Other views show the same capture; options that do not fit are refused.
expect 0 "$tw" report s.tw
expect 2 "$tw" print --tree --format strace s.tw
says "cannot be --format strace"
expect 2 "$tw" print --format ltrace s.tw
says "text, strace, erlang, dbg, json, perfetto, speedscope or chrome"
# A part: calls that were open before it have no arguments.
expect 0 "$tw" print --format strace --limit 1 s.tw
is "$(wc -l <out)" 1
