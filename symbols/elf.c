/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.c - dynamic tables: program headers, DT_* entries, strings, versions, hash tables.
 *
 * ld.so turns some d_ptr of a loaded object into addresses and leaves others as values (DT_VERNEED,
 * DT_VERDEF; everything in the vdso): a pointer inside the loaded image is treated as an address.  The two ranges
 * cannot overlap: values start near zero, where nothing is loaded.
 */
#include "symbols/elf.h"

#include <string.h>

#define PAGE_MASK (~(uintptr_t)4095)

static uintptr_t to_address(const struct tw_elf *elf, uint64_t pointer)
{
	return tw_elf_holds(elf, pointer, 1) ? (uintptr_t)pointer : elf->base + (uintptr_t)pointer;
}

/* The address of a table of this size, or 0 if it is not in the image. */
static uintptr_t table(const struct tw_elf *elf, uint64_t pointer, uint64_t bytes, size_t align)
{
	uintptr_t address = to_address(elf, pointer);

	return tw_elf_holds(elf, address, bytes) && address % align == 0 ? address : 0;
}

static void add_filled(struct tw_elf *elf, uintptr_t low, uintptr_t high)
{
	struct tw_elf_range *last = &elf->filled[TW_ELF_RANGES_MAX - 1];

	if (low >= high)
		return;
	if (elf->filled_count < TW_ELF_RANGES_MAX) {
		elf->filled[elf->filled_count++] = (struct tw_elf_range){low, high};
		return;
	}
	last->low = low < last->low ? low : last->low;
	last->high = high > last->high ? high : last->high;
}

static void add_segment(struct tw_elf *elf, const ElfW(Phdr) *header)
{
	uintptr_t low = elf->base + header->p_vaddr, high = low + header->p_memsz;

	if (high < low)
		return;
	if (low < elf->image.low)
		elf->image.low = low;
	if (high > elf->image.high)
		elf->image.high = high;
	add_filled(elf, low, low + (header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz));
	if (header->p_flags & PF_X && elf->code_count < TW_ELF_RANGES_MAX)
		elf->code[elf->code_count++] = (struct tw_elf_range){low, high};
}

static void find_build_id(struct tw_elf *elf, const ElfW(Phdr) *header)
{
	uintptr_t at = elf->base + header->p_vaddr;
	uint64_t left = header->p_memsz;

	if (!tw_elf_holds(elf, at, left) || at % 4)
		return;
	while (left >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		uint64_t name_bytes = ((uint64_t)note->n_namesz + 3) & ~UINT64_C(3);
		uint64_t bytes = sizeof *note + name_bytes + (((uint64_t)note->n_descsz + 3) & ~UINT64_C(3));

		if (bytes > left)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp((const char *)(note + 1), "GNU", 4)) {
			elf->build_id = (const uint8_t *)(at + sizeof *note + name_bytes);
			elf->build_id_bytes = note->n_descsz < 32 ? note->n_descsz : 32;
			return;
		}
		at += bytes;
		left -= bytes;
	}
}

static void read_headers(struct tw_elf *elf, const ElfW(Phdr) *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD)
			add_segment(elf, &headers[i]);
	for (size_t i = 0; i < count; i++) {
		uintptr_t at = elf->base + headers[i].p_vaddr;

		switch (headers[i].p_type) {
		case PT_DYNAMIC:
			elf->dynamic_count = headers[i].p_memsz / sizeof(ElfW(Dyn));
			if (tw_elf_holds(elf, at, headers[i].p_memsz) && at % sizeof(uint64_t) == 0)
				elf->dynamic = (const void *)at;
			else
				elf->dynamic_count = 0;
			break;
		case PT_GNU_RELRO:
			elf->relro.low = at & PAGE_MASK;
			elf->relro.high = (at + headers[i].p_memsz) & PAGE_MASK;
			break;
		case PT_GNU_EH_FRAME:
			if (tw_elf_holds(elf, at, headers[i].p_memsz))
				elf->frame_table = at;
			break;
		case PT_NOTE:
			if (!elf->build_id_bytes)
				find_build_id(elf, &headers[i]);
			break;
		case PT_INTERP:
			if (tw_elf_holds(elf, at, 1))
				elf->interpreter = (const char *)at;
			break;
		default: break;
		}
	}
}

/* The raw values of the entries that are needed, before they are checked. */
struct raw {
	uint64_t symbols, strings, versions, plt, plt_bytes, plt_type, rela, rela_bytes;
	uint64_t gnu_hash, hash, soname, runpath, rpath, relative_count;
};

