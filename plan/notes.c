/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - reads the section .note.stapsdt, and the operands that its notes describe as text. */
#include "plan/notes.h"

#include "base/grow.h"
#include "base/search.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than the largest programs have: each is looked at by itself. */
#define NOTES_MAX 65536u
#define OWNER	  "stapsdt"
#define TYPE	  3u

/* ---- notes ---- */

static size_t aligned(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* A text of the description, which must end within it; NULL: it does not. */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *zero = memchr(text, '\0', (size_t)(end - text));

	*at = zero ? zero + 1 : end;
	return zero ? text : NULL;
}

/* Three addresses and three texts.  @moved	how far the file's code was moved since its notes were written (prelink). */
static bool take_note(struct tw_notes *notes, const char *description, size_t bytes, uint64_t base)
{
	const char *at = description + 3 * sizeof(uint64_t), *end = description + bytes;
	uint64_t addresses[3], moved;
	struct tw_note note;

	if (bytes < sizeof addresses + 3)
		return false;
	memcpy(addresses, description, sizeof addresses);
	moved = base ? base - addresses[1] : 0;
	note = (struct tw_note){.value = addresses[0] + moved, .semaphore = addresses[2] ? addresses[2] + moved : 0};
	note.provider = take_text(&at, end);
	note.name = note.provider ? take_text(&at, end) : NULL;
	note.arguments = note.name ? take_text(&at, end) : NULL;
	if (!note.arguments || !*note.provider || !*note.name || notes->count == NOTES_MAX)
		return false;
	if (!tw_grow(notes->entries, notes->count, notes->capacity))
		return false;
	notes->entries[notes->count++] = note;
	return true;
}

static void take_section(struct tw_notes *notes, const char *at, size_t bytes, uint64_t base)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) header;
		size_t owner, all;

		memcpy(&header, at, sizeof header);
		owner = sizeof header + aligned(header.n_namesz);
		all = owner + aligned(header.n_descsz);
		if (header.n_namesz > bytes || header.n_descsz > bytes || owner + header.n_descsz > bytes) {
			notes->damaged_count++;
			return;
		}
		if (header.n_type == TYPE && header.n_namesz == sizeof OWNER &&
		    !memcmp(at + sizeof header, OWNER, sizeof OWNER) &&
		    !take_note(notes, at + owner, header.n_descsz, base))
			notes->damaged_count++;
		if (all >= bytes)
			return;
		at += all;
		bytes -= all;
	}
}

static int by_value(const void *a, const void *b)
{
	const struct tw_note *x = a, *y = b;
	return TW_ORDER(x->value, y->value)
		       ?: strcmp(x->provider, y->provider)
		       ?: strcmp(x->name, y->name)
		       ?: strcmp(x->arguments, y->arguments);
}

static void remove_twins(struct tw_notes *notes)
{
	size_t kept = 0;

	for (size_t i = 0; i < notes->count; i++)
		if (!kept || by_value(&notes->entries[kept - 1], &notes->entries[i]))
			notes->entries[kept++] = notes->entries[i];
	notes->count = kept;
}

static const ElfW(Shdr) *section_of(const struct tw_elf_sections *sections)
{
	const ElfW(Shdr) *section = tw_elf_sections_find(sections, ".note.stapsdt", NULL);

	return section && section->sh_type == SHT_NOTE ? section : NULL;
}

bool tw_notes_are_in(const struct tw_elf_file *file)
{
	struct tw_elf_sections sections;
	int fd = tw_elf_file_reopen(file);
	bool are_in;

	if (fd < 0)
		return false;
	are_in = !tw_elf_sections_read(&sections, &file->header, fd) && section_of(&sections);
	tw_elf_sections_fini(&sections);
	close(fd);
	return are_in;
}

/* Names of a program's own data are in no other table. */
static int read_symbols(const struct tw_elf_sections *sections, int fd, struct tw_notes *notes)
{
	const ElfW(Shdr) *table = tw_elf_sections_find(sections, ".symtab", NULL), *strings;
	int error;

	if (!table || table->sh_entsize != sizeof(ElfW(Sym)) || table->sh_link >= sections->count)
		return 0;
	strings = &sections->table[table->sh_link];
	error = tw_elf_table_read(fd, table->sh_offset, table->sh_size, &notes->symbols);
	if (!error)
		error = tw_elf_table_read(fd, strings->sh_offset, strings->sh_size, &notes->strings);
	if (error)
		return error;
	notes->symbol_count = table->sh_size / sizeof(ElfW(Sym));
	notes->string_bytes = strings->sh_size;
	return 0;
}

