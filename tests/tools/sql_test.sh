#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The tables of `tracewheel sql` hold what the other views show; a limit of a query selects what is read and changes no row; a
#         converted file holds the same for sqlite3's own shell; queries write nothing; bad queries and damaged captures get one sentence.
# Method  Events are compared with `print --format json`, sums with `report --json`, for made-up captures (random calls, actors, losses)
#         and recorded ones (threads, recursion, longjmp, arguments). Each limit is asked for twice: so that the reader sees it, and hidden in
#         an expression. How much is read is counted, and shown by a damaged block, which only a query that reads it can find.
build=$1
. "$(dirname "$0")/lib.sh"
[ -x "$build/bin/tracewheel-sql" ] || { echo "not built: libsqlite3-dev is not installed" && exit 77; }
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >app.c <<'C'
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>
jmp_buf there;
#define OWN __attribute__((noinline))
OWN long leaf(long i) { __asm__ volatile("" : "+r"(i)); return i * 3; }
OWN void leave(int depth) { __asm__ volatile(""); if (depth > 0) leave(depth - 1); else if (!depth) longjmp(there, 1); }
OWN int deep(int i) { int all = (int)leaf(i); return i ? all + deep(i - 1) : all; }
OWN void jump(int i) { if (!setjmp(there)) leave(i % 4 - 1); }
OWN void *work(void *at)
{
	for (int i = 0; i < *(int *)at; i++)
		deep(i % 7);
	return at;
}
int main(int argc, char **argv)
{
	(void)argv;
	int rounds = argc == 2 ? 9000 : argc > 2 ? 600 : 40, count = argc == 2 ? 1 : 3;
	pthread_t threads[3];
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], 0, work, &rounds);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 50; i++) {
		jump(i);
		deep(4);
	}
	return 0;
}
C
gcc -O1 -fpatchable-function-entry=9 -o app app.c -lpthread || fail gcc
expect 0 "$tw" record -q --returns --on-full block -t 'app:_' -o app.tw -- ./app
expect 0 "$tw" record -q --returns --on-full drop --ring 64K -t 'app:_' -o drop.tw -- ./app some more
expect 0 "$tw" record -q -t 'app:_' -o moments.tw -- ./app
expect 0 "$tw" record -q -p send,receive,running,procs,call -t 'chat:_' --returns --on-full block -o chat.tw -- "$build/bin/actors" chat -m 100

cat >compare.py <<'P'
import json, random, subprocess, sys
tw, name = sys.argv[1:3]

def run(*words):
    done = subprocess.run([tw, *words], capture_output=True, text=True)
    assert done.returncode in (0, 1), (words, done.stderr)
    return done

def sql_all(queries):
    """The rows of each, by one process."""
    words = [word for query in queries for word in (query, "select 1 as next_query")]
    rows = [[]]
    for line in run("sql", "--json", name, *words).stdout.splitlines():
        row = json.loads(line)
        rows.append([]) if "next_query" in row else rows[-1].append(row)
    assert len(rows) == len(queries) + 1
    return rows[:-1]

# All that do not depend on others' answers, by one process.
lost_query = "select sum(lost) as n from losses"
sums_query = ("select f.name, c.* from functions f join (select function_id, count(*) as calls, sum(self) as self, sum(ended = 'cut') as cut,"
              " sum(ended = 'open') as open, sum(ended = 'exception') as exceptions from calls group by function_id) c on c.function_id = f.id")
calls_query = "select start, duration, id, parent, depth, caller, function, pid, arg1, args, ended from calls"
all_columns = "start, duration, self, ended, process, thread, thread_name, module, function, args, result, errno, id, parent, depth, caller"
all_query = f"select {all_columns} from calls"
others = "kind not in ('call', 'return_from', 'exception_from', 'send', 'send_to_non_existing_process', 'receive', 'lost')"
tables = ("functions", "threads", "processes", "messages", "losses", "locks", "events")
counts_queries = [f"select count(*) as n from {t}" + (f" where {others}" if t == "events" else "") for t in tables]
questions = ["select * from events", lost_query, "select * from messages", "select *, id from functions", sums_query, "select * from threads",
             calls_query, all_query] + counts_queries
