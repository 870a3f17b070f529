/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - replaces the one-byte NOPs of a file's entry sleds by the longest NOPs.
 *
 * gcc leaves N times 90, and a processor decodes each of them at every call; one instruction of the same
 * length costs a fifth, and can be armed while threads run it.  The file is never changed in place: a program that runs from it
 * keeps the old one.
 */
#include "symbols/file.h"

#include "base/error.h"
#include "base/export.h"
#include "base/file.h"
#include "tracewheel/error.h"
#include "tracewheel/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE_BYTE_NOP  0x90
#define NOP_BYTES_MAX 9
#define COPY_BYTES    (1 << 20)

/* By length, as Intel's and AMD's manuals recommend them. */
static const uint8_t nops[NOP_BYTES_MAX + 1][NOP_BYTES_MAX] = {
	{0},
	{0x90},
	{0x66, 0x90},
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
};

/* The first bytes of a NOP of nine: see write_nine(), and put_nops() of breakpoints/sled.c. */
static const uint8_t nops_four[4] = {0x66, 0x0f, 0x1f, 0x00};

static void write_nops(uint8_t *at, uint32_t bytes)
{
	while (bytes) {
		uint32_t length = bytes < NOP_BYTES_MAX ? bytes : NOP_BYTES_MAX;

		memcpy(at, nops[length], length);
		at += length;
		bytes -= length;
	}
}

/*
 * The nine-byte NOP at an address, with an (unused) displacement chosen so that arming changes bytes of one aligned word
 * only (breakpoints/sled.c): so one store suffices, even while threads run the function.
 *
 *	address mod 8	0 .. 3	the call is made in bytes 0 .. 4, and behind it lies already what is behind it then
 *			4	in bytes 4 .. 8, which lie there already; only the fourth byte changes
 *			5 .. 7	in bytes 4 .. 8, and the fourth byte changes: all in the next word
 */
static void write_nine(uint8_t *at, uint64_t address)
{
	memcpy(at, nops[9], 9);
	if (address % 8 < 4)
		memcpy(at + 5, nops_four, 4);
	else if (address % 8 == 4)
		memcpy(at + 4, nops[5], 5);
}

static bool is_loose(const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (at[i] != ONE_BYTE_NOP)
			return false;
	return bytes > 1;
}

/* Works in memory laid out as the file's segments.  A function with several names is compacted at the first. */
static uint64_t compact_image(const struct tw_elf_file *file)
{
	uint64_t count = 0;

	for (size_t i = 0; i < file->sleds.count; i++) {
		const struct tw_sym_sled *sled = &file->sleds.entries[i];

		if (!tw_elf_holds(&file->elf, sled->where, sled->bytes) ||
		    !is_loose((const uint8_t *)sled->where, sled->bytes))
			continue;
		write_nops((uint8_t *)sled->where, sled->bytes);
		if (sled->bytes >= NOP_BYTES_MAX)
			write_nine((uint8_t *)sled->where, sled->where - file->elf.base);
		count++;
	}
	return count;
}

static int copy_file(int from, int to, uint64_t bytes)
{
	uint8_t *buffer = malloc(COPY_BYTES);
	int error = buffer ? 0 : TW_ENOMEM;

	for (uint64_t at = 0; at < bytes && !error; at += COPY_BYTES) {
		uint64_t part = bytes - at < COPY_BYTES ? bytes - at : COPY_BYTES;

		error = tw_file_read_at(from, buffer, part, at);
		if (!error)
			error = tw_file_write_at(to, buffer, part, at);
	}
	free(buffer);
	return error;
}

/* Writes the code segments from memory over the copy: only sleds in them have changed. */
static int write_code(const struct tw_elf_file *file, int from, int to)
{
	int error = 0;

	for (unsigned i = 0; i < file->header.e_phnum && !error; i++) {
		ElfW(Phdr) header;

		error = tw_file_read_at(from, &header, sizeof header, file->header.e_phoff + i * sizeof header);
		if (!error && header.p_type == PT_LOAD && (header.p_flags & PF_X) && header.p_filesz)
			error = tw_file_write_at(to, (const void *)(file->elf.base + header.p_vaddr), header.p_filesz,
						 header.p_offset);
	}
	return error;
}

static int fill(const struct tw_elf_file *file, int from, int to)
{
	int error = copy_file(from, to, file->identity.bytes);

	if (!error)
		error = write_code(file, from, to);
	if (!error && (fchmod(to, file->mode & 07777) || fsync(to)))
		error = tw_error_from_errno(errno);
	return error;
}

static int replace(const struct tw_elf_file *file, const char *path)
{
	size_t capacity = strlen(path) + sizeof ".XXXXXX";
	char *name = malloc(capacity);
	int from = -1, to = -1, error = name ? 0 : TW_ENOMEM;

	if (error)
		return error;
	snprintf(name, capacity, "%s.XXXXXX", path);
	from = tw_elf_file_reopen(file);
	if (from >= 0)
		to = mkostemp(name, O_CLOEXEC);
	if (from < 0)
		error = from;
	else
		error = to < 0 ? tw_error_from_errno(errno) : fill(file, from, to);
	if (!error && rename(name, path))
		error = tw_error_from_errno(errno);
	if (error && to >= 0)
		unlink(name);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	free(name);
	return error;
}

TW_API int tw_symbols_compact(const char *path, uint64_t *sleds, uint64_t *changed)
{
	struct tw_elf_file *file;
	char *real;
	int error;

	if (!path)
		return TW_EBADARG;
	/* A symbolic link is kept. */
	real = realpath(path, NULL);
	if (!real)
		return tw_error_from_errno(errno);
	error = tw_elf_file_open(real, &file);
	if (!error) {
		uint64_t count = compact_image(file);

		error = count ? replace(file, real) : 0;
		if (!error) {
			*sleds = file->sleds.count;
			*changed = count;
		}
		tw_elf_file_close(file);
	}
	free(real);
	return error;
}