static bool needs_symbols(const struct tw_notes *notes)
{
	for (size_t i = 0; i < notes->count; i++)
		if (strstr(notes->entries[i].arguments, "(%rip)"))
			return true;
	return false;
}

int tw_notes_read(const struct tw_elf_sections *sections, int fd, struct tw_notes *out)
{
	const ElfW(Shdr) *section = section_of(sections);
	const ElfW(Shdr) *base = tw_elf_sections_find(sections, ".stapsdt.base", NULL);
	int error;

	*out = (struct tw_notes){0};
	if (!section)
		return 0;
	error = tw_elf_table_read(fd, section->sh_offset, section->sh_size, &out->bytes);
	if (error)
		return error;
	take_section(out, out->bytes, section->sh_size, base ? base->sh_addr : 0);
	if (out->count)
		qsort(out->entries, out->count, sizeof *out->entries, by_value);
	remove_twins(out);
	return needs_symbols(out) ? read_symbols(sections, fd, out) : 0;
}

void tw_notes_fini(struct tw_notes *notes)
{
	free(notes->entries);
	free(notes->bytes);
	free(notes->symbols);
	free(notes->strings);
	*notes = (struct tw_notes){0};
}

/* ---- operands ---- */

/* Registers in the order in which instructions number them, by their names of 8, 4, 2 and 1 bytes. */
static const char *const old_registers[8][4] = {{"rax", "eax", "ax", "al"},  {"rcx", "ecx", "cx", "cl"},
						{"rdx", "edx", "dx", "dl"},  {"rbx", "ebx", "bx", "bl"},
						{"rsp", "esp", "sp", "spl"}, {"rbp", "ebp", "bp", "bpl"},
						{"rsi", "esi", "si", "sil"}, {"rdi", "edi", "di", "dil"}};
static const char *const high_registers[4] = {"ah", "ch", "dh", "bh"};

static bool is_word(const char *text, size_t bytes, const char *word)
{
	return strlen(word) == bytes && !memcmp(text, word, bytes);
}

/* r8 to r15, with d, w or b. */
static unsigned new_register(const char *text, size_t bytes)
{
	unsigned number = 0;
	size_t at = 1;

	for (; at < bytes && at < 3 && text[at] >= '0' && text[at] <= '9'; at++)
		number = number * 10 + (unsigned)(text[at] - '0');
	if (bytes < 2 || text[0] != 'r' || number < 8 || number > 15 ||
	    (at < bytes && (at + 1 != bytes || !strchr("dwb", text[at]))))
		return TW_ENTRY_NO_REGISTER;
	return number;
}

/* TW_ENTRY_NO_REGISTER: it is none of the integer registers. */
static unsigned register_of(const char *text, size_t bytes, bool *is_high)
{
	*is_high = false;
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < 4; k++)
			if (is_word(text, bytes, old_registers[i][k]))
				return i;
	for (unsigned i = 0; i < 4; i++)
		if ((*is_high = is_word(text, bytes, high_registers[i])))
			return i;
	return new_register(text, bytes);
}

static bool is_of_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-';
}

/* Moves on over a number, decimal or hexadecimal; false: there is none. */
static bool take_number(const char **at, int64_t *out)
{
	char *end;

	if (!is_of_number(**at))
		return false;
	errno = 0;
	*out = (int64_t)strtoull(*at, &end, 0);
	if (end == *at || errno)
		return false;
	*at = end;
	return true;
}

/* A register with its sign, inside of brackets.  Nothing there is no register. */
static bool take_register(const char **at, uint8_t *out)
{
	size_t bytes;
	bool is_high;

	*out = TW_ENTRY_NO_REGISTER;
	if (**at != '%')
		return **at == ',';
	bytes = strcspn(*at + 1, ",)");
	*out = (uint8_t)register_of(*at + 1, bytes, &is_high);
	*at += 1 + bytes;
	/* Addresses are made of whole registers. */
	return *out != TW_ENTRY_NO_REGISTER && !is_high && (*at)[-(long)bytes] == 'r';
}

/* (base, index, scale) */
static bool take_brackets(const char **at, struct tw_entry_plan_operand *out)
{
	int64_t scale = 1;

	(*at)++;
	if (!take_register(at, &out->base))
		return false;
	if (**at == ',') {
		(*at)++;
		if (!take_register(at, &out->index))
			return false;
	}
	if (**at == ',') {
		(*at)++;
		if (!take_number(at, &scale))
			return false;
	}
	if (**at != ')' || (scale != 1 && scale != 2 && scale != 4 && scale != 8))
		return false;
	out->shift = (uint8_t)(scale == 8 ? 3 : scale / 2);
	(*at)++;
	return true;
}