static void read_dynamic(struct tw_elf *elf, struct raw *raw)
{
	for (size_t i = 0; i < elf->dynamic_count && elf->dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t value = elf->dynamic[i].d_un.d_val;

		switch (elf->dynamic[i].d_tag) {
		case DT_SYMTAB: raw->symbols = value; break;
		case DT_STRTAB: raw->strings = value; break;
		case DT_STRSZ: elf->string_bytes = value; break;
		case DT_VERSYM: raw->versions = value; break;
		case DT_VERNEED: elf->needed_versions = to_address(elf, value); break;
		case DT_VERNEEDNUM: elf->needed_version_count = value; break;
		case DT_VERDEF: elf->defined_versions = to_address(elf, value); break;
		case DT_VERDEFNUM: elf->defined_version_count = value; break;
		case DT_JMPREL: raw->plt = value; break;
		case DT_PLTRELSZ: raw->plt_bytes = value; break;
		case DT_PLTREL: raw->plt_type = value; break;
		case DT_RELA: raw->rela = value; break;
		case DT_RELASZ: raw->rela_bytes = value; break;
		case DT_RELACOUNT: raw->relative_count = value; break;
		case DT_GNU_HASH: raw->gnu_hash = value; break;
		case DT_HASH: raw->hash = value; break;
		case DT_SONAME: raw->soname = value; break;
		case DT_RUNPATH: raw->runpath = value; break;
		case DT_RPATH: raw->rpath = value; break;
		default: break;
		}
	}
}

void tw_elf_init(struct tw_elf *elf, uintptr_t base, const ElfW(Phdr) *headers, size_t header_count)
{
	struct raw raw = {0};

	*elf = (struct tw_elf){.base = base, .image = {UINTPTR_MAX, 0}, .soname = "", .runpath = "", .rpath = ""};
	read_headers(elf, headers, header_count);
	if (elf->image.low > elf->image.high)
		elf->image = (struct tw_elf_range){0, 0};
	if (!elf->dynamic)
		return;
	read_dynamic(elf, &raw);
	elf->strings = table(elf, raw.strings, elf->string_bytes, 1);
	if (!elf->strings || !raw.strings)
		elf->string_bytes = 0;
	if (raw.symbols)
		elf->symbols = (const void *)table(elf, raw.symbols, sizeof(ElfW(Sym)), 8);
	if (raw.versions)
		elf->versions = (const void *)table(elf, raw.versions, sizeof(ElfW(Half)), 2);
	if (raw.plt && raw.plt_type == DT_RELA)
		elf->plt_relocations = (const void *)table(elf, raw.plt, raw.plt_bytes, 8);
	if (elf->plt_relocations)
		elf->plt_relocation_count = raw.plt_bytes / sizeof(ElfW(Rela));
	if (raw.rela)
		elf->relocations = (const void *)table(elf, raw.rela, raw.rela_bytes, 8);
	if (elf->relocations)
		elf->relocation_count = raw.rela_bytes / sizeof(ElfW(Rela));
	if (raw.relative_count <= elf->relocation_count)
		elf->relative_count = raw.relative_count;
	if (raw.gnu_hash)
		elf->gnu_hash = (const void *)table(elf, raw.gnu_hash, 16, 4);
	if (raw.hash)
		elf->sysv_hash = (const void *)table(elf, raw.hash, 8, 4);
	elf->soname = tw_elf_string(elf, raw.soname);
	elf->runpath = tw_elf_string(elf, raw.runpath);
	elf->rpath = tw_elf_string(elf, raw.rpath);
}

bool tw_elf_is_filled(const struct tw_elf *elf, uintptr_t address, uint64_t bytes)
{
	for (unsigned i = 0; i < elf->filled_count; i++)
		if (address >= elf->filled[i].low && address < elf->filled[i].high &&
		    bytes <= elf->filled[i].high - address)
			return true;
	return false;
}

struct tw_elf_range tw_elf_filled_code(const struct tw_elf *elf, unsigned index)
{
	struct tw_elf_range range = elf->code[index];

	for (unsigned i = 0; i < elf->filled_count; i++)
		if (range.low >= elf->filled[i].low && range.low < elf->filled[i].high) {
			if (range.high > elf->filled[i].high)
				range.high = elf->filled[i].high;
			return range;
		}
	range.high = range.low;
	return range;
}

bool tw_elf_is_code(const struct tw_elf *elf, uintptr_t address)
{
	for (unsigned i = 0; i < elf->code_count; i++)
		if (address >= elf->code[i].low && address < elf->code[i].high)
			return true;
	return false;
}

const char *tw_elf_string(const struct tw_elf *elf, uint64_t offset)
{
	return offset < elf->string_bytes ? (const char *)(uintptr_t)(elf->strings + offset) : "";
}

const ElfW(Sym) *tw_elf_symbol(const struct tw_elf *elf, size_t index)
{
	if (!elf->symbols || index > UINT32_MAX ||
	    !tw_elf_holds(elf, (uintptr_t)(elf->symbols + index), sizeof *elf->symbols))
		return NULL;
	return &elf->symbols[index];
}

