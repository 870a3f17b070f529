/* SPDX-License-Identifier: Apache-2.0 */
/* entry_plan.c - checks plans and lays out copies. */
#include "symbols/entry_plan.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/search.h"
#include "symbols/elf.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <string.h>

#define JUMP	   0xe9
#define JUMP_BYTES 5u

const char *tw_entry_refusal_text(enum tw_entry_refusal refusal)
{
	static const char *const texts[TW_ENTRY_REFUSALS] = {
		[TW_ENTRY_OK] = "it can be traced",
		[TW_ENTRY_NEVER] = "tracing it would break the program or Tracewheel itself",
		[TW_ENTRY_NO_CALLER] = "it begins without a return address",
		[TW_ENTRY_SIGNAL] = "signal handlers return to it",
		[TW_ENTRY_TARGET_INSIDE] = "a jump leads into its first five bytes",
		[TW_ENTRY_LOOP_HEAD] =
			"a loop begins at its first instruction, so turns of the loop would look like calls",
		[TW_ENTRY_SHORT] = "it is shorter than a jump",
		[TW_ENTRY_UNDECODED] = "its first instructions are not known to the decoder",
		[TW_ENTRY_INDIRECT_CALL] = "it begins with an indirect call",
		[TW_ENTRY_LOOP_INSN] = "it begins with a jump that cannot be moved (loop, jrcxz, xbegin)",
		[TW_ENTRY_FRAME] = "it has no call frame information, or such that is not understood",
		[TW_ENTRY_TEXT_RELOCATION] = "the loader writes into its code",
		[TW_ENTRY_UNCERTAIN] = "it contains an indirect jump whose targets are not known (--careful)",
		[TW_ENTRY_NO_NOP] = "there is no NOP at its address",
		[TW_ENTRY_NO_FUNCTION] = "no call frame information describes the code around it",
		[TW_ENTRY_UNKNOWN_TARGETS] =
			"its function has an indirect jump whose targets are not known, and one may lead into the five bytes",
		[TW_ENTRY_SHARED] = "another probe lies in the same five bytes",
		[TW_ENTRY_STATUS_FLAGS] = "its caller passes it status flags, which a recorded call changes",
	};

	return (unsigned)refusal < TW_ENTRY_REFUSALS ? texts[refusal] : "it is refused for an unknown reason";
}

/* A table of `count` items inside the plan, aligned for them; NULL: it is not. */
static const void *table(const struct tw_entry_plan_header *header, uint32_t offset, uint64_t count, size_t item_bytes)
{
	if (offset % (item_bytes < 4   ? 1
		      : item_bytes % 8 ? 4
				       : 8) ||
	    offset < sizeof *header || offset > header->bytes || count > (header->bytes - offset) / item_bytes)
		return NULL;
	return (const uint8_t *)header + offset;
}

uint64_t tw_entry_plan_checksum(const struct tw_entry_plan_header *header)
{
	struct tw_entry_plan_header head = *header;

	head.checksum = 0;
	return tw_checksum64_two(&head, sizeof head, header + 1, header->bytes - sizeof head);
}

bool tw_entry_plan_is_of(const struct tw_entry_plan *plan, const struct tw_elf *elf,
			 const struct tw_file_identity *identity)
{
	const struct tw_entry_plan_header *header = plan->header;

	return header->build_id_bytes == elf->build_id_bytes &&
	       !memcmp(header->build_id, elf->build_id, elf->build_id_bytes) &&
	       header->image_bytes == elf->image.high - elf->image.low &&
	       (!identity || !memcmp(&header->file, identity, sizeof *identity));
}

void tw_entry_plan_name_file(const char *before, const struct tw_elf *elf, const struct tw_file_identity *identity,
			     char out[TW_ENTRY_PLAN_NAME_BYTES])
{
	size_t used = (size_t)snprintf(out, TW_ENTRY_PLAN_NAME_BYTES, "%.8s", before);

	for (uint32_t i = 0; i < elf->build_id_bytes; i++)
		used += (size_t)snprintf(out + used, TW_ENTRY_PLAN_NAME_BYTES - used, "%02x", elf->build_id[i]);
	snprintf(out + used, TW_ENTRY_PLAN_NAME_BYTES - used, "-%08x",
		 (unsigned)tw_checksum64(identity, sizeof *identity));
}

static bool is_fix_right(const struct tw_entry_plan_row *row, const struct tw_entry_plan_fix *fix)
{
	return fix->position + 4u <= row->copy_bytes && fix->tail >= 4 && fix->tail <= 8 && fix->is_literal <= 1;
}

