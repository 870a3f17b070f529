/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_code.c - decodes the instructions of a file, only to recognise return addresses and a function's first instruction. */
#include "symbols/debug/dwarf.h"

#include "base/export.h"
#include "symbols/nops.h"

#include <gelf.h>
#include <string.h>
#include <unistd.h>

#define CALL_BYTES_MAX 7
/* A longer run of NOPs at an entry is not a sled. */
#define ENTRY_BYTES_MAX 64

/* The segment with the code of a value, its end included; false: there is none. */
static bool find_segment(struct tw_debug *debug, uint64_t value, GElf_Phdr *header, bool *is_known)
{
	size_t headers = 0;

	*is_known = debug->file.elf && elf_getphdrnum(debug->file.elf, &headers) == 0;
	for (size_t i = 0; *is_known && i < headers; i++)
		if (gelf_getphdr(debug->file.elf, (int)i, header) && header->p_type == PT_LOAD &&
		    (header->p_flags & PF_X) && value >= header->p_vaddr && value - header->p_vaddr <= header->p_filesz)
			return true;
	return false;
}

/* Reads the code bytes before a value; returns their number. */
static size_t read_before(struct tw_debug *debug, uint64_t value, uint8_t out[CALL_BYTES_MAX], bool *is_known)
{
	uint64_t bytes = CALL_BYTES_MAX;
	GElf_Phdr header;
	ssize_t got;

	if (!find_segment(debug, value, &header, is_known))
		return 0;
	if (bytes > value - header.p_vaddr)
		bytes = value - header.p_vaddr;
	got = pread(debug->file.fd, out, bytes, (off_t)(header.p_offset + (value - header.p_vaddr) - bytes));
	*is_known = got == (ssize_t)bytes;
	return *is_known ? bytes : 0;
}

uint64_t tw_dwarf_behind_nops(struct tw_debug *debug, uint64_t value)
{
	uint8_t code[ENTRY_BYTES_MAX];
	size_t at = 0, count;
	GElf_Phdr header;
	bool is_known;
	ssize_t got;
	unsigned bytes;

	if (!find_segment(debug, value, &header, &is_known))
		return value;
	count = header.p_filesz - (value - header.p_vaddr);
	if (count > sizeof code)
		count = sizeof code;
	got = pread(debug->file.fd, code, count, (off_t)(header.p_offset + (value - header.p_vaddr)));
	if (got < TW_ENDBR_BYTES)
		return value;
	if (tw_is_endbr(code))
		at = TW_ENDBR_BYTES;
	while ((bytes = tw_nop_bytes(code + at, (size_t)got - at)))
		at += bytes;
	return value + at;
}

/* The length of `ff /2`, a call through a register or memory, which begins there; 0: it is none. */
static size_t indirect_call_bytes(const uint8_t *at, size_t capacity)
{
	unsigned mod = at[1] >> 6, rm = at[1] & 7;
	size_t bytes = 2;

	if (at[0] != 0xff || (at[1] >> 3 & 7) != 2)
		return 0;
	if (mod != 3 && rm == 4) {
		if (capacity < 3)
			return 0;
		bytes++;
		if (mod == 0 && (at[2] & 7) == 5)
			bytes += 4;
	}
	if (mod == 0 && rm == 5)
		bytes += 4;
	return bytes + (mod == 1) + 4 * (mod == 2);
}

TW_API bool tw_debug_follows_call(struct tw_debug *debug, uint64_t value)
{
	uint8_t code[CALL_BYTES_MAX];
	bool is_known;
	size_t count = read_before(debug, value, code, &is_known);

	if (!is_known)
		return true;
	if (count >= 5 && code[count - 5] == 0xe8)
		return true;
	for (size_t bytes = 2; bytes <= count; bytes++)
		if (indirect_call_bytes(code + count - bytes, bytes) == bytes)
			return true;
	return false;
}

TW_API bool tw_debug_ends_signal(struct tw_debug *debug, uint64_t value)
{
	/* mov $15, %rax; syscall: rt_sigreturn.  The last bytes of it are read, because that is what lies before a value. */
	static const uint8_t end[CALL_BYTES_MAX] = {0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
	const unsigned all = 9, tail = 6;
	uint8_t code[CALL_BYTES_MAX];
	bool is_known;
	size_t count = read_before(debug, value + all, code, &is_known);

	return is_known && count >= tail && memcmp(code + count - tail, end, tail) == 0;
}
