#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Probes that a program brings itself (<sys/sdt.h>) are listed with what their notes say, and recorded as often as the program comes
#         to them, in order, with the values that it passed: of every size and sign, from registers, constants, frames, the red zone,
#         other memory and globals; in loops, in code that was inlined several times, in threads, in functions that exceptions pass.
#         The program's answers are those of an untraced run. Semaphores are raised for the recording, and given back. Patterns for functions
#         select no probe. Counting, conditions and views take probes as calls.
# Method  programs that write what they pass to each probe; their output is compared with `print --format json`. Probes of python3.11 and
#         libstdc++ are counted beside gdb's breakpoints on the same probes and beside what the program throws. The control: a value and a
#         count that differ are noticed.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache
# A loaded machine makes plans late.
export TRACEWHEEL_PLAN_WAIT_MS=60000
echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1 || { echo "sys/sdt.h is not here: not tested" && exit 77; }

cat >work.c <<'C'
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define SEMAPHORE(name) __extension__ volatile unsigned short work_##name##_semaphore __attribute__((section(".probes")))
SEMAPHORE(sizes); SEMAPHORE(wide); SEMAPHORE(memory); SEMAPHORE(leaf); SEMAPHORE(many); SEMAPHORE(turn); SEMAPHORE(none);
SEMAPHORE(guarded); SEMAPHORE(busy); SEMAPHORE(spread);
#define NOIPA __attribute__((noipa))
#define TELL(...) (is_telling ? (void)fprintf(notes, __VA_ARGS__) : (void)0)
static FILE *notes;
static bool is_telling = true;
int global = -17;
unsigned char global_bytes[9] = {1, 2, 3, 4, 250};

NOIPA void sizes(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f)
{
	DTRACE_PROBE6(work, sizes, a, b, c, d, e, f);
	TELL("sizes %d %d %d %d %d %u\n", a, b, c, d, e, f);
}

NOIPA void wide(long a, unsigned long b, void *c)
{
	DTRACE_PROBE4(work, wide, a, b, c, (short)-5);
	TELL("wide %ld %lu %lu -5\n", a, b, (unsigned long)c);
}

struct node {
	int number;
	unsigned char flag;
	struct node *next;
	long numbers[4];
};
/* Memory that is not the frame's. */
NOIPA void memory(const struct node *node, long index)
{
	__asm__ volatile("990: nop\n" _SDT_ASM_BODY_NOTE(memory) ::"m"(node->number), "m"(node->flag), "m"(node->next->number),
			 "m"(node->numbers[index]), "m"(global), "m"(global_bytes[4]));
	TELL("memory %d %d %d %ld %d %d\n", node->number, node->flag, node->next->number, node->numbers[index], global,
	     global_bytes[4]);
}
C
# One operand of each form, whatever the compiler would choose.
python3 -I -S - <<'P'
body = open("work.c").read()
note = ('".pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n.4byte 992f-991f,994f-993f,3\\n"'
	' "991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b,_.stapsdt.base,work_memory_semaphore\\n"'
	' ".asciz \\"work\\"\\n.asciz \\"memory\\"\\n.asciz \\"-4@%0 1@%1 -4@%2 -8@%3 -4@%4 1@%5\\"\\n994: .balign 4\\n.popsection"')
open("work.c", "w").write(body.replace("_SDT_ASM_BODY_NOTE(memory)", note))
P
cat >>work.c <<'C'

/* A leaf that keeps its words below the stack pointer. */
NOIPA long leaf(long a, long b)
{
	volatile long kept[14];
	for (int i = 0; i < 14; i++)
		kept[i] = a * i + b;
	DTRACE_PROBE3(work, leaf, kept[13], a, kept[0]);
	long sum = 0;
	for (int i = 0; i < 14; i++)
		sum += kept[i] * (i + 1);
	TELL("leaf %ld %ld %ld\n", a * 13 + b, a, b);
	return sum;
}

