/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - the table of an object's frames (symbols/frame_rows.h), from its call frame information.
 *
 * Descriptions are taken in the order of their values.  A piece of code that two describe has the rows of the first, and code that none describes has
 * a row that says so.
 */
#include "plan/plan.h"

#include "base/grow.h"
#include "base/map.h"
#include "symbols/frame_rows.h"
#include "symbols/frames.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (UINT64_C(1) << TW_FRAME_BLOCK_BITS)
#define RULES_MAX   (UINT16_MAX + 1u)

struct row {
	uint64_t value;
	uint32_t rule;
};

struct draft {
	struct row *rows;
	size_t row_count, row_capacity;
	struct tw_frame_rule *rules;
	size_t rule_count, rule_capacity;
	struct tw_map numbers; /* of rules, by their hash */
	uint64_t end;	       /* the value behind the last description */
};

/* ---- rules ---- */

static const struct tw_frame_rule unknown = {.cfa = TW_FRAME_UNKNOWN, .rbp_at = TW_FRAME_LOST};

static bool take_offset(int64_t offset, int32_t *out)
{
	*out = (int32_t)offset;
	return *out == offset;
}

static bool set_cfa(const struct tw_elf_frame_row *row, struct tw_frame_rule *rule)
{
	bool is_rsp = row->cfa_register == TW_ELF_RSP;

	if ((!is_rsp && row->cfa_register != TW_ELF_RBP) || !take_offset((int64_t)row->cfa_offset, &rule->offset) ||
	    !take_offset(row->cfa_add, &rule->add))
		return false;
	switch (row->cfa) {
	case TW_ELF_CFA_REGISTER: rule->cfa = is_rsp ? TW_FRAME_RSP : TW_FRAME_RBP; return true;
	case TW_ELF_CFA_MEMORY: rule->cfa = is_rsp ? TW_FRAME_RSP_MEMORY : TW_FRAME_RBP_MEMORY; return true;
	case TW_ELF_CFA_PLT: rule->cfa = TW_FRAME_RSP_PLT; return is_rsp;
	default: return false;
	}
}

static bool set_place(const struct tw_elf_frame_saved *saved, uint8_t *at, int32_t *offset)
{
	static const uint8_t places[] = {[TW_ELF_SAVED_UNKNOWN] = TW_FRAME_LOST, [TW_ELF_SAVED_SAME] = TW_FRAME_SAME,
					 [TW_ELF_SAVED_CFA] = TW_FRAME_AT_CFA,	 [TW_ELF_SAVED_RBP] = TW_FRAME_AT_RBP,
					 [TW_ELF_SAVED_RSP] = TW_FRAME_AT_RSP,	 [TW_ELF_SAVED_NONE] = TW_FRAME_LOST};

	*at = places[saved->how];
	return *at >= TW_FRAME_SAME || take_offset(saved->offset, offset);
}

static struct tw_frame_rule rule_of(const struct tw_elf_frame *frame, const struct tw_elf_frame_row *row)
{
	struct tw_frame_rule rule = {.is_interrupted = frame->is_signal};

	if (!row)
		return unknown;
	if (row->return_address.how == TW_ELF_SAVED_NONE)
		return (struct tw_frame_rule){.cfa = TW_FRAME_OUTERMOST, .rbp_at = TW_FRAME_LOST};
	if (!set_cfa(row, &rule) || !set_place(&row->return_address, &rule.return_at, &rule.return_offset) ||
	    rule.return_at >= TW_FRAME_SAME)
		return unknown;
	if (!set_place(&row->rbp, &rule.rbp_at, &rule.rbp_offset))
		rule.rbp_at = TW_FRAME_LOST;
	return rule;
}

/* The number of a rule, which is added; RULES_MAX: no memory.  Beyond the limit rules are unknown. */
static uint32_t number_of(struct draft *draft, const struct tw_frame_rule *rule)
{
	uint64_t hash = tw_hash_bytes(rule, sizeof *rule, 0);
	uint32_t number = tw_map_find(&draft->numbers, hash, i, !memcmp(&draft->rules[i], rule, sizeof *rule));

	if (number != TW_MAP_NONE)
		return number;
	if (draft->rule_count == RULES_MAX)
		return 0;
	if (!tw_grow(draft->rules, draft->rule_count, draft->rule_capacity) ||
	    !tw_map_add(&draft->numbers, hash, (uint32_t)draft->rule_count))
		return RULES_MAX;
	draft->rules[draft->rule_count] = *rule;
	return (uint32_t)draft->rule_count++;
}

/* ---- rows ---- */

static bool add_row(struct draft *draft, uint64_t value, const struct tw_frame_rule *rule)
{
	uint32_t number = number_of(draft, rule);
	struct row *last = draft->row_count ? &draft->rows[draft->row_count - 1] : NULL;

	if (number == RULES_MAX)
		return false;
	if (last && last->rule == number)
		return true;
	if (last && last->value == value) {
		last->rule = number;
		return true;
	}
	if (!tw_grow(draft->rows, draft->row_count, draft->row_capacity))
		return false;
	draft->rows[draft->row_count++] = (struct row){value, number};
	return true;
}

