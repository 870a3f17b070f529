/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - one plan: a row for each function of the object. */
#include "plan/plan.h"

#include "base/grow.h"
#include "plan/sites.h"
#include "plan/unframed.h"
#include "plan/window.h"
#include "symbols/symbols.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sections of the plan while they grow. */
struct draft {
	const struct tw_elf_file *file;
	struct tw_sym_entries entries;
	struct tw_scan scan;
	struct tw_notes notes;
	struct tw_entry_plan_site *sites;
	size_t site_count, site_capacity;
	struct tw_entry_plan_operand *operands;
	size_t operand_count, operand_capacity;
	struct tw_entry_plan_row *rows;
	size_t row_count, row_capacity;
	uint32_t *names;
	size_t name_count, name_capacity;
	struct tw_entry_plan_fix *fixes;
	size_t fix_count, fix_capacity;
	uint8_t *code;
	size_t code_bytes, code_capacity;
	char *strings;
	size_t string_bytes, string_capacity;
	uint32_t part_count;
	size_t unframed_count; /* that have no row */
	uint64_t covered;      /* the value behind the last window */
	struct tw_file_identity debug_file;
	enum { NO_CODE, CODE_OF_V8, CODE_OF_HOTSPOT } makes; /* code that looks up return addresses */
};

static bool add_bytes(uint8_t **array, size_t *count, size_t *capacity, const void *bytes, size_t more)
{
	while (*capacity - *count < more) {
		uint8_t *moved = tw_grown(*array, capacity, 1);

		if (!moved)
			return false;
		*array = moved;
	}
	if (more)
		memcpy(*array + *count, bytes, more);
	*count += more;
	return true;
}

static bool add_code(struct draft *draft, const void *bytes, size_t more)
{
	return add_bytes(&draft->code, &draft->code_bytes, &draft->code_capacity, bytes, more);
}

static bool add_string(struct draft *draft, const char *text, size_t bytes)
{
	return add_bytes((uint8_t **)(void *)&draft->strings, &draft->string_bytes, &draft->string_capacity, text,
			 bytes);
}

static bool add_name(struct draft *draft, const char *name)
{
	if (!tw_grow(draft->names, draft->name_count, draft->name_capacity))
		return false;
	draft->names[draft->name_count++] = (uint32_t)draft->string_bytes;
	return add_string(draft, name, strlen(name) + 1);
}

static bool add_names(struct draft *draft, const struct tw_sym_entry *entry, struct tw_entry_plan_row *row)
{
	row->first_name = (uint32_t)draft->name_count;
	row->name_count = (uint16_t)entry->name_count;
	for (size_t i = 0; i < entry->name_count; i++)
		if (!add_name(draft, draft->entries.names[entry->first_name + i]))
			return false;
	return true;
}

static bool is_never(const struct draft *draft, const struct tw_sym_entry *entry)
{
	for (size_t i = 0; i < entry->name_count; i++)
		if (tw_sym_is_never(draft->entries.names[entry->first_name + i]))
			return true;
	return false;
}

/* V8 itself, by its public names. */
static bool has_v8(const struct tw_sym_entries *entries)
{
	for (size_t i = 0; i < entries->name_count; i++)
		if (!strncmp(entries->names[i], "_ZN2v8", 6))
			return true;
	return false;
}

/*
 * Code that V8 makes finds functions by their addresses, and its collector then looks up that code by their return addresses.
 * Functions of C do not make it collect.  Java's VM walks its stacks from there whenever it stops a thread or looks for a caller, and calls
 * some of these functions itself too.
 */
static bool may_be_for_made_code(const struct draft *draft, size_t index)
{
	const struct tw_sym_entry *entry = &draft->entries.entries[index];
	bool is_of_c = entry->name_count;

	if (draft->makes == CODE_OF_HOTSPOT)
		return true;
	for (size_t i = 0; i < entry->name_count; i++)
		is_of_c &= strncmp(draft->entries.names[entry->first_name + i], "_Z", 2) != 0;
	return !is_of_c && !(tw_scan_facts(&draft->scan, entry->value) & TW_SCAN_CALLED);
}

