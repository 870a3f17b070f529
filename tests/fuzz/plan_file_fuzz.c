/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever a file holds, its plan is refused, or is one that the reader of plans accepts, whose copies have their limits.
 * Method: the bytes become a file in memory, which is planned; the bytes are also read as a plan, with a right checksum.
 */
#include "plan_made.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

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
		made_lay_out_all(&plan);
	free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	made_plan(data, bytes);
	read_as_plan(data, bytes);
	return 0;
}