answered = dict(zip(questions, sql_all(questions)))
sql = answered.__getitem__

# Events: the same lines.
lines = [json.loads(line) for line in run("print", "--setups", "--format", "json", name).stdout.splitlines()]
events = sql("select * from events")
assert len(lines) == len(events)
heads = {"ns": "time", "process": "process", "thread": "thread", "pid": "pid", "kind": "kind", "thread_name": "thread_name"}
for line, event in zip(lines, events):
    for theirs, ours in heads.items():
        assert line.get(theirs) == event[ours], (line, event)
    if line["kind"] != "return_to":
        assert line.get("module") == event["module"] and line.get("function") == event["function"], (line, event)
    details = json.loads(event["details"] or "{}")
    for key, value in details.items():
        assert line[key] == value, (line, event)
    rest = set(line) - set(heads) - set(details) - {"module", "function", "linkage", "arity", "caller", "exec", "node", "pid_name", "file", "line"}
    assert not rest, rest
lost = sum(sum(line.get(c, 0) for c in ("full", "too_big", "nested", "no_ring")) for line in lines if line["kind"] == "lost")
assert (sql(lost_query)[0]["n"] or 0) == lost
sent = [line for line in lines if line["kind"] in ("send", "receive", "send_to_non_existing_process")]
messages = sql("select * from messages")
assert [(m["time"], m["kind"], m["message"], m["receiver"]) for m in messages] == [(s["ns"], s["kind"], s["message"], s.get("to")) for s in sent]

# Sums: those of report; from calls, and from functions.
report = json.loads(run("report", "--json", "-n", "0", name).stdout)
rows = {r["name"].removesuffix("/_"): r for r in report["by_function"]}
functions = {f["name"]: f for f in sql("select *, id from functions")}
assert set(rows) == set(functions), set(rows) ^ set(functions)
seconds = lambda ns: None if ns is None else ns / 1e9
for key, row in rows.items():
    f = functions[key]
    assert row["calls"] == f["calls"], (row, f)
    for word in ("total", "self", "min", "median", "p99", "max"):
        assert word not in row or f[word] is None or abs(row[word] - seconds(f[word])) <= 2e-9 + row[word] / 1e8, (word, row, f)
    for word in ("exceptions", "cut", "open", "lossy", "returned"):
        assert word not in row or f[word] in (row[word], None), (word, row, f)
    assert "tracer_ns" not in row or f["tracer"] in (row["tracer_ns"], None), (row, f)
sums = sql(sums_query)
assert len(sums) == len(rows)
for row in sums:
    f = rows[row["name"]]
    assert row["calls"] == f["calls"], (row, f)
    assert "self" not in f or row["self"] is None or abs(seconds(row["self"]) - f["self"]) <= 1e-8 + f["self"] / 1e8, (row, f)
    for word in ("cut", "open", "exceptions"):
        assert word not in f or row[word] in (f[word], None), (row, f)
threads = {(t["thread"], t["thread_name"] or ""): t for t in sql("select * from threads")}
for row in report["by_thread"]:
    t = threads[row["thread"], row["thread_name"]]
    assert (t["calls"], t["events"], t["lost"]) == (row["calls"], row["events"], sum(v for k, v in row["lost"].items() if k != "overwritten")), (t, row)

