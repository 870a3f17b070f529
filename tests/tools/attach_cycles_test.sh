#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs as they are, at work, are attached to again and again, and give the right answers to the end: redis under load, Python, node,
#         nginx where it is installed, and a program of 500 threads, of which no wait is shortened. In the long form also postgres, where it is
#         installed, which forks a process for each transaction meanwhile, one such process, and Java.
# Method  Each program checks itself, or is asked; every tenth cycle begins with a new process, which gets the agent then. In the long form 1,000
#         cycles of each; TW_TEST_CYCLES says how many, and TW_TEST_PROGRAMS of which.
build=$1
. "$(dirname "$0")/lib.sh"
program= load= parent=
trap 'kill -KILL $program $load $parent 2>/dev/null; rm -rf "$work"' EXIT
cycles=${TW_TEST_CYCLES:-$(rounds 1 1000)}

cat >many.c <<'C'
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 500, WORKING = 4 };
static volatile int is_over;
static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
__attribute__((noinline)) static int step(int x)
{
	volatile char *memory = malloc(64 + (size_t)x % 900);
	memset((char *)memory, x, 64);
	int y = memory[63];
	free((char *)memory);
	return y;
}
static void *run(void *arg)
{
	long mine = (long)arg;
	for (int n = 0; !is_over; n++) {
		double begun = now_ms();
		if (poll(NULL, 0, mine < WORKING ? 1 : 200) || now_ms() - begun < (mine < WORKING ? 0.99 : 199.99))
			exit(3);
		for (int i = 0; mine < WORKING && i < 500; i++)
			if (step(i & 63) != (i & 63))
				exit(4);
	}
	return arg;
}
int main(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &small, run, (void *)i))
			return 5;
	while (access("end", F_OK))
		usleep(20000);
	is_over = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("right");
	return 0;
}
C
gcc -O1 -o many many.c -pthread -Wl,--build-id || fail "the program does not compile"
cat >app.py <<'P'
import hashlib, json, os, threading, time, zlib
data = bytes(range(256)) * 200
wanted = hashlib.sha256(data).hexdigest(), zlib.crc32(zlib.compress(data))
wrong = []
def work():
    while not os.path.exists("end"):
        if (hashlib.sha256(data).hexdigest(), zlib.crc32(zlib.compress(data))) != wanted or json.loads(json.dumps({"a": [1, 2]})) != {"a": [1, 2]}:
            wrong.append(1)
        time.sleep(0.003)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("wrong" if wrong else "right")
P
cat >app.js <<'J'
const fs = require('fs'), zlib = require('zlib'), crypto = require('crypto');
const data = Buffer.alloc(50000, 'abcdefg'), wanted = crypto.createHash('sha256').update(data).digest('hex');
function turn() {
	zlib.deflate(data, (error, packed) => zlib.inflate(packed, (again, back) => {
		if (error || again || crypto.createHash('sha256').update(back).digest('hex') !== wanted) { console.log('wrong'); process.exit(3); }
		if (fs.existsSync('end')) console.log('right'); else setTimeout(turn, 3);
	}));
}
turn();
J

cat >App.java <<'J'
import java.io.File;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

class App {
	static volatile boolean wrong, over;
	static final byte[] data = new byte[50000];

	static byte[] there_and_back() throws Exception {
		byte[] packed = new byte[60000], back = new byte[data.length];
		Deflater deflater = new Deflater();
		deflater.setInput(data);
		deflater.finish();
		int count = deflater.deflate(packed);
		deflater.end();
		Inflater inflater = new Inflater();
		inflater.setInput(packed, 0, count);
		if (inflater.inflate(back) != back.length)
			return null;
		inflater.end();
		return back;
	}

	/* Native code, code that is made while it runs, exceptions of its processor, and locks. */
	static void work(byte[] wanted) {
		try {
			for (int turn = 0; !over; turn++) {
				byte[] back = there_and_back();
				int[] none = turn % 3 == 0 ? null : new int[1 + turn % 1000];
				int caught = 0;
				try {
					none[0]++;
				} catch (NullPointerException e) {
					caught++;
				}
				synchronized (App.class) {
					wrong |= back == null || caught != (turn % 3 == 0 ? 1 : 0) ||
						 !Arrays.equals(MessageDigest.getInstance("SHA-256").digest(back), wanted);
				}
				Thread.sleep(3);
			}
		} catch (Throwable e) {
			e.printStackTrace();
			wrong = true;
		}
	}

