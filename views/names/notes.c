/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - tells notes apart by their text. */
#include "views/names/notes.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES_MAX 1000
/* More are not told apart: they count as further ones. */
#define KNOWN_MAX 200

struct notes {
	const char *known[KNOWN_MAX];
	size_t known_count, shown, others;
	uint64_t refused;
	unsigned objects;	     /* that the refused functions are of */
	const char *note_of_refused; /* of the last of them */
};

/* The number of functions in a note about those of an object without an entry that can be traced (agent/plan_entries.c); 0: it is another note. */
static unsigned refused_by(const char *note)
{
	unsigned count = 0;
	const char *at = note;
	bool is_of_entries = (strstr(note, " not traced at ") && strstr(note, " functions --local --refused")) ||
			     (strstr(note, " traced only where ") && strstr(note, " functions --refused"));
	for (; is_of_entries && (isdigit((unsigned char)*at) || *at == ','); at++)
		count = *at == ',' ? count : count * 10 + (unsigned)(*at - '0');
	return strncmp(at, " function", 9) == 0 ? count : 0;
}

/* Is the note to be shown? */
static bool take_note(struct notes *notes, const char *note)
{
	for (size_t i = 0; i < notes->known_count; i++) {
		if (strcmp(notes->known[i], note) == 0)
			return false;
	}
	if (notes->known_count < KNOWN_MAX)
		notes->known[notes->known_count++] = note;
	unsigned refused = refused_by(note);
	notes->refused += refused;
	notes->objects += refused != 0;
	notes->note_of_refused = refused ? note : notes->note_of_refused;
	return !refused && !strstr(note, " its plan was not ready in time ");
}

static void tell_refused(const struct notes *notes, tw_notes_fn *fn, void *context)
{
	char text[256], functions[TW_FIGURE_BYTES];
	if (notes->objects == 1) {
		fn(context, notes->note_of_refused);
		return;
	}
	bool is_local = strstr(notes->note_of_refused, " --local ");
	snprintf(text, sizeof text,
		 "%s functions of %u objects that match are %s: `tracewheel functions %s--refused` says why",
		 tw_figure_count(functions, notes->refused), notes->objects,
		 is_local ? "not traced at their entries" : "traced only where other objects call them",
		 is_local ? "--local " : "");
	fn(context, text);
}

const char *tw_notes_of_redaction(const struct tw_capture *capture)
{
	const struct tw_capture_image *image;
	const char *note;
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)); i++) {
		for (uint32_t at = 0; (note = tw_capture_note_next(capture, image->image, &at));) {
			if (strstr(note, "that --redact names"))
				return note;
		}
	}
	return NULL;
}

bool tw_notes_is_untraced(const struct tw_capture *capture, const struct tw_capture_account *account)
{
	const struct tw_capture_image *image;
	const char *note;
	if (tw_missing_is_untraced(account))
		return true;
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)); i++) {
		for (uint32_t at = 0; (note = tw_capture_note_next(capture, image->image, &at));) {
			if (refused_by(note) || strstr(note, "another tracer"))
				return true;
		}
	}
	return false;
}

size_t tw_notes_each(const struct tw_capture *capture, size_t most, tw_notes_fn *fn, void *context)
{
	const struct tw_capture_image **images = malloc(IMAGES_MAX * sizeof *images);
	size_t count = images ? tw_names_images(capture, images, IMAGES_MAX) : 0;
	struct notes notes = {0};
	const char *note;
	for (size_t i = 0; i < count; i++) {
		uint32_t at = 0;
		while ((note = tw_capture_note_next(capture, images[i]->image, &at))) {
			if (!take_note(&notes, note))
				continue;
			if (notes.shown == most)
				notes.others++;
			else if (++notes.shown)
				fn(context, note);
		}
	}
	if (notes.refused)
		tell_refused(&notes, fn, context);
	free(images);
	return notes.others;
}

static void put_note(void *context, const char *note)
{
	tw_json_string(context, NULL, note);
}

void tw_notes_json(struct tw_json *json, const struct tw_capture *capture)
{
	tw_json_open(json, "notes", '[');
	tw_notes_each(capture, SIZE_MAX, put_note, json);
	tw_json_close(json, ']');
}
