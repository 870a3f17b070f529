#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Libraries are loaded and unloaded under traced threads, others at the same addresses, and the same ones again, by
#         two threads at once: every call of theirs is recorded, and no end of a call is reported for another function.
# Method  Threads call functions of two shelves of libraries, with frames of the program open all the while; the calls
#         return, throw, are thrown through, or are left by longjmp. Two more threads take a library out of its shelf,
#         close it and put another one there after each 30 calls. Each function returns its own name, and each thread
#         counts its calls.
build=$1
. "$(dirname "$0")/lib.sh"
rounds=${2:-$(rounds 40 60)} local=
seed=${3:-1}

cat >lib.cc <<'C'
/* Built once for each LIB, with PAD bytes of code between functions and the functions in another ORDER. */
#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(what) JOIN(lib, LIB, what)
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define PAD_CODE __asm__(".text\n.skip " STRING(PAD) ", 0xcc\n");
#define SIGN(n, function) ((n) << 8 | LIB << 4 | (function))
struct host_error { long n; };
extern "C" {
long host_back(long n, int how);
#define PLAIN __attribute__((noipa)) long NAME(plain)(long n) { return SIGN(n, 1); }
#define DEEP __attribute__((noipa)) long NAME(deep)(long n) { long m = n; __asm__ volatile("" : "+r"(m)); if (m > 0) { m = NAME(deep)(m - 1) + 256; __asm__ volatile("" : "+r"(m)); return m; } return n > 0 ? 0 : SIGN(n, 2); }
#define BACK __attribute__((noipa)) long NAME(back)(long n, int how) { return SIGN(host_back(n, how) >> 8, 3); }
#define THROWS __attribute__((noipa)) long NAME(throws)(long n) { if (n & 1) throw host_error{n}; return SIGN(n, 4); }
long NAME(deep)(long n);
#if ORDER == 0
PAD_CODE PLAIN PAD_CODE DEEP PAD_CODE BACK PAD_CODE THROWS
#elif ORDER == 1
PAD_CODE THROWS PAD_CODE BACK PAD_CODE DEEP PAD_CODE PLAIN
#else
PAD_CODE BACK PAD_CODE PLAIN PAD_CODE THROWS PAD_CODE DEEP
#endif
}
C
cat >host.cc <<'C'
/*
 * Threads call whatever library lies in a shelf, while others take it out and put another one in its place.
 *	host ROUNDS SEED LIBRARY...
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <setjmp.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct host_error { long n; };
enum { WORKERS = 3, SHELVES = 2, CALLS = 30 };
struct shelf {
	pthread_rwlock_t lock;
	void *handle;
	long number; /* of the library */
	std::atomic<long> left; /* calls before it goes */
	long (*plain)(long), (*deep)(long), (*back)(long, int), (*throws)(long);
};
static shelf shelves[SHELVES];
static std::atomic<bool> must_end;
static thread_local jmp_buf *away;
static long rounds;
static char **names;
static int name_count;
static std::atomic<long> calls[16][16], wrong, reused;
static thread_local unsigned long chance;

static unsigned long any() { chance = chance * 6364136223846793005u + 1442695040888963407u; return chance >> 33; }
static void expect(long got, long wanted) { if (got != wanted) wrong++; }

extern "C" {
__attribute__((noipa, visibility("default"))) long host_back(long n, int how)
{
	if (how == 1)
		throw host_error{n};
	if (how == 2)
		longjmp(*away, 1);
	return n << 8 | 0xf1;
}
/* Calls the library of a shelf; what it calls may come back, or not. */
__attribute__((noipa)) long host_use(shelf *s, long n)
{
	long number;
	pthread_rwlock_rdlock(&s->lock);
	number = s->number;
	if (!s->handle || s->left-- <= 0) {
		pthread_rwlock_unlock(&s->lock);
		return n << 8 | 0xf2;
	}
	switch (any() % 6) {
	case 0: calls[number][1]++; expect(s->plain(n), n << 8 | number << 4 | 1); break;
	case 1: calls[number][2] += 4; expect(s->deep(3), 3 << 8 | number << 4 | 2); break;
	case 2: calls[number][3]++; expect(s->back(n, 0), n << 8 | number << 4 | 3); break;
	case 3:
		calls[number][3]++;
		try { s->back(n, 1); wrong++; } catch (host_error &e) { expect(e.n, n); }
		break;
	case 4: {
		jmp_buf here;
		away = &here;
		calls[number][3]++;
		if (!setjmp(here)) { s->back(n, 2); wrong++; }
		break;
	}
	default:
		calls[number][4]++;
		try { expect(s->throws(n), n << 8 | number << 4 | 4); if (n & 1) wrong++; } catch (host_error &e) { expect(e.n, n); }
	}
	pthread_rwlock_unlock(&s->lock);
	return n << 8 | 0xf2;
}
/* Stays open while libraries come and go. */
__attribute__((noipa)) long host_stay(long n)
{
	for (unsigned long left = any() % 40; left--;)
		expect(host_use(&shelves[any() % SHELVES], n), n << 8 | 0xf2);
	return n << 8 | 0xf3;
}
}

