# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# lib.sh - what the shell tests of the commands share. A test starts with
#	build=$1; . "$(dirname "$0")/lib.sh"
# and then runs in an empty folder of its own, which is removed at the end.
set -u
common=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../common")
build=$(realpath "$build")
tw=$build/bin/tracewheel
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C.UTF-8
unset NO_COLOR COLUMNS LD_PRELOAD PAGER LESS
# No pager on terminals that nobody looks at.
export TRACEWHEEL_PAGER=cat

fail() {
	echo "FAILED: $*" >&2
	[ ! -s out ] || { echo "--- out" >&2 && head -n 30 out >&2; }
	[ ! -s err ] || { echo "--- err" >&2 && head -n 30 err >&2; }
	exit 1
}

# expect CODE COMMAND...: runs it with its output in the files out and err, and compares the exit code.
expect() {
	local code=$1 got=0
	shift
	"$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$code" ] || fail "exit code $got instead of $code: $*"
}

# rounds SHORT LONG: how many, here and in ./run test --long.
rounds() {
	[ -z "${TW_TEST_LONG:-}" ] && echo "$1" || echo "$2"
}

says() {
	grep -q -- "$1" err || fail "no '$1' on standard error"
}

shows() {
	grep -q -- "$1" out || fail "no '$1' on standard output"
}

# json EXPRESSION: of the object d in the file out, with Python; without its site packages it starts in half the time.
json() {
	python3 -I -S -c "import json; d = json.load(open('out')); print($1)" || fail "not the JSON expected: $1"
}

is() {
	[ "$1" = "$2" ] || fail "'$1' is not '$2'${3:+: $3}"
}

# calls NAME.tw [MODULE:]FUNCTION...: how often each of them was called.
calls() {
	expect 0 "$tw" report --csv -n 0 "$1"
	shift
	awk 'BEGIN { for (i = 1; i < ARGC; i++) wanted[i] = ARGV[i]; count = ARGC - 1; ARGC = 1 }
		NR == 1 { is_report = /^name,calls,/; next }
		match($0, /^".*",/) {
			bare = name = substr($0, 2, RLENGTH - 3)
			sub(/^[^:]*:/, "", bare)
			split(substr($0, RLENGTH + 1), field, ",")
			for (i = 1; i <= count; i++)
				if (wanted[i] == name || wanted[i] == bare)
					calls[i] += field[1]
		}
		END {
			for (i = 1; i <= count; i++)
				printf "%.0f%s", calls[i], i < count ? " " : "\n"
			exit !is_report
		}' "$@" <out || fail "no numbers of calls"
}

# make_calls: a program calls, which makes 500 calls, says so by one byte, waits for one, and does the same again.
make_calls() {
	cat >calls.c <<-'C'
		#include <unistd.h>
		__attribute__((noinline)) void step(int i) { __asm__ volatile("" : : "r"(i)); }
		int main(void)
		{
			char byte;
			for (int round = 0; round < 2; round++) {
				for (int i = 0; i < 500; i++)
					step(i);
				if (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1)
					return 1;
			}
			return 0;
		}
	C
	gcc -O1 -fpatchable-function-entry=9 -o calls calls.c || fail "gcc"
}

# plant_with_traps: plans of entries are kept in an empty folder; the bytes behind planted jumps are int3, so that a jump into them ends
# the program.
plant_with_traps() {
	export XDG_CACHE_HOME=$work/cache TRACEWHEEL_ENTRY_TRAPS=1
	mkdir cache
}

# wait_until COMMAND...: until the command succeeds, some minutes at most. Tests wait for progress with it, never for a time.
wait_until() {
	wait_for $$ "$@"
}

# wait_for PID COMMAND...: the same for something that the background process PID does; fails at once when it has ended without that.
wait_for() {
	local pid=$1 alive=1
	shift
	for _ in {1..6000}; do
		! "$@" || return 0
		[ $alive = 1 ] || fail "process $pid ended without: $*"
		# What it did just before its end is looked at once more.
		kill -0 "$pid" 2>/dev/null || alive=0
		[ $alive = 0 ] || nap
	done
	fail "in vain: $*"
}

nap() {
	sleep 0.05
}

# own_epmd: an epmd of this test alone, on a free port; for nodes started with `-start_epmd false`, or they may start one that stays.
# It ends with the test, and with it all processes in $pids.
own_epmd() {
	export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT
	pids=
	trap 'kill $pids 2>/dev/null; rm -rf "$work"' EXIT
	# The port is free when it is chosen; another program may take it before epmd does.
	for _ in 1 2 3 4 5; do
		ERL_EPMD_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		epmd >epmd.log 2>&1 &
		pids=$!
		until epmd -names >/dev/null 2>&1 || ! kill -0 $pids 2>/dev/null; do
			sleep 0.05
		done
		! kill -0 $pids 2>/dev/null || return 0
	done
	fail "epmd does not start: $(cat epmd.log)"
}

