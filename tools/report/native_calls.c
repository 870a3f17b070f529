/* SPDX-License-Identifier: Apache-2.0 */
/* native_calls.c - functions of libc by name. */
#include "tools/report/native_calls.h"

#include <string.h>

static bool begins(const char *name, const char *const *starts)
{
	for (; *starts; starts++)
		if (strncmp(name, *starts, strlen(*starts)) == 0)
			return true;
	return false;
}

static const char *without_underscores(const char *name)
{
	if (strncmp(name, "_IO_", 4) == 0)
		return name + 4;
	if (strncmp(name, "__isoc99_", 9) == 0)
		return name + 9;
	return name + strspn(name, "_");
}

static enum tw_native_op op_of(const char *name, const struct tw_layout *layout)
{
	static const char *const in[] = {"read",    "pread", "recv",	     "fread", "fget",	   "get", "fscanf",
					 "vfscanf", "scanf", "eventfd_read", "uflow", "underflow", NULL};
	static const char *const out[] = {"write",    "pwrite",	       "send",	   "fwrite",   "fput",	  "put",
					  "printf",   "vprintf",       "fprintf",  "vfprintf", "dprintf", "vdprintf",
					  "vmsplice", "eventfd_write", "overflow", NULL};
	static const char *const both[] = {"sendfile", "splice", "copy_file_range", NULL};
	static const char *const dup[] = {"dup", "fcntl", NULL};
	if (begins(name, both))
		return TW_NATIVE_OP_BOTH;
	if (begins(name, in))
		return TW_NATIVE_OP_IN;
	if (begins(name, out))
		return TW_NATIVE_OP_OUT;
	if (!strcmp(name, "fork") || !strcmp(name, "Fork") || !strcmp(name, "vfork") ||
	    !strncmp(name, "posix_spawn", 11))
		return TW_NATIVE_OP_FORK;
	if (!strncmp(name, "wait", 4))
		return TW_NATIVE_OP_WAIT;
	if (!strcmp(name, "close_range") || !strcmp(name, "closefrom"))
		return TW_NATIVE_OP_CLOSE_RANGE;
	if (!strcmp(name, "close") || !strcmp(name, "fclose") || !strcmp(name, "pclose"))
		return TW_NATIVE_OP_CLOSE;
	if (begins(name, dup))
		return TW_NATIVE_OP_DUP;
	if (!strncmp(name, "accept", 6))
		return TW_NATIVE_OP_ACCEPT;
	return layout->result.type == 'd' ? TW_NATIVE_OP_OPEN : TW_NATIVE_OP_OTHER;
}

static enum tw_native_size size_of(const char *name, const struct tw_layout *layout)
{
	static const char *const unknown[] = {"fputs",	 "puts",  "fgets", "recvmmsg",	"sendmmsg", "fscanf",
					      "vfscanf", "scanf", "uflow", "underflow", "overflow", NULL};
	static const char *const one[] = {"fput", "put", "fgetc", "getc", NULL};
	if (begins(name, unknown))
		return TW_NATIVE_SIZE_UNKNOWN;
	if (begins(name, one))
		return TW_NATIVE_SIZE_ONE;
	if (!strncmp(name, "eventfd_", 8))
		return TW_NATIVE_SIZE_EIGHT;
	return layout->result.type == 'u' ? TW_NATIVE_SIZE_ITEMS : TW_NATIVE_SIZE_RESULT;
}

/* A call that names neither a descriptor nor a stream uses a standard one. */
static uint8_t standard_of(const struct tw_native_function *function)
{
	if (function->op != TW_NATIVE_OP_IN && function->op != TW_NATIVE_OP_OUT)
		return 0;
	for (uint32_t i = 0; i < function->layout->count; i++)
		if (!strcmp(function->layout->values[i].name, "fd") ||
		    !strcmp(function->layout->values[i].name, "stream"))
			return 0;
	return function->op == TW_NATIVE_OP_IN ? 1 : 2;
}

void tw_native_function_make(const struct tw_capture *capture, uint32_t image, const struct tw_capture_place *place,
			     struct tw_native_function *out)
{
	*out = (struct tw_native_function){.is_known = true};
	out->layout = tw_capture_layout(capture, image, place->function->function_id);
	if (!out->layout || strcmp(place->function->module->soname, "libc.so.6") != 0)
		return;
	const char *name = without_underscores(place->function->name);
	out->op = op_of(name, out->layout);
	out->size = size_of(name, out->layout);
	out->standard = standard_of(out);
	out->name = place->function->name;
	out->caller = place->caller ? place->caller->name : NULL;
}
