/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - finds the functions of return addresses. */
#include "tools/common/frames.h"
#include "tools/tool.h"
#include "tools/common/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256

static uint32_t first_slot(const struct tw_frames_table *table, uint64_t address, uint32_t image)
{
	return (uint32_t)((address ^ (uint64_t)image << 48) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & table->mask;
}

/* Makes space for one more; at most half of the slots are used. */
static bool make_space(struct tw_frames_table *table)
{
	if (table->slots && table->count < table->mask / 2)
		return true;
	struct tw_frames_table larger = {.mask = table->slots ? table->mask * 2 + 1 : FIRST_SLOTS - 1,
					 .count = table->count};
	larger.slots = calloc(larger.mask + (size_t)1, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; table->slots && i <= table->mask; i++) {
		const struct tw_frames_slot *slot = &table->slots[i];
		uint32_t at = first_slot(&larger, slot->address, slot->image);
		while (slot->function && larger.slots[at].function)
			at = (at + 1) & larger.mask;
		if (slot->function)
			larger.slots[at] = *slot;
	}
	free(table->slots);
	*table = larger;
	return true;
}

static uint32_t add(struct tw_frames_table *table, uint64_t address, uint32_t image, uint32_t function)
{
	uint32_t at = first_slot(table, address, image);
	while (table->slots[at].function)
		at = (at + 1) & table->mask;
	table->slots[at] = (struct tw_frames_slot){address, image, function + 1};
	table->count++;
	return function;
}

/* ---- names: the part before the arity, which a stack does not show ---- */

static size_t stem_bytes(const struct tw_name *name)
{
	const char *slash = name->lacks_arity ? NULL : strrchr(name->text, '/');
	return slash ? (size_t)(slash - name->text) : name->bytes;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash;
}

static uint32_t find_name(const struct tw_frames *frames, const char *text, size_t bytes)
{
	const struct tw_frames_table *table = &frames->names;
	uint64_t hash = hash_text(text, bytes);
	for (uint32_t at = first_slot(table, hash, 0); table->slots[at].function; at = (at + 1) & table->mask) {
		uint32_t number = table->slots[at].function - 1;
		const struct tw_name *name = &frames->places->names[number];
		if (table->slots[at].address == hash && stem_bytes(name) == bytes &&
		    memcmp(name->text, text, bytes) == 0)
			return number;
	}
	return TW_PLACES_NONE;
}

static bool add_names(struct tw_frames *frames)
{
	for (; frames->named < frames->places->function_count; frames->named++) {
		const struct tw_name *name = &frames->places->names[frames->named];
		if (!make_space(&frames->names))
			return false;
		if (frames->named >= TW_PLACES_FIRST)
			add(&frames->names, hash_text(name->text, stem_bytes(name)), 0, frames->named);
	}
	return make_space(&frames->names);
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
	struct tw_frames_table *table = &frames->addresses;
	if (!make_space(table))
		return TW_PLACES_NONE;
	for (uint32_t at = first_slot(table, address, image); table->slots[at].function; at = (at + 1) & table->mask) {
		if (table->slots[at].address == address && table->slots[at].image == image)
			return table->slots[at].function - 1;
	}
	uint32_t function = name_function(frames, image, address);
	return function == TW_PLACES_NONE ? function : add(table, address, image, function);
}

void tw_frames_free(struct tw_frames *frames)
{
	free(frames->addresses.slots);
	free(frames->names.slots);
	*frames = (struct tw_frames){0};
}
