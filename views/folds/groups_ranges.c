/* SPDX-License-Identifier: Apache-2.0 */
/* groups_ranges.c - groups of a histogram: numbers by ranges. */
#include "views/folds/groups.h"
#include "views/names/names.h"
#include "base/range.h"

#include <inttypes.h>

/* The range of a histogram in which a number lies. */
static void find_range(const struct tw_grouping *by, int64_t number, struct tw_group *out)
{
	out->is_range = true;
	if (by->is_summary) {
		out->low = tw_range_part(number);
		out->width = tw_range_part_width(number);
		return;
	}
	out->low = by->step ? tw_range_step(number, by->step) : tw_range_power(number);
	out->width = by->step ? by->step : out->low > 0 ? (uint64_t)out->low : 1;
}

/* "[1,024, 2,048)", "7", or durations. */
static void name_range(const struct tw_groups *groups, const struct tw_group *range, struct tw_out *out)
{
	char low[TW_FIGURE_BYTES], high[TW_FIGURE_BYTES];
	uint64_t end = (uint64_t)range->low + range->width;
	if (range->width == 1)
		tw_out_format(out, "%" PRId64, range->low);
	else if (groups->by.key == TW_BY_DURATION)
		tw_out_format(out, "[%s, %s)", tw_figure_duration(low, (uint64_t)range->low),
			      tw_figure_duration(high, end));
	else
		tw_out_format(out, "[%" PRId64 ", %" PRId64 ")", range->low, (int64_t)end);
}

uint32_t tw_groups_range(struct tw_groups *groups, uint32_t owner, int64_t value, struct tw_out *scratch)
{
	struct tw_group group = {.function = owner};
	find_range(&groups->by, value, &group);
	group.word = (uint64_t)group.low;
	uint32_t number = tw_groups_find(groups, owner, group.word);
	if (number != TW_MAP_NONE)
		return number;
	tw_out_init(scratch, -1);
	name_range(groups, &group, scratch);
	return tw_groups_like(groups, &group, scratch);
}
