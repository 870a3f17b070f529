/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_inherited.h - blocks that a process has from the process that forked it.
 *
 *	parent	 malloc = A   fork()                 free(A)
 *		 |------------|----- live -----------|
 *	child	              |- its own copy - free(A)
 *
 * A child's copies of its parent's blocks are neither live a second time nor unknown when it frees them.  A program that is executed has none.
 */
#ifndef TW_VIEWS_MEMORY_INHERITED_H
#define TW_VIEWS_MEMORY_INHERITED_H

#include "views/folds/memory.h"

/* Of an image. */
struct tw_memory_image {
	uint32_t parent; /* the image that forked it; UINT32_MAX: none is known */
	uint64_t start_ns;
};

struct tw_memory_block {
	uint64_t address, bytes;
	uint64_t first_ns; /* when the first block was made there */
	uint32_t image, row;
	bool is_live, is_map, is_listed; /* is_listed: among the maps */
};

/* The block that is, or was, at that address; NULL: there was none. */
struct tw_memory_block *tw_memory_block_at(const struct tw_memory *memory, uint32_t image, uint64_t address);
/* Had a process that forked this one a block there? To be asked if this one has made or freed none there. */
bool tw_memory_is_inherited(const struct tw_memory *memory, uint32_t image, uint64_t address);
/* For each image of the capture, to be freed; NULL: no memory. */
struct tw_memory_image *tw_memory_images(const struct tw_capture *capture, uint32_t *count);

#endif
