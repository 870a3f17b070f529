#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A child in another pid namespace, whose death the recorder could not see, is not traced: nothing is recorded
#         in part.
build=$1
. "$(dirname "$0")/lib.sh"

unshare -rpf true 2>/dev/null || {
	echo "no pid namespace may be made: not tested"
	exit 77
}
for more in "" --mount-proc; do
	# shellcheck disable=SC2086 # none or one word
	unshare -rpf $more true 2>/dev/null || continue # a container may forbid a new /proc
	# shellcheck disable=SC2086 # none or one word
	expect 0 "$tw" record -q --force --follow-fork -t 'crash:_' -o a.tw -- \
		bash -c '"$1" calls 1000; unshare -rpf $2 "$1" beat 0.3' - "$threads" "$more"
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"], sum(d["lost"].values()), d["complete"]')" "500 0 True" "unshare $more"
done