	public static void main(String[] words) throws Exception {
		for (int i = 0; i < data.length; i++)
			data[i] = (byte)(i * i >> 3);
		byte[] wanted = MessageDigest.getInstance("SHA-256").digest(data);
		Thread[] threads = new Thread[4];
		for (int i = 0; i < threads.length; i++)
			(threads[i] = new Thread(() -> work(wanted))).start();
		while (!new File("end").exists())
			Thread.sleep(20);
		over = true;
		for (Thread thread : threads)
			thread.join();
		System.out.println(wrong ? "wrong" : "right");
	}
}
J

# begin_NAME: starts it; is_up: it works; end_NAME: it has worked to the end, and the answers are right.
begin_many() { ./many >answer & program=$!; }
begin_python() { /usr/bin/python3 app.py >answer & program=$!; }
begin_node() { node app.js >answer & program=$!; }
begin_redis() {
	redis-server --port 0 --unixsocket "$work/redis" --save '' >redis.log &
	program=$!
	wait_until redis-cli -s "$work/redis" ping >ping.out 2>&1
	redis-cli -s "$work/redis" set kept "$1" >set.out
	redis-benchmark -s "$work/redis" -c 8 -P 4 -t set,get,lpush,lpop -l -q >load.out 2>&1 &
	load=$!
}
begin_nginx() {
	mkdir -p logs html
	echo "hello" >html/index.html
	printf 'daemon off; pid nginx.pid; error_log logs/error; events {}\nhttp { access_log off; server { listen unix:%s/nginx; root html; } }\n' "$work" >nginx.conf
	rm -f nginx
	nginx -p "$work/" -c nginx.conf &
	parent=$!
	wait_until is_answered
	program=$(pgrep -P $parent -o)
}
begin_java() {
	[ -e App.class ] || javac App.java || fail "the Java program does not compile"
	java -Xmx64m -cp . App >answer 2>&1 &
	program=$!
}
# Servers of postgres do not run as root.
as_postgres() {
	if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}
# Each transaction has a connection of its own, with a process; or all have one.
begin_server() {
	bin=$(dirname "$(realpath "$(command -v postgres)")")
	if [ ! -e data ]; then
		mkdir data
		chmod 711 .
		[ "$(id -u)" != 0 ] || chown postgres data
		as_postgres "$bin/initdb" -D data -U test -A trust --no-sync >initdb.out || fail "no database"
	fi
	as_postgres "$bin/postgres" -D data -c listen_addresses= -c unix_socket_directories="$work/data" -c fsync=off >postgres.log 2>&1 &
	parent=$!
	wait_until is_serving
	server=$(head -n 1 data/postmaster.pid)
	[ -e filled ] || "$bin/pgbench" -h "$work/data" -U test -i -q postgres >filled 2>&1 || fail "pgbench cannot begin: $(cat filled)"
	"$bin/pgbench" -h "$work/data" -U test -n -T 3600 "$@" postgres >load.out 2>&1 &
	load=$!
	wait_until has_worked
}
has_worked() { [ "$(ask 'select count(*) > 0 from pgbench_history')" = t ]; }
is_serving() { [ "$(ask 'select 1')" = 1 ]; }
ask() { "$bin/psql" -h "$work/data" -U test -A -t -c "$1" postgres 2>ask.err; }
begin_postgres() {
	begin_server -C -c 2
	program=$server
}
begin_backend() {
	begin_server -c 2
	wait_until has_backend
}
has_backend() {
	program=$(ask "select min(pid) from pg_stat_activity where application_name = 'pgbench'")
	[ -n "$program" ]
}
is_answered() { [ "$(curl -s --unix-socket nginx http://here/)" = hello ]; }
end_self() {
	touch end
	wait "$program" || fail "$name: exit code $?: $(cat answer)"
	is "$(cat answer)" right "$name"
	rm end
}
end_many() { end_self; }
end_python() { end_self; }
end_node() { end_self; }
end_java() { end_self; }
# Each transaction adds the same number to an account, a teller and a branch.
end_postgres() {
	kill -0 "$load" || fail "the load of postgres has ended: $(tail -c 300 load.out)"
	kill "$load"
	wait "$load" 2>/dev/null
	is "$(ask 'select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches) and
		(select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)')" t "postgres' answer"
	if grep 'terminated by signal\|PANIC' postgres.log >wrong; then
		fail "postgres: $(cat wrong)"
	fi
	kill -INT "$server"
	wait $parent || fail "postgres' exit code is $?"
}
end_backend() { end_postgres; }
end_redis() {
	kill -0 "$load" || fail "the load of redis has ended: $(tail -c 300 load.out)"
	kill "$load"
	wait "$load" 2>/dev/null
	is "$(redis-cli -s "$work/redis" get kept)" "$1" "redis' answer"
	redis-cli -s "$work/redis" shutdown nosave >end.out 2>&1
	wait "$program" || fail "redis' exit code is $?"
}
end_nginx() {
	is_answered || fail "nginx does not answer"
	kill $parent
	wait $parent || fail "nginx' exit code is $?"
}

