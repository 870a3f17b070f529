/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Committed records come out whole, once and in order, whatever the sizes, the wraps and the policy; refused ones
 *	are counted exactly and reported in the stream where they are missing.
 * Method	Rings of the smallest size in private memory.  Records carry a running number and a length derived from
 *	it.  One thread first, so that each refusal is predictable; then producer and consumer threads.  Seeds are
 *	printed; give one as TW_SEED to repeat a run.
 */
#include "base/clock.h"
#include "base/error.h"
#include "ringbuf/ringbuf.h"
#include "tests/common/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define KIND 3

struct numbered {
	struct tw_rb_record record;
	uint64_t number;
	uint64_t copies[];
};

static uint64_t seed;

static struct tw_rb_shared *make_ring(uint64_t data_bytes)
{
	struct tw_rb_shared *shared = aligned_alloc(TW_PAGE_BYTES, TW_PAGE_BYTES + data_bytes);

	memset(shared, 0, TW_PAGE_BYTES + data_bytes);
	tw_rb_shared_init(shared, 0, data_bytes);
	return shared;
}

static uint32_t bytes_of(uint64_t number)
{
	uint64_t s = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

	return 32 + (uint32_t)(random_word(&s) % 40) * TW_RB_ALIGN_BYTES;
}

static enum tw_rb_outcome put(struct tw_rb_producer *producer, uint64_t number)
{
	uint32_t bytes = bytes_of(number);
	struct numbered *n;
	enum tw_rb_outcome outcome = tw_rb_reserve(producer, bytes, number, (void **)&n);

	if (outcome != TW_RB_OK)
		return outcome;
	n->record.ticks = number;
	n->record.head = TW_RB_HEAD(KIND, 0, bytes, 0);
	n->number = number;
	for (uint32_t i = 0; i < (bytes - sizeof *n) / 8; i++)
		n->copies[i] = number;
	tw_rb_commit(producer, bytes);
	return TW_RB_OK;
}

/* The result: the number of records, and that a loss record before the next record reports every missing number. */
struct reading {
	uint64_t next;
	uint64_t records;
	uint64_t lost[TW_RB_CAUSES];
};

static void read_record(struct reading *reading, const uint8_t *at)
{
	const struct numbered *n = (const void *)at;
	uint32_t bytes = TW_RB_HEAD_BYTES(n->record.head);

	if (TW_RB_HEAD_KIND(n->record.head) == TW_RB_KIND_LOSS) {
		const struct tw_rb_loss_record *loss = (const void *)at;

		for (int cause = 0; cause < TW_RB_CAUSES; cause++)
			reading->lost[cause] += loss->lost[cause];
		assert_true(loss->first_ticks <= loss->record.ticks);
		assert_int_equal(loss->first_ticks, reading->next);
		reading->next += loss->lost[TW_RB_LOST_FULL] + loss->lost[TW_RB_LOST_TOO_BIG];
		assert_int_equal(loss->record.ticks, reading->next - 1);
		return;
	}
	assert_int_equal(n->number, reading->next);
	assert_int_equal(bytes, bytes_of(n->number));
	for (uint32_t i = 0; i < (bytes - sizeof *n) / 8; i++)
		assert_int_equal(n->copies[i], n->number);
	reading->next++;
	reading->records++;
}

/* Reads the committed records, in stretches of at most max_bytes; returns the bytes. */
static uint64_t drain(struct tw_rb_shared *shared, uint64_t *pos, size_t max_bytes, struct reading *reading)
{
	uint64_t total = 0;

	for (;;) {
		const uint8_t *at;
		uint64_t end;
		int64_t bytes = tw_rb_peek(shared, *pos, max_bytes, &at, &end);

		assert_true(bytes >= 0);
		for (int64_t i = 0; i < bytes; i += TW_RB_HEAD_BYTES(((const struct tw_rb_record *)(at + i))->head))
			read_record(reading, at + i);
		if (end == *pos)
			return total;
		total += (uint64_t)bytes;
		*pos = end;
		tw_rb_consume(shared, end);
	}
}

