/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_file.c - finds the file with the debug information of a program or library, and verifies it.
 *
 *	1 the file itself	2 /usr/lib/debug/.build-id/xx/yyyy.debug	3 the file named by .gnu_debuglink
 *
 * A debug file that does not belong to the program would give wrong names, so it is not used.
 */
#include "symbols/debug/dwarf.h"

#include "tracewheel/error.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool open_file(const char *path, struct tw_dwarf_file *file)
{
	GElf_Ehdr header;

	*file = (struct tw_dwarf_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	if (file->fd < 0)
		return false;
	file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF && gelf_getehdr(file->elf, &header) &&
	    header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64)
		return true;
	tw_dwarf_file_close(file);
	return false;
}

static bool has_build_id(Elf *elf, const uint8_t *build_id, size_t bytes)
{
	const void *found;

	return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)bytes && memcmp(found, build_id, bytes) == 0;
}

/* The CRC-32 of gdb's debug links. */
static bool has_checksum(int fd, uint32_t expected)
{
	uint32_t crc = UINT32_MAX;
	uint8_t buffer[16384];
	ssize_t bytes;

	for (off_t at = 0; (bytes = pread(fd, buffer, sizeof buffer, at)) > 0; at += bytes)
		for (ssize_t i = 0; i < bytes; i++) {
			crc ^= buffer[i];
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
		}
	return bytes == 0 && ~crc == expected;
}

/* Its DWARF, where it has units. */
static Dwarf *open_dwarf(Elf *elf)
{
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_CU *unit = NULL;

	if (dwarf && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0)
		return dwarf;
	dwarf_end(dwarf);
	return NULL;
}

/* Uses a debug file if it exists, belongs to the program and has debug information. */
static bool try(struct search *s, const char *path)
{
	struct tw_dwarf_file file;
	bool belongs;

	if (!open_file(path, &file))
		return false;
	belongs = s->build_id ? has_build_id(file.elf, s->build_id, s->build_id_bytes)
			      : has_checksum(file.fd, s->checksum);
	if (belongs)
		s->debug->dwarf = open_dwarf(file.elf);
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
		debug->dwarf = open_dwarf(debug->file.elf);
	if (debug->dwarf || try_build_id(&s) || try_link(&s))
		return 0;
	return say_why(&s, was_there, is_other);
}