static inline __attribute__((always_inline)) double spread(double x, int n)
{
	double sum = x;
	for (int i = 0; i < n; i++) {
		DTRACE_PROBE2(work, spread, i, n);
		TELL("spread %d %d\n", i, n);
		sum = sum * 1.0625 + i;
	}
	return sum;
}

NOIPA long turns(long n)
{
	long sum = 1;
	for (long i = 0; i < n; i++) {
		DTRACE_PROBE2(work, turn, i, sum);
		sum = sum * 3 + (i > 5);
	}
	return sum;
}

NOIPA void many(int a)
{
	DTRACE_PROBE8(work, many, a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7);
	TELL("many %d %d %d %d %d %d\n", a, a + 1, a + 2, a + 3, a + 4, a + 5);
}

NOIPA void none(void)
{
	DTRACE_PROBE(work, none);
	TELL("none\n");
}

static void *run(void *arg)
{
	for (int i = 0; i < 20000; i++)
		DTRACE_PROBE1(work, busy, i);
	return arg;
}

int main(int argc, char **argv)
{
	struct node nodes[2] = {{-3, 200, &nodes[1], {10, -20, 30, -40}}, {77, 1, NULL, {0}}};
	long seen = 0, rounds = argc > 1 ? atol(argv[1]) : 0;
	pthread_t threads[3];
	notes = fopen("notes", "w");
	sizes(-1, 255, -30000, 60000, -2000000000, 4000000000u);
	sizes(1, 0, 2, 3, 4, 5);
	wide(-1, ~0ul, nodes);
	wide(1l << 62, 1, NULL);
	for (long i = 0; i < 4; i++)
		memory(nodes, i);
	long sum = leaf(3, 5) + leaf(-3, 7);
	double a = spread(1.5, 3), b = spread(a, 5), c = spread(b * a, 2);
	many(40);
	none();
	/* As programs do for probes whose arguments cost something. */
	for (int i = 0; i < 1000; i++)
		if (work_guarded_semaphore) {
			DTRACE_PROBE1(work, guarded, i);
			seen++;
		}
	sum += turns(50);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %.17g %.17g %.17g\n", sum, a, b, c);
	fclose(notes);
	FILE *out = fopen("semaphores", "w");
	fprintf(out, "seen %ld\n", seen);
	fflush(out);
	is_telling = false;
	/* Until the recording has ended, and given the semaphore back. */
	for (long i = 0; i < rounds && work_guarded_semaphore; i++)
		usleep(10000);
	fprintf(out, "left %d\n", work_guarded_semaphore);
	fclose(out);
	return 0;
}
C
gcc -O2 -o work work.c -pthread || fail "gcc"
./work >plain || fail "untraced"
is "$(cat semaphores | tr '\n' ' ')" "seen 0 left 0 "
mv notes plain_notes

# ---- the list ----
expect 0 "$tw" functions --probes ./work
shows '^sdt:work:sizes .*work 0x[0-9a-f]*, semaphore$'
shows '^[0-9]* probes at [0-9]* places'
expect 0 "$tw" functions --probes --json ./work
# As readelf has them.
readelf -n ./work | awk '/Provider:/ { p = $2 } /Name:/ { n = $2 } /Location:/ { l = strtonum($2) }
	/Arguments:/ { sub(/^ *Arguments: */, ""); sub(/ *$/, ""); print p ":" n " " l " " $0 }' 2>/dev/null | sort >expected
python3 -I -S -c 'import json; [print("%s:%s %d %s" % (p["provider"], p["name"], p["address"], p["arguments"])) for p in
	json.load(open("out"))["probes"] if p["module"] == "work"]' | sort >listed
if command -v gawk >/dev/null; then cmp expected listed || fail "$(diff expected listed)"; fi
is "$(json 'all("semaphore" in p for p in d["probes"])')" True
expect 2 "$tw" functions --probes --local ./work

