#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel stress` as a user runs it: each kind of place alone, all at once, an end by Ctrl-C with the
#         report, a program without symbols, the JSON, wrong options; it notices each step that is broken on purpose,
#         and none of these breaks is in the command, the libraries or the agent.
build=$1
. "$(dirname "$0")/lib.sh"

export TMPDIR=$work/tmp TRACEWHEEL_SHM=$work/shm
mkdir "$TMPDIR" "$TRACEWHEEL_SHM"
# interrupt COMMAND...: the command started, ended by Ctrl-C when its threads run for a moment. The second Ctrl-C would end it at once:
# this is the only one.
many_threads() {
	local tasks=("/proc/$1/task"/*)
	[ ${#tasks[@]} -ge "${least:-4}" ]
}
interrupt() {
	"$@" >out 2>err &
	wait_for $! many_threads $!
	sleep "$(rounds 0.15 1.5)"
	kill -INT $!
	wait $! || fail "exit code $? after Ctrl-C: $*"
}
for what in declared sleds entries slots; do
	run=(--seed 5 --what "$what,returns" --json)
	if [ -z "${TW_TEST_LONG:-}" ]; then
		interrupt "$tw" stress --seconds 0 "${run[@]}"
	else
		expect 0 "$tw" stress --seconds 1 "${run[@]}"
	fi
	is "$(json "d['passed'], d['seed'], set(d['what']) == {'$what', 'returns'}, d['$what'] == d['calls'] > 0, d['wrong'], d['told'],
		d['numbered'] == d['stored'] + d['unaccounted'], d['ends'] > 0, d['waits'] >= d['switches'] > 0,
		d['wait_median'] <= d['wait_90'] <= d['wait_99'] <= d['wait_longest']")" "True 5 True True 0 [] True True True True"
done

# Ended by Ctrl-C, it prints its report all the same.
interrupt "$tw" stress --seconds 0
shows '^PASS$'
shows '^threads  '

# Its own functions are found where the symbols were stripped.
cp "$tw" "$build/bin/tracewheel-stress" .
strip tracewheel-stress
least=2 interrupt ./tracewheel stress --seconds 0 --what sleds --threads 1 --changers 0
shows '^PASS$'

# Each mistake is noticed, and nothing without one.
expect 0 "$tw" stress --self-test --json
is "$(json "d['passed'], [k['broken'] for k in d['kinds'] if not k['noticed']],
	len(d['kinds']) >= 11, all(k['by'] for k in d['kinds'] if k['noticed'])")" "True ['nothing'] True True"
# As text it says each when it is known, and ends early by Ctrl-C.
"$tw" stress --self-test --seed 11 >out 2>err &
stress=$!
wait_for $stress grep -q '^no-wait ' out
kill -INT $stress
got=0
wait $stress || got=$?
is $got 1 "an interrupted --self-test"
shows '^nothing  *no '
shows '^no-wait  *in run [0-9]*  *[^ ]'
says interrupted
if [ -n "${TW_TEST_LONG:-}" ]; then
	expect 0 "$tw" stress --self-test --seed 11
	shows '^nothing  *no '
	shows '^torn-slot  *in run [0-9]* .*the run died: '
	shows '^PASS$'
	expect 1 "$tw" stress --break one-by-one --seconds 300
	shows '^broken  *one-by-one: a transaction is several changes$'
fi
# One of them alone makes the run fail, with its name.
expect 1 "$tw" stress --break torn-slot --seconds 300
shows '^broken  *torn-slot: a slot is written in two halves$'
shows '^noticed  *[^ ]'
shows '^FAIL$'
expect 1 "$tw" stress --break no-wait --seconds 300 --json
is "$(json "d['broken'], d['noticed'], d['runs'] >= 1, d['by'] != ''")" "no-wait True True True"
expect 2 "$tw" stress --break everything
says 'one of no-wait'
nm -a "$tw" "$build"/lib/libtracewheel*.so >names || fail "nm"
! grep -q 'stress_break\|__wrap_tw_' names || fail "the command or a library contains the breaks of --self-test"
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
