/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - trace messages with the names that all views show. */
#include "views/names/messages.h"
#include "views/names/names.h"
#include "views/names/typed.h"

/* Atoms have at most 255 characters. */
static struct tw_term atom_of(const char *name)
{
	struct tw_term atom = tw_term_atom_z(name);
	return tw_term_is_none(atom) ? tw_term_atom(name, tw_utf8_part(name, strnlen(name, 255))) : atom;
}

static bool put_part(struct tw_message_form *form, struct tw_message_part *part)
{
	const struct tw_named_message *message = (const struct tw_named_message *)form;
	const struct tw_capture_function *function = part->from->place ? part->from->place->function : NULL;
	const struct tw_layout *layout = tw_typed_layout(message->capture, part->from->event);
	switch (part->what) {
	case TW_MESSAGE_FUNCTION:
		if (!function)
			return false;
		part->elements[0] = function->module ? atom_of(function->module->name) : tw_term_atom_z("?");
		part->elements[1] = atom_of(tw_name_shown(function->name));
		return true;
	case TW_MESSAGE_ARGUMENTS:
		if (layout)
			part->elements[0] = tw_typed_arguments_term(part->arena, layout, part->words, part->word_count);
		return layout != NULL;
	case TW_MESSAGE_VALUE:
		if (layout)
			part->elements[0] = tw_typed_result_term(part->arena, layout, part->words, part->word_count);
		return layout != NULL;
	case TW_MESSAGE_ADDRESS: part->elements[0] = tw_term_atom_z("undefined"); return true;
	default: return false;
	}
}

void tw_named_message_init(struct tw_named_message *message, const struct tw_capture *capture, int stamp)
{
	*message = (struct tw_named_message){.form = {.part = put_part, .stamp = stamp, .is_view = true},
					     .capture = capture};
}