# ---- what is recorded ----
# values NAME.tw: a line for each call of the probes, as the program writes them.
values() {
	expect 0 "$tw" print --format json "$1"
	python3 -I -S -c '
import json
for line in open("out"):
    event = json.loads(line)
    if event["kind"] == "call" and event["module"] == "sdt":
        args = [str(a) for a in event.get("args", []) if isinstance(a, int)]
        print(" ".join([event["function"].split(":")[1]] + args))'
}
expect 0 "$tw" record -q -o w.tw -t 'sdt:work:_' -- ./work
cmp -s plain out || fail "the answers differ: $(cat out)"
is "$(cat semaphores | tr '\n' ' ')" "seen 1000 left 1 "
# Pointers are the same only in the same run.
values w.tw >all
grep -v -E '^(guarded|turn|busy) ' all >got
cmp -s notes got || fail "$(diff notes got | head)"
is "$(grep -c '^guarded ' all) $(grep -c '^turn ' all) $(grep -c '^busy ' all)" "1000 50 60000"
is "$(grep '^guarded ' all | awk '{ s += $2 } END { print s }')" 499500
python3 -I -S -c '
sum = 1
for i in range(50):
    print("turn", i, sum)
    sum = (sum * 3 + (i > 5)) % 2**64
    sum -= 2**64 if sum >= 2**63 else 0' >expected
grep '^turn ' all | cmp -s expected - || fail "$(grep '^turn ' all | diff expected - | head -4)"
# Control.
sed 's/^leaf 44 /leaf 45 /' notes | cmp -s - got && fail "a value that differs is not noticed"
expect 0 "$tw" info w.tw
shows '^lost *nothing'
# The same, with every function and their returns beside them, whose entries are planted as well, and with the rest of each window unusable.
TRACEWHEEL_ENTRY_TRAPS=1 expect 0 "$tw" record -q --returns -o f.tw -t 'sdt:work:_' -t 'work:_' -- ./work
cmp -s plain out || fail "with functions, the answers differ: $(cat out)"
values f.tw >all
grep -v -E '^(guarded|turn|busy) ' all >got
# A probe among the first instructions of its function gives way to the function's jump, and is told of.
names=$(cut -d ' ' -f 1 got | sort -u | tr '\n' '|')
grep -E "^(${names%|})( |\$)" notes | cmp -s - got || fail "with functions: $(diff notes got | head)"
for name in leaf memory spread; do
	grep -q "^$name " got || fail "with functions there is no $name"
done
expect 0 "$tw" functions --probes ./work
sed -n "s/^sdt:work:\\([a-z]*\\) .*unless its function's entry is traced.*/\\1/p" out | sort -u >shared
is "$(cut -d ' ' -f 1 got | sort -u | sort - shared | uniq -d | wc -l)" 0
[ -s shared ] || fail "no probe lies in its function's entry"
expect 0 "$tw" info f.tw
shows 'the first instructions of their functions, which are traced, are the same ones'

# ---- what selects probes, and what does not ----
expect 0 "$tw" record -q -o n.tw -t '_:turns' -t 'work:_' -- ./work
is "$(values n.tw | wc -l)" 0
is "$(cat semaphores | tr '\n' ' ')" "seen 0 left 0 "
expect 0 "$tw" record -q -o e.tw -t 'sdt:_' -N 'sdt:work:{busy,turn,guarded}' -- ./work
values e.tw >got
cmp -s notes got || fail "without some: $(diff notes got | head)"
is "$(head -n 1 semaphores)" "seen 0"
expect 0 "$tw" record -q -o a.tw -t 'sdt:work:turn/2' -- ./work
is "$(values a.tw | wc -l)" 50
expect 2 "$tw" record -o x.tw -t 'sdt:work:turn/3' -- ./work
says "have no such probe 'work:turn'"
expect 2 "$tw" record -o x.tw -t 'sdt:work:trun' -- ./work
says "did you mean 'sdt:work:turn'"
expect 2 "$tw" record -o x.tw --global -t 'sdt:work:turn' -- ./work
says "which --global leaves as it is"
expect 2 "$tw" record -o x.tw -t 'sdt:work:turn if size > 3' -- ./work
says "the arguments of probes are called arg1"

