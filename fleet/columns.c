/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - the columns of functions: those of `tracewheel report`. */
#include "fleet/ask.h"

#define CELL(key, number, unknown)                                                                          \
	static struct tw_cell cell_##key(const void *at)                                                    \
	{                                                                                                   \
		const struct tw_fleet_sum *sum = *(const struct tw_fleet_sum *const *)at;                   \
		int64_t value = (int64_t)(number);                                                          \
		return (struct tw_cell){.value = value > 0 ? (uint64_t)value : 0, .is_unknown = (unknown)}; \
	}
#define HAS_NO_TIMES (!sum->timed && !sum->total_ns)
CELL(total, sum->total_ns, HAS_NO_TIMES)
CELL(self, sum->self_ns, HAS_NO_TIMES)
CELL(calls, sum->calls, false)
CELL(returned, sum->returned, false)
CELL(exceptions, sum->exceptions, false)
CELL(open, sum->open, false)
CELL(cut, sum->cut, false)
CELL(lossy, sum->lossy, false)
CELL(min, sum->min_ns, !sum->timed)
CELL(median, tw_fleet_quantile(sum, 0.5), !sum->timed)
CELL(p99, tw_fleet_quantile(sum, 0.99), !sum->timed)
CELL(max, sum->max_ns, !sum->timed)

static const struct tw_column columns[] = {
	{"calls", "calls", TW_UNIT_COUNT, 13, 3, 0, true, cell_calls, false},
	{"returned", "returned", TW_UNIT_COUNT, 13, 0, 0, true, cell_returned, false},
	{"exceptions", "exceptions", TW_UNIT_COUNT, 13, 0, 0, true, cell_exceptions, false},
	{"cut", "cut", TW_UNIT_COUNT, 10, 0, 0, true, cell_cut, false},
	{"lossy", "lossy", TW_UNIT_COUNT, 10, 0, 0, true, cell_lossy, false},
	{"open", "open", TW_UNIT_COUNT, 10, 0, 0, true, cell_open, false},
	{"total", "total", TW_UNIT_DURATION, 9, 1, 0, false, cell_total, true},
	{"self", "self", TW_UNIT_DURATION, 9, 2, 50, true, cell_self, true},
	{"min", "min", TW_UNIT_DURATION, 9, 4, 100, false, cell_min, true},
	{"median", "median", TW_UNIT_DURATION, 9, 5, 72, false, cell_median, true},
	{"p99", "p99", TW_UNIT_DURATION, 9, 6, 100, false, cell_p99, true},
	{"max", "max", TW_UNIT_DURATION, 9, 7, 72, false, cell_max, true},
};
const struct tw_table tw_fleet_columns = {columns, sizeof columns / sizeof *columns};
