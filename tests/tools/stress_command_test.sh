#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel stress` as a user runs it: each kind of place alone, all at once, an end by Ctrl-C with the
#         report, a program without symbols, the JSON, wrong options; it notices each step that is broken on purpose,
#         and none of these breaks is in the command, the libraries or the agent.
build=$1
. "$(dirname "$0")/lib.sh"

export TMPDIR=$work/tmp TRACEWHEEL_SHM=$work/shm
mkdir "$TMPDIR" "$TRACEWHEEL_SHM"
for what in declared sleds entries slots; do
	expect 0 "$tw" stress --seconds 1 --seed 5 --what $what,returns --json
	is "$(json "d['passed'], d['seed'], set(d['what']) == {'$what', 'returns'}, d['$what'] == d['calls'] > 0, d['wrong'], d['told']")" \
		"True 5 True True 0 []"
	is "$(json "d['numbered'] == d['stored'] + d['unaccounted'], d['ends'] > 0, d['waits'] >= d['switches'] > 0")" \
		"True True True"
	is "$(json "d['wait_median'] <= d['wait_90'] <= d['wait_99'] <= d['wait_longest']")" True
done

# Ended by Ctrl-C, it prints its report all the same.
"$tw" stress --seconds 0 >out 2>err &
stress=$!
sleep 1.5
# On a busy machine it may not have started yet, and background jobs of a shell ignore the first one.
while kill -INT $stress 2>/dev/null; do sleep 1; done
wait $stress || fail "exit code $? after Ctrl-C"
shows '^PASS$'
shows '^threads  '

# Its own functions are found where the symbols were stripped.
cp "$tw" "$build/bin/tracewheel-stress" .
strip tracewheel-stress
expect 0 ./tracewheel stress --seconds 1 --what sleds --threads 1 --changers 0
shows '^PASS$'

# Each mistake is noticed, and nothing without one.
expect 0 "$tw" stress --self-test --json
is "$(json "d['passed'], [k['broken'] for k in d['kinds'] if not k['noticed']]")" "True ['nothing']"
is "$(json "len(d['kinds']) >= 11, all(k['by'] for k in d['kinds'] if k['noticed'])")" "True True"
expect 0 "$tw" stress --self-test --seed 11
shows '^nothing  *no '
shows '^torn-slot  *in run [0-9]* .*the run died: '
shows '^PASS$'
# One of them alone makes the run fail, with its name.
expect 1 "$tw" stress --break one-by-one --seconds 300
shows '^broken  *one-by-one: a transaction is several changes$'
shows '^noticed  *[^ ]'
shows '^FAIL$'
expect 1 "$tw" stress --break no-wait --seconds 300 --json
is "$(json "d['broken'], d['noticed'], d['runs'] >= 1, d['by'] != ''")" "no-wait True True True"
expect 2 "$tw" stress --break everything
says 'one of no-wait'
for object in "$tw" "$build"/lib/libtracewheel*.so; do
	if nm -a "$object" | grep -q 'stress_break\|__wrap_tw_'; then fail "$object contains the breaks of --self-test"; fi
done

expect 2 "$tw" stress --what returns
says 'one of these at least'
expect 2 "$tw" stress --what sleds,nothing
expect 2 "$tw" stress --what sleds,entries
expect 2 "$tw" stress --threads 0
says 'threads are 1 to 256'
expect 2 "$tw" stress --pause soon
expect 2 "$tw" stress more
# Nothing is left on the disk or in memory, also of runs that died.
is "$(ls "$TMPDIR")" ""
is "$(find "$TRACEWHEEL_SHM" -type f | wc -l)" 0
