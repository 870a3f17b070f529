/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - the one loop over the blocks of a capture. */
#include "views/folds/scan.h"
#include "views/output/output.h"

struct scan {
	const struct tw_count *counts;
	size_t count;
	struct tw_meter meter;
	bool has_meter;
	uint64_t done, total;
};

static int on_batch(void *context, const struct tw_capture_batch *batch)
{
	struct scan *scan = context;
	int error = 0;
	for (size_t i = 0; i < scan->count && !error; i++)
		error = scan->counts[i].see(scan->counts[i].self, batch);
	scan->done += batch->records;
	if (scan->has_meter)
		tw_meter_at(&scan->meter, scan->done, scan->total);
	return error;
}

int tw_scan(struct tw_capture *capture, const struct tw_capture_filter *filter, const struct tw_count *counts,
	    size_t count, const char *doing)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	struct scan scan = {.counts = counts, .count = count, .has_meter = doing, .total = info.events};
	if (doing)
		tw_meter_start(&scan.meter, doing);
	int error = tw_capture_scan(capture, filter, on_batch, &scan);
	if (doing)
		tw_meter_stop(&scan.meter);
	return error;
}