# ---- conditions, counts, views ----
expect 0 "$tw" record -q -o c.tw -t 'sdt:work:turn if arg1 > 45' -t 'sdt:work:sizes if $1 < 0' -- ./work
is "$(values c.tw | cut -d ' ' -f 1-2 | tr '\n' ' ')" "sizes -1 turn 46 turn 47 turn 48 turn 49 "
expect 0 "$tw" record -q -o k.tw --count 'sdt:work:busy' -- ./work
expect 0 "$tw" report --json k.tw
is "$(json 'd["counted_calls"]')" 60000
expect 0 "$tw" record -q -o g.tw --sum '$1' -t 'sdt:work:turn' -- ./work
expect 0 "$tw" report --json g.tw
is "$(json 'd["events"], d["counted_calls"]')" "0 50"
expect 0 "$tw" report g.tw
shows '^ *50 *1,225 .*sdt:work:turn'
expect 0 "$tw" report --by arg:2 -t 'sdt:work:spread' w.tw
shows '^ *5  *50.0 %.*\$2 = 5'
expect 0 "$tw" print --tree -t 'sdt:work:leaf' w.tw
shows 'sdt:work:leaf(arg1 = 44, arg2 = 3, arg3 = 5)'

# ---- prototypes give names and strings ----
cat >text.c <<'C'
#include <sys/sdt.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		DTRACE_PROBE2(text, word, argv[i], i);
	return 0;
}
C
gcc -O2 -o text text.c || fail "gcc"
expect 0 "$tw" record -q -o v.tw --args='sdt:text:word(str word, int number)' -t 'sdt:text:word' -- ./text one "two three"
expect 0 "$tw" print v.tw
shows 'call sdt:text:word/2 (word = "two three", number = 2)$'
expect 0 "$tw" record -q -o v2.tw -t 'sdt:text:word if arg2 == 1' -- ./text one two
is "$(values v2.tw | wc -l)" 1

# ---- a program that runs: the jumps and the semaphores are taken back ----
cat >serves.c <<'C'
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__extension__ volatile unsigned short serves_turn_semaphore __attribute__((section(".probes")));
static _Atomic long seen, turns;
static void *run(void *arg)
{
	while (access("stop", F_OK)) {
		turns++;
		if (serves_turn_semaphore) {
			DTRACE_PROBE2(serves, turn, turns, arg);
			seen++;
		}
		usleep(500);
	}
	return arg;
}
int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, run, NULL);
	pthread_create(&threads[1], NULL, run, threads);
	FILE *out = fopen("served", "w");
	fprintf(out, "ready\n");
	fflush(out);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	fprintf(out, "%ld %d\n", seen, serves_turn_semaphore);
	fclose(out);
	return 0;
}
C
gcc -O2 -o serves serves.c -pthread || fail "gcc"
./serves &
pid=$!
timeout 60 sh -c 'until grep -q ready served 2>/dev/null; do sleep 0.05; done'
expect 0 "$tw" functions --probes -p "$pid" -t 'sdt:serves:_'
shows '^sdt:serves:turn '
expect 2 "$tw" functions -p "$pid"
expect 2 "$tw" functions --probes -p nobody
sleep 0.3
expect 0 "$tw" attach -q -o s.tw -t 'sdt:serves:turn' --events 200 "$pid"
recorded=$(values s.tw | wc -l)
# Between the last event and the end, the program may come to it a few times more.
sleep 0.3
expect 0 "$tw" attach -q -o s2.tw -t 'sdt:serves:turn' --time 0.5s "$pid"
again=$(values s2.tw | wc -l)
sleep 0.3
touch stop
wait "$pid" || fail "the program that was attached to: $?"
served=$(tail -n 1 served)
is "${served#* }" 0 "the semaphore"
[ "$recorded" -ge 200 ] && [ "$again" -gt 20 ] || fail "$recorded and $again events"
[ "${served% *}" -ge $((recorded + again)) ] && [ "${served% *}" -le $((recorded + again + 200)) ] ||
	fail "the program came ${served% *} times to its probe: $recorded and $again were recorded"