static void *work(void *arg)
{
	chance = (unsigned long)arg;
	while (!must_end) {
		long n = (long)(any() % 1000);
		expect(host_stay(n), n << 8 | 0xf3);
		usleep(20);
	}
	return nullptr;
}

template <class F> static void find(void *handle, long number, const char *what, F &out)
{
	char name[32];
	snprintf(name, sizeof name, "lib%ld_%s", number, what);
	out = (F)dlsym(handle, name);
	if (!out)
		abort();
}

static void *exchange(void *arg)
{
	shelf *s = (shelf *)arg;
	unsigned long seen[64], seen_count = 0;
	chance = (unsigned long)s;
	for (long round = 0; round < rounds; round++) {
		int which = (int)(any() % (unsigned long)name_count);
		pthread_rwlock_wrlock(&s->lock);
		void *old = s->handle;
		s->handle = nullptr;
		pthread_rwlock_unlock(&s->lock);
		if (old)
			dlclose(old);
		void *handle = dlopen(names[which], RTLD_NOW | RTLD_LOCAL);
		if (!handle) {
			fprintf(stderr, "%s\n", dlerror());
			abort();
		}
		unsigned long address = ((link_map *)handle)->l_addr, i = 0;
		while (i < seen_count && seen[i] != address)
			i++;
		reused += i < seen_count;
		if (i == seen_count && seen_count < 64)
			seen[seen_count++] = address;
		pthread_rwlock_wrlock(&s->lock);
		s->number = strstr(names[which], "lib")[3] - '0';
		find(handle, s->number, "plain", s->plain);
		find(handle, s->number, "deep", s->deep);
		find(handle, s->number, "back", s->back);
		find(handle, s->number, "throws", s->throws);
		s->left = CALLS;
		s->handle = handle;
		pthread_rwlock_unlock(&s->lock);
		while (s->left > 0)
			usleep(20);
	}
	return nullptr;
}

int main(int argc, char **argv)
{
	pthread_t workers[WORKERS], others[SHELVES];
	rounds = atol(argv[1]);
	names = argv + 3;
	name_count = argc - 3;
	for (long i = 0; i < SHELVES; i++) {
		pthread_rwlockattr_t attr;
		pthread_rwlockattr_init(&attr);
		pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		pthread_rwlock_init(&shelves[i].lock, &attr);
		pthread_create(&others[i], nullptr, exchange, &shelves[i]);
	}
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], nullptr, work, (void *)(atol(argv[2]) * 16 + i));
	for (int i = 0; i < SHELVES; i++)
		pthread_join(others[i], nullptr);
	must_end = true;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], nullptr);
	for (int lib = 0; lib < 16; lib++)
		for (int f = 0; f < 16; f++)
			if (calls[lib][f])
				printf("called %d %d %ld\n", lib, f, calls[lib][f].load());
	printf("wrong 0 0 %ld\nreused 0 0 %ld\n", wrong.load(), reused.load());
	return wrong != 0;
}
C
cat >check.py <<'P'
import collections, json, sys
mode = sys.argv[1]
names = {1: "plain", 2: "deep", 3: "back", 4: "throws"}
own = {0xF1: "host:host_back", 0xF2: "host:host_use", 0xF3: "host:host_stay"}
wanted, calls, bad = collections.Counter(), collections.Counter(), []
for line in open("said"):
    word, lib, function, count = line.split()
    if word == "called" and mode != "slots":
        wanted[f"lib{lib}:lib{lib}_{names[int(function)]}"] += int(count)
    elif word == "called" and int(function) == 3:
        wanted["host:host_back"] += int(count)
