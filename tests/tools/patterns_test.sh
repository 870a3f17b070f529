#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The names that a view prints are patterns: in `record`, in the views, in `functions`. -N leaves functions out.
# Method  Each name that `report` prints of a program in C and one in C++ selects exactly that function again.
build=$1
. "$(dirname "$0")/lib.sh"

cat >leaf.c <<'C'
__attribute__((noipa)) int leaf(int a, int b) { return a + b; }
__attribute__((noipa)) int middle(int a) { return leaf(a, 1) + 1; }
int main(int argc, char **argv) { return middle(argc) + middle(2) - 7; }
C
cat >app.cc <<'C'
#define NOIPA __attribute__((noipa))
namespace app {
struct S {
	int n;
	NOIPA int add(int by) const { return n + by; }
	NOIPA int operator[](int at) const { return n + at; }
	NOIPA bool operator/(const S &other) const { return n > other.n; }
	NOIPA int operator()(char *text, int (*each)(int)) { return text ? each(n) : n; }
	NOIPA operator unsigned long() const { return n; }
};
/* Two destructors: one of them also frees the memory. */
struct base { virtual ~base(); int n = 1; };
NOIPA base::~base() { __asm__ volatile("" ::: "memory"); }
template <class T> NOIPA T most(T a, T b) { return a > b ? a : b; }
/* A type with a tag of its ABI, as std::string has. */
struct __attribute__((abi_tag("cxx11"))) text { const char *at; int size() { return at[0] == 'x'; } };
NOIPA text name(const char *at) { return {at}; }
namespace { NOIPA int hidden(int a) { return a; } }
}
NOIPA int each(int a) { return a; }
int main(int argc, char **argv)
{
	app::S s = {argc};
	for (int i = 0; i < 3; i++)
		app::base on_stack;
	for (int i = 0; i < 2; i++) {
		app::base *heap = new app::base;
		__asm__ volatile("" : "+r"(heap));
		delete heap;
	}
	auto lambda = [](int a, int b) NOIPA { return a - b; };
	return s.add(1) + s[2] + (s / s) + s(argv[0], each) + (int)(unsigned long)s + app::most<int>(1, 2) + (int)app::name("x").size() +
	       app::hidden(3) + lambda(4, 4) - 13;
}
C
gcc -w -O2 -g -fpatchable-function-entry=9 -o leaf leaf.c && g++ -w -O1 -g -fpatchable-function-entry=9 -o app app.cc || fail "gcc"

