#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs of all kinds answer as untraced, with the same exit code, while every function of theirs and of all their libraries,
#         libc too, is recorded at its entry.
# Method  Interpreters, compilers' output of several languages, sanitizers' and static unwinders, as far as they are installed; each
#         untraced and recorded, with other options in turn. The bytes behind planted jumps are int3.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps
export HOME=$work

ways=("" "--returns" "--exceptions --return-to" "--returns --follow-fork")
turn=0
# same COMMAND...: its standard output and exit code.
same() {
	local want=0 got=0 options=${ways[turn++ % ${#ways[@]}]}
	"$@" >expected 2>/dev/null </dev/null || want=$?
	# shellcheck disable=SC2086 # words
	"$tw" record -q --force --local $options -t '_:_' -o zoo.tw -- "$@" >out 2>err </dev/null || got=$?
	is "$got" "$want" "$* ($options)"
	cmp -s expected out || fail "$* ($options): $(diff expected out | head -5)"
}
has() { command -v "$1" >/dev/null; }

cat >many.py <<'P'
import asyncio, ctypes, decimal, json, os, re, subprocess, threading
def work(n):
    for k in range(COUNT):
        n += len(json.dumps({"a": [k] * 10})) + len(re.sub("a+", "b", "caaandaat")) + int(decimal.Decimal(k) * 7)
    return n
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
child = os.fork()
if not child: os._exit(work(0) & 7)
async def nap(): await asyncio.gather(*[asyncio.sleep(0.001) for _ in range(5)]); return 5
def down(n): return down(n + 1)
try: down(0)
except RecursionError: print("deep")
# libffi moves its return address.
print(os.waitpid(child, 0)[1], subprocess.run(["echo", "x"], capture_output=True).stdout, asyncio.run(nap()), ctypes.CDLL(None).abs(-3))
P
sed -i "s/COUNT/$(rounds 10 40)/" many.py
# The import of asyncio is most of the calls.
[ -n "${TW_TEST_LONG:-}" ] || sed -i 's/asyncio, /select, /; s/^async def nap.*/def nap(): return select.epoll().poll(0.001)/; s/asyncio\.run(nap())/nap()/' many.py
[ ! -x /usr/bin/python3 ] || same /usr/bin/python3 many.py
same bash -c 'x=0; for i in {1..300}; do x=$((x + i)); done; echo $x; trap "echo t" USR1; kill -USR1 $$; (exit 3); echo $?; echo a | tr a b | cat; cat <(echo q)'
has perl && same perl -e 'my %h; $h{$_ % 97} .= chr($_ % 26 + 65) for 1..2000; print length(join "", values %h), "\n"; if (!fork) { exit 3 } wait; print $? >> 8; print `echo q`; eval { die "x" }; print $@'
# A commit starts other processes of git, unless its maintenance is off.
if has git; then
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b
	commit='rm -rf r; git init -q r; cd r; echo a >a; git add a; git'
	if [ -z "${TW_TEST_LONG:-}" ]; then
		same sh -c "$commit -c maintenance.auto=false commit -qm a; git log --format=%s"
	else
		same sh -c "$commit commit -qm a; git log --format=%s; git fsck 2>&1"
	fi
fi
has sqlite3 && same sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i+1 from n where i<300) select sum(i), count(distinct i*7%13) from n'
has lua && same lua -e 'local w = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(w(), w(), pcall(error, "x"))'
# The collector reads return addresses of functions that its compiled code calls; in the short form only that of new objects, which does so too.
# Certificates of the user's are read at the start, for long.
unset NODE_EXTRA_CA_CERTS
has node && same node --expose-gc --max-semi-space-size=1 -e 'let s = 0; for (let i = 0; i < '"$(rounds 500 20000)"'; i++) s += JSON.stringify({i}).length; '"$(rounds "" "gc();")"' gc({type: "minor"}); console.log(s); try { (function f() { f() })() } catch (e) { console.log(e.name) }'
cat >Zoo.java <<'J'
public class Zoo {
	public static void main(String[] a) throws Exception {
		long sum = 0;
		for (int i = 0; i < 20000; i++) sum += Integer.toString(i).hashCode();
		try { Object o = null; o.toString(); } catch (NullPointerException e) { System.out.println("null " + sum); }
		System.gc();
	}
}
J
has javac && has java && javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -proc:none Zoo.java 2>/dev/null && {
	# Its collector and its exceptions walk the stack by the return addresses of libjvm's functions. The plan of libjvm takes seconds: it must be there.
	ways=(--returns)
	# shellcheck disable=SC2046 # words
	TRACEWHEEL_PLAN_WAIT_MS=60000 same java $(rounds "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" "") Zoo
	expect 0 "$tw" print --limit 1 -t 'libjvm:JavaFrameAnchor::make_walkable' zoo.tw
	shows 'call libjvm:JavaFrameAnchor::make_walkable'
}

cat >zoo.cc <<'C'
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
/* Strings take the compilers half of their time. */
#ifdef WITH_STRINGS
#include <stdexcept>
#else
#include <exception>
namespace std {
struct runtime_error : exception {
	runtime_error(const char *) {}
	const char *what() const noexcept override { return "a"; }
};
struct string {
	string(size_t count, char c) : text(new char[count + 1]()) { memset(text, c, count); }
	~string() { delete[] text; }
	size_t size() const { return strlen(text); }
	char *text;
};
}
#endif
static int work(int n)
{
	if (n > 5)
		throw std::runtime_error("a");
	return (int)std::string((size_t)n * 10, 'x').size();
}
static void *all(void *arg)
{
	long *sum = (long *)arg;
	for (int k = 0; k < 100; k++)
		try {
			*sum += work(k % 8);
		} catch (const std::exception &e) {
			*sum += (long)strlen(e.what());
		}
	return NULL;
}
int main()
{
	pthread_t threads[4];
	long sums[4] = {}, status = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, all, &sums[i]);
	for (pthread_t thread : threads)
		pthread_join(thread, NULL);
	if (!fork())
		_exit(4);
	int s;
	wait(&s);
	status = WEXITSTATUS(s);
	printf("%ld %ld\n", sums[0] + sums[1] + sums[2] + sums[3], status);
	return 6;
}
C
while read -r compiler flags; do
	has "$compiler" || continue
	# shellcheck disable=SC2086 # words
	$compiler $flags ${TW_TEST_LONG:+-DWITH_STRINGS} -w -o zoo zoo.cc -pthread 2>/dev/null || continue
	same ./zoo
	[ -z "${TW_TEST_LONG:-}" ] || same ./zoo
done < <(
	cat <<-'F'
		g++ -O2 -s -no-pie -static-libgcc -static-libstdc++
		g++ -O0 -g -pg
	F
	# Without clang, GCC's are all that there are.
	if [ -z "${TW_TEST_LONG:-}" ] && has clang++; then
		cat <<-'F'
			g++ -O1 -fsanitize=address,undefined
			clang++ -O2 -fcf-protection -fsanitize=thread
		F
	else
		cat <<-'F'
			g++ -O1 -fsanitize=address
			g++ -O1 -fsanitize=undefined
			clang++ -O1 -fsanitize=thread
			clang++ -O2 -fcf-protection
			g++ -O1 -fsanitize=thread
			clang++ -O1 -fsanitize=address
		F
	fi
)

# MemorySanitizer, whose run-time clang links into the program, knows no memory that code without it has written: no C++ here.
cat >zoo.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 300; i++) {
		char *a = malloc(i % 50 + 2), *b;
		memset(a, 'x', i % 50 + 1);
		a[i % 50 + 1] = 0;
		b = strdup(a);
		sum += (long)strlen(b) + strcmp(a, b);
		free(a), free(b);
	}
	*(long *)arg = sum;
	return NULL;
}
int main(void)
{
	pthread_t threads[4];
	long sums[4];
	int status;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, &sums[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (!fork())
		_exit(4);
	wait(&status);
	printf("%ld %d\n", sums[0] + sums[1] + sums[2] + sums[3], WEXITSTATUS(status));
	return 6;
}
C
if has clang && clang -O1 -w -fsanitize=memory -o zoo_c zoo.c -pthread 2>/dev/null; then
	same ./zoo_c
	[ -z "${TW_TEST_LONG:-}" ] || same ./zoo_c
fi

cat >zoo.rs <<'R'
fn main() {
	let parts: Vec<_> = (0..4).map(|i| std::thread::spawn(move || (0..1000u64).map(|k| k * i).sum::<u64>())).collect();
	println!("{}", parts.into_iter().map(|p| p.join().unwrap()).sum::<u64>());
	println!("{}", std::panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[3] }).is_err());
}
R
has rustc && rustc ${TW_TEST_LONG:+-O} -o zoo_rs zoo.rs 2>/dev/null && same ./zoo_rs
cat >zoo.go <<'G'
package main