static const char *needed_version(const struct tw_elf *elf, unsigned number)
{
	uintptr_t at = (uintptr_t)elf->needed_versions;

	for (uint64_t i = 0; i < elf->needed_version_count; i++) {
		const ElfW(Verneed) *need = (const void *)at;
		uintptr_t aux_at;

		if (at % 4 || !tw_elf_holds(elf, at, sizeof *need))
			return NULL;
		aux_at = at + need->vn_aux;
		for (unsigned j = 0; j < need->vn_cnt; j++) {
			const ElfW(Vernaux) *aux = (const void *)aux_at;

			if (aux_at % 4 || !tw_elf_holds(elf, aux_at, sizeof *aux))
				return NULL;
			if (aux->vna_other == number)
				return tw_elf_string(elf, aux->vna_name);
			aux_at += aux->vna_next;
		}
		if (!need->vn_next)
			break;
		at += need->vn_next;
	}
	return NULL;
}

static const char *defined_version(const struct tw_elf *elf, unsigned number)
{
	uintptr_t at = (uintptr_t)elf->defined_versions;

	for (uint64_t i = 0; i < elf->defined_version_count; i++) {
		const ElfW(Verdef) *definition = (const void *)at;
		const ElfW(Verdaux) *aux;

		if (at % 4 || !tw_elf_holds(elf, at, sizeof *definition))
			return NULL;
		aux = (const void *)(at + definition->vd_aux);
		if (definition->vd_ndx == number && !(definition->vd_flags & VER_FLG_BASE))
			return (uintptr_t)aux % 4 == 0 && tw_elf_holds(elf, (uintptr_t)aux, sizeof *aux)
				       ? tw_elf_string(elf, aux->vda_name)
				       : NULL;
		if (!definition->vd_next)
			break;
		at += definition->vd_next;
	}
	return NULL;
}

const char *tw_elf_version(const struct tw_elf *elf, size_t index)
{
	unsigned number;
	const char *name;

	if (!elf->versions || !tw_elf_holds(elf, (uintptr_t)(elf->versions + index), sizeof *elf->versions))
		return NULL;
	number = elf->versions[index] & 0x7fff;
	if (number <= VER_NDX_GLOBAL)
		return NULL;
	name = needed_version(elf, number);
	return name ? name : defined_version(elf, number);
}

/*
 * No chain of a valid file is this long: linkers make them of one or two symbols.  A chain of a damaged file may be circular, or cross all the
 * zeros of a large image: then the symbol is not found.  Each slot of a program is looked up in each of its objects, so chains are short.
 */
#define CHAIN_MAX (UINT32_C(1) << 12)

/* One candidate of a hash chain.  The best so far is kept in *found; true: stop the search. */
static bool consider(const struct tw_elf *elf, size_t index, const char *name, uintptr_t address,
		     const ElfW(Sym) **found)
{
	const ElfW(Sym) *symbol = tw_elf_symbol(elf, index);
	bool is_hidden;

	if (!symbol || symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) == STT_TLS ||
	    strcmp(tw_elf_string(elf, symbol->st_name), name))
		return false;
	is_hidden = elf->versions && tw_elf_holds(elf, (uintptr_t)(elf->versions + index), sizeof *elf->versions) &&
		    elf->versions[index] & 0x8000;
	if (!*found || !is_hidden)
		*found = symbol;
	if (address && elf->base + symbol->st_value == address) {
		*found = symbol;
		return true;
	}
	return !address && !is_hidden;
}

uint32_t tw_elf_hash(const char *name)
{
	uint32_t hash = 5381;

	for (const unsigned char *p = (const void *)name; *p; p++)
		hash = hash * 33 + *p;
	return hash;
}

/* The table's Bloom filter: most objects do not define a name, and most of those are left here, after one look. */
static bool is_out_of_question(const struct tw_elf *elf, uint32_t hash)
{
	const uint32_t *words = elf->gnu_hash;
	uint32_t bloom_words = words[2], shift = words[3] % 32;
	const uint64_t *word;

	if (!bloom_words || bloom_words & (bloom_words - 1))
		return false;
	word = (const uint64_t *)(const void *)(words + 4) + (hash / 64 & (bloom_words - 1));
	return (uintptr_t)word % sizeof *word == 0 && tw_elf_holds(elf, (uintptr_t)word, sizeof *word) &&
	       !(*word >> hash % 64 & *word >> (hash >> shift) % 64 & 1);
}

