/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_tracees.c - definitions of processes and ports: what they are called, and what kind of process they are. */
#include "pipeline/format/catalog_inside.h"
#include "base/grow.h"
#include "base/error.h"
#include "pipeline/format/definitions.h"

#include <stdlib.h>
#include <string.h>

void tw_catalog_free_tracee(void *item)
{
	struct tw_capture_tracee *tracee = item;

	free((void *)(uintptr_t)tracee->name);
	free(tracee);
}

/* Readers may hold it: it stays in memory. */
static int keep_text(struct tw_catalog *catalog, char *text)
{
	struct tw_catalog_table *names = &catalog->old_names;

	if (!tw_grow(names->items, names->count, names->capacity))
		return TW_ENOMEM;
	names->items[names->count++] = text;
	return 0;
}

/* A later name of a process. */
static int rename_tracee(struct tw_catalog *catalog, struct tw_capture_tracee *known, struct tw_capture_tracee *later)
{
	if (!*later->name || strcmp(known->name, later->name) == 0)
		return 0;
	if (keep_text(catalog, (char *)(uintptr_t)known->name))
		return TW_ENOMEM;
	known->name = later->name;
	later->name = NULL;
	return 0;
}

#define ORIGIN_LINES 4

/* Lines as of struct tw_producer_origin.  Segments repeat what is known. */
static int take_origin(struct tw_catalog *catalog, struct tw_catalog_input *input, struct tw_capture_tracee *tracee,
		       size_t bytes)
{
	const char **const known[ORIGIN_LINES] = {&tracee->initial_call, &tracee->behaviour, &tracee->application,
						  &tracee->label};
	const char *lines[ORIGIN_LINES];
	char *text, *rest;
	bool is_new = false;
	int error = bytes ? tw_catalog_take_text(input, bytes, &text) : 0;

	if (!bytes || error)
		return error;
	rest = text;
	for (size_t i = 0; i < ORIGIN_LINES; i++) {
		lines[i] = strsep(&rest, "\n");
		lines[i] = lines[i] ? lines[i] : "";
		is_new = is_new || strcmp(lines[i], *known[i]) != 0;
	}
	error = is_new ? keep_text(catalog, text) : 0;
	if (error || !is_new)
		free(text);
	for (size_t i = 0; i < ORIGIN_LINES && is_new && !error; i++)
		*known[i] = lines[i];
	return error;
}

int tw_catalog_tracee(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_tracee *tracee, *known;
	struct tw_def_tracee def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	tracee = calloc(1, sizeof *tracee);
	if (!tracee)
		return TW_ENOMEM;
	tracee->tracee_id = def.tracee_id;
	tracee->thread_id = def.thread_id;
	tracee->pid_number = def.pid_number;
	tracee->pid_serial = def.pid_serial;
	tracee->is_port = def.kind == TW_TRACEE_PORT;
	tracee->initial_call = tracee->behaviour = tracee->application = tracee->label = "";
	error = tw_catalog_take_text(input, def.name_bytes, (char **)&tracee->name);
	known = (struct tw_capture_tracee *)(uintptr_t)tw_catalog_find(&catalog->tracees, def.tracee_id);
	if (!error && known)
		error = rename_tracee(catalog, known, tracee);
	error = tw_catalog_add_or_free(&catalog->tracees, def.tracee_id, tracee, error, tw_catalog_free_tracee);
	return error ? error : take_origin(catalog, input, known ? known : tracee, def.origin_bytes);
}
