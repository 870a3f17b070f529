/* SPDX-License-Identifier: Apache-2.0 */
/* mailboxes_history.c - finds kept stretches of processes by time; names of processes. */
#include "views/folds/mailboxes.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include <stdio.h>
#include <string.h>

/* The number of the first of its stretches that ends at or after this time; 0: none. */
static uint64_t first_from(const struct tw_mailboxes *mailboxes, uint32_t process, uint64_t ns)
{
	uint64_t pages = (mailboxes->stretch_mask + 1) / TW_MAILBOX_PAGE,
		 newest = mailboxes->stretch_count / TW_MAILBOX_PAGE;
	uint64_t oldest = newest >= pages ? newest - pages + 1 : 0, low = oldest, high = newest;
	while (low < high) {
		uint64_t middle = low + (high - low + 1) / 2;
		if (mailboxes->page_ns[middle % pages] < ns)
			low = middle;
		else
			high = middle - 1;
	}
	uint64_t kept = mailboxes->stretch_count > mailboxes->stretch_mask
				? mailboxes->stretch_count - mailboxes->stretch_mask
				: 1;
	uint64_t at = low * TW_MAILBOX_PAGE > kept ? low * TW_MAILBOX_PAGE : kept;
	for (; at <= mailboxes->stretch_count; at++) {
		const struct tw_stretch *stretch = &mailboxes->stretches[at & mailboxes->stretch_mask];
		if (stretch->process == process && stretch->to_ns >= ns)
			return at;
	}
	return 0;
}

/* The present state, if it overlaps the time. */
static bool put_open(const struct tw_mailbox_process *process, uint64_t from_ns, uint64_t to_ns, struct tw_stretch *out)
{
	if (!process->since_ns || process->since_ns >= to_ns)
		return false;
	*out = (struct tw_stretch){.from_ns = process->since_ns > from_ns ? process->since_ns : from_ns,
				   .to_ns = to_ns,
				   .process = process->number,
				   .by = TW_MAILBOX_NOBODY,
				   .doing = !process->is_out  ? process->doing
					    : process->waits  ? TW_DOING_BLOCKED
					    : process->is_new ? TW_DOING_READY
							      : TW_DOING_UNKNOWN};
	return true;
}

bool tw_mailboxes_back(const struct tw_mailboxes *mailboxes, uint32_t number, uint64_t from_ns, uint64_t to_ns,
		       uint64_t *at, struct tw_stretch *out)
{
	if (number >= mailboxes->count || from_ns >= to_ns || !mailboxes->stretches)
		return false;
	const struct tw_mailbox_process *process = mailboxes->processes[number];
	if (*at == 0) {
		*at = first_from(mailboxes, number, to_ns);
		if (!*at) {
			*at = process->last ? process->last : UINT64_MAX;
			if (put_open(process, from_ns, to_ns, out))
				return true;
		}
	}
	uint64_t kept = mailboxes->stretch_count > mailboxes->stretch_mask
				? mailboxes->stretch_count - mailboxes->stretch_mask
				: 1;
	while (*at >= kept && *at != UINT64_MAX) {
		const struct tw_stretch *stretch = &mailboxes->stretches[*at & mailboxes->stretch_mask];
		*at = stretch->before ? stretch->before : UINT64_MAX;
		if (stretch->from_ns >= to_ns)
			continue;
		if (stretch->to_ns <= from_ns)
			break;
		*out = *stretch;
		/* The number of takes in the part is not known. */
		if (out->from_ns < from_ns || out->to_ns > to_ns)
			out->takes = 0;
		out->from_ns = out->from_ns > from_ns ? out->from_ns : from_ns;
		out->to_ns = out->to_ns < to_ns ? out->to_ns : to_ns;
		return true;
	}
	*at = UINT64_MAX;
	return false;
}

size_t tw_mailboxes_name(const struct tw_mailboxes *mailboxes, uint32_t number, char *text)
{
	if (number == TW_MAILBOX_TIMER)
		return (size_t)snprintf(text, TW_THREAD_TEXT_BYTES, "a time-out of its own");
	if (number >= mailboxes->count)
		return (size_t)snprintf(text, TW_THREAD_TEXT_BYTES, "(not seen)");
	const struct tw_mailbox_process *process = mailboxes->processes[number];
	char name[TW_THREAD_NAME_BYTES];
	tw_process_name(mailboxes->capture, process->image, process->tracee_id, name);
	char numbers[TW_NAME_NUMBERS_BYTES], node[TW_NODE_TEXT_BYTES];
	tw_node_text(mailboxes->capture, process->image, node);
	return (size_t)snprintf(text, TW_THREAD_TEXT_BYTES, "%s%s%s%s", node,
				tw_name_numbers(process->pid_number, process->pid_serial, numbers), *name ? " " : "",
				name);
}

static bool is_called_at_home(const struct tw_mailboxes *mailboxes, const struct tw_mailbox_process *process,
			      const char *text, size_t bytes)
{
	char pid[TW_NAME_NUMBERS_BYTES], name[TW_THREAD_NAME_BYTES], thread[16] = "";
	uint32_t number = tw_process_thread(mailboxes->capture, process->image, process->tracee_id);
	if (number)
		snprintf(thread, sizeof thread, "%u", number);
	tw_name_numbers(process->pid_number, process->pid_serial, pid);
	tw_process_name(mailboxes->capture, process->image, process->tracee_id, name);
	const char *called[] = {pid, name, thread};
	for (size_t i = 0; i < sizeof called / sizeof *called; i++)
		if (bytes && strlen(called[i]) == bytes && memcmp(called[i], text, bytes) == 0)
			return true;
	return false;
}

bool tw_mailboxes_is_called(const struct tw_mailboxes *mailboxes, const struct tw_mailbox_process *process,
			    const char *text)
{
	char node[TW_NODE_TEXT_BYTES];
	size_t bytes = strlen(text), node_bytes = tw_node_text(mailboxes->capture, process->image, node);
	if (is_called_at_home(mailboxes, process, text, bytes))
		return true;
	if (!node_bytes || bytes <= node_bytes)
		return false;
	/* node_bytes includes the colon, which is as long as the @. */
	const char *behind = text + bytes - node_bytes;
	return (memcmp(text, node, node_bytes) == 0 &&
		is_called_at_home(mailboxes, process, text + node_bytes, bytes - node_bytes)) ||
	       (*behind == '@' && memcmp(behind + 1, node, node_bytes - 1) == 0 &&
		is_called_at_home(mailboxes, process, text, bytes - node_bytes));
}
