/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever a file holds, its plan is refused, or is one that the reader of plans accepts, whose copies have their limits.
 * Method: the bytes become a file in memory, which is planned; the bytes are also read as a plan, with a right checksum.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static size_t sum;

static void lay_out_all(const struct tw_entry_plan *plan)
{
	for (uint32_t i = 0; i < plan->header->row_count; i++) {
		const struct tw_entry_plan_row *row = &plan->rows[i];
		uint8_t out[TW_ENTRY_SPACE_BYTES];

		for (unsigned n = 0; tw_entry_plan_name(plan, row, n); n++)
			sum += strlen(tw_entry_plan_name(plan, row, n));
		if (!row->refusal && tw_entry_plan_lay_out(plan, row, 0x500000, 0x400000, out) > sizeof out)
			abort();
	}
}

static void read_as_plan(const uint8_t *data, size_t bytes)
{
	struct tw_entry_plan_header *header = malloc(bytes + 1);
	struct tw_entry_plan plan;

	if (!header)
		abort();
	memcpy(header, data, bytes);
	if (bytes >= sizeof *header && header->bytes == bytes)
		header->checksum = tw_entry_plan_checksum(header);
	if (tw_entry_plan_open(header, bytes, &plan) == 0)
		lay_out_all(&plan);
	free(header);
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
		struct tw_entry_plan plan;
		void *made;
		size_t count;

		if (tw_entry_plan_make(file, &made, &count) == 0) {
			if (tw_entry_plan_open(made, count, &plan))
				abort();
			lay_out_all(&plan);
			free(made);
		}
		tw_elf_file_close(file);
	}
	close(fd);
	read_as_plan(data, bytes);
	return 0;
}
