#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Captures of one machine whose recorders ran in two time namespaces, as in containers, are merged in one time.
# Method  The same program recorded here, and where the monotonic clock is 1,000 hours ahead; both ways round.
build=$1
. "$(dirname "$0")/lib.sh"
there=(unshare -T --monotonic 3600000 --boottime 3600000 -f)
"${there[@]}" true 2>/dev/null || there=(unshare -rT --monotonic 3600000 --boottime 3600000 -f)
"${there[@]}" true 2>/dev/null || { echo "no time namespaces here: not tested" && exit 77; }
expect 0 "$tw" record -q -t 'libc:{getenv,malloc,free}' -o here.tw -- ls /
expect 0 "${there[@]}" "$tw" record -q -t 'libc:{getenv,malloc,free}' -o there.tw -- ls /
expect 0 "$tw" merge -o all.tw here.tw there.tw
shows 'there  the clock of here, read in another time namespace: -3,600,000.000000000 s from there'
expect 0 "$tw" merge --json -o json.tw here.tw there.tw
is "$(json '[c["offset_ns"] for c in d["captures"]]')" "[0, -3600000000000000]"
expect 0 "$tw" merge -q -o turned.tw there.tw here.tw
for merged in all turned; do
	expect 0 "$tw" info --json $merged.tw
	is "$(json 'd["seconds"] < 3600 and d["events"] > 10')" True "$merged.tw lasts too long"
done
exit 0
