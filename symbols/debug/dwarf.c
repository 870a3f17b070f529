/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf.c - the functions, symbols and lines of a file, by value. */
#include "symbols/debug/dwarf.h"

#include "base/export.h"
#include "base/grow.h"
#include "base/search.h"
#include "symbols/clone.h"
#include "tracewheel/error.h"

#include <gelf.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX   16
#define CHUNK_BYTES 16384
/* Maximum extent of a symbol without a size (hand-written code), up to the next one. */
#define UNSIZED_BYTES_MAX 4096

/* ---- memory ---- */

struct tw_dwarf_chunk {
	struct tw_dwarf_chunk *next;
	size_t used, capacity;
	_Alignas(16) char bytes[];
};

void *tw_dwarf_new(struct tw_debug *debug, size_t bytes)
{
	struct tw_dwarf_chunk *chunk = debug->chunks;
	void *memory;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!chunk || chunk->capacity - chunk->used < bytes) {
		size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		chunk = calloc(1, sizeof *chunk + capacity);
		if (!chunk)
			return NULL;
		chunk->capacity = capacity;
		chunk->next = debug->chunks;
		debug->chunks = chunk;
	}
	memory = chunk->bytes + chunk->used;
	chunk->used += bytes;
	return memory;
}

char *tw_dwarf_text(struct tw_debug *debug, const char *text)
{
	char *copy = tw_dwarf_new(debug, strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

/* ---- symbols ---- */

static int by_symbol(const void *a, const void *b)
{
	const struct tw_dwarf_symbol *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->is_local != y->is_local)
		return x->is_local - y->is_local;
	return strcmp(x->name, y->name);
}

static int add_symbols(struct tw_debug *debug, Elf *elf, Elf_Scn *section, size_t *capacity)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return 0;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		unsigned type = GELF_ST_TYPE(symbol.st_info);
		const char *name;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (!name || !*name)
			continue;
		if (!tw_grow(debug->symbols, debug->symbol_count, *capacity))
			return TW_ENOMEM;
		debug->symbols[debug->symbol_count++] =
			(struct tw_dwarf_symbol){symbol.st_value, symbol.st_size, name,
						 GELF_ST_BIND(symbol.st_info) == STB_LOCAL};
	}
	return 0;
}

static int read_symbols(struct tw_debug *debug, Elf *elf, size_t *capacity)
{
	Elf_Scn *section = NULL;
	int error = 0;

	while (elf && !error && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			error = add_symbols(debug, elf, section, capacity);
	}
	return error;
}

/* Duplicates of name and value are removed. */
static void sort_symbols(struct tw_debug *debug)
{
	size_t kept = 0;

	if (debug->symbol_count)
		qsort(debug->symbols, debug->symbol_count, sizeof *debug->symbols, by_symbol);
	for (size_t i = 0; i < debug->symbol_count; i++)
		if (!kept || debug->symbols[i].value != debug->symbols[kept - 1].value ||
		    strcmp(debug->symbols[i].name, debug->symbols[kept - 1].name) != 0)
			debug->symbols[kept++] = debug->symbols[i];
	debug->symbol_count = kept;
}

/* The first symbol that begins after a value. */
static size_t symbol_behind(const struct tw_debug *debug, uint64_t value)
{
	return tw_search(i, debug->symbol_count, debug->symbols[i].value <= value);
}

/* Is the code there known to be a whole function, as it was written? */
static bool is_whole_function(const struct tw_debug *debug, uint64_t value)
{
	for (size_t i = symbol_behind(debug, value); i > 0 && debug->symbols[i - 1].value == value; i--)
		if (!tw_sym_is_special_clone(debug->symbols[i - 1].name))
			return true;
	return false;
}

/* ---- DWARF's functions and units ---- */

struct unit {
	uint32_t language;
	bool is_clang;
};

bool tw_dwarf_next(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) != 0 || next.cu != die->cu || next.addr <= die->addr)
		return false;
	*die = next;
	return true;
}

static int add_entry(struct tw_debug *debug, Dwarf_Die *die, const struct unit *unit)
{
	Dwarf_Addr value, end, base;

	/* The first part of a split function is its entry, or else no symbol matches. */
	if (dwarf_entrypc(die, &value) != 0 && dwarf_ranges(die, 0, &base, &value, &end) <= 0)
		return 0;
	if (!tw_grow(debug->entries, debug->entry_count, debug->entry_capacity))
		return TW_ENOMEM;
	debug->entries[debug->entry_count++] = (struct tw_dwarf_entry){.value = value,
								       .die = *die,
								       .language = unit->language,
								       .is_clang = unit->is_clang};
	return 0;
}