# Callers: ids are whole, and a parent encloses its calls.
calls = sql(calls_query)
by_id = {c["id"]: c for c in calls}
assert len(by_id) == len(calls) and set(by_id) == set(range(1, len(calls) + 1))
for c in calls:
    if c["parent"]:
        p = by_id[c["parent"]]
        assert p["depth"] == c["depth"] - 1 and p["function"] == c["caller"] and p["start"] <= c["start"] and p["id"] < c["id"], (p, c)
    else:
        assert c["depth"] == 0 or c["caller"], c
    assert c["arg1"] is None or json.loads(c["args"])[0] in (c["arg1"], isinstance(c["arg1"], int) and c["arg1"] + 2 ** 64), c

# A limit that the reader sees gives what one gives that is hidden from it.
chance = random.Random(5)
times = sorted(c["start"] for c in calls) or [0]
names = [c["function"] for c in calls] or ["?"]
numbers = [e["thread"] for e in events]
shown = "start, duration, self, ended, thread, pid, module, function, args, result"
queries = []
for turn in range(int(sys.argv[3])):
    low, high = sorted(chance.choices(times, k=2))
    if turn % 3 == 0:
        high = low + (times[-1] - times[0]) // 50
    function, thread = chance.choice(names).replace("'", "''"), chance.choice(numbers)
    seen, hidden = chance.choice([
        (f"start between {low} and {high}",) * 2, (f"start > {low} and start < {high}",) * 2, (f"start >= {low}",) * 2, (f"start <= {high}.5",) * 2,
        (f"start = {low}",) * 2, (f"thread = {thread}",) * 2, (f"function = '{function}'",) * 2, (f"function = '{function}' and start >= {low} and thread = {thread}",) * 2])
    for word in ("start", "thread", "function"):
        hidden = hidden.replace(word + " ", f"coalesce({word}, '') ")
    columns = chance.choice([shown, "start, duration, function, thread", shown + ", id, parent, caller"])
    queries += [f"select {columns} from calls where {where}" for where in (seen, hidden)]
    queries += [f"select * from events where {where}".replace("start", "time") for where in (seen, hidden)]
# Groups of equal calls, and what count() makes of them; hidden: SQLite sorts rows.
keys = ["function", "module, function", "function desc, thread", "ended", "thread_name, ended", "process", "thread_id desc, function_id", "upper(function)"]
counted = ["count(*)", "count(*), count(ended), count(*) filter (where function > 'l')", "count(*), count(distinct function)", "count(*), max(function)",
           "count(*), sum(self)", "count(*), group_concat(distinct ended)"]