static void records_of_all_sizes_wrap(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	struct reading reading = {0};
	uint64_t pos = 0;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(put(&producer, i), TW_RB_OK);
		if (i % 37 == 0)
			drain(shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	}
	drain(shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	assert_int_equal(reading.records, 100000);
	assert_int_equal(producer.records, 100000);
	free(shared);
}

static void a_full_ring_drops_the_newest_and_reports_it(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	struct tw_rb_loss_record rest;
	struct reading reading = {0};
	uint64_t pos = 0, refused = 0, number = 0;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 700; i++)
			refused += put(&producer, number++) == TW_RB_FULL;
		drain(shared, &pos, TW_BLOCK_RAW_BYTES_MAX, &reading);
	}
	assert_true(refused > 1000);
	/* Refusals after the last record are not in the stream yet. */
	assert_true(tw_rb_unreported_loss(shared, reading.lost, &rest));
	assert_int_equal(rest.record.head, TW_RB_HEAD(TW_RB_KIND_LOSS, 0, sizeof rest, 0));
	assert_int_equal(reading.lost[TW_RB_LOST_FULL] + rest.lost[TW_RB_LOST_FULL], refused);
	assert_int_equal(reading.records + refused, number);
	assert_int_equal(rest.first_ticks, reading.next);
	free(shared);
}

static void too_big_and_nested_are_told_apart(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	struct reading reading = {0};
	uint64_t pos = 0;
	void *out;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	assert_int_equal(put(&producer, 0), TW_RB_OK);
	assert_int_equal(tw_rb_reserve(&producer, TW_RB_RECORD_BYTES_MAX + 16, 1, &out), TW_RB_TOO_BIG);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 1);
	assert_int_equal(put(&producer, 2), TW_RB_OK);
	drain(shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	assert_int_equal(reading.records, 2);
	assert_int_equal(reading.lost[TW_RB_LOST_TOO_BIG], 1);
	assert_int_equal(reading.lost[TW_RB_LOST_NESTED], 1);
	free(shared);
}

/* Until the ring is full: records whose size divides its own.  Returns the time of the one that is refused. */
static uint64_t fill_whole(struct tw_rb_producer *producer, uint64_t ticks)
{
	const uint32_t bytes = 128;
	struct tw_rb_record *record;

	for (; tw_rb_reserve(producer, bytes, ticks, (void **)&record) == TW_RB_OK; ticks++) {
		record->ticks = ticks;
		record->head = TW_RB_HEAD(KIND, 0, bytes, 0);
		tw_rb_commit(producer, bytes);
	}
	return ticks;
}

/* Refusals whose time is not taken are counted exactly, are few, and end where there may be space. */
static void a_full_ring_refuses_again(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	const struct tw_rb_loss_record *told;
	struct tw_rb_producer producer;
	struct tw_rb_loss_record loss;
	uint64_t pos, first, causes[TW_RB_CAUSES] = {0};
	const uint8_t *at;
	void *out;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	assert_false(tw_rb_refuse_again(&producer));
	assert_false(tw_rb_refuse_timed(&producer, 1));
	first = fill_whole(&producer, 1);
	for (unsigned i = 0; i < TW_RB_REFUSALS_UNTIMED; i++)
		assert_true(tw_rb_refuse_again(&producer));
	assert_false(tw_rb_refuse_again(&producer));
	assert_int_equal(tw_rb_reserve(&producer, 128, first + 1, &out), TW_RB_FULL);
	assert_true(tw_rb_refuse_again(&producer));
	/* The next one with its time is refused as quickly. */
	assert_true(tw_rb_refuse_timed(&producer, first + 3));
	/* RELAXED test: one thread. */
	assert_int_equal(tw_load_relaxed(&shared->lost_last_ticks), first + 3);
	assert_true(tw_rb_refuse_again(&producer));
	pos = tw_rb_committed(shared);
	tw_rb_consume(shared, pos);
	assert_false(tw_rb_refuse_again(&producer));
	assert_false(tw_rb_refuse_timed(&producer, first + 4));
	/* The loss lasts until this record. */
	assert_true(fill_whole(&producer, first + 9) > first + 9);
	assert_true(tw_rb_peek(shared, pos, TW_RB_RECORD_BYTES_MAX, &at, &pos) > 0);
	told = (const void *)at;
	assert_int_equal(TW_RB_HEAD_KIND(told->record.head), TW_RB_KIND_LOSS);
	assert_int_equal(told->lost[TW_RB_LOST_FULL], TW_RB_REFUSALS_UNTIMED + 5);
	assert_int_equal(told->first_ticks, first);
	assert_int_equal(told->record.ticks, first + 9);
	/* A thread ends after such refusals: they are not later. */
	assert_true(tw_rb_refuse_again(&producer));
	tw_rb_producer_fini(&producer);
	causes[TW_RB_LOST_FULL] = TW_RB_REFUSALS_UNTIMED + 5;
	assert_true(tw_rb_unreported_loss(shared, causes, &loss));
	assert_int_equal(loss.lost[TW_RB_LOST_FULL], 2);
	assert_true(loss.record.ticks > loss.first_ticks);
	free(shared);
}

