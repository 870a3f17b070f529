/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.c - parses definitions. Their lengths are not trusted. */
#include "pipeline/format/catalog_inside.h"
#include "base/grow.h"
#include "base/limits.h"
#include "base/error.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/format.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(TW_CAPTURE_ARITY_UNKNOWN == TW_DEF_ARITY_UNKNOWN, "the public name");
_Static_assert((int)TW_CAPTURE_SLOT == TW_PLACE_SLOT && (int)TW_CAPTURE_DECLARED == TW_PLACE_DECLARED &&
		       (int)TW_CAPTURE_ENTRY == TW_PLACE_ENTRY,
	       "the kinds too");

/* Items hold ids until tw_catalog_finish() resolves them to pointers. */
struct function_item {
	struct tw_capture_function item;
	uint32_t module_id;
};

struct place_item {
	struct tw_capture_place item;
	uint32_t function_id;
	uint32_t caller_id;
};

int tw_catalog_take_text(struct tw_catalog_input *input, size_t bytes, char **out)
{
	char *text;

	if (input->left < bytes)
		return TW_EFORMAT;
	text = malloc(bytes + 1);
	if (!text)
		return TW_ENOMEM;
	tw_catalog_take(input, text, bytes);
	text[bytes] = '\0';
	*out = text;
	return 0;
}

/* Takes an item and adds it. Returns 1 if the id was new. */
static int add(struct tw_catalog_table *table, uint64_t id, void *item)
{
	if (tw_map_get(&table->by_id, id) != TW_MAP_NONE)
		return 0;
	if (!tw_grow(table->items, table->count, table->capacity))
		return TW_ENOMEM;
	if (!tw_map_put(&table->by_id, id, table->count))
		return TW_ENOMEM;
	table->items[table->count++] = item;
	return 1;
}

int tw_catalog_add_or_free(struct tw_catalog_table *table, uint64_t id, void *item, int error,
			   void (*free_item)(void *))
{
	if (!error)
		error = add(table, id, item);
	if (error <= 0)
		free_item(item);
	return error < 0 ? error : 0;
}

int tw_catalog_add_copy(struct tw_catalog_table *table, uint64_t id, const void *from, size_t bytes)
{
	void *item = malloc(bytes);

	if (!item)
		return TW_ENOMEM;
	memcpy(item, from, bytes);
	return tw_catalog_add_or_free(table, id, item, 0, free);
}

static int add_image(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_image def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	if (catalog->program)
		return 0;
	error = tw_catalog_take_text(input, def.program_bytes, &catalog->program);
	if (!error)
		error = tw_catalog_take_text(input, def.command_bytes, &catalog->command);
	if (!error) {
		catalog->command_bytes = def.command_bytes;
		error = tw_catalog_take_text(input, def.host_bytes, &catalog->host);
	}
	return error;
}

static int add_node(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	char *name = NULL, *shown = NULL;
	struct tw_def_node def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	error = tw_catalog_take_text(input, def.name_bytes, &name);
	if (!error)
		error = tw_catalog_take_text(input, def.shown_bytes, &shown);
	/* Merging adds a second one, which has no name. */
	if (!error && *name && !catalog->node_name) {
		catalog->node_name = name;
		name = NULL;
	}
	if (!error && *shown && !catalog->node_shown) {
		catalog->node_shown = shown;
		shown = NULL;
	}
	free(name);
	free(shown);
	return error;
}

static void free_module(void *item)
{
	struct tw_capture_module *module = item;

	free((void *)(uintptr_t)module->name);
	free((void *)(uintptr_t)module->path);
	free((void *)(uintptr_t)module->soname);
	free((void *)(uintptr_t)module->build_id);
	free(module);
}

static int add_module(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_module *module;
	struct tw_def_module def;
	char *build_id = NULL;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	module = calloc(1, sizeof *module);
	if (!module)
		return TW_ENOMEM;
	module->module_id = def.module_id;
	module->is_declared = def.is_declared != 0;
	module->base_address = def.base_address;
	module->end_address = def.end_address;
	error = tw_catalog_take_text(input, def.name_bytes, (char **)&module->name);
	if (!error)
		error = tw_catalog_take_text(input, def.path_bytes, (char **)&module->path);
	if (!error)
		error = tw_catalog_take_text(input, def.soname_bytes, (char **)&module->soname);
	if (!error)
		error = tw_catalog_take_text(input, def.build_id_bytes, &build_id);
	module->build_id = (const uint8_t *)build_id;
	module->build_id_bytes = def.build_id_bytes;
	return tw_catalog_add_or_free(&catalog->modules, def.module_id, module, error, free_module);
}

