/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - makes our own calls of libc reach libc even if the program wraps those functions.
 *
 * Programs define functions of libc's names: lock profilers wrap pthread_mutex_lock(), others malloc(),
 * clock_gettime(), mmap(), and sanitizers all of them. ld.so binds our calls to those, as it does the program's.  They
 * would run inside our code, under our locks, pass traced slots, and re-enter this library.  Thus before anything else
 * in this library runs, each slot of our own table that leads to a libc function is set to the one that libc itself
 * defines.
 *
 * Memory  is then libc's too.  Functions of libc that allocate for their caller use the program's malloc (libc's calls
 *	   are bound like all others), so we call none of them: see libc.c.
 * Data    (stdout, program_invocation_name) is left alone: it must be the program's copy.
 * Entries of libc's functions may be traced.  Our own calls of these are led to the copies of their first instructions, and
 *	   are no events.  Calls that such a function makes in turn are told apart where it may matter: a hit under way
 *	   (tw_hit_is_own_call()), our own work (tw_thread_begin_own_work()).
 */
#include "agent/agent.h"
#include "base/atomic.h"
#include "base/sys.h"
#include "breakpoints/entry.h"
#include "breakpoints/unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));
extern const char own_header[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

struct tables {
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Half) *versions;
	const ElfW(Verneed) *needs;
	size_t need_count;
	const ElfW(Rela) *relocations[2];
	size_t counts[2];
};

static void read_tables(struct tables *tables)
{
	for (const ElfW(Dyn) *d = own_dynamic; d->d_tag != DT_NULL; d++) {
		/* ld.so has relocated most of these addresses, but not all. */
		uintptr_t base = (uintptr_t)own_header;
		const void *at = (const void *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr);

		switch (d->d_tag) {
		case DT_SYMTAB: tables->symbols = at; break;
		case DT_STRTAB: tables->strings = at; break;
		case DT_VERSYM: tables->versions = at; break;
		case DT_VERNEED: tables->needs = at; break;
		case DT_VERNEEDNUM: tables->need_count = d->d_un.d_val; break;
		case DT_RELA: tables->relocations[0] = at; break;
		case DT_RELASZ: tables->counts[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_JMPREL: tables->relocations[1] = at; break;
		case DT_PLTRELSZ: tables->counts[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		default: break;
		}
	}
}

/* The libc version that a symbol was linked with; NULL: none, or another library's. */
static const char *version_of(const struct tables *tables, size_t symbol)
{
	const ElfW(Verneed) *need = tables->needs;
	unsigned wanted = tables->versions[symbol] & 0x7fff;

	for (size_t i = 0; i < tables->need_count; i++) {
		const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);

		for (unsigned k = 0; k < need->vn_cnt; k++) {
			if (aux->vna_other == wanted)
				return strncmp(tables->strings + need->vn_file, "libc.so.", 8) == 0
					       ? tables->strings + aux->vna_name
					       : NULL;
			aux = (const void *)((const char *)aux + aux->vna_next);
		}
		need = (const void *)((const char *)need + need->vn_next);
	}
	return NULL;
}

/* By the name under which it is loaded, since not every C library is called libc.so.6.  It is never unloaded. */
static void *find_libc(void)
{
	for (struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		const char *slash = strrchr(map->l_name, '/');

		if (!strncmp(slash ? slash + 1 : map->l_name, "libc.so.", 8))
			return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
	}
	return NULL;
}

/* The addresses of libc: a slot that leads there already has what ld.so found under that name and version. */
struct range {
	uintptr_t low, high;
};

/* Empty if its headers are not at its start or cannot be read: every name is then looked up. */
static struct range range_of(const struct link_map *map)
{
	union {
		ElfW(Ehdr) header;
		uint8_t bytes[2048];
	} first;
	struct range range = {map->l_addr, map->l_addr};
	const ElfW(Phdr) *segment;
	size_t end;

	if (tw_sys_read_own_memory(tw_sys_process_id(), &first, map->l_addr, sizeof first) != sizeof first ||
	    memcmp(first.header.e_ident, ELFMAG, SELFMAG) != 0)
		return range;
	end = first.header.e_phoff + first.header.e_phnum * sizeof *segment;
	if (first.header.e_phoff > sizeof first || end > sizeof first)
		return range;
	segment = (const void *)(first.bytes + first.header.e_phoff);
	for (unsigned i = 0; i < first.header.e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && map->l_addr + segment->p_vaddr + segment->p_memsz > range.high)
			range.high = map->l_addr + segment->p_vaddr + segment->p_memsz;
	return range;
}

/* The slot of a relocation that leads to another object's function; NULL: it is none. */
static void **slot_of(const struct tables *tables, const ElfW(Rela) *relocation)
{
	const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocation->r_info)];

	if ((ELF64_R_TYPE(relocation->r_info) != R_X86_64_JUMP_SLOT &&
	     ELF64_R_TYPE(relocation->r_info) != R_X86_64_GLOB_DAT) ||
	    symbol->st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT)
		return NULL;
	return (void **)((uintptr_t)own_header + relocation->r_offset);
}

