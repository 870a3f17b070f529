/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever a definitions block holds, the catalog accepts sound ones and stays consistent.  Method: the bytes
 * are two blocks, divided at the first byte; everything that was accepted is checked.
 */
#include "base/assert.h"
#include "pipeline/format/catalog.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static size_t looked_at;

static void look(const char *text)
{
	looked_at += text ? strlen(text) : 0;
}

static void look_at_all(const struct tw_catalog *catalog)
{
	const struct tw_capture_module *module;
	const struct tw_capture_function *function;
	const struct tw_capture_place *place;
	const struct tw_capture_tracee *tracee;
	const struct tw_capture_session *session;
	const struct tw_catalog_text *text;

	for (uint32_t at = 0; (module = tw_catalog_next(&catalog->modules, &at));) {
		look(module->name), look(module->path), look(module->soname);
		for (size_t i = 0; i < module->build_id_bytes; i++)
			looked_at += module->build_id[i];
	}
	for (uint32_t at = 0; (function = tw_catalog_next(&catalog->functions, &at));) {
		look(function->name), look(function->module ? function->module->name : NULL);
		TW_ASSERT(tw_catalog_find(&catalog->functions, function->function_id) == function);
	}
	for (uint32_t at = 0; (place = tw_catalog_next(&catalog->places, &at));)
		look(place->function ? place->function->name : NULL), look(place->caller ? place->caller->name : NULL);
	for (uint32_t at = 0; (tracee = tw_catalog_next(&catalog->tracees, &at));)
		look(tracee->name);
	for (uint32_t at = 0; (session = tw_catalog_next(&catalog->sessions, &at));)
		look(session->name);
	for (uint32_t at = 0; (text = tw_catalog_next(&catalog->atoms, &at));)
		look(text->text);
	for (uint32_t at = 0; (text = tw_catalog_next(&catalog->notes, &at));)
		look(text->text);
	look(catalog->program), look(catalog->command), look(catalog->host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_catalog catalog = {0};
	size_t cut;

	if (!bytes)
		return 0;
	cut = bytes * data[0] / 256;
	cut = cut ? cut : 1;
	tw_catalog_add(&catalog, data + 1, cut - 1);
	tw_catalog_add(&catalog, data + cut, bytes - cut);
	tw_catalog_finish(&catalog);
	look_at_all(&catalog);
	tw_catalog_fini(&catalog);
	return 0;
}