/* Finds functions that made code calls, and those that they end with by a jump, which return to the made code as well. */
static void mark_made(struct draft *draft)
{
	uint8_t *facts = draft->scan.entry_facts;
	bool has_more = draft->makes != NO_CODE;

	for (size_t i = 0; i < draft->entries.count && draft->makes != NO_CODE; i++)
		if (facts[i] & TW_SCAN_ENTRY_VALUE && may_be_for_made_code(draft, i))
			facts[i] |= TW_SCAN_ENTRY_MADE;
	while (has_more) {
		has_more = false;
		for (size_t i = 0; i < draft->scan.jump_count; i++) {
			const struct tw_scan_jump *jump = &draft->scan.jumps[i];

			if (!(facts[jump->from] & TW_SCAN_ENTRY_MADE) || facts[jump->to] & TW_SCAN_ENTRY_MADE ||
			    !may_be_for_made_code(draft, jump->to))
				continue;
			facts[jump->to] |= TW_SCAN_ENTRY_MADE;
			has_more = true;
		}
	}
}

/* It passes its return address on, but to a profile that there is only with LD_PROFILE. */
static bool is_profiled(const struct draft *draft, const struct tw_sym_entry *entry)
{
	return entry->name_count && !strcmp(draft->file->elf.soname, "libc.so.6") &&
	       !strcmp(draft->entries.names[entry->first_name], "_dl_mcount_wrapper_check");
}

/*
 * Does all of its code end in its own returns?  A jump out of it hands its return address on, and a system call may return
 * twice.  Of an entry that does not read its return address.
 */
static bool returns_by_itself(const struct draft *draft, const struct tw_sym_entry *entry)
{
	uint64_t end = entry->value + entry->bytes;
	ZydisDecodedInstruction instruction;

	for (uint64_t at = entry->value; at < end; at += instruction.length) {
		if (!tw_scan_decode(&draft->scan, at, end, &instruction) ||
		    instruction.meta.category == ZYDIS_CATEGORY_SYSCALL ||
		    instruction.meta.category == ZYDIS_CATEGORY_INTERRUPT)
			return false;
		if (instruction.meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
		    instruction.meta.category != ZYDIS_CATEGORY_COND_BR)
			continue;
		uint64_t target = at + instruction.length + (uint64_t)instruction.raw.imm[0].value.s;
		if (!instruction.raw.imm[0].is_relative || target - entry->value >= entry->bytes)
			return false;
	}
	return true;
}

/* Is it known by this name, and does its code not prove that it is another function of that name? */
static bool is_known(const struct draft *draft, size_t index, const char *name)
{
	const char *soname = draft->file->elf.soname;

	return tw_sym_is_never_returning(soname, name) &&
	       !(tw_sym_may_return_once(soname, name) &&
		 !(draft->scan.entry_facts[index] & TW_SCAN_ENTRY_READS_RETURN) &&
		 returns_by_itself(draft, &draft->entries.entries[index]));
}

/*
 * Functions whose return address may not be another: those that use it (unwinders, in stripped files without a name),
 * and those that are known by name.
 */
static bool is_unwatched(const struct draft *draft, size_t index)
{
	const struct tw_sym_entry *entry = &draft->entries.entries[index];

	if (draft->scan.entry_facts[index] & TW_SCAN_ENTRY_READS_RETURN && !is_profiled(draft, entry))
		return true;
	if (draft->scan.entry_facts[index] & TW_SCAN_ENTRY_MADE)
		return true;
	for (size_t i = 0; i < entry->name_count; i++)
		if (is_known(draft, index, draft->entries.names[entry->first_name + i]))
			return true;
	return false;
}

/*
 * Parts of functions that have frames of their own from the start look like functions.  They have no name, and the
 * only way to them is a conditional jump of another function.
 */
static bool is_part(const struct draft *draft, size_t index)
{
	const struct tw_sym_entry *entry = &draft->entries.entries[index];

	if (entry->kind == TW_SYM_ENTRY_PART || entry->kind == TW_SYM_ENTRY_PLT)
		return true;
	return entry->kind == TW_SYM_ENTRY_FUNCTION && !entry->name_count &&
	       draft->scan.entry_facts[index] & TW_SCAN_ENTRY_FAR_CONDITION &&
	       !(tw_scan_facts(&draft->scan, entry->value) & (TW_SCAN_CALLED | TW_SCAN_TAKEN));
}

static enum tw_entry_refusal refusal_of(const struct draft *draft, const struct tw_sym_entry *entry)
{
	switch (entry->kind) {
	case TW_SYM_ENTRY_SIGNAL: return TW_ENTRY_SIGNAL;
	case TW_SYM_ENTRY_NO_CALLER: return TW_ENTRY_NO_CALLER;
	default: return is_never(draft, entry) ? TW_ENTRY_NEVER : TW_ENTRY_OK;
	}
}

