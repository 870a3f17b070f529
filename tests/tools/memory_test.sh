#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --memory` and `report --memory` say how much memory was live, when, and whose it was: exactly.
# Method  A program whose threads allocate, reallocate, hand over and free blocks keeps its own books and prints them; the report's JSON
#         must say the same. What it cannot know is played too: frees of unknown blocks, losses, functions without addresses.
build=$1
. "$(dirname "$0")/lib.sh"

cat >books.c <<'C'
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live, peak, allocated, calls;
static void note(long more, size_t asked)
{
	pthread_mutex_lock(&lock);
	live += more;
	peak = live > peak ? live : peak;
	allocated += asked;
	calls += asked != 0;
	pthread_mutex_unlock(&lock);
}
OUT void *keeps(size_t bytes) { void *at = malloc(bytes); note((long)bytes, bytes); return at; }
OUT void *zeroes(size_t count, size_t bytes) { void *at = calloc(count, bytes); note((long)(count * bytes), count * bytes); return at; }
OUT void *grows(void *at, size_t old, size_t bytes) { at = realloc(at, bytes); note((long)bytes - (long)old, bytes); return at; }
OUT void drops(void *at, size_t bytes) { note(-(long)bytes, 0); free(at); }
OUT char *copies(const char *text) { char *at = strdup(text); note((long)strlen(text) + 1, strlen(text) + 1); return at; }
OUT void *maps(size_t bytes) { void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); note((long)bytes, bytes); return at; }
static void *handed[200];
static void *work(void *none)
{
	for (int i = 0; i < 200; i++) {
		void *at = grows(keeps(100), 100, 1000 + (size_t)i);
		handed[i] = at;
		drops(keeps(40), 40);
	}
	return none;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	/* Blocks are freed by another thread than their maker's. */
	for (int i = 0; i < 200; i += 2)
		drops(handed[i], 1000 + (size_t)i);
	for (int i = 0; i < 100; i++)
		(void)zeroes(10, 7);
	(void)copies("a text of some length");
	char *at = maps(16 << 12);
	/* The middle is given back: two mappings are left. */
	munmap(at + (4 << 12), 8 << 12);
	note(-(8l << 12), 0);
	void *big = keeps(1 << 20);
	drops(big, 1 << 20);
	dprintf(3, "%zu %zu %zu %zu\n", live, peak, allocated, calls);
	_exit(0);
}
C
gcc -O1 -g -o books books.c -lpthread || fail "the compiler"

# What the program did before main and beside its books (threads) is not in these: blocks of the functions of the books.
sum() {
	echo 'sum(r["'"$1"'"] for r in d["by_callers"] if any(c.startswith("books:" + f + " at books.c") for c in r["callers"] for f in ("keeps", "zeroes", "grows", "copies", "maps")))'
}
expect 0 "$tw" record -q --memory -o books.tw -- ./books 3>said
# Words that are no arguments are not recorded.
expect 0 "$tw" print books.tw
for line in 'malloc (0x[0-9a-f]*)' 'calloc (0x[0-9a-f]*, 0x[0-9a-f]*)' 'free (0x[0-9a-f]*)' 'munmap (0x[0-9a-f]*, 0x[0-9a-f]*)'; do
	shows "call libc:$line\$"
done
read -r live peak allocated calls <said
expect 0 "$tw" report --memory --json -n 0 books.tw
# Nothing is unknown: what libc frees behind a thread's last destructor has been freed before. 200 blocks of 40 bytes were freed at once.
python3 -I -S - "$live" "$peak" "$allocated" "$calls" <<'P' || fail "not the books"
import json, sys
d, (live, peak, allocated, calls) = json.load(open("out")), map(int, sys.argv[1:])
rows = d["by_callers"]
def books(key):
    return sum(r[key] for r in rows if any(c.startswith(f"books:{f} at books.c") for c in r["callers"] for f in ("keeps", "zeroes", "grows", "copies", "maps")))
