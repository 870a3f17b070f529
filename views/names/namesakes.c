/* SPDX-License-Identifier: Apache-2.0 */
/* namesakes.c - sorts the functions of C++ and Rust by linkage name, to name each once, and then by readable name. */
#include "views/names/namesakes.h"
#include "views/names/names.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

struct tw_namesake {
	const char *module, *linkage; /* borrowed */
	char *shown;
};

static const struct tw_capture *capture_of_names;
static struct tw_namesakes namesakes_of_capture;
static bool is_made;

static int by_linkage(const void *a, const void *b)
{
	const struct tw_namesake *x = a, *y = b;
	int order = strcmp(x->linkage, y->linkage);
	return order ? order : strcmp(x->module, y->module);
}

static int by_shown(const void *a, const void *b)
{
	const struct tw_namesake *x = a, *y = b;
	int order = strcmp(x->shown, y->shown);
	return order ? order : strcmp(x->module, y->module);
}

bool tw_namesakes_add(struct tw_namesakes *namesakes, const char *module, const char *linkage)
{
	if (!tw_name_is_mangled(linkage))
		return true;
	if (!tw_grow(namesakes->list, namesakes->count, namesakes->capacity))
		return false;
	namesakes->list[namesakes->count++] = (struct tw_namesake){module, linkage, NULL};
	return true;
}

/* Keeps one of each linkage name, with its readable one. */
static size_t keep_named(struct tw_namesake *list, size_t count)
{
	size_t kept = 0;
	qsort(list, count, sizeof *list, by_linkage);
	for (size_t i = 0; i < count; i++) {
		if (kept && by_linkage(&list[kept - 1], &list[i]) == 0)
			continue;
		list[kept] = list[i];
		list[kept].shown = tw_name_demangled(list[kept].linkage);
		kept += list[kept].shown != NULL;
	}
	return kept;
}

/* Keeps those that share their readable name, by linkage name. */
static size_t keep_shared(struct tw_namesake *list, size_t count)
{
	size_t kept = 0;
	qsort(list, count, sizeof *list, by_shown);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && by_shown(&list[i], &list[end]) == 0; end++)
			;
		bool is_shared = end - i > 1;
		for (size_t j = i; j < end; j++) {
			free(list[j].shown);
			if (is_shared)
				list[kept++] = (struct tw_namesake){list[j].module, list[j].linkage, NULL};
		}
	}
	qsort(list, kept, sizeof *list, by_linkage);
	return kept;
}

void tw_namesakes_keep(struct tw_namesakes *namesakes)
{
	if (namesakes->count)
		namesakes->count = keep_shared(namesakes->list, keep_named(namesakes->list, namesakes->count));
}

bool tw_namesakes_have(const struct tw_namesakes *namesakes, const char *module, const char *linkage)
{
	const struct tw_namesake key = {module, linkage, NULL};
	return namesakes->count && bsearch(&key, namesakes->list, namesakes->count, sizeof key, by_linkage);
}

void tw_namesakes_free(struct tw_namesakes *namesakes)
{
	free(namesakes->list);
	*namesakes = (struct tw_namesakes){0};
}

/* ---- those of a capture ---- */

static bool add_all(struct tw_namesakes *namesakes, const struct tw_capture *capture)
{
	const struct tw_capture_function *function;
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	for (uint32_t image = 0; image < info.images; image++) {
		uint32_t at = 0;
		while ((function = tw_capture_function_next(capture, image, &at)))
			if (function->module && !tw_namesakes_add(namesakes, function->module->name, function->name))
				return false;
	}
	return true;
}

void tw_namesakes_of(const struct tw_capture *capture)
{
	capture_of_names = capture;
	tw_namesakes_free(&namesakes_of_capture);
	is_made = false;
}

bool tw_namesakes_has(const struct tw_capture_function *function)
{
	if (!capture_of_names || !function->module)
		return false;
	if (!is_made) {
		is_made = true;
		if (add_all(&namesakes_of_capture, capture_of_names))
			tw_namesakes_keep(&namesakes_of_capture);
		else
			tw_namesakes_free(&namesakes_of_capture);
	}
	return tw_namesakes_have(&namesakes_of_capture, function->module->name, function->name);
}
