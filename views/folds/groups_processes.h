/* SPDX-License-Identifier: Apache-2.0 */
/* groups_processes.h - groups by the names of processes that a run-time declares, as those of an Erlang node. */
#ifndef TW_VIEWS_GROUPS_PROCESSES_H
#define TW_VIEWS_GROUPS_PROCESSES_H

#include "views/output/output.h"

#include "tracewheel/capture.h"

/* The processes and ports of a capture, by pid: made at the first question. */
struct tw_groups_processes {
	struct tw_groups_process {
		uint32_t image, number, serial, tracee_id;
	} * sorted;
	uint32_t count, capacity;
	bool is_made;
};

/* The name of a process, so that those of one name are one group, or its pid; of a merged capture behind its node. */
void tw_groups_put_process(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint32_t tracee_id);

/*
 * tw_groups_put_server - the process that a term names, as it was given to gen_server:call/2: a pid by the name of its process, all
 * else as it is.
 *
 * @text	the term, as print shows it.
 *
 * False: no memory.
 */
bool tw_groups_put_server(struct tw_groups_processes *processes, struct tw_out *out, const struct tw_capture *capture,
			  uint32_t image, const struct tw_out *text);
void tw_groups_processes_free(struct tw_groups_processes *processes);

#endif