static bool add_frame(struct draft *draft, const struct tw_elf_frame *frame)
{
	uint64_t end = frame->value + frame->bytes, value = frame->value, next;
	struct tw_elf_frame_walk walk;

	if (value > draft->end && !add_row(draft, draft->end, &unknown))
		return false;
	tw_elf_frame_walk_begin(&walk, frame);
	for (; value < end; value = next) {
		const struct tw_frame_rule rule = rule_of(frame, tw_elf_frame_walk_row(&walk, value, &next));

		/* The statement of an earlier description stays. */
		if (next > draft->end && !add_row(draft, value > draft->end ? value : draft->end, &rule))
			return false;
	}
	if (end > draft->end)
		draft->end = end;
	return true;
}

static bool add_frames(struct draft *draft, const struct tw_elf_frames *frames)
{
	/* The rule 0 is the unknown one. */
	draft->end = frames->entries[0].value & ~(BLOCK_BYTES - 1);
	if (!add_row(draft, draft->end, &unknown))
		return false;
	for (size_t i = 0; i < frames->count; i++)
		if (!add_frame(draft, &frames->entries[i]))
			return false;
	return add_row(draft, draft->end, &unknown);
}

/* ---- the whole ---- */

static size_t rounded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static void fill(const struct draft *draft, uint8_t *table, struct tw_frame_rows_header *header)
{
	uint16_t *row_rules = (uint16_t *)(void *)(table + header->row_rules);
	uint32_t *values = (uint32_t *)(void *)(table + header->values);
	uint32_t *blocks = (uint32_t *)(void *)(table + header->blocks);
	uint32_t row = 0;

	for (size_t i = 0; i < draft->row_count; i++) {
		values[i] = (uint32_t)draft->rows[i].value;
		row_rules[i] = (uint16_t)draft->rows[i].rule;
	}
	for (uint64_t block = 0; block <= header->block_count; block++) {
		while (row < draft->row_count && values[row] < header->low + (block << TW_FRAME_BLOCK_BITS))
			row++;
		blocks[block] = row;
	}
	memcpy(table + header->rules, draft->rules, draft->rule_count * sizeof *draft->rules);
	memcpy(table, header, sizeof *header);
	header = (struct tw_frame_rows_header *)(void *)table;
	header->checksum = tw_frame_rows_checksum(header);
}

static int write_table(const struct draft *draft, const struct tw_elf_file *file, void **bytes, size_t *count)
{
	const struct tw_elf *elf = &file->elf;
	uint64_t low = draft->rows[0].value, last = draft->rows[draft->row_count - 1].value;
	struct tw_frame_rows_header header = {
		.version = TW_FRAME_ROWS_VERSION,
		.build_id_bytes = elf->build_id_bytes,
		.image_bytes = elf->image.high - elf->image.low,
		.file = file->identity,
		.low = (uint32_t)low,
		.row_count = (uint32_t)draft->row_count,
		.block_count = (uint32_t)((last - low) / BLOCK_BYTES + 1),
		.rule_count = (uint32_t)draft->rule_count,
	};
	uint8_t *table;

	if (last > UINT32_MAX - BLOCK_BYTES || draft->row_count > UINT32_MAX / sizeof(uint64_t))
		return TW_ENOTSUP;
	header.row_rules = (uint32_t)rounded(sizeof header);
	header.values = header.row_rules + (uint32_t)rounded(draft->row_count * sizeof(uint16_t));
	header.blocks = header.values + (uint32_t)rounded(draft->row_count * sizeof(uint32_t));
	header.rules = header.blocks + (uint32_t)rounded((header.block_count + UINT64_C(1)) * sizeof(uint32_t));
	header.bytes = header.rules + draft->rule_count * sizeof(struct tw_frame_rule);
	memcpy(header.magic, TW_FRAME_ROWS_MAGIC, sizeof header.magic);
	memcpy(header.build_id, elf->build_id, elf->build_id_bytes);
	table = calloc(1, header.bytes);
	if (!table)
		return TW_ENOMEM;
	*bytes = table;
	*count = header.bytes;
	fill(draft, table, &header);
	return 0;
}

int tw_frame_rows_make(const struct tw_elf_file *file, void **bytes, size_t *count)
{
	struct draft draft = {0};
	struct tw_elf_frames frames;
	int error;

	if (!file->elf.build_id_bytes)
		return TW_ENOENT;
	error = tw_elf_frames_read(&file->elf, &frames);
	if (!error && !frames.count)
		error = TW_ENOENT;
	if (!error)
		error = add_frames(&draft, &frames) ? write_table(&draft, file, bytes, count) : TW_ENOMEM;
	tw_elf_frames_fini(&frames);
	tw_map_fini(&draft.numbers);
	free(draft.rows);
	free(draft.rules);
	return error;
}
