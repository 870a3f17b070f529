#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A child of vfork() runs in its parent's memory: it takes no ring of its parent's thread, its calls are recorded
#         or counted, and every call of the parent is recorded.
# Method  programs/vforker.c: the first traced call of each of 16 threads is made by a vfork() child, which then ends;
#         meanwhile the recorder checks for dead threads, more than once.
. "$(dirname "$0")/lib.sh"

traced "pattern libagent_edgelib:edge_add" -- "$programs/agent_vforker" 16
[ $status = 0 ] || fail "status $status: $(cat "$folder/err")"
made=$(cat "$folder/out")
found=$(calls edge_add)
lost=$(awk '$1 == "lost" { for (i = 2; i <= NF; i++) if ($i + 0 > 0) sum += $i } END { print sum + 0 }' "$folder/report")
[ $((found + lost)) = "$made" ] || fail "$made calls made, $found recorded and $lost counted as lost"
[ "$found" -ge $((made - 16)) ] || fail "calls of the parent were lost: $found of $made"
finish
