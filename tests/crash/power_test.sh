#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With --durable MS a power cut costs only the last moments: everything committed half a second before is
#         stored.
# Method  An ext4 file system in a file is shut down at a random instant without writing its journal, the closest to
#         pulling a plug; rings and processes are removed too; then it is mounted again and recovered.
build=$1
self=$(realpath "$0")
. "$(dirname "$0")/lib.sh"

skip() {
	echo "$1: not tested"
	exit 77
}
[ "$(id -u)" = 0 ] || skip "only root may mount and shut down file systems"
command -v mkfs.ext4 >/dev/null || skip "there is no mkfs.ext4"
# In a mount name space of its own: a copy in another test's name space would keep the dead file system alive.
if [ "${2:-}" != privately ]; then
	unshare -m true 2>refusal || skip "no mount name space may be made ($(cat refusal))"
	cd /
	rm -rf "$work"
	exec unshare -m "$self" "$build" privately
fi
mkdir disk shm
export TRACEWHEEL_SHM=$PWD/shm
cleanup() {
	[ -z "${recorder:-}" ] || kill -KILL "$recorder" ${program:+"$program"} 2>/dev/null
	umount -l disk 2>/dev/null
	umount -l shm 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

# sync_for_a_while PID: ten small writes in a row, each synced like the recorder's: half a second, or as long as this
# disk and machine take; and until the recorder has slept as many times, at most a millisecond each, so that it had that
# time too.
sync_for_a_while() {
	python3 -c 'import os, sys, time
def rests():
    return next(int(line.split()[1]) for line in open(f"/proc/{sys.argv[1]}/status") if line.startswith("voluntary"))
end, file, rested = time.monotonic() + 0.5, os.open("disk/other", os.O_CREAT | os.O_WRONLY), rests()
for i in range(3000):
    os.write(file, b"x" * 4096)
    os.fdatasync(file)
    time.sleep(0.02)
    if i >= 9 and time.monotonic() > end and rests() > rested + 300:
        break' "$1"
}

# numbers WITNESS: the numbers that both threads have committed (witness.h).
numbers() {
	python3 -c 'import struct, sys; d = open(sys.argv[1], "rb").read()
print(*(struct.unpack_from("<Q", d, 64 + 64 * i + 8)[0] for i in range(2)))' "$1"
}

for round in $(seq "${TW_CRASH_POWER_CUTS:-$(rounds 1 3)}"); do
	truncate -s 64M image
	mkfs.ext4 -q -F image && mount -o loop image disk 2>mount.err || skip "no loop device may be mounted"
	mount -t tmpfs -o size=64m,mode=700 none shm || skip "no tmpfs may be mounted"
	# Two threads, ten calls, then 500 us of sleep; declared functions.
	python3 -c 'import struct; open("witness", "wb").write(struct.pack("<IIII", 2, 10, 500, 0) + bytes(16384))'
	"$tw" record -q -t 'crash:_' --on-full block --durable 20 -o disk/a.tw -- \
		"$build/tests/crash/crash_program" "$PWD/witness" >out 2>err </dev/null &
	recorder=$!
	wait_for $recorder eval 'before=$(numbers witness) && [[ " $before " != *" 0 "* ]]'
	sleep "0.$((RANDOM % 5))"
	before=$(numbers witness)
	program=$(pgrep -P "$recorder" -x crash_program)
	sync_for_a_while "$recorder"
	# EXT4_IOC_SHUTDOWN with the flag NOLOGFLUSH.
	python3 -c 'import fcntl, os, struct
fcntl.ioctl(os.open("disk", os.O_RDONLY), 0x8004587d, struct.pack("I", 2))' || skip "ext4 does not shut down"
	kill -KILL "$recorder" "$program"
	wait "$recorder" 2>/dev/null
	# There may be no parent to collect it.
	while kill -0 "$program" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$program/status"; do sleep 0.02; done
	recorder=
	umount disk && umount shm && mount -o loop image disk || fail "the file system cannot be mounted again"
	expect 1 "$tw" recover -q disk/a.tw
	expect 1 "$tw" info --json disk/a.tw
	is "$(json 'd["complete"], d["damaged_records"], d["account"]["missing"]["cut"]["more"]')" "False 0 True" "round $round"
	expect 1 "$tw" print --format json disk/a.tw
	# shellcheck disable=SC2086 # two words
	python3 - $before <<-'EOT' || fail "round $round: the capture is not what was committed before the cut"
		import json, sys
		last = {0: 0, 1: 0}
		for line in open("out"):
		    event = json.loads(line)
		    if event["kind"] == "own_time":
		        continue
		    thread, number = event["args"][0] >> 40, event["args"][0] & ((1 << 40) - 1)
		    assert number == last[thread] + 1, f"thread {thread}: {number} after {last[thread]}"
		    last[thread] = number
		for thread, committed in enumerate(map(int, sys.argv[1:])):
		    print("thread", thread, "had committed", committed, "the capture has", last[thread], file=sys.stderr)
		    assert last[thread] >= committed > 0
	EOT
	umount disk || fail "umount"
done