# ---- a library that is opened, closed and opened again, and a child ----
cat >late.c <<'C'
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
__extension__ volatile unsigned short late_hit_semaphore __attribute__((section(".probes")));
__attribute__((noipa)) static void note(int i)
{
	__asm__ volatile("" ::"r"(i));
	DTRACE_PROBE1(late, hit, i);
	__asm__ volatile("lea 0(%%rax), %%rax\nlea 0(%%rax), %%rax" ::);
}
int hit(int n)
{
	int seen = 0;
	for (int i = 0; i < n; i++)
		if (late_hit_semaphore) {
			note(i);
			seen++;
		}
	return seen;
}
C
cat >opens.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int call(int n)
{
	void *library = dlopen("./liblate.so", RTLD_NOW);
	int (*hit)(int) = (int (*)(int))dlsym(library, "hit");
	int seen = hit(n);
	dlclose(library);
	return seen;
}
int main(void)
{
	long seen = 0;
	int status;
	for (int i = 0; i < 40; i++)
		seen += call(10);
	if (!fork())
		_exit(call(5));
	wait(&status);
	printf("%ld %d\n", seen, WEXITSTATUS(status));
	return 0;
}
C
gcc -O2 -shared -fPIC -o liblate.so late.c && gcc -O2 -o opens opens.c || fail "gcc"
is "$(./opens)" "0 0"
expect 0 "$tw" record -q --follow-fork -o l.tw -t 'sdt:late:hit' -- ./opens
is "$(cat out)" "400 5"
is "$(values l.tw | wc -l)" 405

# ---- C++: exceptions pass frames with probes ----
cat >throws.cc <<'C'
#include <sys/sdt.h>
#include <cstdio>
#include <stdexcept>
static int cleaned, probed;
struct guard { ~guard() { cleaned++; } };
__attribute__((noipa)) static void thrower(int n) { if (n % 3) throw std::runtime_error("n"); }
__attribute__((noipa)) static int passes(int n)
{
	guard a;
	DTRACE_PROBE1(throws, before, n);
	probed++;
	thrower(n);
	DTRACE_PROBE1(throws, after, n);
	return n;
}
int main()
{
	int caught = 0, sum = 0;
	for (int i = 0; i < 3000; i++) {
		try {
			sum += passes(i);
		} catch (const std::runtime_error &e) {
			caught++;
		}
	}
	printf("%d %d %d %d\n", caught, sum, cleaned, probed);
	return 0;
}
C
g++ -O2 -o throws throws.cc || fail "g++"
expect 0 ./throws
mv out plain_throws
expect 0 "$tw" record -q -o t.tw -t 'sdt:{throws,libstdcxx}:_' -- ./throws
cmp -s plain_throws out || fail "the answers differ: $(cat out)"
calls t.tw >/dev/null 2>&1
expect 0 "$tw" report --json -n 0 t.tw
is "$(json '{f["function"]: f["calls"] for f in d["by_function"]} == {"throws:before": 3000, "throws:after": 1000, "libstdcxx:throw": 2000, "libstdcxx:catch": 2000}')" True

# ---- a stack that overflows at a probe: the program's handler finds its own code there ----
cat >deep.c <<'C'
#define _GNU_SOURCE
#include <sys/sdt.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
static sigjmp_buf back;
static volatile int own, other;
__attribute__((noipa)) static long recurse(long n)
{
	volatile char block[72];
	block[n & 63] = (char)n;
	DTRACE_PROBE2(deep, down, n, block);
	return recurse(n + 1) + block[3] + block[n & 63];
}
static void handle(int number, siginfo_t *info, void *context)
{
	Dl_info found;
	void *pc = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (dladdr(pc, &found) && strstr(found.dli_fname, "deep"))
		own++;
	else
		other++;
	siglongjmp(back, 1);
}
static void *run(void *arg)
{
	static __thread char alternative[65536];
	stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
	sigaltstack(&stack, NULL);
	/* Each time the stack ends at another instruction. */
	for (int i = 0; i < 300; i++)
		if (!sigsetjmp(back, 1)) {
			char pad[i * 16 + 1];
			memset(pad, 0, sizeof pad);
			__asm__ volatile("" ::"r"(pad) : "memory");
			recurse(0);
		}
	return arg;
}
int main(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	pthread_attr_t small;
	pthread_t thread;
	sigaction(SIGSEGV, &action, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 * 1024);
	pthread_create(&thread, &small, run, NULL);
	pthread_join(thread, NULL);
	printf("%d %d\n", own, other);
	return 0;
}
C
gcc -O2 -Wno-infinite-recursion -o deep deep.c -pthread || fail "gcc"
is "$(./deep)" "300 0"
expect 0 "$tw" record -q -o d.tw -t 'sdt:deep:down' -- ./deep
is "$(cat out)" "300 0"
[ "$(values d.tw | wc -l)" -gt 30000 ] || fail "few calls before the overflow"

