/* SPDX-License-Identifier: Apache-2.0 */
/* typed_call.c - results with what the call has filled; whole calls as strace shows them. */
#include "views/names/names.h"
#include "views/names/typed_put.h"

#include <stdio.h>

/*
 * What a call has filled: (buf = "hello"); for JSON a member behind the value: "filled":{"buf":"hello"}.
 */
static void put_filled(struct tw_out *out, enum tw_typed_form form, struct tw_layout_reader *reader, bool is_first)
{
	static const struct {
		const char *open, *between, *close, *item_open, *equals, *item_close;
	} forms[] = {[TW_TYPED_TEXT] = {"(", ", ", ")", "", " = ", ""},
		     [TW_TYPED_JSON] = {",\"filled\":{", ",", "}", "", ":", ""}};
	struct tw_layout_item item;
	char number[16];
	bool is_open = false;
	while (tw_layout_next_filled(reader, &item)) {
		if (item.is_nothing)
			continue;
		snprintf(number, sizeof number, "$%u", reader->at - 1);
		const char *name = *item.value->name ? item.value->name : number;
		if (!is_open && !is_first && form == TW_TYPED_TEXT)
			tw_out_text(out, " ");
		tw_out_text(out, is_open ? forms[form].between : forms[form].open);
		tw_out_text(out, forms[form].item_open);
		if (form == TW_TYPED_JSON)
			tw_json_quote(out, name, strlen(name));
		else
			tw_out_name(out, name);
		tw_out_text(out, forms[form].equals);
		tw_typed_put_content(out, form, &item);
		tw_out_text(out, forms[form].item_close);
		tw_out_reserve(out);
		is_open = true;
	}
	tw_out_text(out, is_open ? forms[form].close : "");
}

bool tw_typed_has_more(const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	while (tw_layout_next_filled(&reader, &item))
		if (!item.is_nothing && item.value != &layout->result)
			return true;
	return tw_layout_error(layout, words, count) != 0;
}

/* -1 ENOENT, "/home", 5 (buf = "hello"). False: there is nothing to show. */
bool tw_typed_put_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			 const struct tw_layout_item *result, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	bool is_void = layout->result.type == 'v', is_more = tw_typed_has_more(layout, words, count);
	int error = tw_layout_error(layout, words, count);
	struct tw_layout_item content;
	if (is_void && !is_more)
		return false;
	if (layout->result.type == 'Z' && tw_layout_next_filled(&reader, &content) && content.text)
		tw_typed_put_string(out, form, &content);
	else if (!is_void)
		tw_typed_put_item(out, form, result);
	else if (form != TW_TYPED_TEXT)
		tw_typed_put_unknown(out, form);
	if (error) {
		tw_out_text(out, form == TW_TYPED_TEXT ? " " : ",\"errno\":");
		tw_typed_put_error(out, form, error);
	}
	put_filled(out, form, &reader, is_void);
	return true;
}

/* ---- as strace shows calls ---- */

static bool is_filled(const struct tw_layout_value *value)
{
	return value->type == 'M' || value->type == 'V' || value->type == 'Z';
}

/* A number that the call stored where an argument points: [16]. */
static void put_stored(struct tw_out *out, const struct tw_layout_item *content)
{
	bool is_number = content->value->type == 'V' && content->value->enumerators->value == 1;
	tw_out_text(out, is_number ? "[" : "");
	tw_typed_put_content(out, TW_TYPED_TEXT, content);
	tw_out_text(out, is_number ? "]" : "");
}

uint32_t tw_typed_call_arguments(struct tw_out *out, const struct tw_typed_call *call, uint32_t from)
{
	struct tw_layout_reader reader = {.layout = call->layout, .words = call->words, .word_count = call->count};
	struct tw_layout_reader filled = {.layout = call->layout,
					  .words = call->return_words,
					  .word_count = call->return_count};
	struct tw_layout_item item, content = {0};
	bool has_content = tw_layout_next_filled(&filled, &content);
	uint32_t index = 0;
	/* What a result points to comes first. */
	if (has_content && content.value == &call->layout->result)
		has_content = tw_layout_next_filled(&filled, &content);
	for (; tw_layout_next(&reader, &item); index++) {
		bool is_content = has_content && content.value == item.value;
		if (index >= from && is_filled(item.value) && !call->is_over) {
			tw_out_text(out, index ? ", " : "");
			return index;
		}
		if (index >= from && tw_layout_is_given(call->layout, item.value, call->words)) {
			tw_out_text(out, index > from ? ", " : "");
			if (is_content && content.text)
				put_stored(out, &content);
			else
				tw_typed_put_item(out, TW_TYPED_TEXT, &item);
			tw_out_reserve(out);
		}
		if (is_content)
			has_content = tw_layout_next_filled(&filled, &content);
	}
	if (call->layout->is_variadic && index >= from)
		tw_out_text(out, index > from ? ", ..." : "...");
	return index + 1;
}

void tw_typed_call_result(struct tw_out *out, const struct tw_typed_call *call)
{
	struct tw_layout_reader filled = {.layout = call->layout,
					  .words = call->return_words,
					  .word_count = call->return_count};
	int error = tw_layout_error(call->layout, call->return_words, call->return_count);
	struct tw_layout_item item, content;
	bool is_known = tw_layout_result(call->layout, call->return_words, call->return_count, &item);
	if (call->layout->result.type == 'Z' && tw_layout_next_filled(&filled, &content) && content.text)
		tw_typed_put_string(out, TW_TYPED_TEXT, &content);
	else if (is_known && call->layout->result.type != 'v')
		tw_typed_put_item(out, TW_TYPED_TEXT, &item);
	else
		tw_out_text(out, "?");
	if (error) {
		tw_out_text(out, " ");
		tw_typed_put_error(out, TW_TYPED_TEXT, error);
		tw_out_format(out, " (%s)", strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error");
	}
}
