/* SPDX-License-Identifier: Apache-2.0 */
/* entries.c - descriptions of call frames, kinds by their state and by sections, names by symbol tables. */
#include "symbols/entries.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/search.h"
#include "symbols/file.h"
#include "symbols/nops.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const tw_sym_debug_folders[] = {"/usr/lib/debug/.build-id", "/usr/local/lib/debug/.build-id", NULL};

/* More names of one function than a sane file has. */
#define NAMES_MAX 256

struct reading {
	const struct tw_elf *elf;
	const ElfW(Ehdr) *header;
	struct tw_sym_entries *out;
	uint64_t *resolvers; /* values, sorted */
	size_t resolver_count, resolver_capacity;
	size_t name_capacity;
};

void tw_sym_nameless(uint64_t value, char out[TW_SYM_NAMELESS_BYTES])
{
	unsigned digits = 1;

	while (digits < 16 && value >> 4 * digits)
		digits++;
	memcpy(out, "sub_", 4);
	for (unsigned i = 0; i < digits; i++)
		out[4 + i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
	out[4 + digits] = '\0';
}

/* ---- kinds ---- */

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return TW_ORDER(*x, *y);
}

static bool add_resolver(struct reading *reading, uint64_t value)
{
	if (!tw_grow(reading->resolvers, reading->resolver_count, reading->resolver_capacity))
		return false;
	reading->resolvers[reading->resolver_count++] = value;
	return true;
}

static bool add_resolvers_of(struct reading *reading, const ElfW(Rela) *relocations, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ELF64_R_TYPE(relocations[i].r_info) == R_X86_64_IRELATIVE &&
		    !add_resolver(reading, (uint64_t)relocations[i].r_addend))
			return false;
	return true;
}

/* Resolvers of indirect functions: named ones, and those of relocations without a name. */
static bool find_resolvers(struct reading *reading)
{
	const struct tw_elf *elf = reading->elf;
	size_t count = tw_elf_symbol_count(elf);

	for (size_t i = 0; i < count; i++) {
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, i);

		if (!symbol)
			break;
		if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC && symbol->st_shndx != SHN_UNDEF &&
		    !add_resolver(reading, symbol->st_value))
			return false;
	}
	if (!add_resolvers_of(reading, elf->relocations, elf->relocation_count) ||
	    !add_resolvers_of(reading, elf->plt_relocations, elf->plt_relocation_count))
		return false;
	if (reading->resolver_count)
		qsort(reading->resolvers, reading->resolver_count, sizeof *reading->resolvers, compare_values);
	return true;
}

static bool is_resolver(const struct reading *reading, uint64_t value)
{
	return reading->resolver_count &&
	       bsearch(&value, reading->resolvers, reading->resolver_count, sizeof *reading->resolvers, compare_values);
}

/* Does the code begin with a jump through a slot, as each stub of a procedure linkage table does? */
static bool is_stub(const struct tw_elf *elf, const struct tw_elf_frame *frame)
{
	const uint8_t *at = (const uint8_t *)(elf->base + frame->value);
	uint64_t left = frame->bytes;

	if (left >= TW_ENDBR_BYTES && tw_is_endbr(at)) {
		at += TW_ENDBR_BYTES;
		left -= TW_ENDBR_BYTES;
	}
	if (left && *at == 0xf2) {
		at++;
		left--;
	}
	return left >= 6 && at[0] == 0xff && at[1] == 0x25;
}

/* By the sections' names; in a file without sections, by the code. */
static bool is_plt(const struct reading *reading, const struct tw_elf_frame *frame)
{
	const struct tw_elf_sections *sections = &reading->out->own;

	if (!sections->table || !sections->names)
		return is_stub(reading->elf, frame);
	for (unsigned i = 0; i < sections->count; i++) {
		const ElfW(Shdr) *section = &sections->table[i];

		if (frame->value - section->sh_addr < section->sh_size && section->sh_flags & SHF_EXECINSTR)
			return section->sh_name < sections->name_bytes &&
			       !strncmp(sections->names + section->sh_name, ".plt", 4);
	}
	return false;
}