static void a_reservation_without_commit_leaves_nothing(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	struct reading reading = {0};
	uint64_t pos = 0;
	void *out;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(tw_rb_reserve(&producer, 8192, i, &out), TW_RB_OK);
		memset(out, 0xff, 8192);
		assert_int_equal(put(&producer, i), TW_RB_OK);
		drain(shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	}
	assert_int_equal(reading.records, 5000);
	free(shared);
}

static void an_overwriting_ring_keeps_the_newest(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	uint8_t *copy = malloc(TW_RB_BYTES_MIN);
	uint64_t s = seed, number = 0;

	tw_rb_producer_init(&producer, shared, TW_RB_OVERWRITE);
	for (int round = 0; round < 300; round++) {
		uint64_t none[TW_RB_CAUSES] = {0};
		struct tw_rb_stretch copied;
		struct tw_rb_loss_record loss;
		struct reading reading = {0};
		int64_t bytes;

		for (uint64_t n = random_word(&s) % 500; n; n--)
			assert_int_equal(put(&producer, number++), TW_RB_OK);
		bytes = tw_rb_snapshot(shared, shared->data_bytes, copy, &copied);
		assert_true(bytes >= 0);
		if (tw_rb_unreported_loss(shared, none, &loss)) {
			/* The overwritten records end at the first one that is kept. */
			reading.next = loss.lost[TW_RB_LOST_FULL];
			assert_true(loss.first_ticks <= reading.next);
			assert_int_equal(loss.record.ticks, reading.next);
			assert_int_equal(copied.overwritten, reading.next);
		}
		for (int64_t i = 0; i < bytes; i += TW_RB_HEAD_BYTES(((struct tw_rb_record *)(copy + i))->head))
			read_record(&reading, copy + i);
		assert_int_equal(reading.next, number);
		assert_true(number < 2000 ||
			    copied.end_pos - copied.first_pos >= TW_RB_BYTES_MIN / TW_RB_CHUNKS * (TW_RB_CHUNKS - 2));
	}
	free(copy);
	free(shared);
}

/* ---- a producer that overtakes a snapshot ---- */

static struct tw_rb_producer overtaking;
static uint64_t overtaking_number, overtaking_records;
static volatile sig_atomic_t overtaken;

/* The snapshot has come to a page that it may not read yet: meanwhile the producer goes on. */
static void on_fault(int number)
{
	struct tw_rb_shared *shared = overtaking.shared;

	if (overtaken++)
		abort();
	mprotect(tw_rb_data(shared), (size_t)shared->data_bytes, PROT_READ | PROT_WRITE);
	for (uint64_t i = 0; i < overtaking_records; i++)
		TW_ASSERT(put(&overtaking, overtaking_number++) == TW_RB_OK);
}

/* What is left of a ring's records when the producer makes some more while its copy has come so far; the bytes. */
static int64_t snapshot_overtaken(struct tw_rb_shared *shared, uint64_t ahead, uint64_t more, uint8_t *copy,
				  struct tw_rb_stretch *copied)
{
	uint64_t oldest, now, none[TW_RB_CAUSES] = {0}, made = 1000;
	struct reading reading = {0};
	struct tw_rb_loss_record loss;
	int64_t left;

