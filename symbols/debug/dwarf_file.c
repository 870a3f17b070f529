/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_file.c - finds the file with the debug information of a program or library, and verifies it.
 *
 *	1 the file itself	2 /usr/lib/debug/.build-id/xx/yyyy.debug	3 the file named by .gnu_debuglink
 *
 * A debug file that does not belong to the program would give wrong names, so it is not used.
 */
#include "symbols/debug/dwarf.h"

#include "base/file.h"
#include "base/limits.h"
#include "tracewheel/error.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sections may be this many times larger than the file: zlib packs debug information to a third or a tenth. */
#define UNPACKED_FACTOR	   16u
#define UNPACKED_BYTES_MIN (UINT64_C(64) << 20)
/* The largest debug file without a build-id. */
#define CHECKED_BYTES_MAX (UINT64_C(256) << 20)

struct search {
	struct tw_debug *debug;
	const uint8_t *build_id; /* what it must be; NULL: not known */
	size_t build_id_bytes;
	uint32_t checksum;     /* of .gnu_debuglink */
	char wrong[PATH_MAX];  /* the first file that belongs to another program; "" */
	char folder[PATH_MAX]; /* of the file, with a slash */
};

void tw_dwarf_file_close(struct tw_dwarf_file *file)
{
	if (file->elf)
		elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct tw_dwarf_file){.fd = -1};
}

/* The bytes of a section in memory: packed ones say how large they are unpacked. */
static uint64_t content_bytes(struct tw_dwarf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	uint8_t old[12]; /* "ZLIB" and the size, of sections called .zdebug_ */
	uint64_t bytes = 0;
	GElf_Chdr packed;

	if (header->sh_type == SHT_NOBITS)
		return 0;
	if (header->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(section, &packed) && packed.ch_size > header->sh_size ? packed.ch_size
											  : header->sh_size;
	if (header->sh_size < sizeof old ||
	    pread(file->fd, old, sizeof old, (off_t)header->sh_offset) != (ssize_t)sizeof old ||
	    memcmp(old, "ZLIB", 4) != 0)
		return header->sh_size;
	for (size_t i = 4; i < sizeof old; i++)
		bytes = bytes << 8 | old[i];
	return bytes > header->sh_size ? bytes : header->sh_size;
}

/* libelf reads and unpacks sections as their headers say: all of them must fit into memory that the file is worth. */
static bool is_bounded(struct tw_dwarf_file *file)
{
	uint64_t most = UNPACKED_BYTES_MIN + UNPACKED_FACTOR * file->bytes;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (most > TW_FILE_BYTES_MAX)
		most = TW_FILE_BYTES_MAX;
	while ((section = elf_nextscn(file->elf, section))) {
		uint64_t bytes = gelf_getshdr(section, &header) ? content_bytes(file, section, &header) : 0;

		if (bytes > most - file->content_bytes)
			return false;
		file->content_bytes += bytes;
	}
	return true;
}

static bool open_file(const char *path, struct tw_dwarf_file *file)
{
	struct stat status;
	GElf_Ehdr header;

	*file = (struct tw_dwarf_file){.fd = tw_file_open(path, &status)};
	if (file->fd < 0) {
		file->fd = -1;
		return false;
	}
	file->bytes = (uint64_t)status.st_size;
	file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF && gelf_getehdr(file->elf, &header) &&
	    header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64 && is_bounded(file))
		return true;
	tw_dwarf_file_close(file);
	return false;
}

static bool has_build_id(Elf *elf, const uint8_t *build_id, size_t bytes)
{
	const void *found;

	return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)bytes && memcmp(found, build_id, bytes) == 0;
}

/* The CRC-32 of gdb's debug links.  All of the file is read for it, so not of any size. */
static bool has_checksum(const struct tw_dwarf_file *file, uint32_t expected)
{
	uint32_t crc = UINT32_MAX, table[256];
	uint8_t buffer[16384];
	ssize_t bytes;

	if (file->bytes > CHECKED_BYTES_MAX)
		return false;
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
	}
	for (off_t at = 0; (bytes = pread(file->fd, buffer, sizeof buffer, at)) > 0; at += bytes)
		for (ssize_t i = 0; i < bytes; i++)
			crc = crc >> 8 ^ table[(crc ^ buffer[i]) & 0xff];
	return bytes == 0 && ~crc == expected;
}

/* ---- files that libdw opens ---- */

/* Is there no such file, or one that we would open ourselves?  Names are relative to folder, or to a folder relative to it. */
static bool is_harmless(const char *folder, const char *between, const char *name)
{
	char path[3 * PATH_MAX];
	struct tw_dwarf_file file;
	struct stat status;

	if (*name == '/')
		folder = between = "";
	else if (*between == '/')
		folder = "";
	snprintf(path, sizeof path, "%s%s%s%s", folder, between, *between ? "/" : "", name);
	if (stat(path, &status))
		return true;
	if (!open_file(path, &file))
		return false;
	tw_dwarf_file_close(&file);
	return true;
}

/* The folder of an open file, with a slash. */
static void find_folder_of(int fd, char folder[PATH_MAX])
{
	char name[32], *slash;
	ssize_t bytes;

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	bytes = readlink(name, folder, PATH_MAX - 1);
	folder[bytes < 0 ? 0 : bytes] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		slash[1] = '\0';
}