static void free_function(void *item)
{
	struct function_item *function = item;

	free((void *)(uintptr_t)function->item.name);
	free(function);
}

static int add_function(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct function_item *function;
	struct tw_def_function def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	function = calloc(1, sizeof *function);
	if (!function)
		return TW_ENOMEM;
	function->item.function_id = def.function_id;
	function->item.arity = def.arity;
	function->item.address = def.address;
	function->module_id = def.module_id;
	error = tw_catalog_take_text(input, def.name_bytes, (char **)&function->item.name);
	return tw_catalog_add_or_free(&catalog->functions, def.function_id, function, error, free_function);
}

static int add_place(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct place_item place = {0};
	struct tw_def_place def;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	place.item.place_id = def.place_id;
	place.item.kind = def.kind & ~TW_PLACE_HAS_NO_END;
	place.item.has_no_end = def.kind & TW_PLACE_HAS_NO_END;
	place.item.address = def.address;
	place.function_id = def.function_id;
	place.caller_id = def.caller_module_id;
	return tw_catalog_add_copy(&catalog->places, def.place_id, &place, sizeof place);
}

static void free_session(void *item)
{
	struct tw_capture_session *session = item;

	free((void *)(uintptr_t)session->name);
	free(session);
}

static int add_session(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_session *session;
	const struct tw_capture_session *known;
	struct tw_def_session def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	session = calloc(1, sizeof *session);
	if (!session)
		return TW_ENOMEM;
	session->session_index = def.session_index;
	session->session_id = def.session_id;
	known = tw_catalog_find(&catalog->sessions, def.session_index);
	session->has_returns = def.flags & TW_SESSION_HAS_RETURNS;
	error = tw_catalog_take_text(input, def.name_bytes, (char **)&session->name);
	if (known && !error)
		((struct tw_capture_session *)(uintptr_t)known)->has_returns |= session->has_returns;
	return tw_catalog_add_or_free(&catalog->sessions, def.session_index, session, error, free_session);
}

static void free_text(void *item)
{
	struct tw_catalog_text *text = item;

	free(text->text);
	free(text);
}

static int add_text(struct tw_catalog_table *table, uint64_t id, size_t bytes, struct tw_catalog_input *input)
{
	struct tw_catalog_text *text = calloc(1, sizeof *text);
	int error;

	if (!text)
		return TW_ENOMEM;
	text->bytes = bytes;
	error = tw_catalog_take_text(input, bytes, &text->text);
	return tw_catalog_add_or_free(table, id, text, error, free_text);
}

static int add_atom(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_atom def;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	return add_text(&catalog->atoms, def.atom_id, def.text_bytes, input);
}

/* Notes have no ids: notes with the same text are one. */
static int add_note(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_note def;

	if (!tw_catalog_take(input, &def, sizeof def) || input->left < def.text_bytes)
		return TW_EFORMAT;
	for (uint32_t i = 0; i < catalog->notes.count; i++) {
		const struct tw_catalog_text *note = catalog->notes.items[i];

		if (note->bytes == def.text_bytes && memcmp(note->text, input->at, note->bytes) == 0)
			return 0;
	}
	/* Each is compared with all others; more than 1,000 are of no use to people. */
	return catalog->notes.count < 1000 ? add_text(&catalog->notes, catalog->notes.count, def.text_bytes, input) : 0;
}

static void free_layout(void *item)
{
	tw_layout_destroy(item);
}

/* A layout that cannot be read is ignored. */
static int add_layout(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_layout *layout;
	struct tw_def_layout def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def) || input->left < def.text_bytes)
		return TW_EFORMAT;
	error = tw_layout_parse((const char *)input->at, def.text_bytes, &layout);
	if (error)
		return error == TW_ENOMEM ? error : 0;
	error = add(&catalog->layouts, def.function_id, layout);
	if (error <= 0)
		tw_layout_destroy(layout);
	return error < 0 ? error : 0;
}

static int add_descriptor(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_descriptor def;

	if (!tw_catalog_take(input, &def, sizeof def) || input->left < def.word_bytes || def.word_bytes % 8)
		return TW_EFORMAT;
	return add_text(&catalog->descriptors, def.fd, def.word_bytes, input);
}