	memset(shared, 0, TW_PAGE_BYTES + TW_RB_BYTES_MIN);
	tw_rb_shared_init(shared, 0, TW_RB_BYTES_MIN);
	assert_true(tw_rb_producer_init(&overtaking, shared, TW_RB_OVERWRITE));
	for (overtaking_number = 0; overtaking_number < made;)
		assert_int_equal(put(&overtaking, overtaking_number++), TW_RB_OK);
	oldest = atomic_load(&shared->oldest_pos);
	overtaking_records = more;
	overtaken = 0;
	assert_int_equal(mprotect(tw_rb_data(shared) + (oldest + ahead) % TW_RB_BYTES_MIN, TW_PAGE_BYTES, PROT_NONE),
			 0);
	left = tw_rb_snapshot(shared, TW_RB_BYTES_MIN, copy, copied);
	assert_int_equal(overtaken, 1);
	now = atomic_load(&shared->oldest_pos);
	assert_true(left >= 0 && copied->first_pos <= copied->end_pos && tw_rb_unreported_loss(shared, none, &loss));
	/* All that is copied by then stays, or all of it is left out. */
	assert_int_equal(copied->first_pos, now <= oldest + ahead ? oldest : now);
	assert_true(!left || now <= oldest + ahead || copied->overwritten == loss.lost[TW_RB_LOST_FULL]);
	/* All of the copy is gone, and more. */
	assert_true(left || (copied->first_pos == copied->end_pos && loss.lost[TW_RB_LOST_FULL] >= made));
	reading.next = copied->overwritten;
	for (int64_t at = 0; at < left; at += TW_RB_HEAD_BYTES(((struct tw_rb_record *)(copy + at))->head))
		read_record(&reading, copy + at);
	assert_true(!left || reading.next == made);
	copied->overwritten = now - oldest;
	return left;
}

/*
 * While the ring is copied, the producer gives up nothing of it, a part of it, or more than all of it: then the copy has exactly
 * the records that were copied before, or those that were not given up.
 */
