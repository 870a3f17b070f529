#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --locks` and `report --locks` show for an unmodified program which thread held which lock while which
#         other one waited, and for how long; locks have the names of their variables, or of the code that created them.
# Method  A program with known waits: the holder gives up a lock only after it has seen the waiter asleep in the kernel,
#         so each wait lasts at least from then on, and at most as long as the waiter measures around its call. The same
#         with std::mutex.
build=$1
. "$(dirname "$0")/lib.sh"
cat >contend.c <<'EOT'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 10
pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER, quiet_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t *made;
static int ready[2], done[2], waiter_id, reached = -1;
static volatile int has_news;
static double outer[3], inner[3];

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Until the waiter has come so far and sleeps: there is nothing but the lock that it could sleep in. */
static void see_it_sleep(int step)
{
	char path[80], text[300];
	for (;;) {
		usleep(200);
		if (__atomic_load_n(&reached, __ATOMIC_SEQ_CST) != step)
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter_id);
		FILE *file = fopen(path, "r");
		if (!file || !fgets(text, sizeof text, file))
			exit(3);
		fclose(file);
		if (strstr(text, ") S "))
			return;
	}
}

static void unlock(int i)
{
	if (i % 3 == 0)
		pthread_mutex_unlock(&account_lock);
	else if (i % 3 == 1)
		pthread_rwlock_unlock(&table_lock);
	else
		pthread_mutex_unlock(made);
}

static void *wait_for_all(void *unused)
{
	char c;
	waiter_id = (int)syscall(SYS_gettid);
	for (int i = 0; i < 3 * ROUNDS; i++) {
		if (read(ready[0], &c, 1) != 1)
			exit(1);
		double begin = now();
		__atomic_store_n(&reached, i, __ATOMIC_SEQ_CST);
		if (i % 3 == 0)
			pthread_mutex_lock(&account_lock);
		else if (i % 3 == 1)
			pthread_rwlock_rdlock(&table_lock);
		else
			pthread_mutex_lock(made);
		outer[i % 3] += now() - begin;
		unlock(i);
		if (write(done[1], &c, 1) != 1)
			exit(1);
	}
	__atomic_store_n(&reached, 3 * ROUNDS, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&quiet_lock);
	while (!has_news)
		pthread_cond_wait(&news, &quiet_lock);
	pthread_mutex_unlock(&quiet_lock);
	return NULL;
}

int main(void)
{
	pthread_t waiter;
	char c = 0;
	made = malloc(sizeof *made);
	pthread_mutex_init(made, NULL);
	if (pipe(ready) || pipe(done) || pthread_create(&waiter, NULL, wait_for_all, NULL))
		return 1;
	for (int i = 0; i < 3 * ROUNDS; i++) {
		if (i % 3 == 0)
			pthread_mutex_lock(&account_lock);
		else if (i % 3 == 1)
			pthread_rwlock_wrlock(&table_lock);
		else
			pthread_mutex_lock(made);
		if (write(ready[1], &c, 1) != 1)
			return 1;
		see_it_sleep(i);
		double seen = now();
		usleep(2000);
		inner[i % 3] += now() - seen;
		unlock(i);
		if (read(done[0], &c, 1) != 1)
			return 1;
	}
	see_it_sleep(3 * ROUNDS);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&quiet_lock);
		has_news = i == 999;
		if (has_news)
			pthread_cond_signal(&news);
		pthread_mutex_unlock(&quiet_lock);
	}
	pthread_join(waiter, NULL);
	printf("%d %d %.9f %.9f %.9f %.9f %.9f %.9f\n", getpid(), waiter_id, inner[0], outer[0], inner[1], outer[1], inner[2], outer[2]);
	return 0;
}
EOT
${CC:-cc} -O2 -g -pthread contend.c -o contend || fail "no program"
expect 0 "$tw" record -q --locks --on-full block -o contend.tw -- ./contend
mv out truth
expect 0 "$tw" report --locks --json contend.tw
python3 - <<'EOT' || fail "not the program's own numbers"
import json
d = json.load(open("out"))
holder, waiter, *bounds = open("truth").read().split()
holder, waiter, bounds = int(holder), int(waiter), list(map(float, bounds))
# The loader's own locks are taken through libc as well, when threads are made and end.
locks = {l["symbol"] or "made": l for l in d["locks"] if not (l["symbol"] or "").startswith("ld-linux")}
assert set(locks) == {"contend:account_lock", "contend:table_lock", "contend:quiet_lock", "made"}, set(locks)
assert locks["made"]["made_in"].startswith("contend:main contend.c:"), locks["made"]
for i, name in enumerate(("contend:account_lock", "contend:table_lock", "made")):
    lock = locks[name]
    assert lock["kind"] == ("rwlock" if i == 1 else "mutex"), lock
    assert (lock["waits"], lock["taken"]) == (10, 20), lock
    pair, = lock["pairs"]
    assert (pair["waiter"], pair["holder"], pair["times"]) == (waiter, holder, 10), lock
    assert bounds[2 * i] <= pair["waited"] <= lock["waited"] <= bounds[2 * i + 1], (lock, bounds)
    assert lock["held"] >= bounds[2 * i] and lock["longest_wait"] >= bounds[2 * i] / 10, lock