static enum tw_sym_entry_kind kind_of(const struct reading *reading, const struct tw_elf_frame *frame)
{
	struct tw_elf_frame_start start = tw_elf_frame_start(frame);

	if (frame->is_signal)
		return TW_SYM_ENTRY_SIGNAL;
	if (start.has_no_caller || frame->value == reading->header->e_entry)
		return TW_SYM_ENTRY_NO_CALLER;
	if (is_plt(reading, frame))
		return TW_SYM_ENTRY_PLT;
	if (is_resolver(reading, frame->value))
		return TW_SYM_ENTRY_RESOLVER;
	return start.is_known && start.is_called ? TW_SYM_ENTRY_FUNCTION : TW_SYM_ENTRY_PART;
}

static int make_entries(struct reading *reading)
{
	struct tw_sym_entries *out = reading->out;

	out->entries = malloc((out->frames.count + 1) * sizeof *out->entries);
	if (!out->entries || !find_resolvers(reading))
		return TW_ENOMEM;
	for (size_t i = 0; i < out->frames.count; i++) {
		const struct tw_elf_frame *frame = &out->frames.entries[i];

		struct tw_sym_entry *before = out->count ? &out->entries[out->count - 1] : NULL;

		/* Two descriptions of one place: the file is damaged, or its unwinder uses either. */
		if (before && before->value == frame->value)
			continue;
		/* Entries never overlap, whatever the file says. */
		if (before && before->bytes > frame->value - before->value)
			before->bytes = frame->value - before->value;
		out->entries[out->count++] = (struct tw_sym_entry){.value = frame->value,
								   .bytes = frame->bytes,
								   .frame = frame,
								   .kind = kind_of(reading, frame)};
	}
	return 0;
}

/* ---- names ---- */

static bool add_name(struct reading *reading, struct tw_sym_entry *entry, const char *name)
{
	struct tw_sym_entries *out = reading->out;

	for (size_t i = entry->first_name; i < entry->first_name + entry->name_count; i++)
		if (!strcmp(out->names[i], name))
			return true;
	if (entry->name_count == NAMES_MAX)
		return true;
	if (!tw_grow(out->names, out->name_count, reading->name_capacity))
		return false;
	out->names[out->name_count++] = name;
	entry->name_count++;
	if (entry->kind == TW_SYM_ENTRY_FUNCTION && strstr(name, ".cold"))
		entry->kind = TW_SYM_ENTRY_PART;
	return true;
}

static bool add_names_from(struct reading *reading, struct tw_sym_entry *entry, const struct tw_elf_sections *sections)
{
	size_t i = tw_elf_sections_function_from(sections, entry->value), end = i + NAMES_MAX;

	for (; i < end && i < sections->function_count && sections->functions[i].value == entry->value; i++) {
		const char *name = sections->strings + sections->functions[i].name;

		if (*name && !add_name(reading, entry, name))
			return false;
	}
	return true;
}

static size_t count_unframed(const struct tw_sym_entries *out, const struct tw_elf_sections *sections)
{
	size_t count = 0;

	for (size_t i = 0; i < sections->function_count; i++) {
		uint64_t value = sections->functions[i].value;

		if (i && sections->functions[i - 1].value == value)
			continue;
		count += !tw_elf_frame_at(&out->frames, value);
	}
	return count;
}

static int name_entries(struct reading *reading)
{
	struct tw_sym_entries *out = reading->out;

	for (size_t i = 0; i < out->count; i++) {
		struct tw_sym_entry *entry = &out->entries[i];

		entry->first_name = out->name_count;
		if (!add_names_from(reading, entry, &out->own) || !add_names_from(reading, entry, &out->separate))
			return TW_ENOMEM;
	}
	out->unframed_count = count_unframed(out, out->separate.function_count ? &out->separate : &out->own);
	return 0;
}

