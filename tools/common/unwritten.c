/* SPDX-License-Identifier: Apache-2.0 */
/* unwritten.c - why a capture made of others was not written. */
#include "tools/common/unwritten.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

bool tw_unwritten(const char *path, bool is_forced, int error)
{
	if (error == TW_EEXIST && is_forced)
		tw_say("'%s' is not replaced: it is not a capture, or is being recorded now; -o names another.", path);
	else if (error == TW_EEXIST)
		tw_say("'%s' exists; --force replaces a capture.", path);
	else if (error == TW_EPERM)
		tw_say("'%s' cannot be written: you may not, or another command writes it at this moment.", path);
	else if (error == TW_ENOSPC)
		tw_say("the disk is full: '%s' was not made, and what had been written is removed.", path);
	else
		tw_say("'%s' could not be written: %s", path, tw_strerror(error));
	return false;
}
