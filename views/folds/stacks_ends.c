/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_ends.c - until when calls that were never seen to end were open: to the end of their thread, or of its process. */
#include "views/folds/stacks_foresee.h"
#include "views/names/threads.h"

#include <stdlib.h>

const char *tw_stacks_end_name(enum tw_frame_end how)
{
	static const char *const names[] = {"returned", "exception", "cut", "open", "lost"};
	return names[how];
}

/*
 * Until when each process is known to have lived: its end, the exec that replaced it, or the last event of any of its
 * threads.  NULL: no memory.
 */
static uint64_t *lives_of_images(const struct tw_capture *capture, uint32_t images)
{
	uint64_t *ends = calloc(images + (size_t)1, sizeof *ends);
	const struct tw_capture_stream *stream;
	for (uint32_t i = 0; ends && (stream = tw_capture_stream(capture, i)); i++) {
		if (stream->image < images && stream->end_ns > ends[stream->image])
			ends[stream->image] = stream->end_ns;
	}
	for (uint32_t i = 0; ends && i < images; i++) {
		uint64_t exec_ns = tw_exec_ends_ns(capture, i);
		uint64_t end_ns = exec_ns ? exec_ns : tw_capture_image(capture, i)->end_ns;
		ends[i] = end_ns > ends[i] ? end_ns : ends[i];
	}
	return ends;
}

void tw_stacks_find_ends(struct tw_stacks *stacks)
{
	struct tw_capture_info info;
	const struct tw_capture_stream *stream;
	tw_capture_info(stacks->capture, &info);
	uint64_t *ends = lives_of_images(stacks->capture, info.images);
	for (struct tw_stack *stack = NULL; ends && (stack = tw_stacks_next(stacks, stack));) {
		if (!stack->is_bound || stack->image >= info.images)
			continue;
		stack->end_ns = ends[stack->image];
		stack->is_end_known = tw_capture_image(stacks->capture, stack->image)->end_ns ||
				      tw_exec_ends_ns(stacks->capture, stack->image);
	}
	free(ends);
	for (uint32_t i = 0; (stream = tw_capture_stream(stacks->capture, i)); i++) {
		bool has_tracee = stream->tracee_id != 0;
		struct tw_stack *stack = stream->thread_end_ns
						 ? tw_stacks_look_up(stacks, stream->image, stream->session_index,
								     has_tracee, has_tracee ? stream->tracee_id : i)
						 : NULL;
		if (stack && stack->is_bound) {
			/* Libc's calls behind the last destructor are the thread's last. */
			stack->end_ns = stream->thread_end_ns > stream->end_ns ? stream->thread_end_ns : stream->end_ns;
			stack->is_end_known = true;
		}
	}
}

bool tw_stacks_outlives(const struct tw_stacks *stacks, const struct tw_stack *stack)
{
	const struct tw_capture_image *image = tw_capture_image(stacks->capture, stack->image);
	return stack->is_end_known && image && !image->is_final && stack->end_ns == image->end_ns;
}

const char *tw_stacks_open_until(const struct tw_stacks *stacks)
{
	if (stacks->ends_early)
		return "the end of this part";
	if (stacks->has_outlived && !stacks->has_guessed)
		return "the end of the recording, or of the thread or the process before it";
	return stacks->has_guessed ? "the last event of the process" : "the end of the thread or the process";
}

const char *tw_stacks_name(const struct tw_stacks *stacks, struct tw_stack *stack)
{
	const struct tw_capture_stream *stream;
	char text[TW_THREAD_TEXT_BYTES] = "?";
	if (stack->name)
		return stack->name;
	if (stack->has_tracee)
		tw_process_text(stacks->capture, stack->image, stack->tracee_id, text);
	else if ((stream = tw_capture_stream(stacks->capture, stack->tracee_id)))
		tw_thread_text(stacks->capture, stream, text);
	stack->name = strdup(text);
	return stack->name ? stack->name : "?";
}