static int walk(struct tw_debug *debug, Dwarf_Die *parent, const struct unit *unit, int depth)
{
	Dwarf_Die child;
	int error = 0;

	if (depth > DEPTH_MAX || dwarf_child(parent, &child) != 0)
		return 0;
	do {
		if (!debug->visits_left)
			break;
		debug->visits_left--;
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
			error = add_entry(debug, &child, unit);
			/* Classes inside of functions have methods, too. */
			__attribute__((fallthrough));
		case DW_TAG_namespace:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_module:
			if (!error)
				error = walk(debug, &child, unit, depth + 1);
			break;
		default: break;
		}
	} while (!error && tw_dwarf_next(&child));
	return error;
}

static int add_ranges(struct tw_debug *debug, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while (debug->visits_left && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		debug->visits_left--;
		if (!tw_grow(debug->ranges, debug->range_count, debug->range_capacity))
			return TW_ENOMEM;
		debug->ranges[debug->range_count++] = (struct tw_dwarf_range){low, high, *die};
	}
	return 0;
}

static int read_unit(struct tw_debug *debug, Dwarf_Die *die, Dwarf_Die *split)
{
	Dwarf_Die *whole = split->addr ? split : die;
	Dwarf_Attribute attr;
	const char *producer = dwarf_attr(whole, DW_AT_producer, &attr) ? dwarf_formstring(&attr) : NULL;
	int language = dwarf_srclang(whole);
	const struct unit unit = {language > 0 ? (uint32_t)language : 0, producer && strstr(producer, "clang")};
	int error = add_ranges(debug, die);

	return error ? error : walk(debug, whole, &unit, 0);
}

static int by_entry(const void *a, const void *b)
{
	const struct tw_dwarf_entry *x = a, *y = b;

	return TW_ORDER(x->value, y->value);
}

static int by_range(const void *a, const void *b)
{
	const struct tw_dwarf_range *x = a, *y = b;

	return TW_ORDER(x->low, y->low);
}

static int read_units(struct tw_debug *debug)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	int error = 0;

	while (debug->dwarf && !error && dwarf_get_units(debug->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
		Dwarf_Die split = {0};

		if (type == DW_UT_type || type == DW_UT_split_type || type == DW_UT_partial)
			continue;
		if (type == DW_UT_skeleton && (!tw_dwarf_may_split(debug, &die) ||
					       dwarf_cu_info(unit, NULL, NULL, NULL, &split, NULL, NULL, NULL) != 0))
			continue;
		error = read_unit(debug, &die, &split);
	}
	if (debug->entry_count)
		qsort(debug->entries, debug->entry_count, sizeof *debug->entries, by_entry);
	if (debug->range_count)
		qsort(debug->ranges, debug->range_count, sizeof *debug->ranges, by_range);
	return error;
}

/* Done at the first use, because a large file takes long. */
static int index_all(struct tw_debug *debug)
{
	size_t capacity = 0;
	int error;

	if (debug->is_indexed)
		return 0;
	debug->visits_left = debug->file.content_bytes + debug->separate.content_bytes;
	error = read_symbols(debug, debug->file.elf, &capacity);
	if (!error)
		error = read_symbols(debug, debug->separate.elf, &capacity);
	sort_symbols(debug);
	if (!error)
		error = read_units(debug);
	debug->is_indexed = !error;
	return error;
}

/* ---- the interface ---- */

TW_API int tw_debug_open(const char *path, const uint8_t *build_id, size_t build_id_bytes, struct tw_debug **out)
{
	struct tw_debug *debug = calloc(1, sizeof *debug);
	int error = TW_ENOMEM;

	if (!debug)
		return TW_ENOMEM;
	debug->file.fd = debug->separate.fd = -1;
	debug->path = strdup(path);
	if (debug->path)
		error = tw_dwarf_find(debug, build_id, build_id_bytes);
	if (error) {
		tw_debug_close(debug);
		return error;
	}
	*out = debug;
	return 0;
}

static void keep(void *type)
{
}

TW_API void tw_debug_close(struct tw_debug *debug)
{
	struct tw_dwarf_chunk *chunk;

	if (!debug)
		return;
	tdestroy(debug->types, keep);
	dwarf_end(debug->dwarf);
	tw_dwarf_file_close(&debug->file);
	tw_dwarf_file_close(&debug->separate);
	while ((chunk = debug->chunks)) {
		debug->chunks = chunk->next;
		free(chunk);
	}
	free(debug->symbols);
	free(debug->entries);
	free(debug->ranges);
	free(debug->problem);
	free(debug->path);
	free(debug);
}

TW_API const char *tw_debug_problem(const struct tw_debug *debug)
{
	return debug->problem;
}

TW_API int tw_debug_each_symbol(struct tw_debug *debug, tw_debug_symbol_fn visit, void *arg)
{
	int error = index_all(debug);

	for (size_t i = 0; !error && i < debug->symbol_count; i++)
		error = visit(debug->symbols[i].name, debug->symbols[i].value, arg);
	return error;
}

static int visit_variables(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, tw_debug_variable_fn visit, void *arg)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;
	int result = 0;

	for (int i = 0; data && !result && gelf_getsym(data, i, &symbol); i++) {
		const char *name;

		if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || !symbol.st_size || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && *name)
			result = visit(name, symbol.st_value, symbol.st_size, arg);
	}
	return result;
}

