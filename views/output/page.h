/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - a page for a browser: an HTML file built into the program, with data as JSON in place of its word @DATA@.
 */
#ifndef TW_VIEWS_PAGE_H
#define TW_VIEWS_PAGE_H

#include "views/output/output.h"

/* Defines the text of the file as `const char symbol[]`. */
#define TW_PAGE(symbol, file)                              \
	__asm__(".pushsection .rodata, \"a\", @progbits\n" \
		".globl " #symbol "\n" #symbol ":\n"       \
		".incbin \"" file "\"\n"                   \
		".byte 0\n"                                \
		".popsection\n");                          \
	extern const char symbol[] __attribute__((visibility("hidden")))

/* Writes the page up to its data; returns the rest, which the caller writes after the data.  NULL: the page has no data. */
const char *tw_page_begin(struct tw_out *out, const char *page);

/* Writes a JSON string that no browser takes for markup, whatever its contents; cut at 1/8 of TW_OUT_BYTES. */
void tw_page_text(struct tw_out *out, const char *text, size_t bytes);

/* JSON that is written between the two is safe in a page as well. The output is a file's. */
void tw_page_json_begin(struct tw_out *out);
void tw_page_json_end(struct tw_out *out);

#endif
