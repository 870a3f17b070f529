/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever a file holds, its tables are read inside of its image or refused.
 * Method: the bytes become a file in memory; then everything that tw_symbols_open() and its walk ask of one
 *         file is asked: strings, symbols, versions, look-ups by both hash tables, slots, sleds, entries of
 *         functions, landing pads, needed names.
 */
#include "symbols/entries.h"
#include "symbols/file.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static size_t sum;

static void ask_symbols(const struct tw_elf *elf)
{
	size_t count = tw_elf_symbol_count(elf);

	for (size_t i = 0; i < count && i < 2000; i++) {
		const ElfW(Sym) *symbol = tw_elf_symbol(elf, i);
		const char *name, *version;

		if (!symbol)
			break;
		name = tw_elf_string(elf, symbol->st_name);
		version = tw_elf_version(elf, i);
		sum += strlen(name) + (version ? strlen(version) : 0);
		if (i < 20)
			sum += tw_elf_lookup(elf, name, i % 2 ? elf->base + symbol->st_value : 0) != NULL;
	}
	/* As many as the file claims: no loop over them takes long. */
	for (size_t i = 0; i < count; i++)
		sum += tw_elf_symbol(elf, i) != NULL;
	sum += tw_elf_lookup(elf, "malloc", 0) != NULL;
}

static void ask_slots(const struct tw_elf *elf)
{
	uintptr_t wheres[64];
	bool taken[64];
	size_t count = 0;

	for (size_t i = 0; i < elf->relocation_count && count < 64; i++) {
		uintptr_t where = elf->base + elf->relocations[i].r_offset;

		/* Ascending, as tw_sym_address_taken() requires. */
		if (tw_elf_is_slot(&elf->relocations[i]) && where % 8 == 0 && tw_elf_holds(elf, where, 8) &&
		    (!count || where > wheres[count - 1]))
			wheres[count++] = where;
	}
	tw_sym_address_taken(elf, wheres, count, taken);
}

static bool take_pad(uint64_t value, void *arg)
{
	sum += value & 1;
	return --*(size_t *)arg > 0;
}

static void ask_entries(const struct tw_elf_file *file, int fd)
{
	struct tw_sym_entries entries;

	if (tw_sym_entries_read(&file->elf, &file->header, fd, NULL, &entries) == 0)
		for (size_t i = 0; i < entries.count && i < 2000; i++) {
			const struct tw_sym_entry *entry = &entries.entries[i];
			size_t pads = 1000;

			tw_elf_frame_landing_pads(&file->elf, entry->frame, take_pad, &pads);
			for (size_t k = 0; k < entry->name_count; k++)
				sum += strlen(entries.names[entry->first_name + k]);
		}
	tw_sym_entries_fini(&entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct tw_elf_file *file;
	char path[64];

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (tw_elf_file_open(path, &file) == 0) {
		const char *name;

		sum += strlen(file->elf.soname) + strlen(file->elf.runpath) + strlen(file->elf.rpath);
		for (size_t n = 0; n < 100 && (name = tw_elf_needed(&file->elf, n)); n++)
			sum += strlen(name);
		for (uint32_t i = 0; i < file->elf.build_id_bytes; i++)
			sum += file->elf.build_id[i];
		for (size_t i = 0; i < file->sleds.count; i++)
			sum += strlen(file->sleds.entries[i].function) + file->sleds.entries[i].bytes;
		ask_symbols(&file->elf);
		ask_slots(&file->elf);
		ask_entries(file, fd);
		tw_elf_file_close(file);
	}
	close(fd);
	return 0;
}