static void free_pointer(void *item)
{
	struct tw_capture_pointer *pointer = item;

	free((void *)(uintptr_t)pointer->module);
	free((void *)(uintptr_t)pointer->function);
	free(pointer);
}

/* Pointers have no ids; the same one may be defined in several segments. */
static int add_pointer(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_pointer *pointer;
	struct tw_def_pointer def;
	int error;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	pointer = calloc(1, sizeof *pointer);
	if (!pointer)
		return TW_ENOMEM;
	pointer->is_stream = def.is_stream;
	error = tw_catalog_take_text(input, def.module_bytes, (char **)&pointer->module);
	if (!error)
		error = tw_catalog_take_text(input, def.function_bytes, (char **)&pointer->function);
	for (uint32_t i = 0; !error && i < catalog->pointers.count; i++) {
		const struct tw_capture_pointer *known = catalog->pointers.items[i];

		if (!strcmp(known->module, pointer->module) && !strcmp(known->function, pointer->function)) {
			free_pointer(pointer);
			return 0;
		}
	}
	if (!error)
		error = add(&catalog->pointers, catalog->pointers.count, pointer);
	if (error <= 0)
		free_pointer(pointer);
	return error < 0 ? error : 0;
}

static int add_end(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_end def;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	return tw_catalog_add_copy(&catalog->ends, def.lease, &def, sizeof def);
}

/* There is one; of a merged capture each image may have one. */
static int add_trigger(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_trigger def;

	if (!tw_catalog_take(input, &def, sizeof def) || input->left < def.reason_bytes)
		return TW_EFORMAT;
	if (catalog->trigger.reason)
		return 0;
	catalog->trigger.reason = strndup((const char *)input->at, def.reason_bytes);
	catalog->trigger.ns = def.ticks;
	catalog->trigger.process_id = def.process_id;
	catalog->trigger.thread_id = def.thread_id;
	catalog->trigger.call_ns = tw_def_trigger_call_ticks(&def);
	return catalog->trigger.reason ? 0 : TW_ENOMEM;
}

/* There is one, of the last process. */
static int add_crash(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_crash def;

	if (!tw_catalog_take(input, &def, sizeof def) || !def.frame_count ||
	    input->left < def.frame_count * sizeof(uint64_t))
		return TW_EFORMAT;
	if (catalog->crash)
		return 0;
	catalog->crash = malloc(sizeof def + def.frame_count * sizeof(uint64_t));
	if (!catalog->crash)
		return TW_ENOMEM;
	*catalog->crash = def;
	memcpy(catalog->crash + 1, input->at, def.frame_count * sizeof(uint64_t));
	return 0;
}

static int add_record(struct tw_catalog *catalog, uint32_t type, struct tw_catalog_input *input)
{
	switch (type) {
	case TW_DEF_IMAGE: return add_image(catalog, input);
	case TW_DEF_MODULE: return add_module(catalog, input);
	case TW_DEF_FUNCTION: return add_function(catalog, input);
	case TW_DEF_PLACE: return add_place(catalog, input);
	case TW_DEF_ATOM: return add_atom(catalog, input);
	case TW_DEF_TRACEE: return tw_catalog_tracee(catalog, input);
	case TW_DEF_SESSION: return add_session(catalog, input);
	case TW_DEF_NOTE: return add_note(catalog, input);
	case TW_DEF_LAYOUT: return add_layout(catalog, input);
	case TW_DEF_DESCRIPTOR: return add_descriptor(catalog, input);
	case TW_DEF_POINTER: return add_pointer(catalog, input);
	case TW_DEF_NODE: return add_node(catalog, input);
	case TW_DEF_END: return add_end(catalog, input);
	case TW_DEF_TRIGGER: return add_trigger(catalog, input);
	case TW_DEF_CRASH: return add_crash(catalog, input);
	case TW_DEF_COUNTED: return tw_catalog_counted(catalog, input);
	case TW_DEF_COUNTS: return tw_catalog_counts(catalog, input, false);
	case TW_DEF_RECORDED_COUNTS: return tw_catalog_counts(catalog, input, true);
	case TW_DEF_AGGREGATES: return tw_catalog_aggregates(catalog, input);
	case TW_DEF_PART: return tw_catalog_part(catalog, input);
	case TW_DEF_LINE: return tw_catalog_line(catalog, input);
	case TW_DEF_WHOLE_PLACE: return tw_catalog_whole_place(catalog, input);
	default: return 0; /* of a later version, or the clock, which blocks give more exactly */
	}
}