/* The table in which names are looked up. */
struct names {
	const struct tw_notes *notes;
	const struct tw_elf *elf;
};

static bool is_object(const ElfW(Sym) *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF;
}

/* In the full table; false: none has it, or several have. */
static bool find_in_table(const struct tw_notes *notes, const char *name, uint64_t *value)
{
	bool is_found = false;

	for (size_t i = 0; i < notes->symbol_count; i++) {
		const ElfW(Sym) *symbol = &notes->symbols[i];

		if (!is_object(symbol) || symbol->st_name >= notes->string_bytes ||
		    strcmp(notes->strings + symbol->st_name, name) != 0)
			continue;
		if (is_found && *value != symbol->st_value)
			return false;
		*value = symbol->st_value;
		is_found = true;
	}
	return is_found;
}

static bool find_symbol(const struct names *names, const char *name, size_t bytes, uint64_t *value)
{
	char copy[256];
	const ElfW(Sym) *symbol;

	if (!bytes || bytes >= sizeof copy)
		return false;
	memcpy(copy, name, bytes);
	copy[bytes] = '\0';
	symbol = tw_elf_lookup(names->elf, copy, 0);
	if (!symbol || !is_object(symbol))
		return find_in_table(names->notes, copy, value);
	*value = symbol->st_value;
	return true;
}

/* [number] [+ symbol] or symbol [+ number], then (%rip). */
static bool take_global(const struct names *names, const char *at, struct tw_entry_plan_operand *out)
{
	int64_t number = 0, more = 0;
	uint64_t value;
	size_t bytes;

	if (take_number(&at, &number) && *at == '+')
		at++;
	bytes = strcspn(at, "+-(");
	if (!find_symbol(names, at, bytes, &value))
		return false;
	at += bytes;
	if (*at == '+')
		at++;
	if (*at != '(' && !take_number(&at, &more))
		return false;
	out->kind = TW_ENTRY_OPERAND_GLOBAL;
	out->number = (int64_t)(value + (uint64_t)number + (uint64_t)more);
	return !strcmp(at, "(%rip)");
}

static bool take_memory(const char *at, struct tw_entry_plan_operand *out)
{
	if (*at != '(' && !take_number(&at, &out->number))
		return false;
	if (*at != '(' || !take_brackets(&at, out) || *at)
		return false;
	out->kind = TW_ENTRY_OPERAND_MEMORY;
	return true;
}

static bool take_operand(const struct names *names, const char *at, struct tw_entry_plan_operand *out)
{
	bool is_high;

	if (*at == '$') {
		at++;
		out->kind = TW_ENTRY_OPERAND_CONSTANT;
		return take_number(&at, &out->number) && !*at;
	}
	if (*at == '%') {
		out->base = (uint8_t)register_of(at + 1, strlen(at + 1), &is_high);
		out->kind = TW_ENTRY_OPERAND_REGISTER;
		out->flags |= is_high ? TW_ENTRY_OPERAND_HIGH : 0;
		return out->base != TW_ENTRY_NO_REGISTER;
	}
	if (strstr(at, "(%rip)"))
		return take_global(names, at, out);
	return take_memory(at, out);
}

static void take_argument(const struct names *names, const char *text, struct tw_entry_plan_operand *out)
{
	static const struct tw_entry_plan_operand none = {.base = TW_ENTRY_NO_REGISTER, .index = TW_ENTRY_NO_REGISTER};
	const char *at = text + (*text == '-');

	*out = none;
	if ((*at == '1' || *at == '2' || *at == '4' || *at == '8') && at[1] == '@') {
		out->bytes = (uint8_t)(*at - '0');
		out->flags = *text == '-' ? TW_ENTRY_OPERAND_SIGNED : 0;
		if (take_operand(names, at + 2, out))
			return;
	}
	*out = none;
}

unsigned tw_notes_operands(const struct tw_notes *notes, const struct tw_elf *elf, const char *arguments,
			   struct tw_entry_plan_operand out[TW_NOTE_ARGUMENTS_MAX])
{
	const struct names names = {notes, elf};
	char text[512];
	unsigned count = 0;

	for (const char *at = arguments; *(at += strspn(at, " ")) && count < TW_NOTE_ARGUMENTS_MAX;) {
		size_t bytes = strcspn(at, " ");

		if (bytes < sizeof text) {
			memcpy(text, at, bytes);
			text[bytes] = '\0';
		} else {
			text[0] = '\0';
		}
		take_argument(&names, text, &out[count++]);
		at += bytes;
	}
	return count;
}