def same(one, other, word):
    assert one == other, f"{word}: {one}, not {other}"
same(books("live"), live, "live at the end")
same(books("bytes"), allocated, "allocated")
same(books("calls"), calls, "calls")
assert d["peak"] >= peak, f"the peak of all, {d['peak']}, is less than that of the books, {peak}"
same(books("peak"), peak, "at the peak")
same(sum(n for n in d["unknown"].values() if n != []), 0, "what is not known")
same(sum(r["live"] for r in rows), d["live"], "the sum of rows, live")
same(sum(r["peak"] for r in rows), d["peak"], "the sum of rows, at the peak")
same(max(d["live_over_time"]), d["peak"], "the most over time")
same(sum(r["temporary"] for r in rows if r["largest"] == 40), 200, "temporary")
P
# The flame graph: a line a stack, whose bytes are those of the rows with these callers.
cp out report.json
for kind in peak live allocated; do
	expect 0 "$tw" flame --memory=$kind --folded books.tw
	python3 -I -S - $kind "$live" "$peak" "$allocated" <<-'P' || fail "flame --memory=$kind"
		import collections, json, sys
		kind, live, peak, allocated = sys.argv[1], *map(int, sys.argv[2:])
		key = {"peak": "peak", "live": "live", "allocated": "bytes"}[kind]
		report = json.load(open("report.json"))
		wanted = collections.Counter()
		for row in report["by_callers"]:
		    # Functions alone: MODULE:NAME at FILE:LINE; nothing but an address is written another way.
		    wanted[";".join(c.split(" at ")[0] for c in reversed(row["callers"]) if "+0x" not in c)] += row[key]
		stacks = [line.rsplit(" ", 1) for line in open("out").read().splitlines()]
		assert sum(int(n) for _, n in stacks) == report[key], kind
		ours = collections.Counter()
		for stack, n in stacks:
		    ours[";".join(f for f in stack.split(";") if "+0x" not in f)] += int(n)
		assert ours == +wanted, (ours - wanted, wanted - ours)
		books = sum(int(n) for s, n in stacks if any(f in s.split(";") for f in ("books:keeps", "books:zeroes", "books:grows", "books:copies", "books:maps")))
		assert books == {"peak": peak, "live": live, "allocated": allocated}[kind], (kind, books)
	P
done
expect 0 "$tw" flame --memory books.tw
sed -n 's|.*<script id="data" type="application/json">\(.*\)</script>.*|\1|p' out >page.json
mv page.json out
is "$(json 'd["isMemory"], d["hasTimes"], "memory at its peak" in d["title"], any("allocated in" in n["text"] for n in d["notes"])')" "True True True True"
is "$(json 'sum(f[3] for f in d["functions"])')" "$(python3 -I -S -c 'import json; print(json.load(open("report.json"))["peak"])')" "bytes of the page's table"
expect 2 "$tw" flame --memory=all books.tw
says "--memory is peak, live or allocated, not 'all'"
expect 2 "$tw" flame --memory --folded -t books:keeps books.tw
says 'only --from and --to'
expect 2 "$tw" flame --memory --by-process --folded books.tw
expect 0 "$tw" record -q -t books:keeps -o keeps.tw -- ./books 3>/dev/null
expect 1 "$tw" flame --memory --folded keeps.tw
says "'keeps.tw' has no calls of memory: tracewheel record --memory"

# For people: the caller, not strdup() or the allocator; where it is.
expect 0 "$tw" report --memory books.tw
shows '^at the end .* blocks$'
shows 'books:grows at books.c:[0-9]*$'
shows '<- books:work at books.c'
shows 'books:copies at books.c'
expect 0 "$tw" report --memory --sort calls --columns calls,live books.tw
shows '^ *calls *at end  allocated by'

