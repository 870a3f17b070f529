/* SPDX-License-Identifier: Apache-2.0 */
/* memory_inherited.c - which image was forked by which: memory_inherited.h. */
#include "views/folds/memory_inherited.h"
#include "views/names/threads.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

static bool is_placed(const struct tw_capture_place *place)
{
	const struct tw_capture_module *module = place->function ? place->function->module : NULL;
	return module && module->path && module->base_address;
}

/* A forked process has the objects of its parent where they were; a program that is executed has them elsewhere. */
static bool has_same_objects(const struct tw_capture *capture, uint32_t a, uint32_t b)
{
	const struct tw_capture_place *place, *other;
	for (uint32_t i = 0; (place = tw_capture_place_next(capture, a, &i));) {
		if (!is_placed(place))
			continue;
		for (uint32_t at = 0; (other = tw_capture_place_next(capture, b, &at));) {
			const struct tw_capture_module *module = place->function->module;
			if (is_placed(other) && strcmp(other->function->module->path, module->path) == 0)
				return other->function->module->base_address == module->base_address;
		}
	}
	return false;
}

/* The last program of the parent's process that had begun when the image began; none of a program that is executed. */
static uint32_t parent_of(const struct tw_capture *capture, const struct tw_capture_image *image)
{
	const struct tw_capture_image *other, *parent = NULL;
	for (uint32_t i = 0; (other = tw_capture_image(capture, i)); i++) {
		if (i != image->image && other->start_ns <= image->start_ns &&
		    other->process_id == image->parent_process_id &&
		    !memcmp(other->boot_id, image->boot_id, sizeof other->boot_id) &&
		    (!parent || other->start_ns > parent->start_ns))
			parent = other;
	}
	return parent && tw_exec_number(capture, image->image) < 2 &&
			       has_same_objects(capture, image->image, parent->image)
		       ? parent->image
		       : NONE;
}

struct tw_memory_image *tw_memory_images(const struct tw_capture *capture, uint32_t *count)
{
	const struct tw_capture_image *image;
	struct tw_memory_image *images;
	*count = 0;
	while (tw_capture_image(capture, *count))
		++*count;
	images = calloc(*count + (size_t)1, sizeof *images);
	for (uint32_t i = 0; images && i < *count && (image = tw_capture_image(capture, i)); i++)
		images[i] = (struct tw_memory_image){parent_of(capture, image), image->start_ns};
	return images;
}

bool tw_memory_is_inherited(const struct tw_memory *memory, uint32_t image, uint64_t address)
{
	for (uint32_t i = 0; i < memory->image_count && image < memory->image_count; i++) {
		uint64_t fork_ns = memory->images[image].start_ns;
		image = memory->images[image].parent;
		const struct tw_memory_block *block = tw_memory_block_at(memory, image, address);
		if (block && block->first_ns <= fork_ns)
			return true;
	}
	return false;
}