static bool add_window(struct draft *draft, const struct tw_window *window, struct tw_entry_plan_row *row)
{
	uint64_t left;

	row->flags = window->flags;
	row->window_offset = window->offset;
	row->window_bytes = window->bytes;
	row->copy_bytes = window->copy_bytes;
	row->fix_count = window->fix_count;
	row->map_count = window->map_count;
	row->frame_bytes = window->frame_bytes;
	for (unsigned i = 0; i < window->fix_count; i++) {
		if (!tw_grow(draft->fixes, draft->fix_count, draft->fix_capacity))
			return false;
		draft->fixes[draft->fix_count++] = window->fixes[i];
	}
	return add_code(draft, tw_scan_bytes(&draft->scan, window->value, &left), window->bytes) &&
	       add_code(draft, window->copy, window->copy_bytes) &&
	       add_code(draft, window->map, 2u * window->map_count) &&
	       add_code(draft, window->frame, window->frame_bytes);
}

static bool add_row(struct draft *draft, size_t index)
{
	const struct tw_sym_entry *entry = &draft->entries.entries[index];
	struct tw_entry_plan_row *row;
	struct tw_window window = {.refusal = refusal_of(draft, entry)};

	if (!tw_grow(draft->rows, draft->row_count, draft->row_capacity))
		return false;
	if (!window.refusal)
		tw_window_examine(&draft->scan, index, &window);
	/* The padding behind a short function was taken for the one before. */
	if (!window.refusal && entry->value < draft->covered)
		window = (struct tw_window){.refusal = TW_ENTRY_TARGET_INSIDE};
	row = &draft->rows[draft->row_count++];
	*row = (struct tw_entry_plan_row){
		.value = (uint32_t)entry->value,
		.function_bytes = entry->bytes <= UINT32_MAX ? (uint32_t)entry->bytes : 0,
		.first_fix = (uint32_t)draft->fix_count,
		.code = (uint32_t)draft->code_bytes,
		.refusal = (uint8_t)window.refusal,
	};
	if (!window.refusal) {
		draft->covered = window.value + window.bytes;
		if (!add_window(draft, &window, row))
			return false;
	}
	if (is_unwatched(draft, index))
		row->flags |= TW_ENTRY_UNWATCHED;
	return add_names(draft, entry, row);
}

/* Rows, without a copy, for those whose calls through slots must not be watched. */
static bool add_unframed(struct draft *draft, struct tw_unframed *unframed, uint64_t limit)
{
	const struct tw_elf_sections *sections = unframed->sections;
	const struct tw_elf_function *function;
	struct tw_entry_plan_row *row;

	while ((function = tw_unframed_next(unframed, limit < UINT32_MAX ? limit : UINT32_MAX))) {
		if (function->value < draft->covered)
			continue;
		if (!tw_grow(draft->rows, draft->row_count, draft->row_capacity))
			return false;
		row = &draft->rows[draft->row_count++];
		*row = (struct tw_entry_plan_row){.value = (uint32_t)function->value,
						  .function_bytes = function->bytes,
						  .first_name = (uint32_t)draft->name_count,
						  .first_fix = (uint32_t)draft->fix_count,
						  .code = (uint32_t)draft->code_bytes,
						  .refusal = TW_ENTRY_FRAME,
						  .flags = TW_ENTRY_UNWATCHED};
		/* All names of one address were taken together. */
		for (; function < &sections->functions[unframed->next] && row->name_count < UINT16_MAX; function++) {
			if (!add_name(draft, sections->strings + function->name))
				return false;
			row->name_count++;
		}
		draft->unframed_count--;
	}
	return true;
}

static int add_rows(struct draft *draft)
{
	struct tw_unframed unframed;

	tw_unframed_init(&unframed, &draft->scan);
	for (size_t i = 0; i < draft->entries.count; i++) {
		if (draft->entries.entries[i].value + draft->entries.entries[i].bytes > UINT32_MAX)
			return TW_ENOTSUP;
		if (!add_unframed(draft, &unframed, draft->entries.entries[i].value))
			return TW_ENOMEM;
		if (is_part(draft, i))
			draft->part_count++;
		else if (!add_row(draft, i))
			return TW_ENOMEM;
	}
	/* Strings are never empty, and end. */
	return add_unframed(draft, &unframed, UINT32_MAX) && add_name(draft, "") ? 0 : TW_ENOMEM;
}

/* ---- probes ---- */

