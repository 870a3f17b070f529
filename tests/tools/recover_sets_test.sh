#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Remains of a recording in /dev/shm whose capture is gone are reported, found, and removed; those of live
#         recordings are left alone. No user can prevent another from recording by taking names there.
# Method  A recorder is killed, its capture removed; another one is alive meanwhile. All in a tmpfs folder of the test.
build=$1
. "$(dirname "$0")/lib.sh"

mkdir "$work/shm"
export TRACEWHEEL_SHM=$work/shm
"$tw" record -q -o dead.tw -- sleep 600 &
dead=$!
"$tw" record -q -o alive.tw -- sleep 600 &
alive=$!
wait_until eval '[ "$(find shm -name "image-*" | wc -l)" -ge 2 ]'
program=$(pgrep -P "$dead" -x sleep)
kill -9 "$dead"
wait "$dead" 2>/dev/null
kill "$program"
rm -rf dead.tw
# The next recording reports it; nothing else would.
expect 0 "$tw" record -o next.tw -- true
says '1 ring set of recordings that were cut off takes memory in /dev/shm; `tracewheel recover --list` shows it, --clean'
expect 0 "$tw" record -q -o quiet.tw -- true
[ ! -s err ] || fail "--quiet is not"
expect 0 "$tw" recover --list
is "$(grep -c "$work/shm/tracewheel-" out)" 1 "sets of the dead"
says '1 ring set of recordings that were cut off'
expect 0 "$tw" recover --clean
says '1 ring set of recordings that were cut off removed'
expect 0 "$tw" recover --list
says '0 ring sets'
is "$(find shm -name config | wc -l)" 1 "what is alive stays"
# A segment that the recorder has made, and not written its header to yet, is no damage: as the next one, and as the first.
cp -r alive.tw begun.tw
: >begun.tw/segment-000002.tws.part
expect 0 "$tw" info --json begun.tw
json 'not d["damage"] and d["account"]["missing"]["damaged"]["places"] == 0' >is
is "$(cat is)" True "an empty segment of a recording that goes on"
# Only the newest can be so: another empty one is damage.
cp begun.tw/segment-000001.tws* begun.tw/segment-000003.tws.part
expect 0 "$tw" info begun.tw
shows 'damage *segment-000002.tws.part'
mkdir first.tw
cp alive.tw/live first.tw
: >first.tw/segment-000001.tws.part
expect 0 "$tw" info first.tw
rm -r next.tw first.tw
kill "$(pgrep -P "$alive" -x sleep)"
wait "$alive"
expect 0 "$tw" info alive.tw
is "$(find shm -type f | wc -l)" 0 "files left"

# The events in the rings of a killed recorder are not removed with them: a capture that is still there is completed first.
make_calls
for name in first second; do
	mkfifo go said
	mkdir -p "folder of $name"
	"$tw" record -q -o "folder of $name/k.tw" -t calls:step -- ./calls <go >said &
	dead=$!
	exec 3>go 4<said
	head -c 1 <&4 >/dev/null
	kill -STOP "$dead"
	echo >&3
	head -c 1 <&4 >/dev/null
	program=$(pgrep -P "$dead" -x calls)
	kill -9 "$dead"
	wait "$dead" 2>/dev/null
	exec 3>&- 4<&-
	wait_until eval '! kill -0 "$program" 2>/dev/null'
	rm go said
done
mv "folder of second" moved
expect 0 "$tw" recover --list
shows "folder of first/k.tw\$"
expect 0 "$tw" recover --clean
says '2 ring sets of recordings that were cut off removed'
is "$(find shm -type f | wc -l)" 0 "files left"
expect 0 "$tw" info --json "folder of first/k.tw"
is "$(json 'd["events"], d["complete"]')" "1000 True"

# Another user has taken the name: another name is used.
rmdir shm/tracewheel-*
ln -s /nowhere "shm/tracewheel-$(id -u)"
expect 0 "$tw" record -q -o again.tw -- true
[ -d "shm/tracewheel-$(id -u)-1" ] || fail "no other folder was used"
# Other users have taken all predictable names that they can; sets in the other directories are found all the same.
rm -rf "shm/tracewheel-$(id -u)-1"
for number in 1 2 3 4 5 6 7 8 9; do ln -s /nowhere "shm/tracewheel-$(id -u)-$number"; done
"$tw" record -q -o guessed.tw -- sleep 600 &
dead=$!
wait_until eval '[ -n "$(find shm -name "image-*")" ]'
program=$(pgrep -P "$dead" -x sleep)
kill -9 "$dead"
wait "$dead" 2>/dev/null
expect 0 "$tw" recover --list
is "$(grep -c "$work/shm/tracewheel-" out)" 1 "sets of the dead"
# The program still runs: what it does from now on is missing.
expect 0 "$tw" recover guessed.tw
expect 0 "$tw" info guessed.tw
shows '1 process still ran when the recording ended'
kill "$program"
expect 0 "$tw" recover --list
says '0 ring sets'
echo PASS