quiet = locks["contend:quiet_lock"]
# The waiter takes it, and takes it again when it was signalled.
assert quiet["taken"] == 1002, quiet
news, = d["conditions"]
assert news["symbol"] == "contend:news" and news["signals"] == 1 and 1 <= news["waits"], news
assert any(p["waiter"] == waiter and p["signaller"] == holder for p in news["pairs"]), news
assert d["lock_gaps"] == {"gaps": 0, "lost": 0, "overwritten": 0, "dropped": 0, "wordless": 0}, d["lock_gaps"]
EOT
expect 0 env COLUMNS=80 "$tw" report --locks contend.tw
shows 'locks: [4-9] were used, [34] waited for'
shows 'mutex contend:account_lock'
shows 'made in contend:main contend.c:'
awk 'length > 80 { exit 1 }' out || fail "more than 80 columns"

cat >standard.cc <<'EOT'
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
struct bank { std::mutex lock; std::shared_mutex table; } the_bank;
int main()
{
	for (int i = 0; i < 5; i++) {
		the_bank.lock.lock();
		std::thread other([] { std::lock_guard<std::mutex> guard(the_bank.lock); std::shared_lock<std::shared_mutex> reads(the_bank.table); });
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		the_bank.lock.unlock();
		other.join();
	}
}
EOT
if ${CXX:-c++} -O2 -std=c++17 -pthread standard.cc -o standard 2>/dev/null; then
	expect 0 "$tw" record -q --locks -o standard.tw -- ./standard
	expect 0 "$tw" report --locks --json standard.tw
	is "$(json '[(l["symbol"], l["kind"], l["taken"]) for l in sorted(d["locks"], key=lambda l: -l["taken"]) if "the_bank" in l["symbol"]]')" \
		"[('standard:the_bank', 'mutex', 10), ('standard:the_bank+40', 'rwlock', 5)]"
fi

# The report says that a capture holds no calls of locks.
expect 0 "$tw" record -q -o none.tw -t libc:malloc -- ls /
expect 0 "$tw" report --locks none.tw
shows 'No calls of locks were recorded'
expect 0 "$tw" record -q -t 'libc:pthread_mutex_*' -o words.tw -- ./contend
expect 0 "$tw" report --locks words.tw
shows 'have no arguments or results'
# A program that uses one kind of lock, or none, is recorded as well.
echo '#include <pthread.h>
int main(void) { pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; return pthread_mutex_lock(&lock) || pthread_mutex_unlock(&lock); }' >one.c
${CC:-cc} -O2 -pthread one.c -o one || fail "no program"
expect 0 "$tw" record -q --locks -o one.tw -- ./one
expect 0 "$tw" report --locks --json one.tw
is "$(json '[(l["taken"], l["waits"]) for l in d["locks"] if "rtld" not in l["symbol"]]')" "[(1, 0)]"
expect 0 "$tw" record -q --locks -o true.tw -- true
exit 0
