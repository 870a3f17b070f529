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

/* Properties by which processes are grouped. */
enum tw_process_kind {
	TW_KIND_NAME,
	TW_KIND_INITIAL_CALL, /* the function with which it began */
	TW_KIND_BEHAVIOUR,
	TW_KIND_APPLICATION,
	TW_KIND_LABEL
};

/* "name", "initial-call", "behaviour", "application", "label". False: none of them. */
bool tw_process_kind_parse(const char *text, enum tw_process_kind *out);

/*
 * tw_groups_put_kind - the text of this kind of a process, of a merged capture behind its node: "shop", "no label".
 *
 * False: the capture does not tell the kind of this process.
 */
bool tw_groups_put_kind(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint32_t tracee_id,
			enum tw_process_kind kind);

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
