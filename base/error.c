/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the sentences behind the closed list of errors. */
#include "base/error.h"
#include "base/export.h"

TW_API const char *tw_strerror(int error)
{
	switch (error) {
	case 0: return "success";
	case TW_EBADARG: return "an argument is not acceptable; nothing was changed; see the call's documentation";
	case TW_ELIMIT:
		return "a limit of the library was reached; nothing was changed; free something or ask for less";
	case TW_EDEAD: return "the session is destroyed; create a new one";
	case TW_EDEADLK:
		return "a control call inside a hit, a callback or another change; make it from an ordinary thread";
	case TW_ENOMEM: return "there is no memory left; free some, or ask for smaller rings";
	case TW_ENOSPC: return "there is no space left on the device; free some, or choose another place";
	case TW_ENOENT: return "it does not exist; check the name";
	case TW_EEXIST: return "it exists already and is not overwritten; choose another name";
	case TW_EPERM: return "it is not allowed; check the owner and the mode";
	case TW_EFORMAT: return "the data is foreign, damaged or cut off; check that this is a capture";
	case TW_EVERSION: return "the data was written by another version of the format; use the version that wrote it";
	case TW_EIO: return "reading or writing failed; check the device";
	case TW_EPIPE: return "the other side is gone; start it again";
	case TW_ETIMEDOUT: return "the time given has passed; wait longer, or find out what holds it up";
	case TW_ENOTSUP:
		return "this machine, kernel or program cannot do it; see the documentation for what is needed";
	case TW_EINTR: return "a signal interrupted the wait; try again";
	default: return "an unknown error number; it is not one of tracewheel/error.h";
	}
}

int tw_error_from_errno(int number)
{
	switch (number) {
	case 0: return 0;
	case EINVAL: return TW_EBADARG;
	case E2BIG: return TW_ELIMIT;
	case ENOMEM: return TW_ENOMEM;
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return TW_ENOSPC;
	case ENOENT:
	case ENOTDIR: return TW_ENOENT;
	case EEXIST:
	case ENOTEMPTY: return TW_EEXIST;
	case EPERM:
	case EACCES:
	case EROFS: return TW_EPERM;
	case EPIPE: return TW_EPIPE;
	case ETIMEDOUT: return TW_ETIMEDOUT;
	case ENOSYS:
	case EOPNOTSUPP: return TW_ENOTSUP;
	case EINTR: return TW_EINTR;
	default: return TW_EIO;
	}
}
