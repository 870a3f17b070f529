/* SPDX-License-Identifier: Apache-2.0 */
/* when_values.c - the values of a call that conditions name. */
#include "views/folds/when.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/threads.h"
#include "views/names/typed.h"

#include <stdio.h>

static const struct tw_term none;

/* Erlang's true and false are 1 and 0, as those of C. */
static struct tw_term plain_of(struct tw_when *when, struct tw_term term)
{
	size_t bytes;
	const char *name = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;
	bool is_true = name && bytes == 4 && memcmp(name, "true", 4) == 0;
	bool is_false = name && bytes == 5 && memcmp(name, "false", 5) == 0;
	return is_true || is_false ? tw_term_integer(&when->values, is_true) : term;
}

static struct tw_term enumerator_of(struct tw_when *when, const struct tw_layout *layout, const char *name)
{
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct tw_layout_value *value = &layout->values[i];
		for (uint32_t k = 0; strchr("eng", value->type) && k < value->enumerator_count; k++)
			if (strncmp(value->enumerators[k].name, name, strlen(name)) == 0 &&
			    strchr(".", value->enumerators[k].name[strlen(name)]))
				return tw_term_integer(&when->values, value->enumerators[k].value);
	}
	return none;
}

/* The N-th element of a list of terms. */
static struct tw_term element_of(struct tw_term list, uint32_t number)
{
	while (tw_term_type(list) == TW_TYPE_CONS && --number)
		list = tw_term_tail(list);
	return tw_term_type(list) == TW_TYPE_CONS ? tw_term_head(list) : none;
}

static struct tw_term argument_of(struct tw_when *when, const struct tw_when_operand *operand,
				  const struct tw_capture_event *event)
{
	const struct tw_layout *layout = tw_typed_layout(when->capture, event);
	struct tw_message_payload payload;
	struct tw_layout_item item;
	struct tw_term term;
	if (event->kind != TW_CAPTURE_CALL)
		return none;
	tw_print_payload_take(event, &payload);
	if (layout && tw_typed_find_argument(layout, payload.words, payload.count, operand->number, operand->name,
					     operand->name ? strlen(operand->name) : 0, &item))
		return tw_typed_item_term(&when->values, &item);
	if (layout)
		return operand->name ? enumerator_of(when, layout, operand->name) : none;
	if (!operand->number || event->flags & TW_CAPTURE_FLAG_ARGS)
		return none;
	if (payload.has_terms)
		return tw_print_next_term(&payload, &term) ? plain_of(when, element_of(term, operand->number)) : none;
	return operand->number <= payload.count
		       ? tw_term_integer(&when->values, (int64_t)payload.words[operand->number - 1])
		       : none;
}

static struct tw_term result_of(struct tw_when *when, const struct tw_capture_event *event, bool is_errno)
{
	const struct tw_layout *layout = tw_typed_layout(when->capture, event);
	struct tw_message_payload payload;
	struct tw_layout_item item;
	struct tw_term term;
	if (event->kind != TW_CAPTURE_RETURN_FROM)
		return none;
	tw_print_payload_take(event, &payload);
	if (is_errno)
		return layout && layout->has_errno
			       ? tw_term_integer(&when->values, tw_layout_error(layout, payload.words, payload.count))
			       : none;
	if (layout)
		return tw_layout_result(layout, payload.words, payload.count, &item)
			       ? tw_typed_item_term(&when->values, &item)
			       : none;
	if (payload.has_terms)
		return tw_print_next_term(&payload, &term) ? plain_of(when, term) : none;
	return payload.count ? tw_term_integer(&when->values, (int64_t)payload.words[0]) : none;
}