# Children have their parent's blocks: these are live once, and the children may free their copies. A program that is executed has none.
cat >forks.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static long live, blocks, inherited;
static void *at[300];
OUT void *keeps(size_t bytes) { live += (long)bytes; blocks++; return malloc(bytes); }
OUT void drops(int i, size_t bytes) { live -= (long)bytes; blocks--; free(at[i]); }
OUT void frees_copy(int i) { inherited++; free(at[i]); }
OUT void *grows_copy(int i, size_t bytes) { inherited++; live += (long)bytes; blocks++; return realloc(at[i], bytes); }
static void says(void) { dprintf(3, "%d %ld %ld %ld\n", getpid(), live, blocks, inherited); _exit(0); }
int main(int argc, char **argv)
{
	char *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < (argc > 1 ? 4 : 50); i++)
		at[i] = keeps(100);
	if (argc > 1)
		says();
	for (int i = 40; i < 50; i++)
		drops(i, 100);
	if (!fork()) {
		live = blocks = 0;
		munmap(map, 1 << 16);
		for (int i = 0; i < 20; i++)
			frees_copy(i);
		for (int i = 20; i < 25; i++)
			at[i] = grows_copy(i, 30000);
		for (int i = 100; i < 130; i++)
			at[i] = keeps(77);
		for (int i = 100; i < 107; i++)
			drops(i, 77);
		if (!fork()) {
			live = blocks = inherited = 0;
			/* Of the first process, and of its parent, which some of them are in place of. */
			for (int i = 25; i < 28; i++)
				frees_copy(i);
			for (int i = 107; i < 130; i++)
				frees_copy(i);
			frees_copy(20);
			at[200] = keeps(1000);
			says();
		}
		wait(NULL);
		says();
	}
	wait(NULL);
	/* Before exec and behind it a process of its own. */
	if (!fork()) {
		frees_copy(30);
		dprintf(3, "%d 0 0 1\n", getpid());
		execl(argv[0], argv[0], "executed", NULL);
		_exit(1);
	}
	wait(NULL);
	/* The parent's own are as they were. */
	drops(0, 100);
	drops(39, 100);
	says();
}
C
gcc -O1 -g -o forks forks.c || fail "the compiler"
expect 0 "$tw" record -q --memory --follow-fork -o forks.tw -- "$work/forks" 3>said
expect 0 "$tw" report --memory --json -n 0 forks.tw
python3 -I -S - <<'P' || fail "not the books of parent and children"
import collections, json
d = json.load(open("out"))
said, found, inherited = collections.Counter(), collections.Counter(), 0
for line in open("said"):
    process, live, blocks, copies = map(int, line.split())
    said[process, "live"] += live
    said[process, "blocks"] += blocks
    inherited += copies
for row in d["by_callers"]:
    if any(f"forks:{f} at forks.c" in c for c in row["callers"] for f in ("keeps", "grows_copy")):
        found[row["process"], "live"] += row["live"]
        found[row["process"], "blocks"] += row["blocks"]
assert +said == +found, (said, found)
assert inherited > 50 and d["inherited_frees"] == inherited, (inherited, d["inherited_frees"])
assert d["unknown"]["frees"] == d["unknown"]["not_freed"] == d["unknown"]["lost"] == 0, d["unknown"]
P
expect 0 "$tw" report --memory forks.tw
shows "blocks were freed by children that had them from the process that forked them"

# A part: what was made before it is live.
expect 0 "$tw" print -t libc:mmap books.tw
from=$(awk '/books:maps/ { print $1; exit }' out)
[ -n "$from" ] || from=$(awk 'END { print $1 }' out)
expect 0 "$tw" report --memory --json -n 0 --from "$from" books.tw
is "$(json "$(sum live), $(sum calls) < $calls")" "$live True" "live at the end of a part; calls before it are not counted"
expect 0 "$tw" report --memory --json -n 0 --to "$from" books.tw
is "$(json "$(sum live)"' > 100000, d["unknown"]["unreturned"] <= 1')" "True True" "to the map"