# ---- jumps that are written and taken back while threads run through the place ----
cat >hot.c <<'C'
#include <sys/sdt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long rounds;
__attribute__((noipa)) static unsigned long work(unsigned long seed)
{
	volatile unsigned long below[12];
	unsigned long x = seed;
	double d = 1.0;
	for (int i = 0; i < 12; i++)
		below[i] = i * seed;
	for (long i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		DTRACE_PROBE3(hot, turn, i, x, below[i % 12]);
		d = d * 1.0000001 + (x & 7);
		below[x % 12] += x >> 3;
	}
	x += (unsigned long)d;
	for (int i = 0; i < 12; i++)
		x = x * 31 + below[i];
	return x;
}
static void *run(void *seed)
{
	return (void *)work((unsigned long)seed);
}
int main(int argc, char **argv)
{
	pthread_t threads[3];
	unsigned long sum = 0;
	rounds = atol(argv[1]);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, (void *)(i + 12345));
	for (int i = 0; i < 3; i++) {
		void *result;
		pthread_join(threads[i], &result);
		sum = sum * 7 + (unsigned long)result;
	}
	printf("%lu\n", sum);
	return 0;
}
C
gcc -O2 -o hot hot.c -pthread || fail "gcc"
./hot 150000000 >expected
./hot 150000000 >got &
pid=$!
attached=0
while kill -0 "$pid" 2>/dev/null; do
	"$tw" attach -q -o "h$attached.tw" --count 'sdt:hot:turn' --time 50ms "$pid" >out 2>err && attached=$((attached + 1))
done
wait "$pid" || fail "the program ended with $?"
[ "$attached" -gt 0 ] || fail "it was never attached to"
cmp -s expected got || fail "attached $attached times, it answers $(cat got)"

# ---- python's own, beside gdb's breakpoints on the same probes ----
python=$(realpath "$(command -v python3)")
if readelf -n "$python" 2>/dev/null | grep -q 'Provider: python' && command -v gdb >/dev/null; then
	echo 'import gc
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
print(f(12))
for i in range(3):
    gc.collect()' >work.py
	# As often in each run.
	export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
	names="function__entry function__return gc__start gc__done import__find__load__start"
	{
		echo 'set pagination off'
		echo 'set confirm off'
		number=0
		for name in $names; do
			number=$((number + 1))
			echo "break -probe-stap python:$name"
			echo "ignore $number 100000000"
		done
		echo 'run -S work.py'
		echo 'info breakpoints'
	} >count.gdb
	# What Python does for its output depends on what that is.
	gdb -batch -nx -x count.gdb "$python" 2>&1 </dev/null | cat >gdb.out
	awk '/-probe-stap/ { name = $NF; sub(/python:/, "", name) } /already hit/ { print name, $4 }' gdb.out | sort >expected
	"$tw" record -q -o p.tw -t "sdt:python:{${names// /,}}" -- "$python" -S work.py 2>err </dev/null | cat >out
	expect 0 "$tw" report --json -n 0 p.tw
	python3 -I -S -c 'import json; [print(f["function"].split(":")[1], f["calls"]) for f in json.load(open("out"))["by_function"]]' |
		sort >got
	[ -s expected ] || fail "gdb counted nothing: $(tail -5 gdb.out)"
	cmp -s expected got || fail "$(diff expected got)"
fi
echo "probes: as the program wrote them"
