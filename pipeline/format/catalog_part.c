/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_part.c - definitions of parts of captures (tracewheel/cut.h). */
#include "base/error.h"
#include "pipeline/format/catalog_inside.h"
#include "pipeline/format/definitions.h"

#include <stdlib.h>

/* The first one counts. */
int tw_catalog_part(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_part def;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	if (catalog->part)
		return 0;
	catalog->part = malloc(sizeof def);
	if (!catalog->part)
		return TW_ENOMEM;
	*catalog->part = def;
	return 0;
}

void tw_catalog_free_line(void *item)
{
	struct tw_capture_line *line = item;

	free((void *)(uintptr_t)line->function);
	free((void *)(uintptr_t)line->file);
	free(line);
}

int tw_catalog_line(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_line *line;
	struct tw_def_line def;
	int error = 0;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	line = calloc(1, sizeof *line);
	if (!line)
		return TW_ENOMEM;
	line->address = def.address;
	line->line = def.line;
	line->is_return = def.is_return != 0;
	if (def.function_bytes)
		error = tw_catalog_take_text(input, def.function_bytes, (char **)&line->function);
	if (!error && def.file_bytes)
		error = tw_catalog_take_text(input, def.file_bytes, (char **)&line->file);
	return tw_catalog_add_or_free(&catalog->lines, def.address, line, error, tw_catalog_free_line);
}

int tw_catalog_whole_place(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_whole_place def;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	const struct tw_capture_whole_place place = {.place_id = def.place_id,
						     .is_moment = def.is_moment != 0,
						     .calls = def.calls};

	return tw_catalog_add_copy(&catalog->whole_places, def.place_id, &place, sizeof place);
}
