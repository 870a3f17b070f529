/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - `record --metrics FILE`: what the recorder counts, in Prometheus' text form, for node_exporter's folder of
 * text files or any other reader.
 *
 * The file is replaced as a whole, once a second and at the end: a reader sees one state. A file that cannot be written
 * is said once, and the recording goes on.
 *
 * Threads  one: the recorder's.
 */
#ifndef TW_TOOLS_METRICS_H
#define TW_TOOLS_METRICS_H

#include "tracewheel/consumer.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first, except path. */
struct tw_metrics {
	const char *path; /* borrows; NULL: none is written */
	uint64_t due_ns;
	bool has_failed;
};

/* Writes the file if a second has passed. Called in each round. */
void tw_metrics_poll(struct tw_metrics *metrics, const struct tw_recorder *recorder);
/* Writes the numbers of tw_recorder_finish(). */
void tw_metrics_finish(struct tw_metrics *metrics, const struct tw_recorder_stats *stats);

#endif