static void a_snapshot_that_is_overtaken_has_what_is_left(void **state)
{
	static const uint64_t more[] = {0, 1, 30, 60, 120, 150, 200, 250, 300, 1000, 5000},
			      ahead[] = {0, 2 * TW_RB_BYTES_MIN / TW_RB_CHUNKS};
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, before;
	const size_t bytes = TW_PAGE_BYTES + TW_RB_BYTES_MIN;
	struct tw_rb_shared *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *copy = malloc(TW_RB_BYTES_MIN);

	assert_true(shared != MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (size_t k = 0; k < TW_COUNT_OF(ahead); k++) {
		unsigned empty = 0, part = 0, kept = 0;

		for (size_t i = 0; i < TW_COUNT_OF(more); i++) {
			struct tw_rb_stretch copied;
			int64_t left = snapshot_overtaken(shared, ahead[k], more[i], copy, &copied);

			empty += !left;
			part += left && copied.overwritten > ahead[k];
			kept += left && copied.overwritten && copied.overwritten <= ahead[k];
		}
		assert_true(empty >= 2 && part >= 2 && (kept || !ahead[k]));
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	free(copy);
	munmap(shared, bytes);
}

/* A ring that another thread used before: its records are neither counted nor give their time to a loss. */
static void a_second_lease_loses_its_own_records_only(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	const uint64_t none[TW_RB_CAUSES] = {0};
	struct tw_rb_producer producer;
	struct tw_rb_loss_record loss;
	uint64_t number = 0, before;

	assert_true(tw_rb_producer_init(&producer, shared, TW_RB_OVERWRITE));
	while (atomic_load(&shared->committed_pos) < TW_RB_BYTES_MIN / TW_RB_CHUNKS * 3 / 2)
		assert_int_equal(put(&producer, number++), TW_RB_OK);
	atomic_store(&shared->tail_pos, atomic_load(&shared->committed_pos));
	for (int lease = 0; lease < 20; lease++) {
		const uint64_t begun = number + 1000;

		tw_rb_producer_fini(&producer);
		assert_true(tw_rb_producer_init(&producer, shared, TW_RB_OVERWRITE));
		shared->first_ticks = begun;
		assert_false(tw_rb_unreported_loss(shared, none, &loss));
		for (number = begun, before = number; !tw_rb_unreported_loss(shared, none, &loss); number++)
			assert_int_equal(put(&producer, number), TW_RB_OK);
		/* From the lease's first record to the first one that is kept. */
		assert_int_equal(loss.record.ticks, before + loss.lost[TW_RB_LOST_FULL]);
		assert_int_equal(loss.first_ticks, begun);
		while (random_word(&seed) % 3000)
			assert_int_equal(put(&producer, number++), TW_RB_OK);
		atomic_store(&shared->tail_pos, atomic_load(&shared->committed_pos));
	}
	free(shared);
}

/* A death between giving a chunk up and counting it: only the announcement exists. */
static void a_chunk_given_up_is_counted_by_a_dead_producer(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	unsigned chunks = 0;

	tw_rb_producer_init(&producer, shared, TW_RB_OVERWRITE);
	for (uint64_t number = 0; number < 5000; number++) {
		const uint64_t none[TW_RB_CAUSES] = {0};
		uint64_t before = atomic_load(&shared->lost[TW_RB_LOST_FULL]), after;
		struct tw_rb_loss_record loss;

		assert_int_equal(put(&producer, number), TW_RB_OK);
		after = atomic_load(&shared->lost[TW_RB_LOST_FULL]);
		if (after == before)
			continue;
		chunks++;
		atomic_store(&shared->lost[TW_RB_LOST_FULL], before);
		assert_true(tw_rb_unreported_loss(shared, none, &loss));
		assert_int_equal(loss.lost[TW_RB_LOST_FULL], after);
		/* And a death before that: announced, but not given up. */
		atomic_store(&shared->oldest_pos, atomic_load(&shared->oldest_pos) - TW_RB_ALIGN_BYTES);
		assert_int_equal(tw_rb_unreported_loss(shared, none, &loss), before != 0);
		assert_int_equal(loss.lost[TW_RB_LOST_FULL], before);
		atomic_store(&shared->oldest_pos, atomic_load(&shared->oldest_pos) + TW_RB_ALIGN_BYTES);
		atomic_store(&shared->lost[TW_RB_LOST_FULL], after);
	}
	assert_true(chunks > TW_RB_CHUNKS);
	free(shared);
}

static void a_damaged_ring_is_refused_and_never_followed(void **state)
{
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	uint64_t s = seed;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	for (uint64_t i = 0; i < 100; i++)
		put(&producer, i);
	for (int round = 0; round < 20000; round++) {
		uint64_t *words = (uint64_t *)tw_rb_data(shared);
		uint64_t at = random_word(&s) % 500, old = words[at], end;
		const uint8_t *out;
		int64_t bytes;

		words[at] = random_word(&s);
		bytes = tw_rb_peek(shared, 0, TW_RB_RECORD_BYTES_MAX, &out, &end);
		assert_true(bytes == TW_EFORMAT || (bytes >= 0 && bytes <= TW_RB_RECORD_BYTES_MAX));
		words[at] = old;
	}
	atomic_store(&shared->committed_pos, TW_RB_BYTES_MIN * 3);
	{
		const uint8_t *out;
		uint64_t end;

		assert_int_equal(tw_rb_peek(shared, 0, TW_RB_RECORD_BYTES_MAX, &out, &end), TW_EFORMAT);
	}
	free(shared);
}

/* ---- two threads ---- */

struct pair {
	struct tw_rb_shared *shared;
	enum tw_rb_policy policy;
	uint64_t count;
	uint64_t refused;
	_Atomic int is_done;
};

static void *produce(void *arg)
{
	struct pair *pair = arg;
	struct tw_rb_producer producer;

	tw_rb_producer_init(&producer, pair->shared, pair->policy);
	for (uint64_t i = 0; i < pair->count; i++) {
		enum tw_rb_outcome outcome;

		while ((outcome = put(&producer, i)) == TW_RB_WAIT)
			tw_rb_wait_space(&producer, bytes_of(i), UINT64_C(10000000000));
		pair->refused += outcome == TW_RB_FULL;
	}
	tw_store_release(&pair->is_done, 1);
	return NULL;
}

static void run_pair(enum tw_rb_policy policy, uint64_t count)
{
	struct pair pair = {make_ring(TW_RB_BYTES_MIN), policy, count, 0, 0};
	struct tw_rb_loss_record rest;
	struct reading reading = {0};
	uint64_t pos = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, produce, &pair);
	while (!tw_load_acquire(&pair.is_done))
		drain(pair.shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	pthread_join(thread, NULL);
	drain(pair.shared, &pos, TW_RB_RECORD_BYTES_MAX, &reading);
	tw_rb_unreported_loss(pair.shared, reading.lost, &rest);
	assert_int_equal(reading.records + pair.refused, count);
	assert_int_equal(reading.lost[TW_RB_LOST_FULL] + rest.lost[TW_RB_LOST_FULL], pair.refused);
	if (policy == TW_RB_BLOCK)
		assert_int_equal(pair.refused, 0);
	free(pair.shared);
}

static void threads_lose_nothing_that_is_not_counted(void **state)
{
	run_pair(TW_RB_DROP, 300000);
}

static void a_blocked_producer_loses_nothing(void **state)
{
	run_pair(TW_RB_BLOCK, 100000);
}

/* A sleeping owner is woken once, when a quarter of the ring is waiting; records it has taken do not count. */
static void a_quarter_wakes_the_owner(void **state)
{
	_Atomic uint32_t wake = 0, unwakeable = 0;
	struct tw_rb_shared *shared = make_ring(TW_RB_BYTES_MIN);
	struct tw_rb_producer producer;
	uint64_t written = 0;

	tw_rb_producer_init(&producer, shared, TW_RB_DROP);
	producer.owner_wake = &wake;
	producer.owner_unwakeable = &unwakeable;
	/* Without a new limit, as after a claim. */
	producer.limit_pos = 0;
	for (unsigned round = 0; round < 9; round++) {
		uint64_t start = written;

		/* RELAXED test.wake: of this thread. */
		while (!tw_load_relaxed(&wake)) {
			void *space;

			assert_int_equal(tw_rb_reserve(&producer, 32, 1, &space), TW_RB_OK);
			memset(space, 0, 32);
			((uint64_t *)space)[1] = TW_RB_HEAD(KIND, 0, 32, 1);
			tw_rb_commit(&producer, 32);
			written += 32;
			assert_true(written - start <= TW_RB_BYTES_MIN / 2 + 64);
		}
		assert_true(written - start >= TW_RB_BYTES_MIN / 4 - 64);
		tw_rb_consume(shared, tw_rb_committed(shared));
		/* RELAXED test.wake: as above. */
		tw_store_relaxed(&wake, 0);
	}
	/* RELAXED test.wake: as above. */
	assert_int_equal(tw_load_relaxed(&unwakeable), 0);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quarter_wakes_the_owner),
		cmocka_unit_test(records_of_all_sizes_wrap),
		cmocka_unit_test(a_full_ring_drops_the_newest_and_reports_it),
		cmocka_unit_test(too_big_and_nested_are_told_apart),
		cmocka_unit_test(a_full_ring_refuses_again),
		cmocka_unit_test(a_reservation_without_commit_leaves_nothing),
		cmocka_unit_test(an_overwriting_ring_keeps_the_newest),
		cmocka_unit_test(a_snapshot_that_is_overtaken_has_what_is_left),
		cmocka_unit_test(a_second_lease_loses_its_own_records_only),
		cmocka_unit_test(a_chunk_given_up_is_counted_by_a_dead_producer),
		cmocka_unit_test(a_damaged_ring_is_refused_and_never_followed),
		cmocka_unit_test(threads_lose_nothing_that_is_not_counted),
		cmocka_unit_test(a_blocked_producer_loses_nothing),
	};

	tw_clock_init();
	seed = getenv("TW_SEED") ? strtoull(getenv("TW_SEED"), NULL, 0) : tw_clock_ticks() | 1;
	printf("seed %llu (TW_SEED repeats it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
