/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   any text is a layout or is refused; any payload can be read by any layout.  Method: the text up to a zero
 * byte, the rest as words.
 */
#include "base/assert.h"
#include "pipeline/hit/arguments.h"
#include "tracewheel/error.h"
#include "tracewheel/layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint8_t *zero = memchr(data, 0, bytes);
	size_t text_bytes = zero ? (size_t)(zero - data) : bytes;
	size_t rest = zero ? bytes - text_bytes - 1 : 0;
	uint64_t *words = calloc(1, rest + 8);
	struct tw_layout *layout;
	struct tw_arg_plan plan;
	int error = tw_layout_parse((const char *)data, text_bytes, &layout);

	TW_ASSERT(words && (error == 0 || error == TW_EBADARG));
	if (zero)
		memcpy(words, zero + 1, rest);
	if (error == 0) {
		struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = (uint32_t)(rest / 8)};
		struct tw_layout_item item;

		while (tw_layout_next(&reader, &item))
			for (size_t i = 0; item.text && i < item.text_bytes; i++)
				TW_ASSERT(item.text[i] == item.text[i]);
		for (uint32_t i = 0; i <= layout->count; i++) {
			const struct tw_layout_value *value = i ? &layout->values[i - 1] : &layout->result;
			struct tw_layout_field field;

			for (uint32_t j = 0; j <= value->enumerator_count; j++)
				TW_ASSERT(!tw_layout_field(value, j, &field) || field.first_bit + field.bits <= 128);
		}
		if (tw_layout_result(layout, words, (uint32_t)(rest / 8), &item))
			TW_ASSERT(item.word_count && item.word_count <= 2 && item.word_count <= rest / 8);
		reader =
			(struct tw_layout_reader){.layout = layout, .words = words, .word_count = (uint32_t)(rest / 8)};
		while (tw_layout_next_filled(&reader, &item))
			for (size_t i = 0; item.text && i < item.text_bytes; i++)
				TW_ASSERT(item.text[i] == item.text[i]);
		tw_layout_error(layout, words, (uint32_t)(rest / 8));
		for (uint32_t i = 0; i < layout->count && layout->word_count <= rest / 8; i++)
			tw_layout_is_given(layout, &layout->values[i], words);
		tw_arg_plan_make(&plan, layout, 64);
		TW_ASSERT(plan.count == layout->word_count && plan.string_count == layout->string_count);
		TW_ASSERT(plan.describes || plan.filled_count == layout->filled_count);
		for (unsigned i = 0; i < plan.string_count; i++)
			TW_ASSERT(plan.strings[i].source < TW_ARG_RESULT && plan.strings[i].factor_count <= 2);
		for (unsigned i = 0; i < plan.filled_count; i++)
			TW_ASSERT(plan.filled[i].source <= TW_ARG_RESULT && plan.filled[i].factor_count <= 2);
		tw_layout_destroy(layout);
	}
	free(words);
	return 0;
}