static bool is_map_right(const struct tw_entry_plan_row *row, const uint8_t *map)
{
	for (unsigned i = 0; i < row->map_count; i++)
		if (map[2 * i] >= row->window_bytes || map[2 * i + 1] >= row->copy_bytes ||
		    (i ? map[2 * i] <= map[2 * i - 2] || map[2 * i + 1] <= map[2 * i - 1] : map[0] != 0 || map[1] != 0))
			return false;
	return true;
}

static bool is_copy_right(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	const struct tw_entry_plan_header *header = plan->header;
	uint32_t code_bytes = (uint32_t)row->window_bytes + row->copy_bytes + 2u * row->map_count + row->frame_bytes;

	if (row->refusal)
		return !row->window_bytes && !row->copy_bytes && !row->fix_count && !row->map_count &&
		       !row->frame_bytes;
	if (row->window_bytes < TW_ENTRY_WINDOW_BYTES_MIN || row->window_bytes > TW_ENTRY_WINDOW_BYTES_MAX ||
	    !row->copy_bytes || row->copy_bytes > TW_ENTRY_COPY_BYTES_MAX || row->fix_count > TW_ENTRY_FIXES_MAX ||
	    !row->map_count || row->frame_bytes > TW_ENTRY_FRAME_BYTES_MAX ||
	    (row->window_offset && row->window_offset != 4) || row->code > header->code_bytes ||
	    code_bytes > header->code_bytes - row->code || row->first_fix > header->fix_count ||
	    row->fix_count > header->fix_count - row->first_fix)
		return false;
	for (unsigned i = 0; i < row->fix_count; i++)
		if (!is_fix_right(row, &plan->fixes[row->first_fix + i]))
			return false;
	return is_map_right(row, tw_entry_plan_map(plan, row));
}

/* The value behind a row's window. */
static uint64_t end_of(const struct tw_entry_plan_row *row)
{
	return (uint64_t)row->value + row->window_offset + row->window_bytes;
}

static bool is_row_right(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row)
{
	const struct tw_entry_plan_header *header = plan->header;
	/* Behind the window of the row before. */
	bool is_behind = row == plan->rows || row->value >= end_of(&row[-1]);

	if (!is_behind || row->flags & TW_ENTRY_SITE || (row > plan->rows && row->value == row[-1].value) ||
	    row->refusal >= TW_ENTRY_REFUSALS || row->first_name > header->name_count ||
	    row->name_count > header->name_count - row->first_name)
		return false;
	return is_copy_right(plan, row);
}

bool tw_entry_plan_is_free(const struct tw_entry_plan *plan, uint64_t value, uint64_t end)
{
	size_t before = tw_search(i, plan->header->row_count, plan->rows[i].value < end);

	/* Windows of functions do not overlap, so the last that begins before `end` reaches furthest. */
	while (before && !plan->rows[before - 1].window_bytes)
		before--;
	return !before || end_of(&plan->rows[before - 1]) <= value;
}

static bool is_operand_right(const struct tw_entry_plan_operand *operand)
{
	return operand->kind < TW_ENTRY_OPERAND_KINDS && operand->base <= TW_ENTRY_NO_REGISTER &&
	       operand->index <= TW_ENTRY_NO_REGISTER && operand->shift <= 3 && operand->bytes <= 8 &&
	       !(operand->bytes & (operand->bytes - 1)) && (operand->bytes || !operand->kind) &&
	       (operand->kind != TW_ENTRY_OPERAND_REGISTER || operand->base < TW_ENTRY_NO_REGISTER);
}

/* @covered	the value behind the last window of a site before. */
static bool is_site_right(const struct tw_entry_plan *plan, const struct tw_entry_plan_site *site, uint64_t covered)
{
	const struct tw_entry_plan_header *header = plan->header;
	const struct tw_entry_plan_row *row = &site->row;

	if (row->refusal >= TW_ENTRY_REFUSALS || !(row->flags & TW_ENTRY_SITE) || row->window_offset ||
	    row->name_count != 1 || row->first_name >= header->name_count || !is_copy_right(plan, row) ||
	    (site > plan->sites && row->value < site[-1].row.value) ||
	    (row->window_bytes && (row->value < covered || (!(row->flags & TW_ENTRY_SHARES) &&
							    !tw_entry_plan_is_free(plan, row->value, end_of(row))))) ||
	    site->arguments >= header->string_bytes || site->operand_count > TW_ENTRY_OPERANDS_MAX ||
	    site->first_operand > header->operand_count ||
	    site->operand_count > header->operand_count - site->first_operand)
		return false;
	for (unsigned i = 0; i < site->operand_count; i++)
		if (!is_operand_right(&plan->operands[site->first_operand + i]))
			return false;
	return true;
}

