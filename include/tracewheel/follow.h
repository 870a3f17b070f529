/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - read a capture while it is recorded.
 *
 * Threads, ownership, units and errors: those of capture.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_FOLLOW_H
#define TRACEWHEEL_FOLLOW_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * tw_capture_follow - read a capture while its recording goes on: its events as they come, until the recording ends.
 *
 * @path	the directory NAME.tw.
 *
 * Waits for the first event.  Works as tw_capture_open_stream(); besides, zero_ns is that of the whole recording, end_ns
 * is this moment, and is_live is true until the events end. A block that ends before the filter's from_ns is not
 * decoded: with from_ns = end_ns only new events are read.  It looks for new
 * events every 50 ms, and asks the recorder each time to store what it has; they are in order over all threads.  If the recorder dies, or
 * removes segments (--keep) before they are read, the events end there, with a damage that says so.
 * Errors: those of tw_capture_open(); TW_EDEAD (no recording owns it: tw_capture_open() reads it), TW_EPERM (the
 * recording is another user's), TW_ENOTSUP (its recorder is in another pid namespace, or its rings are no files).
 */
int tw_capture_follow(const char *path, struct tw_capture **out);

#ifdef __cplusplus
}
#endif

#endif