bool tw_dwarf_may_split(const struct tw_debug *debug, Dwarf_Die *unit)
{
	int fd = debug->separate.fd >= 0 ? debug->separate.fd : debug->file.fd;
	char folder[PATH_MAX], packed[PATH_MAX + 8];
	Dwarf_Attribute attr;
	const char *name, *compiled_in;

	if (!dwarf_attr(unit, DW_AT_dwo_name, &attr) && !dwarf_attr(unit, DW_AT_GNU_dwo_name, &attr))
		return true;
	name = dwarf_formstring(&attr);
	compiled_in = dwarf_attr(unit, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
	find_folder_of(fd, folder);
	snprintf(packed, sizeof packed, "%s.dwp", debug->path);
	return name && is_harmless(folder, "", name) && is_harmless(folder, compiled_in ? compiled_in : "", name) &&
	       is_harmless("", "", packed);
}

/* The file of DWARF that several files share. */
static bool may_share(Dwarf *dwarf, int fd)
{
	char folder[PATH_MAX];
	const char *name;
	const void *id;

	if (dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) <= 0)
		return true;
	find_folder_of(fd, folder);
	return is_harmless(folder, "", name);
}

/* Its DWARF, where it has units. */
static Dwarf *open_dwarf(const struct tw_dwarf_file *file)
{
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	Dwarf_CU *unit = NULL;

	if (dwarf && may_share(dwarf, file->fd) && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0)
		return dwarf;
	dwarf_end(dwarf);
	return NULL;
}

/* ---- the search ---- */

/* Uses a debug file if it exists, belongs to the program and has debug information. */
static bool try(struct search *s, const char *path)
{
	struct tw_dwarf_file file;
	bool belongs;

	if (!open_file(path, &file))
		return false;
	belongs =
		s->build_id ? has_build_id(file.elf, s->build_id, s->build_id_bytes) : has_checksum(&file, s->checksum);
	if (belongs)
		s->debug->dwarf = open_dwarf(&file);
	if (s->debug->dwarf) {
		s->debug->separate = file;
		return true;
	}
	if (!belongs && !s->wrong[0])
		snprintf(s->wrong, sizeof s->wrong, "%s", path);
	tw_dwarf_file_close(&file);
	return false;
}

static bool try_build_id(struct search *s)
{
	char path[sizeof "/usr/lib/debug/.build-id/xx/.debug" + 2 * 64];
	int used = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/");

	if (!s->build_id || s->build_id_bytes < 2 || s->build_id_bytes > 64)
		return false;
	for (size_t i = 0; i < s->build_id_bytes; i++)
		used += snprintf(path + used, sizeof path - (size_t)used, i == 1 ? "/%02x" : "%02x", s->build_id[i]);
	snprintf(path + used, sizeof path - (size_t)used, ".debug");
	return try(s, path);
}

static bool try_link(struct search *s)
{
	static const char *const forms[] = {"%s%s", "%s.debug/%s", "/usr/lib/debug%s%s"};
	GElf_Word checksum = 0;
	const char *name = s->debug->file.elf ? dwelf_elf_gnu_debuglink(s->debug->file.elf, &checksum) : NULL;

	if (!name || strchr(name, '/'))
		return false;
	s->checksum = checksum;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		char path[2 * PATH_MAX + 32];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof path, forms[i], s->folder, name);
#pragma GCC diagnostic pop
		if (try(s, path))
			return true;
	}
	return false;
}

static void find_folder(struct search *s)
{
	char *real = realpath(s->debug->path, NULL), *slash;

	snprintf(s->folder, sizeof s->folder, "%s", real ? real : s->debug->path);
	slash = strrchr(s->folder, '/');
	if (slash)
		slash[1] = '\0';
	else
		strcpy(s->folder, "./");
	free(real);
}

/* Sets the sentence when no file was found. */
static int say_why(struct search *s, bool was_there, bool is_other)
{
	const char *path = s->debug->path;
	int bytes;

	if (s->wrong[0])
		bytes = asprintf(&s->debug->problem, "the debug file %s belongs to another build than %s", s->wrong,
				 path);
	else if (is_other)
		bytes = asprintf(&s->debug->problem, "%s is another build than the one that was recorded", path);
	else if (!was_there)
		bytes = asprintf(&s->debug->problem, "%s cannot be read as an ELF file", path);
	else
		bytes = asprintf(&s->debug->problem,
				 "%s has no debug information: compile it with -g, or install its debug symbols", path);
	return bytes < 0 ? TW_ENOMEM : 0;
}

int tw_dwarf_find(struct tw_debug *debug, const uint8_t *build_id, size_t build_id_bytes)
{
	struct search s = {.debug = debug,
			   .build_id = build_id_bytes ? build_id : NULL,
			   .build_id_bytes = build_id_bytes};
	bool was_there, is_other = false;

	elf_version(EV_CURRENT);
	debug->file.fd = debug->separate.fd = -1;
	was_there = open_file(debug->path, &debug->file);
	if (was_there && s.build_id && !has_build_id(debug->file.elf, build_id, build_id_bytes)) {
		is_other = true;
		tw_dwarf_file_close(&debug->file);
	}
	if (debug->file.elf && !s.build_id) {
		const void *own;
		ssize_t bytes = dwelf_elf_gnu_build_id(debug->file.elf, &own);

		if (bytes > 0) {
			s.build_id = own;
			s.build_id_bytes = (size_t)bytes;
		}
	}
	find_folder(&s);
	if (debug->file.elf)
		debug->dwarf = open_dwarf(&debug->file);
	if (debug->dwarf || try_build_id(&s) || try_link(&s))
		return 0;
	return say_why(&s, was_there, is_other);
}