# privately COMMAND...: runs it where private file systems may be mounted; 99 if that is not allowed, with the reason on standard output.
# A root by chroot forbids name spaces of users; if its folder is no mount point, mounts cannot be made private there either.
privately() {
	if unshare -rm true 2>/dev/null; then
		unshare -rm "$@"
	elif unshare -m true 2>refusal; then
		unshare -m "$@"
	else
		cat refusal
		return 99
	fi
}

# needs_strings: skips the test in containers that forbid reading strings of arguments.
needs_strings() {
	python3 -I -S - <<-'EOT' || { echo "process_vm_readv is refused here: not tested" && exit 77; }
		import ctypes, os
		class Piece(ctypes.Structure):
		    _fields_ = [("at", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
		source, target = ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(1)
		there, here = Piece(ctypes.addressof(source), 1), Piece(ctypes.addressof(target), 1)
		raise SystemExit(ctypes.CDLL(None).process_vm_readv(os.getpid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != 1)
	EOT
}

# A small piece of real work for SQLite's shell.
make_work() {
	cat >work.sql <<-'SQL'
		CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
			INSERT INTO t SELECT i, 'row ' || i FROM n;
		SELECT count(*) FROM t WHERE b LIKE '%7%';
	SQL
}

# make_sides N: two builds of one program, old and app, and N captures of each: old1.tw, app1.tw ... app calls parse 1,000 times more and
# not only, and some of its calls of parse sleep.
make_sides() {
	cat >app.c <<-'C'
		#include <time.h>
		volatile long sink;
		#define WORK(name) __attribute__((noinline)) void name(int n) { for (int i = 0; i < n; i++) sink += i; }
		WORK(render) WORK(only)
		/* Sleeps are long enough for any load of the machine. */
		__attribute__((noinline)) void parse(int i)
		{
			const struct timespec time = {0, 10000000};
			__asm__ volatile("" : "+r"(i));
			if (IS_NEW && i % 60 == 0)
				nanosleep(&time, NULL);
		}
		int main(void)
		{
			for (int i = 0; i < 3000; i++) {
				parse(i);
				render(100);
				if (IS_NEW && i % 3 == 0)
					parse(1);
				if (!IS_NEW && i % 3 == 0)
					only(10);
			}
			return 0;
		}
		C
	gcc -w -O1 -DIS_NEW=0 -fpatchable-function-entry=9 -o old app.c || fail gcc
	gcc -w -O1 -DIS_NEW=1 -fpatchable-function-entry=9 -o app app.c || fail gcc
	for n in $(seq "$1"); do
		for side in old app; do
			expect 0 "$tw" record -q --on-full block --returns -t "$side:_" -o "$side$n.tw" -- "./$side"
		done
	done
}

# record_lk: a capture lk.tw of threads that wait for a lock, the time of which is in calls of hold().
record_lk() {
	cat >lk.c <<-'C'
		#include <pthread.h>
		#include <unistd.h>
		pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
		__attribute__((noinline)) void hold(int i)
		{
			pthread_mutex_lock(&table_lock);
			usleep(1000);
			pthread_mutex_unlock(&table_lock);
		}
		__attribute__((noinline)) void *run(void *argument)
		{
			for (int i = 0; i < 20; i++)
				hold(i);
			return argument;
		}
		int main(void)
		{
			pthread_t threads[3];
			for (int i = 0; i < 3; i++)
				pthread_create(&threads[i], 0, run, 0);
			for (int i = 0; i < 3; i++)
				pthread_join(threads[i], 0);
			return 0;
		}
	C
	gcc -w -O1 -fpatchable-function-entry=9 -o lk lk.c -lpthread || fail gcc
	expect 0 "$tw" record -q --on-full block --locks --returns -t 'lk:_' -o lk.tw -- ./lk
}

# look URL: the page as a browser draws it, in the file dom. A busy machine or a small /dev/shm ends a browser at
# times: three tries, each with a profile of its own. Where it has drawn nothing so far, not even a small page, the test is skipped.
look() {
	for try in 1 2 3; do
		if timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/profile$try" \
			--window-size=1200,900 --virtual-time-budget=5000 --dump-dom "$1" >dom 2>browser-says &&
			[ -s dom ]; then
			has_drawn=1
			return 0
		fi
		rm -rf "$work/profile$try"
	done
	if [ -z "$has_drawn" ]; then
		has_drawn=0
		echo '<p id=x></p><script>x.textContent = 6 * 7</script>' >small.html
		look "file://$work/small.html" && grep -q '>42<' dom || no_browser
	fi
	return 1
}

no_browser() {
	echo "Chromium does not run here: the page was not tested." >&2
	exit 77
}

# kill_both RECORDER: with a program that writes its process as number 4, which the test's own() reads, when it has made calls.
kill_both() {
	local program=0
	while [ "$program" = 0 ] && kill -0 "$1"; do
		sleep 0.1
		program=$(own 4 2>/dev/null || echo 0)
	done
	kill -9 "$1"
	kill -9 "$program"
	wait "$1" 2>/dev/null
}

# add_page NAME PAGE [HASH]: draw_pages draws PAGE, with the file try.js as its last script, $width pixels wide (1200), and dark if $is_dark
# is not empty.
add_page() {
	mv try.js "$1.js"
	printf '%s\n' "$1" "$2" "${3:-}" "${width:-1200}" "${is_dark:-}" >>pages
}

# draw_pages: all of them in one browser, which takes seconds to start. Lines that a page's script gives to say() are in the file NAME.said.
draw_pages() {
	python3 -I -S - <<-'EOT' || fail "no pages"
		driver = '''<pre id="page-said"></pre><script>{
		const say = (...words) => document.getElementById('page-said').append(words.join(' ') + '\\n');
		const by = id => document.getElementById(id), press = key => (document.activeElement ?? document.body).dispatchEvent(
			new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
		const type = text => { by('search').value = text; by('search').dispatchEvent(new Event('input')); };
		const frames = () => [...document.querySelectorAll('.f')], frame = (name, i = 0) => frames().filter(f => f.ariaLabel.startsWith(name + ','))[i];
		const rgb = text => { const n = text.match(/[\\d.]+/g).map(Number); return text.startsWith('color(') ? n.map(x => x * 255) : n; };
		const light = text => rgb(text).slice(0, 3).map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
		const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] !== 0) return c; } };
		const contrast = e => { const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
		const column = i => [...by('table').tBodies[0].rows].map(row => row.cells[i].textContent), heads = () => [...by('table').tHead.rows[0].cells];
		try { SCRIPT } catch (error) { say('error', error.stack); }
		parent.postMessage(['NAME', by('page-said').textContent], '*');
		}</script>'''
		lines = open("pages").read().split("\n")
		with open("frames.html", "w") as frames:
		    print("""<script>onmessage = event => {
		        const said = document.createElement('pre');
		        [said.className, said.textContent] = event.data;
		        document.body.append(said);
		    };</script>""", file=frames)
		    for name, page, hash, width, is_dark in zip(*[iter(lines)] * 5):
		        open(f"try-{name}.html", "w").write(open(page).read() + driver.replace('SCRIPT', open(name + ".js").read()).replace('NAME', name))
		        # A browser's window has 500 pixels at least, a frame any number. A frame is dark where its element is.
		        scheme = "; color-scheme: dark" if is_dark else ""
		        print(f'<iframe src="try-{name}.html{hash}" width="{width}" height="900" style="border: 0; position: absolute; top: 0; left: 0{scheme}"></iframe>', file=frames)
	EOT
	look "file://$work/frames.html" || fail "the browser"
	python3 -I -S - <<-'EOT' || fail "a page's script did not end: $(cat browser-says)"
		import html, re
		said = dict(re.findall(r'<pre class="(.*?)">(.*?)</pre>', open("dom").read(), re.S))
		for name in open("pages").read().split("\n")[:-1:5]:
		    open(name + ".said", "w").write(html.unescape(said[name]))
	EOT
	! grep '^error' ./*.said >&2 || fail "a page's script"
}

# said NAME LINE...: are these exactly the lines that the page NAME said?
said() {
	local name=$1
	shift
	printf '%s\n' "$@" | diff - "$name.said" >&2 || fail "the page $name says otherwise"
}

# needs_browser: skips the test where there is no Chromium; the first look() skips it where there is one that does not run.
needs_browser() {
	has_drawn=
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || no_browser
}

# slow.so, to be preloaded: the command's writes and syncs take 40 ms each; $LARGEST gets the blocks of the largest write.
make_slow_disk() {
	cat >slow.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static int largest;
static int is_command(void) { return strcmp(program_invocation_short_name, "tracewheel") == 0; }
static void wait_for_disk(void) { if (is_command()) usleep(40000); }
ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off_t offset)
{
	static ssize_t (*next)(int, const struct iovec *, int, off_t);
	if (!next)
		next = (ssize_t (*)(int, const struct iovec *, int, off_t))dlsym(RTLD_NEXT, "pwritev64");
	if (count > largest)
		largest = count;
	wait_for_disk();
	return next(fd, pieces, count, offset);
}
ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) { return pwritev64(fd, pieces, count, offset); }
int fdatasync(int fd)
{
	static int (*next)(int);
	if (!next)
		next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	wait_for_disk();
	return next(fd);
}
__attribute__((destructor)) static void tell(void)
{
	FILE *out = is_command() && getenv("LARGEST") ? fopen(getenv("LARGEST"), "w") : NULL;
	if (out) {
		fprintf(out, "%d\n", largest);
		fclose(out);
	}
}
C
	gcc -w -O2 -shared -fPIC -o slow.so slow.c -ldl || fail "slow.so"
}
