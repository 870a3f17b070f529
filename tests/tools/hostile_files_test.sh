#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Files that a capture, a traced process or another file names keep no command waiting, and cost it neither memory nor time that their
#         makers did not spend: pipes, files of holes, tables that promise 2^32 symbols, packed sections that promise gigabytes.
# Method  Such files under the names that the commands open. Each command must end by itself: the limit of 300 s is for tests that hang.
#         Memory is the most that the command has had resident.
build=$1
. "$(dirname "$0")/lib.sh"
limit=300
export XDG_CACHE_HOME=$work/cache TRACEWHEEL_PLAN_WAIT_MS=10000

# ends CODE COMMAND...: as expect, and within its limits.
ends() {
	local code=$1
	shift
	expect "$code" timeout -s KILL $limit python3 "$work/limits.py" "$@"
}
cat >limits.py <<'P'
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.exit(f"{most} KiB resident" if most > 400_000 else code)
P

# ---- no regular files ----
mkfifo pipe.so
for name in ./pipe.so /dev/zero; do
	ends 1 "$tw" functions "$name"
	says "is not an ELF file, or it is damaged"
done
printf '#!%s/pipe.so\n' "$work" >script
chmod 755 script
ends 126 "$tw" record -q -o x.tw -- ./script
says "wants the interpreter '$work/pipe.so', which is no program"

# ---- an ELF file of holes, looked at, and mapped by a traced process ----
cat >holes.py <<'P'
import struct, sys
size = 0x77000000
with open(sys.argv[1], "wb") as file:
    file.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0))
    file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096))
    file.truncate(size)
P
python3 holes.py holes.so
ends 1 "$tw" functions ./holes.so
says "nearly all of it is holes"
cat >map.c <<'C'
/* map FILE LIBRARY: maps FILE as code, then opens LIBRARY. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY);
	if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 4;
	return dlopen(argv[2], RTLD_NOW) ? 3 : 5;
}
C
echo 'int late(int a) { return a * 3 + 1; }' >late.c
gcc -O2 -shared -fPIC -o liblate.so late.c -Wl,--build-id && gcc -O2 -s -o map map.c || fail "gcc"
ends 3 "$tw" record --force --local --allow-nothing -t '{holes,liblate}:_' -o h.tw -- ./map ./holes.so ./liblate.so
says "holes.so: its file"

# ---- tables that promise more symbols than there is memory ----
cat >many.py <<'P'
# many.py FILE COPY TAG: the table of this tag in the dynamic section promises 2^32 symbols.
import struct, sys
data, tag = bytearray(open(sys.argv[1], "rb").read()), int(sys.argv[3], 0)
table, = struct.unpack_from("<Q", data, 0x20)
size, count = struct.unpack_from("<HH", data, 0x36)
headers = [struct.unpack_from("<IIQQQQQQ", data, table + i * size) for i in range(count)]
loaded = [(h[3], h[5], h[2]) for h in headers if h[0] == 1]
offset = lambda value: next(o + value - v for v, n, o in loaded if v <= value < v + n)
at, length = next((h[2], h[5]) for h in headers if h[0] == 2)
for entry in range(at, at + length, 16):
    this, value = struct.unpack_from("<QQ", data, entry)
    if this == tag == 4:
        struct.pack_into("<I", data, offset(value) + 4, 0xFFFFFFFF)
        break
    if this == tag:
        place = offset(value)
        buckets, _, bloom, _ = struct.unpack_from("<IIII", data, place)
        struct.pack_into("<I", data, place + 4, 0xFFFFFFF0)
        first = place + 16 + 8 * bloom
        data[first:first + 4 * buckets] = bytes(4 * buckets)
        break
else:
    sys.exit("no such table")
open(sys.argv[2], "wb").write(data)
P
cat >work.c <<'C'
__attribute__((noinline)) int work(int a) { __asm__ volatile("" : "+r"(a)); return a * 7 % 5; }
int main(void) { return work(9) + 0 * work(1); }
C
for style in gnu:0x6ffffef5 sysv:4; do
	gcc -O2 -rdynamic -o plain work.c -Wl,--build-id -Wl,--hash-style=${style%:*} && python3 many.py plain many ${style#*:} || fail "$style"
	chmod 755 many
	rm -rf cache
	ends 0 "$tw" functions -t 'many:_' ./many
	shows 'many:work'
	ends 3 "$tw" record -q --force -t 'many:_' -o m.tw -- ./many
	is "$(calls m.tw many:work)" 2 "$style"
done

# ---- what a capture names: the program's file is gone when the capture is read ----
cat >locks.c <<'C'
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *unused)
{
	for (int i = 0; i < 60; i++) {
		pthread_mutex_lock(&guard);
		usleep(10);
		pthread_mutex_unlock(&guard);
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 3;
}
C
gcc -g -o locks locks.c -pthread -Wl,--build-id=none || fail "gcc"
expect 3 "$tw" record -q --locks --stack 3 -o l.tw -- ./locks
expect 0 "$tw" report --locks l.tw
shows 'locks:guard'
views() {
	ends 0 "$tw" report --locks l.tw
	ends 0 "$tw" print l.tw
	ends 0 "$tw" report l.tw
}
rm locks
mkfifo locks
views
rm locks
python3 holes.py locks
views

# ---- what that file names: a debug file, beside it or by its compiler ----
rm locks
gcc -o locks locks.c -pthread -Wl,--build-id=none && echo >linked && objcopy --add-gnu-debuglink=linked locks || fail "objcopy"
rm linked
mkfifo linked
views
rm linked
truncate -s 60G linked
views
rm linked
gcc -g -gsplit-dwarf -o locks locks.c -pthread -Wl,--build-id=none || fail "gcc"
rm -f ./*.dwo
for name in $(readelf --debug-dump=info locks 2>/dev/null | sed -n 's/.*dwo_name.*: //p' | tr -d '\t'); do
	mkfifo "$name"
done
compgen -G '*.dwo' >/dev/null || fail "no split debug information"
views
mkfifo locks.dwp
rm -f ./*.dwo
views
rm locks.dwp

# ---- a section that is a terabyte when unpacked ----
gcc -g -gz=zlib -o locks locks.c -pthread -Wl,--build-id=none || fail "gcc"
cat >bomb.py <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
table, = struct.unpack_from("<Q", data, 0x28)
size, count = struct.unpack_from("<HH", data, 0x3A)
packed = 0
for i in range(count):
    section = struct.unpack_from("<IIQQQQIIQQ", data, table + i * size)
    if section[2] & 0x800:
        struct.pack_into("<Q", data, section[4] + 8, 1 << 33)
        packed += 1
open(sys.argv[1], "wb").write(data)
sys.exit(not packed)
P
python3 bomb.py locks || fail "nothing is packed"
views