struct tw_term tw_when_value(struct tw_when *when, const struct tw_when_operand *operand,
			     const struct tw_capture_event *event, const struct tw_when_end *end)
{
	const struct tw_capture_stream *stream;
	char name[TW_THREAD_NAME_BYTES];
	switch (operand->kind) {
	case TW_WHEN_ARGUMENT:
	case TW_WHEN_NAME: return event ? argument_of(when, operand, event) : none;
	case TW_WHEN_THREAD:
	case TW_WHEN_THREAD_NAME:
		stream = event ? tw_capture_stream(when->capture, event->stream) : NULL;
		if (!stream)
			return none;
		if (operand->kind == TW_WHEN_THREAD)
			return tw_term_integer(&when->values, stream->thread_id);
		tw_thread_name(when->capture, stream, name);
		return tw_term_string(&when->values, name, strlen(name));
	case TW_WHEN_DURATION: return end ? tw_term_unsigned(&when->values, end->duration_ns) : none;
	case TW_WHEN_EXCEPTION: return end && end->event ? tw_term_integer(&when->values, end->is_exception) : none;
	default: return end && end->event ? result_of(when, end->event, operand->kind == TW_WHEN_ERRNO) : none;
	}
}

/* ---- names ---- */

struct known {
	const char *names[10];
	size_t count;
};

static void note(struct known *known, const char *name)
{
	for (size_t i = 0; i < known->count; i++)
		if (strcmp(known->names[i], name) == 0)
			return;
	if (*name && known->count < sizeof known->names / sizeof *known->names)
		known->names[known->count++] = name;
}

static bool has_name(struct tw_when *when, const struct tw_layout *layout, const char *name, struct known *known)
{
	for (uint32_t i = 0; i < layout->count; i++) {
		if (strcmp(layout->values[i].name, name) == 0)
			return true;
		note(known, layout->values[i].name);
	}
	return !tw_term_is_none(enumerator_of(when, layout, name));
}

bool tw_when_has_name(struct tw_when *when, const char *name, char sentence[TW_WHEN_SENTENCE_BYTES])
{
	const struct tw_capture_place *place;
	struct tw_capture_info info;
	struct known known = {.count = 0};
	char clean[200];
	tw_capture_info(when->capture, &info);
	for (uint32_t image = 0; image < info.images; image++) {
		uint32_t at = 0;
		while ((place = tw_capture_place_next(when->capture, image, &at))) {
			const struct tw_layout *layout =
				place->function ? tw_capture_layout(when->capture, image, place->function->function_id)
						: NULL;
			if (layout && has_name(when, layout, name, &known))
				return true;
		}
	}
	clean[tw_clean(name, strlen(name), clean, sizeof clean - 1)] = 0;
	size_t used = (size_t)snprintf(sentence, TW_WHEN_SENTENCE_BYTES,
				       "no function of the capture has an argument '%s'%s", clean,
				       known.count ? ": there are"
						   : "; `record --args` records them by name, else they are $1, $2");
	for (size_t i = 0; i < known.count && used < TW_WHEN_SENTENCE_BYTES - 100; i++) {
		clean[tw_clean(known.names[i], strlen(known.names[i]), clean, 60)] = 0;
		used += (size_t)snprintf(sentence + used, TW_WHEN_SENTENCE_BYTES - used, "%s%s", i ? ", " : " ", clean);
	}
	if (known.count)
		snprintf(sentence + used, TW_WHEN_SENTENCE_BYTES - used,
			 ", and result, errno, exception, duration, thread, thread_name");
	return false;
}

/* ---- for people ---- */

const char *tw_when_describe(const struct tw_when *when, uint64_t left_out, char text[TW_WHEN_SENTENCE_BYTES])
{
	char figure[TW_FIGURE_BYTES], clean[400] = "";
	size_t used = 0;
	if (when->least_ns)
		used = (size_t)snprintf(text, TW_WHEN_SENTENCE_BYTES, "of %s or longer",
					tw_figure_duration(figure, when->least_ns));
	if (when->condition_count == 1)
		clean[tw_clean(when->texts[0], strlen(when->texts[0]), clean, sizeof clean - 1)] = 0;
	if (when->condition_count)
		used += (size_t)snprintf(text + used, TW_WHEN_SENTENCE_BYTES - used, "%swith %s", used ? " " : "",
					 when->condition_count == 1 ? clean : "the given conditions");
	used += (size_t)snprintf(text + used, TW_WHEN_SENTENCE_BYTES - used, " only: %s left out",
				 tw_figure_of(figure, left_out, "call is", "calls are"));
	if (when->unknown && !when->decided)
		snprintf(
			text + used, TW_WHEN_SENTENCE_BYTES - used,
			"; the capture holds the values that are named of none of them (record with --args, --returns)");
	return text;
}
