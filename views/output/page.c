/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - pages for browsers: see page.h. */
#include "views/output/page.h"

const char *tw_page_begin(struct tw_out *out, const char *page)
{
	static const char mark[] = "@DATA@";
	const char *data = strstr(page, mark);

	if (!data)
		return NULL;
	tw_out_bytes(out, page, (size_t)(data - page));
	return data + strlen(mark);
}

void tw_page_text(struct tw_out *out, const char *text, size_t bytes)
{
	static struct tw_out scratch;

	tw_out_init(&scratch, -1);
	/* A text longer than the buffer would lose its end. */
	tw_json_quote(&scratch, text, bytes < TW_OUT_BYTES / 8 ? bytes : TW_OUT_BYTES / 8);
	for (size_t i = 0; i < scratch.used; i++) {
		char c = scratch.data[i];

		if (c == '<' || c == '>' || c == '&')
			tw_out_format(out, "\\u%04x", c);
		else
			tw_out_bytes(out, &c, 1);
	}
}

void tw_page_json_begin(struct tw_out *out)
{
	tw_out_flush(out);
	out->is_quoted = true;
}

void tw_page_json_end(struct tw_out *out)
{
	tw_out_flush(out);
	out->is_quoted = false;
}