/*
#include <stdlib.h>
static int work(int n) { char *p = malloc(n + 1); free(p); return n; }
*/
import "C"
import ("fmt"; "sync")

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		group.Add(1)
		go func(i int) { defer group.Done(); for k := 0; k < 500; k++ { sums[i] += int(C.work(C.int(k))) } }(i)
	}
	group.Wait()
	fmt.Println(sums)
}
G
has go && GOCACHE=$work/go GOFLAGS=-mod=mod CGO_ENABLED=1 go build -o zoo_go zoo.go 2>/dev/null && same ./zoo_go
# Without C, but loaded by ld.so: what runs there does not know of threads and signal stacks of libc's.
cat >pure.go <<'G'
package main

import ("fmt"; "os/exec"; "sync")

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		group.Add(1)
		go func(i int) { defer group.Done(); for k := 0; k < 5000; k++ { sums[i] += k } }(i)
	}
	group.Wait()
	out, err := exec.Command("echo", "x").Output()
	defer func() { fmt.Println(recover(), sums, string(out), err) }()
	var nothing *int
	fmt.Println(*nothing)
}
G
has go && GOCACHE=$work/go GOFLAGS=-mod=mod CGO_ENABLED=0 go build -buildmode=pie -o pure_go pure.go 2>/dev/null && {
	./pure_go >expected
	# Its file has no build-id.
	expect 0 "$tw" record -q --force --local --returns --allow-nothing -t '_:_' -o zoo.tw -- ./pure_go
	cmp -s expected out || fail "pure Go: $(diff expected out | head -5)"
}
exit 0
