#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Messages by content, counters and system events come into a capture and its views, in a shell and from outside; the node has none of
#	  the settings at the end, however the trace ends, and what others have set is refused and not taken.
# Method  One VM goes through all of it (settings.erl); a node, and the command.
build=$1 modules=(settings attach)
. "$(dirname "$0")/lib.sh"
erl_run settings main >said 2>&1 || fail "settings.erl: $(cat said)"
grep -qx ok said || fail "it did not come to its end: $(cat said)"

command -v epmd >/dev/null || { echo "no epmd here: the rest is not tested" && exit 77; }
a_home
start_node -sname shop@localhost -setcookie secret
expect 0 "$tw" record --erlang -q --cookie-file cookie --count attach:step --call-time attach:look/0 --time 700ms -o counted.tw shop@localhost
expect 0 "$tw" report --json counted.tw
is "$(json 'all(row["calls"] > 0 for row in d["counted_by_function"]), sorted(row["name"] for row in d["counted_by_function"])')" \
	"True ['attach:look/0', 'attach:step/1']" "counted functions"
expect 0 "$tw" record --erlang -q --cookie-file cookie --send '{_, {is_regular, _}} when true' --receive 'nothing' \
	--system-monitor large_heap=1000,busy_port -p call --time 700ms -o said.tw shop@localhost
[ "$(<ready)" = module ] || refused 2 "'shop@localhost' has no such system events (long_message_queue" --cookie-file cookie --system-monitor long_message_queue=1:2 \
	-o none.tw shop@localhost
refused 2 "--system-monitor 'gc=1' is none: write long_gc=MS" --cookie-file cookie --system-monitor gc=1 -o none.tw shop@localhost
refused 2 "the pattern 'a ! b' is refused: \`!\` is of messages that are sent" --cookie-file cookie --receive 'a ! b' -o none.tw shop@localhost
exit 0
