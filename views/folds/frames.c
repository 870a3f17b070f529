/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - finds the functions of return addresses. */
#include "views/folds/frames.h"
#include "views/output/output.h"
#include "views/names/lines.h"
#include "base/map.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names: the part before the arity, which a stack does not show ---- */

static size_t stem_bytes(const struct tw_name *name)
{
	const char *slash = name->lacks_arity ? NULL : strrchr(name->text, '/');
	return slash ? (size_t)(slash - name->text) : name->bytes;
}

static uint32_t find_name(const struct tw_frames *frames, const char *text, size_t bytes)
{
	const struct tw_name *names = frames->places->names;
	return tw_map_find(&frames->names, tw_hash_bytes(text, bytes, 0), i,
			   stem_bytes(&names[i]) == bytes && memcmp(names[i].text, text, bytes) == 0);
}

static bool add_names(struct tw_frames *frames)
{
	for (; frames->named < frames->places->function_count; frames->named++) {
		const struct tw_name *name = &frames->places->names[frames->named];
		if (frames->named >= TW_PLACES_FIRST &&
		    !tw_map_add(&frames->names, tw_hash_bytes(name->text, stem_bytes(name), 0), frames->named))
			return false;
	}
	return true;
}

static uint32_t name_line(struct tw_frames *frames, uint32_t image, uint64_t address)
{
	static struct tw_out text;
	tw_out_init(&text, -1);
	tw_line_put(&text, frames->capture, image, address);
	return tw_places_find(frames->places, &frames->names, text.data, text.used, false);
}

static uint32_t name_function(struct tw_frames *frames, uint32_t image, uint64_t address)
{
	struct tw_line line;
	char text[TW_NAME_TEXT_BYTES];
	tw_line_of_return(frames->capture, image, address, &line);
	if (line.function) {
		const struct tw_capture_function function = {.name = line.function,
							     .module = line.module,
							     .arity = TW_CAPTURE_ARITY_UNKNOWN};
		text[tw_name_function(&function, text, sizeof text - 1)] = 0;
	} else if (line.module) {
		size_t bytes = tw_clean(line.module->name, strlen(line.module->name), text, sizeof text - 40);
		snprintf(text + bytes, sizeof text - bytes, ":+0x%llx", (unsigned long long)line.offset);
	}
	if (!line.module)
		strcpy(text, "?:?");
	if (!add_names(frames))
		return TW_PLACES_NONE;
	uint32_t found = find_name(frames, text, strlen(text));
	return found != TW_PLACES_NONE ? found : tw_places_add(frames->places, text, strlen(text), true);
}

uint32_t tw_frames_function(struct tw_frames *frames, uint32_t image, uint64_t address)
{
	uint64_t key = tw_hash_word(address, image);
	uint32_t at = tw_map_find(&frames->by_address, key, i,
				  frames->addresses[i].address == address && frames->addresses[i].image == image);
	if (at != TW_MAP_NONE)
		return frames->addresses[at].function;
	uint32_t function = (frames->by_line ? name_line : name_function)(frames, image, address);
	if (function == TW_PLACES_NONE || !tw_grow(frames->addresses, frames->count, frames->capacity) ||
	    !tw_map_add(&frames->by_address, key, frames->count))
		return TW_PLACES_NONE;
	frames->addresses[frames->count++] = (struct tw_frame_address){address, image, function};
	return function;
}

void tw_frames_free(struct tw_frames *frames)
{
	free(frames->addresses);
	tw_map_fini(&frames->by_address);
	tw_map_fini(&frames->names);
}
