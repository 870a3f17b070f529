#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# why_late.sh [BUILD [MESSAGES]] - how long `why-late` takes on a capture of about 50 million events, and how much memory.
# Makes the capture (about 370 MB) in a folder of its own and removes it.
set -eu
build=$(realpath "${1:-build/release}")
messages=${2:-14000000}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-late.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$build/bin/tracewheel" record -q --on-full block -o "$work/chat.tw" -p send,receive,procs,running -t 'mailbox:_' -- \
	"$build/bin/actors" chat --messages "$messages" >/dev/null
"$build/bin/tracewheel" info "$work/chat.tw" | grep -E '^(events|lost|bytes)'
for turn in 1 2 3; do
	/usr/bin/time -f "why-late: %e s, processor time %U + %S s, %M KiB at most" "$build/bin/tracewheel" why-late "$work/chat.tw" >"$work/out"
done
head -n 2 "$work/out"
