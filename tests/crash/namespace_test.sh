#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A child in another pid namespace, whose death the recorder could not see, is not traced: nothing is recorded
#         in part.
build=$1
. "$(dirname "$0")/lib.sh"

# Root needs no name space of users, which a root by chroot forbids.
how=-rpf
unshare $how true 2>/dev/null || how=-pf
unshare $how true 2>refusal || {
	echo "no pid namespace may be made ($(cat refusal)): not tested"
	exit 77
}
for more in "" --mount-proc; do
	# shellcheck disable=SC2086 # none or one word
	unshare $how $more true 2>/dev/null || continue # a container may forbid a new /proc
	# shellcheck disable=SC2086 # none or one word
	expect 0 "$tw" record -q --force --follow-fork -t 'crash:_' -o a.tw -- \
		bash -c '"$1" calls 1000; unshare $2 "$1" beat 0.3' - "$threads" "$how $more"
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"], sum(d["lost"].values()), d["complete"]')" "500 0 True" "unshare $more"
done