/* Do a function's jump and this window share bytes? */
static bool is_shared(const struct draft *draft, const struct tw_window *window)
{
	const struct tw_entry_plan_header header = {.row_count = (uint32_t)draft->row_count};
	const struct tw_entry_plan plan = {.header = &header, .rows = draft->rows};

	return !tw_entry_plan_is_free(&plan, window->value, window->value + window->bytes);
}

static bool add_operands(struct draft *draft, const struct tw_note *note, struct tw_entry_plan_site *site)
{
	struct tw_entry_plan_operand operands[TW_NOTE_ARGUMENTS_MAX];
	unsigned argument_count, count = tw_site_operands(&draft->scan, &draft->notes, note, operands, &argument_count);

	site->argument_count = (uint8_t)argument_count;
	site->operand_count = (uint8_t)count;
	for (unsigned i = 0; i < count; i++) {
		if (!tw_grow(draft->operands, draft->operand_count, draft->operand_capacity))
			return false;
		draft->operands[draft->operand_count++] = operands[i];
	}
	return true;
}

/* PROVIDER:NAME, and the text of the arguments. */
static bool add_site_texts(struct draft *draft, const struct tw_note *note, struct tw_entry_plan_site *site)
{
	if (!tw_grow(draft->names, draft->name_count, draft->name_capacity))
		return false;
	draft->names[draft->name_count++] = (uint32_t)draft->string_bytes;
	if (!add_string(draft, note->provider, strlen(note->provider)) || !add_string(draft, ":", 1) ||
	    !add_string(draft, note->name, strlen(note->name) + 1))
		return false;
	site->arguments = (uint32_t)draft->string_bytes;
	return add_string(draft, note->arguments, strlen(note->arguments) + 1);
}

/* @covered	the value behind the window of the last probe. */
static bool add_site(struct draft *draft, const struct tw_note *note, struct tw_window *window, uint64_t *covered)
{
	struct tw_entry_plan_site *site;

	if (!window->refusal && window->value < *covered)
		*window = (struct tw_window){.refusal = TW_ENTRY_SHARED};
	if (!tw_grow(draft->sites, draft->site_count, draft->site_capacity))
		return false;
	site = &draft->sites[draft->site_count++];
	*site = (struct tw_entry_plan_site){.row = {.value = (uint32_t)note->value,
						    .first_name = (uint32_t)draft->name_count,
						    .name_count = 1,
						    .first_fix = (uint32_t)draft->fix_count,
						    .code = (uint32_t)draft->code_bytes,
						    .refusal = (uint8_t)window->refusal,
						    .flags = TW_ENTRY_SITE | TW_ENTRY_UNWATCHED},
					    .semaphore = note->semaphore,
					    .first_operand = (uint32_t)draft->operand_count};
	if (!window->refusal) {
		*covered = window->value + window->bytes;
		window->flags |= is_shared(draft, window) ? TW_ENTRY_SHARES : 0;
		if (!add_window(draft, window, &site->row))
			return false;
	}
	return add_operands(draft, note, site) && add_site_texts(draft, note, site);
}

/* Behind all rows. */
static int add_sites(struct draft *draft)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < draft->notes.count; i++) {
		const struct tw_note *note = &draft->notes.entries[i];
		struct tw_window window;

		if (note->value > UINT32_MAX)
			continue;
		tw_site_examine(&draft->scan, note, &window);
		if (!add_site(draft, note, &window, &covered))
			return TW_ENOMEM;
	}
	return 0;
}

/* ---- the whole ---- */

/* Appends a section to the plan and returns its offset. */
static uint32_t put(uint8_t *plan, size_t *at, const void *bytes, size_t count)
{
	size_t offset = (*at + 7) & ~(size_t)7;

	if (count)
		memcpy(plan + offset, bytes, count);
	*at = offset + count;
	return (uint32_t)offset;
}

