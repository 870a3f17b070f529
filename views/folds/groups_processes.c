/* SPDX-License-Identifier: Apache-2.0 */
/* groups_processes.c - names of processes as groups of calls. */
#include "views/folds/groups_processes.h"
#include "views/names/names.h"
#include "views/names/threads.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tw_groups_put_process(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint32_t tracee_id)
{
	char node[TW_NODE_TEXT_BYTES], text[TW_THREAD_TEXT_BYTES];
	tw_node_text(capture, image, node);
	if (!*tw_process_name(capture, image, tracee_id, text))
		tw_process_text_alone(capture, image, tracee_id, text);
	tw_out_text(out, node);
	tw_out_text(out, text);
}

static const char *const words[] = {[TW_KIND_NAME] = "name",
				    [TW_KIND_INITIAL_CALL] = "initial-call",
				    [TW_KIND_BEHAVIOUR] = "behaviour",
				    [TW_KIND_APPLICATION] = "application",
				    [TW_KIND_LABEL] = "label"};

bool tw_process_kind_parse(const char *text, enum tw_process_kind *out)
{
	for (unsigned kind = 0; kind < sizeof words / sizeof *words; kind++) {
		*out = (enum tw_process_kind)kind;
		if (strcmp(text, words[kind]) == 0)
			return true;
	}
	return false;
}

bool tw_groups_put_kind(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint32_t tracee_id,
			enum tw_process_kind kind)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, image, tracee_id);
	char node[TW_NODE_TEXT_BYTES];
	if (kind == TW_KIND_NAME) {
		tw_groups_put_process(out, capture, image, tracee_id);
		return true;
	}
	/* All that are described have begun somewhere. */
	if (!tracee || !*tracee->initial_call)
		return false;
	const char *text = kind == TW_KIND_INITIAL_CALL	 ? tracee->initial_call
			   : kind == TW_KIND_BEHAVIOUR	 ? tracee->behaviour
			   : kind == TW_KIND_APPLICATION ? tracee->application
							 : tracee->label;
	tw_node_text(capture, image, node);
	tw_out_text(out, node);
	if (*text)
		tw_out_name(out, text);
	else
		tw_out_format(out, "no %s", words[kind]);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct tw_groups_process *x = a, *y = b;
	return x->image != y->image	? x->image < y->image ? -1 : 1
	       : x->number != y->number ? x->number < y->number ? -1 : 1
	       : x->serial != y->serial ? x->serial < y->serial ? -1 : 1
					: 0;
}

static bool make(struct tw_groups_processes *processes, const struct tw_capture *capture)
{
	const struct tw_capture_tracee *tracee;
	for (uint32_t image = 0; tw_capture_image(capture, image); image++) {
		for (uint32_t at = 0; (tracee = tw_capture_tracee_next(capture, image, &at));) {
			if (!tw_grow(processes->sorted, processes->count, processes->capacity))
				return false;
			processes->sorted[processes->count++] =
				(struct tw_groups_process){image, tracee->pid_number, tw_name_serial(tracee),
							   tracee->tracee_id};
		}
	}
	if (processes->count)
		qsort(processes->sorted, processes->count, sizeof *processes->sorted, compare);
	processes->is_made = true;
	return true;
}

bool tw_groups_put_server(struct tw_groups_processes *processes, struct tw_out *out, const struct tw_capture *capture,
			  uint32_t image, const struct tw_out *text)
{
	const struct tw_groups_process *found = NULL;
	struct tw_groups_process wanted = {.image = image};
	char pid[64], end;
	snprintf(pid, sizeof pid, "%.*s", (int)text->used, text->data);
	if (!processes->is_made && !make(processes, capture))
		return false;
	if (sscanf(pid, "<0.%u.%u%c", &wanted.number, &wanted.serial, &end) == 3 && end == '>' && processes->count)
		found = bsearch(&wanted, processes->sorted, processes->count, sizeof wanted, compare);
	if (found) {
		tw_groups_put_process(out, capture, image, found->tracee_id);
		return true;
	}
	char node[TW_NODE_TEXT_BYTES];
	tw_node_text(capture, image, node);
	tw_out_text(out, node);
	tw_out_bytes(out, text->data, text->used);
	return true;
}

void tw_groups_processes_free(struct tw_groups_processes *processes)
{
	free(processes->sorted);
	*processes = (struct tw_groups_processes){0};
}