# names NAME.tw: of all functions, as report prints them
names() {
	COLUMNS=400 "$tw" report --json --top 0 "$1" | python3 -I -S -c 'import json, sys
for row in json.load(sys.stdin)["by_function"]: print(row["name"], row["calls"])'
}
# each_name PROGRAM MODULE OPTION...: every one of them, again; in the short form, every second one at once.
each_name() {
	local program=$1 module=$2 code=0
	shift 2
	"$program" >untraced 2>&1 </dev/null || code=$?
	expect $code "$tw" record --force -o all.tw "$@" -t "$module:_" -- "$program"
	names all.tw >all
	[ -z "$only_names" ] || return 0
	python3 -I -S - "$tw" "$program" all "${TW_TEST_LONG:-}" <<-'PY' || fail "a name that report prints is no pattern"
		import json, subprocess, sys
		tw, program, names, is_long = sys.argv[1:]
		def run(*arguments):
		    done = subprocess.run([tw, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
		    return done.stdout, done.stderr
		def rows(capture, *arguments):
		    text, said = run("report", "--json", "--top", "0", *arguments, capture)
		    return [(row["name"], row["calls"]) for row in json.loads(text)["by_function"]] if text else said
		def bare(rows):
		    # Neither the arity nor the linkage name of a function whose namesake was recorded too.
		    return [(name.rsplit("/", 1)[0].split(" [_Z")[0], calls) for name, calls in rows]
		wanted = [(name, int(calls)) for name, calls in (line.rstrip("\n").rsplit(" ", 1) for line in open(names))]
		assert len(wanted) >= 3, wanted
		groups = len(wanted) if is_long else 2
		for some in (wanted[first::groups] for first in range(groups)):
		    patterns = [word for name, _ in some for word in ("-t", name)]
		    said = run("record", "--force", "-q", "-o", "one.tw", *patterns, "--", program)
		    assert sorted(bare(rows("one.tw"))) == sorted(bare(some)), (some, rows("one.tw"), said)
		    assert sorted(rows("all.tw", *patterns)) == sorted(some), (some, rows("all.tw", *patterns))
		    text, said = run("functions", "--json", *patterns, program)
		    assert len(json.loads(text)["functions"]) >= len(some), (some, said)
	PY
}
only_names=
each_name ./leaf leaf
# In the short form names with an arity are selected by those of C++, and by some below.
[ -n "${TW_TEST_LONG:-}" ] || only_names=1
each_name ./leaf leaf --args
only_names=
grep -q '^leaf:leaf/2 2$' all || fail "no arity with --args: $(cat all)"
each_name ./app app --args
grep -q '^app:app::S::add(int) const/2 1$' all || fail "C++ with --args: $(cat all)"

is "$(grep '~base' all | sort)" "app:app::base::~base() [_ZN3app4baseD0Ev]/1 2
app:app::base::~base() [_ZN3app4baseD2Ev]/1 5"
expect 0 "$tw" report all.tw
is "$(grep -c '~base() \[_ZN3app4baseD[02]Ev\]' out)" 2
expect 0 "$tw" functions -t 'app:app::base::~base() [_ZN3app4baseD0Ev]' ./app
is "$(grep -c '~base() \[_ZN3app4baseD0Ev\]' out) $(grep -c '~base' out)" '0 1'
# Namesakes need not follow each other by linkage name.
cat >two.cc <<'CC'
struct base { int n = 1; };
struct two : virtual base { two(int a); two(long a); };
two::two(int a) { n += a; }
two::two(long a) { n -= a; }
struct more : two { more() : two(1L) {} more(int a) : two(a) {} };
int main() { return two(1).n + two(2L).n + more().n + more(3).n - 6; }
CC
g++ -w -O1 -fpatchable-function-entry=9 -o two two.cc || fail "gcc"
expect 0 "$tw" functions -t 'two:two::two' ./two
is "$(grep -c 'two::two(.*) \[_ZN3twoC[0-9]E[il]\]' out)" "$(grep -c 'two::two(' out)"
[ "$(grep -c 'two::two(' out)" -ge 4 ] || fail "two constructors have two functions each, or more"

# Linkage names, sonames, the name as typed, a path; without qualifiers and results; several.
# selects PATTERN N OPTION... PROGRAM: expects N functions
selects() {
	local pattern=$1 count=$2
	shift 2
	"$tw" record --force -q -o some.tw -t "$pattern" "${@:1:$#-1}" -- "${!#}" >out 2>err </dev/null
	is "$("$tw" report --csv -n 0 some.tw | grep -c '^".*",[0-9]')" "$count" "-t $pattern: $(cat err)"
}
selects 'app:_ZNK3app1S3addEi' 1 ./app
selects 'app:app::S::add(int)' 1 ./app
selects 'app:app::S::add' 1 ./app
selects 'app:app::most<int>' 1 ./app
selects 'app:app::S::operator[](int)' 1 ./app
# A program without libstdc++ knows linkage names alone.
cat >bare.cc <<'C'
namespace app {
__attribute__((noinline)) int one(int n) { __asm__ volatile(""); return n + 1; }
__attribute__((noinline)) int two(int n) { __asm__ volatile(""); return n + 2; }
}
int main() { return app::one(1) + app::two(1) - 5; }
C
g++ -O1 -g -fpatchable-function-entry=9 -Wl,--as-needed -o bare bare.cc || fail g++
ldd bare | grep -q libstdc && fail "libstdc++ is needed"
selects 'bare:app::one(int)' 1 ./bare
selects 'bare:app::{one,two}' 2 ./bare
selects 'bare:app::*' 1 -N 'bare:app::two(int)' ./bare
selects 'libc.so.6:__libc_start_main' 1 ./leaf
selects 'leaf:{leaf,middle}' 2 ./leaf
selects '{leaf:leaf,libc:__libc_start_main}' 2 ./leaf
selects './leaf:leaf' 1 ./leaf
selects 'leaf:_' 2 -N 'leaf:middle' ./leaf
selects 'leaf:_' 2 -N 'leaf:leaf/2' ./leaf
selects 'leaf:_' 1 -N 'leaf:{leaf,middle/_}' ./leaf
ln -s leaf typed
selects 'typed:_' 3 ./typed
selects 'leaf:_' 3 ./typed
selects 'typed:leaf/2' 1 ./typed
expect 0 "$tw" record --force -q -o typed.tw -t 'typed:_' -- ./typed
expect 0 "$tw" report --json -t 'typed:{leaf,main}' typed.tw
is "$(json 'len(d["by_function"])')" 2
expect 0 "$tw" functions -t 'typed:leaf' ./typed
shows 'leaf:leaf'

# -N in the views; alone it excludes from everything.
expect 0 "$tw" report --json -N 'leaf:middle' typed.tw
is "$(json 'sorted(row["name"] for row in d["by_function"])')" "['leaf:leaf/_', 'leaf:main/_']"
expect 0 "$tw" print -t 'leaf:_' -N 'leaf:m*' typed.tw
is "$(grep -c ' call leaf:leaf' out) $(grep -c ' call ' out)" '2 2'
expect 0 "$tw" flame --folded -N '_:_' typed.tw
is "$(cat out)" ''
expect 0 "$tw" functions -t 'leaf:_' -N 'leaf:middle' ./leaf
! grep -q 'leaf:middle' out || fail "functions -N"
expect 0 "$tw" record --force -o without.tw -N 'leaf:leaf' -- ./leaf
is "$(names without.tw | grep -c leaf:leaf)" 0
expect 2 "$tw" report -N ':' typed.tw
says 'is not a pattern'
exit 0
