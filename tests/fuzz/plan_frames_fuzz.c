/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever call frame information, exception tables and code a file holds, its plan is right or refused (plan_made.h).
 * Method: the input is code, then .eh_frame and .gcc_except_table.  .eh_frame_hdr leads to each description that the lengths in the
 *         input lead to, as a linker writes it, so that most descriptions are read; a third of its rows lead anywhere.
 */
#include "plan_made.h"

#define CODE_BYTES 0x400u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void fill_rows(struct made_file *file, size_t bytes)
{
	for (size_t at = CODE_BYTES; at + 8 <= bytes && file->row_count < MADE_ROWS_MAX;) {
		uint32_t length, back;

		memcpy(&length, file->input + at, 4);
		memcpy(&back, file->input + at + 4, 4);
		if (back)
			made_add_row(file, at);
		else if (file->row_count % 3 == 2)
			made_add_row(file, length);
		at += 4 + (size_t)(length % 256);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct made_file *file;

	if (bytes < CODE_BYTES + 16)
		return 0;
	file = calloc(1, sizeof *file + bytes);
	if (!file)
		abort();
	memcpy(file->input, data, bytes);
	made_fill(file, sizeof *file + bytes, CODE_BYTES, data[0] & 1);
	fill_rows(file, bytes);
	made_plan(file, sizeof *file + bytes);
	free(file);
	return 0;
}