TW_API int tw_debug_each_variable(struct tw_debug *debug, tw_debug_variable_fn visit, void *arg)
{
	Elf *const files[] = {debug->file.elf, debug->separate.elf};
	int result = 0;

	for (size_t i = 0; i < 2; i++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;

		while (files[i] && !result && (section = elf_nextscn(files[i], section)))
			if (gelf_getshdr(section, &header) &&
			    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
				result = visit_variables(files[i], section, &header, visit, arg);
	}
	return result;
}

/* The first entry of a value, and how many there are. */
static struct tw_dwarf_entry *entries_at(struct tw_debug *debug, uint64_t value, size_t *count)
{
	size_t low = tw_search(i, debug->entry_count, debug->entries[i].value < value), end;

	for (end = low; end < debug->entry_count && debug->entries[end].value == value; end++)
		;
	*count = end - low;
	/* Without any there is no array to point into. */
	return debug->entry_count ? debug->entries + low : NULL;
}

/* Selects one of several functions that share their code; NULL: ambiguous. */
static struct tw_dwarf_entry *choose(struct tw_dwarf_entry *entries, size_t count, const char *name)
{
	const char *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *own = tw_dwarf_name(&entries[i].die);

		if (own && name && strcmp(own, name) == 0)
			return &entries[i];
		if (own && first && strcmp(own, first) != 0)
			return NULL;
		if (own)
			first = own;
	}
	return count ? entries : NULL;
}

TW_API int tw_debug_function(struct tw_debug *debug, uint64_t value, const char *name,
			     const struct tw_debug_function **out)
{
	struct tw_dwarf_entry *entry;
	size_t count;
	int error = index_all(debug);

	if (error)
		return error;
	entry = entries_at(debug, value, &count);
	entry = choose(entry, count, name);
	if (!entry || !is_whole_function(debug, value))
		return TW_ENOENT;
	if (!entry->is_read) {
		error = tw_dwarf_function_read(debug, entry, &entry->function);
		if (error == TW_ENOMEM)
			return error;
		entry->is_read = true;
	}
	if (!entry->function)
		return TW_ENOENT;
	*out = entry->function;
	return 0;
}

/* ---- lines ---- */

static Dwarf_Die *unit_at(struct tw_debug *debug, uint64_t value)
{
	size_t low = tw_search(i, debug->range_count, debug->ranges[i].low <= value);

	return low > 0 && value < debug->ranges[low - 1].high ? &debug->ranges[low - 1].unit : NULL;
}

static void find_line(struct tw_debug *debug, uint64_t value, struct tw_debug_location *out)
{
	Dwarf_Die *unit = unit_at(debug, value);
	Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, value) : NULL;
	int number = 0;

	if (!line)
		return;
	out->file = dwarf_linesrc(line, NULL, NULL);
	if (out->file && dwarf_lineno(line, &number) == 0 && number > 0)
		out->line = (uint32_t)number;
}

/* The source name, even of a part or version of a function. */
static const char *whole_name(struct tw_debug *debug, const char *name)
{
	const char *suffix = tw_sym_clone_suffix(name);
	char *copy;

	if (!suffix)
		return name;
	copy = tw_dwarf_text(debug, name);
	if (!copy)
		return name;
	copy[suffix - name] = '\0';
	return copy;
}

static void find_symbol(struct tw_debug *debug, uint64_t value, struct tw_debug_location *out)
{
	size_t at = symbol_behind(debug, value);
	const struct tw_dwarf_symbol *symbol;

	if (!at)
		return;
	symbol = &debug->symbols[at - 1];
	while (at > 1 && debug->symbols[at - 2].value == symbol->value) {
		at--;
		symbol = &debug->symbols[at - 1];
	}
	if (value - symbol->value >= (symbol->bytes ? symbol->bytes : UNSIZED_BYTES_MAX))
		return;
	out->function = whole_name(debug, symbol->name);
	out->function_value = symbol->value;
}

/* If there is no symbol: finds the function in DWARF that contains the value. */
static void find_entry(struct tw_debug *debug, uint64_t value, struct tw_debug_location *out)
{
	size_t low = tw_search(i, debug->entry_count, debug->entries[i].value <= value);

	if (low > 0 && dwarf_haspc(&debug->entries[low - 1].die, value) == 1) {
		out->function = tw_dwarf_name(&debug->entries[low - 1].die);
		out->function_value = debug->entries[low - 1].value;
	}
}

TW_API bool tw_debug_locate(struct tw_debug *debug, uint64_t value, struct tw_debug_location *out)
{
	*out = (struct tw_debug_location){0};
	if (index_all(debug))
		return false;
	find_symbol(debug, value, out);
	if (!out->function)
		find_entry(debug, value, out);
	find_line(debug, value, out);
	return out->function || out->file;
}
