/* SPDX-License-Identifier: Apache-2.0 */
/* loudest.c - the function that makes most events: consumer.h. */
#include "base/export.h"
#include "pipeline/format/definitions.h"
#include "pipeline/recorder/demote.h"
#include "pipeline/recorder/recorder.h"

#include <stdio.h>
#include <string.h>

/* A definition that is looked for by its number, which is its first field. */
struct wanted {
	uint32_t type, id;
	const uint8_t *payload; /* in the member's memory */
	size_t bytes;
};

/* The member may write to its log meanwhile: what is read of it is copied, and checked. */
static bool find(const struct tw_rs *rs, uint32_t image, struct wanted *wanted)
{
	uint64_t at = 0;
	const void *payload;
	uint32_t type, id;
	size_t bytes;
	int found;

	while ((found = tw_rs_defs_next(rs, image, &at, &type, &payload, &bytes))) {
		if (found < 0 || type != wanted->type || bytes < sizeof id)
			continue;
		memcpy(&id, payload, sizeof id);
		if (id != wanted->id)
			continue;
		wanted->payload = payload;
		wanted->bytes = bytes;
		return true;
	}
	return false;
}

/* The head of a definition.  False: it is not there, or too short. */
static bool take(const struct tw_rs *rs, uint32_t image, struct wanted *wanted, void *head, size_t head_bytes)
{
	if (!find(rs, image, wanted) || wanted->bytes < head_bytes)
		return false;
	memcpy(head, wanted->payload, head_bytes);
	return true;
}

/* Appends a name that follows the head, without control characters. */
static size_t append(char *out, size_t capacity, size_t used, const struct wanted *from, size_t head_bytes,
		     size_t name_bytes)
{
	for (size_t i = 0; i < name_bytes && head_bytes + i < from->bytes && used + 1 < capacity; i++) {
		uint8_t c = from->payload[head_bytes + i];

		out[used++] = c < ' ' || c == 0x7f ? '?' : (char)c;
	}
	out[used] = '\0';
	return used;
}

static bool name_place(const struct tw_rs *rs, uint32_t image, uint32_t place_id, char *out, size_t capacity)
{
	struct wanted place_wanted = {.type = TW_DEF_PLACE, .id = place_id}, function_wanted, module_wanted;
	struct tw_def_function function;
	struct tw_def_module module;
	struct tw_def_place place;
	size_t used;

	if (!take(rs, image, &place_wanted, &place, sizeof place))
		return false;
	function_wanted = (struct wanted){.type = TW_DEF_FUNCTION, .id = place.function_id};
	if (!take(rs, image, &function_wanted, &function, sizeof function))
		return false;
	module_wanted = (struct wanted){.type = TW_DEF_MODULE, .id = function.module_id};
	if (!take(rs, image, &module_wanted, &module, sizeof module))
		return false;
	used = append(out, capacity, 0, &module_wanted, sizeof module, module.name_bytes);
	if (used + 1 < capacity)
		out[used++] = ':';
	append(out, capacity, used, &function_wanted, sizeof function, function.name_bytes);
	return true;
}

TW_API bool tw_recorder_loudest(struct tw_recorder *recorder, struct tw_recorder_loudest *out)
{
	struct tw_writer *writer = &recorder->writer;
	const struct tw_rs *rs = &writer->rs;
	uint32_t place;

	if (!writer->demote) {
		writer->demote = tw_demote_create();
		return false;
	}
	/* Places are those of one process, and its definitions go with it: an image that was given back has no lease. */
	return tw_rs_image_count(rs) == 1 && tw_rs_image(rs, 0)->lease &&
	       tw_demote_loudest(writer->demote, tw_rs_image(rs, 0)->lease, &place, &out->percent) &&
	       name_place(rs, 0, place, out->function, sizeof out->function);
}
