#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Erlang reads the output of `print --format erlang`: every event is one term of file:consult/1, pids, ports,
#         references and unusual names included; a C++ function has one name in all views, with its linkage name beside
#         it in JSON.
# Method  Captures of actors, of a C++ program and of every kind of event are read by erl, counted and compared.
build=$1
. "$(dirname "$0")/lib.sh"
command -v erl >/dev/null || { echo "no erl here: not tested" && exit 77; }

cat >names.cc <<'CC'
namespace geo {
struct point { int x; __attribute__((noipa)) int move(int by) { return x += by; } };
template <typename T> __attribute__((noipa)) T twice(T a, const point &) { return a + a; }
}
int main()
{
	geo::point p = {1};
	return p.move(2) + geo::twice<long>(1, p) - 5;
}
CC
g++ -O1 -fpatchable-function-entry=9 -o names names.cc || fail "the compiler"
expect 0 "$tw" record -q --returns --args=raw -t 'names:_' -o names.tw -- ./names
expect 0 "$tw" record -q -p send,receive,procs,running,garbage_collection -t 'office:_' -o office.tw -- "$build/examples/example-mailbox"
expect 0 "$tw" record -q -p all -o bank.tw -- "$build/bin/actors" bank -m 50
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

cat >consult.erl <<'ERL'
-module(consult).
-export([main/0]).
main() ->
    lists:foreach(fun(File) ->
        case file:consult(File) of
            {ok, Terms} ->
                Pids = lists:usort([element(2, T) || T <- Terms, true = is_tuple(T)]),
                lists:foreach(fun(P) -> [$< | _] = atom_to_list(P), _ = list_to_pid(atom_to_list(P)) end, Pids),
                io:format("~s ~p~n", [File, length(Terms)]);
            {error, Why} -> io:format("~s ~p~n", [File, Why])
        end end, init:get_plain_arguments()),
    halt().
ERL
erlc consult.erl >/dev/null || fail "erlc"
# Each capture without stamps and with one of the two kinds at least; of each kind of event the first ones.
turn=0
most=$(rounds 500 1000000)
for capture in names office bank calls actors random; do
	both=(monotonic wall monotonic)
	for stamps in none "${both[@]:turn++ % 2:$(rounds 1 2)}"; do
		expect 0 "$tw" print --format erlang --timestamps $stamps $capture.tw
		[ -s out ] || fail "nothing of $capture"
		awk -F, -v most="$most" 'seen[$1, $3]++ < most' out >$capture-$stamps.term
	done
done
erl -noshell -pa . -s consult main -extra ./*.term >read || fail "erl: $(cat read)"
for file in ./*.term; do
	mapfile -t lines <"$file"
	echo "$file ${#lines[@]}"
done | diff - read >&2 || fail "not the terms that Erlang reads"
# For people: without quotes.
expect 0 "$tw" print --format erlang --bare-pids office.tw
shows "'receive',{job,1}"
shows '^{trace,<0\.'
! grep -q "'<" out || fail "quotes around bare pids"

# One name in all views.
expect 0 "$tw" print --format json names.tw
cp out events
expect 0 "$tw" report --json --top 0 names.tw
python3 - <<'EOT' || fail "names of print and report differ"
import json
report = {(f["module"], f["function"]): f for f in json.load(open("out"))["by_function"]}
assert ("names", "geo::point::move(int)") in report and ("names", "long geo::twice<long>(long, geo::point const&)") in report, report.keys()
assert report["names", "geo::point::move(int)"]["linkage"] == "_ZN3geo5point4moveEi"
assert "linkage" not in report["names", "main"]
for line in open("events"):
    event = json.loads(line)
    row = report[event["module"], event["function"]]
    assert event.get("linkage") == row.get("linkage"), event
    assert row["name"] == "%s:%s/%s" % (event["module"], event["function"], event.get("arity", "_")), row
EOT
grep -q "{names,'geo::point::move(int)',\[" names-none.term || fail "another name in Erlang's terms"
expect 0 "$tw" functions --json ./names
python3 - <<'EOT' || fail "names of functions --json"
import json
found = [f for f in json.load(open("out"))["functions"] if f.get("linkage") == "_ZN3geo5point4moveEi"]
assert [f["function"] for f in found] == ["geo::point::move(int)"], found
EOT
