#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture whose rings are gone (restart, cleaned /dev/shm) is never shown as whole, however it is read, recovered
#         again or merged; and only the folder that a recording wrote to gets what its rings hold.
# Method  Recorder and program are killed with events in the rings; a copy of the folder names the rings; the rings go.
build=$1
. "$(dirname "$0")/lib.sh"

mkdir shm
export TRACEWHEEL_SHM=$work/shm
make_calls

# cut NAME: a recording with 500 events on disk and 500 in the rings; recorder and program are dead.
cut() {
	mkfifo go said
	"$tw" record -q -o "$1" -t calls:step -- ./calls <go >said &
	recorder=$!
	exec 3>go 4<said
	head -c 1 <&4 >/dev/null
	wait_until eval '"$tw" info --json '"$1"' 2>/dev/null | grep -q "\"events\": 500"'
	kill -STOP "$recorder"
	echo >&3
	head -c 1 <&4 >/dev/null
	program=$(pgrep -P "$recorder" -x calls)
	kill -9 "$recorder" "$program"
	wait "$recorder" 2>/dev/null
	exec 3>&- 4<&-
	wait_until eval '! kill -0 "$program" 2>/dev/null'
	rm go said
}

# A copy of the folder is not the folder: it gets nothing, and the rings stay.
cut whole.tw
cp -r whole.tw copy.tw
before=$(find copy.tw -type f -exec md5sum {} + | sort)
expect 1 "$tw" recover copy.tw
says "'copy.tw' was not touched: .* were made for another folder"
is "$(find copy.tw -type f -exec md5sum {} + | sort)" "$before" "the copy"
expect 0 "$tw" recover whole.tw
says 'whole.tw is whole: 500 events were added to it.'
expect 0 "$tw" info --json whole.tw
is "$(json 'd["events"], d["complete"], d["account"]["whole"]')" "1000 True True"

# Without its rings it is closed, and each view says that the end is missing, however often it is recovered.
cut gone.tw
rm -r shm/tracewheel-*/*
for round in first second; do
	expect 1 "$tw" recover gone.tw
	says 'gone.tw is closed, but not whole: 0 events were added to it.'
	says 'its rings in /dev/shm are gone'
	says 'gone.tw: it was cut off: an unknown number of events after its end are missing.'
	expect 1 "$tw" info gone.tw
	shows 'complete      no: cut off'
	shows 'lost          nothing is reported, but parts of it are missing'
	expect 1 "$tw" info --json gone.tw
	is "$(json 'd["events"], d["complete"], d["live"], d["account"]["missing"]["cut"]')" \
		"500 False False {'events': 0, 'places': 1, 'more': True}" "$round"
	expect 1 "$tw" report gone.tw
	shows 'This capture is not complete: it was cut off: an unknown number of events after its end are missing'
	expect 1 "$tw" report --json gone.tw
	is "$(json 'd["complete"], d["account"]["missing"]["cut"]["more"]')" "False True" "$round"
	expect 1 "$tw" print gone.tw
	says 'it was cut off'
done
expect 1 "$tw" recover --quiet gone.tw
says 'not whole'

# Merged, converted: the same.
expect 1 "$tw" convert --to ttb gone.tw -o gone.ttb
"$tw" merge -o merged.tw gone.tw whole.tw >out 2>err
expect 1 "$tw" info --json merged.tw
is "$(json 'd["events"], d["complete"], d["account"]["missing"]["cut"]["more"]')" "1500 False True" merged

# Too little memory for the rings: nothing is taken for empty, and nothing is removed.
cut little.tw
expect 1 bash -c 'ulimit -v 200000; exec "$0" recover little.tw' "$tw"
expect 0 "$tw" recover little.tw
says '500 events were added'
is "$(find shm -type f | wc -l)" 0 "files left"
echo PASS