for turn in range(2 * int(sys.argv[3]) + 6):
    key, what = keys[turn % len(keys)], counted[turn % len(counted)]
    where = ["", "where function like '%e%' ", "where ended = 'returned' and function <> 'leaf' ", "where random() is not null "][turn // 2 % 4]
    names = key.replace(" desc", "")
    query = f"select {names}, {what} from calls {where}group by {names} having count(*) > 1 order by {key}"
    hidden = query.replace("from calls", "from (select +function as function, +module as module, thread || '' as thread, +ended as ended, +thread_name as thread_name, +process as process,"
                           " +thread_id as thread_id, +function_id as function_id, +self as self, random() as more from calls limit -1 offset 0)")
    queries += [query, hidden.replace("thread || '' as thread", "+thread as thread")]
    distinct = f"select distinct {names} from calls {where}"
    queries += [distinct, f"select {names} from calls {where}group by {names}"]
queries += ["select count(*) as n from calls", "select count(id) as n from calls", "select function, thread from calls order by function, thread",
            "select function, thread from calls order by +function, +thread", "select f.name, count(*) as n from functions f join calls c on c.function_id = f.id group by f.name",
            "select f.name, count(c.id) as n from functions f join calls c on c.function_id = f.id group by f.name", "select count(*) as n from calls group by function limit 2",
            "select count(id) as n from calls group by function limit 2", "select (select count(*) from calls) as n, count(*) as m from threads",
            "select (select count(id) from calls) as n, count(id) as m from threads", "select a.function, count(*) as n from calls a, threads t where a.thread = t.thread group by a.function",
            "select a.function, count(a.id) as n from calls a, threads t where a.thread = t.thread group by a.function",
            "select count(*) over (partition by function) as n, function from calls where start < 90000", "select count(id) over (partition by function) as n, function from calls where start < 90000"]
kinds = "'call', 'lost', 'send', 'nothing'"
queries += [f"select * from events where {word} in ({kinds})" for word in ("kind", "coalesce(kind, '')")]
answers = [sorted(map(repr, rows)) for rows in sql_all(queries)]
for i in range(0, len(queries), 2):
    one, other = answers[i:i + 2]
    assert one == other, (queries[i], len(one), len(other), [x for x in one if x not in other][:2], [x for x in other if x not in one][:2])

# The file.
db = name[:-2] + "db"
run("convert", "-q", "--to", "sqlite", name, "-o", db)
file = subprocess.run(["sqlite3", "-json", db, all_query + " order by id"], capture_output=True, text=True, check=True).stdout
assert json.loads(file or "[]") == sorted(sql(all_query), key=lambda c: c["id"])
counts = [sql(query) for query in counts_queries]
file = subprocess.run(["sqlite3", db, *(f"select count(*) from {t}" for t in tables)], capture_output=True, text=True, check=True).stdout.split()
assert [int(n) for n in file] == [rows[0]["n"] for rows in counts], (file, counts)
print(name, len(events), len(calls), len(messages), lost)
P
# The large one gets fewer questions in the short form.
for name in random actors app drop moments chat; do
	turns=$(rounds 2 200)
	[ $name != random ] || turns=$(rounds 1 200)
	python3 -I -S compare.py "$tw" $name.tw "$turns" >>numbers || fail "$name: not what other views show"
done
[ "$(awk '$4 > 50' numbers | wc -l)" -ge 1 ] || fail "no messages: $(cat numbers)"
[ "$(awk '$5 > 0' numbers | wc -l)" -ge 1 ] || fail "no losses: $(cat numbers)"
# Limits that select what is read change no row: a part that must be read again from its beginning, of one function.
calls() {
	expect 0 "$tw" sql --csv app.tw "select thread, count(*) from calls where $1 and start >= 100000 group by thread"
}
calls "coalesce(function, '') = 'leaf'"
mv out all
calls "function = 'leaf'"
cmp -s out all || fail "a limit of the function and of the time: $(diff out all)"
# A part has its own calls, not those of the whole that it is from.
expect 0 "$tw" cut -q --to 3ms -o part.tw random.tw
expect 0 "$tw" report --json -n 0 part.tw
wanted=$(json 'sorted((r["name"].removesuffix("/_"), r["calls"]) for r in d["by_function"])')
for columns in 'name, calls' 'name, calls, total'; do
	expect 0 "$tw" sql --json part.tw "select $columns from functions"
	is "$(python3 -I -S -c 'import json; print(sorted((r["name"], r["calls"]) for r in map(json.loads, open("out"))))')" "$wanted" "$columns of a part"
done
expect 0 "$tw" sql app.tw "select count(*) from calls where ended = 'cut'"
[ "$(tail -1 out)" -ge 50 ] || fail "longjmp cut no calls"

# What is read: of a part in the middle.
expect 0 "$tw" record -q --returns --args --on-full block -t 'app:{leaf,deep}' -o big.tw -- ./app many
moment() { # PERCENT: when so many of the events had happened
	expect 0 "$tw" sql --csv big.tw "select time from events limit 1 offset (select count(*) * $1 / 100 from events)"
	tail -1 out
}
from=$(moment 45) to=$(moment 47)
events_read() { # QUERY: how many events were read for it
	expect 0 "$tw" sql -v big.tw "$1"
	sed -n 's/^tracewheel: \([0-9,]*\) events\? w.* read, of .*/\1/p' err | tr -d ,
}
all=$(events_read 'select count(*) from events')
[ "$all" -gt 15000 ] || fail "a small capture: $all"
for query in "count(*) from events where time between $from and $to" "max(duration) from calls where start between $from and $to" \
	"* from calls where start between $from and $to" "* from calls limit 5" "* from events limit 5"; do
	part=$(events_read "select $query")
	[ "$part" -gt 0 ] && [ "$part" -lt $((all / 3)) ] || fail "$part of $all events were read: $query"
done
# Calls by function are counted without reading events in their order, unless more is asked for.
is "$(events_read 'select function, count(*) from calls group by function')" 0 "events were read to count calls by function"
[ "$(events_read 'select function, count(*) from calls group by upper(function)')" = "$all" ] || fail "which events were read?"
part=$(events_read "select count(*) from events where kind = 'call' and function = 'leaf'")
is "$part" "$(tail -1 out | tr -d ' ')" "other functions were read"


# A damaged block in the middle is found by a query that reads it, and by no other.
cp -r big.tw bad.tw
python3 -I -S - bad.tw/segment-000001.tws <<'P'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
middle = len(data) // 2
data[middle:middle + 16] = b"\xa5" * 16
open(sys.argv[1], "wb").write(data)
P
expect 0 "$tw" sql bad.tw "select count(*) from events where time <= 1000"
[ ! -s err ] || fail "a block behind the limit was read"
expect 1 "$tw" sql bad.tw 'select count(*) from events'
says 'bad.tw'

# Forms of output, and names that look like orders to a terminal.
expect 0 "$tw" sql --csv app.tw "select 1 as a, 'x\"y' as b, null as c, 2.5 as d"
is "$(cat out)" 'a,b,c,d
1,"x""y",,2.5'
expect 0 "$tw" sql --json app.tw "select 1 as a, 'x\"y' as b, null as c, 2.5 as d"
is "$(cat out)" '{"a":1,"b":"x\"y","c":null,"d":2.5}'
expect 0 "$tw" sql --line app.tw "select 1 as long, char(27) as b"
is "$(cat out)" 'long = 1
   b = \x1b'
expect 0 "$tw" sql app.tw "select char(27) as b, 10 as number"
is "$(cat out)" 'b     number
\x1b      10'
printf 'select 1 as a;\nselect\n 2 as b;\n.schema losses\n' | "$tw" sql --csv app.tw >out 2>err || fail "statements from standard input"
is "$(head -4 out | tr '\n' ' ')" 'a 1 b 2 '
shows '^CREATE TABLE losses('
expect 0 "$tw" sql app.tw .schema
for table in calls functions events threads processes messages losses locks; do
	shows "^CREATE TABLE $table("
done
expect 0 "$tw" sql --csv app.tw "create temp table t as select * from threads; select count(*) > 1 from t"
is "$(tail -1 out)" 1
# Losses are said, as by other views.
expect 0 "$tw" sql --csv drop.tw 'select sum(lost) from losses'
[ -z "$(tail -1 out)" ] || says 'LOST .* events of the capture'

# No file is written, nothing else is opened, and bad SQL is one sentence.
for query in "attach 'other.db' as o" "vacuum into 'other.db'" "pragma temp_store_directory = '.'" "create virtual table v using fts5(a)"; do
	expect 2 "$tw" sql app.tw "$query"
	says "this statement does more\|this is no query"
done
expect 2 "$tw" sql app.tw 'selec 1'
says '^tracewheel sql: this is no query: near "selec": syntax error.$'
expect 2 "$tw" sql app.tw 'select no_column from calls'
expect 2 "$tw" sql app.tw 'delete from calls'
says 'may not be modified'
expect 2 "$tw" sql
says 'which capture'
expect 1 "$tw" sql absent.tw 'select 1'
says 'absent.tw'
expect 1 "$tw" sql app.tw "select json_extract('{', '\$')"
says 'the query failed: malformed JSON'
[ -z "$(find . -name 'other*')" ] || fail "a query wrote a file"

# convert.
expect 0 "$tw" convert --to csv app.tw -o app.csv
expect 0 "$tw" sql --csv app.tw 'select * from calls'
cmp app.csv out || fail "not the table of calls"
expect 0 "$tw" convert --to csv app.tw -o -
cmp app.csv out || fail "not to standard output"
expect 1 "$tw" convert --to sqlite app.tw -o app.csv
says "'app.csv' exists; --force replaces it"
expect 0 "$tw" convert --force --to sqlite app.tw -o app.db
says 'app.db: .* rows'
expect 2 "$tw" convert --to sqlite app.tw -o -
expect 1 "$tw" convert --to sqlite app.tw -o none/app.db
says "'none/app.db' cannot be written"
mkdir alone && cp "$tw" alone
PATH=/usr/bin:/bin expect 1 alone/tracewheel convert --to sqlite app.tw -o x.db
says 'it is built where libsqlite3-dev is installed'
! ldd "$tw" | grep -q sqlite || fail "the command links a database"

# docs/sql.md: the schema is this one, and each query has an answer with the columns that stand there.
PATH=$build/bin:$PATH
cat >work.sql <<'SQL'
CREATE TABLE trip (id INTEGER PRIMARY KEY, city TEXT, km INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO trip SELECT i, 'city ' || (i % 50), i * 7 % 100 FROM n;
SELECT city, count(*) FROM trip GROUP BY city ORDER BY 2 DESC LIMIT 3;
SQL
docs=$(realpath "$common/../../docs/sql.md")
sqlite3 trip.db <work.sql >/dev/null && rm trip.db
"$tw" record -q --returns --args --on-full block -t 'libsqlite3:sqlite3{_prepare_v2,_step,_finalize,VdbeExec}' -t 'libsqlite3:sqlite3Btree{Insert,BeginTrans,CommitPhaseOne}' \
	-t 'libc:{read,pwrite64,fdatasync,malloc}' -o sqlite3.tw -- sqlite3 trip.db <work.sql >/dev/null || fail "no capture of sqlite3"
expect 0 "$tw" sql sqlite3.tw .schema
sed -n '/^-- every call/,/^```/p' "$docs" | sed '$d' | diff - out >difference || fail "docs/sql.md has another schema: $(cat difference)"
grep -A1 '^\$ tracewheel sql ' "$docs" | sed 's/^\$ //; s/duration > 20000/duration > 0/; /^--$/d' >questions
[ "$(wc -l <questions)" -ge 20 ] || fail "less than ten questions in docs/sql.md"
while read -r query && read -r head; do
	eval "$query" >out 2>err || fail "$query"
	mapfile -n 2 -t rows <out
	read -ra shown <<<"${rows[0]:-}"
	read -ra wanted <<<"$head"
	is "${shown[*]}" "${wanted[*]}" "$query"
	[ ${#rows[@]} = 2 ] || fail "no rows: $query"
done <questions

# Any byte may be hostile.
python3 -I -S - "$tw" "$(rounds 3 200)" <<'P' || fail "a mutated capture was too much"
import os, random, shutil, subprocess, sys
tw, rounds = sys.argv[1:]
chance = random.Random(7)
for turn in range(int(rounds)):
    shutil.rmtree("hostile.tw", ignore_errors=True)
    shutil.copytree("app.tw", "hostile.tw")
    path = "hostile.tw/" + chance.choice(sorted(os.listdir("hostile.tw")))
    data = bytearray(open(path, "rb").read())
    for _ in range(chance.choice([1, 4, 64])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    open(path, "wb").write(data)
    done = subprocess.run([tw, "sql", "--json", "hostile.tw", "select * from events", "select *, id, caller from calls", "select * from calls where start > 1000",
                           "select * from functions", "select * from threads", "select * from locks"], capture_output=True, timeout=300)
    assert done.returncode in (0, 1), (turn, done.returncode, done.stderr[-500:])
P