# Waits for space in a ring lie within calls, and are no returns of them.
cat >pairs.c <<'C'
#include <stdlib.h>
__attribute__((noipa)) void *make(int i) { return malloc((size_t)i % 100 + 1); }
int main(int count, char **words)
{
	/* What cannot be known. */
	if (count > 1) {
		void *at = NULL;
		if (posix_memalign(&at, 64, 640) == 0)
			free(at);
		return malloc((size_t)1 << 60) != NULL;
	}
	for (int i = 0; i < PAIRS; i++)
		free(make(i));
	return 0;
}
C
pairs=$(rounds 20000 60000)
gcc -O1 -fno-builtin -w -DPAIRS="$pairs" -o pairs pairs.c || fail "the compiler"
# Which number a function has in a capture is a matter of chance.
for _ in $(seq "$(rounds 2 4)"); do
	expect 0 "$tw" record -q --force --memory --on-full block --ring 64K -o pairs.tw -- ./pairs
	expect 0 "$tw" report --memory --json -n 0 pairs.tw
	is "$(json 'd["account"]["waits"]["count"] > '"$(rounds 5 20)"', sum(r["calls"] for r in d["by_callers"] if r["callers"][0].startswith("pairs:make")), sum(n for n in d["unknown"].values() if n != [])')" "True $pairs 0" "waits, and pairs"
done

# What cannot be known is said.
expect 0 "$tw" record -q --memory -o unknown.tw -- ./pairs unknown
expect 0 "$tw" report --memory unknown.tw
shows '^1 block is counted as allocated only'
shows '^1 block was freed and not seen to be made'
shows '^1 call failed'
expect 0 "$tw" record -q -t 'libc:{malloc,free}' -o words.tw -- ./books 3>/dev/null
expect 0 "$tw" report --memory words.tw
shows 'record with --memory'
expect 0 "$tw" record -q -t books:main -o none.tw -- ./books 3>/dev/null
expect 0 "$tw" report --memory none.tw
shows 'No calls of memory were recorded: tracewheel record --memory'
expect 2 "$tw" report --memory --thread books books.tw
says 'only --from and --to select'
expect 2 "$tw" report --memory --sort self books.tw
says 'self'
# Losses are said, and nothing is below zero.
expect 0 "$tw" record -q --memory --on-full drop --ring 64K -o lossy.tw -- python3 -c 'x = [str(i) * 50 for i in range('"$(rounds 50000 200000)"')]'
expect 0 "$tw" report --memory --json -n 0 lossy.tw
said=$(json 'd["unknown"]["lost"] > 0, max([d["live"], d["peak"]] + [r["live"] for r in d["by_callers"]]) < 100000000000, sum(r["live"] for r in d["by_callers"]) - d["live"]')
if [[ $said == True* ]]; then
	is "$said" "True True 0" "nothing below zero, the sum of rows with losses"
	expect 0 "$tw" report --memory lossy.tw
	shows 'look live'
fi
exit 0

# Names of templates fit the screen: in the table, in sentences, and whole where there is no width.
cat >names.cc <<'C'
#include <map>
#include <string>
#include <vector>
static std::map<std::string, std::vector<int>> book;
__attribute__((noipa)) void add(int i)
{
	std::vector<int> parts;
	for (int k = 0; k < i % 50; k++)
		parts.push_back(k);
	book["a name that is longer than a short one " + std::to_string(i)] = parts;
}
int main()
{
	for (int i = 0; i < 400; i++)
		add(i);
}
C
g++ -O2 -o names names.cc || fail "the compiler"
expect 0 "$tw" record -q --memory -o names.tw -- ./names
expect 0 "$tw" record -q --returns -t 'names:_' -o calls.tw -- ./names
for width in 60 100; do
	for view in 'report --memory names.tw' 'report calls.tw' 'report --histogram duration calls.tw' 'report --callers calls.tw'; do
		# shellcheck disable=SC2086
		COLUMNS=$width expect 0 "$tw" $view
		is "$(python3 -I -S -c "print(max(len(line.rstrip('\n').rstrip()) for line in open('out', encoding='utf-8')) <= $width)")" True "$view in $width columns"
		! grep -q 'char_traits' out || fail "$view: defaults of templates"
	done
