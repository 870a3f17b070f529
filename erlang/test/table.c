/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - threads that add the same and different keys to a table; without a VM, for table_test.sh. */
#include "table.h"
#include "require.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define KEYS	3000
#define LIMIT	(KEYS + THREADS * KEYS)

static struct table table = {.count_max = LIMIT};
static _Atomic long live; /* allocations */
static pthread_barrier_t start;
static struct entry *found[THREADS][2 * KEYS];

struct counted {
	struct entry entry;
	ERL_NIF_TERM value; /* checks that its bytes come with it */
};

void *enif_alloc(size_t bytes)
{
	live++;
	return malloc(bytes);
}

void enif_free(void *at)
{
	if (at)
		live--;
	free(at);
}

static struct entry *make(const ERL_NIF_TERM key[3], void *arg)
{
	struct counted *entry = enif_alloc(sizeof *entry);

	(void)arg;
	entry->value = key[0] ^ 1;
	return &entry->entry;
}

/* Keys that all threads add, in the same order, and keys of its own. */
static void *run(void *arg)
{
	size_t thread = (size_t)arg;

	pthread_barrier_wait(&start);
	for (size_t i = 0; i < 2 * KEYS; i++) {
		size_t own = i & 1 ? 1 + thread : 0;
		const ERL_NIF_TERM key[3] = {i / 2 * 64 + 11, own, 0};
		struct entry *entry = table_add(&table, key, make, NULL);

		if (!entry || memcmp(entry->key, key, sizeof key) != 0 ||
		    ((struct counted *)entry)->value != (key[0] ^ 1) || table_find(&table, key[0], own, 0) != entry)
			return NULL;
		found[thread][i] = entry;
	}
	return arg;
}

int main(void)
{
	const ERL_NIF_TERM further[3] = {5, 5, 5};
	pthread_t threads[THREADS];
	void *results[THREADS];

	pthread_barrier_init(&start, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], &results[i]);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(results[i] == (void *)i && found[i][2 * KEYS - 1]);
	/* One entry a key, which all threads were given. */
	for (size_t i = 0; i < 2 * KEYS; i += 2)
		for (size_t thread = 1; thread < THREADS; thread++)
			REQUIRE(found[thread][i] == found[0][i]);
	REQUIRE(table.count == LIMIT);
	REQUIRE(!table_add(&table, further, make, NULL));
	REQUIRE(table.count == LIMIT);
	table_fini(&table);
	REQUIRE(live == 0);
	printf("ok\n");
	return 0;
}
