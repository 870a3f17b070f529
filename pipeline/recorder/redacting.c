/* SPDX-License-Identifier: Apache-2.0 */
/* redacting.c - which layout a record has: by the image's log of definitions, which is read as far as it goes each time. */
#include "pipeline/recorder/redacting.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "base/map.h"
#include "pipeline/codec/codec.h"
#include "pipeline/block/redact.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"

/* The state of an image. */
struct image {
	uint64_t lease;
	uint64_t defs_at;	 /* the log is read up to there */
	struct tw_map functions; /* of places */
	struct tw_map layouts;	 /* of functions */
	struct tw_layout **table;
	size_t count, capacity;
};

struct tw_redacting {
	struct tw_redact *redact;
	struct image *images[TW_RS_IMAGES_MAX]; /* NULL: none yet */
};

int tw_redacting_create(const char *config, struct tw_redacting **out)
{
	struct tw_redact *redact;
	int error = tw_redact_create_lines(config ? config : "", &redact);

	*out = NULL;
	if (error || !redact)
		return error;
	*out = calloc(1, sizeof **out);
	if (!*out) {
		tw_redact_destroy(redact);
		return TW_ENOMEM;
	}
	(*out)->redact = redact;
	return 0;
}

static void forget(struct image *image)
{
	for (size_t i = 0; i < image->count; i++)
		tw_layout_destroy(image->table[i]);
	free(image->table);
	tw_map_fini(&image->functions);
	tw_map_fini(&image->layouts);
	*image = (struct image){0};
}

void tw_redacting_destroy(struct tw_redacting *redacting)
{
	if (!redacting)
		return;
	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		if (redacting->images[i])
			forget(redacting->images[i]);
		free(redacting->images[i]);
	}
	tw_redact_destroy(redacting->redact);
	free(redacting);
}

/* A layout that cannot be parsed is one that no reader can use: its strings are words for all. */
static int take_layout(struct image *image, const uint8_t *payload, size_t bytes)
{
	struct tw_def_layout def;
	struct tw_layout *layout;
	int error;

	memcpy(&def, payload, sizeof def);
	if (def.text_bytes > bytes - sizeof def || tw_map_get(&image->layouts, def.function_id) != TW_MAP_NONE)
		return 0;
	error = tw_layout_parse((const char *)payload + sizeof def, def.text_bytes, &layout);
	if (error)
		return error == TW_ENOMEM ? error : 0;
	if (!tw_grow(image->table, image->count, image->capacity) ||
	    !tw_map_put(&image->layouts, def.function_id, (uint32_t)image->count)) {
		tw_layout_destroy(layout);
		return TW_ENOMEM;
	}
	image->table[image->count++] = layout;
	return 0;
}

static int take_place(struct image *image, const uint8_t *payload)
{
	struct tw_def_place def;

	memcpy(&def, payload, sizeof def);
	if (def.function_id >= TW_MAP_NONE || tw_map_get(&image->functions, def.place_id) != TW_MAP_NONE)
		return 0;
	return tw_map_put(&image->functions, def.place_id, def.function_id) ? 0 : TW_ENOMEM;
}

/* The program may change its log at any time: what is read is copied first, once. */
static int take_definition(struct image *image, uint32_t type, const void *payload, size_t bytes)
{
	uint8_t copy[sizeof(struct tw_def_layout) + TW_LAYOUT_TEXT_BYTES_MAX];

	if (bytes > sizeof copy)
		return 0;
	memcpy(copy, payload, bytes);
	if (type == TW_DEF_LAYOUT && bytes >= sizeof(struct tw_def_layout))
		return take_layout(image, copy, bytes);
	return type == TW_DEF_PLACE && bytes >= sizeof(struct tw_def_place) ? take_place(image, copy) : 0;
}

/* NULL: no memory. */
static struct image *read_log(struct tw_redacting *redacting, const struct tw_rs *rs, uint32_t index)
{
	struct image *image = redacting->images[index];
	uint64_t lease = tw_rs_image(rs, index)->lease;
	int found = 1, error = 0;

	if (!image)
		image = redacting->images[index] = calloc(1, sizeof *image);
	if (!image)
		return NULL;
	if (image->lease != lease)
		forget(image);
	image->lease = lease;
	while (found && !error) {
		uint64_t next = image->defs_at;
		const void *payload;
		uint32_t type;
		size_t bytes;

		found = tw_rs_defs_next(rs, index, &next, &type, &payload, &bytes);
		if (found > 0)
			error = take_definition(image, type, payload, bytes);
		/* The definition is taken again at the next try. */
		image->defs_at = error ? image->defs_at : next;
	}
	return error ? NULL : image;
}

/* NULL: it has none. */
static const struct tw_layout *layout_of(const struct image *image, uint64_t head)
{
	uint32_t function =
		tw_event_names_place(head) ? tw_map_get(&image->functions, TW_RB_HEAD_ID(head)) : TW_MAP_NONE;
	uint32_t number = function != TW_MAP_NONE ? tw_map_get(&image->layouts, function) : TW_MAP_NONE;

	return number != TW_MAP_NONE ? image->table[number] : NULL;
}

int tw_redacting_records(struct tw_redacting *redacting, const struct tw_rs *rs, uint32_t index, uint8_t *raw,
			 uint32_t bytes)
{
	struct image *image = read_log(redacting, rs, index);
	uint32_t at = 0;

	if (!image)
		return TW_ENOMEM;
	/* Behind an invalid record nothing is stored. */
	for (uint32_t from = 0; tw_record_next(raw, bytes, &at); from = at) {
		uint64_t head = tw_record_head(raw + from);

		if (TW_RB_HEAD_BYTES(head) >= TW_CODEC_HEAD_BYTES)
			tw_redact_record(redacting->redact, layout_of(image, head), raw + from);
	}
	return 0;
}

void tw_redacting_definition(struct tw_redacting *redacting, uint32_t type, uint8_t *payload, size_t bytes)
{
	tw_redact_definition(redacting->redact, type, payload, bytes);
}

uint64_t tw_redacting_count(const struct tw_redacting *redacting)
{
	return redacting ? tw_redact_count(redacting->redact) : 0;
}
