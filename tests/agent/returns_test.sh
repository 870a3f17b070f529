#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    Calls with unusual conventions and control flow return correctly while their returns and exceptions are recorded,
#         however the program was linked; hooks allocate nothing; common programs answer as they do untraced.
# Method  programs/edge.c checks itself; programs/guard.c ends the program when a hook allocates; a program's output is
#         compared with its untraced output.
. "$(dirname "$0")/lib.sh"

for how in lazy now noplt nopie; do
	same "pattern _:_;exceptions 1" "$programs/agent_edge_$how"
	expect_some "agent_edge_$how libagent_edgelib:edge_sum"
	same "returns 1;return_to 1" "$programs/agent_edge_$how"
done
same "pattern _:_;exceptions 1;return_to 1" "$programs/agent_throw"
expect_some "agent_throw libagent_edgelib:edge_call_back"
same "pattern _:_;exceptions 1" "$programs/agent_rcu"

export GUARD_COUNTS=1
traced "pattern _:_;exceptions 1" -p "$programs/libagent_guard.so" -- "$programs/agent_edge_lazy"
[ $status = 0 ] || fail "with the guard: status $status: $(cat "$folder/err")"
unset GUARD_COUNTS

# Common programs.
if command -v sqlite3 >/dev/null; then
	same "pattern _:_;exceptions 1" sqlite3 :memory: "create table t(a,b); with recursive c(i) as
		(select 1 union all select i+1 from c where i<500) insert into t select i, hex(i) from c;
		select sum(a), max(b) from t; select nothing from nowhere;"
fi
if [ -x /usr/bin/python3 ]; then
	same "pattern _:_;exceptions 1;return_to 1" /usr/bin/python3 -S -c "import json, re, threading
def work():
    for i in range(50):
        try: json.loads('[1,%d' % i)
        except ValueError: pass
threads = [threading.Thread(target=work) for i in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
print(re.sub('a+', 'b', 'aaac'))"
fi
# Pieces of stacks are copied away and back.
if /usr/bin/python3 -c 'import greenlet' 2>/dev/null; then
	sources=$(dirname "$0")/programs
	same "pattern _:_;returns 1" /usr/bin/python3 "$sources/greenlets.py"
	same "pattern _:_;exceptions 1;return_to 1" /usr/bin/python3 "$sources/greenlets.py"
	# The library's own functions, at their entries: one of them returns twice in the same frame.
	/usr/bin/python3 "$sources/greenlets.py" >"$folder/out2"
	XDG_CACHE_HOME=$folder/cache "$build/bin/tracewheel" record -q --returns -o "$folder/a.tw" -t '_greenlet*:_' -- \
		/usr/bin/python3 "$sources/greenlets.py" >"$folder/out" 2>"$folder/err" || fail "greenlets at entries: $? $(head -3 "$folder/err")"
	cmp -s "$folder/out" "$folder/out2" || fail "greenlets at entries: another output"
else
	echo "skipped: greenlets (Debian's package python3-greenlet is not installed)"
fi
# One copy is returned to many times.
same "pattern _:_;returns 1" "$programs/agent_again" "$programs/continuation.so"
expect_some "agent_again libagent_edgelib:edge_call_back"
same "pattern _:_;exceptions 1;return_to 1" "$programs/agent_again" "$programs/continuation.so"
if ruby -rcontinuation -e '' 2>/dev/null; then
	same "pattern _:_;returns 1" ruby -rcontinuation "$(dirname "$0")/programs/callcc.rb"
else
	echo "skipped: continuations (Debian's package ruby is not installed)"
fi
if command -v git >/dev/null; then
	same "pattern _:_;returns 1" git --version
fi
finish
