/* SPDX-License-Identifier: Apache-2.0 */
/* native_calls.h - what calls of libc do with descriptors: by the layouts of agent/ports.c. */
#ifndef TW_VIEWS_NATIVE_CALLS_H
#define TW_VIEWS_NATIVE_CALLS_H

#include "tracewheel/capture.h"

enum tw_native_op {
	TW_NATIVE_OP_NONE,
	TW_NATIVE_OP_USE,
	TW_NATIVE_OP_OPEN,
	TW_NATIVE_OP_DUP,
	TW_NATIVE_OP_ACCEPT,
	TW_NATIVE_OP_IN,
	TW_NATIVE_OP_OUT,
	TW_NATIVE_OP_BOTH,
	TW_NATIVE_OP_CLOSE,
	TW_NATIVE_OP_CLOSE_RANGE,
	TW_NATIVE_OP_DIRECTORY,
	TW_NATIVE_OP_CLOSE_DIRECTORY,
	TW_NATIVE_OP_FORK,
	TW_NATIVE_OP_SPAWN,
	TW_NATIVE_OP_VFORK, /* this and the next two do not return to where they were called */
	TW_NATIVE_OP_EXECUTE,
	TW_NATIVE_OP_EXIT,
	TW_NATIVE_OP_REOPEN,
	TW_NATIVE_OP_MEMORY, /* makes a stream without a descriptor */
	TW_NATIVE_OP_WAIT
};

/* How the bytes follow from the result. */
enum tw_native_size {
	TW_NATIVE_SIZE_RESULT,
	TW_NATIVE_SIZE_ITEMS,
	TW_NATIVE_SIZE_ONE,
	TW_NATIVE_SIZE_EIGHT,
	TW_NATIVE_SIZE_UNKNOWN
};

struct tw_native_function {
	enum tw_native_op op;
	enum tw_native_size size;
	uint8_t standard; /* 1 + the descriptor of a transfer that names none: printf() */
	bool keeps_input; /* tee() */
	const struct tw_layout *layout;
	const char *name, *caller;
};

/* Fills in what the function of a place does; `op` is TW_NATIVE_OP_NONE if it was not recorded by `--ports`. */
void tw_native_function_make(const struct tw_capture *capture, uint32_t image, const struct tw_capture_place *place,
			     struct tw_native_function *out);

#endif