static const ElfW(Sym) *lookup_gnu(const struct tw_elf *elf, const char *name, uint32_t hash, uintptr_t address)
{
	const uint32_t *words = elf->gnu_hash;
	uint32_t bucket_count = words[0], first = words[1], bloom_words = words[2], index;
	const uint32_t *buckets = words + 4 + (uint64_t)bloom_words * 2, *chain;
	const ElfW(Sym) *found = NULL;

	if (is_out_of_question(elf, hash))
		return NULL;
	if (!bucket_count || !tw_elf_holds(elf, (uintptr_t)(buckets + hash % bucket_count), 4))
		return NULL;
	index = buckets[hash % bucket_count];
	if (index < first)
		return NULL;
	chain = buckets + bucket_count;
	for (uint32_t steps = 0; steps < CHAIN_MAX; steps++, index++) {
		const uint32_t *word = chain + (index - first);

		if (!tw_elf_holds(elf, (uintptr_t)word, 4))
			break;
		if ((*word | 1) == (hash | 1) && consider(elf, index, name, address, &found))
			break;
		if (*word & 1)
			break;
	}
	return found;
}

static const ElfW(Sym) *lookup_sysv(const struct tw_elf *elf, const char *name, uintptr_t address)
{
	const uint32_t *words = elf->sysv_hash;
	uint32_t bucket_count = words[0], chain_count = words[1], hash = 0, index;
	const ElfW(Sym) *found = NULL;

	for (const unsigned char *p = (const void *)name; *p; p++) {
		hash = (hash << 4) + *p;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	if (!bucket_count ||
	    !tw_elf_holds(elf, (uintptr_t)words, 8 + ((uint64_t)bucket_count + chain_count) * sizeof *words))
		return NULL;
	index = words[2 + hash % bucket_count];
	for (uint32_t steps = 0; index && index < chain_count && steps < CHAIN_MAX; steps++) {
		if (consider(elf, index, name, address, &found))
			return found;
		index = words[2 + bucket_count + index];
	}
	return found;
}

const ElfW(Sym) *tw_elf_lookup_hashed(const struct tw_elf *elf, const char *name, uint32_t hash, uintptr_t address)
{
	if (elf->gnu_hash)
		return lookup_gnu(elf, name, hash, address);
	return elf->sysv_hash ? lookup_sysv(elf, name, address) : NULL;
}

const ElfW(Sym) *tw_elf_lookup(const struct tw_elf *elf, const char *name, uintptr_t address)
{
	return tw_elf_lookup_hashed(elf, name, tw_elf_hash(name), address);
}

bool tw_elf_is_better_name(const struct tw_elf *elf, const char *name, const char *than)
{
	bool is_exported = tw_elf_lookup(elf, name, 0) != NULL;

	if (is_exported != (tw_elf_lookup(elf, than, 0) != NULL))
		return is_exported;
	if ((*name == '_') != (*than == '_'))
		return *than == '_';
	return strlen(name) < strlen(than);
}

/* The most symbols that fit between the table's beginning and the end of what the file has there. */
static size_t count_filled_symbols(const struct tw_elf *elf)
{
	uintptr_t at = (uintptr_t)elf->symbols;

	for (unsigned i = 0; i < elf->filled_count; i++)
		if (at >= elf->filled[i].low && at < elf->filled[i].high)
			return (elf->filled[i].high - at) / sizeof *elf->symbols;
	return 0;
}

/* As the hash tables say. */
static uint64_t count_hashed_symbols(const struct tw_elf *elf)
{
	const uint32_t *words = elf->gnu_hash, *buckets, *chain;
	uint32_t last = 0, steps = 0;

	if (elf->sysv_hash)
		return elf->sysv_hash[1];
	if (!words || !words[0])
		return 0;
	buckets = words + 4 + (uint64_t)words[2] * 2;
	if (!tw_elf_holds(elf, (uintptr_t)buckets, (uint64_t)words[0] * 4))
		return 0;
	for (uint32_t i = 0; i < words[0]; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < words[1])
		return words[1];
	chain = buckets + words[0];
	for (; steps < CHAIN_MAX && tw_elf_holds(elf, (uintptr_t)(chain + (last - words[1])), 4); steps++, last++)
		if (chain[last - words[1]] & 1)
			return (uint64_t)last + 1;
	return 0;
}

size_t tw_elf_symbol_count(const struct tw_elf *elf)
{
	uint64_t count = count_hashed_symbols(elf);
	size_t most = count_filled_symbols(elf);

	return count < most ? (size_t)count : most;
}

const char *tw_elf_needed(const struct tw_elf *elf, size_t n)
{
	for (size_t i = 0; i < elf->dynamic_count && elf->dynamic[i].d_tag != DT_NULL; i++)
		if (elf->dynamic[i].d_tag == DT_NEEDED && n-- == 0)
			return tw_elf_string(elf, elf->dynamic[i].d_un.d_val);
	return NULL;
}

bool tw_elf_is_slot(const ElfW(Rela) *relocation)
{
	uint64_t type = ELF64_R_TYPE(relocation->r_info);

	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}
