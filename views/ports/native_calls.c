/* SPDX-License-Identifier: Apache-2.0 */
/* native_calls.c - what functions of libc do, as their layouts say. */
#include "views/ports/native_calls.h"

#include <string.h>

/* The type names of results in agent/ports.c. */
static const struct {
	const char *name;
	enum tw_native_op op;
	enum tw_native_size size;
	uint8_t standard;
} kinds[] = {
	{"use", TW_NATIVE_OP_USE, 0, 0},
	{"open", TW_NATIVE_OP_OPEN, 0, 0},
	{"reopen", TW_NATIVE_OP_REOPEN, 0, 0},
	{"memory", TW_NATIVE_OP_MEMORY, 0, 0},
	{"accept", TW_NATIVE_OP_ACCEPT, 0, 0},
	{"dup", TW_NATIVE_OP_DUP, 0, 0},
	{"in", TW_NATIVE_OP_IN, TW_NATIVE_SIZE_RESULT, 1},
	{"in_items", TW_NATIVE_OP_IN, TW_NATIVE_SIZE_ITEMS, 1},
	{"in_one", TW_NATIVE_OP_IN, TW_NATIVE_SIZE_ONE, 1},
	{"in_eight", TW_NATIVE_OP_IN, TW_NATIVE_SIZE_EIGHT, 1},
	{"in_some", TW_NATIVE_OP_IN, TW_NATIVE_SIZE_UNKNOWN, 1},
	{"out", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_RESULT, 2},
	{"out_items", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_ITEMS, 2},
	{"out_one", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_ONE, 2},
	{"out_eight", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_EIGHT, 2},
	{"out_some", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_UNKNOWN, 2},
	{"error_some", TW_NATIVE_OP_OUT, TW_NATIVE_SIZE_UNKNOWN, 3},
	{"both", TW_NATIVE_OP_BOTH, TW_NATIVE_SIZE_RESULT, 0},
	{"tee", TW_NATIVE_OP_BOTH, TW_NATIVE_SIZE_RESULT, 0},
	{"close", TW_NATIVE_OP_CLOSE, 0, 0},
	{"close_range", TW_NATIVE_OP_CLOSE_RANGE, 0, 0},
	{"directory", TW_NATIVE_OP_DIRECTORY, 0, 0},
	{"close_directory", TW_NATIVE_OP_CLOSE_DIRECTORY, 0, 0},
	{"fork", TW_NATIVE_OP_FORK, 0, 0},
	{"spawn", TW_NATIVE_OP_SPAWN, 0, 0},
	{"vfork", TW_NATIVE_OP_VFORK, 0, 0},
	{"execute", TW_NATIVE_OP_EXECUTE, 0, 0},
	{"exit", TW_NATIVE_OP_EXIT, 0, 0},
	{"wait", TW_NATIVE_OP_WAIT, 0, 0},
};

static bool names_port(const struct tw_layout *layout)
{
	for (uint32_t i = 0; i < layout->count; i++)
		if (!strcmp(layout->values[i].name, "fd") || !strcmp(layout->values[i].name, "stream"))
			return true;
	return false;
}

void tw_native_function_make(const struct tw_capture *capture, uint32_t image, const struct tw_capture_place *place,
			     struct tw_native_function *out)
{
	*out = (struct tw_native_function){.name = place->function->name,
					   .caller = place->caller ? place->caller->name : NULL,
					   .layout = tw_capture_layout(capture, image, place->function->function_id)};
	if (!out->layout || strcmp(place->function->module->soname, "libc.so.6") != 0)
		return;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(kinds[i].name, out->layout->result.type_name) != 0)
			continue;
		out->op = kinds[i].op;
		out->size = kinds[i].size;
		out->standard = names_port(out->layout) ? 0 : kinds[i].standard;
		out->keeps_input = !strcmp(kinds[i].name, "tee");
	}
}
