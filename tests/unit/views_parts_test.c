/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Sums by thread and slice of time stay the same in all, however many nodes there are: slices are joined two and two, each
 *	sum stays in its time, and at last nothing is kept rather than more than the limit.
 * Method	Random additions in order of time, once with space for all of them, once with less.
 */
#include "views/folds/parts.h"
#include "tests/common/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WHOLE_NS 64000
#define NODES	 50

static uint32_t next_random(uint32_t most)
{
	static uint64_t seed = 4711;
	return (uint32_t)random_below(&seed, most);
}

static void fill(struct tw_parts *few, struct tw_parts *all)
{
	tw_parts_init(few, 1000, 1000 + WHOLE_NS);
	tw_parts_init(all, 1000, 1000 + WHOLE_NS);
	for (uint64_t ns = 1000; ns < 1000 + WHOLE_NS; ns += 10) {
		const struct tw_part_sums sums = {1, next_random(100), next_random(3) ? 0 : 7};
		uint32_t node = next_random(NODES), stack = next_random(10) ? next_random(3) : 90;
		struct tw_parts *both[] = {few, all};
		for (unsigned i = 0; i < 2; i++) {
			while (ns >= both[i]->next_ns)
				tw_parts_next(both[i]);
			assert_true(tw_parts_add(both[i], node, stack, &sums));
		}
	}
}

static void test_slices_are_joined(void **state)
{
	struct tw_parts few = {.cell_max = 3000}, all = {0};
	int64_t sums[NODES][TW_PARTS_GROUPS][TW_PARTS_SLICES] = {{{0}}};
	fill(&few, &all);
	assert_true(few.count <= 3000 && all.count > 3000 && !few.is_over);
	assert_int_equal(all.slices, TW_PARTS_SLICES);
	assert_true(few.slices < TW_PARTS_SLICES && few.slices > 1);
	assert_int_equal(few.groups, TW_PARTS_GROUPS);
	unsigned joined = TW_PARTS_SLICES / few.slices;
	for (uint32_t i = 0; i < all.count; i++) {
		const struct tw_part *cell = &all.cells[i];
		sums[cell->node][cell->group][cell->slice / joined] +=
			cell->sums.self_ns + 1000 * cell->sums.calls + 1000000 * cell->sums.out_ns;
	}
	for (uint32_t i = 0; i < few.count; i++) {
		const struct tw_part *cell = &few.cells[i];
		int64_t sum = cell->sums.self_ns + 1000 * cell->sums.calls + 1000000 * cell->sums.out_ns;
		assert_int_equal(sums[cell->node][cell->group][cell->slice], sum);
		sums[cell->node][cell->group][cell->slice] = 0;
	}
	for (size_t i = 0; i < sizeof sums / sizeof ***sums; i++)
		assert_int_equal((&sums[0][0][0])[i], 0);
	tw_parts_free(&few);
	tw_parts_free(&all);
}

static void test_too_many_are_none(void **state)
{
	struct tw_parts few = {.cell_max = 100}, all = {0};
	fill(&few, &all);
	assert_true(few.is_over && few.count == 0);
	tw_parts_free(&few);
	tw_parts_free(&all);
}

static void test_nodes_are_renamed(void **state)
{
	struct tw_parts few = {.cell_max = 3000}, all = {0};
	uint32_t names[NODES];
	int64_t calls = 0, kept = 0;
	fill(&few, &all);
	for (uint32_t i = 0; i < NODES; i++)
		names[i] = i % 3 ? i / 10 : TW_PARTS_NO_NODE;
	for (uint32_t i = 0; i < all.count; i++)
		calls += all.cells[i].node % 3 ? all.cells[i].sums.calls : 0;
	assert_true(tw_parts_rename(&all, names));
	tw_parts_sort(&all);
	for (uint32_t i = 0; i < all.count; i++) {
		kept += all.cells[i].sums.calls;
		assert_true(i == 0 || all.cells[i].node > all.cells[i - 1].node ||
			    all.cells[i].group > all.cells[i - 1].group || all.cells[i].slice > all.cells[i - 1].slice);
	}
	assert_int_equal(kept, calls);
	tw_parts_free(&few);
	tw_parts_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices_are_joined),
		cmocka_unit_test(test_too_many_are_none),
		cmocka_unit_test(test_nodes_are_renamed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