stacks = collections.defaultdict(list)
for line in sys.stdin:
    event = json.loads(line)
    if event["kind"] not in ("call", "return_from", "exception_from"):
        continue
    name, stack = event["module"] + ":" + event["function"], stacks[event["pid"]]
    if event["kind"] == "call":
        calls[name] += name in wanted
        stack.append(name)
        continue
    if not stack or stack.pop() != name:
        bad.append("out of order: " + line)
    if event["kind"] == "return_from":
        value = event["values"][0]
        real = own.get(value & 255) or f"lib{value >> 4 & 15}:lib{value >> 4 & 15}_{names.get(value & 15)}"
        if real != name:
            bad.append(f"of {real}: " + line)
missing = {name: (calls[name], wanted[name]) for name in wanted if calls[name] != wanted[name]}
print("of other functions or out of order:", len(bad), bad[:3])
print("calls recorded, calls made:", missing)
sys.exit(1 if bad else 2 if missing else 0)
P

number=0
for order in $(rounds "0 1 2" "0 1 2 0 1"); do
	number=$((number + 1))
	g++ -O2 -w -fPIC -shared -fpatchable-function-entry=9 -DLIB=$number -DPAD=$((16 * number)) -DORDER=$order \
		-o lib$number.so lib.cc || fail "g++"
	# Then one store arms each sled, whatever other threads do.
	expect 0 "$tw" compact lib$number.so
done

# changing MODE LIBRARIES PATTERN...: expects all calls of the mode, each with its own end
changing() {
	local mode=$1 libraries=$2 got=0
	shift 2
	# shellcheck disable=SC2086
	"$tw" record --force -o host.tw ${local:+--local} "${@/#/-t}" --returns --exceptions --on-full block -- \
		./host "$rounds" "$seed" "$PWD"/$libraries >said 2>err || fail "$mode: another answer: $(tail -2 said)"
	[ "$(sed -n 's/^reused 0 0 //p' said)" -gt 0 ] || fail "no address was used again"
	expect 0 "$tw" info --json host.tw
	is "$(json 'sum(d["lost"].values())')" 0 "$mode"
	"$tw" print --format json host.tw | python3 check.py "$mode" >out || got=$?
	# If another thread was inside dlclose() for longer than threads wait, the capture says so.
	if [ $got = 2 ] && "$tw" info host.tw | grep -q 'another thread closed one were not traced'; then
		echo "a machine without time: $(cat out)"
	elif [ $got = 2 ] && [ "$local" ]; then
		# A thread stood in them each time, or the recorder had no processor for that; nothing else.
		"$tw" info host.tw >notes
		for library in $(grep -o "'lib[0-9]:" out | tr -d "':" | sort -u); do
			grep -qE "functions? of $library (is|are) not traced: (each time that all threads|several threads were running, and)" notes ||
				grep -q "of $library is not traced: its plan was not ready in time" notes ||
				fail "$mode: calls of $library are missing: $(cat out notes)"
		done
	elif [ $got != 0 ]; then
		fail "$mode: what was recorded is not what was called"
	fi
}

g++ -O2 -w -rdynamic -fpatchable-function-entry=9 -o host host.cc -pthread || fail "g++"
expect 0 "$tw" compact host
changing sleds 'lib?.so' 'lib[0-9]:_' 'host:host_*'
# The libraries' own slots, through which they call the program.
g++ -O2 -w -rdynamic -o host host.cc -pthread || fail "g++"
changing slots 'lib?.so' 'host:host_back'
# The same file, closed by one thread and opened by the other before the first has found out what was unloaded.
if (needs_strings); then
	rounds=$((4 * rounds))
	changing again lib1.so 'lib[0-9]:_'
fi
# Without sleds, at entries, which are planted while threads run, and not while one of them is inside dlclose().
rounds=20 local=1
for number in $(seq "$number"); do
	g++ -O2 -w -fPIC -shared -Wl,--build-id -DLIB=$number -DPAD=$((16 * number)) -DORDER=$((number % 3)) -o lib$number.so lib.cc ||
		fail "g++"
done
changing entries 'lib?.so' 'lib[0-9]:_'
