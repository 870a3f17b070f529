/* SPDX-License-Identifier: Apache-2.0 */
/* combine.c - merge.h: several captures become one. */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/combine/copy.h"
#include "pipeline/combine/target.h"

#include <stdlib.h>

/* ---- inputs ---- */

static int check_inputs(const struct tw_merge_input *inputs, uint32_t count, const struct tw_merge_options *options)
{
	if (!count || options->reference >= count || !options->path || !*options->path)
		return TW_EBADARG;
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_capture *capture = inputs[i].capture;

		if (!inputs[i].knots != !inputs[0].knots || (capture->clock_shift_ns && !inputs[i].knots))
			return TW_EBADARG;
		if (capture->directory_fd < 0 || capture->stream_in)
			return TW_ENOTSUP;
		if (capture->info.is_live)
			return TW_EFORMAT;
		for (uint32_t file = 0; file < capture->file_count; file++) {
			if (capture->files[file].is_listed && !capture->files[file].is_closed)
				return TW_EFORMAT;
		}
	}
	return 0;
}

/* ---- all of it ---- */

static void take_numbers(struct tw_copy *copy, const struct tw_capture *capture)
{
	uint64_t ring = 0, image = 0;
	uint32_t number = 0;

	for (uint32_t i = 0; i < capture->stream_count; i++)
		ring = capture->streams[i].lease > ring ? capture->streams[i].lease : ring;
	for (uint32_t i = 0; i < capture->image_count; i++)
		image = capture->images[i]->header.image_lease > image ? capture->images[i]->header.image_lease : image;
	for (uint32_t i = 0; i < capture->file_count; i++)
		number = capture->files[i].is_listed && capture->files[i].number > number ? capture->files[i].number
											  : number;
	copy->ring_lease_base += ring;
	copy->image_lease_base += image;
	copy->segment_base += number;
}

static int copy_all(struct tw_copy *copy, const struct tw_merge_input *inputs, uint32_t count)
{
	const struct tw_merge_input *reference = &inputs[copy->options->reference];
	int error = 0;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t cause = 0; cause < TW_ACCOUNT_CAUSES; cause++)
			copy->account[cause] += inputs[i].capture->reported[cause];
	}
	/* How the program ended is known for each input, but not of which. */
	copy->account[TW_ACCOUNT_ENDING] = 0;
	for (uint32_t i = 0; i < count && !error; i++) {
		struct tw_retime retime = {0};

		copy->input = &inputs[i];
		copy->retime = inputs[i].knots ? &retime : NULL;
		if (copy->retime)
			error = tw_retime_init(&retime, &inputs[i], reference);
		if (!error)
			error = tw_copy_input(copy);
		tw_retime_fini(&retime);
		take_numbers(copy, inputs[i].capture);
	}
	return error;
}

TW_API int tw_captures_merge(const struct tw_merge_input *inputs, uint32_t count,
			     const struct tw_merge_options *options, struct tw_merge_result *result)
{
	struct tw_target target = {.path = options->path, .is_forced = options->is_forced, .fd = -1};
	struct tw_copy copy = {.options = options, .result = result};
	int error = check_inputs(inputs, count, options);

	*result = (struct tw_merge_result){0};
	if (!error)
		error = tw_target_check(&target);
	if (error)
		return error;
	error = tw_copy_init(&copy);
	if (!error)
		error = tw_target_open(&target);
	copy.directory_fd = target.fd;
	if (!error)
		error = copy_all(&copy, inputs, count);
	if (!error)
		error = tw_target_publish(&target, copy.numbers, copy.number_count);
	if (error)
		tw_target_drop(&target);
	tw_copy_fini(&copy);
	return error;
}