static int write_plan(const struct draft *draft, void **bytes, size_t *count)
{
	const struct tw_elf *elf = &draft->file->elf;
	size_t row_bytes = draft->row_count * sizeof *draft->rows,
	       name_bytes = draft->name_count * sizeof *draft->names;
	size_t fix_bytes = draft->fix_count * sizeof *draft->fixes, at = sizeof(struct tw_entry_plan_header);
	size_t site_bytes = draft->site_count * sizeof *draft->sites,
	       operand_bytes = draft->operand_count * sizeof *draft->operands;
	size_t most = at + row_bytes + name_bytes + fix_bytes + site_bytes + operand_bytes + draft->code_bytes +
		      draft->string_bytes + 7 * 8;
	struct tw_entry_plan_header *header;
	uint8_t *plan;

	if (most > UINT32_MAX)
		return TW_ENOTSUP;
	plan = calloc(1, most);
	if (!plan)
		return TW_ENOMEM;
	header = (struct tw_entry_plan_header *)(void *)plan;
	*header = (struct tw_entry_plan_header){
		.version = TW_ENTRY_PLAN_VERSION,
		.type = draft->file->header.e_type,
		.build_id_bytes = elf->build_id_bytes,
		.row_count = (uint32_t)draft->row_count,
		.name_count = (uint32_t)draft->name_count,
		.fix_count = (uint32_t)draft->fix_count,
		.site_count = (uint32_t)draft->site_count,
		.operand_count = (uint32_t)draft->operand_count,
		.code_bytes = (uint32_t)draft->code_bytes,
		.string_bytes = (uint32_t)draft->string_bytes,
		.part_count = draft->part_count,
		.image_bytes = elf->image.high - elf->image.low,
		.file = draft->file->identity,
		.debug_file = draft->debug_file,
		.unframed_count = (uint32_t)draft->unframed_count,
	};
	memcpy(header->magic, TW_ENTRY_PLAN_MAGIC, sizeof header->magic);
	memcpy(header->build_id, elf->build_id, elf->build_id_bytes);
	header->rows = put(plan, &at, draft->rows, row_bytes);
	header->names = put(plan, &at, draft->names, name_bytes);
	header->fixes = put(plan, &at, draft->fixes, fix_bytes);
	header->sites = put(plan, &at, draft->sites, site_bytes);
	header->operands = put(plan, &at, draft->operands, operand_bytes);
	header->code = put(plan, &at, draft->code, draft->code_bytes);
	header->strings = put(plan, &at, draft->strings, draft->string_bytes);
	header->bytes = at;
	header->checksum = tw_entry_plan_checksum(header);
	*bytes = plan;
	*count = at;
	return 0;
}

void tw_entry_plan_debug_file(const struct tw_elf *elf, struct tw_file_identity *out)
{
	struct stat status = {0};
	int fd = tw_sym_debug_file(elf, &status);

	tw_file_identify(&status, out);
	if (fd >= 0)
		close(fd);
}

/* A file that is read once more must have the same bytes, and nobody may have changed them meanwhile. */
static int read_entries(struct draft *draft)
{
	const struct tw_elf_file *file = draft->file;
	int fd = tw_elf_file_reopen(file), error;

	if (fd < 0)
		return fd;
	tw_entry_plan_debug_file(&file->elf, &draft->debug_file);
	error = tw_sym_entries_read(&file->elf, &file->header, fd, tw_plan_unpack, &draft->entries);
	if (!error)
		error = tw_notes_read(&draft->entries.own, fd, &draft->notes);
	close(fd);
	fd = error ? -1 : tw_elf_file_reopen(file);
	if (fd >= 0)
		close(fd);
	return error ? error : fd < 0 ? fd : 0;
}

int tw_entry_plan_make(const struct tw_elf_file *file, void **bytes, size_t *count)
{
	struct draft draft = {.file = file};
	int error;

	if (!file->elf.build_id_bytes)
		return TW_ENOENT;
	error = read_entries(&draft);
	if (!error)
		draft.makes = has_v8(&draft.entries)			     ? CODE_OF_V8
			      : !strcmp(draft.file->elf.soname, "libjvm.so") ? CODE_OF_HOTSPOT
									     : NO_CODE;
	if (!error)
		error = tw_scan_init(&draft.scan, &file->elf, &draft.entries,
				     &(struct tw_scan_options){.is_fixed = file->header.e_type == ET_EXEC,
							       .notes_values = draft.makes != NO_CODE,
							       .notes_groups = draft.notes.count != 0});
	if (!error)
		mark_made(&draft);
	draft.unframed_count = draft.entries.unframed_count;
	if (!error)
		error = add_rows(&draft);
	if (!error)
		error = add_sites(&draft);
	if (!error)
		error = write_plan(&draft, bytes, count);
	tw_scan_fini(&draft.scan);
	tw_sym_entries_fini(&draft.entries);
	tw_notes_fini(&draft.notes);
	free(draft.sites);
	free(draft.operands);
	free(draft.rows);
	free(draft.names);
	free(draft.fixes);
	free(draft.code);
	free(draft.strings);
	return error;
}