/* Reads the functions of a file; a file without sections or symbols names none. */
static int read_functions(struct tw_elf_sections *sections, const ElfW(Ehdr) *header, int fd)
{
	int error = tw_elf_sections_read(sections, header, fd);

	if (!error)
		error = tw_elf_sections_read_functions(sections, fd);
	return error == TW_ENOENT ? 0 : error;
}

/* A debug file that cannot be read or is damaged only gives no names.  Closes fd, which may be negative. */
static int read_debug_file(struct tw_elf_sections *sections, int fd)
{
	ElfW(Ehdr) header;
	int error = 0;

	if (fd < 0)
		return TW_ENOENT;
	if (tw_file_read_at(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		error = TW_ENOENT;
	if (!error)
		error = read_functions(sections, &header, fd);
	close(fd);
	if (error)
		tw_elf_sections_fini(sections);
	return error;
}

static int open_trusted(const char *path, struct stat *out)
{
	struct stat status;
	int fd = tw_file_open(path, &status);

	if (fd >= 0 && !tw_file_is_trusted(&status)) {
		close(fd);
		return TW_EPERM;
	}
	if (fd >= 0)
		*out = status;
	return fd;
}

int tw_sym_debug_file(const struct tw_elf *elf, struct stat *status)
{
	const char *home = getenv("HOME");
	char id[2 * 32 + 1], path[512];
	int fd = -1;

	if (elf->build_id_bytes < 2)
		return -1;
	for (uint32_t i = 0; i < elf->build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", elf->build_id[i]);
	for (const char *const *folder = tw_sym_debug_folders; *folder && fd < 0; folder++) {
		snprintf(path, sizeof path, "%s/%.2s/%s.debug", *folder, id, id + 2);
		fd = open_trusted(path, status);
	}
	/* A file that debuginfod's client has fetched before. */
	if (fd < 0 && home) {
		snprintf(path, sizeof path, "%s/.cache/debuginfod_client/%s/debuginfo", home, id);
		fd = open_trusted(path, status);
	}
	return fd;
}

static int read_packed(const struct tw_sym_entries *entries, int fd, tw_sym_unpack_fn unpack,
		       struct tw_elf_sections *sections)
{
	const ElfW(Shdr) *section = entries->own.table && entries->own.names
					    ? tw_elf_sections_find(&entries->own, ".gnu_debugdata", NULL)
					    : NULL;

	return section && unpack ? read_debug_file(sections, unpack(fd, section->sh_offset, section->sh_size))
				 : TW_ENOENT;
}

/* The names that a file without .symtab has elsewhere; often there are none. */
static int read_others(const struct tw_elf *elf, int fd, tw_sym_unpack_fn unpack, struct tw_sym_entries *out)
{
	struct stat status;
	int error;

	if (out->own.table && tw_elf_sections_find(&out->own, ".symtab", NULL))
		return 0;
	error = read_debug_file(&out->separate, tw_sym_debug_file(elf, &status));
	if (error && error != TW_ENOMEM)
		error = read_packed(out, fd, unpack, &out->separate);
	return error == TW_ENOMEM ? error : 0;
}

int tw_sym_entries_read(const struct tw_elf *elf, const ElfW(Ehdr) *header, int fd, tw_sym_unpack_fn unpack,
			struct tw_sym_entries *out)
{
	struct reading reading = {.elf = elf, .header = header, .out = out};
	int error;

	*out = (struct tw_sym_entries){0};
	error = tw_elf_frames_read(elf, &out->frames);
	if (!error)
		error = read_functions(&out->own, header, fd);
	if (!error)
		error = read_others(elf, fd, unpack, out);
	if (!error)
		error = make_entries(&reading);
	if (!error)
		error = name_entries(&reading);
	free(reading.resolvers);
	return error;
}

void tw_sym_entries_fini(struct tw_sym_entries *entries)
{
	tw_elf_frames_fini(&entries->frames);
	tw_elf_sections_fini(&entries->own);
	tw_elf_sections_fini(&entries->separate);
	free(entries->entries);
	free(entries->names);
	*entries = (struct tw_sym_entries){0};
}
