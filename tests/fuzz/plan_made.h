/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_made.h - a plan of a file that a fuzzer has made up is refused, or is one that the reader of plans accepts, whose copies
 * have their limits (made_plan()); and an ELF file that is right in all its headers, around the fuzzer's bytes (made_fill()).
 */
#ifndef TW_TESTS_FUZZ_PLAN_MADE_H
#define TW_TESTS_FUZZ_PLAN_MADE_H

#include "plan/plan.h"
#include "symbols/frame_rows.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MADE_ROWS_MAX 64u

struct made_file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Nhdr note;
	char note_name[4];
	uint8_t build_id[8];
	uint8_t table_head[4];
	int32_t frames_distance;
	uint32_t row_count;
	int32_t rows[MADE_ROWS_MAX][2];
	/* Code, then call frame information, then what the fuzzer wants. */
	_Alignas(8) uint8_t input[];
};

#define MADE_OFFSET(member) ((uint32_t)offsetof(struct made_file, member))

static inline void made_fill(struct made_file *file, size_t bytes, size_t code_bytes, bool is_fixed)
{
	file->header =
		(Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = is_fixed ? ET_EXEC : ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_phoff = MADE_OFFSET(segments),
			     .e_ehsize = sizeof(Elf64_Ehdr),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 3};
	file->segments[0] =
		(Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = bytes, .p_memsz = bytes};
	file->segments[1] = (Elf64_Phdr){.p_type = PT_NOTE,
					 .p_offset = MADE_OFFSET(note),
					 .p_vaddr = MADE_OFFSET(note),
					 .p_filesz = MADE_OFFSET(table_head) - MADE_OFFSET(note),
					 .p_memsz = MADE_OFFSET(table_head) - MADE_OFFSET(note)};
	file->segments[2] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
					 .p_offset = MADE_OFFSET(table_head),
					 .p_vaddr = MADE_OFFSET(table_head),
					 .p_filesz = MADE_OFFSET(input) - MADE_OFFSET(table_head),
					 .p_memsz = MADE_OFFSET(input) - MADE_OFFSET(table_head)};
	file->note = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = 8, .n_type = NT_GNU_BUILD_ID};
	memcpy(file->note_name, "GNU", 4);
	memcpy(file->table_head, "\x01\x1b\x03\x3b", 4);
	file->frames_distance = (int32_t)(MADE_OFFSET(input) + code_bytes - MADE_OFFSET(frames_distance));
}

/* Adds a row of the sorted table that leads to this byte of the input. */
static inline void made_add_row(struct made_file *file, size_t at)
{
	if (file->row_count < MADE_ROWS_MAX)
		file->rows[file->row_count++][1] = (int32_t)(MADE_OFFSET(input) + at - MADE_OFFSET(table_head));
}

static inline size_t made_lay_out_all(const struct tw_entry_plan *plan)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < plan->header->row_count; i++) {
		const struct tw_entry_plan_row *row = &plan->rows[i];
		uint8_t out[TW_ENTRY_SPACE_BYTES];

		for (unsigned n = 0; tw_entry_plan_name(plan, row, n); n++)
			sum += strlen(tw_entry_plan_name(plan, row, n));
		if (!row->refusal && tw_entry_plan_lay_out(plan, row, 0x500000, 0x400000, out) > sizeof out)
			abort();
	}
	return sum;
}

/* Its table of frames: whatever value is asked for, a rule of the table is found, or none. */
static inline void made_rows(const struct tw_elf_file *file)
{
	struct tw_frame_rows rows;
	size_t count;
	void *made;

	if (tw_frame_rows_make(file, &made, &count))
		return;
	if (tw_frame_rows_open(made, count, &rows))
		abort();
	for (uint64_t value = 0; value < 0x2000; value++) {
		const struct tw_frame_rule *rule = tw_frame_rows_find(&rows, value);

		if (rule && (rule < rows.rules || rule >= rows.rules + rows.header->rule_count))
			abort();
	}
	free(made);
}

/* Plans a file of these bytes. */
static inline void made_plan(const void *bytes, size_t count)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct tw_elf_file *file;
	char path[64];

	if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (tw_elf_file_open(path, &file) == 0) {
		struct tw_entry_plan plan;
		size_t plan_bytes;
		void *made;

		if (tw_entry_plan_make(file, &made, &plan_bytes) == 0) {
			if (tw_entry_plan_open(made, plan_bytes, &plan))
				abort();
			made_lay_out_all(&plan);
			free(made);
		}
		made_rows(file);
		tw_elf_file_close(file);
	}
	close(fd);
}

#endif
