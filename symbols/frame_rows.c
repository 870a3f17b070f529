/* SPDX-License-Identifier: Apache-2.0 */
/* frame_rows.c - checks tables of frames. */
#include "symbols/frame_rows.h"

#include "base/checksum.h"
#include "symbols/elf.h"
#include "tracewheel/error.h"

#include <string.h>

/* A part of `count` items inside the table, aligned for them; NULL: it is not. */
static const void *part(const struct tw_frame_rows_header *header, uint32_t offset, uint64_t count, size_t item_bytes)
{
	if (offset % 4 || offset < sizeof *header || offset > header->bytes ||
	    count > (header->bytes - offset) / item_bytes)
		return NULL;
	return (const uint8_t *)header + offset;
}

uint64_t tw_frame_rows_checksum(const struct tw_frame_rows_header *header)
{
	struct tw_frame_rows_header head = *header;

	head.checksum = 0;
	return tw_checksum64_two(&head, sizeof head, header + 1, header->bytes - sizeof head);
}

bool tw_frame_rows_is_of(const struct tw_frame_rows *rows, const struct tw_elf *elf,
			 const struct tw_file_identity *identity)
{
	const struct tw_frame_rows_header *header = rows->header;

	return header->build_id_bytes == elf->build_id_bytes &&
	       !memcmp(header->build_id, elf->build_id, elf->build_id_bytes) &&
	       header->image_bytes == elf->image.high - elf->image.low &&
	       (!identity || !memcmp(&header->file, identity, sizeof *identity));
}

/* Each block's first row is the first that is not below the block: the search needs no other check. */
static bool are_rows_right(const struct tw_frame_rows *rows)
{
	const struct tw_frame_rows_header *header = rows->header;
	uint64_t row = 0;

	for (uint32_t i = 0; i < header->row_count; i++)
		if ((i && rows->values[i] <= rows->values[i - 1]) || rows->row_rules[i] >= header->rule_count)
			return false;
	if (rows->values[0] != header->low || header->low & ((1u << TW_FRAME_BLOCK_BITS) - 1))
		return false;
	for (uint64_t block = 0; block <= header->block_count; block++) {
		uint64_t value = header->low + (block << TW_FRAME_BLOCK_BITS);

		while (row < header->row_count && rows->values[row] < value)
			row++;
		if (rows->blocks[block] != row)
			return false;
	}
	return row == header->row_count;
}

static bool are_rules_right(const struct tw_frame_rows *rows)
{
	for (uint32_t i = 0; i < rows->header->rule_count; i++) {
		const struct tw_frame_rule *rule = &rows->rules[i];

		if (rule->cfa >= TW_FRAME_CFAS || rule->rbp_at >= TW_FRAME_ATS || rule->return_at >= TW_FRAME_SAME ||
		    rule->is_interrupted > 1)
			return false;
	}
	return true;
}

int tw_frame_rows_open(const void *bytes, size_t count, struct tw_frame_rows *out)
{
	const struct tw_frame_rows_header *header = bytes;

	if (count < sizeof *header || memcmp(header->magic, TW_FRAME_ROWS_MAGIC, sizeof header->magic))
		return TW_EFORMAT;
	if (header->version != TW_FRAME_ROWS_VERSION)
		return TW_ENOTSUP;
	if (header->bytes != count || header->checksum != tw_frame_rows_checksum(header) || !header->build_id_bytes ||
	    header->build_id_bytes > sizeof header->build_id || !header->row_count || !header->rule_count)
		return TW_EFORMAT;
	*out = (struct tw_frame_rows){
		.header = header,
		.row_rules = part(header, header->row_rules, header->row_count, sizeof *out->row_rules),
		.values = part(header, header->values, header->row_count, sizeof *out->values),
		.blocks = part(header, header->blocks, (uint64_t)header->block_count + 1, sizeof *out->blocks),
		.rules = part(header, header->rules, header->rule_count, sizeof *out->rules),
	};
	if (!out->row_rules || !out->values || !out->blocks || !out->rules)
		return TW_EFORMAT;
	return are_rows_right(out) && are_rules_right(out) ? 0 : TW_EFORMAT;
}