# attach PATTERN: once more where a busy machine, or code made while it runs, leaves no safe point in time.
attach() {
	for _ in $(seq 20); do
		timeout 60 "$tw" attach -q --force --rate none --time 20ms -o c.tw --returns --allow-nothing -t "$1" "$program" 2>err && return
		grep -q 'at no point in three seconds\|did not get to run\|in time' err || fail "$name: attach, cycle $cycle: $(cat err)"
	done
	fail "$name: no safe point"
}

declare -A patterns=([redis]='redis-server:*Command' [python]='libc:{malloc,free}' [node]='libc:{malloc,free,memcpy}' [nginx]='nginx:_' [many]='many:_' [java]='libc:{malloc,free}'
	[postgres]='postgres:{ServerLoop,PostgresMain,palloc,pfree}' [backend]='postgres:_')

for name in ${TW_TEST_PROGRAMS:-redis python node nginx many $(rounds "" "postgres backend java")}; do
	case $name in
	postgres | backend) command -v postgres && { [ "$(id -u)" != 0 ] || command -v runuser; } ;;
	java) command -v javac ;;
	redis) command -v redis-benchmark ;;
	python | many) true ;;
	nginx) command -v nginx && command -v curl ;;
	*) command -v $name ;;
	esac >found || continue
	begun=$(date +%s)
	for ((cycle = 1; cycle <= cycles; cycle++)); do
		((cycle % 10 != 1)) || begin_$name "$cycle"
		attach "${patterns[$name]}"
		kill -0 "$program" || fail "$name has ended in cycle $cycle"
		((cycle % 10 != 0 && cycle != cycles)) || end_$name "$(((cycle - 1) / 10 * 10 + 1))"
	done
	program=
	[ "$cycles" = 1 ] || echo "$name: $cycles cycles in $(($(date +%s) - begun)) s"
done
[ -n "${TW_TEST_LONG:-}" ] && command -v strace >strace.path || exit 0

# The command dies at each of its system calls of these kinds; the program goes on, and the next command attaches to it.
name=python
patterns[python]='libc:{malloc,free}'
for call in ptrace wait4 process_vm_readv process_vm_writev kill clone futex pwritev; do
	for ((cycle = 1; cycle <= 200; cycle++)); do
		begin_python
		code=0
		timeout 60 strace -o strace.out -e trace=$call -e inject=$call:signal=KILL:when=$cycle "$tw" attach -q --force --rate none \
			--time 20ms -o k.tw -t "${patterns[python]}" "$program" 2>err || code=$?
		attach "${patterns[python]}"
		end_python
		[ $code != 0 ] || break
	done
	[ $cycle -le 200 ] || fail "no end of $call"
	echo "$call: killed at $((cycle - 1)) of them"
done
program=