static void bind_one(const struct tables *tables, const ElfW(Rela) *relocation, void *libc, struct range range)
{
	void **slot = slot_of(tables, relocation), *function;
	size_t number = ELF64_R_SYM(relocation->r_info);
	const char *version;

	if (!slot || ((uintptr_t)*slot >= range.low && (uintptr_t)*slot < range.high) ||
	    !(version = version_of(tables, number)))
		return;
	function = dlvsym(libc, tables->strings + tables->symbols[number].st_name, version);
	if (function)
		*slot = function;
}

/* ld.so made the table read-only after filling it. */
static void protect(int protection)
{
	const ElfW(Ehdr) *header = (const void *)own_header;
	const ElfW(Phdr) *segment = (const void *)(own_header + header->e_phoff);
	uintptr_t in_page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	for (unsigned i = 0; i < header->e_phnum; i++, segment++) {
		uintptr_t low = (uintptr_t)own_header + segment->p_vaddr, high = low + segment->p_memsz;

		if (segment->p_type != PT_GNU_RELRO)
			continue;
		low &= ~in_page;
		high &= ~in_page;
		if (high > low)
			tw_sys_protect((void *)low, high - low, protection);
	}
}

/* A function is reached by either address: the slot may change while another thread calls through it. */
static void bind_beside(struct tw_permit *permit, void **slot)
{
	const void *beside = tw_entry_beside(permit, *slot);

	if (beside) {
		/* RELAXED agent.beside: as above. */
		tw_store_relaxed((void *_Atomic *)slot, (void *)(uintptr_t)beside);
	}
}

static void bind_all_beside(struct tw_permit *permit)
{
	struct tables tables = {0};

	read_tables(&tables);
	if (!tables.symbols)
		return;
	protect(PROT_READ | PROT_WRITE);
	for (unsigned which = 0; which < 2; which++)
		for (size_t i = 0; i < tables.counts[which]; i++) {
			void **slot = slot_of(&tables, &tables.relocations[which][i]);

			if (slot)
				bind_beside(permit, slot);
		}
	protect(PROT_READ);
	tw_unwind_enter_beside(permit);
}

/* Runs before all other constructors of this library: their allocations must come from the malloc that frees them. */
__attribute__((constructor(101))) static void bind_all(void)
{
	struct tables tables = {0};
	void *libc = find_libc(); /* a link map, as from dlopen() */
	struct range range;

	tw_agent_bind_beside = bind_all_beside;
	read_tables(&tables);
	if (!libc || !tables.symbols || !tables.strings || !tables.versions || !tables.needs)
		return;
	range = range_of(libc);
	protect(PROT_READ | PROT_WRITE);
	for (unsigned which = 0; which < 2; which++)
		for (size_t i = 0; i < tables.counts[which]; i++)
			bind_one(&tables, &tables.relocations[which][i], libc, range);
	protect(PROT_READ);
}
