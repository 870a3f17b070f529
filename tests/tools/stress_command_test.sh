#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: `tracewheel stress` as a user meets it: each kind of place alone, all at once, an end by Ctrl-C with the report,
#	a command without symbols, the JSON, wrong options. (That it notices mistakes: tests/stress.)
build=$1
. "$(dirname "$0")/lib.sh"

export TMPDIR=$work/tmp
mkdir "$TMPDIR"
for what in declared sleds slots; do
	expect 0 "$tw" stress --seconds 1 --seed 5 --what $what,returns --json
	is "$(json "d['passed'], d['seed'], d['what'], d['$what'] == d['calls'] > 0, d['wrong'], d['told']")" \
		"True 5 ['$what', 'returns'] True 0 []"
	is "$(json "d['numbered'] == d['stored'] + d['unaccounted'], d['ends'] > 0, d['waits'] >= d['switches'] > 0")" \
		"True True True"
	is "$(json "d['wait_median'] <= d['wait_90'] <= d['wait_99'] <= d['wait_longest']")" True
done

# Ended by Ctrl-C, it has a report all the same.
"$tw" stress --seconds 0 >out 2>err &
stress=$!
sleep 1.5
# On a busy machine it may not be there yet, and what a shell runs beside it ignores the first.
while kill -INT $stress 2>/dev/null; do sleep 1; done
wait $stress || fail "exit code $? after Ctrl-C"
shows '^PASS$'
shows '^threads  '

# Its own functions are found where the symbols were stripped.
cp "$tw" tracewheel
strip tracewheel
expect 0 ./tracewheel stress --seconds 1 --what sleds --threads 1 --changers 0
shows '^PASS$'

expect 2 "$tw" stress --what returns
says 'one of these at least'
expect 2 "$tw" stress --what sleds,nothing
expect 2 "$tw" stress --threads 0
says 'threads are 1 to 256'
expect 2 "$tw" stress --pause soon
expect 2 "$tw" stress more
is "$(ls "$TMPDIR")" ""