done
expect 0 "$tw" report --memory names.tw
shows 'names:.*_M_realloc_insert<int const&>(__gnu_cxx'

# Functions of a program that allocate and free: a pool. What was not recorded of them is said.
cat >pool.c <<'C'
#include <stdlib.h>
static char *at;
#define WORK for (volatile int i = 0; i < 3; i++)
__attribute__((noipa)) void *pool_get(void *pool, size_t bytes) { WORK; char *block = at; at += bytes; return block; }
__attribute__((noipa)) void pool_put(void *pool, void *block) { WORK; __asm__ volatile("" : : "r"(pool), "r"(block)); }
__attribute__((noipa)) char *name(void *pool) { char *block = pool_get(pool, 32); *block = 1; return block; }
__attribute__((noipa)) char *page(void *pool) { char *block = pool_get(pool, 4096); *block = 1; return block; }
int main(void)
{
	char *pool = at = malloc(16 << 20);
	for (int i = 0; i < 1000; i++) {
		char *one = name(pool), *other = page(pool);
		pool_put(pool, one);
		if (i % 4)
			pool_put(pool, other);
	}
	return 0;
}
C
gcc -O1 -g -o pool pool.c || fail "the compiler"
expect 0 "$tw" record -q --returns --args=raw --stack 8 -t 'pool:pool_*' -o pool.tw -- ./pool
expect 0 "$tw" report --memory --json --pair 'pool_get($2)=pool_put($2)' pool.tw
is "$(json '[d[k] for k in ("calls", "bytes", "frees", "live", "live_blocks", "peak")], d["unknown"]["not_recorded"]')" \
	"([2000, 4128000, 1750, 1024000, 250, 1028128], [])" "the pool"
is "$(json '[(r["live"], r["blocks"]) for r in d["by_callers"] if r["callers"][0].startswith("pool:page at pool.c")]')" "[(1024000, 250)]"
# Without a size blocks count; another pair is not called.
expect 0 "$tw" report --memory --json --pair 'pool:pool_get=pool_put($2)' --pair 'new=delete' pool.tw
is "$(json 'd["live"], d["live_blocks"], d["unknown"]["not_recorded"]')" "(250, 250, ['new', 'delete'])" "blocks"
expect 0 "$tw" flame --memory=live --folded --pair 'pool_get($2)=pool_put($2)' pool.tw
shows '^pool:_start;.*;pool:main;pool:page 1024000$'
is "$(wc -l <out)" 1 "stacks of what is left"
expect 0 "$tw" record -q --returns --args=raw --stack 8 -t 'pool:pool_get' -o gets.tw -- ./pool
expect 0 "$tw" report --memory --pair 'pool_get($2)=pool_put($2)' gets.tw
shows 'No call of pool_put was recorded: blocks that it freed look live'
expect 0 "$tw" flame --memory=live --folded --pair 'pool_get($2)=pool_put($2)' gets.tw
says 'No call of pool_put was recorded'
expect 0 "$tw" record -q --returns --args=raw --stack 8 -t 'libc:malloc' -o mallocs.tw -- ./pool
expect 0 "$tw" report --memory mallocs.tw
shows 'No call of free was recorded'
expect 0 "$tw" report --memory --pair 'new=delete' pool.tw
shows 'No calls of these functions were recorded'
expect 1 "$tw" flame --memory --folded --pair 'new=delete' pool.tw
says 'has no calls of these functions'
for wrong in new new= '=delete' 'new($0)=delete' 'new($7)=delete' 'new($1x)=delete'; do
	expect 2 "$tw" report --memory --pair "$wrong" pool.tw
	says 'NEW=FREE'
done
expect 2 "$tw" report --pair new=delete pool.tw
says 'goes with --memory'
expect 2 "$tw" flame --folded --pair new=delete pool.tw