static uint32_t count_items(const struct tw_catalog *catalog)
{
	return catalog->modules.count + catalog->functions.count + catalog->places.count + catalog->tracees.count +
	       catalog->sessions.count + catalog->atoms.count + catalog->notes.count + catalog->layouts.count +
	       catalog->descriptors.count + catalog->pointers.count + catalog->ends.count + catalog->counted.count +
	       catalog->counts.count + catalog->aggregates.count + catalog->old_names.count + catalog->lines.count +
	       catalog->whole_places.count;
}

int tw_catalog_add(struct tw_catalog *catalog, const uint8_t *bytes, size_t count)
{
	struct tw_catalog_input all = {bytes, count};

	while (all.left) {
		uint32_t items = count_items(catalog);
		struct tw_definition_head head;
		struct tw_catalog_input record;
		size_t whole;
		int error;

		if (!tw_catalog_take(&all, &head, sizeof head) || head.payload_bytes > all.left)
			return TW_EFORMAT;
		record = (struct tw_catalog_input){all.at, head.payload_bytes};
		whole = ((size_t)head.payload_bytes + 7) & ~(size_t)7;
		if (whole > all.left)
			return TW_EFORMAT;
		if (whole + sizeof head > TW_CATALOG_BYTES_MAX - catalog->record_bytes)
			return TW_ELIMIT;
		error = add_record(catalog, head.type, &record);
		if (error)
			return error;
		/* Only what takes memory counts: each segment repeats definitions, and later versions have further types. */
		if (count_items(catalog) != items)
			catalog->record_bytes += whole + sizeof head;
		all.at += whole;
		all.left -= whole;
	}
	return 0;
}

void tw_catalog_finish(struct tw_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->functions.count; i++) {
		struct function_item *function = catalog->functions.items[i];

		function->item.module = tw_catalog_find(&catalog->modules, function->module_id);
	}
	for (uint32_t i = 0; i < catalog->places.count; i++) {
		struct place_item *place = catalog->places.items[i];

		place->item.function = tw_catalog_find(&catalog->functions, place->function_id);
		if (place->item.kind == TW_PLACE_SLOT)
			place->item.caller = tw_catalog_find(&catalog->modules, place->caller_id);
	}
}

const void *tw_catalog_find(const struct tw_catalog_table *table, uint64_t id)
{
	uint32_t at = tw_map_get(&table->by_id, id);

	return at == TW_MAP_NONE ? NULL : table->items[at];
}

uint64_t tw_catalog_end(const struct tw_catalog *catalog, uint64_t lease)
{
	uint32_t at = tw_map_get(&catalog->ends.by_id, lease);

	return at == TW_MAP_NONE ? 0 : ((const struct tw_def_end *)catalog->ends.items[at])->ticks;
}

const void *tw_catalog_next(const struct tw_catalog_table *table, uint32_t *at)
{
	return *at < table->count ? table->items[(*at)++] : NULL;
}

static void fini_table(struct tw_catalog_table *table, void (*free_item)(void *))
{
	for (uint32_t i = 0; i < table->count; i++)
		free_item(table->items[i]);
	free(table->items);
	tw_map_fini(&table->by_id);
}

void tw_catalog_fini(struct tw_catalog *catalog)
{
	fini_table(&catalog->modules, free_module);
	fini_table(&catalog->functions, free_function);
	fini_table(&catalog->places, free);
	fini_table(&catalog->tracees, tw_catalog_free_tracee);
	fini_table(&catalog->sessions, free_session);
	fini_table(&catalog->atoms, free_text);
	free((char *)(uintptr_t)catalog->trigger.reason);
	free(catalog->crash);
	fini_table(&catalog->notes, free_text);
	fini_table(&catalog->layouts, free_layout);
	fini_table(&catalog->descriptors, free_text);
	fini_table(&catalog->pointers, free_pointer);
	fini_table(&catalog->ends, free);
	fini_table(&catalog->counted, free);
	fini_table(&catalog->counts, free);
	fini_table(&catalog->aggregates, free);
	fini_table(&catalog->old_names, free);
	fini_table(&catalog->lines, tw_catalog_free_line);
	fini_table(&catalog->whole_places, free);
	free(catalog->part);
	free(catalog->program);
	free(catalog->command);
	free(catalog->host);
	free(catalog->node_name);
	free(catalog->node_shown);
}
