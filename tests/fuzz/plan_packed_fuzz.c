/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever .gnu_debugdata holds, the plan of its file is right or refused (plan_made.h), and takes no more than its limits.
 * Method: a file with one function and this section.  By its first byte, the input is the packed section itself, or what it holds: it is
 *         then packed here.
 */
#include "plan_made.h"

#include <lzma.h>

#define CODE_BYTES 16u
#define PACKED_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* lea 1(%rdi), %eax; cltq; ret; and its description: CFA is %rsp + 8. */
static const uint8_t code[CODE_BYTES] = {0x8d, 0x47, 0x01, 0x48, 0x98, 0xc3};
static const uint8_t common[24] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
static const char names[] = "\0.names\0.gnu_debugdata";

struct tail {
	uint8_t common[sizeof common];
	uint32_t frame_bytes, back;
	int32_t code_distance;
	uint32_t code_bytes, nothing;
	char names[sizeof names];
	Elf64_Shdr sections[3];
	uint8_t packed[];
};

static size_t pack(const uint8_t *data, size_t bytes, uint8_t *out)
{
	size_t used = 0;

	if (!(data[0] & 1)) {
		memcpy(out, data + 1, bytes - 1);
		return bytes - 1;
	}
	return lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, data + 1, bytes - 1, out, &used, PACKED_MAX) == LZMA_OK
		       ? used
		       : 0;
}

static Elf64_Shdr section(uint32_t name, size_t offset, size_t bytes)
{
	return (Elf64_Shdr){.sh_name = name, .sh_type = SHT_PROGBITS, .sh_offset = offset, .sh_size = bytes};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct made_file *file = calloc(1, sizeof *file + CODE_BYTES + sizeof(struct tail) + PACKED_MAX);
	struct tail *tail = file ? (struct tail *)(void *)(file->input + CODE_BYTES) : NULL;
	size_t start = MADE_OFFSET(input) + CODE_BYTES, packed, total;

	if (!file)
		abort();
	if (!bytes || bytes > PACKED_MAX) {
		free(file);
		return 0;
	}
	memcpy(file->input, code, sizeof code);
	memcpy(tail->common, common, sizeof common);
	tail->frame_bytes = 16;
	tail->back = (uint32_t)(offsetof(struct tail, back) - offsetof(struct tail, common));
	tail->code_distance = -(int32_t)(CODE_BYTES + offsetof(struct tail, code_distance));
	tail->code_bytes = 6;
	memcpy(tail->names, names, sizeof names);
	packed = pack(data, bytes, tail->packed);
	tail->sections[1] = section(1, start + offsetof(struct tail, names), sizeof names);
	tail->sections[2] = section(8, start + sizeof *tail, packed);
	total = sizeof *file + CODE_BYTES + sizeof *tail + packed;
	made_fill(file, total, CODE_BYTES, false);
	file->header.e_shoff = start + offsetof(struct tail, sections);
	file->header.e_shentsize = sizeof(Elf64_Shdr);
	file->header.e_shnum = 3;
	file->header.e_shstrndx = 1;
	made_add_row(file, CODE_BYTES + offsetof(struct tail, frame_bytes));
	made_plan(file, total);
	free(file);
	return 0;
}