int tw_entry_plan_open(const void *bytes, size_t count, struct tw_entry_plan *out)
{
	const struct tw_entry_plan_header *header = bytes;
	uint64_t covered = 0;

	if (count < sizeof *header || memcmp(header->magic, TW_ENTRY_PLAN_MAGIC, sizeof header->magic))
		return TW_EFORMAT;
	if (header->version != TW_ENTRY_PLAN_VERSION)
		return TW_ENOTSUP;
	if (header->bytes != count || header->checksum != tw_entry_plan_checksum(header) || !header->build_id_bytes ||
	    header->build_id_bytes > sizeof header->build_id || !header->string_bytes)
		return TW_EFORMAT;
	*out = (struct tw_entry_plan){
		.header = header,
		.rows = table(header, header->rows, header->row_count, sizeof *out->rows),
		.names = table(header, header->names, header->name_count, sizeof *out->names),
		.fixes = table(header, header->fixes, header->fix_count, sizeof *out->fixes),
		.sites = table(header, header->sites, header->site_count, sizeof *out->sites),
		.operands = table(header, header->operands, header->operand_count, sizeof *out->operands),
		.code = table(header, header->code, header->code_bytes, 1),
		.strings = table(header, header->strings, header->string_bytes, 1),
	};
	if (!out->rows || !out->names || !out->fixes || !out->sites || !out->operands || !out->code || !out->strings ||
	    out->strings[header->string_bytes - 1])
		return TW_EFORMAT;
	for (uint32_t i = 0; i < header->name_count; i++)
		if (out->names[i] >= header->string_bytes)
			return TW_EFORMAT;
	for (uint32_t i = 0; i < header->row_count; i++)
		if (!is_row_right(out, &out->rows[i]))
			return TW_EFORMAT;
	for (uint32_t i = 0; i < header->site_count; i++) {
		if (!is_site_right(out, &out->sites[i], covered))
			return TW_EFORMAT;
		if (out->sites[i].row.window_bytes)
			covered = end_of(&out->sites[i].row);
	}
	return 0;
}

const struct tw_entry_plan_row *tw_entry_plan_find(const struct tw_entry_plan *plan, uint64_t value)
{
	size_t at = tw_search(i, plan->header->row_count, plan->rows[i].value < value);

	return at < plan->header->row_count && plan->rows[at].value == value ? &plan->rows[at] : NULL;
}

enum tw_entry_refusal tw_entry_plan_refusal(const struct tw_entry_plan_row *row, bool is_careful)
{
	if (!row->refusal && is_careful && row->flags & TW_ENTRY_UNKNOWN_JUMP)
		return TW_ENTRY_UNCERTAIN;
	if (!row->refusal && row->flags & TW_ENTRY_READS_FLAGS)
		return TW_ENTRY_STATUS_FLAGS;
	return (enum tw_entry_refusal)row->refusal;
}

const char *tw_entry_plan_name(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row, unsigned n)
{
	return n < row->name_count ? plan->strings + plan->names[row->first_name + n] : NULL;
}

/* Writes the distance from `end` to `target`; false: out of reach. */
static bool put_distance(uint8_t *out, uintptr_t end, uintptr_t target)
{
	int64_t distance = (int64_t)(target - end);
	int32_t displacement = (int32_t)distance;

	memcpy(out, &displacement, sizeof displacement);
	return displacement == distance;
}

unsigned tw_entry_plan_lay_out(const struct tw_entry_plan *plan, const struct tw_entry_plan_row *row, uintptr_t base,
			       uintptr_t at, uint8_t *out)
{
	uintptr_t rest = base + row->value + row->window_offset + row->window_bytes;
	unsigned bytes = row->copy_bytes, literal;
	bool is_right = true, has_literal = false;

	memcpy(out, tw_entry_plan_copy(plan, row), bytes);
	if (!(row->flags & TW_ENTRY_ENDS)) {
		out[bytes] = JUMP;
		is_right = put_distance(out + bytes + 1, at + bytes + JUMP_BYTES, rest);
		bytes += JUMP_BYTES;
	}
	literal = (bytes + 7) & ~7u;
	TW_ASSERT(literal + 8 <= TW_ENTRY_SPACE_BYTES);
	for (unsigned i = 0; i < row->fix_count && is_right; i++) {
		const struct tw_entry_plan_fix *fix = &plan->fixes[row->first_fix + i];
		uintptr_t end = at + fix->position + fix->tail, target = base + fix->target;

		if (fix->is_literal) {
			memset(out + bytes, 0xcc, literal - bytes);
			memcpy(out + literal, &target, sizeof target);
			target = at + literal;
			has_literal = true;
		}
		is_right = put_distance(out + fix->position, end, target);
	}
	if (!is_right)
		return 0;
	return has_literal ? literal + 8 : bytes;
}
