/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_write.h - a capture written as a stream: to a pipe, a socket or a file, never sought in.
 *
 * A reader that stops reading delays only its writer: the writer waits between pieces that the kernel takes at once,
 * so that it can be told to give up. Nothing is written after the first error.
 *
 * Threads  one writes; is_in_a_hurry is set by any, and by signal handlers.
 */
#ifndef TW_PIPELINE_STREAM_WRITE_H
#define TW_PIPELINE_STREAM_WRITE_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct tw_stream_out {
	int fd; /* owned; -1: none */
	bool is_socket, is_pipe;
	int error;		    /* of the first write that failed */
	_Atomic bool is_in_a_hurry; /* a reader that takes nothing for a second is given up */
};

/*
 * @fd: borrows: duplicated. TW_EBADARG if it cannot be written.
 */
int tw_stream_out_open(struct tw_stream_out *out, int fd);
void tw_stream_out_close(struct tw_stream_out *out);
/*
 * Writes all of it, or returns an error: TW_EPIPE if the reader is gone, or takes nothing when in a hurry. Raises no
 * signal.
 */
int tw_stream_out_write(struct tw_stream_out *out, struct iovec *pieces, int count);
void tw_stream_out_hurry(struct tw_stream_out *out);

#endif
